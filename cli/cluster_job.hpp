// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The jobs of a cluster that together make one build, as text for its scheduler.
namespace precache::cluster {

/// The facts for any scheduler. One job prepares, after `prepare_parts` jobs that list shares of
/// the source; `parts` jobs make the shards, one job finishes.
struct ClusterJob {
  std::string name = "precache";
  /// The command without the step: precache, build, options, SOURCE and OUT.
  std::vector<std::string> build;
  std::vector<std::string> at_end;  // options of the last step alone
  std::uint64_t parts = 0;
  std::uint64_t prepare_parts = 0;  // 0: one job lists all
  std::uint64_t at_once = 0;        // parts that may run at a time; 0: all
  unsigned cpus = 8;                // of each job
  std::uint64_t memory_mib = 0;
};

struct SlurmJob : ClusterJob {
  std::uint64_t minutes = 60;  // the time limit of each job
  std::string partition;       // empty: the cluster's default
  std::string account;
};

struct KubernetesJob : ClusterJob {
  std::string image;
  /// The names of persistent volume claims and the paths where they are mounted.
  std::vector<std::pair<std::string, std::string>> claims;
  std::string placeholders;  // what the user has to replace, as text
};

/// How often a job that ended with status 3 runs again.
inline constexpr unsigned kMostRetries = 4;

/// A script for bash that submits the jobs.
[[nodiscard]] std::string slurm_script(const SlurmJob& job);
/// Three Jobs in YAML.
[[nodiscard]] std::string kubernetes_yaml(const KubernetesJob& job);

/// Throws InvalidArgument unless the text is UTF-8 without line breaks and other characters that a
/// reader of the script would not see. `option` names it in the message.
void check_printable(std::string_view option, std::string_view text);
/// A word as every POSIX shell reads it.
[[nodiscard]] std::string shell_word(std::string_view text);
/// A printable text as every YAML parser reads it: never as a number, a boolean or a reference.
[[nodiscard]] std::string yaml_text(std::string_view text);
/// The same for a word of a container's command, in which Kubernetes replaces $(NAME).
[[nodiscard]] std::string container_word(std::string_view text);

}  // namespace precache::cluster
