// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_id.hpp"
#include "precache/formats/tensor_spec.hpp"

// Finding one's way in files of others. All of it throws LibraryFailure, and wants the LibraryLock
// to be held.
namespace precache::hdf5 {

/// A file in memory that is open in the library, for reading. Nothing is copied but what the
/// library reads.
class MemoryFile {
 public:
  /// Borrows `file`.
  explicit MemoryFile(std::span<const std::byte> file);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  operator hid_t() const { return *id_; }
  /// Bytes before the file's own; its addresses count from there.
  [[nodiscard]] std::uint64_t user_block() const;
  /// Whether its addresses and lengths have eight bytes, as in all files but some rare ones.
  [[nodiscard]] bool has_wide_addresses() const;

 private:
  std::span<const std::byte> file_;
  std::optional<Id> id_;
};

/// An open dataset with what is asked of it all the time.
struct Dataset {
  std::string name;
  Id id;
  Id type;
  Id create;  // its creation properties
  std::vector<std::uint64_t> extents;

  /// None if the product does not fit 64 bits.
  [[nodiscard]] std::optional<std::uint64_t> elements() const;
  [[nodiscard]] H5T_class_t type_class() const { return H5Tget_class(type); }
  [[nodiscard]] H5D_layout_t layout() const { return H5Pget_layout(create); }
  [[nodiscard]] bool lies_in_other_files() const;
  /// As in "shuffle", "gzip".
  [[nodiscard]] std::vector<std::string> filters() const;
  /// Those of them that this library does not have.
  [[nodiscard]] std::vector<std::string> missing_filters() const;
  /// "int32", "big-endian float64" …
  [[nodiscard]] std::string type_text() const;
  /// Where in the file its elements lie in one piece; none if they do not, or have no place yet.
  [[nodiscard]] std::optional<std::uint64_t> contiguous_offset() const;
};

/// Whether each of its elements is a row of bytes, of a length of its own.
[[nodiscard]] bool is_various_bytes(const Dataset& dataset);

/// A name without the slash that it may begin with.
[[nodiscard]] std::string without_slash(const std::string& name);

/// What an attribute `layout` of `chw` or `hwc` says.
[[nodiscard]] std::optional<Layout> order_of(const Dataset& images);

/// Why images that MATLAB wrote are refused, and what to do; empty for others.
///
/// MATLAB counts the first axis fastest, so HDF5 sees the axes of its arrays in reverse, height and
/// width swapped, and nothing but an attribute tells.
struct MatlabRefusal {
  std::string reason;
  std::string hint;
};
[[nodiscard]] std::optional<MatlabRefusal> refuse_matlab(const Dataset& images);

/// None if a group on the way, or `name` itself, is not there, is a link of another kind than hard,
/// or no dataset with extents.
[[nodiscard]] std::optional<Dataset> open_dataset(hid_t file, const std::string& name);

/// The names of all datasets that hard links lead to, within limits that no file of images needs.
[[nodiscard]] std::vector<std::string> dataset_names(hid_t file);

}  // namespace precache::hdf5
