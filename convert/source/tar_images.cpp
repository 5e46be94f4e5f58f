// SPDX-License-Identifier: Apache-2.0
#include "convert/source/tar_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "convert/source/folder_walk.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/text.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/tar/tar_finder.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Collects the images of one archive from what its finder hands out.
class Collector {
 public:
  Collector(std::span<const std::byte> archive, const std::filesystem::path& path,
            std::uint32_t shard, const Labelling& labelling)
      : archive_(archive),
        path_(path),
        shard_(shard),
        label_key_(tar::parse_label_key(labelling.label_key)) {}

  TarImages run() && {
    walk(archive_, 0, "");
    // A folder with images may also contain archives that are not classes.
    if (found_.images.size() == 0) {
      for (const InnerTar& inner : std::exchange(inner_tars_, {})) take_tar_of_class(inner);
    }
    return std::move(found_);
  }

 private:
  struct InnerTar {
    std::string path;
    std::uint64_t data;
    std::uint64_t size;
  };

  void walk(std::span<const std::byte> bytes, std::uint64_t begin, const std::string& folder) {
    tar::SampleFinder(bytes, path_, begin)
        .run([&](const tar::FoundGroup& group) { take(group, folder); },
             [&](const tar::OtherEntry& other) { take(other, folder); });
  }

  /// ImageNet is a tar with a tar for each class: the entries of the latter count as a folder.
  void take_tar_of_class(const InnerTar& inner) {
    const auto bytes = archive_.first(inner.data + inner.size);
    if (!tar::is_header(bytes.subspan(inner.data))) return;
    walk(bytes, inner.data, inner.path.substr(0, inner.path.size() - 4) + "/");
    const auto counted = found_.ignored.find(ignored_reason(inner.path));
    if (--counted->second == 0) found_.ignored.erase(counted);
  }

  void take(const tar::OtherEntry& other, const std::string& folder) {
    const std::string path = folder + std::string(other.path);
    if (other.entry.type == tar::EntryType::kDirectory) {
      if (path.empty()) found_.has_root_entry = true;
      if (!path.empty() && !other.is_hidden) found_.folders.insert(path);
      return;
    }
    if (other.reason == nullptr) return;
    ++found_.ignored[other.reason];
    if (!other.is_hidden) note_folder_of(path);
  }

  void take(const tar::FoundGroup& group, const std::string& folder) {
    const auto number = static_cast<std::uint32_t>(found_.labels.size());
    tar::GroupLabel label;
    if (!group.key.empty()) label = find_label(group, archive_, label_key_);
    if (label.unfit_file != nullptr && !found_.unfit_label) {
      found_.unfit_label.emplace(
          number, fmt::format("'{}{}' contains {}", folder, label.unfit_file->path, label.unfit));
    }
    found_.labels.push_back({std::move(label.text), label.rank, label.has_long_text});
    for (const tar::FoundFile& file : group.files) {
      const std::string path = folder + file.path;
      note_folder_of(path);
      if (has_image_extension(base_name(path))) {
        refuse_sparse(file, path_);
        found_.images.add({path, file.entry.size, 0, -1, shard_, file.entry.data});
        found_.groups.push_back(number);
        continue;
      }
      if (file.type() == "npy") found_.has_arrays = true;
      if (path.ends_with(".tar") && file.entry.type == tar::EntryType::kFile) {
        inner_tars_.push_back({path, file.entry.data, file.entry.size});
      }
      const std::string reason = ignored_reason(base_name(path));
      ++found_.ignored[reason];
      if (&file == label.file) ++found_.label_files[reason];
    }
  }

  void note_folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    const std::string_view folder = std::string_view(path).substr(0, slash);
    if (folder == last_folder_) return;
    last_folder_ = folder;
    found_.folders.insert(last_folder_);
  }

  std::span<const std::byte> archive_;
  const std::filesystem::path& path_;
  std::uint32_t shard_;
  tar::LabelKey label_key_;
  TarImages found_;
  std::vector<InnerTar> inner_tars_;
  std::string last_folder_;
};

/// The folders that all images are in and that are not a class, because each has only one folder on
/// the way to every image. Ends with a slash unless it is empty.
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

/// The folder that unpacking the archives would make.
FolderWalk as_folder(std::vector<TarImages>& tars) {
  FolderWalk walk;
  bool has_root_entry = false;
  Listing images;
  for (const TarImages& tar : tars) {
    has_root_entry = has_root_entry || tar.has_root_entry;
    images.append(tar.images);
    for (const auto& [reason, count] : tar.ignored) walk.ignored[reason] += count;
  }
  const std::string top = has_root_entry ? "" : common_folders(images);
  images.sort_by_path();
  for (std::size_t i = 0; i < images.size(); ++i) {
    ListedFile image = images[i];
    // If an archive has several files of one name, unpacking keeps the last.
    if (i + 1 < images.size() && images[i + 1].path == image.path &&
        images[i + 1].shard == image.shard) {
      ++walk.ignored["replaced by a later file of the same name"];
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

/// Texts next to images may be captions instead of class names.
void refuse_captions(const std::vector<TarImages>& tars, const std::filesystem::path& root) {
  tar::TextFiles texts;
  std::unordered_set<std::string_view> different;
  bool are_integers = true;
  for (const TarImages& tar : tars) {
    for (const TarImages::Group& group : tar.labels) {
      const bool is_name = group.label_rank == tar::kTextRank;
      if (!is_name && (group.label_rank != 0 || !group.has_long_text)) continue;
      ++texts.files;
      if (!is_name) ++texts.too_long;
      if (is_name && different.insert(group.label).second) {
        are_integers = are_integers && parse_number<std::int64_t>(group.label);
      }
    }
  }
  texts.different = different.size();
  if (texts.are_class_names() || (texts.too_long == 0 && are_integers)) return;
  throw InvalidArgument(
      fmt::format("the text files next to the images of '{}' look like captions, not classes: {}",
                  root.string(), texts.text()),
      fmt::format(
          "Set `labels` to none to build without labels, `label_key` to cls or json.FIELD "
          "to take them from other files, `labels` to a CSV file{}",
          texts.too_long == 0 ? ", or `label_key` to txt to take the texts as classes." : "."));
}

[[noreturn]] void refuse_without_label(const TarImages& tar, std::uint32_t group,
                                       std::string_view image, const std::filesystem::path& root,
                                       const std::string& key) {
  const std::string where = fmt::format("'{}' in '{}'", image, root.string());
  if (tar.unfit_label && tar.unfit_label->first == group) {
    throw InvalidArgument(fmt::format("{} has no label: {}", where, tar.unfit_label->second),
                          "A label must be one integer or one line with a name. Choose another "
                          "with `label_key` (cls, "
                          "txt, json.FIELD), or set `labels` to none or to a CSV file.");
  }
  if (key.empty()) {
    throw InvalidArgument(where + " has no label next to it",
                          "Labels come from a .cls, .txt or .json file with the name of the image. "
                          "Choose another with "
                          "`label_key`, or set `labels` to none or to a CSV file.");
  }
  throw InvalidArgument(fmt::format("{} has no label with `label_key` {}", where, key),
                        "Give the extension of a file next to the image (cls), or a field of its "
                        "JSON file (json.species).");
}

Source list_groups(std::vector<TarImages>& tars, const std::filesystem::path& root,
                   const Labelling& labelling) {
  Source source;
  source.key_rule = KeyRule::kFirstDot;
  source.classes = labelling.classes;
  LabelTexts texts;
  const std::string wanted = lower(labelling.image_key);
  if (labelling.kind == Labelling::Kind::kSource) refuse_captions(tars, root);
  for (const TarImages& tar : tars) {
    std::uint32_t last_group = UINT32_MAX;
    for (std::size_t i = 0; i < tar.images.size(); ++i) {
      const ListedFile image = tar.images[i];
      const tar::SplitName parts = tar::split_name(image.path);
      if (parts.key.empty()) {
        ++source.ignored["name that webdataset drops"];
        continue;
      }
      const bool is_wanted = wanted.empty() || lower(parts.extension) == wanted;
      if (!is_wanted || tar.groups[i] == last_group) {
        ++source.ignored["further image of the same sample"];
        continue;
      }
      last_group = tar.groups[i];
      const TarImages::Group& group = tar.labels[tar.groups[i]];
      if (labelling.kind == Labelling::Kind::kSource && group.label_rank == 0) {
        refuse_without_label(tar, tar.groups[i], image.path, root, labelling.label_key);
      }
      source.listing.add(image);
      texts.add(group.label);
    }
    for (const auto& [reason, count] : tar.ignored) {
      const auto used = tar.label_files.find(reason);
      const std::uint64_t rest = count - (used == tar.label_files.end() ? 0 : used->second);
      if (rest != 0) source.ignored[reason] += rest;
    }
  }
  if (labelling.kind == Labelling::Kind::kSource) {
    label_by_texts(source, texts, labelling.classes, [&](std::size_t i) {
      return fmt::format("'{}' in '{}'", source.listing[i].path, root.string());
    });
  }
  return source;
}

/// Whether the archives follow the conventions of webdataset. Only `.cls` files are a sure sign:
/// captions and notes may be next to the images of class folders too.
bool is_webdataset(const std::vector<TarImages>& tars, const FolderWalk& walk,
                   const Labelling& labelling) {
  if (!labelling.image_key.empty() || !labelling.label_key.empty()) return true;
  bool has_others = false;
  for (const TarImages& tar : tars) {
    for (const std::uint32_t group : tar.groups) {
      if (tar.labels[group].label_rank == 1) return true;
      has_others = has_others || tar.labels[group].label_rank != 0;
    }
    has_others = has_others || tar.unfit_label;
  }
  return has_others && labelling.kind == Labelling::Kind::kSource && walk.top_folders.size() < 2;
}

}  // namespace

TarImages scan_tar_images(std::span<const std::byte> archive, const std::filesystem::path& path,
                          std::uint32_t shard, const Labelling& labelling) {
  return Collector(archive, path, shard, labelling).run();
}

Source list_tar_images(std::vector<TarImages> tars, const std::filesystem::path& root,
                       const Labelling& labelling) {
  FolderWalk walk = as_folder(tars);
  if (walk.images.size() == 0 &&
      std::ranges::any_of(tars, [](const TarImages& tar) { return tar.has_arrays; })) {
    throw InvalidArgument(fmt::format("'{}' contains arrays (.npy), not images", root.string()),
                          kUseConvertHint);
  }
  if (is_webdataset(tars, walk, labelling)) return list_groups(tars, root, labelling);
  return label_by_folder(std::move(walk), root, labelling);
}

}  // namespace precache
