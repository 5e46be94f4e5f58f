// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace precache {

/// Base of all errors that end an operation.
///
/// `what()` says what happened, where and why in one line.
class Error : public std::runtime_error {
 public:
  /// The next thing to do, in sentences; may be empty.
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
  /// Appends a sentence, for callers that know more than the code that threw.
  void add_hint(const std::string& sentence) { hint_ += (hint_.empty() ? "" : " ") + sentence; }

 protected:
  explicit Error(const std::string& message, std::string hint = {})
      : std::runtime_error(message), hint_(std::move(hint)) {}

 private:
  std::string hint_;
};

/// The request is wrong.
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message, std::string hint = {})
      : Error(message, std::move(hint)) {}
};

/// The system refused.
class IoError : public Error {
 public:
  /// `action` as in "cannot read"; the message becomes "ACTION 'PATH': TEXT OF ERRNO".
  IoError(const std::string& action, std::filesystem::path path, int code, std::string hint = {});
  /// The file or folder.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// The errno, or 0 where there is none.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  std::filesystem::path path_;
  int code_;
};

/// Bytes break their specification.
class CorruptData : public Error {
 public:
  /// The message becomes "'PATH' is corrupt at byte OFFSET: REASON".
  CorruptData(std::filesystem::path path, std::uint64_t offset, const std::string& reason);
  /// The file.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// The byte of the file where the damage was seen.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// The message without path and offset.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  std::filesystem::path path_;
  std::uint64_t offset_;
  std::string reason_;
};

/// Valid, but not in this build or version.
class Unsupported : public Error {
 public:
  explicit Unsupported(const std::string& message, std::string hint = {})
      : Error(message, std::move(hint)) {}
};

/// A GPU, or the software that drives it, refused.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message, std::string hint = {})
      : Error(message, std::move(hint)) {}
};

}  // namespace precache
