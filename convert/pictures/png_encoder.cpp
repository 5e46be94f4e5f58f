// SPDX-License-Identifier: Apache-2.0
#include "convert/pictures/png_encoder.hpp"

#include <png.h>

#include <stdexcept>

namespace precache {

std::string encode_png(const Picture& picture) {
  png_image image{};  // libpng's simple interface, which does not jump
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, picture.rgb.data(), 0, nullptr) ==
      0) {
    throw std::runtime_error(std::string("libpng cannot write a picture: ") + image.message);
  }
  file.resize(bytes);
  return file;
}

}  // namespace precache
