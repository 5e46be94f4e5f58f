// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/tensor_conversion.hpp"

#include <nlohmann/json.hpp>

#include "precache/formats/error.hpp"
#include "precache/formats/recipe.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using Json = nlohmann::json;

TensorMeaning built(DType dtype, std::optional<Normalization> normalize = {}) {
  Recipe recipe;
  recipe.height = 4;
  recipe.width = 6;
  recipe.dtype = dtype;
  recipe.normalize = normalize;
  return {recipe.spec(), recipe};
}

TensorMeaning foreign_meaning(const TensorSpec& spec) {
  return {spec, StoredRecipe::of_unknown_origin(spec)};
}

const Normalization kHalf{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};

TEST_CASE("a conversion without options copies the tensors", "[convert][tensor_conversion]") {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    const TensorConversion conversion(built(dtype), {});
    CHECK(conversion.is_copy());
    CHECK(conversion.result().spec == built(dtype).spec);
    CHECK(conversion.result().recipe.to_json() == built(dtype).recipe.to_json());
  }
}

TEST_CASE("the recipe of a conversion is the one that build writes",
          "[convert][tensor_conversion]") {
  ReformatOptions options;
  options.dtype = DType::kFloat16;
  options.normalize = kHalf;
  const TensorConversion there(built(DType::kUint8), options);
  CHECK_FALSE(there.is_copy());
  CHECK(there.result().recipe.to_json() == built(DType::kFloat16, kHalf).recipe.to_json());
  options.dtype = DType::kUint8;
  options.normalize.reset();
  CHECK(TensorConversion(there.result(), options).result().recipe.to_json() ==
        built(DType::kUint8).recipe.to_json());
}

TEST_CASE("third-party tensors have a recipe with what is known", "[convert][tensor_conversion]") {
  const TensorMeaning pixels = foreign_meaning({DType::kUint8, Layout::kHwc, 4, 6, 3});
  CHECK(Json::parse(pixels.recipe.to_json()) ==
        Json::parse(R"({"size":[4,6],"dtype":"uint8","layout":"hwc"})"));
  const TensorMeaning floats = foreign_meaning({DType::kFloat32, Layout::kHwc, 4, 6, 3});
  CHECK(Json::parse(floats.recipe.to_json()).at("values") == "unknown");
  // Also for four channels.
  ReformatOptions options;
  options.dtype = DType::kFloat32;
  const TensorConversion four(foreign_meaning({DType::kUint8, Layout::kHwc, 1, 1, 4}), options);
  const std::array<std::uint8_t, 4> in{0, 51, 102, 255};
  std::array<float, 4> out{};
  std::vector<std::uint8_t> scratch;
  CHECK(four.run(std::as_bytes(std::span(in)), std::as_writable_bytes(std::span(out)), scratch));
  CHECK(out == std::array{0.0F, 51 / 255.0F, 102 / 255.0F, 1.0F});
}

TEST_CASE("conversions that are not possible are refused", "[convert][tensor_conversion]") {
  const auto message = [](const TensorMeaning& stored, const ReformatOptions& options) {
    try {
      const TensorConversion conversion(stored, options);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  ReformatOptions normalize;
  normalize.normalize = kHalf;
  CHECK_THAT(message(built(DType::kFloat32, kHalf), normalize), test::contains("already"));
  CHECK_THAT(message(built(DType::kUint8), normalize), test::contains("float `dtype`"));
  const TensorMeaning foreign = foreign_meaning({DType::kFloat32, Layout::kHwc, 4, 6, 3});
  CHECK_THAT(message(foreign, normalize), test::contains("is not known"));
  ReformatOptions pixels;
  pixels.dtype = DType::kUint8;
  CHECK_THAT(message(foreign, pixels), test::contains("cannot be recovered"));
  const Normalization shifted{{-100, -100, -100}, {1, 1, 1}};
  CHECK_THAT(message(built(DType::kBfloat16, shifted), pixels),
             test::contains("cannot be recovered"));
  ReformatOptions gray;
  gray.dtype = DType::kFloat32;
  gray.normalize = Normalization{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  CHECK_THAT(message(foreign_meaning({DType::kUint8, Layout::kChw, 4, 6, 1}), gray),
             test::contains("three channels"));
  gray.normalize->std = {0, 1, 1};
  CHECK_THAT(message(built(DType::kUint8), gray), test::contains("above 0"));
  ReformatOptions of_pixels;
  of_pixels.dtype = DType::kFloat32;
  of_pixels.normalize = Normalization{{125.3F, 122.9F, 113.8F}, {51.5F, 50.8F, 51.2F}};
  CHECK_THAT(message(built(DType::kUint8), of_pixels), test::contains("a mean of 125.3"));
  const TensorMeaning broken{built(DType::kFloat32).spec,
                             StoredRecipe::parse(R"({"dtype":"float32","normalize":5})")};
  CHECK_THAT(message(broken, pixels), test::contains("recipe of the dataset cannot be read"));
}

}  // namespace
}  // namespace precache
