// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/inspect.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "formats/base/file.hpp"
#include "formats/file_kind.hpp"
#include "formats/hdf5/hdf5_anatomy.hpp"
#include "formats/scan.hpp"
#include "formats/tar/tar_anatomy.hpp"
#include "formats/tfrecord/tfrecord_anatomy.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/permutation.hpp"
#include "precache/formats/usable_threads.hpp"
#include "reader/bus_fault.hpp"
#include "reader/label_counts.hpp"
#include "reader/open_shards.hpp"
#include "reader/value_statistics.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kForeignFilesRead = 16;
constexpr std::uint64_t kValueSamples = 64;
constexpr std::uint64_t kValueBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kEncodedSamples = 1000;

/// Looks at what one path means, step by step.
class Inspector {
 public:
  Inspector(const std::filesystem::path& path, const InspectOptions& options) : options_(options) {
    facts_.path = path;
  }

  Inspection run() && {
    listed_ = list_shards(facts_.path, options_.split);
    facts_.files = listed_.size();
    describe_manifest();
    look_at_files();
    describe_kind();
    open_readable();
    return std::move(facts_);
  }

 private:
  /// Notes what is thrown for damage or an obstacle; failures of the system pass.
  template <typename Call>
  void look(const std::filesystem::path& path, const Call& call) {
    try {
      call();
    } catch (const CorruptData& error) {
      note_fault({path, std::nullopt, error.offset(), error.reason()});
    } catch (const Unsupported& error) {
      if (std::ranges::find(facts_.obstacles, error.what()) == facts_.obstacles.end()) {
        facts_.obstacles.emplace_back(error.what());
      }
    }
  }

  void note_fault(Fault fault) {
    const auto is_same = [&](const Fault& known) {
      return known.file == fault.file && known.offset == fault.offset &&
             known.reason == fault.reason;
    };
    // A dissection and the scan after it stumble over the same byte.
    if (std::ranges::none_of(facts_.faults, is_same)) facts_.faults.push_back(std::move(fault));
  }

  void describe_manifest() {
    const Manifest* const manifest = listed_.front().manifest.get();
    const bool is_one = std::ranges::all_of(
        listed_, [&](const ListedShard& shard) { return shard.manifest.get() == manifest; });
    if (manifest == nullptr || !is_one) return;
    facts_.has_manifest = true;
    facts_.recipe = manifest->recipe;
    facts_.spec = manifest->spec;
    for (const auto& [split_name, split] : manifest->splits) {
      if (options_.split && *options_.split != split_name) continue;
      SplitFacts facts{.name = split_name,
                       .samples = split.samples,
                       .files = split.shards.size(),
                       .skipped = split.skipped,
                       .seed = split.seed,
                       .shuffled = split.shuffled};
      for (const ShardEntry& shard : split.shards) facts.bytes += shard.bytes;
      facts_.splits.push_back(std::move(facts));
    }
  }

  void look_at_files() {
    std::vector<bool> is_read(listed_.size(), facts_.has_manifest || options_.all);
    for (const std::uint64_t i : spread(listed_.size(), kForeignFilesRead)) is_read[i] = true;
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      std::uint64_t bytes = 0;
      if (!find_size(listed_[i], bytes)) continue;
      facts_.bytes += bytes;
      if (!is_read[i]) continue;
      ++facts_.files_read;
      facts_.bytes_read += bytes;
      if (listed_[i].entry != nullptr) {
        note_format(listed_[i].manifest->format);
        look(listed_[i].path, [&] { keep(listed_[i]); });
      } else {
        look(listed_[i].path, [&] { look_into(listed_[i]); });
      }
    }
    if (has_tar_) facts_.tar = tar_.result();
    if (has_tfrecord_) facts_.tfrecord = tfrecord_.result();
  }

  /// False if a shard of a manifest is not there, or of another size.
  bool find_size(const ListedShard& listed, std::uint64_t& bytes) {
    try {
      bytes = File(listed.path, O_RDONLY | O_NONBLOCK).size();
    } catch (const IoError& error) {
      if (listed.entry == nullptr || error.code() != ENOENT) throw;
      note_fault({listed.path, std::nullopt, 0, "the manifest lists it, but it is not there"});
      return false;
    }
    if (listed.entry == nullptr || bytes == listed.entry->bytes) return true;
    note_fault(
        {listed.path, std::nullopt, std::min(bytes, listed.entry->bytes),
         fmt::format("the file has {} bytes, the manifest says {}", bytes, listed.entry->bytes)});
    return false;
  }

  void keep(const ListedShard& listed) {
    shards_.push_back(open_shard(listed, {}));
    facts_.readable.push_back(listed.path);
    const auto& index = shards_.back().index;
    if (classes_.empty()) {
      classes_ = listed.entry != nullptr ? listed.manifest->classes : index.classes;
    }
    facts_.samples = facts_.samples.value_or(0) + index.samples;
  }

  /// A file that no manifest describes.
  void look_into(const ListedShard& listed) {
    {
      const MappedShard mapped(listed.path);
      if (const FileKind kind = file_kind(mapped.bytes());
          kind.group == FileKind::Group::kCompressed && facts_.compression.empty()) {
        facts_.compression = kind.name;
      }
      const Format format = detect_format(mapped.bytes(), listed.path);
      facts_.compression.clear();  // of a shard that begins like a compressed file
      note_format(std::string(name(format)));
      look(listed.path, [&] { dissect(format, mapped); });
      mapped.check();
    }
    keep(listed);
  }

  void dissect(Format format, const MappedShard& mapped) {
    switch (format) {
      case Format::kTar:
        has_tar_ = true;
        return tar_.add(mapped.bytes(), mapped.path());
      case Format::kTfrecord:
        has_tfrecord_ = true;
        return tfrecord_.add(mapped.bytes(), mapped.path());
      case Format::kHdf5:
        if (!facts_.hdf5) facts_.hdf5 = hdf5::dissect(mapped.bytes(), mapped.path());
    }
  }

  void note_format(const std::string& format) {
    facts_.format = facts_.format.empty() || facts_.format == format ? format : "mixed";
  }

  void describe_kind() {
    using Kind = Inspection::Kind;
    std::error_code ignored;
    const bool is_file = std::filesystem::is_regular_file(facts_.path, ignored) &&
                         facts_.path.filename() != kManifestName;
    if (facts_.has_manifest && !is_file) {
      facts_.kind = Kind::kDataset;
    } else if (facts_.format.empty() && facts_.compression.empty()) {
      facts_.kind = Kind::kFile;
    } else {
      facts_.kind = listed_.size() == 1 ? Kind::kShard : Kind::kShards;
    }
    if (facts_.kind != Kind::kDataset) facts_.splits.clear();
    const bool is_damaged = !facts_.faults.empty();
    facts_.is_anatomy_partial =
        is_damaged || facts_.files_read < facts_.files || (facts_.hdf5 && facts_.files > 1);
  }

  void open_readable() {
    if (shards_.empty()) {
      facts_.access.reason = !facts_.obstacles.empty() ? facts_.obstacles.front()
                             : !facts_.faults.empty()  ? "it is damaged"
                                                       : "it has no shards";
      return;
    }
    look(facts_.path, [&] {
      const ShardSet set(std::move(shards_), std::move(classes_), {});
      facts_.spec = set.spec();
      describe_access(set);
      read_samples(set);
    });
  }

  void describe_access(const ShardSet& set) {
    AccessFacts& access = facts_.access;
    bool is_regular = true;
    std::uint64_t bits = 0;  // of all offsets: the lowest divides them all
    for (std::size_t i = 0; i < set.shard_count(); ++i) {
      const ShardIndex& index = set.index(i);
      if (index.samples == 0) continue;
      for (const SamplePlace& place : index.places) bits |= place.payload;
      if (!index.places.empty()) {
        is_regular = false;
        continue;
      }
      bits |= index.columns.image.base;
      if (index.samples > 1) bits |= index.columns.image.stride;
      const std::uint64_t stride = index.columns.image.stride;
      if (access.stride_bytes && *access.stride_bytes != stride) is_regular = false;
      access.stride_bytes = stride;
    }
    if (!is_regular) access.stride_bytes.reset();
    if (bits != 0) access.alignment_bytes = bits & (~bits + 1);
    describe_batches(set, is_regular);
  }

  void describe_batches(const ShardSet& set, bool is_regular) {
    AccessFacts& access = facts_.access;
    if (!set.spec()) {
      access.reason = set.obstacle();
      facts_.obstacles.push_back(set.obstacle());
      return;
    }
    const std::size_t element = size_bytes(set.spec()->dtype);
    if (access.alignment_bytes.value_or(element) < element) {
      access.batches = AccessFacts::Batches::kGathered;
      access.reason = fmt::format("{} values lie at odd addresses: samples are copied",
                                  name(set.spec()->dtype));
    } else if (!is_regular) {
      access.batches = AccessFacts::Batches::kGathered;
      access.reason = "samples do not lie at equal distances: each is a view, batches are copied";
    } else {
      access.batches = AccessFacts::Batches::kViews;
      access.reason = "equal records: neighbours are one strided view";
    }
  }

  void read_samples(const ShardSet& set) {
    const std::uint64_t total = set.samples();
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(total, options_.first_keys); ++i) {
      const auto place = set.place_of(i);
      const auto mapped = set.map(place.shard);
      facts_.first_keys.push_back(set.values(place.shard).key(mapped->bytes(), place.row));
      mapped->check();
    }
    if (total == 0) return;
    facts_.classes = count_labels(set, options_.all);
    facts_.classes->is_complete &= facts_.files_read == facts_.files;
    set.spec() ? read_values(set) : read_encoded(set);
  }

  void read_values(const ShardSet& set) {
    const std::uint64_t tensor_bytes = set.spec()->size_bytes();
    if (tensor_bytes == 0) return;
    const std::uint64_t wanted =
        std::clamp<std::uint64_t>(kValueBytes / tensor_bytes, 1, kValueSamples);
    const auto samples = spread(set.samples(), options_.all ? set.samples() : wanted);
    const auto tensor = [&](std::uint64_t i) {
      const auto place = set.place_of(samples[i]);
      auto mapped = set.map(place.shard);
      mapped->check();
      const auto [offset, bytes] = set.values(place.shard).payload(place.row);
      const auto view = mapped->bytes().subspan(offset, bytes);
      return HeldTensor{view, std::move(mapped)};
    };
    facts_.values = measure_values(*set.spec(), samples.size(), tensor, usable_threads());
    facts_.values->is_complete =
        samples.size() == set.samples() && facts_.files_read == facts_.files;
  }

  void read_encoded(const ShardSet& set) {
    EncodedFacts encoded;
    const auto samples = spread(set.samples(), options_.all ? set.samples() : kEncodedSamples);
    for (const std::uint64_t sample : samples) {
      const auto place = set.place_of(sample);
      const auto mapped = set.map(place.shard);
      const auto [offset, bytes] = set.values(place.shard).payload(place.row);
      const auto kind = image_file_kind(mapped->bytes().subspan(offset, bytes));
      ++encoded.kinds[kind.empty() ? "other" : std::string(kind)];
      encoded.bytes.add(bytes);
      mapped->check();
    }
    encoded.samples_read = samples.size();
    encoded.is_complete = samples.size() == set.samples() && facts_.files_read == facts_.files;
    facts_.encoded = std::move(encoded);
  }

  const InspectOptions& options_;
  Inspection facts_;
  std::vector<ListedShard> listed_;
  std::vector<ShardSet::Shard> shards_;
  std::vector<std::string> classes_;
  tar::Dissector tar_;
  tfrecord::Dissector tfrecord_;
  bool has_tar_ = false;
  bool has_tfrecord_ = false;
};

}  // namespace

std::optional<std::uint64_t> Inspection::overhead_bytes() const {
  std::uint64_t tensors = 0;
  if (!spec || !samples || __builtin_mul_overflow(spec->size_bytes(), *samples, &tensors) ||
      tensors > bytes_read || tensors == 0) {
    return std::nullopt;
  }
  return bytes_read - tensors;
}

Inspection inspect(const std::filesystem::path& path, const InspectOptions& options) {
  bus_fault::install_handler();
  return Inspector(path, options).run();
}

std::vector<std::uint64_t> spread(std::uint64_t total, std::uint64_t count) {
  std::vector<std::uint64_t> numbers(std::min(total, count));
  const Permutation order(std::max<std::uint64_t>(total, 1), 0);
  for (std::uint64_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = numbers.size() == total ? i : order(i);
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace precache
