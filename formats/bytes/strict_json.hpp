// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace precache::strict_json {

/// A non-negative integer. The library's own conversion takes fractions, negative numbers and truth
/// values, and is undefined for numbers that do not fit. Throws std::invalid_argument.
template <typename Json>
[[nodiscard]] std::uint64_t count(const Json& json) {
  if (json.is_number_unsigned()) return json.template get<std::uint64_t>();
  throw std::invalid_argument(
      fmt::format("expected a non-negative integer, found {}", json.dump()));
}

/// The same, of at most `largest`.
template <typename Json>
[[nodiscard]] std::uint64_t count(const Json& json, std::uint64_t largest) {
  const std::uint64_t value = count(json);
  if (value <= largest) return value;
  throw std::invalid_argument(
      fmt::format("expected an integer of at most {}, found {}", largest, value));
}

/// A signed integer. Throws std::invalid_argument.
template <typename Json>
[[nodiscard]] std::int64_t integer(const Json& json) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  if (json.is_number_unsigned()) return static_cast<std::int64_t>(count(json, kLargest));
  if (json.is_number_integer()) return json.template get<std::int64_t>();
  throw std::invalid_argument(fmt::format("expected an integer, found {}", json.dump()));
}

}  // namespace precache::strict_json
