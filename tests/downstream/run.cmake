# SPDX-License-Identifier: Apache-2.0
# Installs a build into an empty folder, and builds and runs the project next to this file against it.
#
#   cmake -D BUILD=... -D WORK=... -D BUILD_TYPE=... -D CXX=... -D CXX_FLAGS=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
foreach(reader_only OFF ON)
  set(build ${WORK}/build-${reader_only})
  run(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${build} -D CMAKE_PREFIX_PATH=${WORK}/prefix
      -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D CMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
      -D READER_ONLY=${reader_only})
  run(${CMAKE_COMMAND} --build ${build})
  run(${build}/downstream)
endforeach()
run(${CMAKE_COMMAND} -D PROGRAM=${build}/downstream -P ${CMAKE_CURRENT_LIST_DIR}/check_libraries.cmake)
run(${WORK}/prefix/bin/precache --version)
file(REMOVE_RECURSE ${WORK})
