// SPDX-License-Identifier: Apache-2.0
#pragma once

/// For functions that GPUs run too: nvcc wants them marked, other compilers do not know the words.
#ifdef __CUDACC__
#define PRECACHE_HOST_DEVICE __host__ __device__
#else
#define PRECACHE_HOST_DEVICE
#endif
