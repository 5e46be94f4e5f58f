// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fits Catch2 2.13 and 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

/// Skips a test whose data is missing. Catch2 has SKIP only since 3.3.
#define PRECACHE_SKIP(message) \
  do {                         \
    WARN(message);             \
    SUCCEED();                 \
    return;                    \
  } while (false)

namespace precache::test {

inline auto contains(const std::string& text) {
#if CATCH_VERSION_MAJOR >= 3
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Matchers::Contains(text);
#endif
}

/// The message of the error of this type that `call` throws; fails the test if it throws none or
/// another.
template <typename Error, typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    FAIL("another error was thrown: " << error.what());
  }
  FAIL("no error was thrown");
  return {};
}

}  // namespace precache::test
