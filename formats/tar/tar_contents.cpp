// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/tar_contents.hpp"

#include <algorithm>
#include <functional>

#include "formats/tar/webdataset.hpp"

namespace precache::tar {
namespace {

// Far more than archives of samples have; a hostile one could make each name another.
constexpr std::size_t kMostKinds = 1000;
constexpr std::size_t kMostFieldsOfSample = 32;
constexpr std::size_t kLongestExtension = 64;

}  // namespace

void ContentsSurvey::add(std::span<const std::byte> file, const std::filesystem::path& path) {
  EntryCursor entries(file, path);
  try {
    while (const auto entry = entries.next()) take(*entry);
  } catch (...) {
    end_sample();
    throw;
  }
  end_sample();
}

void ContentsSurvey::take(const Entry& entry) {
  switch (entry.type) {
    case EntryType::kFile:
      return take_file(entry);
    case EntryType::kDirectory:
      ++counts_.directories;
      return;
    case EntryType::kHardLink:
    case EntryType::kSymbolicLink:
      ++counts_.links;
      return;
    case EntryType::kSparse:
      ++counts_.sparse_files;
      return;
    case EntryType::kOther:
      ++counts_.others;
  }
}

void ContentsSurvey::take_file(const Entry& entry) {
  ++counts_.files;
  const SplitName name = split_name(entry.name);
  if (name.key.empty()) {
    ++counts_.ungrouped_files;
    return;
  }
  std::string extension(name.extension.substr(0, kLongestExtension));
  if (const auto known = extensions_.find(extension); known != extensions_.end()) {
    known->second.add(entry.size);
  } else if (extensions_.size() < kMostKinds) {
    extensions_[extension].add(entry.size);
  } else {
    counts_.has_more = true;
  }
  const bool is_again = std::ranges::find(sample_, extension) != sample_.end();
  if (!has_sample_ || name.key != key_ || is_again) {
    end_sample();
    key_ = name.key;
    has_sample_ = true;
  }
  if (sample_.size() < kMostFieldsOfSample) sample_.push_back(std::move(extension));
}

void ContentsSurvey::end_sample() {
  if (!has_sample_) return;
  ++counts_.samples;
  if (const auto known = patterns_.find(sample_); known != patterns_.end()) {
    ++known->second;
  } else if (patterns_.size() < kMostKinds) {
    patterns_[sample_] = 1;
  } else {
    counts_.has_more = true;
  }
  sample_.clear();
  has_sample_ = false;
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
