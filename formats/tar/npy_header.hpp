// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/shard/index_builder.hpp"

/// The header of NumPy's .npy files, versions 1.0 to 3.0.
namespace precache::npy {

struct Header {
  std::string descr;  // empty for an array of records
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t header_bytes = 0;  // the array follows
  std::uint64_t array_bytes = 0;  // all of the rest if `descr` does not give the size of an element
};

/// Reads the header of `file`, a whole .npy file at `offset` of `path`. Throws CorruptData if it is
/// malformed or the array does not fit, Unsupported for an unknown version.
[[nodiscard]] Header read_header(std::span<const std::byte> file, const std::filesystem::path& path,
                                 std::uint64_t offset);

/// Interprets the array as an image.
[[nodiscard]] SpecGuess guess_spec(const Header& header);

}  // namespace precache::npy
