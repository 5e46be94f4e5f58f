// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_finder.hpp"

#include "formats/hdf5/hdf5_readers.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hdf5_writer.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::chunked;
using Writer = test::Hdf5Writer;
using Texts = std::vector<std::string>;

const std::vector<hsize_t> kExtents{7, 6, 5, 3};

/// Strings of a fixed width, one for each sample.
void add_texts(const Writer& writer, const char* name, const Texts& texts, std::size_t width) {
  std::string all(texts.size() * width, '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(&all[i * width], width);
  const hsize_t count = texts.size();
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, width);
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t dataset =
      H5Dcreate2(writer.file(), name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  REQUIRE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()) >= 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Tclose(type);
}

/// The labels that build and the reader find.
struct Seen {
  Texts build;
  Texts reader;
};

Seen labels_of(const Bytes& file) {
  Seen seen;
  seen.build = hdf5::find_images(file, "a.h5", {}).labels;
  const ShardIndex index = hdf5::scan(file, "a.h5");
  for (const SampleLocation& place : index.places) {
    if (place.label < 0) continue;
    const auto number = static_cast<std::size_t>(place.label);
    seen.reader.push_back(index.label_names.empty() ? std::to_string(number)
                                                    : index.label_names[number]);
  }
  for (std::uint64_t i = 0; i < index.samples && !index.columns->label.type.empty(); ++i) {
    const auto bytes = std::span(file).subspan(index.columns->label.base + i * 8, 8);
    seen.reader.push_back(std::to_string(test::little_endian(bytes)));
  }
  return seen;
}

TEST_CASE("reader and build find the same labels in an hdf5 file", "[formats][hdf5]") {
  const Texts numbers{"0", "1", "2", "3", "4", "5", "6"};
  for (const hid_t type : {H5T_STD_I64LE, H5T_STD_I64BE, H5T_STD_U8LE}) {
    Writer writer;
    const Bytes file =
        writer.add("images", H5T_STD_U8LE, kExtents).add("target", type, {7}).bytes();
    const Seen seen = labels_of(file);
    CHECK(seen.build == numbers);
    CHECK(seen.reader == numbers);
  }
  Writer mismatched;
  const Bytes file = mismatched.add("images", H5T_STD_U8LE, kExtents)
                         .add("labels", H5T_STD_I64LE, {6})
                         .add("y", H5T_STD_I32LE, {7})
                         .bytes();
  CHECK(labels_of(file).build == numbers);
  CHECK(labels_of(file).reader == numbers);
}

TEST_CASE("reader and build accept hdf5 labels of up to 256 bytes", "[formats][hdf5]") {
  const Texts names{"ant", std::string(256, 'b'), "cat", "dog", "eel", "fox", "gnu"};
  for (const std::size_t width : {256U, 257U}) {
    Writer writer;
    writer.add("images", H5T_STD_U8LE, kExtents);
    add_texts(writer, "labels", names, width);
    const Bytes file = writer.bytes();
    const Seen seen = labels_of(file);
    CHECK(seen.build == (width == 256 ? names : Texts{}));
    CHECK(seen.reader == seen.build);
    if (width == 256) continue;
    const std::string maybe = hdf5::find_images(file, "a.h5", {}).maybe_labels;
    CHECK_THAT(maybe, test::contains("'labels' (7 of string[257])"));
    CHECK(hdf5::scan(file, "a.h5").maybe_labels == maybe);
  }
}

TEST_CASE("reader and build find the same keys in an hdf5 file", "[formats][hdf5]") {
  for (const char* const name : {"keys", "filenames"}) {
    Writer writer;
    writer.add("images", H5T_STD_U8LE, kExtents).add("labels", H5T_STD_I64LE, {7});
    const Texts keys{"a", "b", "c", "d", "e", "f", "g"};
    add_texts(writer, name, keys, 4);
    const Bytes file = writer.bytes();
    CHECK(hdf5::find_images(file, "a.h5", {}).keys == keys);
    const Column column = hdf5::scan(file, "a.h5").columns->key;
    CHECK(column.type == "utf8");
    CHECK(column.stride == 4);
  }
}

TEST_CASE("reader and build ask for a name if several hdf5 datasets may be the images",
          "[formats][hdf5]") {
  Writer writer;
  const Bytes file =
      writer.add("a", H5T_STD_U8LE, kExtents).add("b", H5T_STD_U8LE, kExtents).bytes();
  const auto expected = test::contains("several datasets that could hold the images: a, b");
  CHECK_THAT(test::message_of<InvalidArgument>([&] { (void)hdf5::find_images(file, "a.h5", {}); }),
             expected);
  // A caller that opens, inspects or verifies a file names no dataset, so its argument is not
  // wrong.
  CHECK_THAT(test::message_of<Unsupported>([&] { (void)hdf5::scan(file, "a.h5"); }), expected);
  CHECK_THAT(test::message_of<Unsupported>([&] { (void)hdf5::check_images(file, "a.h5"); }),
             expected);
  const SampleKeys keys{"/b", "", false};
  CHECK(hdf5::find_images(file, "a.h5", keys).name == "b");
  CHECK(hdf5::scan(file, "a.h5", keys).samples == 7);
}

TEST_CASE("a dataset with the name of labels is not the images of an hdf5 file",
          "[formats][hdf5]") {
  Writer writer;
  const Bytes file =
      writer.add("pictures", H5T_STD_U8LE, kExtents).add("labels", H5T_STD_U8LE, {7, 6, 5}).bytes();
  CHECK(hdf5::find_images(file, "a.h5", {}).name == "pictures");
  CHECK(hdf5::scan(file, "a.h5").spec->channels == 3);
}

TEST_CASE("rows of an hdf5 file that changed since it was listed are refused",
          "[formats][hdf5][malformed]") {
  Writer writer;
  const Bytes file = writer.add("images", H5T_STD_U16BE, kExtents, chunked({3, 6, 5, 3})).bytes();
  const hdf5::ImageRows rows = hdf5::find_images(file, "a.h5", {});
  std::size_t bytes = 0;
  hdf5::read_rows(file, "a.h5", rows, [&](auto part) { bytes += part.size(); });
  CHECK(bytes == 7 * 6 * 5 * 3 * 2);
  const auto read = [&](const hdf5::ImageRows& other) {
    hdf5::read_rows(file, "a.h5", other, [](auto) {});
  };
  hdf5::ImageRows other = rows;
  other.row_bytes -= 2;
  CHECK_THROWS_AS(read(other), CorruptData);
  other = rows;
  other.count = 8;
  CHECK_THROWS_AS(read(other), CorruptData);
}

}  // namespace
}  // namespace precache
