// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/verify/shard_verification.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "formats/bytes/inflate.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/hdf5/helper/helper_client.hpp"
#include "formats/shard/column_values.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/mapped_shard.hpp"
#include "reader/shards/open_shards.hpp"
#include "reader/tools/verify/named_values.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostFaultsPerFile = 100;

/// Checks the CRC of every record. The framing around them is known to be right.
void check_records(ShardVerification& shard, std::span<const std::byte> bytes,
                   const ShardIndex& index, VerifyProgress& progress) {
  const auto path = shard.listed.path();
  const ColumnValues values(index, path);
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

void check_entries(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  tar::EntryCursor entries(bytes, path);
  while (const auto entry = entries.next()) {
    if (!tar::has_right_crc(*entry, bytes)) {
      throw CorruptData(path, entry->data, "an entry has a wrong CRC");
    }
  }
}

void check_tfrecords(ShardVerification& shard, std::span<const std::byte> bytes) {
  const auto path = shard.listed.path();
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

/// Scans the shard; none if faults were added. A scan ends at the first thing that it does not
/// understand, which may be damage: then the CRCs locate it better.
std::optional<ShardIndex> scan(ShardVerification& shard, std::span<const std::byte> bytes) {
  const auto path = shard.listed.path();
  try {
    std::optional<TensorSpec> spec;
    if (shard.listed.entry != nullptr) spec = shard.listed.manifest->spec;
    return scan_shard(bytes, path, spec, {}, shard.helper);
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
  bool has_crc = false;  // of the last entry: precache wrote the archive
};

ArchiveEnd end_of_archive(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  tar::EntryCursor entries(bytes, path);
  ArchiveEnd end;
  while (const auto entry = entries.next()) end = {entry->end, entry->data_crc.has_value()};
  return end;
}

/// Two blocks of zeros end an archive. Some archivers omit them, so only archives of precache must
/// have them.
void check_end(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  const ArchiveEnd end = end_of_archive(bytes, path);
  if (end.has_crc && bytes.size() - end.offset < 2 * ustar::kBlock) {
    throw CorruptData(path, bytes.size(), "the archive ends too early");
  }
}

/// Checks framing and records of a shard without a manifest.
void check_foreign(ShardVerification& shard, std::span<const std::byte> bytes,
                   VerifyProgress& progress) {
  std::optional<ShardIndex> index;
  try {
    index = scan(shard, bytes);
  } catch (const CorruptData& error) {
    const auto cut = detect_format(bytes, shard.listed.path()) == Format::kTar
                         ? find_cut(bytes, shard.listed.path())
                         : std::nullopt;
    if (!cut || cut->offset != error.offset()) throw;
    shard.samples = cut->samples;
    throw CorruptData(shard.listed.path(), cut->offset, cut->reason);
  }
  if (!index) return;
  shard.samples = index->samples;
  check_records(shard, bytes, *index, progress);
  if (index->format == Format::kTar) check_end(bytes, shard.listed.path());
}

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;

File make_temporary() {
  std::string path = (std::filesystem::temp_directory_path() / "precache-XXXXXX").string();
  File file(::mkostemp(path.data(), O_CLOEXEC), path);
  if (!file.is_open()) throw IoError("cannot create", path, errno);
  ::unlink(path.c_str());
  return file;
}

/// Decompresses a shard into a temporary file without a name; only a part if the work is stopped.
/// Throws CorruptData if the stream is broken, and IoError, for example for a full disk.
Mapping unpack(const MappedShard& packed, VerifyProgress& progress) {
  File file = make_temporary();
  std::uint64_t size = 0;
  Inflater inflater(packed.path());
  UnpackedHead head(packed.path());
  try {
    for (auto rest = packed.bytes(); !rest.empty() && !progress.stop;) {
      const auto piece = rest.first(std::min<std::uint64_t>(rest.size(), kPiece));
      inflater.feed(piece, [&](std::span<const std::byte> bytes) {
        head.see(bytes);
        file.write_at(size, bytes);
        size += bytes.size();
      });
      rest = rest.subspan(piece.size());
      progress.bytes_done += piece.size();
    }
    if (!progress.stop) inflater.finish();
  } catch (IoError& error) {
    error.add_hint(
        fmt::format("'{}' is decompressed there, {} so far. Set TMPDIR to use another folder.",
                    packed.path().string(), size_text(size)));
    throw;
  }
  return Mapping(file, 0, size, PROT_READ);
}

/// The stream has its own checksum; its content is checked like any shard.
void check_packed(ShardVerification& shard, const MappedShard& mapped, VerifyProgress& progress) {
  const Mapping unpacked = unpack(mapped, progress);
  if (progress.stop) return;
  shard.is_unpacked = true;
  // `x.tar.gz` contains `x.tar`.
  const auto inner = shard.listed.path().parent_path() / shard.listed.path().stem();
  if (detect_format(unpacked.bytes(), inner) == Format::kHdf5) {
    throw Unsupported(fmt::format("'{}' is a compressed HDF5 file", shard.listed.path().string()),
                      "The compressed stream is intact; decompress it to check the content.");
  }
  check_foreign(shard, unpacked.bytes(), progress);
}

void check_without_manifest(ShardVerification& shard, const MappedShard& mapped,
                            VerifyProgress& progress) {
  const bool is_deflated = file_kind(mapped.bytes()).group == FileKind::Group::kDeflated;
  if (is_deflated && !begins_as_shard(mapped.bytes())) return check_packed(shard, mapped, progress);
  try {
    check_foreign(shard, mapped.bytes(), progress);
  } catch (const Unsupported&) {
    if (detect_format(mapped.bytes(), mapped.path()) != Format::kHdf5) throw;
    try {
      // The HDF5 library can read images that cannot be mapped; its filters and checksums find
      // damage.
      const std::uint64_t bytes = mapped.state().bytes;
      shard.samples =
          hdf5::check_images_in_helper(shard.helper, mapped.path(), bytes, progress.stop);
      progress.bytes_done += bytes;
      return;
    } catch (const Unsupported&) {  // no images: the error of the scan is the better one
    }
    throw;
  }
}

/// Checks that a shard has the samples of its manifest, and at the right places.
void check_against_manifest(ShardVerification& shard, const MappedShard& mapped) {
  const ShardEntry& expected = *shard.expected;
  const auto path = shard.listed.path();
  if (const auto cut = find_cut(shard.listed, mapped.state().bytes)) {
    shard.samples = cut->samples;
    throw CorruptData(path, cut->offset, cut->reason);
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
  if (entry != nullptr && index->format != shard.listed.manifest->format) {
    throw CorruptData(path, 0,
                      fmt::format("its format is {}, the manifest says {}", name(index->format),
                                  name(shard.listed.manifest->format)));
  }
  if (entry != nullptr && index->samples != 0 &&
      (!have_same_places(*index->columns, *entry->columns) ||
       index->spec != shard.listed.manifest->spec)) {
    throw CorruptData(path, 0, "its records are not where the manifest says");
  }
  if (entry != nullptr) {
    check_named_values(open_shard(shard.listed, {}).index, path, mapped.bytes());
  }
}

/// Checks what records do not contain: the zeros that end an archive, and the class names of HDF5.
void check_surroundings(const ShardVerification& shard, const MappedShard& mapped, Format format) {
  if (format == Format::kTar) {
    const std::uint64_t end = end_of_archive(mapped.bytes(), shard.listed.path()).offset;
    const auto rest = mapped.bytes().subspan(end);
    const std::uint64_t zeros = leading_zeros(rest);
    if (zeros != rest.size()) {
      throw CorruptData(shard.listed.path(), end + zeros,
                        "there are bytes other than zeros after the end of the archive");
    }
  } else if (format == Format::kHdf5 && shard.listed.entry != nullptr &&
             scan_shard(mapped.bytes(), shard.listed.path(), {}, {}, shard.helper).classes !=
                 shard.listed.manifest->classes) {
    throw CorruptData(shard.listed.path(), 0, "its class names differ from those of the manifest");
  }
}

}  // namespace

void ShardVerification::collect_errors(const std::function<void()>& call) {
  try {
    call();
  } catch (const CorruptData& error) {
    add_fault(record_at(error.offset()), error);
  } catch (const Unsupported& error) {
    const std::string what = error.what();
    unsupported =
        ShardFault{listed.path(), std::nullopt, std::nullopt,
                   error.hint().empty() ? what : fmt::format("{}. {}", what, error.hint())};
  } catch (const IoError& error) {
    // Other files may be missing too, such as those in /proc that lead to the HDF5 helper.
    if (expected && error.code() == ENOENT && error.path() == listed.path()) {
      faults.push_back({listed.path(), std::nullopt, std::nullopt, kMissingShard});
    } else {
      failure = std::current_exception();
    }
  } catch (...) {  // such as out of memory; must not end the thread
    failure = std::current_exception();
  }
}

void ShardVerification::add_fault(std::optional<std::uint64_t> record, const CorruptData& error) {
  std::string reason = error.reason();
  if (record) {  // the fault has the number, so the reason does not repeat it
    const std::string named = fmt::format("record {} ", *record);
    const std::size_t at = reason.find(named);
    if (at != std::string::npos) reason.replace(at, named.size(), "the record ");
  }
  if (is_unpacked) reason += " (in the decompressed content)";
  faults.push_back({listed.path(), record, error.offset(), std::move(reason)});
}

std::optional<std::uint64_t> ShardVerification::record_at(std::uint64_t offset) const {
  if (listed.entry == nullptr) return std::nullopt;
  const Column& image = listed.entry->columns->image;
  // Tar and TFRecord files begin with a record; in HDF5 a record is a row of the images.
  const std::uint64_t begin =
      listed.manifest->format == Format::kHdf5 ? image.base : std::uint64_t{0};
  if (image.stride == 0 || offset < begin) return std::nullopt;
  const std::uint64_t record = (offset - begin) / image.stride;
  return record < listed.entry->samples ? std::optional(record) : std::nullopt;
}

void check_structure(ShardVerification& shard, VerifyProgress& progress) {
  const MappedShard mapped(shard.listed.path());
  if (shard.expected) {
    check_against_manifest(shard, mapped);
  } else {
    check_without_manifest(shard, mapped, progress);
  }
  mapped.check();
}

bool has_right_records(const ShardVerification& shard, std::uint64_t offset,
                       std::span<const std::byte> part) {
  const ShardEntry& entry = *shard.listed.entry;
  const Manifest& manifest = *shard.listed.manifest;
  const auto path = shard.listed.path();
  const std::uint64_t stride = entry.columns->image.stride;
  const std::uint64_t left = entry.samples - std::min(offset / stride, entry.samples);
  const auto records = part.first(std::min(part.size() / stride, left) * stride);
  const auto rest = part.subspan(records.size());
  if (leading_zeros(rest) != rest.size()) return false;
  if (records.empty()) return true;
  try {  // the records must scan like a complete shard
    const bool is_tar = manifest.format == Format::kTar;
    const ShardIndex index = is_tar ? tar::scan(records, path, manifest.spec)
                                    : tfrecord::scan(records, path, manifest.spec);
    return index.samples == records.size() / stride &&
           have_same_places(*index.columns, *entry.columns) && index.spec == manifest.spec &&
           (!is_tar || end_of_archive(records, path).offset == records.size());
  } catch (const Error&) {
    return false;
  }
}

void locate_damage(ShardVerification& shard, std::uint32_t crc, VerifyProgress& progress) {
  const std::uint32_t expected = shard.expected->crc32c;
  if (crc == expected || shard.bytes != shard.expected->bytes) return;
  // The CRCs of records locate damage better than a scan does, and unsupported content is damage.
  std::vector<ShardFault> scan_faults = std::exchange(shard.faults, {});
  shard.unsupported.reset();
  shard.collect_errors([&] {
    const MappedShard mapped(shard.listed.path());
    const ShardIndex index = open_shard(shard.listed, {}).index;
    check_records(shard, mapped.bytes(), index, progress);
    if (shard.faults.empty() && scan_faults.empty()) {
      check_surroundings(shard, mapped, index.format);
    }
    mapped.check();
  });
  if (shard.faults.empty()) shard.faults = std::move(scan_faults);
  if (shard.faults.empty()) {
    shard.faults.push_back(
        {shard.listed.path(), std::nullopt, std::nullopt,
         fmt::format(
             "the CRC-32C of the file is {:08x}, the manifest says {:08x}; {}", crc, expected,
             shard.listed.entry != nullptr ? "its records are intact, so the damage is outside them"
                                           : "its framing does not show where the damage is")});
  }
}

}  // namespace precache
