// SPDX-License-Identifier: Apache-2.0
#include "cli/part_of_environment.hpp"

#include <map>

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"

namespace precache::cli {
namespace {

using Variables = std::map<std::string, std::string>;
using Part = std::pair<std::uint64_t, std::uint64_t>;

Part part_in(const Variables& variables, std::uint64_t parts = 0) {
  const Share share = part_of_environment(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      parts);
  return {share.index, share.count};
}

std::string refusal_of(const Variables& variables, std::uint64_t parts = 0) {
  return test::message_of<InvalidArgument>([&] { static_cast<void>(part_in(variables, parts)); });
}

TEST_CASE("each engine says which part a process is", "[cli]") {
  CHECK(part_in({{"SLURM_ARRAY_TASK_ID", "7"}, {"SLURM_ARRAY_TASK_COUNT", "8"}}) == Part{7, 8});
  CHECK(part_in({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}) == Part{2, 4});
  CHECK(part_in({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}) == Part{1, 3});
  CHECK(part_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}) == Part{0, 2});
  CHECK(part_in({{"JOB_COMPLETION_INDEX", "5"}, {"PRECACHE_PARTS", "64"}}) == Part{5, 64});
  CHECK(part_in({{"AWS_BATCH_JOB_ARRAY_INDEX", "5"}, {"PRECACHE_PARTS", "6"}}) == Part{5, 6});
  CHECK(part_in({{"AWS_BATCH_JOB_ARRAY_INDEX", "5"}, {"AWS_BATCH_JOB_ARRAY_SIZE", "6"}}) ==
        Part{5, 6});
  CHECK(part_in({{"CLOUD_RUN_TASK_INDEX", "9"}, {"CLOUD_RUN_TASK_COUNT", "10"}}) == Part{9, 10});
}

TEST_CASE("arrays of PBS, LSF and Grid Engine are parts, whatever number they begin with",
          "[cli]") {
  CHECK(part_in({{"PBS_ARRAY_INDEX", "0"}, {"PRECACHE_PARTS", "64"}}) == Part{0, 64});
  CHECK(part_in({{"PBS_ARRAY_INDEX", "63"}}, 64) == Part{63, 64});
  CHECK_THAT(refusal_of({{"PBS_ARRAY_INDEX", "3"}}), test::contains("how many parts"));
  CHECK_THAT(refusal_of({{"PBS_ARRAY_INDEX", "64"}}, 64), test::contains("from 0 to 63"));

  const Variables lsf{
      {"LSB_JOBINDEX", "64"}, {"LSB_JOBINDEX_END", "64"}, {"LSB_JOBINDEX_STEP", "1"}};
  CHECK(part_in(lsf) == Part{63, 64});
  CHECK(part_in(lsf, 100) == Part{63, 100});
  CHECK(part_in({{"LSB_JOBINDEX", "1"}}, 64) == Part{0, 64});
  CHECK_THAT(refusal_of({{"LSB_JOBINDEX", "1"}}), test::contains("how many parts"));
  CHECK_THAT(refusal_of({{"LSB_JOBINDEX", "65"}}, 64), test::contains("from 1 to 64"));

  const Variables sge{{"SGE_TASK_ID", "7"},
                      {"SGE_TASK_FIRST", "3"},
                      {"SGE_TASK_LAST", "9"},
                      {"SGE_TASK_STEPSIZE", "2"}};
  CHECK(part_in(sge) == Part{2, 4});
  CHECK(part_in(sge, 64) == Part{6, 64});
  CHECK_THAT(refusal_of({{"SGE_TASK_ID", "7"}}), test::contains("how many parts"));
}

TEST_CASE("a process that belongs to no array has no part", "[cli]") {
  Variables variables{{"LSB_JOBINDEX", "0"},
                      {"LSB_JOBINDEX_END", "0"},
                      {"SGE_TASK_ID", "undefined"},
                      {"SGE_TASK_LAST", "undefined"}};
  CHECK_THAT(refusal_of(variables), test::contains("finds no part"));
  variables["OMPI_COMM_WORLD_RANK"] = "2";
  variables["OMPI_COMM_WORLD_SIZE"] = "3";
  CHECK(part_in(variables) == Part{2, 3});
}

TEST_CASE("a job array may begin at any number and have steps", "[cli]") {
  const Variables array{{"SLURM_ARRAY_TASK_ID", "16"},
                        {"SLURM_ARRAY_TASK_COUNT", "4"},
                        {"SLURM_ARRAY_TASK_MIN", "10"},
                        {"SLURM_ARRAY_TASK_MAX", "16"},
                        {"SLURM_ARRAY_TASK_STEP", "2"}};
  CHECK(part_in(array) == Part{3, 4});
}

TEST_CASE("an array of some parts needs the number of all parts", "[cli]") {
  // sbatch --array=0,4,7-9
  const Variables array{{"SLURM_ARRAY_TASK_ID", "4"},
                        {"SLURM_ARRAY_TASK_COUNT", "5"},
                        {"SLURM_ARRAY_TASK_MIN", "0"},
                        {"SLURM_ARRAY_TASK_MAX", "9"},
                        {"SLURM_ARRAY_TASK_STEP", "1"}};
  CHECK_THAT(refusal_of(array), test::contains("does not have all numbers from 0 to 9"));
  CHECK(part_in(array, 64) == Part{4, 64});
  Variables with_parts = array;
  with_parts["PRECACHE_PARTS"] = "10";
  CHECK(part_in(with_parts) == Part{4, 10});
}

TEST_CASE("an array or an MPI rank counts more than the rank that Slurm gives to every script",
          "[cli]") {
  Variables slurm{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}};
  CHECK(part_in(slurm) == Part{0, 1});
  slurm["OMPI_COMM_WORLD_RANK"] = "2";
  slurm["OMPI_COMM_WORLD_SIZE"] = "3";
  CHECK(part_in(slurm) == Part{2, 3});
  slurm["SLURM_ARRAY_TASK_ID"] = "1";
  slurm["SLURM_ARRAY_TASK_COUNT"] = "5";
  CHECK(part_in(slurm) == Part{1, 5});
}

TEST_CASE("an environment without a part is refused with what was looked for", "[cli]") {
  CHECK_THAT(refusal_of({}), test::contains("SLURM_ARRAY_TASK_ID"));
  CHECK_THAT(refusal_of({}), test::contains("JOB_COMPLETION_INDEX"));
  CHECK_THAT(refusal_of({{"PRECACHE_PARTS", "4"}}), test::contains("none of"));
  CHECK_THAT(refusal_of({{"JOB_COMPLETION_INDEX", "3"}}), test::contains("how many parts"));
  CHECK_THAT(refusal_of({{"JOB_COMPLETION_INDEX", "4"}, {"PRECACHE_PARTS", "4"}}),
             test::contains("only 4 parts"));
  CHECK_THAT(refusal_of({{"PMI_RANK", "x"}, {"PMI_SIZE", "2"}}), test::contains("whole number"));
  CHECK_THAT(refusal_of({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}), test::contains("whole number"));
  CHECK_THAT(refusal_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}), test::contains("all numbers"));
}

}  // namespace
}  // namespace precache::cli
