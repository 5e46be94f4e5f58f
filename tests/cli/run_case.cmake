# SPDX-License-Identifier: Apache-2.0
# Runs the tool once, in a copy of input/, and compares what it prints and how it ends with the files of a case:
#   args (one a line), exit, stdout, stderr; a missing stdout or stderr stands for nothing at all.
#
#   cmake -D TOOL=... -D CASE=... -D WORK=... -P run_case.cmake
file(REMOVE_RECURSE ${WORK})
file(COPY ${CMAKE_CURRENT_LIST_DIR}/input/ DESTINATION ${WORK})
file(STRINGS ${CASE}/args args)
file(STRINGS ${CASE}/exit expected_exit)
execute_process(COMMAND ${TOOL} ${args} WORKING_DIRECTORY ${WORK}
                RESULT_VARIABLE exit OUTPUT_VARIABLE stdout ERROR_VARIABLE stderr)
foreach(stream stdout stderr)
  set(expected_${stream} "")
  if(EXISTS ${CASE}/${stream})
    file(READ ${CASE}/${stream} expected_${stream})
  endif()
endforeach()
foreach(what exit stdout stderr)
  if(NOT "${${what}}" STREQUAL "${expected_${what}}")
    message(SEND_ERROR "${what} is\n${${what}}\nand should be\n${expected_${what}}")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
