// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/cluster_job.hpp"

namespace precache::cluster {
namespace {

// {{ and }} are braces of the script.
constexpr std::string_view kScript = R"(#!/bin/bash
# Builds shards on Slurm. Submit with: bash THIS_FILE
#
# {jobs} jobs, each of which waits for the one before: {prepare}, an array of
# {parts} tasks makes the shards, and finish writes the manifest. Slurm allows at most MaxArraySize
# tasks (scontrol show config).
set -euo pipefail

parts={parts}
build=({build})
at_end=({at_end})  # options of finish alone
# Of each job. --open-mode keeps the messages of attempts before a requeue.
resources=({resources})
# The shell gets SIGUSR1 two minutes before the time limit, so that precache can stop cleanly.
resources+=(--requeue --open-mode=append --signal=B:USR1@120)

# Runs a step in a job. Complete shards are kept, so an attempt that follows does the rest.
run() {{
  local status=0 requeue=0 job=$SLURM_JOB_ID
  # The last task of an array has the number of the array, and a requeue would repeat all tasks.
  [[ ${{2-}} != */* ]] || job=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
  "${{build[@]}}" "$@" &
  local child=$!
  trap : TERM  # from Slurm, which sends it to precache too; the shell has to wait for its end
  trap 'requeue=1; kill -TERM "$child"' USR1
  # A signal ends wait early. The last wait returns the status of the child.
  while kill -0 "$child" 2>/dev/null; do wait "$child" || true; done
  wait "$child" || status=$?
  # Status 3 is worth a retry, perhaps on another node: a full disk, a file system that failed.
  # 1 (too many bad samples), 2 (wrong usage), 4 (corrupt data) and 5 (unsupported) are not.
  if ((status == 3 || requeue)) && ((${{SLURM_RESTART_COUNT:-0}} < {retries})); then
    scontrol requeue "$job" && sleep 60
  fi
  exit "$status"
}}

# Submits a job that runs the command in $2, and prints its number.
submit() {{
  {{ echo '#!/bin/bash'; declare -p parts build at_end; declare -f run; echo "$2"; }} |
    sbatch --parsable --job-name="{name}-$1" "${{resources[@]}}" "${{@:3}}" | cut -d ';' -f 1
}}

{shares}prepare=$(submit prepare 'run --prepare'{after_shares})
array=$(submit parts 'run --part "$SLURM_ARRAY_TASK_ID/$parts"' --array="0-$((parts - 1)){at_once}" \
  --dependency="afterok:$prepare" --kill-on-invalid-dep=yes)
finish=$(submit finish 'run --finish "${{at_end[@]}}"' \
  --dependency="afterok:$array" --kill-on-invalid-dep=yes)
echo "submitted {number_of_shares}prepare $prepare, parts $array, finish $finish"
)";

constexpr std::string_view kAfterShares =
    " \\\n  --dependency=\"afterok:$shares\" --kill-on-invalid-dep=yes";

/// The array of jobs that list the source.
std::string shares_text(std::uint64_t count) {
  return fmt::format(
      R"(shares=$(submit shares 'run --prepare "$SLURM_ARRAY_TASK_ID/{}"' --array=0-{}))"
      "\n",
      count, count - 1);
}

}  // namespace

std::string slurm_script(const SlurmJob& job) {
  std::string build;
  for (const std::string& word : job.build) build += shell_word(word) + " ";
  std::vector<std::string> at_end;
  for (const std::string& word : job.at_end) at_end.push_back(shell_word(word));
  const bool has_shares = job.prepare_parts != 0;
  std::string resources =
      fmt::format("--cpus-per-task={} --mem={}M --time={}", job.cpus, job.memory_mib, job.minutes);
  if (!job.partition.empty()) resources += " " + shell_word("--partition=" + job.partition);
  if (!job.account.empty()) resources += " " + shell_word("--account=" + job.account);
  return fmt::format(fmt::runtime(kScript), fmt::arg("parts", job.parts),
                     fmt::arg("build", fmt::format("{}--jobs {}", build, job.cpus)),
                     fmt::arg("jobs", has_shares ? "Four" : "Three"),
                     fmt::arg("prepare", has_shares ? "shares and prepare list the source once"
                                                    : "prepare lists the source once"),
                     fmt::arg("shares", has_shares ? shares_text(job.prepare_parts) : ""),
                     fmt::arg("after_shares", has_shares ? kAfterShares : ""),
                     fmt::arg("number_of_shares", has_shares ? "shares $shares, " : ""),
                     fmt::arg("at_end", fmt::join(at_end, " ")), fmt::arg("resources", resources),
                     fmt::arg("retries", kMostRetries), fmt::arg("name", job.name),
                     fmt::arg("at_once", job.at_once == 0 ? "" : fmt::format("%{}", job.at_once)));
}

}  // namespace precache::cluster
