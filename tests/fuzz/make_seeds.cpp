// SPDX-License-Identifier: Apache-2.0
// Writes a folder of first inputs for each fuzz target: files
// of precache, and third-party dialects from the tests.
//
//   fuzz_seeds FOLDER
#include <cstdio>
#include <exception>
#include <filesystem>

#include "formats/os/file.hpp"
#include "tests/fuzz/seed_dataset.hpp"
#include "tests/support/example_writer.hpp"
#include "tests/support/tar_writer.hpp"
#ifdef PRECACHE_WITH_HDF5
#include "formats/hdf5/hdf5_writers.hpp"
#endif

namespace {

using namespace precache;
using namespace precache::test;
using Path = std::filesystem::path;

const std::string kArray =
    npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 4), }\n", 48);
const std::string kJpeg = "\xff\xd8\xff\xe0 no picture";

void write_own(const Path& folder, Format format) {
  const TempFolder work;
  const MadeDataset made = fuzz::make_seed_dataset(work.path(), format);
  write_text(folder / name(format) / "own", read_text(made.shards[0]));
  write_text(folder / "manifest" / name(format), read_text(made.folder / kManifestName));
}

void write_tars(const Path& folder) {
  const std::string image = tar_entry("a/x.jpg", kJpeg) + tar_entry("a/x.cls", "3\n");
  const std::string json = tar_entry("y.png", "png") + tar_entry("y.json", R"({"label": 5})");
  write_text(folder / "webdataset", image + json + kTarEnd);
  write_text(folder / "arrays", tar_entry("0.npy", kArray) + tar_entry("0.cls", "1") +
                                    tar_entry("1.npy", kArray) + tar_entry("1.cls", "2"));
  write_text(folder / "pax",
             pax_header(pax_record("path", "long/name.npy") + pax_record("size", "1234")) +
                 tar_entry("short.npy", kArray) + kTarEnd);
  write_text(folder / "global", pax_header(pax_record("comment", "all"), 'g') + image + kTarEnd);
  write_text(folder / "gnu", tar_entry("././@LongLink", "a/name/that/is/long.jpg\0",
                                       {.type = 'L', .magic = kGnuMagic}) +
                                 tar_entry("a/name", kJpeg, {.magic = kGnuMagic}) + kTarEnd);
  write_text(folder / "numbered", tar_entry("v.1.jpg", kJpeg) + tar_entry("v.2.jpg", kJpeg));
  write_text(folder / "base-256",
             tar_entry("b.jpg", kJpeg, {.size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x10", 12)}));
}

void write_tfrecords(const Path& folder) {
  const std::string raw = bytes_feature("image_raw", std::string(12, 'i')) +
                          int_feature("height", {2}) + int_feature("width", {2}) +
                          int_feature("channels", {3}) + int_feature("label", {1});
  const std::string encoded = bytes_feature("image/encoded", kJpeg) +
                              int_feature("image/class/label", {300}, false) +
                              bytes_feature("image/filename", "a.jpg");
  const std::string shaped = bytes_feature("img", std::string(12, 'i')) +
                             int_feature("shape", {2, 2, 3}) + bytes_feature("cls", "4");
  for (const auto& [name, features] :
       {std::pair{"raw", raw}, std::pair{"encoded", encoded}, std::pair{"shaped", shaped}}) {
    write_text(folder / name, tfrecord(example(features)) + tfrecord(example(features)));
  }
  write_text(folder / "no-example", tfrecord("text") + tfrecord(""));
}

/// Padded as NumPy does, so that inserted text can replace spaces.
std::string padded_array(std::string dict, std::size_t array_bytes) {
  dict.resize(117, ' ');
  return npy_file(dict + '\n', array_bytes);
}

void write_arrays(const Path& folder) {
  const auto write = [&](const char* name, const char* dict, std::size_t array_bytes) {
    write_text(folder / name, padded_array(dict, array_bytes));
  };
  write("uint8", "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 4), }", 48);
  write("uint16", "{'descr': '<u2', 'fortran_order': False, 'shape': (4, 4, 3), }", 96);
  write("fortran", "{'descr': '<f4', 'fortran_order': True, 'shape': (2L, 2L), }", 16);
  write("records",
        "{'descr': [('a', '<f4', (2,)), ('b', '|S3')], 'fortran_order': False, 'shape': (2,), }",
        22);
}

void write_lists(const Path& folder) {
  write_text(folder / "plain", "path,label\na/1.jpg,cat\nb/2.jpg,dog\n");
  write_text(
      folder / "typed",
      "path,label,age:float,box:int[2],tags:multi\na.jpg,cat,1.5,-1 2,x;y\nb.jpg,dog,2,3 4,\n");
  write_text(folder / "quoted", "\xef\xbb\xbf\"a, b.jpg\",\"the \"\"cat\"\"\"\r\n\r\n\"x\ny\",z");
}

#ifdef PRECACHE_WITH_HDF5
void write_encoded_hdf5(const Path& folder) {
  NameLimits limits;
  limits.longest_key = 3;
  const auto shard = make_encoded_hdf5(folder / "encoded", limits, {"ant", "bee"});
  for (const char* const key : {"a/1", "b/2"}) {
    shard->append({{key, 1}, "jpg", "bee", as_bytes(kJpeg)});
  }
  (void)shard->finish();
}
#endif

void write_all(const Path& folder) {
  write_own(folder, Format::kTar);
  write_own(folder, Format::kTfrecord);
#ifdef PRECACHE_WITH_HDF5
  write_own(folder, Format::kHdf5);
  write_encoded_hdf5(folder / "hdf5");
#endif
  write_tars(folder / "tar");
  write_tfrecords(folder / "tfrecord");
  write_arrays(folder / "npy");
  write_lists(folder / "csv");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  try {
    write_all(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
    return 1;
  }
}
