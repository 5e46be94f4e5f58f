// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>

#include "formats/shard/contents_survey.hpp"

namespace precache::tar {
namespace {

// Far more than archives of samples have. A hostile archive could have a new name in each entry.
constexpr std::size_t kMostKinds = 1000;
constexpr std::size_t kMostFieldsOfSample = 32;
constexpr std::size_t kLongestExtension = 64;

}  // namespace

void ContentsSurvey::add(std::span<const std::byte> file, const std::filesystem::path& path) {
  SampleFinder finder(file, path);
  try {
    finder.run([&](const FoundGroup& group) { take(group); },
               [&](const OtherEntry& other) { take(other); });
  } catch (...) {
    take(finder.unfinished());
    throw;
  }
}

void ContentsSurvey::count_entry(EntryType type) {
  constexpr std::array kCounters{&TarContents::files,        &TarContents::directories,
                                 &TarContents::links,        &TarContents::links,
                                 &TarContents::sparse_files, &TarContents::others};
  ++(counts_.*kCounters[static_cast<std::size_t>(type)]);
}

void ContentsSurvey::take(const OtherEntry& other) {
  count_entry(other.entry.type);
  if (other.entry.type == EntryType::kFile) ++counts_.ungrouped_files;
}

void ContentsSurvey::take(const FoundGroup& group) {
  if (group.files.empty()) return;
  if (group.key.empty()) return take(OtherEntry{group.files.front().entry, {}});
  Extensions extensions;
  for (const FoundFile& file : group.files) {
    count_entry(file.entry.type);
    const std::string_view extension = file.written_extension().substr(0, kLongestExtension);
    if (extensions.size() < kMostFieldsOfSample) extensions.emplace_back(extension);
    auto known = extensions_.find(extension);
    if (known == extensions_.end() && extensions_.size() < kMostKinds) {
      known = extensions_.emplace(extension, ValueRange()).first;
    }
    if (known == extensions_.end()) {
      counts_.has_more = true;
    } else {
      known->second.add(file.entry.size);
    }
  }
  counts_.samples += group.has_only_numbered_images() ? group.files.size() : 1;
  if (patterns_.size() < kMostKinds || patterns_.contains(extensions)) {
    ++patterns_[std::move(extensions)];
  } else {
    counts_.has_more = true;
  }
}

TarContents ContentsSurvey::result() const {
  TarContents contents = counts_;
  for (const auto& [name, bytes] : extensions_) contents.extensions.push_back({name, bytes});
  for (const auto& [extensions, samples] : patterns_) {
    contents.patterns.push_back({extensions, samples});
  }
  std::ranges::stable_sort(contents.extensions, std::greater{},
                           [](const auto& extension) { return extension.bytes.count; });
  std::ranges::stable_sort(contents.patterns, std::greater{}, &TarContents::Pattern::samples);
  return contents;
}

}  // namespace precache::tar
