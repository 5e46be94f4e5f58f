// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/shard/shard_index.hpp"

namespace precache {

/// Where a sample's label or key stands, as far as a column could find it there.
struct ValueLocation {
  enum class Kind {
    kAbsent,    // the sample has none
    kColumn,    // a column of `type` reads it at `offset`
    kElsewhere  // it has one that no column type reads
  };
  Kind kind = Kind::kAbsent;
  std::uint64_t offset = 0;
  std::string_view type;  // of a string that stays
};

/// What a scanner found of one sample.
struct FoundSample {
  std::uint64_t record = 0;
  std::uint64_t record_end = 0;
  std::uint64_t payload = 0;
  std::uint64_t payload_bytes = 0;
  std::optional<TensorSpec> spec{};
  std::string obstacle{};      // why there is no spec
  bool shape_unknown = false;  // nothing contradicts any spec of that size
  std::int64_t label = -1;
  std::string_view label_name{};  // of a sample whose label is no number
  std::string_view key{};
  ValueLocation label_spot{};
  ValueLocation key_spot{};
};

/// Puts samples together to an index: a table, or columns if every record lies at one stride, has
/// the same spec and can be read by column types.
class IndexBuilder {
 public:
  /// Samples that tell nothing of their spec are taken for `given` if they have its size; so are
  /// those whose order of axes is but guessed.
  IndexBuilder(Format format, std::uint64_t file_bytes, std::filesystem::path path,
               const std::optional<TensorSpec>& given = {});

  /// REQUIRES: the payload lies in the file. Throws CorruptData if the keys take more bytes than
  /// the file, as only a hostile one can make them.
  void add(const FoundSample& sample);
  [[nodiscard]] std::uint64_t samples() const { return index_.places.size(); }
  /// Notes what has the name of a label but cannot be one; the first is kept.
  void note_unfit_labels(const std::string& what) {
    if (index_.mismatched_labels.empty()) index_.mismatched_labels = what;
  }
  /// Notes that the label of a sample is the text of a `.txt` file, or would be if it were shorter.
  void note_text(bool is_label) { ++(is_label ? index_.text_labels : index_.long_texts); }
  [[nodiscard]] ShardIndex finish() &&;

 private:
  /// Whether one value of every sample so far lies at one stride.
  class Track {
   public:
    void add(const ValueLocation& spot);
    [[nodiscard]] bool is_regular() const { return is_regular_; }
    /// `only_stride` is that of a shard with one sample.
    [[nodiscard]] Column column(std::uint64_t only_stride) const;

   private:
    ValueLocation first_;
    std::uint64_t last_ = 0;
    std::uint64_t stride_ = 0;
    std::uint64_t count_ = 0;
    bool is_regular_ = true;
  };

  void note_spec(const FoundSample& sample);
  /// As ShardIndex has it.
  [[nodiscard]] std::int64_t label_of(const FoundSample& sample);
  [[nodiscard]] std::optional<TensorSpec> spec_of(const FoundSample& sample) const;

  std::filesystem::path path_;
  std::optional<TensorSpec> given_;
  ShardIndex index_;
  std::uint64_t first_record_bytes_ = 0;
  Track image_;
  Track label_;
  Track key_;
  std::unordered_map<std::string, std::int64_t> name_numbers_;  // as in label_names
  bool has_numbers_ = false;
};

}  // namespace precache
