# SPDX-License-Identifier: Apache-2.0
# Runs check_includes.cmake on small trees: a valid one, and one
# with each kind of fault. CHECK: the script. WORK: a folder for the trees.
cmake_minimum_required(VERSION 3.25)

# Writes a tree in which every include is allowed.
function(write_tree)
  file(REMOVE_RECURSE ${WORK})
  file(WRITE ${WORK}/formats/include/precache/formats/dtype.hpp "#include <string>\n")
  file(WRITE ${WORK}/formats/os/file.hpp "#include \"precache/formats/dtype.hpp\"\n")
  file(WRITE ${WORK}/formats/os/file.cpp "#include \"formats/os/private.hpp\"\n")
  file(WRITE ${WORK}/formats/os/private.hpp "")
  file(WRITE ${WORK}/formats/shared_headers.txt "# The list.\nos/file.hpp\n")
  file(WRITE ${WORK}/reader/shards/y.hpp "#include \"formats/os/file.hpp\"\n")
  file(WRITE ${WORK}/convert/x.cpp "#include <vector>\n#include \"precache/formats/dtype.hpp\"\n#include \"formats/os/file.hpp\"\n")
  file(WRITE ${WORK}/samples/loop.cpp "#include <precache/formats/dtype.hpp>\n")
endfunction()

# Checks the tree. It must fail with a message that contains `expected`, or pass if `expected` is empty.
function(check expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${WORK} ${ARGN} -P ${CHECK}
                  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(FIND "${said}" "${expected}" place)
  if(expected STREQUAL "" AND NOT status EQUAL 0)
    message(FATAL_ERROR "the tree is valid, but the check failed:\n${said}")
  elseif(NOT expected STREQUAL "" AND (status EQUAL 0 OR place EQUAL -1))
    message(FATAL_ERROR "expected a failure with '${expected}', got status ${status}:\n${said}")
  endif()
endfunction()

write_tree()
check("")

file(APPEND ${WORK}/convert/x.cpp "#include \"reader/shards/y.hpp\"\n")
check("convert/x.cpp includes reader/shards/y.hpp, which reader does not share")
check("" -D WRITE=ON)
check("")

write_tree()
file(APPEND ${WORK}/reader/shards/y.hpp "#  include <precache/convert/build.hpp>\n")
file(WRITE ${WORK}/convert/include/precache/convert/build.hpp "")
check("reader/shards/y.hpp includes precache/convert/build.hpp, but reader must not depend on convert")

write_tree()
file(APPEND ${WORK}/formats/include/precache/formats/dtype.hpp "#include \"formats/os/file.hpp\"\n")
check("formats/include/precache/formats/dtype.hpp is installed and includes formats/os/file.hpp, which is not")

write_tree()
file(APPEND ${WORK}/convert/x.cpp "#include \"../reader/shards/y.hpp\"\n")
check("convert/x.cpp includes ../reader/shards/y.hpp, but headers are named from the root of the tree")

# The build runs the check again when a source was added: the CMakeLists.txt that names it is one of the files read.
write_tree()
file(WRITE ${WORK}/convert/CMakeLists.txt "")
file(WRITE ${WORK}/reader/tools/CMakeLists.txt "")
check("" -D STAMP=${WORK}/stamp -D DEPFILE=${WORK}/stamp.d)
file(READ ${WORK}/stamp.d read)
foreach(file convert/x.cpp formats/shared_headers.txt convert/CMakeLists.txt reader/tools/CMakeLists.txt)
  if(NOT read MATCHES "${WORK}/${file}")
    message(FATAL_ERROR "the build does not run the check when ${file} changes:\n${read}")
  endif()
endforeach()

write_tree()
file(APPEND ${WORK}/samples/loop.cpp "#include \"formats/os/file.hpp\"\n")
check("samples/loop.cpp includes formats/os/file.hpp, but samples must not depend on formats")

write_tree()
file(APPEND ${WORK}/formats/shared_headers.txt "os/private.hpp\nos/gone.hpp\n")
check("formats/shared_headers.txt lists os/private.hpp, which no other library includes")
check("formats/shared_headers.txt lists os/gone.hpp, which does not exist")
