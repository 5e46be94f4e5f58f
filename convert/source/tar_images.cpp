// SPDX-License-Identifier: Apache-2.0
#include "convert/source/tar_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "convert/source/folder_walk.hpp"
#include "convert/source/numbered_name.hpp"
#include "formats/os/file.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/webdataset.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// Without what does not change where a file would lie: "./", "//" and slashes around it.
std::string normal_name(std::string_view name) {
  std::string normal;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!part.empty() && part != ".") {
      if (!normal.empty()) normal += '/';
      normal += part;
    }
    begin = end + 1;
  }
  return normal;
}

/// Why a file is left out: itself or a folder on the way to it is hidden.
const char* reason_to_hide(std::string_view path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (const char* const reason = hidden_reason(path.substr(begin, end - begin))) return reason;
    begin = end + 1;
  }
  return nullptr;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path, std::uint32_t shard,
          const Labelling& labelling)
      : file_(file),
        path_(path),
        shard_(shard),
        label_key_(tar::parse_label_key(labelling.label_key)) {}

  TarImages run() && {
    tar::EntryCursor entries(file_, path_);
    while (const auto entry = entries.next()) {
      const std::string name = normal_name(entry->name);
      if (entry->type == tar::EntryType::kFile && name.ends_with(".tar")) {
        inner_tars_.push_back({name, entry->data, entry->size});
      }
      take(*entry, name);
    }
    // A folder with images may hold archives that are none of its classes.
    if (found_.images.size() == 0) {
      for (const InnerTar& inner : inner_tars_) take_tar_of_class(inner);
    }
    return std::move(found_);
  }

 private:
  struct InnerTar {
    std::string name;
    std::uint64_t data;
    std::uint64_t size;
  };

  /// ImageNet comes as a tar of a tar for each class: its entries count as those of a folder.
  void take_tar_of_class(const InnerTar& inner) {
    const auto bytes = file_.first(inner.data + inner.size);
    if (!tar::is_header(bytes.subspan(inner.data))) return;
    const std::string folder = inner.name.substr(0, inner.name.size() - 4) + "/";
    tar::EntryCursor entries(bytes, path_, inner.data);
    while (const auto entry = entries.next()) take(*entry, folder + normal_name(entry->name));
    const auto counted = found_.left_out.find(left_out_reason(inner.name));
    if (--counted->second == 0) found_.left_out.erase(counted);
  }

  void take(const tar::Entry& entry, const std::string& name) {
    if (name.size() > kLongestName) {
      ++found_.left_out[fmt::format("name of more than {} bytes", kLongestName)];
      return;
    }
    if (entry.type == tar::EntryType::kDirectory) {
      if (name.empty()) found_.has_root_entry = true;
      if (!name.empty() && reason_to_hide(name) == nullptr) found_.folders.insert(name);
      return;
    }
    if (name.empty()) return;
    if (const char* const reason = reason_to_hide(name)) {
      ++found_.left_out[reason];
      return;
    }
    note_folder_of(name);
    if (entry.type == tar::EntryType::kSymbolicLink) {
      ++found_.left_out["symbolic link"];
    } else if (entry.type == tar::EntryType::kOther) {
      ++found_.left_out["not a regular file"];
    } else if (entry.type == tar::EntryType::kHardLink) {
      take_link(entry, name);
    } else {
      take_file(entry, name);
    }
  }

  /// A second name of an image before it: its bytes are there once.
  void take_link(tar::Entry entry, const std::string& name) {
    if (!has_links_) {  // most archives have none, and need no such table
      has_links_ = true;
      for (std::size_t i = 0; i < found_.images.size(); ++i) {
        const ListedFile image = found_.images[i];
        places_.insert_or_assign(std::string(image.path), std::pair(image.offset, image.size));
      }
    }
    const auto target = places_.find(normal_name(entry.link));
    if (target == places_.end() || !has_image_extension(base_name(name))) {
      ++found_.left_out["hard link"];
      return;
    }
    std::tie(entry.data, entry.size) = target->second;
    entry.type = tar::EntryType::kFile;
    take_file(entry, name);
  }

  void note_folder_of(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos) return;
    const std::string_view folder = std::string_view(name).substr(0, slash);
    if (folder == last_folder_) return;
    last_folder_ = folder;
    found_.folders.insert(last_folder_);
  }

  void take_file(const tar::Entry& entry, const std::string& name) {
    const tar::SplitName split = tar::split_name(name);
    const std::string extension = tar::lower(split.extension);
    enter_group(split.key, extension);
    if (has_image_extension(base_name(name))) {
      if (entry.type == tar::EntryType::kSparse) {
        throw Unsupported(
            fmt::format("'{}' holds '{}' as a sparse file, whose bytes do not lie in one piece",
                        path_.string(), name));
      }
      found_.images.add({name, entry.size, 0, -1, shard_, entry.data});
      if (has_links_) places_.insert_or_assign(name, std::pair(entry.data, entry.size));
      found_.groups.push_back(static_cast<std::uint32_t>(found_.labels.size() - 1));
      return;
    }
    if (extension == "npy" || extension.ends_with(".npy")) found_.has_arrays = true;
    const std::string reason = left_out_reason(base_name(name));
    ++found_.left_out[reason];
    if (!split.key.empty() && entry.type == tar::EntryType::kFile) {
      take_label(entry, name, extension, reason);
    }
  }

  void enter_group(std::string_view key, const std::string& extension) {
    const bool is_again = extensions_.contains(extension);
    if (found_.labels.empty() || key.empty() || key != key_ || is_again) {
      found_.labels.emplace_back();
      key_ = key;
      extensions_.clear();
    }
    extensions_.insert(extension);
  }

  /// How good a label such a file holds, from 1; 0 for none.
  [[nodiscard]] int rank_of(std::string_view extension) const {
    if (!label_key_.extension.empty()) return extension == label_key_.extension ? 1 : 0;
    return extension == "cls" ? 1 : extension == "json" ? 2 : extension == "txt" ? kTextRank : 0;
  }

  void take_label(const tar::Entry& entry, const std::string& name, std::string_view extension,
                  const std::string& reason) {
    const int rank = rank_of(extension);
    TarImages::Group& group = found_.labels.back();
    if (rank == 0 || (group.label_rank != 0 && group.label_rank <= rank)) return;
    const std::string_view text = as_text(file_.subspan(entry.data, entry.size));
    tar::FoundLabel found = extension == "json" ? tar::label_of_json(text, label_key_.json_field)
                                                : tar::label_of_text(text);
    if (!found.unfit.empty()) {
      if (rank == kTextRank) group.has_long_text = true;
      if (!found_.unfit_label) {
        const auto number = static_cast<std::uint32_t>(found_.labels.size() - 1);
        found_.unfit_label.emplace(number, fmt::format("'{}' holds {}", name, found.unfit));
      }
    }
    if (found.label.empty()) return;
    group.label = std::move(found.label);
    group.label_rank = rank;
    ++found_.label_files[reason];
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  std::uint32_t shard_;
  tar::LabelKey label_key_;
  TarImages found_;
  std::vector<InnerTar> inner_tars_;
  bool has_links_ = false;
  std::unordered_map<std::string, std::pair<std::uint64_t, std::uint64_t>> places_;  // of images
  std::string last_folder_;
  std::string key_;  // of the group
  std::unordered_set<std::string> extensions_;
};

}  // namespace

TarImages scan_tar_images(std::span<const std::byte> file, const std::filesystem::path& path,
                          std::uint32_t shard, const Labelling& labelling) {
  return Scanner(file, path, shard, labelling).run();
}

}  // namespace precache
