// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>
#include <vector>

#include "formats/shard/shard_index.hpp"
#include "precache/formats/contents.hpp"

// What a scanning process tells the one that asked: an index or the contents, or why there is none.
// Both are the same program, so the message needs no version.
namespace precache::hdf5 {

[[nodiscard]] std::vector<std::uint8_t> encode(const ShardIndex& index);
[[nodiscard]] std::vector<std::uint8_t> encode(const Hdf5Contents& contents);
/// A number of images.
[[nodiscard]] std::vector<std::uint8_t> encode(std::uint64_t count);
/// CorruptData, Unsupported and InvalidArgument stay what they are.
[[nodiscard]] std::vector<std::uint8_t> encode(const std::exception_ptr& error);

/// The index of the file at `path`, which has `bytes` bytes. Throws the error that was encoded, and
/// CorruptData for a message that is none or whose places lie outside the file: a library that was
/// led astray may have written it.
[[nodiscard]] ShardIndex decode(std::span<const std::uint8_t> message,
                                const std::filesystem::path& path, std::uint64_t bytes);
/// The same of the contents.
[[nodiscard]] Hdf5Contents decode_contents(std::span<const std::uint8_t> message,
                                           const std::filesystem::path& path);

/// The same of a number of images.
[[nodiscard]] std::uint64_t decode_count(std::span<const std::uint8_t> message,
                                         const std::filesystem::path& path);

}  // namespace precache::hdf5
