// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/helper/image_rows.hpp"
#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/contents.hpp"

// What the reader and its helper process tell each other: the request is the words of a command
// line, the answer is CBOR on a pipe.
namespace precache::hdf5 {

/// The subcommand of `precache` that answers; the words of a request follow it.
inline constexpr const char* kHelperCommand = "hdf5-helper";

struct HelperRequest {
  enum class Kind {
    kIndex,     // where the samples lie, for a mapping
    kRows,      // the images and their labels, for a build
    kContents,  // all objects of the file
    kCheck      // how many images there are, after all of them were read
  };
  Kind kind = Kind::kIndex;
  std::filesystem::path file;
  std::filesystem::path shown_as;  // the name of the file in messages
  SampleKeys keys{};
};

[[nodiscard]] std::vector<std::string> words_of(const HelperRequest& request);
/// Throws InvalidArgument for words that words_of() did not make.
[[nodiscard]] HelperRequest request_from(std::span<char* const> words);

using Message = std::vector<std::uint8_t>;

[[nodiscard]] Message encode(const ShardIndex& index);
[[nodiscard]] Message encode(const ImageRows& rows);
[[nodiscard]] Message encode(const Hdf5Contents& contents);
/// A number of images.
[[nodiscard]] Message encode(std::uint64_t count);
/// CorruptData, Unsupported and InvalidArgument stay what they are.
[[nodiscard]] Message encode(const std::exception_ptr& error);

// All of these throw the error that was encoded, Unsupported for a message of another version, and
// CorruptData for one that is broken or points outside of the file at `path`, which has `bytes`
// bytes: a file may have led the HDF5 library astray that wrote it.

[[nodiscard]] ShardIndex decode_index(std::span<const std::uint8_t> message,
                                      const std::filesystem::path& path, std::uint64_t bytes);
[[nodiscard]] ImageRows decode_rows(std::span<const std::uint8_t> message,
                                    const std::filesystem::path& path, std::uint64_t bytes);
[[nodiscard]] Hdf5Contents decode_contents(std::span<const std::uint8_t> message,
                                           const std::filesystem::path& path);
[[nodiscard]] std::uint64_t decode_count(std::span<const std::uint8_t> message,
                                         const std::filesystem::path& path);

}  // namespace precache::hdf5
