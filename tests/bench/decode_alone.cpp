// SPDX-License-Identifier: Apache-2.0
//
// The bound that `precache build` is measured against: every JPEG below a folder is read and
// decoded in full by libjpeg-turbo, on N threads, and thrown away. No resize, nothing written.
//
//   decode_alone FOLDER THREADS
// clang-format off
#include <cstdio>
#include <jpeglib.h>  // needs <cstdio> before it
// clang-format on

#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf escape;
};

bool decode(jpeg_decompress_struct& info, Errors& errors, const std::vector<unsigned char>& file,
            std::vector<unsigned char>& pixels) {
  if (setjmp(errors.escape) != 0) {
    jpeg_abort_decompress(&info);
    return false;
  }
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&info);
  const std::size_t row_bytes = std::size_t{info.output_width} * 3;
  pixels.resize(row_bytes * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

void work(const std::vector<fs::path>& paths, std::atomic<std::size_t>& next,
          std::atomic<std::size_t>& decoded) {
  jpeg_decompress_struct info{};
  Errors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr common) {
    std::longjmp(reinterpret_cast<Errors*>(common->err)->escape, 1);
  };
  errors.base.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&info);
  std::vector<unsigned char> file;
  std::vector<unsigned char> pixels;
  for (std::size_t i = next++; i < paths.size(); i = next++) {
    file.resize(fs::file_size(paths[i]));
    std::ifstream(paths[i], std::ios::binary)
        .read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(file.size()));
    decoded += decode(info, errors, file, pixels) ? 1 : 0;
  }
  jpeg_destroy_decompress(&info);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: decode_alone FOLDER THREADS\n");
    return 2;
  }
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(argv[1])) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> decoded{0};
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::atoi(argv[2]); ++i)
      threads.emplace_back([&] { work(paths, next, decoded); });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("{\"images\": %zu, \"seconds\": %.6f}\n", decoded.load(), seconds);
  return 0;
}
