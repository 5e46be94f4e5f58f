// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/crc32c.hpp"
#include "formats/shard/framing.hpp"
#ifdef PRECACHE_WITH_HDF5
#include "formats/hdf5/hdf5_writers.hpp"
#endif
#include "tests/support/bytes.hpp"

namespace precache::test {

/// Those of this build.
#ifdef PRECACHE_WITH_HDF5
inline constexpr Format kFormats[] = {Format::kTar, Format::kTfrecord, Format::kHdf5};
#else
inline constexpr Format kFormats[] = {Format::kTar, Format::kTfrecord};
#endif

/// Of any format of this build.
inline std::unique_ptr<const Framing> make_framing(
    Format format, const TensorSpec& spec, const NameLimits& limits,
    [[maybe_unused]] const std::vector<std::string>& classes,
    const std::vector<NamedColumn>& named = {}) {
#ifdef PRECACHE_WITH_HDF5
  if (format == Format::kHdf5) return make_hdf5_framing(spec, limits, classes, named);
#endif
  return precache::make_framing(format, spec, limits, named);
}

struct Sample {
  SampleName name;
  Bytes tensor;
};

inline TensorSpec spec_of(std::uint32_t height, std::uint32_t width, std::uint32_t channels,
                          DType dtype = DType::kUint8, Layout layout = Layout::kChw) {
  return {dtype, layout, height, width, channels};
}

inline NameLimits limits_of(std::span<const SampleName> names) {
  NameLimits limits;
  for (const SampleName& name : names) limits.include(name.key, name.label);
  return limits;
}

inline NameLimits limits_of(std::initializer_list<SampleName> names) {
  return limits_of(std::span(names.begin(), names.size()));
}

struct FramedRecord {
  Bytes bytes;
  std::uint32_t crc = 0;
};

/// One record in memory of exactly its size, which had random content before.
inline FramedRecord frame(const Framing& framing, const SampleName& name,
                          std::span<const std::byte> tensor) {
  FramedRecord record{Bytes(framing.record_bytes(), std::byte{0xa5}), 0};
  std::copy(tensor.begin(), tensor.end(),
            record.bytes.begin() + static_cast<std::ptrdiff_t>(framing.tensor_offset()));
  record.crc = framing.frame(record.bytes, name, crc32c::value(tensor));
  return record;
}

inline Envelope envelope_of(const Framing& framing, std::span<const SampleName> names) {
  std::vector<WrittenRecord> records;
  for (const auto& name : names) records.push_back({name, 0});
  return framing.envelope(records, std::filesystem::temp_directory_path());
}

/// A whole shard in memory.
inline Bytes assemble(const Framing& framing, std::span<const Sample> samples) {
  Bytes bytes;
  std::vector<WrittenRecord> records;
  for (const auto& sample : samples) {
    const FramedRecord record = frame(framing, sample.name, sample.tensor);
    bytes.insert(bytes.end(), record.bytes.begin(), record.bytes.end());
    records.push_back({sample.name, record.crc});
  }
  const Envelope envelope = framing.envelope(records, std::filesystem::temp_directory_path());
  Bytes shard = envelope.prologue;
  shard.insert(shard.end(), bytes.begin(), bytes.end());
  shard.insert(shard.end(), envelope.epilogue.begin(), envelope.epilogue.end());
  return shard;
}

inline std::vector<Sample> make_samples(std::span<const SampleName> names, std::size_t tensor_bytes,
                                        std::uint64_t seed = 0) {
  Random random(seed);
  std::vector<Sample> samples;
  for (const auto& name : names) samples.push_back({name, random_bytes(random, tensor_bytes)});
  return samples;
}

}  // namespace precache::test
