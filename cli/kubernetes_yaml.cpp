// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster_job.hpp"

namespace precache::cluster {
namespace {

constexpr std::string_view kHead =
    R"(# Builds shards on Kubernetes with {jobs} Jobs: {prepare} the source once, the Pods of
# {name}-parts make the shards, and {name}-finish writes the manifest. All but the first are
# suspended; these commands for bash start each when the one before is complete, and end if one
# fails, for which kubectl wait does not look:
#
#   completes() {{
#     until kubectl get job "$1" --output 'jsonpath={{.status.conditions[*].type}}' |
#       grep -w -e Complete -e Failed; do sleep 10; done | grep -q -w Complete
#   }}
#   start() {{ kubectl patch job "$1" --patch '{{"spec":{{"suspend":false}}}}'; }}
#   kubectl apply --filename THIS_FILE &&
{shares}#     completes {name}-prepare && start {name}-parts &&
#     completes {name}-parts && start {name}-finish &&
#     completes {name}-finish
#
# If a Job fails, kubectl describe job says why. Then delete the Jobs and begin again: complete
# shards are kept.
)";

constexpr std::string_view kPlaceholders = "#\n# Placeholders to replace: {}.\n";

// The rules need Kubernetes 1.26. A Pod that was evicted or whose node was drained does not count.
constexpr std::string_view kFailurePolicy = R"(  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
      # Too many bad samples, wrong usage, corrupt data, unsupported: an attempt that follows cannot
      # do better. After status 3 it can.
      - action: FailJob
        onExitCodes:
          containerName: precache
          operator: In
          values: [1, 2, 4, 5]
)";

constexpr std::string_view kIndexed = R"(  completionMode: Indexed
  completions: {parts}
  parallelism: {at_once}
  # Needs Kubernetes 1.29. For older versions write "backoffLimit: {limit}" in place of both lines.
  backoffLimitPerIndex: {retries}
  maxFailedIndexes: 0
)";

constexpr std::string_view kTemplate = R"(  template:
    spec:
      restartPolicy: Never
      # precache stops cleanly on SIGTERM. Complete shards are kept.
      terminationGracePeriodSeconds: 60
)";

std::string list_item(std::string_view indent, std::string_view scalar) {
  return fmt::format("{}  - {}\n", indent, scalar);
}

/// The command of a container that does a step.
std::string command(const KubernetesJob& job, const std::vector<std::string>& step) {
  constexpr std::string_view kIndent = "          ";
  std::string text = "          command:\n";
  for (const std::string& word : job.build) text += list_item(kIndent, container_word(word));
  for (const std::string& word : step) text += list_item(kIndent, yaml_text(word));
  return text;
}

std::string mounts(const KubernetesJob& job) {
  std::string text = "          volumeMounts:\n";
  for (std::size_t i = 0; i < job.claims.size(); ++i) {
    text += fmt::format("            - {{name: claim-{}, mountPath: {}}}\n", i,
                        yaml_text(job.claims[i].second));
  }
  return text;
}

std::string container(const KubernetesJob& job, const std::vector<std::string>& step) {
  const std::string cpus = std::to_string(job.cpus);
  return fmt::format("      containers:\n        - name: precache\n          image: {}\n",
                     yaml_text(job.image)) +
         command(job, step) + list_item("          ", "--jobs") +
         list_item("          ", yaml_text(cpus)) +
         fmt::format(
             "          resources:\n"
             "            requests: {{cpu: {}, memory: {}Mi}}\n"
             "            limits: {{memory: {}Mi}}\n",
             yaml_text(cpus), job.memory_mib, job.memory_mib) +
         mounts(job);
}

std::string volumes(const KubernetesJob& job) {
  std::string text = "      volumes:\n";
  for (std::size_t i = 0; i < job.claims.size(); ++i) {
    text += fmt::format("        - {{name: claim-{}, persistentVolumeClaim: {{claimName: {}}}}}\n",
                        i, yaml_text(job.claims[i].first));
  }
  return text;
}

std::string document(const KubernetesJob& job, std::string_view step, const std::string& counts,
                     const std::vector<std::string>& words) {
  return fmt::format("---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {}-{}\nspec:\n",
                     job.name, step) +
         counts + std::string(kFailurePolicy) + std::string(kTemplate) + container(job, words) +
         volumes(job);
}

}  // namespace

std::string kubernetes_yaml(const KubernetesJob& job) {
  const std::string one = fmt::format("  backoffLimit: {}\n", kMostRetries);
  const std::string suspended = "  suspend: true\n";
  const auto indexed = [&](std::uint64_t count) {
    return fmt::format(kIndexed, fmt::arg("parts", count), fmt::arg("retries", kMostRetries),
                       fmt::arg("at_once", job.at_once == 0 ? count : job.at_once),
                       fmt::arg("limit", count * kMostRetries));
  };
  const std::uint64_t shares = job.prepare_parts;
  // In the words of a container's command, Kubernetes replaces $(NAME) by the variable's value.
  const auto index_of = [](std::uint64_t count) {
    return fmt::format("$(JOB_COMPLETION_INDEX)/{}", count);
  };
  std::vector<std::string> finish{"--finish"};
  finish.insert(finish.end(), job.at_end.begin(), job.at_end.end());
  const std::string head = fmt::format(
      kHead, fmt::arg("name", job.name), fmt::arg("jobs", shares == 0 ? "three" : "four"),
      fmt::arg("prepare", shares == 0 ? fmt::format("{}-prepare lists", job.name)
                                      : fmt::format("{0}-shares and {0}-prepare list", job.name)),
      fmt::arg("shares", shares == 0
                             ? ""
                             : fmt::format("#     completes {0}-shares && start {0}-prepare &&\n",
                                           job.name)));
  return head + (job.placeholders.empty() ? "" : fmt::format(kPlaceholders, job.placeholders)) +
         (shares == 0 ? document(job, "prepare", one, {"--prepare"})
                      : document(job, "shares", indexed(shares), {"--prepare", index_of(shares)}) +
                            document(job, "prepare", suspended + one, {"--prepare"})) +
         document(job, "parts", suspended + indexed(job.parts), {"--part", index_of(job.parts)}) +
         document(job, "finish", suspended + one, finish);
}

}  // namespace precache::cluster
