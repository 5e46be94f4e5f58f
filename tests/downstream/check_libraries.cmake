# SPDX-License-Identifier: Apache-2.0
# Fails if a program or module that only reads loads a library that only the converter needs.
#
#   cmake -D PROGRAM=... -P check_libraries.cmake
execute_process(COMMAND ldd ${PROGRAM} OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
if(libraries MATCHES "libhdf5|libjpeg|libpng|libtbb|libprotobuf")
  message(FATAL_ERROR "${PROGRAM} loads a library that it does not need:\n${libraries}")
endif()
