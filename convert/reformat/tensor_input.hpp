// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "convert/job/record_input.hpp"
#include "convert/reformat/source_crcs.hpp"
#include "convert/reformat/tensor_conversion.hpp"
#include "convert/reformat/tensor_source.hpp"

namespace precache {

/// Tensors of a split's shards, as a conversion makes them. Borrows what it is made of.
class TensorInput : public RecordInput {
 public:
  TensorInput(const SourceSplit& split, const TensorConversion& conversion, SourceCrcs& check)
      : split_(split), conversion_(conversion), check_(check) {}

  [[nodiscard]] SampleName name(std::uint64_t sample) const override {
    return split_.sample_name(sample);
  }
  [[nodiscard]] std::string origin(std::uint64_t sample) const override {
    return split_.sample_name(sample).key;
  }
  /// Its tensors are never rejected: a shard is good, or throws CorruptData.
  [[nodiscard]] std::unique_ptr<TensorMaker> tensor_maker() const override;

 private:
  const SourceSplit& split_;
  const TensorConversion& conversion_;
  SourceCrcs& check_;
};

}  // namespace precache
