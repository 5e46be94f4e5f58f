// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "cli/cluster_job.hpp"

namespace precache::cluster {
namespace {

constexpr std::string_view kHead =
    R"(# Builds shards on Kubernetes. Submit with: kubectl apply --filename THIS_FILE
#
# Three Jobs: {name}-prepare lists the source once, the Pods of {name}-parts make the shards, and
# {name}-finish writes the manifest. Pods wait in an init container for the Job before.
)";

// The rules need Kubernetes 1.26. A Pod that was evicted or whose node was drained does not count.
constexpr std::string_view kFailurePolicy = R"(  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
      # Too many bad images, wrong usage, corrupt data, unsupported: an attempt that follows cannot
      # do better. After status 3 it can.
      - action: FailJob
        onExitCodes:
          containerName: precache
          operator: In
          values: [1, 2, 4, 5]
)";

constexpr std::string_view kParts = R"(  completionMode: Indexed
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
std::string command(const KubernetesJob& job, std::initializer_list<std::string_view> step,
                    std::initializer_list<std::string_view> before = {}) {
  constexpr std::string_view kIndent = "          ";
  std::string text = "          command:\n";
  for (const std::string_view word : before) text += list_item(kIndent, container_word(word));
  for (const std::string& word : job.build) text += list_item(kIndent, container_word(word));
  for (const std::string_view word : step) text += list_item(kIndent, yaml_text(word));
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

std::string container(const KubernetesJob& job, std::string_view name, const std::string& command,
                      const std::string& resources) {
  return fmt::format("        - name: {}\n          image: {}\n{}{}{}", name, yaml_text(job.image),
                     command, resources, mounts(job));
}

std::string init_container(const KubernetesJob& job, const std::string& command) {
  return "      initContainers:\n" + container(job, "wait", command, "");
}

/// Waits until the plan is frozen: without it, each of the first Pods would list the source.
std::string wait_for_plan(const KubernetesJob& job) {
  constexpr std::string_view kLoop =
      R"(while s=$("$@") || exit; do case $s in *"not prepared"*) sleep 15;; *) exit 0;; esac; done)";
  return init_container(job, command(job, {"--status"}, {"sh", "-c", kLoop, "wait"}));
}

std::string wait_for_parts(const KubernetesJob& job) {
  return init_container(job, command(job, {"--status", "--watch"}));
}

std::string main_container(const KubernetesJob& job, std::initializer_list<std::string_view> step) {
  const std::string cpus = std::to_string(job.cpus);
  std::string text = command(job, step);
  text += list_item("          ", "--jobs") + list_item("          ", yaml_text(cpus));
  return "      containers:\n" +
         container(job, "precache", text,
                   fmt::format("          resources:\n"
                               "            requests: {{cpu: {}, memory: {}Mi}}\n"
                               "            limits: {{memory: {}Mi}}\n",
                               yaml_text(cpus), job.memory_mib, job.memory_mib));
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
                     const std::string& containers) {
  return fmt::format("---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {}-{}\nspec:\n",
                     job.name, step) +
         counts + std::string(kFailurePolicy) + std::string(kTemplate) + containers + volumes(job);
}

}  // namespace

std::string kubernetes_yaml(const KubernetesJob& job) {
  const std::string one = fmt::format("  backoffLimit: {}\n", kMostRetries);
  const std::string all =
      fmt::format(kParts, fmt::arg("parts", job.parts), fmt::arg("retries", kMostRetries),
                  fmt::arg("at_once", job.at_once == 0 ? job.parts : job.at_once),
                  fmt::arg("limit", job.parts * kMostRetries));
  // In the words of a container's command, Kubernetes replaces $(NAME) by the variable's value.
  const std::string part = fmt::format("$(JOB_COMPLETION_INDEX)/{}", job.parts);
  return fmt::format(kHead, fmt::arg("name", job.name)) +
         document(job, "prepare", one, main_container(job, {"--prepare"})) +
         document(job, "parts", all, wait_for_plan(job) + main_container(job, {"--part", part})) +
         document(job, "finish", one, wait_for_parts(job) + main_container(job, {"--finish"}));
}

}  // namespace precache::cluster
