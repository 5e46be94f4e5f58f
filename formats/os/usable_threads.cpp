// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/usable_threads.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

namespace precache {
namespace {

// "QUOTA PERIOD" in microseconds, or "max PERIOD", in cgroup v2; two files in v1.
std::optional<double> quota_of(const std::string& folder) {
  if (std::ifstream v2(folder + "/cpu.max"); v2) {
    std::string quota;
    double period = 0;
    if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  }
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0)
    return quota / period;
  return std::nullopt;
}

// The smallest quota of this process's control group and the groups above it.
std::optional<double> cgroup_quota() {
  std::optional<double> smallest;
  const auto consider = [&](const std::string& base, std::string group) {
    for (;;) {
      if (const auto quota = quota_of(base + group))
        smallest = std::min(smallest.value_or(*quota), *quota);
      if (group.empty() || group == "/") return;
      group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "ID:CONTROLLERS:PATH"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) consider("/sys/fs/cgroup", line.substr(second + 1));
    if (controllers.find("cpu") != std::string::npos)
      consider("/sys/fs/cgroup/cpu", line.substr(second + 1));
  }
  return smallest;
}

}  // namespace

unsigned usable_threads() {
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    threads = std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
  }
  if (const auto quota = cgroup_quota()) {
    threads = std::min(threads, std::max(1U, static_cast<unsigned>(std::ceil(*quota))));
  }
  return threads;
}

}  // namespace precache
