// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/helper/image_rows.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/contents.hpp"

// The messages between the reader and its helper process: a request is the words of a command line,
// an answer is CBOR on a pipe.
namespace precache::hdf5 {

/// The subcommand of `precache` that answers; the words of a request follow it.
inline constexpr const char* kHelperCommand = "hdf5-helper";

struct HelperRequest {
  enum class Kind {
    kIndex,     // the places of the samples, for a mapping
    kRows,      // the images and their labels, for a build
    kContents,  // all objects of the file
    kCheck      // the number of images, after reading all of them
  };
  Kind kind = Kind::kIndex;
  std::filesystem::path file;
  std::filesystem::path shown_as;  // the name of the file in messages
  SampleKeys keys{};
};

[[nodiscard]] std::vector<std::string> words_of(const HelperRequest& request);
/// Throws InvalidArgument for words that words_of() did not make.
[[nodiscard]] HelperRequest request_from(std::span<char* const> words);

/// The work of the helper process: reads the file that a HelperRequest names, writes the answer to
/// standard output and exits, without the HDF5 library's exit handler. Part of precache_hdf5.
[[noreturn]] void serve_helper_request(std::span<char* const> words);

using Message = std::vector<std::uint8_t>;

/// `Answer` is a ShardIndex, ImageRows, Hdf5Contents, or a number of images as std::uint64_t.
template <typename Answer>
[[nodiscard]] Message encode(const Answer& answer);
/// CorruptData, Unsupported and InvalidArgument keep their type.
[[nodiscard]] Message encode(const std::exception_ptr& error);

/// Throws the error that was encoded, Unsupported for a message of another version, and CorruptData
/// for one that is broken or points outside of the file at `path`, which has `bytes` bytes: the
/// message comes from a process in which a hostile file may have corrupted the HDF5 library.
template <typename Answer>
[[nodiscard]] Answer decode(std::span<const std::uint8_t> message,
                            const std::filesystem::path& path, std::uint64_t bytes);

}  // namespace precache::hdf5
