// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/exit_code.hpp"
#include "cli/progress_line.hpp"

/// What a program that runs this one hears of it: lines of JSON (docs/cli.md), if it asked for
/// them. One thread at a time.
namespace precache::events {

/// From now on they go to this file descriptor. Throws InvalidArgument if it cannot be written to.
void open(const std::string& descriptor);
[[nodiscard]] bool are_wanted();
/// Left out where it would have to wait for the reader.
void progress(const ProgressLine& line, double seconds);

}  // namespace precache::events

namespace precache {

/// What ended a command.
struct Failure {
  std::string type;  // the name of the class in precache/formats/error.hpp, or another word
  std::string message;
  std::string hint = {};
  std::filesystem::path path = {};  // empty: none
  std::optional<std::uint64_t> offset = {};
  int error_number = 0;  // errno; 0: none
};

/// Tells it to people, on stderr and with the names of flags, and as an event, which keeps the
/// names of fields: the program that reads it has its own words for them. A reader of events that
/// does not read for seconds misses it.
ExitCode fail(ExitCode code, const Failure& failure);

/// The same where there is no memory: it needs none.
ExitCode fail_out_of_memory() noexcept;

/// The process ends tidily, as by SIGTERM, when the one that started it, which must be `parent`,
/// has ended.
void end_with_parent(const std::string& parent);

}  // namespace precache
