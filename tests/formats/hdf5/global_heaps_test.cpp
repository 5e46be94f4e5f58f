// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/global_heaps.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <functional>

#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/indexes.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using hdf5::GlobalHeaps;
using test::Bytes;

/// Writes rows of bytes, labels and keys through the library, as other programs do.
Bytes write_rows(const std::vector<Bytes>& rows, hsize_t user_block, hsize_t chunk_rows) {
  const test::TempFolder folder;
  const hid_t create = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(create, user_block);
  const hid_t file = H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, create, H5P_DEFAULT);
  const hsize_t count = rows.size();
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk_rows != 0) H5Pset_chunk(layout, 1, &chunk_rows);
  const hid_t type = H5Tvlen_create(H5T_STD_U8LE);
  const hid_t images = H5Dcreate2(file, "images", type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
  std::vector<hvl_t> values;
  std::vector<int> labels;
  for (const Bytes& row : rows) {
    values.push_back({row.size(), const_cast<std::byte*>(row.data())});
    labels.push_back(100 + static_cast<int>(labels.size()));
  }
  CHECK(H5Dwrite(images, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  const hid_t label =
      H5Dcreate2(file, "labels", H5T_STD_I16BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Dwrite(label, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()) >= 0);
  H5Dclose(label);
  H5Dclose(images);
  H5Tclose(type);
  H5Pclose(layout);
  H5Sclose(space);
  H5Fclose(file);
  H5Pclose(create);
  return read_file(folder / "a.h5");
}

/// A row that starts like a JPEG file.
Bytes row_of(std::size_t size, std::uint64_t seed) {
  Bytes row(size);
  for (std::size_t i = 0; i < size; ++i) row[i] = static_cast<std::byte>(seed * 31 + i * 7);
  const Bytes head = test::bytes_of("\xff\xd8\xff\xe0");
  std::copy_n(head.begin(), std::min(size, head.size()), row.begin());
  return row;
}

TEST_CASE("hdf5 rows of various lengths are found in their heaps", "[formats][hdf5]") {
  std::vector<Bytes> rows;
  for (const std::size_t size : {9, 0, 1, 7, 8, 100, 4'080, 4'096, 5'000, 70'000, 3, 0, 200'000}) {
    rows.push_back(row_of(size, rows.size()));
  }
  for (std::size_t i = 0; i < 600; ++i) rows.push_back(row_of(i % 40, i));
  for (const hsize_t user_block : {0U, 512U, 2048U}) {
    for (const hsize_t chunk_rows : {0U, 7U, 1'024U}) {
      CAPTURE(user_block, chunk_rows);
      const Bytes file = write_rows(rows, user_block, std::min<hsize_t>(chunk_rows, rows.size()));
      const ShardIndex index = test::scan_bytes(file, "a.h5");
      CHECK_FALSE(index.spec);
      CHECK_THAT(index.unsupported_reason, test::contains("JPEG"));
      REQUIRE(index.samples == rows.size());
      REQUIRE(index.places.size() == rows.size());
      CHECK(test::is_inside(index, file.size()));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        CAPTURE(i);
        const SampleLocation& place = index.places[i];
        REQUIRE(place.payload_bytes == rows[i].size());
        const auto found = std::span(file).subspan(place.payload, place.payload_bytes);
        CHECK(std::ranges::equal(found, rows[i]));
        CHECK(place.label == 100 + static_cast<std::int64_t>(i));
      }
    }
  }
}

// Damage, in hand-made bytes.

void put(Bytes& file, std::size_t at, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) file[at + i] = static_cast<std::byte>(value >> 8 * i);
}

constexpr std::size_t kHeap = 24;  // the address; the reference comes before it
constexpr std::size_t kFirst = kHeap + 16;
constexpr std::size_t kSecond = kFirst + 16 + 16;

/// A reference to object 2 of a heap with objects 1 (of 11 bytes) and 2 (of 5), and free space.
Bytes make_file() {
  Bytes file(kSecond + 16 + 8 + 32);
  put(file, 0, 5, 4);
  put(file, 4, kHeap, 8);
  put(file, 12, 2, 4);
  std::ranges::copy(test::bytes_of("GCOL\1"), file.begin() + kHeap);
  put(file, kHeap + 8, file.size() - kHeap, 8);
  put(file, kFirst, 1, 2);
  put(file, kFirst + 8, 11, 8);
  put(file, kSecond, 2, 2);
  put(file, kSecond + 8, 5, 8);
  put(file, kSecond + 16 + 8 + 8, 32, 8);  // of object 0: the rest
  return file;
}

const std::filesystem::path kPath = "a.h5";

TEST_CASE("the fault of a heap is named", "[formats][hdf5][malformed]") {
  const Bytes whole = make_file();
  const auto extent = GlobalHeaps(whole, 0, kPath).follow(0);
  CHECK(extent.offset == kSecond + 16);
  CHECK(extent.bytes == 5);
  struct Case {
    std::size_t at;
    std::uint64_t value;
    std::size_t size;
    std::size_t offset;  // of the fault
    const char* words;
  };
  const std::vector<Case> cases{
      {0, 6, 4, 0, "6 bytes of an object of 5"},
      {4, 1000, 8, 0, "past the end of the file"},
      {4, UINT64_MAX, 8, 0, "past the end of the file"},
      {4, kHeap + 8, 8, kHeap + 8, "there is no heap"},
      {12, 3, 4, 0, "object 3"},
      {12, 0, 4, 0, "object 0"},
      {12, 65'538, 4, 0, "object 65538"},
      {kHeap, 0, 1, kHeap, "there is no heap"},
      {kHeap + 4, 2, 1, kHeap, "there is no heap"},
      {kHeap + 8, 15, 8, kHeap, "past the end of the file"},
      {kHeap + 8, UINT64_MAX, 8, kHeap, "past the end of the file"},
      {kFirst, 0, 2, 0, "object 2"},
      {kFirst + 8, UINT64_MAX, 8, kFirst + 16, "past the end of its heap"},
      {kFirst + 8, UINT64_MAX - 7, 8, kFirst + 16, "past the end of its heap"},
      {kSecond + 8, 41, 8, kSecond + 16, "past the end of its heap"},
  };
  for (const Case& damage : cases) {
    CAPTURE(damage.at, damage.value);
    Bytes file = whole;
    put(file, damage.at, damage.value, damage.size);
    try {
      (void)GlobalHeaps(file, 0, kPath).follow(0);
      FAIL("nothing was thrown");
    } catch (const CorruptData& error) {
      CHECK(error.offset() == damage.offset);
      CHECK_THAT(error.reason(), test::contains(damage.words));
    }
  }
}

TEST_CASE("a heap never leads outside of its file", "[formats][hdf5][malformed]") {
  const Bytes whole = make_file();
  const std::function<void(const Bytes&)> expect_inside = [](const Bytes& file) {
    try {
      const auto extent = GlobalHeaps(file, 0, kPath).follow(0);
      CHECK(extent.offset <= file.size());
      CHECK(extent.bytes <= file.size() - extent.offset);
    } catch (const CorruptData&) {
    }
  };
  for (std::size_t size = GlobalHeaps::kReferenceBytes; size < whole.size(); ++size) {
    expect_inside(test::cut(whole, size));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes file = whole;
      file[at] = static_cast<std::byte>(value);
      expect_inside(file);
    }
  }
}

TEST_CASE("overlapping heaps are refused before they cost time", "[formats][hdf5][malformed]") {
  // References, followed by empty heaps that all reach to the end of the file.
  constexpr std::size_t kHeaps = 100;
  constexpr std::size_t kBase = kHeaps * GlobalHeaps::kReferenceBytes;
  Bytes file(kBase + kHeaps * 32);
  for (std::size_t i = 0; i < kHeaps; ++i) {
    put(file, i * 16, 1, 4);
    put(file, i * 16 + 4, i * 32, 8);
    put(file, i * 16 + 12, 1, 4);
    const std::size_t heap = kBase + i * 32;
    std::ranges::copy(test::bytes_of("GCOL\1"), file.begin() + static_cast<std::ptrdiff_t>(heap));
    put(file, heap + 8, file.size() - heap, 8);
  }
  GlobalHeaps heaps(file, kBase, kPath);
  const auto reason_of = [&](std::size_t reference) {
    return test::message_of<CorruptData>([&] { (void)heaps.follow(reference * 16); });
  };
  CHECK_THAT(reason_of(0), test::contains("object 1"));
  CHECK_THAT(reason_of(1), test::contains("overlap"));
  CHECK_THAT(reason_of(99), test::contains("object 1"));  // it fits in the rest of the file
}

}  // namespace
}  // namespace precache
