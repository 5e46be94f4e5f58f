# SPDX-License-Identifier: Apache-2.0
# Finds what the libraries are built on: for this build, and again for whoever links them.
find_package(PkgConfig REQUIRED)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET GLOBAL libisal)
if(PRECACHE_WITH_HDF5)
  find_package(HDF5 REQUIRED COMPONENTS C)
endif()
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(TBB REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)
find_package(nlohmann_json REQUIRED)
