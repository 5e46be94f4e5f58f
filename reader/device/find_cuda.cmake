# SPDX-License-Identifier: Apache-2.0
# Decides whether this build can load batches to a GPU: sets PRECACHE_HAS_CUDA and prints one line.
#
# nvcc compiles one small file by a custom rule instead of CMake's language CUDA, which would link every program with
# nvcc, and with GCC where Clang compiles the rest.
set(PRECACHE_WITH_CUDA AUTO CACHE STRING "Load batches to GPUs: ON, OFF, or AUTO for as the CUDA Toolkit is found")
set_property(CACHE PRECACHE_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(PRECACHE_CUDA_ARCHITECTURES 75 80 86 89 90 100 120 CACHE STRING
    "GPUs to compile for, as rising numbers of sm_NN; first and last also as PTX, which drivers compile for other GPUs")

set(PRECACHE_HAS_CUDA FALSE)
if(PRECACHE_WITH_CUDA STREQUAL "OFF")
  message(STATUS "CUDA: off")
else()
  precache_find_cuda(QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND TARGET CUDA::cudart_static)
    set(PRECACHE_HAS_CUDA TRUE)
    list(JOIN PRECACHE_CUDA_ARCHITECTURES " " architectures)
    message(STATUS "CUDA: ${CUDAToolkit_VERSION}, ${CUDAToolkit_NVCC_EXECUTABLE}, for sm_ ${architectures}")
  elseif(PRECACHE_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CUDA: no toolkit 13.0 or later with nvcc and libcudart_static was found.\n"
                        "Set CUDAToolkit_ROOT to where it is, or PRECACHE_WITH_CUDA to OFF.")
  else()
    message(STATUS "CUDA: not found, batches stay in the computer's memory")
  endif()
endif()
