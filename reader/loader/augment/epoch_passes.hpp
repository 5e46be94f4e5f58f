// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "reader/loader/augment/view_passes.hpp"

namespace precache {

/// The passes of each epoch: tensors change their size at the epochs that BatchTransform::sizes and
/// with_size() name. An epoch always has the same passes, whatever was read before it.
class EpochPasses {
 public:
  /// Throws the exceptions of ViewPasses, and the same for sizes that the transform cannot make.
  EpochPasses(const TensorSpec& stored, const BatchTransform& transform,
              NamedColumns columns = nullptr);

  [[nodiscard]] std::size_t views() const { return largest_.size(); }
  [[nodiscard]] const std::shared_ptr<const ViewPasses>& at(std::uint64_t epoch) const;
  /// Whether batches of the epochs from `first` to `last` are the same with `other` passes, which
  /// are those of with_size().
  [[nodiscard]] bool agree(const EpochPasses& other, std::uint64_t first, std::uint64_t last) const;
  /// The memory that any batch of up to `rows` samples needs, whatever with_size() is asked for.
  /// Throws InvalidArgument if it is too large for this machine.
  [[nodiscard]] std::size_t largest_batch_bytes(std::size_t rows) const;
  /// The same for one view.  REQUIRES: view < views().
  [[nodiscard]] std::size_t largest_row_bytes(std::size_t view) const;
  /// The same passes, but a view has another size from `epoch` on, up to the next epoch at which
  /// its size was set. Throws InvalidArgument.  REQUIRES: view < views().
  [[nodiscard]] EpochPasses with_size(ImageSize size, std::size_t view, std::uint64_t epoch) const;

 private:
  struct From {
    std::shared_ptr<const ViewPasses> passes;
    std::vector<bool> is_set;  // by view: its size was set for this epoch
  };

  void set(ImageSize size, std::size_t view, std::uint64_t epoch);

  std::map<std::uint64_t, From> from_;  // by the first epoch
  std::vector<ImageSize> largest_;      // by view: the size with the most pixels
};

}  // namespace precache
