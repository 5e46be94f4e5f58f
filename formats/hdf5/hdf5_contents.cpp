// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "formats/hdf5/hdf5_objects.hpp"
#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/shard/limits.hpp"

namespace precache::hdf5 {
namespace {

constexpr std::size_t kMostObjects = 1000;
constexpr std::ptrdiff_t kDeepestGroup = 32;  // the library recurses
constexpr std::size_t kLongestTarget = 4096;

using Object = Hdf5Contents::Object;

/// The links that a visit has found. No exception may pass through the library.
struct Visit {
  struct Link {
    std::string name;
    H5L_type_t type;
    std::size_t value_bytes;  // of a soft or external link
  };
  std::vector<Link> links;
  bool has_more = false;
};

herr_t note_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  auto& visit = *static_cast<Visit*>(data);
  const std::string_view text(name);
  if (visit.links.size() == kMostObjects || text.size() > kLongestObjectName ||
      std::ranges::count(text, '/') > kDeepestGroup) {
    visit.has_more = true;
    return 1;  // enough
  }
  try {
    const bool is_hard = info->type == H5L_TYPE_HARD;
    visit.links.push_back({std::string(text), info->type, is_hard ? 0 : info->u.val_size});
  } catch (const std::bad_alloc&) {
    return -1;
  }
  return 0;
}

std::string storage_of(const Dataset& dataset) {
  if (H5Pget_external_count(dataset.create) > 0) return "external";
  switch (dataset.layout()) {
    case H5D_CONTIGUOUS:
      return "contiguous";
    case H5D_CHUNKED:
      return "chunked";
    case H5D_COMPACT:
      return "compact";
    case H5D_VIRTUAL:
      return "virtual";
    default:
      return "unknown";
  }
}

Object describe_dataset(hid_t file, const std::string& name) {
  const Dataset dataset = load_dataset(file, name);
  const Id space(H5Dget_space(dataset.id), H5Sclose);
  Object object{.name = name, .kind = "dataset"};
  object.type = dataset.type_name();
  if (H5Sget_simple_extent_type(space) == H5S_NULL) object.type += ", empty";
  object.shape = dataset.extents;
  object.storage = storage_of(dataset);
  object.chunk = dataset.chunk();
  object.filters = dataset.filters();
  object.offset = dataset.contiguous_offset();
  object.stored_bytes = H5Dget_storage_size(dataset.id);
  return object;
}

Object describe_hard_link(hid_t file, const std::string& name) {
  const Id object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose);
  switch (H5Iget_type(object)) {
    case H5I_DATASET:
      return describe_dataset(file, name);
    case H5I_GROUP:
      return {.name = name, .kind = "group"};
    default:
      return {.name = name, .kind = "type"};
  }
}

Object describe_other_link(hid_t file, const Visit::Link& link) {
  Object object{.name = link.name,
                .kind = link.type == H5L_TYPE_SOFT ? "soft link" : "external link"};
  if (link.value_bytes > kLongestTarget) return object;
  std::string value(link.value_bytes + 1, '\0');
  check(H5Lget_val(file, link.name.c_str(), value.data(), value.size(), H5P_DEFAULT));
  const char* file_name = nullptr;
  const char* object_name = value.c_str();
  if (link.type == H5L_TYPE_EXTERNAL) {
    unsigned flags = 0;
    check(H5Lunpack_elink_val(value.data(), link.value_bytes, &flags, &file_name, &object_name));
    object.target = fmt::format("{}:{}", file_name, object_name);
  } else {
    object.target = object_name;
  }
  return object;
}

Object describe(hid_t file, const Visit::Link& link) {
  try {
    return link.type == H5L_TYPE_HARD ? describe_hard_link(file, link.name)
                                      : describe_other_link(file, link);
  } catch (const LibraryFailure& failure) {
    return {.name = link.name, .kind = "unreadable", .target = failure.reason};
  }
}

}  // namespace

Hdf5Contents survey(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  return with_library(path, [&] {
    const MemoryFile file(bytes, path);
    Visit visit;
    const herr_t status = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, note_link, &visit);
    if (status < 0 && visit.links.empty()) throw LibraryFailure();
    Hdf5Contents contents;
    contents.has_more = visit.has_more || status < 0;
    for (const Visit::Link& link : visit.links) contents.objects.push_back(describe(file, link));
    std::ranges::sort(contents.objects, {}, &Object::name);
    return contents;
  });
}

}  // namespace precache::hdf5
