// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_finder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/hdf5/hdf5_labels.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/limits.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

constexpr std::array kKeyNames{"keys", "filenames", "file_names", "names"};

constexpr std::uint64_t kSmallestSample = 16;  // bytes of the file for each
constexpr std::uint64_t kItemBytes = 16;       // of the reference to an item of variable length
constexpr std::uint64_t kLargestChunk = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostClassBytes = std::uint64_t{64} << 20;

bool is_array(const Dataset& dataset) {
  const H5T_class_t kind = dataset.type_class();
  return (dataset.extents.size() == 3 || dataset.extents.size() == 4) &&
         (kind == H5T_INTEGER || kind == H5T_FLOAT);
}

/// Whether each row is a sequence of bytes with its own length.
bool is_various_bytes(const Dataset& dataset) {
  if (dataset.type_class() != H5T_VLEN || dataset.extents.size() != 1) return false;
  const Id base(H5Tget_super(dataset.type), H5Tclose);
  return H5Tget_size(base) == 1 &&
         (H5Tget_class(base) == H5T_INTEGER || H5Tget_class(base) == H5T_OPAQUE);
}

/// Whether all rows have the same number of bytes.
bool is_fixed_bytes(const Dataset& dataset) {
  const H5T_class_t kind = dataset.type_class();
  if (dataset.extents.size() == 2) return kind == H5T_INTEGER && H5Tget_size(dataset.type) == 1;
  return dataset.extents.size() == 1 &&
         (kind == H5T_OPAQUE || (kind == H5T_STRING && H5Tis_variable_str(dataset.type) == 0));
}

std::string without_slash(const std::string& name) {
  return name.starts_with('/') ? name.substr(1) : name;
}

/// The value of an attribute `layout`, which is `chw` or `hwc`.
std::optional<Layout> layout_of(const Dataset& images) {
  if (H5Aexists(images.id, "layout") <= 0) return std::nullopt;
  const Id attribute(H5Aopen(images.id, "layout", H5P_DEFAULT), H5Aclose);
  const Id type(H5Aget_type(attribute), H5Tclose);
  const Id space(H5Aget_space(attribute), H5Sclose);
  std::array<char, 16> text{};
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
      H5Tget_size(type) > text.size() || H5Sget_simple_extent_npoints(space) != 1) {
    return std::nullopt;
  }
  check(H5Aread(attribute, type, text.data()));
  const std::string_view value(text.data(), std::min<std::size_t>(H5Tget_size(type), 3));
  if (value == "chw") return Layout::kChw;
  if (value == "hwc") return Layout::kHwc;
  return std::nullopt;
}

}  // namespace

Finder::Finder(std::span<const std::byte> file, const std::filesystem::path& path,
               const SampleKeys& wanted)
    : wanted_(wanted), file_(file, path), images_(find_images()) {
  refuse_matlab();
  const auto slash = images().name.rfind('/');
  if (slash != std::string::npos) group_ = images().name.substr(0, slash + 1);
}

void Finder::refuse(const std::string& reason, const std::string& hint) const {
  throw Unsupported(fmt::format("'{}' cannot be read: {}", file_.path().string(), reason), hint);
}

/// In MATLAB the first axis varies fastest, so HDF5 has the axes of its arrays in reverse order,
/// with height and width swapped. Only an attribute shows that.
void Finder::refuse_matlab() const {
  const Dataset& dataset = images();
  if (H5Aexists(dataset.id, "MATLAB_class") <= 0) return;
  refuse(fmt::format("'{}' was written by MATLAB (it has the attribute MATLAB_class), which stores "
                     "axes in reverse order: {}",
                     dataset.name, fmt::join(dataset.extents, " x ")),
         fmt::format("Write the images again as N x H x W x C. If MATLAB had H x W x C x N, in "
                     "Python: h5py.File('new.h5', 'w')['images'] = h5py.File('old.mat')['{}'][:]"
                     ".transpose(0, 3, 2, 1)",
                     dataset.name));
}

void Finder::refuse_keys(const std::string& reason) const {
  throw InvalidArgument(fmt::format("'{}' {}", file_.path().string(), reason),
                        fmt::format("It has: {}.", fmt::join(dataset_names(file_), ", ")));
}

std::optional<Finder::Kind> Finder::kind_of(const Dataset& dataset) const {
  if (is_array(dataset)) return Kind::kArray;
  if (is_various_bytes(dataset)) return Kind::kItems;
  if (!is_fixed_bytes(dataset) || dataset.extents[0] == 0) return std::nullopt;
  check_storage(dataset);
  const std::uint64_t bytes = *dataset.row_elements() * H5Tget_size(dataset.type);
  if (bytes > kLargestEncodedImage) return std::nullopt;
  std::vector<std::byte> first(bytes);
  read_rows(dataset, dataset.type, 0, 1, first.data());
  const std::string_view kind = image_file_kind(first);
  return kind == "JPEG" || kind == "PNG" ? std::optional(Kind::kFixedRows) : std::nullopt;
}

/// Whether a dataset that no option names can be the images. If it cannot be read, it is not.
bool Finder::may_be_images(const Dataset& dataset) const {
  try {
    return kind_of(dataset).has_value();
  } catch (const Error&) {
  } catch (const LibraryFailure&) {
  }
  return false;
}

Finder::Images Finder::find_images() const {
  if (!wanted_.image.empty()) {
    auto dataset = open_dataset(file_, without_slash(wanted_.image));
    if (!dataset) refuse_keys(fmt::format("has no dataset '{}'", wanted_.image));
    if (const auto kind = kind_of(*dataset)) return {std::move(*dataset), *kind};
    refuse_keys(fmt::format("has no images in {}", describe(*dataset)));
  }
  std::string unfit;
  for (const char* const name : kImageNames) {
    auto dataset = open_dataset(file_, name);
    if (!dataset) continue;
    if (const auto kind = kind_of(*dataset)) return {std::move(*dataset), *kind};
    unfit = describe(*dataset);
  }
  return find_only_images(
      unfit.empty() ? "it has no dataset of numbers with three or four axes or of encoded images"
                    : unfit + " does not hold images");
}

/// Finds images without a usual name.
Finder::Images Finder::find_only_images(const std::string& reason) const {
  std::vector<std::string> found;
  for (const std::string& name : dataset_names(file_)) {
    if (std::ranges::find(kLabelNames, name.substr(name.rfind('/') + 1)) != kLabelNames.end()) {
      continue;
    }
    const auto dataset = open_dataset(file_, name);
    if (dataset && may_be_images(*dataset)) found.push_back(name);
  }
  if (found.empty()) refuse(reason);
  if (found.size() > 1) {
    throw InvalidArgument(fmt::format("'{}' has several datasets that could hold the images: {}",
                                      file_.path().string(), fmt::join(found, ", ")),
                          "Set `image_key` to one of them.");
  }
  Dataset dataset = *open_dataset(file_, found.front());
  const Kind kind = *kind_of(dataset);
  return {std::move(dataset), kind};
}

SpecGuess Finder::guess_axes(DType dtype) const {
  const auto extents = std::span(images().extents).subspan(1);
  const auto layout = layout_of(images());
  return layout ? spec_of(dtype, *layout, extents) : guess_spec(dtype, extents);
}

void Finder::check_storage(const Dataset& dataset) const {
  if (dataset.is_in_other_files()) {
    refuse(fmt::format("the data of '{}' is in other files", dataset.name));
  }
  if (const auto missing = dataset.missing_filters(); !missing.empty()) {
    refuse(fmt::format("'{}' is stored with filters ({}) that this HDF5 library lacks",
                       dataset.name, fmt::join(missing, ", ")),
           "Rewrite it with gzip or without filters, using a program that has these filters.");
  }
  std::uint64_t chunk_bytes = H5Tget_size(dataset.type);
  for (const std::uint64_t extent : dataset.chunk()) {
    if (__builtin_mul_overflow(chunk_bytes, extent, &chunk_bytes) || chunk_bytes > kLargestChunk) {
      refuse(fmt::format("a chunk of '{}' is too large", dataset.name));
    }
  }
  std::uint64_t bytes = H5Tget_size(dataset.type);
  if (dataset.type_class() == H5T_VLEN || H5Tis_variable_str(dataset.type) > 0) bytes = kItemBytes;
  const std::uint64_t times = dataset.filters().empty() ? 1 : kLargestInflation;
  const auto elements = dataset.elements();
  if (!elements || __builtin_mul_overflow(bytes, *elements, &bytes) ||
      bytes / times > file_.bytes().size()) {
    throw CorruptData(file_.path(), 0,
                      fmt::format("'{}' is larger than the file can hold", dataset.name));
  }
}

void Finder::check_row_count() const {
  if (count() > file_.bytes().size() / kSmallestSample) refuse("its rows are too small for images");
}

bool Finder::is_readable(const Dataset& dataset) const {
  try {
    check_storage(dataset);
    return true;
  } catch (const Unsupported&) {
    return false;
  }
}

FoundLabels Finder::find_labels() {
  if (wanted_.without_labels || count() == 0) return {};
  std::vector<std::string> names{without_slash(wanted_.label)};
  if (wanted_.label.empty()) {
    names = label_names_for(images().name);
    for (std::string& name : names) name.insert(0, group_);
  }
  for (const std::string& name : names) {
    const auto dataset = name == images().name ? std::nullopt : open_dataset(file_, name);
    if (!dataset) continue;
    if (FoundLabels labels = read_labels(*dataset); !labels.empty()) return labels;
    if (mismatched_labels_.empty() && !lists_classes(*dataset)) {
      mismatched_labels_ =
          fmt::format("{} does not have one integer or name for each of the {} images in '{}'",
                      describe(*dataset), count(), images().name);
    }
  }
  if (wanted_.label.empty()) return {};
  refuse_keys(mismatched_labels_.empty() ? fmt::format("has no dataset '{}'", wanted_.label)
                                         : "has no usable labels: " + mismatched_labels_);
}

/// Empty if the dataset does not hold one label for each image.
FoundLabels Finder::read_labels(const Dataset& dataset) const {
  if (!may_be_labels(dataset, count())) return {};
  const auto offset = dataset.contiguous_offset();
  if (offset && H5Tequal(dataset.type, H5T_STD_I64LE) > 0 && dataset.elements() == count()) {
    // The images are inside the file, but eight bytes for each may not be.
    file_.check_range(dataset, *offset, count() > UINT64_MAX / 8 ? UINT64_MAX : count() * 8);
    return {{*offset, 8, "int64"}, {}, {}};
  }
  check_row_count();
  check_storage(dataset);
  return {{}, read_numbers(dataset, count()), read_texts(dataset, kLongestLabel)};
}

std::string Finder::maybe_labels() const {
  if (wanted_.without_labels || !mismatched_labels_.empty()) return mismatched_labels_;
  const std::string others = other_integers(file_, count());
  return others.empty() ? "" : others + " may be its labels";
}

std::optional<Dataset> Finder::find_keys() const {
  for (const char* const name : kKeyNames) {
    auto dataset = open_dataset(file_, group_ + name);
    if (dataset && dataset->type_class() == H5T_STRING &&
        dataset->extents == std::vector<std::uint64_t>{count()}) {
      return dataset;
    }
  }
  return std::nullopt;
}

std::vector<std::string> Finder::find_classes() const {
  auto classes = class_names_of(file_, group_, images().name, file_.bytes().size());
  for (const char* const name : kClassNames) {
    if (!classes.empty()) break;
    const auto dataset = open_dataset(file_, group_ + name);
    // Data that was never written takes no space in the file, but does when it is read.
    if (dataset && dataset->type_class() == H5T_STRING && is_readable(*dataset) &&
        dataset->extents[0] <= kMostClassBytes / H5Tget_size(dataset->type)) {
      classes = read_texts(*dataset, kLongestKey);
    }
  }
  return classes;
}

}  // namespace precache::hdf5
