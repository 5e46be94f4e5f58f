// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/indexes.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache::test {

/// Writes an HDF5 file with the library, like third-party programs.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(hsize_t user_block = 0) {
    const hid_t create = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(create, user_block);
    file_ = H5Fcreate((folder_ / "a.h5").c_str(), H5F_ACC_TRUNC, create, H5P_DEFAULT);
    H5Pclose(create);
    REQUIRE(file_ >= 0);
  }
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;
  ~Hdf5Writer() { close(); }

  using Setup = std::function<void(hid_t)>;

  /// Elements are counted up, in the type of the file or as int32.
  Hdf5Writer& add(const char* name, hid_t type, const std::vector<hsize_t>& extents,
                  const Setup& setup = {}, bool write = true) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    if (setup) setup(create);
    const hid_t dataset = H5Dcreate2(file_, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    REQUIRE(dataset >= 0);
    if (write) {
      std::vector<int> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
      std::iota(values.begin(), values.end(), 0);
      if (H5Tget_size(type) == 1) {
        for (int& value : values) value %= 251;
      }
      REQUIRE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    }
    H5Dclose(dataset);
    H5Pclose(create);
    H5Sclose(space);
    return *this;
  }

  [[nodiscard]] hid_t file() const { return file_; }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }

  Bytes bytes() {
    close();
    return read_file(folder_ / "a.h5");
  }
  ShardIndex scan() { return scan_bytes(bytes(), "a.h5"); }
  std::string refusal() {
    return message_of<Unsupported>([&] { (void)scan(); });
  }

 private:
  void close() {
    if (file_ >= 0) H5Fclose(file_);
    file_ = -1;
  }
  TempFolder folder_;
  hid_t file_ = -1;
};

inline Hdf5Writer::Setup chunked(std::vector<hsize_t> shape, const Hdf5Writer::Setup& more = {}) {
  return [shape, more](hid_t create) {
    H5Pset_chunk(create, static_cast<int>(shape.size()), shape.data());
    if (more) more(create);
  };
}

}  // namespace precache::test
