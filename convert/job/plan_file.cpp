// SPDX-License-Identifier: Apache-2.0
#include "convert/job/plan_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

// Head: magic, version, length of the facts, samples, shards, offset of the index, identity, CRC of
// the facts, CRC of the head. Then the facts, the slices and the index.
constexpr std::string_view kMagic = "precplan";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 80;
constexpr std::size_t kIdentityBytes = 24;
constexpr std::size_t kIndexEntryBytes = 40;
constexpr std::size_t kWriteBytes = std::size_t{4} << 20;
constexpr std::uint64_t kMostFactsBytes = std::uint64_t{64} << 20;

Json to_json(const SourceFacts& facts) {
  Json json = {{"samples", facts.samples},
               {"bytes", facts.bytes},
               {"longest_key_bytes", facts.limits.longest_key},
               {"smallest_label", facts.limits.smallest_label},
               {"largest_label", facts.limits.largest_label},
               {"all_fit_ustar", facts.limits.all_fit_ustar},
               {"longest_key", facts.longest_key},
               {"unused_classes", facts.unused_classes},
               {"fingerprint", facts.fingerprint},
               {"stamp", facts.stamp}};
  if (facts.labels) json["labels"] = {facts.labels->smallest, facts.labels->largest};
  json["splits"] = Json::array();
  for (const PlannedSplitFacts& split : facts.splits) {
    json["splits"].push_back({{"name", split.name},
                              {"samples", split.samples},
                              {"shards", split.shards},
                              {"fingerprint", split.fingerprint}});
  }
  return json;
}

SourceFacts facts_of_json(const Json& json) {
  SourceFacts facts;
  facts.samples = strict_json::count(json.at("samples"));
  facts.bytes = strict_json::count(json.at("bytes"));
  facts.limits.longest_key = strict_json::count(json.at("longest_key_bytes"));
  facts.limits.smallest_label = strict_json::integer(json.at("smallest_label"));
  facts.limits.largest_label = strict_json::integer(json.at("largest_label"));
  facts.limits.all_fit_ustar = json.at("all_fit_ustar").get<bool>();
  facts.longest_key = json.at("longest_key").get<std::string>();
  for (const Json& number : json.at("unused_classes")) {
    facts.unused_classes.push_back(strict_json::count(number));
  }
  facts.fingerprint = json.at("fingerprint").get<std::string>();
  facts.stamp = strict_json::count(json.at("stamp"));
  if (const auto labels = json.find("labels"); labels != json.end()) {
    facts.labels =
        LabelRange{strict_json::integer(labels->at(0)), strict_json::integer(labels->at(1))};
  }
  for (const Json& split : json.at("splits")) {
    facts.splits.push_back(
        {split.at("name").get<std::string>(), strict_json::count(split.at("samples")),
         strict_json::count(split.at("shards")), split.at("fingerprint").get<std::string>()});
  }
  return facts;
}

std::string index_entry(std::uint64_t offset, std::uint64_t bytes, std::uint64_t samples,
                        std::uint64_t source_bytes, std::uint32_t crc) {
  std::string text;
  auto out = std::back_inserter(text);
  for (const std::uint64_t number : {offset, bytes, samples, source_bytes}) {
    out = put_little_endian(out, number, 8);
  }
  out = put_little_endian(out, crc, 4);
  put_little_endian(out, crc32c::value(as_bytes(text)), 4);
  return text;
}

}  // namespace

SourceFacts::SourceFacts(const Listing& listing, const Keys& keys, std::size_t classes)
    : samples(listing.size()),
      limits(keys.limits()),
      longest_key(keys.longest()),
      labels(listing.labels()),
      fingerprint(listing.fingerprint()),
      stamp(listing.stamp()) {
  std::vector<bool> used(classes);
  for (std::size_t i = 0; i < listing.size(); ++i) {
    const ListedFile file = listing[i];
    bytes += file.size;
    const auto label = static_cast<std::uint64_t>(file.label);  // -1 becomes large
    if (label < used.size()) used[label] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) unused_classes.push_back(i);
  }
}

/// Collects small writes, and the CRC of each slice.
class PlanFile::Writer {
 public:
  Writer(File& file, std::uint64_t begin) : file_(file), written_(begin) {}

  [[nodiscard]] std::uint64_t offset() const { return written_ + buffer_.size(); }

  void add(const ListedFile& file, std::string_view key) {
    append_sample(buffer_, file, key);
    if (buffer_.size() >= kWriteBytes) flush();
  }

  void add(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kWriteBytes) flush();
  }

  /// The CRC of what was added since the last call.
  std::uint32_t take_crc() {
    extend_crc();
    return std::exchange(crc_, 0);
  }

  void flush() {
    extend_crc();
    file_.write_at(written_, as_bytes(buffer_));
    file_.start_writeback(written_, buffer_.size());
    written_ += buffer_.size();
    buffer_.clear();
    summed_ = 0;
  }

 private:
  void extend_crc() {
    crc_ = crc32c::extend(crc_, as_bytes(std::string_view(buffer_).substr(summed_)));
    summed_ = buffer_.size();
  }

  File& file_;
  std::uint64_t written_;
  std::string buffer_;
  std::size_t summed_ = 0;  // of the buffer
  std::uint32_t crc_ = 0;
};

void PlanFile::write(const std::filesystem::path& path, const std::string& identity,
                     const SourceFacts& facts, const std::vector<PlannedSplit>& splits,
                     const Listing& listing, const Keys& keys, const Note& note) {
  const std::string facts_text =
      to_json(facts).dump(-1, ' ', false, Json::error_handler_t::replace);
  TemporaryFile temporary(path);
  Writer writer(temporary.file(), kHeadBytes);
  writer.add(facts_text);
  (void)writer.take_crc();
  std::string index;
  std::string targets;
  std::uint64_t shards = 0;
  for (const auto& [plan, samples] : splits) {
    for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
      const std::uint64_t begin = writer.offset();
      std::uint64_t source_bytes = 0;
      for (std::uint64_t slot = 0; slot < plan.shard_records(shard); ++slot) {
        const std::uint64_t planned = plan.sample(shard, slot);
        const std::uint64_t sample = samples == nullptr ? planned : (*samples)[planned];
        ListedFile file = listing[sample];
        source_bytes += file.size;
        if (note) targets.assign(file.targets).append(note(file));
        if (note) file.targets = targets;
        writer.add(file, keys.renamed(sample));
      }
      index += index_entry(begin, writer.offset() - begin, plan.shard_records(shard), source_bytes,
                           writer.take_crc());
    }
    shards += plan.shards();
  }
  const std::uint64_t index_offset = writer.offset();
  writer.add(index);
  writer.flush();

  std::string head(kMagic);
  auto out = std::back_inserter(head);
  out = put_little_endian(out, kVersion, 4);
  out = put_little_endian(out, facts_text.size(), 4);
  for (const std::uint64_t number : {facts.samples, shards, index_offset}) {
    out = put_little_endian(out, number, 8);
  }
  head += identity;
  head.resize(kHeadBytes - 8, '\0');
  put_little_endian(std::back_inserter(head), crc32c::value(as_bytes(facts_text)), 4);
  put_little_endian(std::back_inserter(head), crc32c::value(as_bytes(head)), 4);
  temporary.file().write_at(0, as_bytes(head));
  temporary.commit();
}

PlanFile::PlanFile(const std::filesystem::path& path)
    : file_(path, O_RDONLY), file_bytes_(file_.size()) {
  if (file_bytes_ < kHeadBytes) throw CorruptData(path, 0, "the plan is too short");
  std::vector<std::byte> head(kHeadBytes);
  file_.read_at(0, head);
  const auto number = [&](std::size_t at, std::size_t size) {
    return little_endian(std::span(head).subspan(at, size));
  };
  if (!as_text(head).starts_with(kMagic)) throw CorruptData(path, 0, "this is not a plan");
  if (number(8, 4) != kVersion) {
    throw Unsupported(fmt::format("'{}' is a plan of version {}, and this program reads version {}",
                                  path.string(), number(8, 4), kVersion),
                      "Use the version of precache that prepared the job, or set `overwrite`.");
  }
  if (crc32c::value(std::span(head).first(kHeadBytes - 4)) != number(kHeadBytes - 4, 4)) {
    throw CorruptData(path, 0, "the checksum of the plan's head is wrong");
  }
  shards_ = number(24, 8);
  index_offset_ = number(32, 8);
  const std::string_view identity = as_text(std::span(head).subspan(40, kIdentityBytes));
  identity_ = identity.substr(0, identity.find('\0'));
  if (index_offset_ > file_bytes_ || (file_bytes_ - index_offset_) / kIndexEntryBytes != shards_ ||
      (file_bytes_ - index_offset_) % kIndexEntryBytes != 0) {
    throw CorruptData(path, 24, "the size of the plan does not match its head");
  }
  if (number(12, 4) > kMostFactsBytes) throw CorruptData(path, 12, "the plan has too many facts");
  const auto facts =
      read(kHeadBytes, number(12, 4), static_cast<std::uint32_t>(number(kHeadBytes - 8, 4)));
  try {
    facts_ = facts_of_json(Json::parse(as_text(facts)));
  } catch (const Json::exception& error) {
    throw CorruptData(path, kHeadBytes, error.what());
  } catch (const std::invalid_argument& error) {
    throw CorruptData(path, kHeadBytes, error.what());
  }
  if (facts_.samples != number(16, 8)) {
    throw CorruptData(path, 16, "the plan is inconsistent: its sample counts disagree");
  }
}

std::vector<std::byte> PlanFile::read(std::uint64_t offset, std::uint64_t bytes,
                                      std::uint32_t crc) const {
  if (offset > file_bytes_ || bytes > file_bytes_ - offset) {
    throw CorruptData(path(), offset, "a piece of the plan runs past its end");
  }
  std::vector<std::byte> piece(bytes);
  file_.read_at(offset, piece);
  if (crc32c::value(piece) != crc) throw CorruptData(path(), offset, "a checksum is wrong");
  return piece;
}

PlanFile::IndexEntry PlanFile::entry(std::uint64_t shard) const {
  const std::uint64_t offset = index_offset_ + shard * kIndexEntryBytes;
  std::vector<std::byte> bytes(kIndexEntryBytes);
  file_.read_at(offset, bytes);
  const auto number = [&](std::size_t at, std::size_t size) {
    return little_endian(std::span(bytes).subspan(at, size));
  };
  if (crc32c::value(std::span(bytes).first(kIndexEntryBytes - 4)) != number(36, 4)) {
    throw CorruptData(path(), offset, "a checksum is wrong");
  }
  return {number(0, 8), number(8, 8), number(16, 8), number(24, 8),
          static_cast<std::uint32_t>(number(32, 4))};
}

std::uint64_t PlanFile::shard_records(std::uint64_t shard) const { return entry(shard).samples; }

std::uint64_t PlanFile::source_bytes(std::uint64_t shard) const {
  return entry(shard).source_bytes;
}

Slice PlanFile::slice(std::uint64_t shard) const {
  const IndexEntry found = entry(shard);
  return {read(found.offset, found.bytes, found.crc), found.samples, path(), found.offset};
}

void PlanFile::verify() const {
  tbb::parallel_for(std::uint64_t{0}, shards_, [&](std::uint64_t shard) { (void)slice(shard); });
}

std::shared_ptr<const Slice> OpenSlices::of(std::uint64_t shard) {
  const std::scoped_lock lock(mutex_);
  auto& slice = open_[shard];
  if (!slice) slice = std::make_shared<const Slice>(file_.slice(shard));
  return slice;
}

void OpenSlices::close(std::uint64_t shard) {
  const std::scoped_lock lock(mutex_);
  open_.erase(shard);
}

}  // namespace precache
