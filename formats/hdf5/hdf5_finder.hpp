// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_objects.hpp"
#include "formats/shard/index_builder.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/columns.hpp"

namespace precache::hdf5 {

/// One label for each image, in one of three forms. All are empty if there are no labels.
struct FoundLabels {
  Column column;  // contiguous int64 numbers in the file
  std::vector<std::int64_t> numbers;
  std::vector<std::string> names;

  [[nodiscard]] bool empty() const {
    return column.type.empty() && numbers.empty() && names.empty();
  }
};

/// Finds the images, labels, keys and class names of a third-party file. The reader and build both
/// use it, so that they cannot disagree.
///
/// The images are the dataset that the keys name, or one of a usual name, or the only one that may
/// hold images. Links to other files are not followed. All calls throw LibraryFailure, and need
/// with_library() around them. They also throw CorruptData, Unsupported for datasets that cannot be
/// read, and InvalidArgument if the file does not have the named datasets, or keys are needed to
/// choose between several.
class Finder {
 public:
  /// Finds the images. Borrows all.
  Finder(std::span<const std::byte> file, const std::filesystem::path& path,
         const SampleKeys& wanted);

  enum class Kind {
    kArray,     // a row is an array of numbers
    kItems,     // a row is an image file; lengths differ
    kFixedRows  // a row is an image file, padded to a common length
  };
  [[nodiscard]] Kind kind() const { return images_.kind; }
  [[nodiscard]] const Dataset& images() const { return images_.dataset; }
  [[nodiscard]] std::uint64_t count() const { return images().extents[0]; }
  [[nodiscard]] const MemoryFile& file() const { return file_; }
  /// The spec of the rows of an array with elements of type `dtype`.
  [[nodiscard]] SpecGuess guess_axes(DType dtype) const;

  [[nodiscard]] FoundLabels find_labels();
  /// After find_labels() found none: a description of datasets that may be meant; or empty.
  [[nodiscard]] std::string maybe_labels() const;
  /// Strings, one for each image.
  [[nodiscard]] std::optional<Dataset> find_keys() const;
  [[nodiscard]] std::vector<std::string> find_classes() const;

  /// Throws unless it is safe to read the elements through the library: they are in this file, the
  /// library has their filters, and the file can hold that many.
  void check_storage(const Dataset& dataset) const;
  /// Throws Unsupported unless the file has enough bytes for each image, since each costs memory.
  void check_row_count() const;
  /// Throws Unsupported.
  [[noreturn]] void refuse(const std::string& reason, const std::string& hint = {}) const;

 private:
  struct Images {
    Dataset dataset;
    Kind kind;
  };
  void refuse_matlab() const;
  [[noreturn]] void refuse_keys(const std::string& reason) const;
  [[nodiscard]] std::optional<Kind> kind_of(const Dataset& dataset) const;
  [[nodiscard]] bool may_be_images(const Dataset& dataset) const;
  [[nodiscard]] bool is_readable(const Dataset& dataset) const;
  [[nodiscard]] Images find_images() const;
  [[nodiscard]] Images find_only_images(const std::string& reason) const;
  [[nodiscard]] FoundLabels read_labels(const Dataset& dataset) const;

  const SampleKeys& wanted_;
  MemoryFile file_;
  Images images_;
  std::string group_;  // of the images, with a trailing slash
  std::string mismatched_labels_;
};

}  // namespace precache::hdf5
