// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct z_stream_s;  // of zlib

namespace precache {

/// The first bytes of each member of a gzip file.
inline constexpr std::string_view kGzipMagic = "\x1f\x8b";

/// Unpacks a gzip file, which may have several members, or a zlib file, from start to end.
///
/// Use one from one thread at a time.
class Inflater {
 public:
  using Append = std::function<void(std::span<const std::byte>)>;

  /// `path` is for messages.
  explicit Inflater(std::filesystem::path path);
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  /// Takes the next bytes of the file and calls `append` with the unpacked bytes. Throws
  /// CorruptData.
  void feed(std::span<const std::byte> bytes, const Append& append);
  /// Throws CorruptData if the file is incomplete.
  void finish() const;

 private:
  void begin_member(std::byte first);
  /// Returns how many of the bytes belong to the member.
  [[nodiscard]] std::size_t unpack_member(std::span<const std::byte> bytes, const Append& append);
  [[noreturn]] void fail(const std::string& reason) const;

  std::filesystem::path path_;
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::vector<std::byte> piece_;
  std::uint64_t offset_ = 0;  // of the next byte that feed() gets
  std::uint64_t members_ = 0;
  bool is_in_member_ = false;
  bool has_zeros_ = false;  // after the last member
};

/// The first bytes that a gzip or zlib file unpacks to.
struct InflatedHead {
  std::vector<std::byte> bytes;
  bool is_whole = false;    // there is no more
  bool is_damaged = false;  // in the part that was read
};

/// Unpacks at most `limit` bytes; of a damaged file, those before the damage.
[[nodiscard]] InflatedHead inflate_head(std::span<const std::byte> file, std::size_t limit);

}  // namespace precache
