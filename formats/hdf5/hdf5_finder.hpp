// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_objects.hpp"
#include "formats/shard/sample_keys.hpp"
#include "formats/shard/spec_guess.hpp"
#include "precache/formats/columns.hpp"

namespace precache::hdf5 {

/// One label for each image, in one of three forms; all are empty where there are no labels.
struct FoundLabels {
  Column column;  // int64 numbers that lie in one piece of the file
  std::vector<std::int64_t> numbers;
  std::vector<std::string> names;

  [[nodiscard]] bool empty() const {
    return column.type.empty() && numbers.empty() && names.empty();
  }
};

/// Decides which datasets of a file are its images, labels, keys and class names, for readers and
/// builds alike.
///
/// The images are what the keys name, or a dataset of a usual name, or the only one that may hold
/// images. Nothing is followed to other files. All calls throw LibraryFailure, and need
/// with_library() around them; they throw CorruptData, Unsupported for what cannot be read, and
/// InvalidArgument if the keys do not fit the file, or are needed to choose among several datasets.
class Finder {
 public:
  /// Finds the images. Borrows all.
  Finder(std::span<const std::byte> file, const std::filesystem::path& path,
         const SampleKeys& wanted);

  enum class Kind {
    kArray,     // a row is an array of numbers
    kItems,     // a row is an image file, of a length of its own
    kFixedRows  // a row is an image file, padded to the length of all
  };
  [[nodiscard]] Kind kind() const { return images_.kind; }
  [[nodiscard]] const Dataset& images() const { return images_.dataset; }
  [[nodiscard]] std::uint64_t count() const { return images().extents[0]; }
  [[nodiscard]] const MemoryFile& file() const { return file_; }
  /// What the axes of an array are, for elements of a type.
  [[nodiscard]] SpecGuess guess_axes(DType dtype) const;

  [[nodiscard]] FoundLabels find_labels();
  /// After find_labels() found none: what there is that may be meant; else empty.
  [[nodiscard]] std::string maybe_labels() const;
  /// Strings, one for each image.
  [[nodiscard]] std::optional<Dataset> find_keys() const;
  [[nodiscard]] std::vector<std::string> find_classes() const;

  /// Throws unless the library may be asked for the elements: they are in this file, the library
  /// has their filters, and the file can hold so many.
  void check_storage(const Dataset& dataset) const;
  /// Throws Unsupported unless the file has enough bytes for each image: each costs memory.
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
  std::string group_;  // of the images, with a slash at its end
  std::string mismatched_labels_;
};

}  // namespace precache::hdf5
