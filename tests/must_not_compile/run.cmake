# SPDX-License-Identifier: Apache-2.0
# Compiles views_of_temporaries.cpp twice: without its forbidden lines, which must succeed, and with them, which must fail
# at every one.
#
#   cmake -D CXX=... -D INCLUDES=A:B:... -P run.cmake
set(source ${CMAKE_CURRENT_LIST_DIR}/views_of_temporaries.cpp)
string(REPLACE ":" ";-I" includes "-I${INCLUDES}")
set(compile ${CXX} -std=c++20 -fsyntax-only -fdiagnostics-color=never ${includes} ${source})
execute_process(COMMAND ${compile} RESULT_VARIABLE result ERROR_VARIABLE output)
if(CXX MATCHES "clang")
  list(APPEND compile -ferror-limit=0)  # it would stop after 20 errors
endif()
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the control does not compile:\n${output}")
endif()
execute_process(COMMAND ${compile} -DFORBIDDEN ERROR_VARIABLE output)
file(READ ${source} text)
string(REGEX REPLACE "[][;]" "." text "${text}")  # which lists of CMake take for their own
string(REPLACE "\n" ";" lines "${text}")
set(number 0)
set(forbidden 0)
foreach(line IN LISTS lines)
  math(EXPR number "${number} + 1")
  if(line MATCHES "// must not compile")
    math(EXPR forbidden "${forbidden} + 1")
    if(NOT output MATCHES "views_of_temporaries.cpp:${number}:[0-9]+: error: [^\n]*deleted")
      message(FATAL_ERROR "line ${number} is not refused for a deleted function: ${line}\n${output}")
    endif()
  endif()
endforeach()
if(forbidden LESS 24)
  message(FATAL_ERROR "only ${forbidden} forbidden lines were found")
endif()
