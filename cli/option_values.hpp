// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "precache/convert/job.hpp"
#include "precache/formats/recipe.hpp"

/// Option values that are more than a number or a word. All throw InvalidArgument.
namespace precache::option_values {

/// A whole number from `low` to `high`.
[[nodiscard]] std::uint64_t integer(const std::string& option, const std::string& text,
                                    std::uint64_t low, std::uint64_t high);
/// A number from `low` to `high`.
[[nodiscard]] double decimal(const std::string& option, const std::string& text, double low,
                             double high);
[[nodiscard]] std::string not_empty(const std::string& option, const std::string& text);
/// "224" or "HxW" -> height and width.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> size(const std::string& text);
/// "1000", "512MiB", "2G" (powers of 1024), "1GB" (powers of 1000).
[[nodiscard]] std::uint64_t bytes(const std::string& text,
                                  const std::string& option = "--shard-size");
/// "1%", "0.5" -> percent.
[[nodiscard]] double percent(const std::string& text);
/// "2/8" -> index and count.
[[nodiscard]] Share part(const std::string& text, const char* field);
/// "imagenet" or "MEAN/STD", each one number or one for every channel, separated by commas.
[[nodiscard]] Normalization normalization(const std::string& text, Color color);

}  // namespace precache::option_values
