// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace precache::fuzz {

/// Ends the run and keeps the input if a condition fails that must hold for any input.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline volatile std::byte touched{};

/// Reads the first and the last byte, so that AddressSanitizer checks them.
inline void touch(std::span<const std::byte> bytes) {
  if (!bytes.empty()) touched = bytes.front() ^ bytes.back();
}

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace precache::fuzz
