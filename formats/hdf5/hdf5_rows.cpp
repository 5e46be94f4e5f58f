// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_rows.hpp"

#include <cstdlib>
#include <cstring>

namespace precache::hdf5 {
namespace {

void* allocate(std::size_t size, void*) {
  return size > kLargestItem ? nullptr : std::malloc(size);
}

void release(void* memory, void*) { std::free(memory); }

/// Some rows of a dataset.
Id select_rows(const Dataset& dataset, std::uint64_t first, std::uint64_t count) {
  Id space(H5Dget_space(dataset.id), H5Sclose);
  std::vector<hsize_t> start(dataset.extents.size(), 0);
  std::vector<hsize_t> extents(dataset.extents.begin(), dataset.extents.end());
  start[0] = first;
  extents[0] = count;
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr));
  return space;
}

}  // namespace

ItemMemory::ItemMemory() : list_(H5Pcreate(H5P_DATASET_XFER), H5Pclose) {
  check(H5Pset_vlen_mem_manager(list_, allocate, nullptr, release, nullptr));
}

void read_rows(const Dataset& dataset, hid_t type, std::uint64_t first, std::uint64_t count,
               void* into) {
  const Id from = select_rows(dataset, first, count);
  const hsize_t elements = static_cast<hsize_t>(H5Sget_select_npoints(from));
  const Id to(H5Screate_simple(1, &elements, nullptr), H5Sclose);
  check(H5Dread(dataset.id, type, to, from, H5P_DEFAULT, into));
}

std::vector<std::byte> read_item(const Dataset& dataset, std::uint64_t row,
                                 const ItemMemory& memory) {
  const Id from = select_rows(dataset, row, 1);
  const hsize_t one = 1;
  const Id to(H5Screate_simple(1, &one, nullptr), H5Sclose);
  std::vector<std::byte> bytes;
  if (dataset.type_class() == H5T_STRING) {
    char* text = nullptr;
    check(H5Dread(dataset.id, dataset.type, to, from, memory, &text));
    if (text != nullptr) {
      const auto* begin = reinterpret_cast<const std::byte*>(text);
      bytes.assign(begin, begin + std::strlen(text));
    }
    check(H5Dvlen_reclaim(dataset.type, to, memory, &text));
    return bytes;
  }
  hvl_t item{};
  check(H5Dread(dataset.id, dataset.type, to, from, memory, &item));
  const auto* begin = static_cast<const std::byte*>(item.p);
  bytes.assign(begin, begin + item.len);
  check(H5Dvlen_reclaim(dataset.type, to, memory, &item));
  return bytes;
}

}  // namespace precache::hdf5
