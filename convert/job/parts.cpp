// SPDX-License-Identifier: Apache-2.0
#include "convert/job/parts.hpp"

#include <fmt/format.h>

#include <set>

#include "precache/convert/job_state.hpp"

namespace precache {

std::vector<std::uint64_t> parts_of(const std::vector<std::uint64_t>& shards, std::uint64_t count) {
  std::set<std::uint64_t> parts;
  for (const std::uint64_t shard : shards) parts.insert(shard % count);
  return {parts.begin(), parts.end()};
}

std::string ranges_text(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace precache
