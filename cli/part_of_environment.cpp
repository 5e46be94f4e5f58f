// SPDX-License-Identifier: Apache-2.0
#include "cli/part_of_environment.hpp"

#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"

namespace precache::cli {
namespace {

/// The variables that one engine sets. `count` is null if it does not say how many there are.
struct Engine {
  const char* index;
  const char* count;
  const char* first = nullptr;  // the smallest index, if it need not be 0
  const char* last = nullptr;
  const char* step = nullptr;
};

// A process of an array is one of many; ranks are asked after that, because Slurm gives a rank to
// every script.
constexpr std::array kEngines{
    Engine{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
           "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"},
    Engine{"JOB_COMPLETION_INDEX", nullptr},
    Engine{"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"},
    Engine{"CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT"},
    Engine{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Engine{"PMI_RANK", "PMI_SIZE"},
    Engine{"SLURM_PROCID", "SLURM_NTASKS"}};
constexpr const char* kParts = "PRECACHE_PARTS";

std::optional<std::uint64_t> number(const Environment& environment, const char* name) {
  if (name == nullptr) return std::nullopt;
  const auto text = environment(name);
  if (!text) return std::nullopt;
  if (const auto value = parse_number<std::uint64_t>(*text)) return value;
  throw InvalidArgument(
      fmt::format("`part` auto: {} must be a whole number; got '{}'", name, *text));
}

/// A job array that has all numbers from the first to the last is a partition; one that has some of
/// them runs some parts again.
Share share_of_array(const Environment& environment, const Engine& engine, std::uint64_t index,
                     std::uint64_t count) {
  const std::uint64_t first = number(environment, engine.first).value_or(0);
  const std::uint64_t step =
      std::max<std::uint64_t>(1, number(environment, engine.step).value_or(1));
  const auto last = number(environment, engine.last);
  const bool has_all = !last || (*last >= first && (*last - first) / step + 1 == count);
  if (has_all && index >= first && (index - first) / step < count) {
    return {(index - first) / step, count};
  }
  throw InvalidArgument(
      fmt::format("`part` auto: the array does not have all numbers from {} to {}", first,
                  last.value_or(count)),
      fmt::format("To run some parts again, say how many parts there are: set `parts` or {}.",
                  kParts));
}

}  // namespace

Share part_of_environment(const Environment& environment, std::uint64_t parts) {
  if (parts == 0) parts = number(environment, kParts).value_or(0);
  std::vector<std::string> names;
  for (const Engine& engine : kEngines) {
    names.emplace_back(engine.index);
    const auto index = number(environment, engine.index);
    if (!index) continue;
    if (parts == 0) {
      if (const auto count = number(environment, engine.count); count && *count != 0) {
        return share_of_array(environment, engine, *index, *count);
      }
      throw InvalidArgument(
          fmt::format("`part` auto: {} is {}, but nothing says how many parts there are",
                      engine.index, *index),
          engine.count == nullptr ? fmt::format("Set `parts` or {}.", kParts)
                                  : fmt::format("Set `parts`, {} or {}.", kParts, engine.count));
    }
    if (*index < parts) return {*index, parts};
    throw InvalidArgument(fmt::format("`part` auto: {} is {}, but there are only {} parts",
                                      engine.index, *index, parts),
                          "Parts count from 0.");
  }
  throw InvalidArgument(
      fmt::format("`part` auto finds no part in the environment: none of {} is set",
                  fmt::join(names, ", ")),
      "Give I/N, or start the command by an engine that sets one of them.");
}

}  // namespace precache::cli
