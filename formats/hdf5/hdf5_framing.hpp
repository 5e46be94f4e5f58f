// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/shard/framing.hpp"

namespace precache {

/// A record is a row of /images; labels, keys and classes follow all rows. docs/formats/hdf5.md has
/// the bytes.
class Hdf5Framing : public Framing {
 public:
  Hdf5Framing(const TensorSpec& spec, const NameLimits& limits, std::vector<std::string> classes);

  std::uint32_t frame(std::span<std::byte> record, const SampleName& sample,
                      std::uint32_t tensor_crc) const override;
  [[nodiscard]] Envelope envelope(std::span<const WrittenRecord> records,
                                  const std::filesystem::path& scratch_folder) const override;
  [[nodiscard]] ShardColumns columns(std::uint64_t samples) const override;
  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t samples) const override;

 private:
  [[nodiscard]] Envelope make_envelope(std::span<const WrittenRecord> records,
                                       const std::filesystem::path& scratch_folder) const;

  TensorSpec spec_;
  std::size_t key_bytes_;
  std::vector<std::string> classes_;
};

/// Throws Unsupported in a build without HDF5.
[[nodiscard]] std::unique_ptr<const Framing> make_hdf5_framing(
    const TensorSpec& spec, const NameLimits& limits, const std::vector<std::string>& classes);

}  // namespace precache
