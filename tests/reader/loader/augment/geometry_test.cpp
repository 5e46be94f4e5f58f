// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/geometry.hpp"

#include <limits>
#include <vector>

#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache::augment {
namespace {

using test::below;
using test::Random;

constexpr PaddingMode kModes[] = {PaddingMode::kConstant, PaddingMode::kEdge, PaddingMode::kReflect,
                                  PaddingMode::kSymmetric};

/// numpy.pad of one line, the definition of torchvision's pad: index -1 is the fill.
std::vector<int> padded_line(int size, int before, int after, PaddingMode mode) {
  std::vector<int> line;
  for (int i = 0; i < size; ++i) line.push_back(i);
  std::vector<int> front, back;
  for (int i = 0; i < before; ++i) {
    front.insert(front.begin(), mode == PaddingMode::kConstant  ? -1
                                : mode == PaddingMode::kEdge    ? 0
                                : mode == PaddingMode::kReflect ? i + 1
                                                                : i);
  }
  for (int i = 0; i < after; ++i) {
    back.push_back(mode == PaddingMode::kConstant  ? -1
                   : mode == PaddingMode::kEdge    ? size - 1
                   : mode == PaddingMode::kReflect ? size - 2 - i
                                                   : size - 1 - i);
  }
  line.insert(line.begin(), front.begin(), front.end());
  line.insert(line.end(), back.begin(), back.end());
  return line;
}

TEST_CASE("padded crops are those of an image that was padded", "[reader][augment]") {
  Random random(2);
  PlanarImage out;
  const auto number = [&](std::uint32_t from, std::uint32_t end) {
    return from + static_cast<std::uint32_t>(below(random, end - from));
  };
  for (int i = 0; i < 400; ++i) {
    const PaddingMode mode = kModes[i % 4];
    const ImageShape shape{number(1, 4), number(1, 20), number(1, 20)};
    const auto pixels =
        test::random_octets(random, std::size_t{shape.channels} * shape.height * shape.width);
    const std::uint32_t less = mode == PaddingMode::kReflect ? 1 : 0;
    const std::uint32_t rows = std::min(8U, shape.height - less) + 1;
    const std::uint32_t columns = std::min(8U, shape.width - less) + 1;
    const Fill fill = i % 3 == 0   ? Fill{}
                      : i % 3 == 1 ? Fill{7}
                                   : Fill(shape.channels, static_cast<std::uint8_t>(i));
    const Border border{
        number(0, columns), number(0, rows), number(0, columns), number(0, rows), mode, &fill};
    const auto lines = padded_line(static_cast<int>(shape.height), static_cast<int>(border.top),
                                   static_cast<int>(border.bottom), mode);
    const auto positions = padded_line(static_cast<int>(shape.width), static_cast<int>(border.left),
                                       static_cast<int>(border.right), mode);
    Rectangle rectangle;
    rectangle.height = number(1, static_cast<std::uint32_t>(lines.size()) + 1);
    rectangle.width = number(1, static_cast<std::uint32_t>(positions.size()) + 1);
    rectangle.top = number(0, static_cast<std::uint32_t>(lines.size()) - rectangle.height + 1);
    rectangle.left = number(0, static_cast<std::uint32_t>(positions.size()) - rectangle.width + 1);
    crop_padded({pixels.data(), shape.width, std::size_t{shape.height} * shape.width, shape,
                 pixels.data() + pixels.size()},
                border, rectangle, out);
    bool inside = true;
    for (std::uint32_t c = 0; c < shape.channels; ++c) {
      for (std::uint32_t y = 0; y < rectangle.height; ++y) {
        for (std::uint32_t x = 0; x < rectangle.width; ++x) {
          const int row = lines[rectangle.top + y];
          const int column = positions[rectangle.left + x];
          const bool outside = row < 0 || column < 0;
          const std::uint8_t filled = fill.empty() ? 0 : fill[fill.size() == 1 ? 0 : c];
          const auto at =
              (std::size_t{c} * shape.height + static_cast<std::size_t>(row)) * shape.width +
              static_cast<std::size_t>(column);
          const std::uint8_t expected = outside ? filled : pixels[at];
          REQUIRE(out.row(c, y)[x] == expected);
          inside = inside && rectangle.top + y >= border.top &&
                   rectangle.top + y < border.top + shape.height &&
                   rectangle.left + x >= border.left &&
                   rectangle.left + x < border.left + shape.width;
        }
      }
    }
    CHECK(is_inside(rectangle, border, shape) == inside);
  }
}

TEST_CASE("centre crops are torchvision's", "[reader][augment]") {
  const auto of = [](std::uint32_t height, std::uint32_t width, std::uint32_t rows,
                     std::uint32_t columns) {
    return centre(CenterCrop{rows, columns}, {3, height, width});
  };
  CHECK(of(10, 10, 4, 4) == Rectangle{3, 3, 4, 4});
  CHECK(of(11, 13, 4, 4) == Rectangle{4, 4, 4, 4});  // 3.5 and 4.5, to even
  CHECK(of(5, 9, 8, 4) == Rectangle{0, 2, 8, 4});    // padded: 1 row above, 2 below
  const Border border = border_of(CenterCrop{8, 4}, {3, 5, 9});
  CHECK(border.top == 1);
  CHECK(border.bottom == 2);
  CHECK(border.left == 0);
  CHECK(border.right == 0);
}

TEST_CASE("sizes of Resize are torchvision's", "[reader][augment]") {
  const auto of = [](std::uint32_t side, std::uint32_t height, std::uint32_t width) {
    return result_size(Resize{.height = side}, {3, height, width});
  };
  CHECK(of(224, 375, 500) == ImageSize{224, 298});  // 298.67 is cut
  CHECK(of(224, 500, 375) == ImageSize{298, 224});
  CHECK(of(32, 7, 7) == ImageSize{32, 32});
  CHECK(result_size(Resize{.height = 3, .width = 5}, {3, 9, 9}) == ImageSize{3, 5});
}

TEST_CASE("quarter turns are counter-clockwise", "[reader][augment]") {
  PlanarImage image, spare;
  const auto turned = [&](std::uint32_t quarters) {
    image.resize({1, 2, 2});
    for (std::uint8_t i = 0; i < 4; ++i) image.plane(0)[i] = i;  // 0 1 / 2 3
    turn(image, spare, quarters);
    return std::vector<int>(image.plane(0), image.plane(0) + 4);
  };
  CHECK(turned(0) == std::vector<int>{0, 1, 2, 3});
  CHECK(turned(1) == std::vector<int>{1, 3, 0, 2});
  CHECK(turned(2) == std::vector<int>{3, 2, 1, 0});
  CHECK(turned(3) == std::vector<int>{2, 0, 3, 1});
}

template <typename T>
void check_refused(const T& operation, const ImageShape& shape, const std::string& words) {
  CHECK_THROWS_WITH(check(operation, shape), test::contains(words));
  CHECK_THROWS_AS(check(operation, shape), InvalidArgument);
}

TEST_CASE("invalid geometry is refused by operation and field", "[reader][augment]") {
  const ImageShape shape{3, 20, 30};
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  check_refused(RandomResizedCrop{.height = 0, .width = 9}, shape, "RandomResizedCrop: `height`");
  check_refused(RandomResizedCrop{.height = 9, .width = 65'536}, shape, "got 65536");
  const auto crop = [](Range scale, Range ratio) {
    return RandomResizedCrop{.height = 9, .width = 9, .scale = scale, .ratio = ratio};
  };
  check_refused(crop({1, 0.5}, {1, 1}), shape, "RandomResizedCrop: `scale`");
  check_refused(crop({0, 0}, {1, 1}), shape, "`scale`");
  check_refused(crop({-0.1, 0.5}, {1, 1}), shape, "`scale`");
  CHECK_NOTHROW(check(crop({0, 0.5}, {1, 1}), shape));
  check_refused(crop({kNan, 0.5}, {1, 1}), shape, "`scale`");
  check_refused(crop({0.5, kNan}, {1, 1}), shape, "`scale`");
  check_refused(crop({0.5, 1}, {2, 1}), shape, "`ratio`");
  check_refused(crop({0.5, 1}, {-1, 1}), shape, "`ratio`");
  check_refused(Resize{.height = 0}, shape, "Resize: `height`");
  check_refused(Resize{.height = 60'000}, shape, "Resize: `width`");
  check_refused(CenterCrop{9, 0}, shape, "CenterCrop: `width`");
  check_refused(RandomHorizontalFlip{.p = 1.5}, shape, "RandomHorizontalFlip: `p`");
  check_refused(RandomHorizontalFlip{.p = kNan}, shape, "`p`");
  check_refused(RandomHorizontalFlip{.p = 0.4, .alternate = true}, shape, "`alternate`");
  check_refused(RandomVerticalFlip{.p = -0.1}, shape, "RandomVerticalFlip: `p`");
  check_refused(RandomQuarterTurn{}, shape, "square");
  check_refused(RandomCrop{.height = 21, .width = 9}, shape, "RandomCrop: `size`");
  const auto padded = [](std::uint32_t by, PaddingMode mode) {
    return RandomCrop{.height = 9, .width = 9, .padding = {by, by, by, by}, .padding_mode = mode};
  };
  check_refused(padded(20, PaddingMode::kReflect), shape, "`padding` reflect is larger");
  check_refused(padded(21, PaddingMode::kSymmetric), shape, "`padding` symmetric is larger");
  check_refused(padded(70'000, PaddingMode::kEdge), shape, "`padding` must be at most");
  check_refused(RandomCrop{.height = 9, .width = 9, .fill = {1, 2}}, shape, "`fill`");
  CHECK_NOTHROW(check(padded(19, PaddingMode::kReflect), shape));
  CHECK_NOTHROW(check(padded(20, PaddingMode::kSymmetric), shape));
  CHECK_NOTHROW(check(padded(500, PaddingMode::kEdge), shape));
  CHECK_NOTHROW(check(RandomCrop{.height = 50, .width = 9, .pad_if_needed = true}, shape));
}

}  // namespace
}  // namespace precache::augment
