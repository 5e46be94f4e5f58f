// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_labels.hpp"

#include <algorithm>
#include <cmath>

#include "formats/hdf5/hdf5_rows.hpp"

namespace precache::hdf5 {
namespace {

constexpr double kMostExact = 9007199254740992.0;  // 2^53

}  // namespace

std::vector<std::int64_t> read_numbers(const Dataset& dataset) {
  const H5T_class_t kind = dataset.type_class();
  const std::uint64_t count = dataset.elements().value_or(0);
  std::vector<std::int64_t> numbers;
  if (kind == H5T_INTEGER) {
    numbers.resize(count);
    check(H5Dread(dataset.id, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()));
  } else if (kind == H5T_FLOAT) {
    std::vector<double> floats(count);
    check(H5Dread(dataset.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats.data()));
    for (const double value : floats) {
      if (!(std::abs(value) <= kMostExact) || std::trunc(value) != value) return {};
      numbers.push_back(static_cast<std::int64_t>(value));
    }
  }
  return numbers;
}

std::vector<std::string> read_texts(const Dataset& dataset, std::size_t longest) {
  if (dataset.type_class() != H5T_STRING || dataset.extents.size() != 1) return {};
  if (H5Tis_variable_str(dataset.type) > 0) {
    const ItemMemory memory;
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < dataset.extents[0]; ++i) {
      const auto item = read_item(dataset, i, memory);
      texts.emplace_back(reinterpret_cast<const char*>(item.data()),
                         std::min(item.size(), longest));
    }
    return texts;
  }
  const std::size_t width = H5Tget_size(dataset.type);
  if (width > longest) return {};
  std::string all(dataset.extents[0] * width, '\0');
  check(H5Dread(dataset.id, dataset.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()));
  return cut_texts(dataset, all);
}

std::vector<std::string> cut_texts(const Dataset& dataset, std::string_view texts) {
  const std::size_t width = H5Tget_size(dataset.type);
  const bool is_spaced = H5Tget_strpad(dataset.type) == H5T_STR_SPACEPAD;
  std::vector<std::string> result;
  for (; !texts.empty(); texts.remove_prefix(width)) {
    std::string_view text = texts.substr(0, width);
    text = text.substr(0, text.find('\0'));
    if (is_spaced) text = text.substr(0, text.find_last_not_of(' ') + 1);
    result.emplace_back(text);
  }
  return result;
}

}  // namespace precache::hdf5
