// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/framing.hpp"

namespace precache {

/// A record is a TFRecord that holds a tf.train.Example. docs/formats/tfrecord.md has the bytes.
class TfrecordFraming : public Framing {
 public:
  TfrecordFraming(const TensorSpec& spec, const NameLimits& limits);

  std::uint32_t frame(std::span<std::byte> record, const SampleName& sample) const override;
  [[nodiscard]] Envelope envelope(std::span<const WrittenRecord> records,
                                  const std::filesystem::path& scratch_folder) const override;
  [[nodiscard]] ShardLayout layout(std::uint64_t samples) const override;
  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t samples) const override;

 private:
  std::string dtype_name_;
  std::uint64_t tensor_bytes_;
  int label_width_;         // bytes of every label's varint
  int key_width_;           // bytes of every length around the key
  std::string head_;        // all bytes before the tensor: equal in every record
  std::string label_head_;  // from the tensor's end to the label's varint: equal too
};

}  // namespace precache
