// SPDX-License-Identifier: Apache-2.0
// Draws a small class-folder dataset, so that precache can be tried without downloading anything.
// It also holds a truncated JPEG and a text file. The same seed gives the same files.
#include <cstdio>
// jpeglib.h needs FILE from it, and clang-format sorts only up to this comment.
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {
namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;
using Color = std::array<int, 3>;

constexpr int kExitUsage = 2;
constexpr int kExitSystem = 3;

/// A class of images: whether (u, v) lies in its shape, which fits a circle of radius 1024.
/// Integers only, here and below: no rounding that could differ between compilers.
struct Shape {
  std::string_view name;
  bool (*inside)(int u, int v);
};

bool in_disc(int u, int v, int radius) { return u * u + v * v <= radius * radius; }
bool in_square(int u, int v) { return std::max(std::abs(u), std::abs(v)) <= 724; }

constexpr std::array kShapes = {
    Shape{"circle", [](int u, int v) { return in_disc(u, v, 1024); }},
    Shape{"square", in_square},
    Shape{"triangle", [](int u, int v) { return v >= -512 && 7 * std::abs(u) + 4 * v <= 4096; }},
    Shape{"stripes", [](int u, int v) { return in_square(u, v) && (u & 128) != 0; }},
    Shape{"checker", [](int u, int v) { return in_square(u, v) && ((u ^ v) & 256) != 0; }},
    Shape{"ring", [](int u, int v) { return in_disc(u, v, 1024) && !in_disc(u, v, 600); }},
    Shape{"moon", [](int u, int v) { return in_disc(u, v, 1024) && !in_disc(u - 500, v, 900); }},
};

struct Options {
  fs::path outdir;
  std::uint64_t classes = 5;
  std::uint64_t per_class = 60;
  std::uint64_t seed = 1;
};

struct Image {
  int width, height;
  Bytes rgb;
};

[[noreturn]] void fail(int code, std::string_view message) {
  std::cerr << "draw_dataset: " << message << '\n';
  std::exit(code);
}

/// splitmix64. The standard distributions differ between libraries; this draws the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  int between(int low, int high) {
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  Color color() { return {between(0, 255), between(0, 255), between(0, 255)}; }

 private:
  std::uint64_t state_;
};

/// Where a shape lies, in quarter pixels: its centre, and (a, b), its own x axis and radius.
struct Place {
  std::int64_t cx, cy, a, b;
};

/// How many of the 4x4 samples in the pixel (x, y) the shape covers.
int coverage(const Shape& shape, const Place& at, int x, int y) {
  const std::int64_t r2 = at.a * at.a + at.b * at.b;
  const std::int64_t left = 4 * x - at.cx, top = 4 * y - at.cy;
  if (left * left + top * top > r2 + r2 / 4) return 0;  // true of most pixels, and quick
  int covered = 0;
  for (int sample = 0; sample < 16; ++sample) {
    const std::int64_t dx = left + sample % 4;
    const std::int64_t dy = top + sample / 4;
    const auto u = static_cast<int>((dx * at.a + dy * at.b) * 1024 / r2);
    const auto v = static_cast<int>((dy * at.a - dx * at.b) * 1024 / r2);
    if (shape.inside(u, v)) ++covered;
  }
  return covered;
}

/// An anti-aliased shape on a gradient, half of these with noise. Each image has its own seed, so
/// that it stays the same when there are more or fewer others.
Image draw(const Options& options, std::size_t shape, std::uint64_t number) {
  Random random(Random(Random(options.seed).next() ^ (std::uint64_t{shape} << 32) ^ number).next());
  const int width = random.between(180, 640), height = random.between(180, 640);
  const int radius = 4 * std::min(width, height) / 3;
  const Place place{random.between(4 * width / 3, 8 * width / 3),
                    random.between(4 * height / 3, 8 * height / 3),
                    random.between(radius / 2, radius), random.between(-radius / 2, radius / 2)};
  const Color from = random.color(), to = random.color();
  const int light = 3 * (from[0] + to[0]) + 6 * (from[1] + to[1]) + from[2] + to[2];  // of 5100
  Color ink = random.color();  // made light on dark and dark on light, to be seen in grey as well
  for (int& value : ink) value = (light < 2550 ? 510 + value : value) / 3;
  const int slope = random.between(0, 16);  // of the gradient: 0 is down, 16 to the right
  const int noise = std::max(0, random.between(-12, 12));
  Image image{width, height, {}};
  image.rgb.reserve(static_cast<std::size_t>(width * height) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int t = slope * 16 * x / width + (16 - slope) * 16 * y / height;
      const int grain = random.between(-noise, noise);
      const int covered = coverage(kShapes[shape], place, x, y);
      for (std::size_t c = 0; c < 3; ++c) {
        const int ground = std::clamp(from[c] + (to[c] - from[c]) * t / 256 + grain, 0, 255);
        const int mixed = (ground * (16 - covered) + ink[c] * covered) / 16;
        image.rgb.push_back(static_cast<std::uint8_t>(mixed));
      }
    }
  }
  return image;
}

/// libjpeg's handler must not return. Encoding to memory, only a lack of memory leads here.
[[noreturn]] void fail_jpeg(j_common_ptr codec) {
  std::array<char, JMSG_LENGTH_MAX> message{};
  codec->err->format_message(codec, message.data());
  fail(kExitSystem, std::string("cannot encode a JPEG: ") + message.data());
}

/// Quality 90; `number` chooses between colour and grey, 4:2:0 and 4:4:4, baseline and progressive.
Bytes encode_jpeg(const Image& image, std::uint64_t number) {
  jpeg_error_mgr errors{};
  jpeg_compress_struct codec{};
  codec.err = jpeg_std_error(&errors);
  errors.error_exit = fail_jpeg;
  jpeg_create_compress(&codec);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &buffer, &size);
  codec.image_width = static_cast<JDIMENSION>(image.width);
  codec.image_height = static_cast<JDIMENSION>(image.height);
  codec.input_components = 3;
  codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, 90, TRUE);
  if (number % 5 == 1) jpeg_set_colorspace(&codec, JCS_GRAYSCALE);
  if (number % 3 == 1) codec.comp_info[0].h_samp_factor = codec.comp_info[0].v_samp_factor = 1;
  if (number % 7 == 2) jpeg_simple_progression(&codec);
  jpeg_start_compress(&codec, TRUE);
  const std::size_t stride = std::size_t{codec.image_width} * 3;
  while (codec.next_scanline < codec.image_height) {
    auto* row = const_cast<JSAMPROW>(&image.rgb[codec.next_scanline * stride]);  // only read
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  Bytes bytes(buffer, buffer + size);
  std::free(buffer);
  return bytes;
}

Bytes encode_png(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png.flags = PNG_IMAGE_FLAG_FAST;  // halves the time of the whole program
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  Bytes bytes(size);
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, image.rgb.data(), 0, nullptr) == 0) {
    fail(kExitSystem, std::string("cannot encode a PNG: ") + png.message);
  }
  bytes.resize(size);
  return bytes;
}

void write_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(static_cast<const void*>(bytes.data())), std::ssize(bytes));
  file.close();
  if (!file) fail(kExitSystem, "cannot write '" + path.string() + "': " + std::strerror(errno));
}

Options parse(std::span<char*> args) {
  Options options;
  const auto is = [](std::string_view text, std::uint64_t low, std::uint64_t high, auto& value) {
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    return error == std::errc{} && end == last && value >= low && value <= high;
  };
  bool good = args.size() >= 2 && args.size() % 2 == 0 && args[1][0] != '-';
  if (good) options.outdir = args[1];
  for (std::size_t i = 2; good && i < args.size(); i += 2) {
    const std::string_view name = args[i];
    good = (name == "--classes" && is(args[i + 1], 1, kShapes.size(), options.classes)) ||
           (name == "--per-class" && is(args[i + 1], 1, 1000000, options.per_class)) ||
           (name == "--seed" && is(args[i + 1], 0, UINT64_MAX, options.seed));
  }
  if (!good || options.outdir.empty())
    fail(kExitUsage, "expected OUTDIR [--classes 1..7] [--per-class N] [--seed N]");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse({argv, static_cast<std::size_t>(argc)});
  for (std::size_t shape = 0; shape < options.classes; ++shape) {
    const fs::path folder = options.outdir / kShapes[shape].name;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail(kExitSystem, "cannot create '" + folder.string() + "': " + error.message());
    for (std::uint64_t i = 0; i < options.per_class; ++i) {
      const Image image = draw(options, shape, i);
      const bool png = i % 4 == 3;
      const std::string name = std::to_string(1000000 + i).substr(1) + (png ? ".png" : ".jpg");
      write_file(folder / name, png ? encode_png(image) : encode_jpeg(image, i));
    }
  }
  const fs::path first = options.outdir / kShapes[0].name;
  const Bytes whole = encode_jpeg(draw(options, 0, options.per_class), 0);
  write_file(first / "truncated.jpg", std::span(whole).first(whole.size() * 6 / 10));
  const std::string_view notes = "Not an image, but text\n";
  write_file(first / "notes.txt", Bytes(notes.begin(), notes.end()));
  std::cout << "drew " << options.classes * options.per_class << " images in "
            << options.outdir.string() << ", and a cut JPEG and a text file in circle/\n";
  return std::cout.flush() ? 0 : kExitSystem;
}
