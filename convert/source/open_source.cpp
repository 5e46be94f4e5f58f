// SPDX-License-Identifier: Apache-2.0
#include "convert/source/open_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "convert/source/folder_walk.hpp"
#include "convert/source/shard_source.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

/// Calls `action` with the bytes of a shard. Throws IoError if the file changes meanwhile.
template <typename Action>
auto with_bytes(const SourceShard& shard, const Action& action) {
  const MappedShard mapped(shard.data.path);
  auto result = action(mapped.bytes());
  mapped.check();
  if (mapped.state().bytes != shard.data.bytes ||
      mapped.state().modified_ns != shard.data.mtime_ns) {
    throw IoError("the source has changed while it was listed:", shard.data.path, 0,
                  "All images must come from one state of the source. Run the command again.");
  }
  return result;
}

/// The shards of one source, unpacked if necessary.
class ShardSource {
 public:
  ShardSource(const fs::path& root, const SourcePath& what, const Labelling& labelling,
              Unpacker& unpacker, const fs::path& helper, const found::Shares* shares = nullptr)
      : root_(root),
        labelling_(labelling),
        unpacker_(unpacker),
        helper_(helper),
        shares_(shares),
        is_stream_(what.kind == SourcePath::Kind::kStream),
        shards_(what.files.size()) {
    if (shares_ != nullptr) {
      take_shares(what.files);
      return;
    }
    tbb::parallel_for(std::size_t{0}, shards_.size(),
                      [&](std::size_t i) { open(i, what.files[i]); });
    for (const SourceShard& shard : shards_) find_format(shard, format_in(shard));
  }

  /// The content of each shard, for found::save().
  found::Json list_share() {
    found::Json list = found::Json::array();
    const auto add = [&](auto images) {
      for (std::size_t i = 0; i < shards_.size(); ++i) {
        list.push_back(found::to_json(
            found::FoundShard{shards_[i].given, *format_, found::to_json(images[i])}));
      }
    };
    if (labelling_.has_messages()) {
      add(scan_message_files());
    } else if (format_ == Format::kTar) {
      add(scan_tars());
    } else if (format_ == Format::kTfrecord) {
      add(scan_record_files());
    } else if (format_) {
      throw Unsupported(
          fmt::format("'{}' is an HDF5 file, which is not listed in shares", root_first().string()),
          "Set `prepare` without a share.");
    }
    return {{"shards", std::move(list)}};
  }

  Source list() {
    if (labelling_.kind == Labelling::Kind::kRegex) {
      throw InvalidArgument(
          fmt::format("`label_regex` applies to a folder of images, but '{}' is a {} file",
                      root_first().string(), name(*format_)),
          "Use `label_key` or a CSV file in `labels` for shards.");
    }
    Source source = list_images();
    if (labelling_.kind == Labelling::Kind::kCsv) label_by_csv(source, root_, labelling_);
    return source;
  }

 private:
  void open(std::size_t number, const fs::path& path) {
    const File file = open_shard(path);
    SourceShard& shard = shards_[number];
    shard.given = stamp_of(file);
    try {
      shard.data = unpacker_.unpack(file, number);
    } catch (Unsupported& error) {
      if (error.hint().empty()) error.add_hint(kSourceHelp);
      throw;
    }
    if (!shard.is_copied()) return;
    if (is_stream_) return void(shard.given = {path, 0, 0});
    const FileStamp after = stamp_of(file);
    if (after.bytes != shard.given.bytes || after.mtime_ns != shard.given.mtime_ns) {
      throw IoError("the source has changed while it was read:", path, 0);
    }
  }

  /// The content of all shards, as the runs that listed the shares have found it.
  void take_shares(const std::vector<fs::path>& files) {
    tars_.resize(files.size());
    record_files_.resize(files.size());
    const std::size_t count = shares_->count();
    for (std::size_t share = 0; share < count; ++share) {
      const found::Json json = shares_->read(share);
      const found::Json& list = json.at("shards");
      if (list.size() != (files.size() + count - 1 - share) / count) {
        shares_->refuse(share, root_);
      }
      tbb::parallel_for(std::size_t{0}, list.size(), [&](std::size_t i) {
        take_found(share, share + i * count, files[share + i * count], list[i]);
      });
    }
  }

  void take_found(std::size_t share, std::size_t number, const fs::path& path,
                  const found::Json& json) {
    const found::FoundShard found = found::shard_of(json);
    struct stat status {};
    if (found.stamp.path != path.filename() || ::stat(path.c_str(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != found.stamp.bytes ||
        mtime_ns(status) != found.stamp.mtime_ns) {
      shares_->refuse(share, path);
    }
    shards_[number].given = {path, found.stamp.bytes, found.stamp.mtime_ns};
    shards_[number].data = shards_[number].given;
    const auto shard = static_cast<std::uint32_t>(number);
    if (found.format == Format::kTar) {
      tars_[number] = found::tar_images_of(found.images, shard);
    } else {
      record_files_[number] = found::record_images_of(found.images, shard);
    }
    const std::scoped_lock lock(mutex_);
    find_format(shards_[number], found.format);
  }

  [[nodiscard]] static Format format_in(const SourceShard& shard) {
    return with_bytes(shard, [&](auto bytes) {
      if (const auto kind = image_file_kind(bytes); !kind.empty()) {
        throw InvalidArgument(fmt::format("'{}' is a {} image, not a shard of images",
                                          shard.given.path.string(), kind),
                              kSourceHelp);
      }
      try {
        return detect_format(bytes, shard.given.path);
      } catch (Unsupported& error) {
        if (error.hint().empty()) error.add_hint(kSourceHelp);
        throw;
      }
    });
  }

  void find_format(const SourceShard& shard, Format format) {
    if (!format_) format_ = format;
    if (format == *format_) return;
    throw InvalidArgument(
        fmt::format("'{}' is a {} file, but '{}' is a {} file", root_first().string(),
                    name(*format_), shard.given.path.string(), name(format)),
        "All shards of a source must have the same format.");
  }

  [[nodiscard]] const fs::path& root_first() const { return shards_.front().given.path; }

  Source list_images() {
    if (labelling_.has_messages()) {
      if (*format_ == Format::kTfrecord) return list_messages();
      throw InvalidArgument(fmt::format("`proto` applies to TFRecord files, but '{}' is a {} file",
                                        root_first().string(), name(*format_)));
    }
    switch (*format_) {
      case Format::kTar:
        return list_tars();
      case Format::kTfrecord:
        return list_records();
      case Format::kHdf5:
        break;
    }
    Hdf5Images images(labelling_, helper_);
    for (SourceShard& shard : shards_) {
      // In `shard`, a copy of the rows may replace the file.
      const SourceShard file = shard;
      with_bytes(file, [&](auto bytes) {
        images.add(bytes, shard, unpacker_);
        return 0;
      });
      const bool is_needless = file.is_copied() && shard.data.path != file.data.path;
      if (is_needless) fs::remove(file.data.path);
    }
    return images.finish(std::move(shards_), root_);
  }

  /// Scans all shards at once: `scan` gets the bytes, the path and the number of one.
  template <typename Result, typename Scan>
  std::vector<Result> scan_shards(const Scan& scan) {
    std::vector<Result> results(shards_.size());
    tbb::parallel_for(std::size_t{0}, shards_.size(), [&](std::size_t i) {
      results[i] = with_bytes(shards_[i], [&](auto bytes) {
        return scan(bytes, shards_[i].given.path, static_cast<std::uint32_t>(i));
      });
    });
    return results;
  }

  std::vector<TarImages> scan_tars() {
    return scan_shards<TarImages>([&](auto bytes, const fs::path& path, std::uint32_t shard) {
      return scan_tar_images(bytes, path, shard, labelling_);
    });
  }

  std::vector<RecordImages> scan_record_files() {
    return scan_shards<RecordImages>([&](auto bytes, const fs::path& path, std::uint32_t shard) {
      return scan_records(bytes, path, shard, labelling_);
    });
  }

  std::vector<RecordImages> scan_message_files() {
    const MessagePaths paths = message_paths(labelling_);
    return scan_shards<RecordImages>([&](auto bytes, const fs::path& path, std::uint32_t shard) {
      return scan_messages(bytes, path, shard, paths, labelling_);
    });
  }

  Source list_tars() {
    auto tars = shares_ != nullptr ? std::move(tars_) : scan_tars();
    Source source = list_tar_images(std::move(tars), root_, labelling_);
    source.shards = std::move(shards_);
    return source;
  }

  Source list_records() {
    const auto files = shares_ != nullptr ? std::move(record_files_) : scan_record_files();
    for (std::size_t i = 0; i < files.size(); ++i) {
      shards_[i].form = {SampleForm::Kind::kRecord, files[i].image_key, {}};
    }
    return join_records(files, labelling_.classes);
  }

  Source list_messages() {
    const MessagePaths paths = message_paths(labelling_);
    const auto files = shares_ != nullptr ? std::move(record_files_) : scan_message_files();
    if (std::ranges::none_of(files, &RecordImages::has_image)) {
      throw InvalidArgument(
          fmt::format("no record of '{}' has bytes in '{}', the `image_key`", root_.string(),
                      labelling_.image_key),
          fmt::format("Are the records {} messages? precache inspect shows their fields.",
                      labelling_.message));
    }
    return join_records(files,
                        labelling_.classes.empty() ? enum_classes(paths) : labelling_.classes);
  }

  Source join_records(const std::vector<RecordImages>& files,
                      const std::vector<std::string>& classes) {
    Source source;
    source.classes = classes;
    source.key_rule = KeyRule::kName;
    LabelTexts texts;
    for (const RecordImages& file : files) {
      source.listing.append(file.records);
      texts.append(file.labels);
    }
    if (labelling_.kind == Labelling::Kind::kSource) {
      label_by_texts(source, texts, classes, [&](std::size_t i) {
        const ListedFile record = source.listing[i];
        return fmt::format("the record at byte {} of '{}'", record.offset,
                           shards_[record.shard].given.path.string());
      });
    }
    source.shards = std::move(shards_);
    return source;
  }

  const fs::path& root_;
  const Labelling& labelling_;
  Unpacker& unpacker_;
  const fs::path& helper_;
  const found::Shares* shares_;  // null: this run lists all
  bool is_stream_;
  std::mutex mutex_;  // for format_
  std::vector<SourceShard> shards_;
  std::optional<Format> format_;
  std::vector<TarImages> tars_;  // of shares
  std::vector<RecordImages> record_files_;
};

/// "3 .txt files" or "1 dangling link".
std::string ignored_text(const std::string& reason, std::uint64_t count) {
  if (reason.starts_with('.')) return human::count(count, reason + " file");
  return reason.ends_with("link") ? human::count(count, reason)
                                  : fmt::format("{} {}", count, reason);
}

/// The shards of a folder that has no images; none if it has some.
std::vector<fs::path> shards_instead_of_images(const fs::path& folder) {
  if (!holds_shards(folder) || walk_folder(folder).images.size() != 0) return {};
  std::error_code ignored;
  if (fs::exists(folder / kManifestName, ignored)) {
    throw InvalidArgument(
        fmt::format("'{}' is a dataset of tensors: it has a {}", folder.string(), kManifestName),
        kUseConvertHint);
  }
  return shards_in_folder(folder);
}

/// The class names next to packed shards; the shards themselves contain numbers.
std::vector<std::string> class_names_next_to(const std::vector<SourceShard>& shards) {
  const fs::path folder = shards.front().given.path.parent_path();
  if (shards.front().is_stream()) return {};
  EncodedFolder known = EncodedFolder::find(folder.empty() ? "." : folder);
  const bool all = std::ranges::all_of(shards, [&](const SourceShard& shard) {
    return shard.given.path.parent_path() == folder &&
           known.shard(shard.given.path.filename().string()) != nullptr;
  });
  return all ? std::move(known.classes) : std::vector<std::string>();
}

/// Two runs cannot share an unpacked copy.
void refuse_unpacking(const fs::path& path) {
  std::vector<std::byte> head(kHeadBytes);
  if (path != "-") {
    const File file(path, O_RDONLY);
    head.resize(std::min<std::uint64_t>(head.size(), file.size()));
    file.read_at(0, head);
    if (begins_as_shard(head) || file_kind(head).group != FileKind::Group::kDeflated) return;
  }
  throw Unsupported(
      fmt::format("'{}' has to be unpacked, so it is not listed in shares", path.string()),
      "Set `prepare` without a share.");
}

/// Refuses options that would have no effect.
void refuse_keys(const fs::path& folder, const Labelling& labelling) {
  if (labelling.has_messages()) {
    throw InvalidArgument(
        fmt::format("`proto` and `message` apply to TFRecord files, but '{}' is a folder of images",
                    folder.string()));
  }
  if (labelling.image_key.empty() && labelling.label_key.empty()) return;
  throw InvalidArgument(
      fmt::format("`{}` applies to shards, but '{}' is a folder of images",
                  labelling.image_key.empty() ? "label_key" : "image_key", folder.string()),
      "Set `labels` to say how images in folders get their labels.");
}

Source open_listed(const fs::path& source, const Labelling& labelling, Unpacker& unpacker,
                   const fs::path& helper, const found::Shares* shares) {
  SourcePath what = resolve_source(source);
  Source result;
  const bool is_folder = what.kind == SourcePath::Kind::kFolder;
  if (is_folder) what.files = shards_instead_of_images(source);
  if (!what.files.empty()) {
    result = list_shards(source, what, labelling, unpacker, helper, shares);
    if (labelling.kind == Labelling::Kind::kSource) {
      name_classes(result, class_names_next_to(result.shards));
    }
  } else {
    refuse_keys(source, labelling);
    result = shares != nullptr ? open_folder_shares(source, labelling, *shares)
                               : open_folder(source, labelling);
  }
  if (result.listing.size() == 0) {
    std::string others;
    for (const auto& [reason, count] : result.ignored) {
      others +=
          fmt::format("{} {}", others.empty() ? "; it contains" : ",", ignored_text(reason, count));
    }
    throw InvalidArgument(fmt::format("there are no images in '{}'", source.string()),
                          fmt::format("precache looks for JPEG and PNG files{}{}.",
                                      is_folder ? " in all folders below it" : "", others));
  }
  return result;
}

}  // namespace

Source open_source(const fs::path& source, const Labelling& labelling, Unpacker& unpacker,
                   const fs::path& helper) {
  return open_listed(source, labelling, unpacker, helper, nullptr);
}

Source open_shares(const fs::path& source, const Labelling& labelling, Unpacker& unpacker,
                   const fs::path& helper, const found::Shares& shares) {
  try {
    return open_listed(source, labelling, unpacker, helper, &shares);
  } catch (const found::Json::exception&) {
    throw InvalidArgument("the shares do not fit this source: it has changed",
                          "List all shares again, or set `overwrite` to ignore them.");
  }
}

found::Json list_share(const fs::path& source, const Labelling& labelling, const fs::path& helper,
                       Share share) {
  SourcePath what = resolve_source(source);
  if (what.kind == SourcePath::Kind::kFolder) what.files = shards_instead_of_images(source);
  if (what.files.empty()) {
    refuse_keys(source, labelling);
    return list_folder_share(source, labelling, share);
  }
  std::vector<fs::path> files;
  for (std::size_t i = share.index; i < what.files.size(); i += share.count) {
    files.push_back(what.files[i]);
  }
  what.files = std::move(files);
  return list_shard_share(source, what, labelling, helper);
}

}  // namespace precache
