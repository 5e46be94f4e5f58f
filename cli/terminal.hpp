// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// How text looks on standard output and standard error, which `stream` names by its descriptor.
namespace precache::terminal {

/// Whether lines can be redrawn there.
[[nodiscard]] bool is_terminal(int stream);
/// The width of the terminal; without limit where there is none, such as in a log.
[[nodiscard]] std::size_t width(int stream);
/// Text does not fill more columns than this, even on a wider terminal.
inline constexpr std::size_t kWidestText = 100;
/// How many columns text may fill; without limit where there is no terminal.
[[nodiscard]] std::size_t text_width(int stream);

inline constexpr const char* kBold = "1";
inline constexpr const char* kDim = "2";
inline constexpr const char* kRed = "1;31";
inline constexpr const char* kGreen = "1;32";
inline constexpr const char* kYellow = "1;33";
inline constexpr const char* kCyan = "36";

/// The text in a style; as it is where colours are not wanted: no terminal, NO_COLOR, TERM=dumb.
[[nodiscard]] std::string styled(int stream, const char* style, std::string_view text);

/// How many columns a text in UTF-8 takes.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// Breaks a text between words, so that lines have at most `width` columns. The first line begins
/// at column `first`, the others are indented to `indent`. A longer word has a line for itself.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t first, std::size_t indent,
                                  std::size_t width);

}  // namespace precache::terminal
