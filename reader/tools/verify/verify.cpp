// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/verify.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/bus_fault.hpp"
#include "formats/os/file.hpp"
#include "formats/os/tasks.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "formats/shard/framing.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/usable_threads.hpp"
#include "reader/shards/shard_listing.hpp"
#include "reader/tools/verify/shard_verification.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kChunkBytes = 16 << 20;  // for one thread at a time
constexpr std::uint64_t kPartBytes = 256 << 10;  // stays in the cache between read and CRC

/// A shard that is read in chunks by several threads.
struct ChunkedShard : ShardVerification {
  using ShardVerification::ShardVerification;

  [[nodiscard]] std::uint64_t chunk_size(std::size_t chunk) const {
    return std::min(chunk_bytes, bytes - chunk * chunk_bytes);
  }
  [[nodiscard]] std::uint32_t crc() const {
    std::uint32_t crc = 0;
    for (std::size_t i = 0; i < chunk_crcs.size(); ++i) {
      crc = crc32c::combine(crc, chunk_crcs[i], chunk_size(i));
    }
    return crc;
  }

  std::uint64_t chunk_bytes = kChunkBytes;
  std::uint64_t part_bytes = kPartBytes;  // read at a time, of a chunk
  bool is_read_by_records = false;        // chunks and parts are whole records
  std::atomic<bool> looks_strange{false};
  std::vector<std::uint32_t> chunk_crcs;
  std::vector<std::exception_ptr> chunk_errors;
};

/// Lets records be checked while they are read for the CRC, if chunks can be whole records. HDF5
/// has no framing to check, and in a file of the wrong size the positions of records are unknown.
void read_by_records(ChunkedShard& shard) {
  const ShardEntry* const entry = shard.listed.entry;
  if (entry == nullptr || entry->samples == 0 || shard.listed.manifest->format == Format::kHdf5) {
    return;
  }
  const std::uint64_t stride = entry->columns->image.stride;
  if (stride == 0 || stride > kChunkBytes || shard.bytes != entry->bytes ||
      shard.bytes / stride < entry->samples) {
    return;
  }
  const bool has_more = shard.bytes != entry->samples * stride;
  if (has_more && shard.listed.manifest->format == Format::kTfrecord) return;
  shard.is_read_by_records = true;
  shard.chunk_bytes = kChunkBytes / stride * stride;
  shard.part_bytes = round_up(kPartBytes, stride);
  shard.samples = entry->samples;
}

void check_chunk(ChunkedShard& shard, std::size_t chunk, VerifyProgress& progress) {
  const File file(shard.listed.path(), O_RDONLY);
  const std::uint64_t size = shard.chunk_size(chunk);
  std::vector<std::byte> buffer(std::min(shard.part_bytes, size));
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < size && !progress.stop;) {
    const std::uint64_t offset = chunk * shard.chunk_bytes + done;
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - done));
    file.read_at(offset, part);
    crc = crc32c::extend(crc, part);
    if (shard.is_read_by_records && !shard.looks_strange &&
        !has_right_records(shard, offset, part)) {
      shard.looks_strange = true;
    }
    done += part.size();
    progress.bytes_done += part.size();
  }
  shard.chunk_crcs[chunk] = crc;
  if (file.size() != shard.bytes) {
    throw CorruptData(shard.listed.path(), std::min(file.size(), shard.bytes),
                      "the file's size changed while it was read");
  }
}

std::deque<ChunkedShard> shards_of(const std::vector<std::filesystem::path>& paths,
                                   const VerifyOptions& options) {
  std::deque<ChunkedShard> shards;
  for (const auto& path : paths) {
    std::error_code ignored;
    if (!options.split && std::filesystem::is_directory(path, ignored)) check_finished(path);
    for (ListedShard& listed : list_shards(path, options.split)) {
      ChunkedShard& shard = shards.emplace_back(std::move(listed));
      shard.helper = options.helper;
      shard.collect_errors([&] { shard.bytes = File(shard.listed.path(), O_RDONLY).size(); });
      if (shard.failure) std::rethrow_exception(shard.failure);
    }
  }
  return shards;
}

bool is_same(const ListedShard* then, const ListedShard& now) {
  const ShardEntry* before = then->known();
  const ShardEntry* after = now.known();
  if (before == nullptr || after == nullptr) return before == after;
  return !then->entry == !now.entry && *before == *after;
}

/// Faults of manifests that were changed; shards do not show it if only classes, recipe or source
/// differ. Throws IoError if a dataset was replaced since it was listed: the findings would mix two
/// datasets.
std::vector<ShardFault> check_manifests(const std::deque<ChunkedShard>& shards) {
  std::map<const ManifestWatch*, std::vector<const ListedShard*>> manifests;
  for (const ChunkedShard& shard : shards) {
    if (shard.listed.watch != nullptr) manifests[shard.listed.watch.get()].push_back(&shard.listed);
  }
  std::set<std::filesystem::path> changed;
  for (const auto& [watch, listed] : manifests) {
    const bool is_current = watch->is_current(Ask::kByOpening, [&listed = listed] {
      std::vector<std::filesystem::path> paths;
      for (const ListedShard* shard : listed) paths.push_back(shard->path());
      return std::ranges::equal(listed, list_shards(paths), is_same);
    });
    if (!is_current) {
      throw IoError("the dataset was replaced while it was being verified:", watch->path(), 0,
                    "Verify it again: the result would mix two datasets.");
    }
    const bool is_right = has_right_own_crc(as_text(read_file(watch->path()))).value_or(true);
    if (!is_right) changed.insert(watch->path());
  }
  std::vector<ShardFault> faults;
  for (const auto& path : changed) {
    faults.push_back(
        {path, std::nullopt, std::nullopt,
         "the manifest was changed after precache wrote it: its own CRC-32C is wrong"});
  }
  return faults;
}

/// Reads all shards and adds the findings to each.
void read_shards(std::deque<ChunkedShard>& shards, unsigned threads, VerifyProgress& progress) {
  std::vector<std::function<void()>> tasks;
  const auto run = [&] {
    run_tasks(
        tasks.size(), threads, [&](std::size_t i) { tasks[i](); }, &progress.stop);
    tasks.clear();
  };
  const auto add_structure = [&](ChunkedShard& shard) {
    tasks.emplace_back([&] { shard.collect_errors([&] { check_structure(shard, progress); }); });
  };
  for (ChunkedShard& shard : shards) {
    if (!shard.faults.empty()) continue;  // the file does not exist
    progress.bytes_planned += shard.bytes;
    read_by_records(shard);
    // Records that are read in pieces are checked meanwhile, but not the values of named columns.
    const ShardEntry* const entry = shard.listed.entry;
    const bool has_named_columns = entry != nullptr && !entry->columns->named.empty();
    if (!shard.is_read_by_records || has_named_columns) add_structure(shard);
    if (!shard.expected) continue;
    shard.chunk_crcs.resize((shard.bytes + shard.chunk_bytes - 1) / shard.chunk_bytes);
    shard.chunk_errors.resize(shard.chunk_crcs.size());
    for (std::size_t chunk = 0; chunk < shard.chunk_crcs.size(); ++chunk) {
      // Several threads share a shard, so each chunk has its own place for an error.
      tasks.emplace_back([&, chunk] {
        try {
          check_chunk(shard, chunk, progress);
        } catch (...) {
          shard.chunk_errors[chunk] = std::current_exception();
        }
      });
    }
  }
  run();
  for (ChunkedShard& shard : shards) {
    if (shard.looks_strange) add_structure(shard);  // finds what is wrong, and where
  }
  run();
}

}  // namespace

VerifyReport verify(const std::vector<std::filesystem::path>& paths, const VerifyOptions& options,
                    VerifyProgress& progress) {
  bus_fault::install_handler();
  std::deque<ChunkedShard> shards = shards_of(paths, options);
  read_shards(shards, options.threads != 0 ? options.threads : usable_threads(), progress);
  VerifyReport report;
  report.interrupted = progress.stop;
  if (!report.interrupted) report.faults = check_manifests(shards);
  for (ChunkedShard& shard : shards) {
    for (const auto& error : shard.chunk_errors) {
      if (error && shard.faults.empty()) {
        shard.collect_errors([&] { std::rethrow_exception(error); });
      }
    }
    if (shard.failure) std::rethrow_exception(shard.failure);
    if (shard.expected && !report.interrupted) locate_damage(shard, shard.crc(), progress);
    report.files += 1;
    report.known_files += shard.expected ? 1 : 0;
    report.samples += shard.samples;
    report.bytes += shard.bytes;
    std::move(shard.faults.begin(), shard.faults.end(), std::back_inserter(report.faults));
    if (shard.unsupported) report.unsupported.push_back(std::move(*shard.unsupported));
  }
  return report;
}

}  // namespace precache
