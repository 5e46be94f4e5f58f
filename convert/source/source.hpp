// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convert/image/decode/array_decoder.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/label_texts.hpp"
#include "convert/source/listing.hpp"

namespace precache {

/// What lay in a source and is no sample: reason, such as an extension, and count.
using LeftOut = std::map<std::string, std::uint64_t>;

/// A file as it was when it was listed.
struct FileStamp {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
};

/// What the bytes of a shard's samples are.
struct SampleForm {
  enum class Kind {
    kImageFile,
    kRecord,  // of a TFRecord file, with its length and CRCs
    kArray
  };
  Kind kind = Kind::kImageFile;
  std::string image_key;  // of records: the feature; empty if all data is the image
  ArrayImage array;
};

/// A file of samples.
struct SourceShard {
  FileStamp given;  // as SOURCE names it; without size and time if it came through a pipe
  FileStamp data;   // what is read: the same, or a plain copy
  SampleForm form;

  [[nodiscard]] bool is_stream() const { return given.bytes == 0 && given.mtime_ns == 0; }
  [[nodiscard]] bool is_copied() const { return data.path != given.path; }
};

/// The samples of a source with their labels.
struct Source {
  Listing listing;
  std::vector<std::string>
      classes;  // names by label; empty where labels are plain numbers or there are none
  LeftOut left_out;
  std::vector<SourceShard> shards;  // empty if the samples are files of a folder
  KeyRule key_rule = KeyRule::kPath;

  /// The shards as SOURCE names them; none if the samples are files of a folder.
  [[nodiscard]] std::vector<std::filesystem::path> shard_files() const;
  /// Whether it came through a pipe, and so has no modification time.
  [[nodiscard]] bool is_stream() const { return !shards.empty() && shards.front().is_stream(); }
  /// What plain copies of shards take.
  [[nodiscard]] std::uint64_t unpacked_bytes() const;
};

/// How samples get labels.
struct Labelling {
  enum class Kind {
    kSource,  // as the source has them: by folder, or beside the samples of a shard
    kNone,
    kCsv
  };
  Kind kind = Kind::kSource;
  std::filesystem::path csv{};
  /// Fixed class names by label; empty: taken from the source, sorted.
  std::vector<std::string> classes{};
  /// Where in a shard image and label are; empty: guessed.
  std::string image_key{};
  std::string label_key{};
  /// A descriptor set, and the name of the message in it that each TFRecord is; the keys are paths
  /// in it then.
  std::filesystem::path proto{};
  std::string message{};

  [[nodiscard]] bool has_messages() const { return !proto.empty() || !message.empty(); }
};

/// As `--labels` ("folder", "none", or the path of a CSV file), `--classes`, `--image-key` and
/// `--label-key` say; all but the first may be empty. Throws as read_class_names() does.
[[nodiscard]] Labelling parse_labelling(const std::string& labels,
                                        const std::filesystem::path& classes,
                                        const std::string& image_key, const std::string& label_key);

/// Lists all images below `root`, or those that a CSV file names. Throws InvalidArgument where the
/// folder and the way of labelling do not fit, IoError where something cannot be read.
[[nodiscard]] Source open_folder(const std::filesystem::path& root, const Labelling& labelling);

struct FolderWalk;
/// The samples of a walk, of a folder or of archives of one, labelled by their first folder or not.
[[nodiscard]] Source label_by_folder(FolderWalk walk, const std::filesystem::path& root,
                                     const Labelling& labelling);

/// Takes of `source` the samples that a CSV file names.
void label_by_csv(Source& source, const std::filesystem::path& root, const Labelling& labelling);

/// Sets the labels of all samples, whose texts are in the order of the listing.
void label_by_texts(Source& source, const LabelTexts& texts,
                    const std::vector<std::string>& fixed_classes, const LabelTexts::Where& where);

/// Gives names to labels that are plain numbers, if there is one for each.
void name_classes(Source& source, const std::vector<std::string>& names);

}  // namespace precache
