// SPDX-License-Identifier: Apache-2.0
#include "cli/part_of_environment.hpp"

#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"

namespace precache::cli {
namespace {

/// The variables that one engine sets. Without `count` and `last` it does not say how many there
/// are.
struct Engine {
  const char* index;
  const char* count = nullptr;
  const char* first = nullptr;  // the smallest index, if it need not be `base`
  const char* last = nullptr;
  const char* step = nullptr;
  std::uint64_t base = 0;          // the index of the first part if the number of parts was given
  const char* no_array = nullptr;  // the index of a process that belongs to no array
};

// A process of an array is one of many; ranks are asked after that, because Slurm gives a rank to
// every script.
constexpr std::array kEngines{
    Engine{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
           "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"},
    Engine{"JOB_COMPLETION_INDEX"}, Engine{"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"},
    Engine{"CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT"}, Engine{"PBS_ARRAY_INDEX"},
    // These two count from 1.
    Engine{.index = "LSB_JOBINDEX",
           .last = "LSB_JOBINDEX_END",
           .step = "LSB_JOBINDEX_STEP",
           .base = 1,
           .no_array = "0"},
    Engine{.index = "SGE_TASK_ID",
           .first = "SGE_TASK_FIRST",
           .last = "SGE_TASK_LAST",
           .step = "SGE_TASK_STEPSIZE",
           .base = 1,
           .no_array = "undefined"},
    Engine{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, Engine{"PMI_RANK", "PMI_SIZE"},
    Engine{"SLURM_PROCID", "SLURM_NTASKS"}};
constexpr const char* kParts = "PRECACHE_PARTS";

std::optional<std::uint64_t> number(const Environment& environment, const char* name,
                                    const char* none = nullptr) {
  if (name == nullptr) return std::nullopt;
  const auto text = environment(name);
  if (!text || (none != nullptr && *text == none)) return std::nullopt;
  if (const auto value = parse_number<std::uint64_t>(*text)) return value;
  throw InvalidArgument(
      fmt::format("`part` auto: {} must be a whole number, got '{}'", name, *text));
}

/// The numbers of a job array, as far as the engine tells.
struct Array {
  std::uint64_t first;
  std::uint64_t step;
  std::optional<std::uint64_t> last;
  std::uint64_t count;  // 0: unknown
};

Array array_of(const Environment& environment, const Engine& engine) {
  const auto value = [&](const char* name) { return number(environment, name, engine.no_array); };
  Array array{value(engine.first).value_or(engine.base),
              std::max<std::uint64_t>(1, value(engine.step).value_or(1)), value(engine.last),
              value(engine.count).value_or(0)};
  if (engine.count == nullptr && array.last && *array.last >= array.first) {
    array.count = (*array.last - array.first) / array.step + 1;
  }
  return array;
}

/// A job array that has all numbers from the first to the last is a partition; one that has some of
/// them runs some parts again.
Share share_of_array(const Array& array, std::uint64_t index) {
  const auto& [first, step, last, count] = array;
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

Share share_of_parts(const Engine& engine, std::uint64_t index, std::uint64_t parts) {
  if (index >= engine.base && index - engine.base < parts) return {index - engine.base, parts};
  throw InvalidArgument(
      fmt::format("`part` auto: {} is {}, but there are only {} parts: it must be from {} to {}",
                  engine.index, index, parts, engine.base, engine.base + parts - 1));
}

}  // namespace

Share part_of_environment(const Environment& environment, std::uint64_t parts) {
  if (parts == 0) parts = number(environment, kParts).value_or(0);
  std::vector<std::string> names;
  for (const Engine& engine : kEngines) {
    names.emplace_back(engine.index);
    const auto index = number(environment, engine.index, engine.no_array);
    if (!index) continue;
    if (parts != 0) return share_of_parts(engine, *index, parts);
    const Array array = array_of(environment, engine);
    if (array.count != 0) return share_of_array(array, *index);
    const char* const missing = engine.count != nullptr ? engine.count : engine.last;
    throw InvalidArgument(
        fmt::format("`part` auto: {} is {}, but nothing says how many parts there are",
                    engine.index, *index),
        missing == nullptr ? fmt::format("Set `parts` or {}.", kParts)
                           : fmt::format("Set `parts`, {} or {}.", kParts, missing));
  }
  throw InvalidArgument(
      fmt::format("`part` auto finds no part in the environment: none of {} is set",
                  fmt::join(names, ", ")),
      "Give I/N, or start the command by an engine that sets one of them.");
}

}  // namespace precache::cli
