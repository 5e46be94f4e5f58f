// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/hdf5/hdf5_writers.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/corpora.hpp"
#include "tests/support/hdf5_writer.hpp"
#include "tests/support/indexes.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using test::Bytes;

using Writer = test::Hdf5Writer;
using test::chunked;

const std::vector<hsize_t> kExtents{7, 6, 5, 3};
constexpr std::uint64_t kRow = 90;

/// Whether row i of the uint8 images that a Writer wrote starts at `offset`.
bool is_row(const Bytes& file, std::uint64_t offset, std::uint64_t i) {
  for (std::uint64_t j = 0; j < kRow; ++j) {
    if (std::to_integer<std::uint64_t>(file[offset + j]) != (i * kRow + j) % 251) return false;
  }
  return true;
}

TEST_CASE("hdf5 class names are found in the attribute of the labels", "[formats][hdf5][scan]") {
  const std::vector<SampleName> names{{"a", 1}, {"b", 0}};
  const TensorSpec spec = test::spec_of(4, 4, 3);
  for (const std::size_t count : {0U, 1U, 3U, 5000U}) {
    CAPTURE(count);
    std::vector<std::string> classes;
    for (std::size_t i = 0; i < count; ++i) {
      classes.push_back("class number " + std::to_string(i));
    }
    const auto framing = make_hdf5_framing(spec, test::limits_of(names), classes);
    const auto samples = test::make_samples(names, spec.size_bytes());
    CHECK(hdf5::scan(test::assemble(*framing, samples), "a.h5").classes == classes);
  }
}

TEST_CASE("contiguous third-party hdf5 images are columns", "[formats][hdf5]") {
  for (const hsize_t user_block : {0U, 512U, 2048U}) {
    for (const char* name : {"images", "image", "data", "x", "X_train", "anything", "group"}) {
      CAPTURE(user_block, name);
      Writer writer(user_block);
      const std::string group = std::string(name) == "group" ? "group/" : "";
      if (!group.empty()) {
        H5Gclose(H5Gcreate2(writer.file(), "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      }
      const std::string images = group.empty() ? name : "group/pictures";
      writer.add(images.c_str(), H5T_STD_U8LE, kExtents);
      writer.add((group + "y").c_str(), H5T_STD_I64LE, {7});
      const Bytes file = writer.bytes();
      const ShardIndex index = test::scan_bytes(file, "a.h5");
      CHECK(index.spec == TensorSpec{DType::kUint8, Layout::kHwc, 6, 5, 3});
      CHECK(index.samples == 7);
      CHECK(index.places.empty());
      CHECK(index.columns->image.type == "uint8");
      CHECK(index.columns->image.stride == kRow);
      for (std::uint64_t i = 0; i < 7; ++i) {
        CHECK(is_row(file, index.columns->image.base + i * kRow, i));
        const auto label = std::span(file).subspan(index.columns->label.base + i * 8, 8);
        CHECK(test::little_endian(label) == i);
      }
      CHECK(index.columns->label.type == "int64");
      CHECK(index.columns->key == Column{});
    }
  }
}

TEST_CASE("hdf5 images in chunks of whole rows are found", "[formats][hdf5]") {
  for (const hsize_t user_block : {0U, 1024U}) {
    for (const hsize_t rows : {1U, 2U, 3U, 7U, 8U}) {
      CAPTURE(user_block, rows);
      Writer writer(user_block);
      std::vector<hsize_t> shape = kExtents;
      shape[0] = std::min<hsize_t>(rows, 7);
      const Bytes file = writer.add("images", H5T_STD_U8LE, kExtents, chunked(shape))
                             .add("label", H5T_STD_U16LE, {7, 1})
                             .bytes();
      const ShardIndex index = test::scan_bytes(file, "a.h5");
      CHECK(index.spec);
      REQUIRE(index.places.size() == 7);
      for (std::uint64_t i = 0; i < 7; ++i) {
        CHECK(is_row(file, index.places[i].payload, i));
        CHECK(index.places[i].payload_bytes == kRow);
        CHECK(index.places[i].label == static_cast<std::int64_t>(i));
      }
    }
  }
}

TEST_CASE("contiguous hdf5 chunks are columns", "[formats][hdf5]") {
  Writer writer;
  const ShardIndex index = writer.add("images", H5T_STD_U8LE, kExtents, chunked({7, 6, 5, 3}))
                               .add("labels", H5T_STD_I64LE, {7})
                               .scan();
  CHECK(index.places.empty());
  CHECK(index.columns->image.stride == kRow);
  CHECK(index.columns->label.stride == 8);
}

TEST_CASE("hdf5 labels of all integer types are read", "[formats][hdf5]") {
  for (const hid_t type : {H5T_STD_U8LE, H5T_STD_I32LE, H5T_STD_I64BE, H5T_STD_U32BE}) {
    Writer writer;
    const ShardIndex index =
        writer.add("images", H5T_STD_U8LE, kExtents).add("labels", type, {7}).scan();
    REQUIRE(index.places.size() == 7);
    CHECK(index.places[5].label == 5);
  }
  Writer deflated;
  const auto gzip = [](hid_t create) { H5Pset_deflate(create, 6); };
  CHECK(deflated.add("images", H5T_STD_U8LE, kExtents)
            .add("labels", H5T_STD_I64LE, {7}, chunked({4}, gzip))
            .scan()
            .places[6]
            .label == 6);
  Writer other_length;
  CHECK(other_length.add("images", H5T_STD_U8LE, kExtents)
            .add("labels", H5T_STD_I64LE, {6})
            .add("y", H5T_IEEE_F32LE, {7})
            .scan()
            .columns->label == Column{});
}

TEST_CASE("hdf5 axes are found from the attribute or the extents", "[formats][hdf5]") {
  const auto order_of = [](const std::vector<hsize_t>& extents) {
    Writer writer;
    return writer.add("images", H5T_STD_U8LE, extents).scan().spec;
  };
  CHECK(order_of({2, 3, 6, 5}) == TensorSpec{DType::kUint8, Layout::kChw, 6, 5, 3});
  CHECK(order_of({2, 6, 5, 1}) == TensorSpec{DType::kUint8, Layout::kHwc, 6, 5, 1});
  CHECK(order_of({2, 6, 5}) == TensorSpec{DType::kUint8, Layout::kChw, 6, 5, 1});
  CHECK_FALSE(order_of({2, 6, 5, 7}));
  Writer writer;
  writer.add("images", H5T_STD_U8LE, {2, 3, 6, 4});
  const hid_t images = H5Dopen2(writer.file(), "images", H5P_DEFAULT);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, 4);
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(images, "layout", type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, "hwc");
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(images);
  CHECK(writer.scan().spec == TensorSpec{DType::kUint8, Layout::kHwc, 3, 6, 4});
}

TEST_CASE("hdf5 elements of other types have no spec", "[formats][hdf5]") {
  Writer writer;
  const ShardIndex index = writer.add("images", H5T_STD_U16LE, kExtents).scan();
  CHECK(index.unsupported_reason == "its samples are arrays of uint16");
  CHECK_FALSE(index.spec);
  CHECK(index.places.size() == 7);
  CHECK(index.places[1].payload - index.places[0].payload == 2 * kRow);
}

TEST_CASE("hdf5 images that cannot be mapped are refused with the reason",
          "[formats][hdf5][malformed]") {
  const auto refusal = [](hid_t type, const Writer::Setup& setup, bool write = true) {
    Writer writer;
    return writer.add("images", type, kExtents, setup, write).refusal();
  };
  const auto filtered = [&](const Writer::Setup& filter) {
    return refusal(H5T_STD_U8LE, chunked({1, 6, 5, 3}, filter));
  };
  CHECK_THAT(filtered([](hid_t create) {
               H5Pset_shuffle(create);
               H5Pset_deflate(create, 6);
             }),
             test::contains("filters (shuffle, gzip)"));
  CHECK_THAT(filtered([](hid_t create) { H5Pset_fletcher32(create); }),
             test::contains("fletcher32"));
  CHECK_THAT(refusal(H5T_STD_U8LE, chunked({7, 3, 5, 3})), test::contains("split over chunks"));
  CHECK_THAT(refusal(H5T_STD_U8LE, [](hid_t create) { H5Pset_layout(create, H5D_COMPACT); }),
             test::contains("inside its header"));
  CHECK_THAT(refusal(H5T_IEEE_F32BE, {}), test::contains("big-endian float32"));
  CHECK_THAT(refusal(H5T_STD_U8LE, {}, false), test::contains("not allocated in the file"));
  CHECK_THAT(refusal(H5T_STD_U8LE, chunked({1, 6, 5, 3}), false),
             test::contains("not allocated in the file"));
  Writer external;
  const std::string data = (external.folder() / "data").string();
  CHECK_THAT(external
                 .add("images", H5T_STD_U8LE, kExtents,
                      [&](hid_t create) { H5Pset_external(create, data.c_str(), 0, 7 * kRow); })
                 .refusal(),
             test::contains("other files"));
  Writer several;
  CHECK_THAT(several.add("a", H5T_STD_U8LE, kExtents).add("b", H5T_STD_U8LE, kExtents).refusal(),
             test::contains("several datasets that could hold the images: a, b"));
  Writer none;
  CHECK_THAT(none.add("table", H5T_STD_U8LE, {7, 6}).refusal(), test::contains("no dataset"));
  Writer files;
  const hid_t various = H5Tvlen_create(H5T_STD_U8LE);
  CHECK_THAT(files.add("images", various, {7}, {}, false).refusal(),
             test::contains("'images' is not allocated in the file yet"));
  H5Tclose(various);
}

TEST_CASE("hdf5 links to other files are not followed", "[formats][hdf5][malformed]") {
  Writer target;
  target.add("images", H5T_STD_U8LE, kExtents);
  (void)target.bytes();
  const std::string path = (target.folder() / "a.h5").string();
  Writer writer;
  H5Lcreate_external(path.c_str(), "/images", writer.file(), "images", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/images", writer.file(), "data", H5P_DEFAULT, H5P_DEFAULT);
  CHECK_THAT(writer.refusal(), test::contains("no dataset"));
}

TEST_CASE("a scan restores the error printing of the hdf5 library", "[formats][hdf5]") {
  H5E_auto2_t before = nullptr;
  H5E_auto2_t after = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  CHECK_THROWS_AS(test::scan_text("\x89HDF\r\n\x1a\n and so on", "a.h5"), CorruptData);
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  CHECK(before == after);
}

TEST_CASE("third-party hdf5 files are read", "[formats][hdf5][golden]") {
  const auto folder = test::corpora() / "hdf5";
  if (test::corpus("hdf5").empty()) PRECACHE_SKIP("the corpus of HDF5 files is missing");
  const auto scan_file = [&](const std::string& name) {
    const auto bytes = read_file(folder / name);
    ShardIndex index = test::scan_bytes(bytes, folder / name);
    CHECK(test::is_inside(index, bytes.size()));
    return index;
  };
  const ShardIndex cats = scan_file("catvnoncat/test_catvnoncat.h5");
  CHECK(cats.spec == TensorSpec{DType::kUint8, Layout::kHwc, 64, 64, 3});
  CHECK(cats.samples == 50);
  CHECK(cats.columns->image.type == "uint8");
  CHECK(cats.columns->label.type == "int64");
  CHECK(cats.classes == std::vector<std::string>{"non-cat", "cat"});
  CHECK(scan_file("tfds/3dshapes.h5").samples == 5);
  CHECK(scan_file("tfds/camelyonpatch_level_2_split_train_x.h5").spec ==
        TensorSpec{DType::kUint8, Layout::kHwc, 96, 96, 3});
  CHECK(scan_file("hdfgroup/tools/test/h5dump/testfiles/vds/1_a.h5").places.size() == 5);
  const auto refusal = [&](const std::string& name) {
    return test::message_of<Unsupported>([&] { (void)scan_file(name); });
  };
  CHECK_THAT(refusal("tfds/00001.h5"), test::contains("gzip"));
  CHECK_THAT(refusal("hdfgroup/HDF5Examples/C/H5FLT/tfiles/h5ex_d_jpeg.h5"),
             test::contains("jpeg"));
  CHECK_THAT(refusal("hdfgroup/tools/test/h5dump/testfiles/vds/1_vds.h5"),
             test::contains("other files"));
  CHECK_THAT(refusal("hdfgroup/tools/test/h5import/testfiles/txtin16.h5"),
             test::contains("split over chunks"));
  CHECK_THAT(refusal("signs/train_signs.h5"), test::contains("HTML page"));
  CHECK_THROWS_AS(scan_file("hdfgroup/tools/test/misc/testfiles/h5clear_fsm_persist_greater.h5"),
                  CorruptData);
}

TEST_CASE("hostile hdf5 files do no harm, except through faults of the library",
          "[formats][hdf5][malformed]") {
  const auto files = test::corpus("hdf5");
  if (files.empty()) PRECACHE_SKIP("the corpus of HDF5 files is missing");
  // On the first four, HDF5 1.10.8 reads or writes out of bounds when it opens them or walks over
  // their groups. The last makes it ask for 2^56 bytes, on which AddressSanitizer aborts.
  const std::set<std::string> fatal{"cve-2018-13870.h5", "cve-2018-13871.h5", "cve-2021-45830.h5",
                                    "cve-2025-6516.h5", "gh-4435-poc-10.h5"};
  for (const auto& path : files) {
    if (fatal.contains(path.filename().string())) continue;
    CAPTURE(path);
    CHECK(test::ends_normally([&] {
      const Bytes bytes = read_file(path);
      try {
        if (!test::is_inside(test::scan_bytes(bytes, path), bytes.size())) ::_exit(1);
      } catch (const Error&) {
      }
    }));
  }
}

}  // namespace
}  // namespace precache
