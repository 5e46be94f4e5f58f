// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

/// Puts the built command first on PATH, before any test runs.
[[maybe_unused]] const bool is_on_path = [] {
  const char* const path = std::getenv("PATH");
  const std::string folder = std::filesystem::path(PRECACHE_COMMAND).parent_path().string();
  return ::setenv("PATH", (folder + ":" + (path != nullptr ? path : "")).c_str(), 1) == 0;
}();

}  // namespace
