// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace precache {

[[nodiscard]] std::uint64_t page_bytes();

/// Whether one of `pages` pages of a private mapping of a file was written to: it is then a copy of
/// the process's own. True also where the system does not tell.  REQUIRES: `first` is the begin of
/// a page.
[[nodiscard]] bool any_page_written(const std::byte* first, std::uint64_t pages);

/// Drops the copies among `pages` pages, so that the file's pages are seen again. Where the system
/// does not tell which are copies, all are dropped.
void drop_written_pages(std::byte* first, std::uint64_t pages);

}  // namespace precache
