// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace precache {

/// The exit status. Scripts depend on these numbers.
enum class ExitCode {
  kDone = 0,
  kTooManyBad = 1,
  kUsage = 2,
  kSystem = 3,
  kCorrupt = 4,
  kUnsupported = 5,
  kDevice = 6,
};

/// The progress of a command, in words and numbers.
struct ProgressLine {
  std::optional<double> share;  // of the whole; none: the total is not known yet
  std::string text;
  std::uint64_t done = 0;
  std::uint64_t planned = 0;
  std::string unit = {};  // of both
};

}  // namespace precache

/// Lines of JSON for a program that runs this one and asked for them (docs/cli.md). One thread at a
/// time.
namespace precache::events {

/// Sends events to this file descriptor from now on. Throws InvalidArgument if it is not open for
/// writing.
void open(const std::string& descriptor);
[[nodiscard]] bool are_wanted();
/// Dropped if the reader is not ready for it.
void progress(const ProgressLine& line, double seconds);

}  // namespace precache::events

namespace precache {

/// Why a command failed.
struct Failure {
  std::string type;  // the name of the class in precache/formats/error.hpp, or another word
  std::string message;
  std::string hint = {};
  std::filesystem::path path = {};  // empty: none
  std::optional<std::uint64_t> offset = {};
  int error_number = 0;  // errno; 0: none
};

/// Prints the failure on stderr, with the names of flags, and sends it as an event, with the names
/// of fields, which the program that reads it may know by another name. A reader that does not read
/// for two seconds misses the event.
ExitCode fail(ExitCode code, const Failure& failure);

/// The same without allocating memory.
ExitCode fail_out_of_memory() noexcept;

/// Ends this process as SIGTERM does once its parent, whose process id `parent` must be, has ended.
void end_with_parent(const std::string& parent);

}  // namespace precache
