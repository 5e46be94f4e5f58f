// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_job.hpp"

#include <fmt/format.h>

#include "formats/bytes/utf8.hpp"
#include "precache/formats/error.hpp"

namespace precache::cluster {
namespace {

constexpr std::string_view kPlainInShell =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

}  // namespace

void check_printable(std::string_view option, std::string_view text) {
  const std::string shown = printable(text);
  if (shown == text) return;
  throw InvalidArgument(
      fmt::format("{} must be UTF-8 without line breaks and control characters, got '{}'", option,
                  shown),
      "Rename the file, or use a symbolic link with a plain name.");
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && text.find_first_not_of(kPlainInShell) == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char character : text) {
    if (character == '\'') {
      word += R"('\'')";
    } else {
      word += character;
    }
  }
  return word + "'";
}

std::string yaml_text(std::string_view text) {
  std::string scalar = "\"";
  for (const char character : text) {  // in double quotes nothing but these two has a meaning
    if (character == '"' || character == '\\') scalar += '\\';
    scalar += character;
  }
  return scalar + "\"";
}

std::string container_word(std::string_view text) {
  std::string word;
  for (const char character : text) {
    if (character == '$') word += '$';  // Kubernetes makes one of two
    word += character;
  }
  return yaml_text(word);
}

}  // namespace precache::cluster
