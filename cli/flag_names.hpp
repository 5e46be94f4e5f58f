// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace precache {

/// Rewrites a message of a library for users of the command line. Libraries name a field in
/// backquotes: `shard_size` becomes --shard-size, and the positional `source` becomes SOURCE.
[[nodiscard]] std::string with_flags(std::string_view message);

}  // namespace precache
