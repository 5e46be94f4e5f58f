// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/recipe.hpp"

#include <nlohmann/json.hpp>

#include "precache/formats/error.hpp"
#include "precache/formats/format.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

/// The default recipe, changed.
template <typename Change>
Recipe with(const Change& change) {
  Recipe recipe;
  change(recipe);
  return recipe;
}

template <typename Change>
std::string refusal(const Change& change) {
  return test::message_of<InvalidArgument>([&] { with(change).validate(); });
}

TEST_CASE("a recipe gives the spec of its tensors", "[convert][recipe]") {
  CHECK(Recipe().spec() == TensorSpec{DType::kUint8, Layout::kChw, 224, 224, 3});
  const Recipe recipe = with([](Recipe& r) {
    r.height = 5;
    r.width = 7;
    r.dtype = DType::kBfloat16;
    r.layout = Layout::kHwc;
    r.color = Color::kGray;
  });
  CHECK(recipe.spec() == TensorSpec{DType::kBfloat16, Layout::kHwc, 5, 7, 1});
}

TEST_CASE("a recipe's shorter side is the larger of the sizes unless given", "[convert][recipe]") {
  CHECK(with([](Recipe& r) { r.height = 100, r.width = 200; }).shorter_side() == 200);
  CHECK(with([](Recipe& r) { r.resize = 256; }).shorter_side() == 256);
}

TEST_CASE("recipes whose parts do not fit together are refused", "[convert][recipe][malformed]") {
  CHECK_NOTHROW(Recipe().validate());
  CHECK_THAT(refusal([](Recipe& r) { r.height = 0; }), test::contains("out of range"));
  CHECK_THAT(refusal([](Recipe& r) { r.width = 0; }), test::contains("out of range"));
  CHECK_THAT(refusal([](Recipe& r) { r.width = 16385; }), test::contains("out of range"));
  CHECK_THAT(refusal([](Recipe& r) { r.resize = 16385; }), test::contains("`resize` 16385"));
  CHECK_THAT(refusal([](Recipe& r) { r.height = r.width = 16384, r.dtype = DType::kFloat32; }),
             test::contains("1 GiB"));
  CHECK_THAT(refusal([](Recipe& r) { r.resize = 256, r.fit = Fit::kStretch; }),
             test::contains("`fit` stretch"));
  CHECK_THAT(refusal([](Recipe& r) { r.pad_value = 1; }), test::contains("`fit` crop"));
  CHECK_THAT(refusal([](Recipe& r) {
               r.normalize = Normalization{{}, {1, 1, 1}};
             }),
             test::contains("float"));
  using Limits = std::numeric_limits<float>;
  for (const float std : {0.0F, -1.0F, 1e-45F, Limits::infinity(), Limits::quiet_NaN()}) {
    CHECK_THAT(refusal([&](Recipe& r) {
                 r.dtype = DType::kFloat32;
                 r.normalize = Normalization{{}, {1, std, 1}};
               }),
               test::contains("above 0"));
  }
  CHECK_THAT(refusal([](Recipe& r) {
               r.dtype = DType::kFloat32;
               r.normalize = Normalization{{0.5F, 122.9F, 0.5F}, {51, 51, 51}};
             }),
             test::contains("a mean of 122.9, but it applies to x/255"));
  CHECK_THAT(refusal([](Recipe& r) {
               r.dtype = DType::kFloat32;
               r.normalize = Normalization{{}, {1, 255, 1}};
             }),
             test::contains("a standard deviation of 255, but it applies to x/255"));
}

TEST_CASE("equal recipes have equal JSON and different ones do not", "[convert][recipe]") {
  const std::string base = Recipe().to_json();
  CHECK(Recipe().to_json() == base);
  CHECK(nlohmann::json::parse(base).is_object());
  // Every difference in the pixels is a difference in the JSON.
  for (const auto& other :
       {with([](Recipe& r) { r.height = 223; }), with([](Recipe& r) { r.width = 223; }),
        with([](Recipe& r) { r.fit = Fit::kStretch; }), with([](Recipe& r) { r.fit = Fit::kPad; }),
        with([](Recipe& r) { r.resize = 256; }), with([](Recipe& r) { r.filter = Filter::kBox; }),
        with([](Recipe& r) { r.dtype = DType::kFloat16; }),
        with([](Recipe& r) { r.layout = Layout::kHwc; }),
        with([](Recipe& r) { r.color = Color::kGray; }),
        with([](Recipe& r) { r.apply_exif = false; })}) {
    CHECK(other.to_json() != base);
  }
  const auto padded = [](std::uint8_t value) {
    return with([&](Recipe& r) { r.fit = Fit::kPad, r.pad_value = value; });
  };
  CHECK(padded(1).to_json() != padded(0).to_json());
  const auto normalized = [](float mean) {
    return with([&](Recipe& r) {
      r.dtype = DType::kFloat32;
      r.normalize = Normalization{{mean, 0.5F, 0.5F}, {1, 1, 1}};
    });
  };
  CHECK(normalized(0.5F).to_json() != normalized(std::nextafter(0.5F, 1.0F)).to_json());
  // The size itself is the default of the shorter side: the same pixels, the same recipe.
  CHECK(with([](Recipe& r) { r.resize = 224; }).to_json() == base);
}

TEST_CASE("parts of a recipe have the names of the command line", "[convert][recipe]") {
  CHECK(name(Fit::kCrop) == "crop");
  CHECK(name(Fit::kStretch) == "stretch");
  CHECK(name(Fit::kPad) == "pad");
  CHECK(name(Filter::kNearest) == "nearest");
  CHECK(name(Filter::kBox) == "box");
  CHECK(name(Filter::kBilinear) == "bilinear");
  CHECK(name(Filter::kBicubic) == "bicubic");
  CHECK(name(Filter::kLanczos) == "lanczos");
  CHECK(name(Color::kRgb) == "rgb");
  CHECK(name(Color::kGray) == "gray");
}

TEST_CASE("a stored recipe keeps unknown keys in their order", "[formats][recipe]") {
  const std::string json = R"({"z":[1,{"a":null}],"dtype":"float32","size":[2,3],"layout":"hwc"})";
  const StoredRecipe recipe = StoredRecipe::parse(json);
  CHECK(recipe.to_json() == json);
  CHECK(recipe.text() == "z 1xa null, size 2x3");
  CHECK(recipe.problem().empty());
  CHECK(recipe.knows_values(DType::kFloat32));
  CHECK_FALSE(recipe.knows_values(DType::kFloat16));
  CHECK(recipe == StoredRecipe::parse(
                      R"({"size":[2,3],"layout":"hwc","dtype":"float32","z":[1,{"a":null}]})"));
  CHECK_FALSE(recipe == StoredRecipe());
}

TEST_CASE("a stored recipe reports keys of wrong types", "[formats][recipe][malformed]") {
  for (const char* json : {R"({"dtype":5})", R"({"normalize":5})", R"({"normalize":{}})",
                           R"({"normalize":{"mean":[1,2],"std":[1,2,3]}})",
                           R"({"normalize":{"mean":["a","b","c"],"std":[1,1,1]}})"}) {
    CAPTURE(json);
    CHECK_FALSE(StoredRecipe::parse(json).problem().empty());
    CHECK_FALSE(StoredRecipe::parse(json).normalization());
  }
  for (const char* json : {"", "5", "[]", "{", "null"}) {
    CAPTURE(json);
    CHECK_THROWS_AS(StoredRecipe::parse(json), InvalidArgument);
  }
}

TEST_CASE("names of enumerators are parsed back", "[formats][recipe]") {
  for (const Fit fit : kAllFits) CHECK(parse_fit(name(fit)) == fit);
  for (const Filter filter : kAllFilters) CHECK(parse_filter(name(filter)) == filter);
  for (const Color color : kAllColors) CHECK(parse_color(name(color)) == color);
  for (const Format format : kAllFormats) CHECK(parse_format(name(format)) == format);
  CHECK_THROWS_AS(parse_filter("cubic"), InvalidArgument);
  CHECK_THROWS_AS(parse_format("zip"), InvalidArgument);
}

}  // namespace
}  // namespace precache
