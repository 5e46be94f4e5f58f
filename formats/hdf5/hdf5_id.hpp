// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the sources of this folder only: hdf5.h stays out of every other includer.

#include <hdf5.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "formats/hdf5/hdf5_writers.hpp"
#include "precache/formats/dtype.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {

/// The library's report of a failed call. The library keeps it only until the next call.
struct LibraryFailure {
  LibraryFailure();
  int code;            // errno, if the library did not change it
  std::string reason;  // of the innermost function that failed
};

/// An HDF5 identifier that closes itself. HDF5 reports failure by negative values.
class Id {
 public:
  Id(hid_t id, herr_t (*close_function)(hid_t)) : id_(id), close_(close_function) {
    if (id < 0) throw LibraryFailure();
  }
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&&) = delete;
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  /// Closing writes buffered data, so after writing, check that it succeeds.
  void close() {
    if (close_(std::exchange(id_, -1)) < 0) throw LibraryFailure();
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

inline void check(herr_t status) {
  if (status < 0) throw LibraryFailure();
}

/// Enters the library, and keeps it from printing errors, which precache reports itself.
///
/// One thread at a time, because the library may not be built thread-safe.
class LibraryLock {
 public:
  LibraryLock();
  LibraryLock(const LibraryLock&) = delete;
  LibraryLock& operator=(const LibraryLock&) = delete;
  ~LibraryLock();

 private:
  std::unique_lock<std::mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

/// The first failure of write() in this process.
[[nodiscard]] std::optional<IoError>& first_write_failure();

/// Calls a function that writes files, alone in the library. Its failures become IoError of `path`.
///
/// After a failure to close a file, the library cannot be trusted: later calls fail with the first
/// error, and the exit handler of the library does not run.
template <typename Call>
auto write(const std::filesystem::path& path, const Call& call) {
  forgo_exit_handler();
  const LibraryLock lock;
  auto& first = first_write_failure();
  if (first) throw IoError(*first);
  try {
    errno = 0;
    return call();
  } catch (const LibraryFailure& failure) {
    first.emplace("the HDF5 library cannot write to", path, failure.code);
    throw IoError(*first);
  }
}

/// The dataset of CRCs, which only precache writes.
inline constexpr const char* kCrcName = "crc32c";
/// The attribute of the CRCs with the names of the named columns, whose values they cover, in their
/// order and with commas between them.
inline constexpr const char* kColumnsAttribute = "columns";
/// The attribute of the labels with the class names. It is not a dataset, because readers of rows
/// take every dataset of a file for a column.
inline constexpr const char* kClassesAttribute = "classes";

/// Access properties of new files that libraries of `version` and later can read.
[[nodiscard]] Id new_file_access(H5F_libver_t version);
/// Creates or replaces a file. Neither it nor its datasets have time stamps, which would make equal
/// runs differ.
[[nodiscard]] Id create_file(const std::filesystem::path& path, hid_t access);
[[nodiscard]] Id new_dataset_properties();

[[nodiscard]] Id image_type(DType dtype);
/// Of the values in a named column.
[[nodiscard]] Id value_type(ValueType type);
/// UTF-8, padded with zeros.
[[nodiscard]] Id string_type(std::size_t bytes);

/// Texts one after another, each padded with zeros to the same width.
struct PackedTexts {
  std::size_t width = 1;
  std::string bytes;
};
[[nodiscard]] PackedTexts pack(std::span<const std::string> texts);

void add_attribute(hid_t object, const char* attribute, std::string_view text);
/// Stores class names, if there are any, in an attribute of the labels. In files of version 1.8 and
/// later, the library stores more than 64 KiB outside of the object's header.
void add_classes(hid_t labels, std::span<const std::string> classes);

}  // namespace precache::hdf5
