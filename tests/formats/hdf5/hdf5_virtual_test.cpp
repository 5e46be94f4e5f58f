// SPDX-License-Identifier: Apache-2.0
#include <hdf5.h>

#include "formats/hdf5/hdf5_writers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using hdf5::is_virtual_file;
using hdf5::VirtualShards;
using hdf5::write_virtual_file;
using test::MadeDataset;
using test::make_dataset;
using test::read_text;
using test::TempFolder;

VirtualShards shown_of(MadeDataset& made) {
  VirtualShards shown{
      made.manifest.spec, 1, made.manifest.classes, {}, made.manifest.splits.at("train").columns};
  for (const ShardEntry& shard : made.entries()) {
    shown.shards.push_back({shard.file, shard.samples});
    shown.key_bytes = shard.columns->key.stride;
  }
  return shown;
}

/// All bytes of a dataset, in its own type.
test::Bytes read_dataset(const std::filesystem::path& path, const char* name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  REQUIRE(file >= 0);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  const hid_t type = H5Dget_type(dataset);
  const hid_t space = H5Dget_space(dataset);
  test::Bytes bytes(H5Tget_size(type) *
                    static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  REQUIRE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0);
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(dataset);
  H5Fclose(file);
  return bytes;
}

TEST_CASE("a virtual file shows the rows of all shards", "[formats][hdf5][virtual]") {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    CAPTURE(name(dtype));
    const TempFolder folder;
    MadeDataset made = make_dataset(
        folder.path(),
        {.format = Format::kHdf5, .spec = test::spec_of(5, 3, 3, dtype), .shards = {3, 0, 4, 1}});
    write_virtual_file(folder / "train.vds", shown_of(made));
    test::Bytes images;
    std::vector<std::int64_t> labels;
    for (const auto& sample : made.samples) {
      images.insert(images.end(), sample.tensor.begin(), sample.tensor.end());
      labels.push_back(sample.name.label);
    }
    CHECK(read_dataset(folder / "train.vds", "images") == images);
    const test::Bytes read = read_dataset(folder / "train.vds", "labels");
    CHECK(std::ranges::equal(read, std::as_bytes(std::span(labels))));
    const test::Bytes keys = read_dataset(folder / "train.vds", "keys");
    const std::size_t width = keys.size() / made.samples.size();
    for (std::size_t i = 0; i < made.samples.size(); ++i) {
      const std::string_view key = as_text(std::span(keys).subspan(i * width, width));
      CHECK(key.substr(0, key.find('\0')) == made.samples[i].name.key);
    }
  }
}

TEST_CASE("a virtual file shows named columns", "[formats][hdf5][virtual]") {
  const TempFolder folder;
  NamedColumn size;
  size.name = "size";
  size.type = ValueType::kInt32;
  size.shape = {2};
  NamedColumn mask;
  mask.name = "mask";
  mask.type = ValueType::kUint8;
  mask.shape = {5, 3};
  NamedColumn age;
  age.name = "age";
  MadeDataset made = make_dataset(
      folder.path(), {.format = Format::kHdf5, .shards = {3, 2}, .columns = {size, mask, age}});
  write_virtual_file(folder / "train.vds", shown_of(made));
  for (const char* const column : {"size", "mask", "age"}) {
    CAPTURE(column);
    test::Bytes expected = read_dataset(made.shards[0], column);
    const test::Bytes second = read_dataset(made.shards[1], column);
    expected.insert(expected.end(), second.begin(), second.end());
    CHECK(read_dataset(folder / "train.vds", column) == expected);
  }
}

TEST_CASE("equal shards give equal virtual files", "[formats][hdf5][virtual]") {
  const TempFolder folder;
  MadeDataset made = make_dataset(folder.path(), {.format = Format::kHdf5});
  write_virtual_file(folder / "a.vds", shown_of(made));
  write_virtual_file(folder / "b.vds", shown_of(made));
  CHECK(read_text(folder / "a.vds") == read_text(folder / "b.vds"));
}

TEST_CASE("a virtual file finds shards with a percent sign in their name",
          "[formats][hdf5][virtual]") {
  const TempFolder folder;
  MadeDataset made = make_dataset(folder.path(), {.format = Format::kHdf5, .shards = {2}});
  std::filesystem::rename(made.shards[0], folder / "100%b.h5");
  made.entries()[0].file = "100%b.h5";
  write_virtual_file(folder / "train.vds", shown_of(made));
  CHECK(read_dataset(folder / "train.vds", "images") ==
        read_dataset(folder / "100%b.h5", "images"));
}

TEST_CASE("a virtual file may have no rows and no classes", "[formats][hdf5][virtual]") {
  const TempFolder folder;
  write_virtual_file(folder / "a.vds", {test::spec_of(5, 3, 3), 1, {}, {{"a.h5", 0}}});
  CHECK(read_dataset(folder / "a.vds", "images").empty());
}

TEST_CASE("virtual files are distinguished from others", "[formats][hdf5][virtual]") {
  const TempFolder folder;
  MadeDataset made = make_dataset(folder.path(), {.format = Format::kHdf5});
  write_virtual_file(folder / "a.vds", shown_of(made));
  CHECK(is_virtual_file(folder / "a.vds"));
  CHECK_FALSE(is_virtual_file(made.shards[0]));
  CHECK_FALSE(is_virtual_file(folder / "none"));
  const std::string whole = read_text(folder / "a.vds");
  for (std::size_t size = 0; size < whole.size(); size += 41) {
    test::write_text(folder / "cut.vds", whole.substr(0, size));
    CAPTURE(size);
    CHECK_FALSE(is_virtual_file(folder / "cut.vds"));
  }
}

}  // namespace
}  // namespace precache
