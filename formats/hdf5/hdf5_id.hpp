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

#include "formats/hdf5/exit_handler.hpp"
#include "precache/formats/dtype.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {

/// What the library said when a call failed. It keeps that only until the next call.
struct LibraryFailure {
  LibraryFailure();
  int code;            // errno, as far as the library left it
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
  /// Closing writes what is still in memory, so whoever wrote has to see it succeed.
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

/// The way into the library, which prints nothing in the meantime: errors are ours to report.
///
/// The library is built thread-safe or not; one thread at a time is right for both.
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

/// Calls what writes files, alone in the library. Its failures become IoError of `path`.
///
/// After a failure to close, the library is not to be trusted: later calls fail as the first one
/// did, whose cause is also theirs, and the library is kept from its work at the end of the
/// process.
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

[[nodiscard]] Id image_type(DType dtype);
/// UTF-8, padded with zeros.
[[nodiscard]] Id string_type(std::size_t bytes);

/// Texts one after the other, each padded with zeros to the same width.
struct PackedTexts {
  std::size_t width = 1;
  std::string bytes;
};
[[nodiscard]] PackedTexts pack(std::span<const std::string> texts);

void add_attribute(hid_t object, const char* attribute, std::string_view text);
/// An array of strings of one width; none if there are no texts. In files of version 1.8 and later
/// the library stores more than 64 KiB outside of the object's header.
void add_attribute(hid_t object, const char* attribute, std::span<const std::string> texts);

}  // namespace precache::hdf5
