# SPDX-License-Identifier: Apache-2.0
# With PRECACHE_UNITY the sources of a folder are compiled as one, so that headers and templates are worked on once
# per folder. A build of everything takes half the time; after a change, more than one file is compiled again.
option(PRECACHE_UNITY "Compile the sources of each folder as one" OFF)

# Applies it to `target`, all of whose sources have been added, except the sources that follow.
function(precache_unity target)
  if(NOT PRECACHE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    set(group folder)
    if(source MATCHES "^([a-z0-9_]+)/")
      set(group ${CMAKE_MATCH_1})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # GCC takes the one file for a header, in which a type of an unnamed namespace would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
