// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "formats/bytes/checked_math.hpp"
#include "formats/hdf5/hdf5_id.hpp"
#include "formats/hdf5/hdf5_writers.hpp"
#include "formats/os/file.hpp"

namespace precache::hdf5 {
namespace {

using Extents = std::vector<hsize_t>;

Id dataspace(const Extents& extents) {
  return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose};
}

/// To the library, "%b" in a file name is the number of a block.
std::string escaped(const std::string& file) {
  std::string result;
  for (const char letter : file) result += letter == '%' ? "%%" : std::string(1, letter);
  return result;
}

/// Adds a dataset whose rows are those of the shards' datasets of the same name. `extents` are
/// those of a row, after an element for the number of rows.
Id add_virtual(hid_t file, const char* name, hid_t type, Extents extents,
               const VirtualShards& shown) {
  extents[0] = 0;
  for (const auto& shard : shown.shards) extents[0] = checked_add(extents[0], shard.samples);
  const Id all = dataspace(extents);
  const Id create = new_dataset_properties();
  Extents begin(extents.size(), 0);
  Extents count = extents;
  for (const auto& shard : shown.shards) {
    if (shard.samples == 0) continue;
    count[0] = shard.samples;
    check(H5Sselect_hyperslab(all, H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr));
    check(H5Pset_virtual(create, all, escaped(shard.file).c_str(), name, dataspace(count)));
    begin[0] += shard.samples;
  }
  check(H5Sselect_all(all));
  return {H5Dcreate2(file, name, type, all, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose};
}

void write_all(const std::filesystem::path& path, const VirtualShards& shown) {
  Id file = create_file(path, new_file_access(H5F_LIBVER_V110));
  const auto shape = shown.spec.shape();
  Id images = add_virtual(file, "images", image_type(shown.spec.dtype),
                          {0, shape[0], shape[1], shape[2]}, shown);
  add_attribute(images, "layout", name(shown.spec.layout));
  images.close();
  Id labels = add_virtual(file, "labels", Id(H5Tcopy(H5T_STD_I64LE), H5Tclose), {0}, shown);
  add_classes(labels, shown.classes);
  labels.close();
  add_virtual(file, "keys", string_type(shown.key_bytes), {0}, shown).close();
  for (const NamedColumn& column : shown.columns) {
    Extents extents{0};
    extents.insert(extents.end(), column.shape.begin(), column.shape.end());
    add_virtual(file, column.name.c_str(), value_type(column.type), std::move(extents), shown)
        .close();
  }
  file.close();
}

}  // namespace

void write_virtual_file(const std::filesystem::path& path, const VirtualShards& shown) {
  write(path, [&] { write_all(path, shown); });
  File(path, O_RDONLY).sync();
}

bool is_virtual_file(const std::filesystem::path& path) {
  forgo_exit_handler();  // only programs that write call this
  const LibraryLock lock;
  try {
    const Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const Id images(H5Dopen2(file, "images", H5P_DEFAULT), H5Dclose);
    const Id create(H5Dget_create_plist(images), H5Pclose);
    return H5Pget_layout(create) == H5D_VIRTUAL;
  } catch (const LibraryFailure&) {
    return false;
  }
}

}  // namespace precache::hdf5
