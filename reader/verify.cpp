// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/verify.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "formats/base/checked.hpp"
#include "formats/base/crc32c.hpp"
#include "formats/base/file.hpp"
#include "formats/column_values.hpp"
#include "formats/hdf5/hdf5_images.hpp"
#include "formats/hdf5/scan_process.hpp"
#include "formats/scan.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/tar_scan.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "formats/tfrecord/tfrecord_scan.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/usable_threads.hpp"
#include "reader/bus_fault.hpp"
#include "reader/mapped_shard.hpp"
#include "reader/open_shards.hpp"
#include "reader/shard_listing.hpp"
#include "reader/unpacked_shard.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kChunkBytes = 16 << 20;  // that one thread takes at a time
constexpr std::uint64_t kPartBytes = 256 << 10;  // that stay in the cache between read and CRC
constexpr std::size_t kMostFaultsPerFile = 100;

/// What a manifest, of tensors or of encoded images, says of a file.
struct Expected {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

std::optional<Expected> expected_of(const ListedShard& listed) {
  const auto of = [](const auto& entry) {
    return Expected{entry.samples, entry.bytes, entry.crc32c};
  };
  if (listed.entry != nullptr) return of(*listed.entry);
  if (listed.encoded_entry != nullptr) return of(*listed.encoded_entry);
  return std::nullopt;
}

/// One shard while it is being looked at.
struct Shard {
  ListedShard listed;
  std::optional<Expected> expected;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint64_t chunk_bytes = kChunkBytes;
  std::uint64_t part_bytes = kPartBytes;  // of a chunk, that are read at a time
  bool is_read_by_records = false;        // chunks and parts are whole records
  std::atomic<bool> looks_strange{false};
  std::vector<std::uint32_t> chunk_crcs;
  std::vector<std::exception_ptr> chunk_errors;
  std::vector<Fault> faults;
  std::optional<Fault> unsupported;
  std::exception_ptr failure;  // of the system, which is not the shard's fault
  bool is_unpacked = false;    // offsets are those of what is compressed

  /// Calls, and notes what is thrown.
  template <typename Call>
  void look(const Call& call) {
    try {
      call();
    } catch (const CorruptData& error) {
      add_fault(record_at(error.offset()), error);
    } catch (const Unsupported& error) {
      const std::string what = error.what();
      unsupported = Fault{listed.path, std::nullopt, std::nullopt,
                          error.hint().empty() ? what : fmt::format("{}. {}", what, error.hint())};
    } catch (const IoError& error) {
      if (expected && error.code() == ENOENT) {
        faults.push_back({listed.path, std::nullopt, std::nullopt,
                          "the manifest lists it, but it is not there"});
      } else {
        failure = std::current_exception();
      }
    } catch (...) {  // out of memory, say; it must not end the thread
      failure = std::current_exception();
    }
  }

  void add_fault(std::optional<std::uint64_t> record, const CorruptData& error) {
    const char* const where = is_unpacked ? " (of what is compressed)" : "";
    faults.push_back({listed.path, record, error.offset(), error.reason() + where});
  }

  /// The record that has this byte, where the manifest tells.
  [[nodiscard]] std::optional<std::uint64_t> record_at(std::uint64_t offset) const {
    if (listed.entry == nullptr) return std::nullopt;
    const Column& image = listed.entry->columns.image;
    // Tar and TFRecord files begin with a record; one of HDF5 is a row of the images alone.
    const std::uint64_t begin =
        listed.manifest->format == name(Format::kHdf5) ? image.base : std::uint64_t{0};
    if (image.stride == 0 || offset < begin) return std::nullopt;
    const std::uint64_t record = (offset - begin) / image.stride;
    return record < listed.entry->samples ? std::optional(record) : std::nullopt;
  }

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
};

/// Every record's CRC; the framing around them is known to be right.
void check_records(Shard& shard, std::span<const std::byte> bytes, const ShardIndex& index,
                   VerifyProgress& progress) {
  const ColumnValues values(index, shard.listed.path);
  for (std::uint64_t i = 0; i < index.samples && !progress.stop; ++i) {
    try {
      values.verify(bytes, i);
    } catch (const CorruptData& error) {
      shard.add_fault(i, error);
      if (shard.faults.size() >= kMostFaultsPerFile) return;
    }
    if (!shard.expected && !shard.is_unpacked) progress.bytes_done += values.payload(i).bytes;
  }
}

/// The shape of tensors, where a manifest has it.
std::optional<TensorSpec> spec_of(const ListedShard& listed) {
  if (listed.entry == nullptr) return std::nullopt;
  return listed.manifest->spec;
}

void check_entries(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  tar::EntryCursor entries(bytes, path);
  while (const auto entry = entries.next()) {
    if (!tar::has_right_crc(*entry, bytes)) {
      throw CorruptData(path, entry->data, "an entry has a wrong CRC");
    }
  }
}

void check_tfrecords(Shard& shard, std::span<const std::byte> bytes) {
  const auto& path = shard.listed.path;
  tfrecord::RecordCursor records(bytes, path);
  std::uint64_t number = 0;
  try {
    for (; const auto record = records.next(); ++number) {
      if (tfrecord::has_right_crc(*record, bytes)) continue;
      shard.add_fault(number, CorruptData(path, record->data,
                                          fmt::format("record {} has a wrong CRC", number)));
      if (shard.faults.size() >= kMostFaultsPerFile) return;
    }
  } catch (const CorruptData& error) {
    shard.add_fault(number, error);
  }
}

/// None if faults were noted. A scan ends at the first thing that it does not understand, and
/// damaged data may read like something strange: then the CRCs say more.
std::optional<ShardIndex> scan(Shard& shard, std::span<const std::byte> bytes) {
  const auto& path = shard.listed.path;
  try {
    return scan_shard(bytes, path, spec_of(shard.listed));
  } catch (const Error&) {
    const Format format = detect_format(bytes, path);
    if (format == Format::kTar) check_entries(bytes, path);
    if (format == Format::kTfrecord) check_tfrecords(shard, bytes);
    if (shard.faults.empty()) throw;
    return std::nullopt;
  }
}

std::uint64_t leading_zeros(std::span<const std::byte> bytes) {
  const auto is_other = [](std::byte byte) { return byte != std::byte{0}; };
  return static_cast<std::uint64_t>(std::ranges::find_if(bytes, is_other) - bytes.begin());
}

struct ArchiveEnd {
  std::uint64_t offset = 0;
  bool is_ours = false;  // by the last entry
};

ArchiveEnd end_of_archive(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  tar::EntryCursor entries(bytes, path);
  ArchiveEnd end;
  while (const auto entry = entries.next()) end = {entry->end, entry->data_crc.has_value()};
  return end;
}

/// Two blocks of zeros end an archive, but some archivers forget them: only of ours they are
/// missed.
void check_end(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  const ArchiveEnd end = end_of_archive(bytes, path);
  if (end.is_ours && bytes.size() - end.offset < 2 * ustar::kBlock) {
    throw CorruptData(path, bytes.size(), "the archive ends too early");
  }
}

/// Framing and records, where there is no manifest.
void check_foreign(Shard& shard, std::span<const std::byte> bytes, VerifyProgress& progress) {
  const auto index = scan(shard, bytes);
  if (!index) return;
  shard.samples = index->samples;
  check_records(shard, bytes, *index, progress);
  if (index->format == Format::kTar) check_end(bytes, shard.listed.path);
}

/// What is compressed has a checksum of its own; what it unpacks to is a shard like others.
void check_packed(Shard& shard, const MappedShard& mapped, VerifyProgress& progress) {
  const UnpackedShard unpacked(mapped, [&](std::uint64_t bytes) {
    progress.bytes_done += bytes;
    return !progress.stop.load();
  });
  if (progress.stop) return;
  shard.is_unpacked = true;
  // Of `x.tar.gz`, the name of what is in it.
  const auto inner = shard.listed.path.parent_path() / shard.listed.path.stem();
  if (detect_format(unpacked.bytes(), inner) == Format::kHdf5) {
    throw Unsupported(fmt::format("'{}' is a compressed HDF5 file", shard.listed.path.string()),
                      "What is compressed is whole; unpack it to check what is in it.");
  }
  check_foreign(shard, unpacked.bytes(), progress);
}

/// HDF5 that cannot be mapped is read by its library, whose filters and checksums find damage.
void check_unmapped(Shard& shard, const MappedShard& mapped, VerifyProgress& progress) {
  const auto& program = hdf5::scan_program();
  shard.samples = program.empty() ? hdf5::check_images(mapped.bytes(), mapped.path())
                                  : hdf5::check_images_apart(program, mapped.path(),
                                                             mapped.state().bytes, progress.stop);
  progress.bytes_done += mapped.state().bytes;
}

void check_without_manifest(Shard& shard, const MappedShard& mapped, VerifyProgress& progress) {
  if (is_packed(mapped.bytes())) return check_packed(shard, mapped, progress);
  try {
    check_foreign(shard, mapped.bytes(), progress);
  } catch (const Unsupported&) {
    if (detect_format(mapped.bytes(), mapped.path()) != Format::kHdf5) throw;
    try {
      return check_unmapped(shard, mapped, progress);
    } catch (const Unsupported&) {  // there are no images, and the scan said so better
    }
    throw;
  }
}

/// That a shard has what its manifest says, where it says.
void check_against_manifest(Shard& shard, const MappedShard& mapped) {
  const Expected& expected = *shard.expected;
  const auto& path = shard.listed.path;
  if (mapped.state().bytes != expected.bytes) {
    throw CorruptData(path, std::min(mapped.state().bytes, expected.bytes),
                      fmt::format("the file has {} bytes, the manifest says {}",
                                  mapped.state().bytes, expected.bytes));
  }
  const auto index = scan(shard, mapped.bytes());
  if (!index) return;
  shard.samples = index->samples;
  if (index->samples != expected.samples) {
    throw CorruptData(
        path, 0,
        fmt::format("it has {} samples, the manifest says {}", index->samples, expected.samples));
  }
  const ShardEntry* const entry = shard.listed.entry;
  if (entry != nullptr && name(index->format) != shard.listed.manifest->format) {
    throw CorruptData(path, 0,
                      fmt::format("its format is {}, the manifest says {}", name(index->format),
                                  shard.listed.manifest->format));
  }
  if (entry != nullptr && index->samples != 0 &&
      (index->columns != entry->columns || index->spec != shard.listed.manifest->spec)) {
    throw CorruptData(path, 0, "its records do not lie where the manifest says");
  }
}

void check_structure(Shard& shard, VerifyProgress& progress) {
  const MappedShard mapped(shard.listed.path);
  if (shard.expected) {
    check_against_manifest(shard, mapped);
  } else {
    check_without_manifest(shard, mapped, progress);
  }
  mapped.check();
}

/// Parts of whole records can be looked at when they are read for the CRC. Of HDF5 they tell
/// nothing, and of what has not the size that it should have, it is not known where they are.
void read_by_records(Shard& shard) {
  const ShardEntry* const entry = shard.listed.entry;
  if (entry == nullptr || entry->samples == 0 ||
      shard.listed.manifest->format == name(Format::kHdf5)) {
    return;
  }
  const std::uint64_t stride = entry->columns.image.stride;
  if (stride == 0 || stride > kChunkBytes || shard.bytes != entry->bytes ||
      shard.bytes / stride < entry->samples) {
    return;
  }
  shard.is_read_by_records = true;
  shard.chunk_bytes = kChunkBytes / stride * stride;
  shard.part_bytes = round_up(kPartBytes, stride);
  shard.samples = entry->samples;
}

/// Whether they scan like a shard of their own, of which they are all.
bool are_right_records(const Shard& shard, std::span<const std::byte> records) {
  const ShardEntry& entry = *shard.listed.entry;
  const Manifest& manifest = *shard.listed.manifest;
  const auto& path = shard.listed.path;
  try {
    const bool is_tar = manifest.format == name(Format::kTar);
    const ShardIndex index = is_tar ? tar::scan(records, path, manifest.spec)
                                    : tfrecord::scan(records, path, manifest.spec);
    return index.samples == records.size() / entry.columns.image.stride &&
           index.columns == entry.columns && index.spec == manifest.spec &&
           (!is_tar || end_of_archive(records, path).offset == records.size());
  } catch (const Error&) {
    return false;
  }
}

/// Whether a part has the records that the manifest puts there, and behind the last one nothing but
/// the zeros that end an archive.
bool looks_right(const Shard& shard, std::uint64_t offset, std::span<const std::byte> part) {
  const std::uint64_t stride = shard.listed.entry->columns.image.stride;
  const std::uint64_t samples = shard.listed.entry->samples;
  const std::uint64_t left = samples - std::min(offset / stride, samples);
  const auto records = part.first(std::min(part.size() / stride, left) * stride);
  return (records.empty() || are_right_records(shard, records)) &&
         leading_zeros(part.subspan(records.size())) == part.size() - records.size();
}

void check_chunk(Shard& shard, std::size_t chunk, VerifyProgress& progress) {
  const File file(shard.listed.path, O_RDONLY);
  const std::uint64_t size = shard.chunk_size(chunk);
  std::vector<std::byte> buffer(std::min(shard.part_bytes, size));
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < size && !progress.stop;) {
    const std::uint64_t offset = chunk * shard.chunk_bytes + done;
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - done));
    file.read_at(offset, part);
    crc = crc32c::extend(crc, part);
    if (shard.is_read_by_records && !shard.looks_strange && !looks_right(shard, offset, part)) {
      shard.looks_strange = true;
    }
    done += part.size();
    progress.bytes_done += part.size();
  }
  shard.chunk_crcs[chunk] = crc;
  if (file.size() != shard.bytes) {
    throw CorruptData(shard.listed.path, std::min(file.size(), shard.bytes),
                      "the file's size changed while it was read");
  }
}

/// What a record cannot tell: archives end in zeros, and names of classes are in the manifest, too.
void check_surroundings(const Shard& shard, const MappedShard& mapped, Format format) {
  if (format == Format::kTar) {
    const std::uint64_t end = end_of_archive(mapped.bytes(), shard.listed.path).offset;
    const auto rest = mapped.bytes().subspan(end);
    const std::uint64_t zeros = leading_zeros(rest);
    if (zeros != rest.size()) {
      throw CorruptData(shard.listed.path, end + zeros,
                        "there is something behind the end of the archive");
    }
  } else if (format == Format::kHdf5 && shard.listed.entry != nullptr &&
             scan_shard(mapped.bytes(), shard.listed.path).classes !=
                 shard.listed.manifest->classes) {
    throw CorruptData(shard.listed.path, 0, "its class names are not those of the manifest");
  }
}

/// The CRC of the whole is wrong: says where, as far as the format tells.
void locate_damage(Shard& shard, VerifyProgress& progress) {
  const std::uint32_t crc = shard.crc();
  const std::uint32_t expected = shard.expected->crc32c;
  if (crc == expected || shard.bytes != shard.expected->bytes) return;
  // The CRCs of records tell more than what a scan stumbles over, and what looks strange is damage.
  std::vector<Fault> stumbles = std::exchange(shard.faults, {});
  shard.unsupported.reset();
  shard.look([&] {
    const MappedShard mapped(shard.listed.path);
    const ShardIndex index = open_shard(shard.listed, {}).index;
    check_records(shard, mapped.bytes(), index, progress);
    if (shard.faults.empty() && stumbles.empty()) check_surroundings(shard, mapped, index.format);
    mapped.check();
  });
  if (shard.faults.empty()) shard.faults = std::move(stumbles);
  if (shard.faults.empty()) {
    shard.faults.push_back(
        {shard.listed.path, std::nullopt, std::nullopt,
         fmt::format(
             "the CRC-32C of the file is {:08x}, the manifest says {:08x}; {}", crc, expected,
             shard.listed.entry != nullptr ? "its records are whole, the damage lies around them"
                                           : "nothing in its framing tells where the damage is")});
  }
}

std::deque<Shard> shards_of(const std::vector<std::filesystem::path>& paths,
                            const VerifyOptions& options) {
  std::deque<Shard> shards;
  for (const auto& path : paths) {
    for (ListedShard& listed : list_shards(path, options.split)) {
      Shard& shard = shards.emplace_back();
      shard.listed = std::move(listed);
      shard.expected = expected_of(shard.listed);
      shard.look([&] { shard.bytes = File(shard.listed.path, O_RDONLY).size(); });
      if (shard.failure) std::rethrow_exception(shard.failure);
    }
  }
  return shards;
}

/// Does all tasks, some at a time.
void run_all(const std::vector<std::function<void()>>& tasks, unsigned threads,
             const VerifyProgress& progress) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size() && !progress.stop; i = next++) tasks[i]();
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads && i < tasks.size(); ++i) helpers.emplace_back(work);
  work();
}

}  // namespace

VerifyReport verify(const std::vector<std::filesystem::path>& paths, const VerifyOptions& options,
                    VerifyProgress& progress) {
  bus_fault::install_handler();
  const unsigned threads = options.threads != 0 ? options.threads : usable_threads();
  std::deque<Shard> shards = shards_of(paths, options);
  std::vector<std::function<void()>> tasks;
  const auto add_structure = [&](Shard& shard) {
    tasks.emplace_back([&] { shard.look([&] { check_structure(shard, progress); }); });
  };
  for (Shard& shard : shards) {
    if (!shard.faults.empty()) continue;  // it is not there
    progress.bytes_planned += shard.bytes;
    read_by_records(shard);
    if (!shard.is_read_by_records) add_structure(shard);
    if (!shard.expected) continue;
    shard.chunk_crcs.resize((shard.bytes + shard.chunk_bytes - 1) / shard.chunk_bytes);
    shard.chunk_errors.resize(shard.chunk_crcs.size());
    for (std::size_t chunk = 0; chunk < shard.chunk_crcs.size(); ++chunk) {
      // Threads share a shard, so each notes what it meets in a place of its own.
      tasks.emplace_back([&, chunk] {
        try {
          check_chunk(shard, chunk, progress);
        } catch (...) {
          shard.chunk_errors[chunk] = std::current_exception();
        }
      });
    }
  }
  run_all(tasks, threads, progress);
  tasks.clear();
  for (Shard& shard : shards) {
    if (shard.looks_strange) add_structure(shard);  // as a whole it says what is wrong, and where
  }
  run_all(tasks, threads, progress);
  VerifyReport report;
  report.interrupted = progress.stop;
  for (Shard& shard : shards) {
    for (const auto& error : shard.chunk_errors) {
      if (error && shard.faults.empty()) shard.look([&] { std::rethrow_exception(error); });
    }
    if (shard.failure) std::rethrow_exception(shard.failure);
    if (shard.expected && !report.interrupted) locate_damage(shard, progress);
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
