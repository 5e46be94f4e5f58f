// SPDX-License-Identifier: Apache-2.0
#include "convert/source/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <vector>

#include "formats/bytes/utf8.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/tar/ustar.hpp"

namespace precache {
namespace {

std::size_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }

// webdataset drops names that do not match its patterns: names below a folder `__x__`, and names
// with a line end and a dot in a folder's name.
void escape_what_webdataset_drops(std::string& key) {
  if (key.find('.') != std::string::npos) {
    for (auto at = key.find('\n'); at != std::string::npos; at = key.find('\n', at)) {
      key.replace(at, 1, "%0A");
    }
  }
  const std::string_view top = std::string_view(key).substr(0, key.find('/'));
  if (top.size() < key.size() && top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) {
    key.replace(0, 1, "%5F");
  }
}

// Unpacking a tar shard makes files with these names.
void escape_what_no_file_has(std::string& key) {
  for (auto at = key.find('\0'); at != std::string::npos; at = key.find('\0', at)) {
    key.replace(at, 1, "%00");
  }
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = std::string_view(key).substr(begin, end - begin);
    if (part.empty() && end < key.size()) {  // of "//", or in front
      key.erase(begin, 1);
      continue;
    }
    const std::string plain(part == "." ? "%2E" : part == ".." ? "%2E%2E" : part);
    key.replace(begin, end - begin, plain);
    begin += plain.size() + 1;
  }
}

struct HashedSample {
  std::size_t hash;
  std::size_t sample;
  // clang-tidy 14 takes the 0 of the comparison for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const HashedSample&) const = default;
};

std::string fitting(std::string key, bool short_keys) {
  if (!short_keys || key.size() <= kShortKeyBytes) return key;
  return ustar::shortened(key, kShortKeyBytes);
}

}  // namespace

std::string key_of_path(std::string_view path, KeyRule rule) {
  const auto slash = path.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const auto dot = rule == KeyRule::kFirstDot ? path.find('.', base) : path.rfind('.');
  const bool has_extension = dot != std::string_view::npos && dot >= base;
  if (has_extension && (rule != KeyRule::kName || has_image_extension(path))) {
    path = path.substr(0, dot);
  }
  std::string key = escape_invalid_utf8(path.substr(0, base));
  std::string name = escape_invalid_utf8(path.substr(base));
  std::ranges::replace(name, '.', '_');
  if (name.empty()) name = "_";  // the file is called just ".jpg"
  key += name;
  escape_what_no_file_has(key);
  escape_what_webdataset_drops(key);
  return key;
}

std::string plain_key(std::string_view path, KeyRule rule, bool short_keys) {
  return fitting(key_of_path(path, rule), short_keys);
}

Keys::Keys(const Listing& listing, KeyRule rule, bool short_keys)
    : listing_(listing), rule_(rule), short_keys_(short_keys) {
  std::vector<HashedSample> hashed;
  hashed.reserve(listing.size());
  for (std::size_t i = 0; i < listing.size(); ++i) hashed.push_back({hash_of(wanted(i)), i});
  std::ranges::sort(hashed);
  std::unordered_set<std::string> given;
  const auto is_taken = [&](const std::string& key) {
    return given.contains(key) ||
           std::ranges::binary_search(hashed, hash_of(key), {}, &HashedSample::hash);
  };
  // Samples with equal keys have equal hashes and so are neighbours, in the order of the listing.
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < hashed.size(); begin = end) {
    for (end = begin + 1; end < hashed.size() && hashed[end].hash == hashed[begin].hash;) ++end;
    if (end - begin == 1) continue;
    std::unordered_map<std::string, std::uint64_t> next;  // number to try, by key
    for (std::size_t i = begin; i < end; ++i) {
      const std::string base = wanted(hashed[i].sample);
      const auto [number, is_first] = next.emplace(base, 2);
      if (is_first) continue;
      std::string key;
      do {
        key = fitting(fmt::format("{}~{}", base, number->second++), short_keys_);
      } while (is_taken(key));
      given.insert(key);
      renamed_.emplace(hashed[i].sample, key);
    }
  }
  for (std::size_t i = 0; i < listing.size(); ++i) {
    std::string final_key = key(i);
    limits_.include(final_key, listing[i].label);
    if (final_key.size() > longest_.size()) longest_ = std::move(final_key);
  }
}

std::string Keys::wanted(std::size_t sample) const {
  return plain_key(listing_[sample].path, rule_, short_keys_);
}

std::string_view Keys::renamed(std::size_t sample) const {
  const auto found = renamed_.find(sample);
  return found != renamed_.end() ? std::string_view(found->second) : std::string_view();
}

std::string Keys::key(std::size_t sample) const {
  const std::string_view other = renamed(sample);
  return other.empty() ? wanted(sample) : std::string(other);
}

}  // namespace precache
