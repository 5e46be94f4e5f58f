// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/tar_finder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/shard/limits.hpp"
#include "precache/formats/error.hpp"

namespace precache::tar {
namespace {

constexpr const char* kTooLong = "name of more than 4096 bytes";
static_assert(kLongestKey == 4096);

// Up to this many names are compared one by one, which is faster than a table.
constexpr std::size_t kFewFiles = 32;

bool is_normal(std::string_view name) {
  constexpr auto kNone = std::string_view::npos;
  return !name.empty() && name.front() != '/' && name.back() != '/' && !name.starts_with("./") &&
         name != "." && !name.ends_with("/.") && name.find("//") == kNone &&
         name.find("/./") == kNone;
}

/// Removes the parts that do not change the place of a file: "./", "//" and outer slashes.
void normalize(std::string_view name, std::string& normal) {
  if (is_normal(name)) return void(normal = name);
  normal.clear();
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!part.empty() && part != ".") {
      if (!normal.empty()) normal += '/';
      normal += part;
    }
    begin = end + 1;
  }
}

std::string normal_name(std::string_view name) {
  std::string normal;
  normalize(name, normal);
  return normal;
}

/// Why a file is left out: the file or a folder of its path is hidden.
const char* reason_to_hide(std::string_view path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (const char* const reason = hidden_reason(path.substr(begin, end - begin))) return reason;
    begin = end + 1;
  }
  return nullptr;
}

/// Why an entry that is not a regular file is left out; null for folders.
const char* reason_of(EntryType type) {
  switch (type) {
    case EntryType::kSymbolicLink:
      return "symbolic link";
    case EntryType::kHardLink:
      return "hard link";
    case EntryType::kOther:
      return "not a regular file";
    default:
      return nullptr;
  }
}

}  // namespace

bool FoundGroup::has_only_numbered_images() const {
  return files.size() > 1 && std::ranges::all_of(files, [](const FoundFile& file) {
           return file.type() != file.extension && find_image_ending(file.type()) != nullptr;
         });
}

void refuse_sparse(const FoundFile& file, const std::filesystem::path& archive) {
  if (file.entry.type != EntryType::kSparse) return;
  throw Unsupported(fmt::format("'{}' holds '{}' as a sparse file, whose bytes are not contiguous",
                                archive.string(), file.name));
}

GroupLabel find_label(const FoundGroup& group, std::span<const std::byte> archive,
                      const LabelKey& key) {
  std::array<std::string_view, kTextRank> extensions{"cls", "json", "txt"};
  const bool is_named = !key.extension.empty();
  if (is_named) extensions[0] = key.extension;
  GroupLabel best;
  for (std::size_t i = 0; i < (is_named ? 1 : extensions.size()); ++i) {
    const auto file = std::ranges::find(group.files, extensions[i], &FoundFile::extension);
    if (file == group.files.end() || file->entry.type == EntryType::kSparse) continue;
    const std::string_view text = as_text(archive.subspan(file->entry.data, file->entry.size));
    FoundLabel found =
        extensions[i] == "json" ? label_of_json(text, key.json_field) : label_of_text(text);
    if (!found.label.empty()) {
      best.text = std::move(found.label);
      best.file = &*file;
      best.rank = static_cast<int>(i) + 1;
      return best;
    }
    if (found.unfit.empty()) continue;
    if (i + 1 == kTextRank) best.has_long_text = true;
    if (best.unfit_file != nullptr) continue;
    best.unfit = std::move(found.unfit);
    best.unfit_file = &*file;
  }
  return best;
}

void SampleFinder::run(const OnGroup& on_group, const OnOtherEntry& on_other) {
  on_group_ = &on_group;
  on_other_ = &on_other;
  EntryCursor entries(archive_, path_, begin_);
  while (const auto entry = entries.next()) take(*entry);
  end_group();
}

FoundGroup SampleFinder::unfinished() const {
  if (count_ == 0) return {};
  const std::string_view name = files_.front().name;
  return {name.substr(0, name.size() - files_.front().extension.size() - 1),
          std::span(files_).first(count_)};
}

void SampleFinder::take(const Entry& entry) {
  normalize(entry.name, entry_path_);
  const std::string_view path = entry_path_;
  OtherEntry other{entry, path};
  other.reason = path.size() > kLongestKey ? kTooLong : reason_to_hide(path);
  other.is_hidden = other.reason != nullptr;
  if (!other.is_hidden) other.reason = reason_of(entry.type);
  if (!path.empty() && !other.is_hidden) {
    Entry file = entry;
    if (entry.type == EntryType::kFile || entry.type == EntryType::kSparse ||
        (entry.type == EntryType::kHardLink && follow(file))) {
      return take_file(file, path);
    }
  }
  if (path.empty()) other.reason = nullptr;
  if (*on_other_) (*on_other_)(other);
}

/// Gives a hard link the bytes of its target, an earlier file; false if there is none.
bool SampleFinder::follow(Entry& link) {
  if (!has_links_) {  // most archives have none, and need no such table
    has_links_ = true;
    EntryCursor entries(archive_.first(link.begin), path_, begin_);
    while (const auto entry = entries.next()) {
      if (entry->type == EntryType::kFile) {
        places_.insert_or_assign(normal_name(entry->name), Place(entry->data, entry->size));
      }
    }
  }
  const auto target = places_.find(normal_name(link.link));
  if (target == places_.end()) return false;
  std::tie(link.data, link.size) = target->second;
  return true;
}

void SampleFinder::take_file(const Entry& entry, std::string_view path) {
  if (has_links_ && entry.type != EntryType::kSparse) {
    places_.insert_or_assign(std::string(path), Place(entry.data, entry.size));
  }
  SplitName split = split_name(path);
  if (!entry.name.ends_with(split.extension)) split = {};  // for names such as "a.jpg/"
  std::string extension = lower(split.extension);
  const auto fill = [&](FoundFile& file) {
    file.name = entry.name;
    file.path = path;
    file.extension = std::move(extension);
    file.entry = entry;
    file.entry.name = file.entry.link = {};
  };
  if (split.key.empty()) {
    fill(alone_);
    return (*on_group_)({{}, std::span(&alone_, 1)});
  }
  if (count_ == 0 || split.key != key_ || has_extension(extension)) {
    end_group();
    key_ = split.key;
  }
  if (count_ >= kFewFiles) extensions_.insert(extension);
  if (count_ == files_.size()) files_.emplace_back();
  fill(files_[count_++]);
}

bool SampleFinder::has_extension(const std::string& extension) {
  const auto few = std::span(files_).first(std::min(count_, kFewFiles));
  return std::ranges::find(few, extension, &FoundFile::extension) != few.end() ||
         extensions_.contains(extension);
}

void SampleFinder::end_group() {
  if (count_ == 0) return;
  const FoundGroup group = unfinished();
  count_ = 0;
  if (!extensions_.empty()) extensions_.clear();
  (*on_group_)(group);
}

}  // namespace precache::tar
