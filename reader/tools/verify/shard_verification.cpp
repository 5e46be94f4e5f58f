// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/verify/shard_verification.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <utility>

#include "formats/shard/framing.hpp"
#include "reader/shards/cut_shard.hpp"

namespace precache {
namespace {

std::optional<ShardVerification::Expected> expected_of(const ListedShard& listed) {
  const auto of = [](const auto& entry) {
    return ShardVerification::Expected{entry.samples, entry.bytes, entry.crc32c};
  };
  if (listed.entry != nullptr) return of(*listed.entry);
  if (listed.encoded_entry != nullptr) return of(*listed.encoded_entry);
  return std::nullopt;
}

}  // namespace

ShardVerification::ShardVerification(ListedShard shard)
    : listed(std::move(shard)), expected(expected_of(listed)) {}

void ShardVerification::collect_errors(const std::function<void()>& call) {
  try {
    call();
  } catch (const CorruptData& error) {
    add_fault(record_at(error.offset()), error);
  } catch (const Unsupported& error) {
    const std::string what = error.what();
    unsupported =
        ShardFault{listed.path, std::nullopt, std::nullopt,
                   error.hint().empty() ? what : fmt::format("{}. {}", what, error.hint())};
  } catch (const IoError& error) {
    // Other files may be missing, too: /proc, for example, where the HDF5 helper is found.
    if (expected && error.code() == ENOENT && error.path() == listed.path) {
      faults.push_back({listed.path, std::nullopt, std::nullopt, kMissingShard});
    } else {
      failure = std::current_exception();
    }
  } catch (...) {  // out of memory, say; it must not end the thread
    failure = std::current_exception();
  }
}

void ShardVerification::add_fault(std::optional<std::uint64_t> record, const CorruptData& error) {
  std::string reason = error.reason();
  if (record) {  // the fault names it, so the reason need not
    const std::string named = fmt::format("record {} ", *record);
    const std::size_t at = reason.find(named);
    if (at != std::string::npos) reason.replace(at, named.size(), "the record ");
  }
  if (is_unpacked) reason += " (in the decompressed content)";
  faults.push_back({listed.path, record, error.offset(), std::move(reason)});
}

std::optional<std::uint64_t> ShardVerification::record_at(std::uint64_t offset) const {
  if (listed.entry == nullptr) return std::nullopt;
  const Column& image = listed.entry->columns.image;
  // Tar and TFRecord files begin with a record; one of HDF5 is a row of the images alone.
  const std::uint64_t begin =
      listed.manifest->format == Format::kHdf5 ? image.base : std::uint64_t{0};
  if (image.stride == 0 || offset < begin) return std::nullopt;
  const std::uint64_t record = (offset - begin) / image.stride;
  return record < listed.entry->samples ? std::optional(record) : std::nullopt;
}

}  // namespace precache
