// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/bytes/crc32c.hpp"
#include "formats/shard/framing.hpp"

namespace precache {

/// A record is a TFRecord that holds a tf.train.Example. docs/formats/tfrecord.md has the bytes.
class TfrecordFraming : public Framing {
 public:
  TfrecordFraming(const TensorSpec& spec, const NameLimits& limits);

  std::uint32_t frame(std::span<std::byte> record, const SampleName& sample,
                      std::uint32_t tensor_crc) const override;
  [[nodiscard]] Envelope envelope(std::span<const WrittenRecord> records,
                                  const std::filesystem::path& scratch_folder) const override;
  [[nodiscard]] ShardColumns columns(std::uint64_t samples) const override;
  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t samples) const override;

 private:
  std::string dtype_name_;
  std::uint64_t tensor_bytes_;
  int label_width_;                     // bytes of every label's varint
  int key_width_;                       // bytes of every length around the key
  std::string head_;                    // all bytes before the tensor: equal in every record
  std::string label_head_;              // from the tensor's end to the label's varint: equal too
  std::uint32_t length_crc_ = 0;        // of the bytes before the Example
  std::uint32_t example_head_crc_ = 0;  // of its bytes before the tensor
  crc32c::BlockCombiner tensor_;
  crc32c::BlockCombiner example_{0};
};

}  // namespace precache
