// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/shard/shard_index.hpp"

namespace precache {

/// The spec of an array of a third-party file as an image, or why it is not an image.
struct SpecGuess {
  std::optional<TensorSpec> spec;
  std::string unsupported_reason;
};

/// Three extents are chw if the first is 1 to 4, else hwc if the last is; two are one channel.
[[nodiscard]] SpecGuess guess_spec(DType dtype, std::span<const std::uint64_t> extents);

/// As above, where the order of three axes is known.
[[nodiscard]] SpecGuess spec_of(DType dtype, Layout layout, std::span<const std::uint64_t> extents);

/// The place of a sample's label or key, if a column can read it.
struct ValueLocation {
  enum class Kind {
    kAbsent,    // the sample has none
    kColumn,    // a column of `type` reads it at `offset`
    kElsewhere  // the sample has one, but no column type reads it
  };
  Kind kind = Kind::kAbsent;
  std::uint64_t offset = 0;
  std::string_view type;  // of a string literal
};

/// One sample, as a scanner found it.
struct FoundSample {
  std::uint64_t record = 0;
  std::uint64_t record_end = 0;
  std::uint64_t payload = 0;
  std::uint64_t payload_bytes = 0;
  std::optional<TensorSpec> spec{};
  std::string unsupported_reason{};  // why there is no spec
  bool shape_unknown = false;        // any spec of this size may be right
  std::int64_t label = -1;
  std::string_view label_name{};  // of a sample whose label is not a number
  std::string_view key{};
  ValueLocation label_spot{};
  ValueLocation key_spot{};
  ValueLocation size_spot{};  // of the height and width before resizing, two int32
};

/// Builds an index from samples: columns if all records have one stride and the same spec and can
/// be read by column types, else a table.
class IndexBuilder {
 public:
  /// Samples of unknown spec get `given` if they have its size. So do samples whose order of axes
  /// was guessed.
  IndexBuilder(Format format, std::uint64_t file_bytes, std::filesystem::path path,
               const std::optional<TensorSpec>& given = {});

  /// Throws CorruptData if the keys take more bytes than the file, as only a hostile file can make
  /// them.  REQUIRES: the payload is inside the file.
  void add(const FoundSample& sample);
  [[nodiscard]] std::uint64_t samples() const { return index_.places.size(); }
  /// Notes a value that has the name of a label but cannot be one. Keeps the first.
  void note_unfit_labels(const std::string& what) {
    if (index_.mismatched_labels.empty()) index_.mismatched_labels = what;
  }
  /// Notes a value of the first sample that the index leaves out.
  void note_left_out(std::string_view name) { index_.left_out.emplace_back(name); }
  /// Notes that the label of a sample is the text of a `.txt` file, or would be if the text were
  /// shorter.
  void note_text(bool is_label) { ++(is_label ? index_.text_labels : index_.long_texts); }
  [[nodiscard]] ShardIndex finish() &&;

 private:
  /// Checks whether one value of every sample so far has one stride.
  class Track {
   public:
    void add(const ValueLocation& spot);
    [[nodiscard]] bool is_regular() const { return is_regular_; }
    /// `only_stride` is the stride for a shard with one sample.
    [[nodiscard]] Column column(std::uint64_t only_stride) const;

   private:
    ValueLocation first_;
    std::uint64_t last_ = 0;
    std::uint64_t stride_ = 0;
    std::uint64_t count_ = 0;
    bool is_regular_ = true;
  };

  void note_spec(const FoundSample& sample);
  /// Makes the column `size` if all samples have one.
  void add_size_column(ShardColumns& columns);
  /// The label as in ShardIndex.
  [[nodiscard]] std::int64_t label_of(const FoundSample& sample);
  [[nodiscard]] std::optional<TensorSpec> spec_of(const FoundSample& sample) const;

  std::filesystem::path path_;
  std::optional<TensorSpec> given_;
  ShardIndex index_;
  std::uint64_t first_record_bytes_ = 0;
  Track image_;
  Track label_;
  Track key_;
  Track size_;
  std::unordered_map<std::string, std::int64_t> name_numbers_;  // as in label_names
  bool has_numbers_ = false;
};

}  // namespace precache
