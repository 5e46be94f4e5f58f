// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/shard/spec_guess.hpp"

/// The header of NumPy's .npy files, versions 1.0 to 3.0.
namespace precache::npy {

struct Header {
  std::string descr;  // empty for an array of records
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t header_bytes = 0;  // the array follows
  std::uint64_t array_bytes = 0;   // all of the rest where `descr` does not tell an element's size
};

/// Reads the header of `file`, a whole .npy file that lies at `offset` of `path`. Throws
/// CorruptData if it is malformed or the array does not fit, Unsupported for an unknown version.
[[nodiscard]] Header read_header(std::span<const std::byte> file, const std::filesystem::path& path,
                                 std::uint64_t offset);

/// What the array is as an image.
[[nodiscard]] SpecGuess guess_spec(const Header& header);

}  // namespace precache::npy
