// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_labels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "formats/shard/limits.hpp"

namespace precache::hdf5 {
namespace {

constexpr double kMostExact = 9007199254740992.0;  // 2^53
constexpr std::uint64_t kMostClasses = 1 << 20;    // the longest row of zeros and a one
constexpr std::uint64_t kReadElements = 16 << 20;  // of such rows at a time

bool is_number(H5T_class_t kind) {
  return kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM;  // h5py's bool is an enum
}

bool is_known(std::span<const char* const> names, std::string_view dataset) {
  return std::ranges::find(names, dataset.substr(dataset.rfind('/') + 1)) != names.end();
}

/// Data that was never written takes no space in the file, but would take long to read.
bool is_stored(const Dataset& dataset, std::uint64_t elements) {
  const std::uint64_t bytes = H5Dget_storage_size(dataset.id);
  return elements / kLargestInflation <= bytes;
}

/// The index of the one; none if there is no one, or other values than zeros next to it.
std::optional<std::int64_t> place_of_one(std::span<const float> row) {
  const auto one = std::ranges::find(row, 1.0F);
  if (one == row.end()) return std::nullopt;
  if (std::ranges::count(row, 0.0F) + 1 != std::ssize(row)) return std::nullopt;
  return one - row.begin();
}

std::vector<std::int64_t> read_places(const Dataset& dataset) {
  const std::uint64_t samples = dataset.extents[0];
  const std::uint64_t width = dataset.extents[1];
  const std::uint64_t step = std::min(samples, std::max<std::uint64_t>(1, kReadElements / width));
  std::vector<float> values(step * width);
  std::vector<std::int64_t> places;
  for (std::uint64_t first = 0; first < samples; first += step) {
    const std::uint64_t count = std::min(step, samples - first);
    read_rows(dataset, H5T_NATIVE_FLOAT, first, count, values.data());
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto place = place_of_one(std::span(values).subspan(i * width, width));
      if (!place) return {};
      places.push_back(*place);
    }
  }
  return places;
}

/// The split that a name contains, or empty.
std::string_view split_of(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  for (const std::string_view split : {"train", "test", "val"}) {
    if (name.find(split) != std::string_view::npos) return split;
  }
  return {};
}

}  // namespace

std::vector<std::string> label_names_for(std::string_view images) {
  const std::string_view split = split_of(images);
  std::vector<std::string> names;
  std::vector<std::string> others;
  for (const std::string_view name : kLabelNames) {
    const std::string_view its = split_of(name);
    if (split.empty() || its == split) {
      names.emplace_back(name);
    } else if (its.empty()) {
      others.emplace_back(name);
    }
  }
  std::ranges::move(others, std::back_inserter(names));
  return names;
}

bool lists_classes(const Dataset& dataset) {
  return dataset.type_class() == H5T_STRING && is_known(kClassNames, dataset.name);
}

bool may_be_labels(const Dataset& dataset, std::uint64_t samples) {
  const H5T_class_t kind = dataset.type_class();
  const auto elements = dataset.elements();
  if (!elements || (!is_number(kind) && kind != H5T_STRING)) return false;
  if (lists_classes(dataset)) return false;
  if (*elements == samples) return true;
  return is_number(kind) && dataset.extents.size() == 2 && dataset.extents[0] == samples &&
         dataset.extents[1] > 1 && dataset.extents[1] <= kMostClasses &&
         is_stored(dataset, *elements);
}

std::string describe(const Dataset& dataset) {
  return fmt::format("'{}' ({} of {})", dataset.name, fmt::join(dataset.extents, " x "),
                     dataset.type_name());
}

std::string other_integers(hid_t file, std::uint64_t samples) {
  std::vector<std::string> found;
  for (const std::string& name : dataset_names(file)) {
    const auto dataset = open_dataset(file, name);
    if (!dataset || is_known(kImageNames, name) || name.ends_with(kCrcName)) continue;
    const H5T_class_t kind = dataset->type_class();
    if ((kind == H5T_INTEGER || kind == H5T_ENUM) && dataset->extents.size() <= 2 &&
        dataset->elements() == samples) {
      found.push_back(describe(*dataset));
    }
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

std::vector<std::int64_t> read_numbers(const Dataset& dataset, std::uint64_t samples) {
  const H5T_class_t kind = dataset.type_class();
  if (!is_number(kind)) return {};
  const std::uint64_t count = dataset.elements().value_or(0);
  if (count != samples) return read_places(dataset);
  std::vector<std::int64_t> numbers;
  if (kind == H5T_FLOAT) {
    std::vector<double> floats(count);
    check(H5Dread(dataset.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, floats.data()));
    for (const double value : floats) {
      if (!(std::abs(value) <= kMostExact) || std::trunc(value) != value) return {};
      numbers.push_back(static_cast<std::int64_t>(value));
    }
  } else {
    numbers.resize(count);
    check(H5Dread(dataset.id, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()));
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
  return cut_texts(dataset.type, all);
}

std::vector<std::string> cut_texts(hid_t type, std::string_view texts) {
  const std::size_t width = H5Tget_size(type);
  const bool is_spaced = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  std::vector<std::string> result;
  for (; !texts.empty(); texts.remove_prefix(width)) {
    std::string_view text = texts.substr(0, width);
    text = text.substr(0, text.find('\0'));
    if (is_spaced) text = text.substr(0, text.find_last_not_of(' ') + 1);
    result.emplace_back(text);
  }
  return result;
}

std::vector<std::string> class_names_of(hid_t file, const std::string& group,
                                        std::string_view images, std::uint64_t most_bytes) {
  for (const std::string& name : label_names_for(images)) {
    const auto labels = open_dataset(file, group + name);
    if (!labels || H5Aexists(labels->id, kClassesAttribute) <= 0) continue;
    const Id attribute(H5Aopen(labels->id, kClassesAttribute, H5P_DEFAULT), H5Aclose);
    const Id type(H5Aget_type(attribute), H5Tclose);
    const Id space(H5Aget_space(attribute), H5Sclose);
    const std::uint64_t bytes = H5Aget_storage_size(attribute);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
        H5Sget_simple_extent_ndims(space) != 1 || bytes > most_bytes) {
      continue;
    }
    std::string all(bytes, '\0');
    check(H5Aread(attribute, type, all.data()));
    return cut_texts(type, all);
  }
  return {};
}

}  // namespace precache::hdf5
