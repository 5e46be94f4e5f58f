// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_objects.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>

#include "formats/shard/limits.hpp"

namespace precache::hdf5 {
namespace {

constexpr std::size_t kMostObjects = 10'000;
constexpr std::size_t kMostDatasets = 100;
constexpr std::ptrdiff_t kDeepestGroup = 32;  // the library recurses
constexpr std::size_t kMostAxes = H5S_MAX_RANK;

/// Callbacks for the memory of a file image, which the library would otherwise allocate itself.
///
/// The library allocates and copies when the image is set, when the property list is copied and
/// when the file is opened. It gets the image itself each time, and nothing is copied.
struct ImageCallbacks {
  static void* malloc(std::size_t, H5FD_file_image_op_t, void* image) { return image; }
  static void* memcpy(void* to, const void*, std::size_t, H5FD_file_image_op_t, void*) {
    return to;
  }
  static void* realloc(void*, std::size_t, H5FD_file_image_op_t, void*) { return nullptr; }
  static herr_t free(void*, H5FD_file_image_op_t, void*) { return 0; }
  static void* copy_data(void* image) { return image; }
  static herr_t free_data(void*) { return 0; }
};

std::string filter_name(H5Z_filter_t filter) {
  static const std::map<H5Z_filter_t, const char*> names{
      {1, "gzip"},     {2, "shuffle"},        {3, "fletcher32"}, {4, "szip"},
      {5, "nbit"},     {6, "scaleoffset"},    {32000, "lzf"},    {32001, "blosc"},
      {32004, "lz4"},  {32008, "bitshuffle"}, {32013, "zfp"},    {32015, "zstd"},
      {32019, "jpeg"}, {32026, "blosc2"}};
  const auto known = names.find(filter);
  return known == names.end() ? fmt::format("filter {}", filter) : known->second;
}

std::vector<H5Z_filter_t> filter_numbers(hid_t create) {
  std::vector<H5Z_filter_t> filters;
  const int count = H5Pget_nfilters(create);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t values = 0;
    filters.push_back(H5Pget_filter2(create, static_cast<unsigned>(i), &flags, &values, nullptr, 0,
                                     nullptr, &config));
  }
  return filters;
}

struct Visit {
  std::vector<std::string> names;
  std::size_t objects = 0;
};

herr_t note_object(hid_t, const char* name, const H5O_info_t* info, void* data) {
  auto& visit = *static_cast<Visit*>(data);
  const std::string_view text(name);
  if (++visit.objects > kMostObjects || visit.names.size() == kMostDatasets ||
      text.size() > kLongestObjectName || std::ranges::count(text, '/') > kDeepestGroup) {
    return 1;  // enough
  }
  try {
    if (info->type == H5O_TYPE_DATASET) visit.names.emplace_back(text);
  } catch (const std::bad_alloc&) {
    return -1;
  }
  return 0;
}

std::string type_name(hid_t type, int depth = 0);

std::string base_type_name(hid_t type, int depth) {
  const Id base(H5Tget_super(type), H5Tclose);
  return type_name(base, depth + 1);
}

std::string number_name(hid_t type, H5T_class_t kind) {
  const std::size_t bits = H5Tget_size(type) * 8;
  const char* const order = H5Tget_order(type) == H5T_ORDER_BE && bits > 8 ? "big-endian " : "";
  if (kind == H5T_FLOAT) {
    const bool is_bfloat16 = H5Tequal(type, image_type(DType::kBfloat16)) > 0;
    return is_bfloat16 ? "bfloat16" : fmt::format("{}float{}", order, bits);
  }
  return fmt::format("{}{}int{}", order, H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
}

std::string type_name(hid_t type, int depth) {
  if (depth > 4) return "...";
  const H5T_class_t kind = H5Tget_class(type);
  switch (kind) {
    case H5T_INTEGER:
    case H5T_FLOAT:
      return number_name(type, kind);
    case H5T_STRING:
      return H5Tis_variable_str(type) > 0 ? "string" : fmt::format("string[{}]", H5Tget_size(type));
    case H5T_VLEN:
      return "variable-length " + base_type_name(type, depth);
    case H5T_ARRAY:
      return "array of " + base_type_name(type, depth);
    case H5T_ENUM:
      return "enum of " + base_type_name(type, depth);
    case H5T_COMPOUND:
      return fmt::format("compound of {} members", H5Tget_nmembers(type));
    case H5T_REFERENCE:
      return "reference";
    case H5T_OPAQUE:
      return "opaque";
    case H5T_BITFIELD:
      return fmt::format("bitfield{}", H5Tget_size(type) * 8);
    default:
      return "unknown";
  }
}

std::vector<std::uint64_t> extents_of(hid_t space) {
  if (H5Sget_simple_extent_type(space) != H5S_SIMPLE) return {};
  std::array<hsize_t, kMostAxes> extents{};
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > static_cast<int>(kMostAxes)) throw LibraryFailure();
  check(H5Sget_simple_extent_dims(space, extents.data(), nullptr));
  return {extents.begin(), extents.begin() + rank};
}

std::optional<std::uint64_t> product(std::span<const std::uint64_t> extents) {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : extents) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

void* allocate(std::size_t size, void*) {
  return size > kLargestEncodedImage ? nullptr : std::malloc(size);
}

void release(void* memory, void*) { std::free(memory); }

/// Selects some rows of a dataset.
Id select_rows(const Dataset& dataset, std::uint64_t first, std::uint64_t count) {
  Id space(H5Dget_space(dataset.id), H5Sclose);
  std::vector<hsize_t> start(dataset.extents.size(), 0);
  std::vector<hsize_t> extents(dataset.extents.begin(), dataset.extents.end());
  start[0] = first;
  extents[0] = count;
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr));
  return space;
}

}  // namespace

MemoryFile::MemoryFile(std::span<const std::byte> bytes, const std::filesystem::path& path)
    : bytes_(bytes), path_(path) {
  auto* const image = const_cast<std::byte*>(bytes_.data());  // the file is opened read-only
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(H5Pset_fapl_core(access, 1 << 16, false));
  check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG));
  H5FD_file_image_callbacks_t callbacks{ImageCallbacks::malloc,
                                        ImageCallbacks::memcpy,
                                        ImageCallbacks::realloc,
                                        ImageCallbacks::free,
                                        ImageCallbacks::copy_data,
                                        ImageCallbacks::free_data,
                                        image};
  check(H5Pset_file_image_callbacks(access, &callbacks));
  check(H5Pset_file_image(access, image, bytes_.size()));
  // To the library, two files in memory with the same name are one file.
  static std::atomic<std::uint64_t> count = 0;
  const std::string name = fmt::format("precache {}", ++count);
  id_.emplace(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
}

std::uint64_t MemoryFile::user_block() const {
  const Id create(H5Fget_create_plist(*id_), H5Pclose);
  hsize_t bytes = 0;
  check(H5Pget_userblock(create, &bytes));
  return bytes;
}

bool MemoryFile::has_wide_addresses() const {
  const Id create(H5Fget_create_plist(*id_), H5Pclose);
  std::size_t addresses = 0;
  std::size_t lengths = 0;
  check(H5Pget_sizes(create, &addresses, &lengths));
  return addresses == 8 && lengths == 8;
}

void MemoryFile::check_range(const Dataset& dataset, std::uint64_t offset,
                             std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    throw CorruptData(path_, offset,
                      fmt::format("'{}' runs past the end of the file", dataset.name));
  }
}

std::optional<std::uint64_t> Dataset::elements() const { return product(extents); }

std::optional<std::uint64_t> Dataset::row_elements() const {
  return product(std::span(extents).subspan(1));
}

std::vector<std::uint64_t> Dataset::chunk() const {
  if (layout() != H5D_CHUNKED) return {};
  std::array<hsize_t, kMostAxes> shape{};
  const int rank = H5Pget_chunk(create, kMostAxes, shape.data());
  if (rank != static_cast<int>(extents.size())) throw LibraryFailure();
  return {shape.begin(), shape.begin() + rank};
}

bool Dataset::is_in_other_files() const {
  return layout() == H5D_VIRTUAL || H5Pget_external_count(create) > 0;
}

std::vector<std::string> Dataset::filters() const {
  std::vector<std::string> names;
  for (const H5Z_filter_t filter : filter_numbers(create)) names.push_back(filter_name(filter));
  return names;
}

std::vector<std::string> Dataset::missing_filters() const {
  std::vector<std::string> names;
  for (const H5Z_filter_t filter : filter_numbers(create)) {
    if (H5Zfilter_avail(filter) <= 0) names.push_back(filter_name(filter));
  }
  return names;
}

std::string Dataset::type_name() const { return hdf5::type_name(type); }

std::optional<std::uint64_t> Dataset::contiguous_offset() const {
  if (layout() != H5D_CONTIGUOUS || is_in_other_files()) return std::nullopt;
  const haddr_t offset = H5Dget_offset(id);
  return offset == HADDR_UNDEF ? std::nullopt : std::optional<std::uint64_t>(offset);
}

Dataset load_dataset(hid_t file, const std::string& name) {
  Id id(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
  const Id space(H5Dget_space(id), H5Sclose);
  Id type(H5Dget_type(id), H5Tclose);
  Id create(H5Dget_create_plist(id), H5Pclose);
  return {name, std::move(id), std::move(type), std::move(create), extents_of(space)};
}

std::optional<Dataset> open_dataset(hid_t file, const std::string& name) {
  for (std::size_t slash = name.find('/');; slash = name.find('/', slash + 1)) {
    H5L_info_t link;
    const std::string part = name.substr(0, slash);
    if (H5Lget_info(file, part.c_str(), &link, H5P_DEFAULT) < 0) return std::nullopt;
    if (link.type != H5L_TYPE_HARD) return std::nullopt;
    if (slash == std::string::npos) break;
  }
  const Id object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose);
  if (H5Iget_type(object) != H5I_DATASET) return std::nullopt;
  Dataset dataset = load_dataset(file, name);
  if (dataset.extents.empty()) return std::nullopt;
  return dataset;
}

std::vector<std::string> dataset_names(hid_t file) {
  Visit visit;
  check(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, note_object, &visit, H5O_INFO_BASIC));
  std::ranges::sort(visit.names);
  return std::move(visit.names);
}

ItemMemory::ItemMemory() : list_(H5Pcreate(H5P_DATASET_XFER), H5Pclose) {
  check(H5Pset_vlen_mem_manager(list_, allocate, nullptr, release, nullptr));
}

void read_rows(const Dataset& dataset, hid_t type, std::uint64_t first, std::uint64_t count,
               void* into) {
  const Id from = select_rows(dataset, first, count);
  const hsize_t elements = static_cast<hsize_t>(H5Sget_select_npoints(from));
  const Id to(H5Screate_simple(1, &elements, nullptr), H5Sclose);
  check(H5Dread(dataset.id, type, to, from, H5P_DEFAULT, into));
}

std::vector<std::byte> read_item(const Dataset& dataset, std::uint64_t row,
                                 const ItemMemory& memory) {
  const Id from = select_rows(dataset, row, 1);
  const hsize_t one = 1;
  const Id to(H5Screate_simple(1, &one, nullptr), H5Sclose);
  std::vector<std::byte> bytes;
  if (dataset.type_class() == H5T_STRING) {
    char* text = nullptr;
    check(H5Dread(dataset.id, dataset.type, to, from, memory, &text));
    if (text != nullptr) {
      const auto* begin = reinterpret_cast<const std::byte*>(text);
      bytes.assign(begin, begin + std::strlen(text));
    }
    check(H5Dvlen_reclaim(dataset.type, to, memory, &text));
    return bytes;
  }
  hvl_t item{};
  check(H5Dread(dataset.id, dataset.type, to, from, memory, &item));
  const auto* begin = static_cast<const std::byte*>(item.p);
  bytes.assign(begin, begin + item.len);
  check(H5Dvlen_reclaim(dataset.type, to, memory, &item));
  return bytes;
}

}  // namespace precache::hdf5
