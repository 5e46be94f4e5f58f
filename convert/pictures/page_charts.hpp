// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "precache/tools/inspect.hpp"

// Parts of the inspection page, as HTML.
namespace precache::page {

/// Text of a file as HTML shows it.
[[nodiscard]] std::string escaped(std::string_view text);

/// A bar for each class; of many classes a curve of bars by rank.
[[nodiscard]] std::string class_chart(const ClassFacts& classes);

/// A histogram for each channel.
[[nodiscard]] std::string value_charts(const ValueFacts& values);

}  // namespace precache::page
