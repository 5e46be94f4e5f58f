# SPDX-License-Identifier: Apache-2.0
# Fails when a library includes a header that another library does not share, or one of a library it must not know.
#
# A header is open to the other libraries of this project if it is installed (include/precache/...) or listed in
# the `shared_headers.txt` of its library. The build runs this script when a source has changed:
#
#   cmake -P formats/cmake/check_includes.cmake              checks the tree of this script
#   cmake -D WRITE=ON -P formats/cmake/check_includes.cmake  writes the lists that the sources need today
#
# ROOT: the tree to check. STAMP and DEPFILE: what the build waits for, and the files that were read.
cmake_minimum_required(VERSION 3.25)
if(NOT DEFINED ROOT)
  cmake_path(SET ROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
endif()

# Folders, the inner ones first, and the libraries that each may include.
set(libraries reader/device reader/tools reader/python formats reader convert cli samples)
set(formats_may)
set(reader_may formats)
set(reader/device_may formats reader)
set(reader/tools_may formats reader reader/device)
set(reader/python_may formats reader reader/device)
set(convert_may formats reader reader/tools)
set(cli_may formats reader reader/device reader/tools convert)
set(samples_may)  # only installed headers, as any user of the libraries

# Sets `result` to the library that the path `file`, relative to the root, belongs to.
function(library_of file result)
  foreach(library IN LISTS libraries)
    string(FIND "${file}" "${library}/" place)
    if(place EQUAL 0)
      set(${result} ${library} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

set(sources)
foreach(library formats reader convert cli samples)
  file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${library}/*.cpp ${ROOT}/${library}/*.hpp ${ROOT}/${library}/*.cu)
  list(APPEND sources ${found})
endforeach()
foreach(source IN LISTS sources)
  # precache/... is how an installed header is included.
  string(REGEX REPLACE "^.*/include/(precache/.*)$" "\\1" name ${source})
  set(path_of_${name} ${source})
endforeach()
set(lists)
foreach(library IN LISTS libraries)
  set(shared_by_${library})
  if(EXISTS ${ROOT}/${library}/shared_headers.txt)
    list(APPEND lists ${library}/shared_headers.txt)
    file(STRINGS ${ROOT}/${library}/shared_headers.txt shared_by_${library} REGEX "^[^#]")
    foreach(header IN LISTS shared_by_${library})
      if(NOT EXISTS ${ROOT}/${library}/${header})
        list(APPEND faults "${library}/shared_headers.txt lists ${header}, which does not exist")
      endif()
    endforeach()
  endif()
endforeach()

# Looks at `#include "name"` in `source`; appends to `faults` and to needed_of_<library>.
macro(check_include source name)
  set(path "${path_of_${name}}")
  library_of("${path}" owner)
  set(installed OFF)
  if(path MATCHES "/include/precache/")
    set(installed ON)
  endif()
  if(source MATCHES "/include/precache/" AND NOT installed)
    list(APPEND faults "${source} is installed and includes ${name}, which is not")
  elseif(NOT owner STREQUAL user AND NOT (user STREQUAL "samples" AND installed))
    if(NOT owner IN_LIST ${user}_may)
      list(APPEND faults "${source} includes ${name}, but ${user} must not depend on ${owner}")
    elseif(NOT installed)
      string(REGEX REPLACE "^${owner}/" "" header "${path}")
      list(APPEND needed_of_${owner} ${header})
      if(NOT WRITE AND NOT header IN_LIST shared_by_${owner})
        list(APPEND faults "${source} includes ${name}, which ${owner} does not share")
      endif()
    endif()
  endif()
endmacro()

foreach(source IN LISTS sources)
  library_of(${source} user)
  file(STRINGS ${ROOT}/${source} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[^<\"]*[<\"]([^>\"]+)[>\"].*$" "\\1" name "${line}")
    if(name MATCHES "(^|/)[.][.]/")
      list(APPEND faults "${source} includes ${name}, but headers are named from the root of the tree")
    elseif(DEFINED path_of_${name})
      check_include(${source} ${name})
    endif()
  endforeach()
endforeach()

foreach(library IN LISTS libraries)
  list(REMOVE_DUPLICATES needed_of_${library})
  list(SORT needed_of_${library})
  foreach(header IN LISTS shared_by_${library})
    if(NOT WRITE AND NOT header IN_LIST needed_of_${library} AND EXISTS ${ROOT}/${library}/${header})
      list(APPEND faults "${library}/shared_headers.txt lists ${header}, which no other library includes")
    endif()
  endforeach()
  if(WRITE AND needed_of_${library})
    string(REPLACE ";" "\n" lines "${needed_of_${library}}")
    file(WRITE ${ROOT}/${library}/shared_headers.txt
         "# Headers that the other libraries of this project may include in addition to the installed ones.\n${lines}\n")
  elseif(WRITE)
    file(REMOVE ${ROOT}/${library}/shared_headers.txt)
  endif()
endforeach()

if(faults)
  string(REPLACE ";" "\n  " faults "${faults}")
  message(FATAL_ERROR "libraries include what they must not:\n  ${faults}\n"
          "Use what the other library shares, or add the header to its shared_headers.txt if it belongs to its interface.")
endif()
if(DEFINED STAMP)
  file(TOUCH ${STAMP})
  list(TRANSFORM sources PREPEND "${ROOT}/")
  list(TRANSFORM lists PREPEND "${ROOT}/")
  # A source that is added is in none of these files, but its CMakeLists.txt names it.
  file(GLOB_RECURSE listings ${ROOT}/formats/CMakeLists.txt ${ROOT}/reader/CMakeLists.txt ${ROOT}/convert/CMakeLists.txt
       ${ROOT}/cli/CMakeLists.txt ${ROOT}/samples/CMakeLists.txt)
  string(REPLACE " " "\\ " read "${sources};${lists};${listings}")
  string(REPLACE ";" " \\\n  " read "${read}")
  file(WRITE ${DEPFILE} "${STAMP}: ${read}\n")
endif()
