# SPDX-License-Identifier: Apache-2.0
# Configures this project on a machine without the HDF5 library, and compiles the source that replaces the library. No other source
# depends on PRECACHE_WITH_HDF5.
#
#   cmake -D SOURCE=... -D WORK=... -D CXX=... -P without_hdf5.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${WORK} -D CMAKE_CXX_COMPILER=${CXX} -D PRECACHE_WITH_HDF5=OFF
    -D CMAKE_DISABLE_FIND_PACKAGE_HDF5=ON -D PRECACHE_BUILD_TESTS=OFF -D PRECACHE_BUILD_SAMPLES=OFF -D PRECACHE_WERROR=ON)
run(${CMAKE_COMMAND} --build ${WORK} --target convert/CMakeFiles/precache_convert.dir/job/shard_formats.cpp.o)
file(REMOVE_RECURSE ${WORK})
