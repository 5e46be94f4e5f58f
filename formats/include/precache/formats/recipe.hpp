// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

enum class Fit { kCrop, kStretch, kPad };
inline constexpr std::array kAllFits{Fit::kCrop, Fit::kStretch, Fit::kPad};
enum class Filter { kNearest, kBox, kBilinear, kBicubic, kLanczos };
inline constexpr std::array kAllFilters{Filter::kNearest, Filter::kBox, Filter::kBilinear,
                                        Filter::kBicubic, Filter::kLanczos};
enum class Color { kRgb, kGray };
inline constexpr std::array kAllColors{Color::kRgb, Color::kGray};

[[nodiscard]] std::string_view name(Fit fit);
[[nodiscard]] std::string_view name(Filter filter);
[[nodiscard]] std::string_view name(Color color);
/// Throw InvalidArgument for an unknown name.
[[nodiscard]] Fit parse_fit(std::string_view name);
[[nodiscard]] Filter parse_filter(std::string_view name);
[[nodiscard]] Color parse_color(std::string_view name);

/// The steps from an encoded image to a tensor. Recipes that compare equal give equal bytes.
struct Recipe {
  std::uint32_t height = 224;
  std::uint32_t width = 224;
  Fit fit = Fit::kCrop;
  /// Length of the shorter side before the crop; 0: the larger of height and width.
  std::uint32_t resize = 0;
  Filter filter = Filter::kBilinear;
  std::uint8_t pad_value = 0;
  DType dtype = DType::kUint8;
  std::optional<Normalization> normalize;
  Layout layout = Layout::kChw;
  Color color = Color::kRgb;
  bool apply_exif = true;

  /// Throws InvalidArgument if the parts do not fit together or a size is out of range.
  void validate() const;
  /// To which the shorter side of images is resized before the crop.
  [[nodiscard]] std::uint32_t shorter_side() const;
  /// The spec of the tensors that it makes.
  [[nodiscard]] TensorSpec spec() const;
  /// A JSON object, the same for equal recipes.
  [[nodiscard]] std::string to_json() const;
};

/// The recipe in a manifest. It may lack keys of a Recipe, as third-party tensors do not record how
/// they were made, and keeps keys that this version does not know.
class StoredRecipe {
 public:
  /// An empty recipe.
  StoredRecipe() = default;
  StoredRecipe(const Recipe& recipe);  // NOLINT(google-explicit-constructor): it is less strict

  /// For third-party tensors.
  [[nodiscard]] static StoredRecipe of_unknown_origin(const TensorSpec& spec);
  /// Throws InvalidArgument if the text is not a JSON object. Reports keys of wrong types by
  /// problem().
  [[nodiscard]] static StoredRecipe parse(std::string_view json);

  [[nodiscard]] const std::string& to_json() const& { return json_; }
  [[nodiscard]] std::string to_json() && { return std::move(json_); }
  /// A description for users: all keys that a TensorSpec does not have, as in "size 224x224, fit
  /// crop".
  [[nodiscard]] const std::string& text() const& { return text_; }
  [[nodiscard]] std::string text() && { return std::move(text_); }
  [[nodiscard]] bool is_empty() const { return json_ == "{}"; }
  /// Why `dtype` or `normalize` cannot be read; empty: they can.
  [[nodiscard]] const std::string& problem() const& { return problem_; }
  [[nodiscard]] std::string problem() && { return std::move(problem_); }
  /// Whether values of this type are pixels, after normalization() if there is one.
  [[nodiscard]] bool knows_values(DType dtype) const;
  [[nodiscard]] const std::optional<Normalization>& normalization() const& { return normalize_; }
  [[nodiscard]] std::optional<Normalization> normalization() && { return normalize_; }

  /// The same recipe for tensors of another type, layout or normalisation.
  [[nodiscard]] StoredRecipe with_values(const TensorSpec& spec,
                                         const std::optional<Normalization>& normalize,
                                         bool values_are_known) const;

  /// Whether they have the same keys and values, in any order.
  friend bool operator==(const StoredRecipe& a, const StoredRecipe& b);

 private:
  std::string json_ = "{}";
  std::string text_;
  std::string problem_;
  std::string dtype_;
  std::optional<Normalization> normalize_;
  bool values_are_unknown_ = false;
};

}  // namespace precache
