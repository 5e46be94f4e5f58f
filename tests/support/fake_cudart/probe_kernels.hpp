// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

/// The argument of the test's kernels.
struct ProbeJob {
  const unsigned char* from;
  unsigned char* to;
  int size;
  int add;
};

/// Launch `probe_add(ProbeJob, int)` and `probe_template<int>(int*, int)` as CUDA code does.
void launch_probe_add(const ProbeJob& job, int more, dim3 grid, dim3 block, cudaStream_t stream);
void launch_probe_template(int* to, int value, cudaStream_t stream);

/// The stub's address, for cudaLaunchKernel and cudaFuncGetAttributes.
const void* probe_add_stub();
