// SPDX-License-Identifier: Apache-2.0
#include <hdf5.h>

#include <bit>

#include "formats/hdf5/hdf5_writers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::spec_of;

/// An identifier of the HDF5 library that closes itself.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) { REQUIRE(id >= 0); }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  ~Id() { close_(id_); }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// A dataset of an open file, with the properties that the tests check.
class Dataset {
 public:
  Dataset(hid_t file, const char* dataset_name)
      : id_(H5Dopen2(file, dataset_name, H5P_DEFAULT), H5Dclose),
        type_(H5Dget_type(id_), H5Tclose),
        space_(H5Dget_space(id_), H5Sclose) {
    extents.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space_)));
    H5Sget_simple_extent_dims(space_, extents.data(), nullptr);
  }
  [[nodiscard]] haddr_t offset() const { return H5Dget_offset(id_); }
  [[nodiscard]] hid_t id() const { return id_; }
  [[nodiscard]] hid_t type() const { return type_; }
  [[nodiscard]] Bytes read(hid_t as, std::size_t size) const {
    Bytes bytes(size);
    REQUIRE(H5Dread(id_, as, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0);
    return bytes;
  }

  std::vector<hsize_t> extents;

 private:
  Id id_;
  Id type_;
  Id space_;
};

void check_texts(hid_t type, const Bytes& bytes, const std::vector<std::string>& texts) {
  CHECK(H5Tget_class(type) == H5T_STRING);
  CHECK(H5Tis_variable_str(type) == 0);
  CHECK(H5Tget_cset(type) == H5T_CSET_UTF8);
  CHECK(H5Tget_strpad(type) == H5T_STR_NULLPAD);
  const std::size_t width = H5Tget_size(type);
  const std::string all = test::text_of(bytes);
  REQUIRE(all.size() == width * texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string padded = all.substr(i * width, width);
    CHECK(padded.substr(0, texts[i].size()) == texts[i]);
    CHECK(padded.find_first_not_of('\0', texts[i].size()) == std::string::npos);
  }
}

void check_strings(const Dataset& dataset, const std::vector<std::string>& texts) {
  REQUIRE(dataset.extents == std::vector<hsize_t>{texts.size()});
  const std::size_t width = H5Tget_size(dataset.type());
  check_texts(dataset.type(), dataset.read(dataset.type(), width * texts.size()), texts);
}

void check_classes(hid_t labels, const std::vector<std::string>& classes) {
  REQUIRE((H5Aexists(labels, "classes") > 0) == !classes.empty());
  if (classes.empty()) return;
  const Id attribute(H5Aopen(labels, "classes", H5P_DEFAULT), H5Aclose);
  const Id type(H5Aget_type(attribute), H5Tclose);
  Bytes bytes(H5Aget_storage_size(attribute));
  REQUIRE(H5Aread(attribute, type, bytes.data()) >= 0);
  check_texts(type, bytes, classes);
}

void check_shard(const TensorSpec& spec, const std::vector<SampleName>& names,
                 const std::vector<std::string>& classes) {
  const auto framing = make_hdf5_framing(spec, test::limits_of(names), classes);
  const auto samples = test::make_samples(names, spec.size_bytes());
  const Bytes shard = test::assemble(*framing, samples);
  const ShardColumns columns = framing->columns(names.size());
  CHECK(shard.size() <= framing->shard_bytes(names.size()));
  std::size_t longest = 0;
  for (const auto& class_name : classes) longest = std::max(longest, class_name.size());
  if (classes.size() * longest <= 4096) CHECK(shard.size() == framing->shard_bytes(names.size()));
  CHECK(columns.image.base == 8192);
  CHECK(columns.image.type == name(spec.dtype));
  CHECK(columns.label.type == "int64");
  CHECK(columns.key.type == "utf8");

  const test::TempFolder folder;
  test::write_bytes(folder / "shard.h5", shard);
  const Id file(H5Fopen((folder / "shard.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  hsize_t file_size = 0;
  CHECK(H5Fget_filesize(file, &file_size) >= 0);
  CHECK(file_size == shard.size());

  const Dataset images(file, "images");
  const auto shape = spec.shape();
  CHECK(images.extents == std::vector<hsize_t>{names.size(), shape[0], shape[1], shape[2]});
  CHECK(H5Tget_size(images.type()) == size_bytes(spec.dtype));
  const Dataset labels(file, "labels");
  CHECK(labels.extents == std::vector<hsize_t>{names.size()});
  CHECK(H5Tequal(labels.type(), H5T_STD_I64LE) > 0);
  const Dataset keys(file, "keys");
  std::vector<std::string> key_texts;
  for (const auto& sample : names) key_texts.push_back(sample.key);
  check_strings(keys, key_texts);
  check_classes(labels.id(), classes);
  CHECK(H5Lexists(file, "classes", H5P_DEFAULT) == 0);
  if (names.empty()) return;

  CHECK(images.offset() == columns.image.base);
  CHECK(labels.offset() == columns.label.base);
  CHECK(keys.offset() == columns.key.base);
  CHECK(columns.label.stride == 8);
  CHECK(H5Tget_size(keys.type()) == columns.key.stride);
  const Bytes pixels = images.read(images.type(), names.size() * spec.size_bytes());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(i);
    CHECK(std::ranges::equal(std::span(pixels).subspan(i * spec.size_bytes(), spec.size_bytes()),
                             samples[i].tensor));
    // The same by plain arithmetic, as in a reader without the library.
    const std::span<const std::byte> all = shard;
    CHECK(test::little_endian(all.subspan(columns.label.base + i * 8, 8)) ==
          static_cast<std::uint64_t>(names[i].label));
    const auto key =
        test::text_of(all.subspan(columns.key.base + i * columns.key.stride, columns.key.stride));
    CHECK(key.substr(0, names[i].key.size()) == names[i].key);
  }
  const Bytes label_bytes = labels.read(H5T_NATIVE_INT64, names.size() * 8);
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(static_cast<std::int64_t>(
              test::little_endian(std::span(label_bytes).subspan(i * 8, 8))) == names[i].label);
  }
}

std::vector<SampleName> many_names(std::size_t count) {
  std::vector<SampleName> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back({"class/" + std::string(i % 13, 'x') + std::to_string(i),
                     static_cast<std::int64_t>(i % 5) - 1});
  }
  return names;
}

TEST_CASE("hdf5 shards of any number of samples open in the library", "[formats][hdf5]") {
  for (const std::size_t count : {0U, 1U, 2U, 7U, 8U, 9U, 63U, 64U, 65U, 1000U}) {
    CAPTURE(count);
    check_shard(spec_of(3, 5, 3), many_names(count), {"a", "bc", "\xe7\x8c\xab"});
    check_shard(spec_of(3, 5, 3), many_names(count), {});
  }
}

TEST_CASE("hdf5 shards of all types and layouts open in the library", "[formats][hdf5]") {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      check_shard(spec_of(6, 4, 3, dtype, layout), many_names(5), {"only"});
      check_shard(spec_of(1, 1, 1, dtype, layout), many_names(5), {"only"});
    }
  }
}

TEST_CASE("hdf5 shards hold many classes and long keys", "[formats][hdf5]") {
  std::vector<std::string> classes;
  for (int i = 0; i < 21'843; ++i) classes.push_back("class number " + std::to_string(i));
  check_shard(spec_of(2, 2, 3), many_names(3), classes);
  check_shard(spec_of(2, 2, 3), {{std::string(4000, 'k'), 0}, {"short", 1}},
              {std::string(3000, 'c'), "d"});
  check_shard(spec_of(2, 2, 3), {{"k", INT64_MIN}, {"l", INT64_MAX}}, {"c"});
}

TEST_CASE("hdf5 shards hold class names of any size", "[formats][hdf5]") {
  // In the block before the images, after the data, and, above 64 KiB, in a heap.
  for (const std::size_t width : {1U, 30U, 60U, 64U, 66U, 70U, 90U, 654U, 655U, 656U, 3000U}) {
    CAPTURE(width);
    const std::vector<std::string> classes(100, std::string(width, 'n'));
    check_shard(spec_of(3, 5, 3), many_names(7), classes);
    check_shard(spec_of(3, 5, 3), {}, classes);
    check_shard(spec_of(3, 5, 3, DType::kBfloat16), many_names(1), classes);
    const auto framing =
        make_hdf5_framing(spec_of(2, 2, 3), test::limits_of(many_names(9)), classes);
    const Envelope first = test::envelope_of(*framing, many_names(9));
    const Envelope second = test::envelope_of(*framing, many_names(9));
    CHECK(first.prologue == second.prologue);
    CHECK(first.epilogue == second.epilogue);
  }
}

TEST_CASE("hdf5 images have float types whose values the library reads correctly",
          "[formats][hdf5]") {
  struct Case {
    DType dtype;
    std::vector<std::uint16_t> bits;
    std::vector<float> values;
  };
  for (const auto& [dtype, bits, values] :
       {Case{DType::kFloat16, {0x3c00, 0xc000, 0x0001, 0x7bff}, {1.0F, -2.0F, 0x1p-24F, 65504.0F}},
        Case{DType::kBfloat16,
             {0x3f80, 0xc000, 0x0080, 0x7f7f},
             {1.0F, -2.0F, 0x1p-126F, 0x1.fep127F}}}) {
    const auto framing =
        make_hdf5_framing(spec_of(2, 2, 1, dtype), test::limits_of({{"k", 0}}), {});
    const auto raw = std::as_bytes(std::span(bits));
    const std::vector<test::Sample> samples{{{"k", 0}, Bytes(raw.begin(), raw.end())}};
    const test::TempFolder folder;
    test::write_bytes(folder / "shard.h5", test::assemble(*framing, samples));
    const Id file(H5Fopen((folder / "shard.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const Bytes read = Dataset(file, "images").read(H5T_NATIVE_FLOAT, 16);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto word =
          static_cast<std::uint32_t>(test::little_endian(std::span(read).subspan(i * 4, 4)));
      CAPTURE(name(dtype), i);
      CHECK(std::bit_cast<float>(word) == values[i]);
    }
  }
}

TEST_CASE("hdf5 images have an attribute with their layout", "[formats][hdf5]") {
  for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
    const auto framing =
        make_hdf5_framing(spec_of(2, 2, 3, DType::kUint8, layout), test::limits_of({{"k", 0}}), {});
    const test::TempFolder folder;
    test::write_bytes(
        folder / "shard.h5",
        test::assemble(*framing, test::make_samples(std::vector<SampleName>{{"k", 0}}, 12)));
    const Id file(H5Fopen((folder / "shard.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const Dataset images(file, "images");
    const Id attribute(H5Aopen(images.id(), "layout", H5P_DEFAULT), H5Aclose);
    const Id type(H5Aget_type(attribute), H5Tclose);
    std::string text(H5Tget_size(type), '\0');
    CHECK(H5Aread(attribute, type, text.data()) >= 0);
    CHECK(text == name(layout));
  }
}

TEST_CASE("hdf5 envelopes of equal samples are equal to the byte", "[formats][hdf5]") {
  const auto framing =
      make_hdf5_framing(spec_of(2, 2, 3), test::limits_of(many_names(9)), {"a", "b"});
  const Envelope first = test::envelope_of(*framing, many_names(9));
  const Envelope second = test::envelope_of(*framing, many_names(9));
  CHECK(first.prologue == second.prologue);
  CHECK(first.epilogue == second.epilogue);
}

}  // namespace
}  // namespace precache
