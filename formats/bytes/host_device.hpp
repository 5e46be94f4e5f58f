// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks functions that also run on GPUs. Only nvcc knows, and needs, these attributes.
#ifdef __CUDACC__
#define PRECACHE_HOST_DEVICE __host__ __device__
#else
#define PRECACHE_HOST_DEVICE
#endif
