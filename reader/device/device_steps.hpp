// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "reader/device/augment_work.hpp"
#include "reader/loader/augment/operation_list.hpp"

namespace precache::device {

/// A checked list of operations for the kernels.
struct HostSteps {
  std::vector<DeviceStep> steps;
  std::vector<double> values;
};

/// Throws Unsupported for an operation that the kernels do not have.
[[nodiscard]] HostSteps device_steps(const std::vector<augment::Step>& steps);

}  // namespace precache::device
