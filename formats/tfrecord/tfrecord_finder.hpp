// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/shard/shard_index.hpp"
#include "formats/tfrecord/example_fields.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/tensor_spec.hpp"

/// Finds the samples of third-party TFRecord files. The reader and build both use it, so that they
/// cannot disagree.
namespace precache::tfrecord {

/// The sample in one record. Pointers borrow from the finder until its next call.
struct FoundRecord {
  Record record;
  MessageKind kind = MessageKind::kOther;
  bool has_image = false;
  /// The image; all data of the record if it has no image or is not an Example.
  std::span<const std::byte> payload{};
  std::string_view image_kind{};  // "JPEG" … from its first bytes; empty: raw pixels or no image
  std::optional<TensorSpec> spec{};  // of raw pixels, if other features state their shape
  const Feature* label = nullptr;
  const Feature* key = nullptr;
};

/// Walks over the records of a file once.
///
/// The first record with an image decides which feature is the image of all records: the one that
/// was named; else one of a usual name that holds a JPEG or PNG file, or pixels of a known shape;
/// else a JPEG or PNG file of any name, another image file, another feature of a usual name, or the
/// largest one. Label and key are the features of the first usual name in each record.
class SampleFinder {
 public:
  /// Borrows all three.
  SampleFinder(std::span<const std::byte> file, const std::filesystem::path& path,
               const SampleKeys& keys)
      : keys_(keys), file_(file), records_(file, path), image_name_(keys.image) {}

  /// Null at the end. Throws CorruptData as RecordCursor does.
  [[nodiscard]] const FoundRecord* next();

  /// Of the current record.
  [[nodiscard]] const std::vector<Feature>& features() const { return features_; }
  /// Of the current record: the names of features that are neither image nor label nor key.
  [[nodiscard]] std::vector<std::string_view> other_names() const;
  /// The name of the image's feature; empty if none was named or found so far.
  [[nodiscard]] const std::string& image_name() const { return image_name_; }

 private:
  using Names = std::span<const std::string_view>;
  using Fits = bool (*)(const Feature&);

  [[nodiscard]] const Feature* find(std::string_view name, Fits fits) const;
  [[nodiscard]] const Feature* find_first(Names names, Fits fits) const;
  [[nodiscard]] const Feature* find_label() const;
  [[nodiscard]] std::optional<TensorSpec> spec_of(std::uint64_t bytes) const;
  [[nodiscard]] std::size_t image_rank(const Feature& feature) const;
  void choose_image();

  const SampleKeys& keys_;
  std::span<const std::byte> file_;
  RecordCursor records_;
  std::string image_name_;
  std::vector<Feature> features_;
  FoundRecord found_;
};

/// Why a feature is not a label, as in "'label' has 3 values". Empty if it is a label: a single
/// integer, or a single text of at most kLongestLabel bytes.
[[nodiscard]] std::string unfit_label(const Feature& feature);

}  // namespace precache::tfrecord
