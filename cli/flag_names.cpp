// SPDX-License-Identifier: Apache-2.0
#include "cli/flag_names.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace precache {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

/// Fields whose flag is not their name with dashes.
constexpr std::array kNames{Name{"source", "SOURCE"},
                            Name{"out", "OUT"},
                            Name{"shards", "SHARDS"},
                            Name{"paths", "PATHS"},
                            Name{"path", "PATH"},
                            Name{"shard_count", "--shards"},
                            Name{"shard_size_bytes", "--shard-size"},
                            Name{"max_bad_percent", "--max-bad"},
                            Name{"short_keys", "--keys"},
                            Name{"sidecars", "--index"},
                            Name{"pin_shards_up_to_bytes", "--pin-shards-up-to"},
                            Name{"resident_up_to_bytes", "--resident-up-to"}};

bool is_field(std::string_view word) {
  return !word.empty() && word.front() >= 'a' &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

std::string flag_of(std::string_view field) {
  const auto* found = std::ranges::find(kNames, field, &Name::first);
  if (found != kNames.end()) return std::string(found->second);
  std::string flag = "--" + std::string(field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace

std::string with_flags(std::string_view message) {
  std::string text;
  while (true) {
    const std::size_t begin = message.find('`');
    const std::size_t end = begin == std::string_view::npos ? begin : message.find('`', begin + 1);
    if (end == std::string_view::npos) return text.append(message);
    const std::string_view word = message.substr(begin + 1, end - begin - 1);
    text += message.substr(0, begin);
    if (is_field(word)) {
      text += flag_of(word);
      message.remove_prefix(end + 1);
    } else {
      text += '`';
      message.remove_prefix(begin + 1);
    }
  }
}

}  // namespace precache
