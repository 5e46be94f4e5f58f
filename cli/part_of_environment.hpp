// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "precache/convert/job.hpp"

namespace precache::cli {

/// The value of an environment variable; none if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// The part that a cluster's engine gave to this process, by the variables that Slurm, Kubernetes,
/// AWS Batch, Cloud Run, PBS, LSF, Grid Engine, Open MPI and PMI set. `parts` is the number of
/// parts if it was given, else 0: then PRECACHE_PARTS or the engine says it. Throws InvalidArgument
/// if nothing gives a part, and if a value is not a number or is too large.
[[nodiscard]] Share part_of_environment(const Environment& environment, std::uint64_t parts);

}  // namespace precache::cli
