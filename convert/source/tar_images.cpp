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
#include "convert/source/source_path.hpp"
#include "formats/base/file.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/webdataset.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

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

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path, std::uint32_t shard,
          const Labelling& labelling)
      : file_(file), path_(path), shard_(shard) {
    const std::string& key = labelling.label_key;
    if (key.starts_with("json.")) json_field_ = key.substr(5);
    label_extension_ = json_field_.empty() ? lower(key) : "json";
  }

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
      if (name.empty()) found_.names_its_top = true;
      if (!name.empty() && !is_of_macos(base_name(name))) found_.folders.insert(name);
      return;
    }
    if (name.empty()) return;
    note_folder_of(name);
    if (entry.type == tar::EntryType::kSymbolicLink) {
      ++found_.left_out["symbolic link"];
    } else if (is_of_macos(base_name(name))) {
      ++found_.left_out[kOfMacos];
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
    const std::string extension = lower(split.extension);
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
      take_label(entry, extension, reason);
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
    if (!label_extension_.empty()) return extension == label_extension_ ? 1 : 0;
    return extension == "cls" ? 1 : extension == "json" ? 2 : extension == "txt" ? 3 : 0;
  }

  void take_label(const tar::Entry& entry, std::string_view extension, const std::string& reason) {
    const int rank = rank_of(extension);
    TarImages::Group& group = found_.labels.back();
    if (rank == 0 || (group.label_rank != 0 && group.label_rank <= rank)) return;
    const std::string_view text = as_text(file_.subspan(entry.data, entry.size));
    std::optional<std::string> label;
    if (extension == "json") {
      label = tar::label_of_json(text, json_field_);
    } else if (text.size() <= tar::kLongestLabel) {
      label = tar::trimmed(text);
    }
    if (!label || label->empty() || label->size() > tar::kLongestLabel ||
        label->find('\n') != std::string::npos) {
      return;
    }
    group.label = std::move(*label);
    group.label_rank = rank;
    ++found_.label_files[reason];
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  std::uint32_t shard_;
  std::string label_extension_;  // that was named
  std::string json_field_;
  TarImages found_;
  std::vector<InnerTar> inner_tars_;
  bool has_links_ = false;
  std::unordered_map<std::string, std::pair<std::uint64_t, std::uint64_t>> places_;  // of images
  std::string last_folder_;
  std::string key_;  // of the group
  std::unordered_set<std::string> extensions_;
};

/// What all images lie in and is no class: folders that have but one folder on the way to every
/// image. Ends with a slash, if there is any.
std::string common_folders(const Listing& images) {
  std::string common;
  while (images.size() != 0) {
    const std::string_view first = images[0].path;
    const std::size_t slash = first.find('/', common.size());
    if (slash == std::string_view::npos) break;
    const std::string longer(first.substr(0, slash + 1));
    for (std::size_t i = 0; i < images.size(); ++i) {
      const std::string_view path = images[i].path;
      // The folder right above an image is its class, if it has no other.
      if (!path.starts_with(longer) || path.find('/', longer.size()) == std::string_view::npos) {
        return common;
      }
    }
    common = longer;
  }
  return common;
}

/// As a folder that the archives would unpack to.
FolderWalk as_folder(std::vector<TarImages>& tars) {
  FolderWalk walk;
  bool names_its_top = false;
  Listing images;
  for (const TarImages& tar : tars) {
    names_its_top = names_its_top || tar.names_its_top;
    images.append(tar.images);
    for (const auto& [reason, count] : tar.left_out) walk.left_out[reason] += count;
  }
  const std::string top = names_its_top ? "" : common_folders(images);
  images.sort_by_path();
  for (std::size_t i = 0; i < images.size(); ++i) {
    ListedFile image = images[i];
    // Of files of one name in one archive, unpacking leaves the last.
    if (i + 1 < images.size() && images[i + 1].path == image.path &&
        images[i + 1].shard == image.shard) {
      ++walk.left_out["replaced by a later file of its name"];
      continue;
    }
    image.path.remove_prefix(top.size());
    walk.images.add(image);
  }
  std::set<std::string> folders;
  for (const TarImages& tar : tars) {
    for (const std::string& folder : tar.folders) {
      if (!folder.starts_with(top)) continue;
      const std::string below = folder.substr(top.size());
      if (!below.empty()) folders.insert(below.substr(0, below.find('/')));
    }
  }
  walk.top_folders.assign(folders.begin(), folders.end());
  return walk;
}

/// Whether the first image of a group, or the one that was named.
class GroupImage {
 public:
  explicit GroupImage(const Labelling& labelling) : wanted_(lower(labelling.image_key)) {}

  bool takes(std::string_view path, std::uint32_t group) {
    const std::string extension = lower(tar::split_name(path).extension);
    if (!wanted_.empty() && extension != wanted_) return false;
    if (group == last_) return false;
    last_ = group;
    return true;
  }

 private:
  std::string wanted_;
  std::uint32_t last_ = UINT32_MAX;
};

Source list_groups(std::vector<TarImages>& tars, const std::filesystem::path& root,
                   const Labelling& labelling) {
  Source source;
  source.key_rule = KeyRule::kFirstDot;
  source.classes = labelling.classes;
  LabelTexts texts;
  for (const TarImages& tar : tars) {
    GroupImage chosen(labelling);
    for (std::size_t i = 0; i < tar.images.size(); ++i) {
      const ListedFile image = tar.images[i];
      if (tar::split_name(image.path).key.empty()) {
        ++source.left_out["name that webdataset drops"];
        continue;
      }
      if (!chosen.takes(image.path, tar.groups[i])) {
        ++source.left_out["further image of its sample"];
        continue;
      }
      const TarImages::Group& group = tar.labels[tar.groups[i]];
      if (labelling.kind == Labelling::Kind::kSource && group.label_rank == 0) {
        const std::string& key = labelling.label_key;
        throw InvalidArgument(
            key.empty()
                ? fmt::format("'{}' in '{}' has no label beside it", image.path, root.string())
                : fmt::format("'{}' in '{}' has no label by --label-key {}", image.path,
                              root.string(), key),
            key.empty() ? "Labels are the texts of .cls and .txt and a field of .json files of its "
                          "name. Name another with --label-key, or use --labels none, or --labels "
                          "FILE.csv."
                        : "It names the ending of a file beside the image (cls), or a field of its "
                          "JSON (json.species).");
      }
      source.listing.add(image);
      texts.add(group.label);
    }
    for (const auto& [reason, count] : tar.left_out) {
      const auto used = tar.label_files.find(reason);
      const std::uint64_t rest = count - (used == tar.label_files.end() ? 0 : used->second);
      if (rest != 0) source.left_out[reason] += rest;
    }
  }
  if (labelling.kind == Labelling::Kind::kSource) {
    label_by_texts(source, texts, labelling.classes, [&](std::size_t i) {
      return fmt::format("'{}' in '{}'", source.listing[i].path, root.string());
    });
  }
  return source;
}

/// Whether the images are named as webdataset does. Only `.cls` files are a sure sign: captions
/// and notes may lie beside the images of class folders too.
bool is_webdataset(const std::vector<TarImages>& tars, const FolderWalk& walk,
                   const Labelling& labelling) {
  if (!labelling.image_key.empty() || !labelling.label_key.empty()) return true;
  bool has_others = false;
  for (const TarImages& tar : tars) {
    for (const std::uint32_t group : tar.groups) {
      if (tar.labels[group].label_rank == 1) return true;
      has_others = has_others || tar.labels[group].label_rank != 0;
    }
  }
  return has_others && labelling.kind == Labelling::Kind::kSource && walk.top_folders.size() < 2;
}

}  // namespace

TarImages scan_tar_images(std::span<const std::byte> file, const std::filesystem::path& path,
                          std::uint32_t shard, const Labelling& labelling) {
  return Scanner(file, path, shard, labelling).run();
}

Source list_tar_images(std::vector<TarImages> tars, const std::filesystem::path& root,
                       const Labelling& labelling) {
  FolderWalk walk = as_folder(tars);
  if (walk.images.size() == 0 &&
      std::ranges::any_of(tars, [](const TarImages& tar) { return tar.has_arrays; })) {
    throw InvalidArgument(fmt::format("'{}' holds arrays (.npy), no images", root.string()),
                          kHowTensorsGo);
  }
  if (is_webdataset(tars, walk, labelling)) return list_groups(tars, root, labelling);
  return label_by_folder(std::move(walk), root, labelling);
}

}  // namespace precache
