// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fake_cudart {

/// Number of the host among the actors of a Clock; streams count from 1.
inline constexpr std::size_t kHost = 0;

/// A vector clock: how many steps of each actor have surely happened.
class Clock {
 public:
  [[nodiscard]] std::uint64_t at(std::size_t actor) const {
    return actor < steps_.size() ? steps_[actor] : 0;
  }
  void set(std::size_t actor, std::uint64_t step) {
    if (actor >= steps_.size()) steps_.resize(actor + 1);
    steps_[actor] = step;
  }
  void join(const Clock& other) {
    if (other.steps_.size() > steps_.size()) steps_.resize(other.steps_.size());
    for (std::size_t i = 0; i < other.steps_.size(); ++i)
      steps_[i] = std::max(steps_[i], other.steps_[i]);
  }

 private:
  std::vector<std::uint64_t> steps_;
};

}  // namespace fake_cudart
