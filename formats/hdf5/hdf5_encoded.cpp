// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "formats/bytes/crc32c.hpp"
#include "formats/hdf5/hdf5_id.hpp"
#include "formats/hdf5/hdf5_writers.hpp"
#include "formats/os/file.hpp"

namespace precache {
namespace {

using hdf5::check;
using hdf5::Id;

constexpr std::size_t kReadBytes = 256 << 10;
constexpr hsize_t kChunkRows = 1024;  // a row has 16 bytes: a length and a place in the file

/// Writes rows through the library, which manages the heaps of variable-length data.
class EncodedHdf5 : public EncodedShard {
 public:
  EncodedHdf5(std::filesystem::path path, const NameLimits& limits,
              const std::vector<std::string>& classes)
      : path_(std::move(path)), key_bytes_(limits.longest_key), classes_(classes) {
    hdf5::write(path_, [&] { create(); });
  }

  ~EncodedHdf5() override {
    const hdf5::LibraryLock lock;
    images_.reset();
    file_.reset();
  }

  void append(const EncodedImage& image) override {
    hdf5::write(path_, [&] {
      const hsize_t row = labels_.size();
      const hsize_t rows = row + 1;
      if (row % kChunkRows == 0) {
        const hsize_t extent = row + kChunkRows;
        check(H5Dset_extent(*images_, &extent));
      }
      const Id file_space(H5Dget_space(*images_), H5Sclose);
      const hsize_t one = 1;
      check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &row, nullptr, &one, nullptr));
      const Id memory_space(H5Screate_simple(1, &one, nullptr), H5Sclose);
      // The library only reads the bytes, although the pointer is not const.
      const hvl_t value{image.bytes.size(), const_cast<std::byte*>(image.bytes.data())};
      check(H5Dwrite(*images_, vlen_type(), memory_space, file_space, H5P_DEFAULT, &value));
      keys_.resize(rows * key_bytes_);
      image.name.key.copy(&keys_[row * key_bytes_], key_bytes_);
      labels_.push_back(image.name.label);
    });
  }

  Written finish() override {
    hdf5::write(path_, [&] {
      const hsize_t rows = labels_.size();
      check(H5Dset_extent(*images_, &rows));
      images_->close();
      images_.reset();
      add("labels", Id(H5Tcopy(H5T_STD_I64LE), H5Tclose), rows, labels_.data());
      add("keys", hdf5::string_type(key_bytes_), rows, keys_.data());
      Id labels(H5Dopen2(*file_, "labels", H5P_DEFAULT), H5Dclose);
      hdf5::add_classes(labels, classes_);
      labels.close();
      file_->close();
      file_.reset();
    });
    File file(path_, O_RDWR);
    file.sync();
    // The library does not write in order, so the CRC needs the finished file. Most of it is still
    // in the page cache.
    Written written{file.size(), 0};
    std::vector<std::byte> buffer(kReadBytes);
    for (std::uint64_t done = 0; done < written.bytes;) {
      const auto part =
          std::span(buffer).first(std::min<std::uint64_t>(kReadBytes, written.bytes - done));
      file.read_at(done, part);
      written.crc32c = crc32c::extend(written.crc32c, part);
      done += part.size();
    }
    return written;
  }

 private:
  static Id vlen_type() { return {H5Tvlen_create(Id(H5Tcopy(H5T_STD_U8LE), H5Tclose)), H5Tclose}; }

  void create() {
    file_.emplace(hdf5::create_file(path_, hdf5::new_file_access(H5F_LIBVER_V18)));
    const Id layout = hdf5::new_dataset_properties();
    check(H5Pset_chunk(layout, 1, &kChunkRows));
    const hsize_t none = 0;
    const hsize_t unlimited = H5S_UNLIMITED;
    const Id space(H5Screate_simple(1, &none, &unlimited), H5Sclose);
    images_.emplace(
        H5Dcreate2(*file_, "images", vlen_type(), space, H5P_DEFAULT, layout, H5P_DEFAULT),
        H5Dclose);
  }

  void add(const char* name, hid_t type, hsize_t rows, const void* data) {
    const Id layout = hdf5::new_dataset_properties();
    const Id space(H5Screate_simple(1, &rows, nullptr), H5Sclose);
    Id dataset(H5Dcreate2(*file_, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT), H5Dclose);
    if (rows != 0) check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
    dataset.close();
  }

  std::filesystem::path path_;
  std::size_t key_bytes_;
  const std::vector<std::string> classes_;
  std::optional<Id> file_;
  std::optional<Id> images_;
  std::vector<std::int64_t> labels_;
  std::string keys_;
};

}  // namespace

void check_encoded_hdf5() {}

std::unique_ptr<EncodedShard> make_encoded_hdf5(const std::filesystem::path& path,
                                                const NameLimits& limits,
                                                const std::vector<std::string>& classes) {
  return std::make_unique<EncodedHdf5>(path, limits, classes);
}

}  // namespace precache
