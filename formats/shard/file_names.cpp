// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/file_names.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "formats/bytes/text.hpp"

namespace precache {
namespace {

constexpr std::array kImageEndings{
    ImageEnding{"jpg", "JPEG", true}, ImageEnding{"jpeg", "JPEG", true},
    ImageEnding{"jpe", "JPEG", true}, ImageEnding{"jfif", "JPEG", true},
    ImageEnding{"mpo", "JPEG", true}, ImageEnding{"png", "PNG", true},
    ImageEnding{"webp", "WebP"},      ImageEnding{"ppm", "PPM"},
    ImageEnding{"pgm", "PGM"},        ImageEnding{"pbm", "PBM"},
    ImageEnding{"pnm", "PNM"},        ImageEnding{"bmp", "BMP"},
    ImageEnding{"gif", "GIF"},        ImageEnding{"tif", "TIFF"},
    ImageEnding{"tiff", "TIFF"},      ImageEnding{"jp2", "JPEG 2000"},
    ImageEnding{"avif", "AVIF"},      ImageEnding{"heic", "HEIC"},
    ImageEnding{"jxl", "JPEG XL"},
};

struct ShardEnding {
  std::string_view ending;
  Format format;
};
constexpr std::array kShardEndings{
    // the first of each format is that of files precache writes
    ShardEnding{".tar", Format::kTar},           ShardEnding{".tgz", Format::kTar},
    ShardEnding{".tfrecord", Format::kTfrecord}, ShardEnding{".tfrecords", Format::kTfrecord},
    ShardEnding{".tfrec", Format::kTfrecord},    ShardEnding{".record", Format::kTfrecord},
    ShardEnding{".h5", Format::kHdf5},           ShardEnding{".hdf5", Format::kHdf5},
    ShardEnding{".he5", Format::kHdf5},
};
constexpr std::string_view kPacked = ".gz";

const ShardEnding* find_shard(std::string_view file_name) {
  const auto found = std::ranges::find_if(kShardEndings, [&](const ShardEnding& known) {
    return file_name.size() > known.ending.size() && file_name.ends_with(known.ending);
  });
  return found == kShardEndings.end() ? nullptr : &*found;
}

}  // namespace

std::string_view extension(Format format) {
  return std::ranges::find(kShardEndings, format, &ShardEnding::format)->ending;
}

const ImageEnding* find_image_ending(std::string_view ending) {
  const auto found = std::ranges::find(kImageEndings, ending, &ImageEnding::ending);
  return found == kImageEndings.end() ? nullptr : &*found;
}

bool has_image_extension(std::string_view file_name) {
  const std::size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const ImageEnding* const known = find_image_ending(lower(file_name.substr(dot + 1)));
  return known != nullptr && known->is_decoded;
}

const char* hidden_reason(std::string_view file_name) {
  if (file_name.starts_with("._")) return "._ of macOS";
  return file_name.starts_with('.') && file_name != ".." ? "hidden" : nullptr;
}

std::string_view without_shard_ending(std::string_view file_name) {
  std::string_view plain = file_name;
  if (plain.ends_with(kPacked)) plain.remove_suffix(kPacked.size());
  const ShardEnding* const known = find_shard(plain);
  return known == nullptr ? file_name : plain.substr(0, plain.size() - known->ending.size());
}

std::optional<Format> format_of_name(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  if (const ShardEnding* const known = find_shard(file)) return known->format;
  // As in train.tfrecord-00000-of-00001.
  if (file.find(".tfrecord") != std::string::npos) return Format::kTfrecord;
  return std::nullopt;
}

}  // namespace precache
