// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convert/image/decode/array_decoder.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/label_files.hpp"
#include "convert/source/label_texts.hpp"
#include "convert/source/listing.hpp"
#include "precache/convert/job.hpp"
#include "precache/formats/named_column.hpp"

namespace precache {
namespace found {
class Shares;
}

/// Files of a source that are not samples: count by reason, such as an extension.
using IgnoredFiles = std::map<std::string, std::uint64_t>;

/// A file as it was when it was listed.
struct FileStamp {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
};

/// How the samples of a shard are stored.
struct SampleForm {
  enum class Kind {
    kImageFile,
    kRecord,  // of a TFRecord file, with its length and CRCs
    kArray
  };
  Kind kind = Kind::kImageFile;
  std::string image_key;  // of records: the feature; empty: all data is the image
  ArrayImage array;
};

/// A file of samples.
struct SourceShard {
  FileStamp given;  // as SOURCE names it; a pipe has no size and time
  FileStamp data;   // the file that is read: the same, or a plain copy
  SampleForm form;

  [[nodiscard]] bool is_stream() const { return given.bytes == 0 && given.mtime_ns == 0; }
  [[nodiscard]] bool is_copied() const { return data.path != given.path; }
};

/// The samples of a source with their labels.
struct Source {
  Listing listing;
  std::vector<NamedColumn> targets;  // the columns of ListedFile::targets
  std::vector<std::string>
      classes;  // names by label; empty where labels are plain numbers or there are none
  IgnoredFiles ignored;
  std::vector<SourceShard> shards;  // empty if the samples are files of a folder
  KeyRule key_rule = KeyRule::kPath;

  /// The shards as SOURCE names them; none if the samples are files of a folder.
  [[nodiscard]] std::vector<std::filesystem::path> shard_files() const;
  /// Whether the source is a pipe, which has no modification time.
  [[nodiscard]] bool is_stream() const { return !shards.empty() && shards.front().is_stream(); }
  /// The size of all plain copies of shards.
  [[nodiscard]] std::uint64_t unpacked_bytes() const;
};

/// How samples get labels.
struct Labelling {
  enum class Kind {
    kSource,  // as the source has them: by folder, or next to the samples of a shard
    kNone,
    kCsv,
    kRegex  // by the paths of files in a folder
  };
  Kind kind = Kind::kSource;
  std::filesystem::path csv{};
  std::string path_column{};  // of the CSV file; empty: it has the usual name
  std::string label_column{};
  std::string regex{};
  /// Fixed class names by label; empty: taken from the source, sorted.
  std::vector<std::string> classes{};
  /// Where in a shard image and label are; empty: guessed.
  std::string image_key{};
  std::string label_key{};
  /// A descriptor set, and the name of the message in each TFRecord; then the keys are paths of
  /// fields.
  std::filesystem::path proto{};
  std::string message{};

  [[nodiscard]] bool has_messages() const { return !proto.empty() || !message.empty(); }
};

/// Throws InvalidArgument if options contradict each other, and as read_class_names() does.
[[nodiscard]] Labelling parse_labelling(const ImageJobOptions& options);

/// Lists all images below `root`, or those that a CSV file names. Throws InvalidArgument if the
/// labels cannot be found that way, IoError if something cannot be read.
[[nodiscard]] Source open_folder(const std::filesystem::path& root, const Labelling& labelling);

/// A share of what open_folder() finds, for found::save(); and all of it from the shares.
[[nodiscard]] nlohmann::ordered_json list_folder_share(const std::filesystem::path& root,
                                                       const Labelling& labelling, Share share);
[[nodiscard]] Source open_folder_shares(const std::filesystem::path& root,
                                        const Labelling& labelling, const found::Shares& shares);

/// The name of a sample that has none: after its shard and its place in it.
[[nodiscard]] std::string numbered_name(const std::filesystem::path& shard, std::size_t number);

struct FolderWalk;
/// The samples of a walk over a folder, or over archives of one. Labels them by their first folder
/// if `labelling` says so.
[[nodiscard]] Source label_by_folder(FolderWalk walk, const std::filesystem::path& root,
                                     const Labelling& labelling);

/// The CSV file of `labelling` with all paths in one form, below the root and each once. Throws
/// InvalidArgument and IoError.
[[nodiscard]] CsvTable read_csv_table(const Labelling& labelling,
                                      const std::filesystem::path& root);

/// The rows of a CSV file of paths and splits, in the same form. Throws the same.
[[nodiscard]] std::vector<CsvLabel> read_split_rows(const std::filesystem::path& csv,
                                                    const std::filesystem::path& root);

/// Keeps the samples of `source` that a CSV file names.
void label_by_csv(Source& source, const std::filesystem::path& root, const Labelling& labelling);

/// Sets the labels of all samples, whose texts are in the order of the listing.
void label_by_texts(Source& source, const LabelTexts& texts,
                    const std::vector<std::string>& fixed_classes, const LabelTexts::Where& where);

/// Gives names to labels that are plain numbers, if there is a name for each.
void name_classes(Source& source, const std::vector<std::string>& names);

}  // namespace precache
