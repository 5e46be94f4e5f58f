// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/bytes/crc32c.hpp"
#include "formats/shard/framing.hpp"
#include "formats/tar/ustar.hpp"

namespace precache {

/// A record is the entries KEY.npy and KEY.cls. docs/formats/tar.md has the bytes.
class TarFraming : public Framing {
 public:
  TarFraming(const TensorSpec& spec, const NameLimits& limits);

  std::uint32_t frame(std::span<std::byte> record, const SampleName& sample,
                      std::uint32_t tensor_crc) const override;
  [[nodiscard]] Envelope envelope(std::span<const WrittenRecord> records,
                                  const std::filesystem::path& scratch_folder) const override;
  [[nodiscard]] ShardColumns columns(std::uint64_t samples) const override;
  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t samples) const override;

 private:
  [[nodiscard]] std::size_t headers_bytes() const { return pax_bytes_ + ustar::kBlock; }
  /// Writes the headers of one entry, pax first where the dataset needs it.
  void write_headers(std::span<std::byte> entry, const std::string& path, std::uint64_t size,
                     std::uint32_t data_crc) const;

  std::string dtype_name_;
  std::string npy_header_;
  std::uint64_t tensor_bytes_;
  std::size_t pax_bytes_;     // 0 where all names fit ustar
  std::uint64_t cls_offset_;  // of the second entry in a record
  std::uint32_t npy_header_crc_;
  crc32c::BlockCombiner tensor_;
  crc32c::BlockCombiner npy_blocks_;
};

}  // namespace precache
