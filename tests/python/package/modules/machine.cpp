// SPDX-License-Identifier: Apache-2.0
// Lets tests in Python control the fake CUDA runtime. They call CUDA functions in it directly.
#include <cstdint>
#include <string>

#include "tests/reader/device/run_kernel.hpp"
#include "tests/support/fake_cudart/fake_cudart.hpp"

extern "C" {

/// A machine as new.
void machine_start(int devices) {
  fake_cudart::reset();
  fake_cudart::set_device_count(devices);
  fake_cudart::set_delays(1, 20);
  precache::test::register_kernels();
}

/// All rules that were broken and all that was left behind, in lines. Valid until the next call.
const char* machine_report() {
  static std::string report;
  report = fake_cudart::report();
  return report.c_str();
}

void machine_set_driver(int version) { fake_cudart::set_driver_version(version); }

void machine_fail(const char* call, std::uint64_t nth) {
  fake_cudart::fail_call(call, nth, cudaErrorLaunchFailure);
}

void machine_hold(void* stream) { fake_cudart::hold(static_cast<cudaStream_t>(stream)); }

void machine_let_go(void* stream) { fake_cudart::let_go(static_cast<cudaStream_t>(stream)); }

}  // extern "C"
