// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_id.hpp"

#include <algorithm>
#include <cerrno>

namespace precache::hdf5 {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

herr_t take_first(unsigned, const H5E_error2_t* error, void* reason) {
  if (error->desc != nullptr) {
    const std::string text = error->desc;
    // Addresses in memory do not help the user.
    *static_cast<std::string*>(reason) = text.substr(0, text.find(": current p"));
  }
  return 1;  // enough
}

Id float_type(std::size_t sign, std::size_t exponent_bits, std::size_t mantissa_bits,
              std::size_t bias) {
  Id type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  check(H5Tset_fields(type, sign, mantissa_bits, exponent_bits, 0, mantissa_bits));
  check(H5Tset_size(type, 2));
  check(H5Tset_ebias(type, bias));
  return type;
}

void write_attribute(hid_t object, const char* attribute, const Id& type, const Id& space,
                     const void* data) {
  Id id(H5Acreate2(object, attribute, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(H5Awrite(id, type, data));
  id.close();
}

}  // namespace

LibraryFailure::LibraryFailure() : code(errno) {
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &reason);
}

LibraryLock::LibraryLock() : lock_(library_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

LibraryLock::~LibraryLock() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

std::optional<IoError>& first_write_failure() {
  static std::optional<IoError> failure;
  return failure;
}

void forgo_exit_handler() {
  static const bool done = H5dont_atexit() >= 0;
  (void)done;
}

Id new_file_access(H5F_libver_t version) {
  Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(H5Pset_libver_bounds(access, version, version));
  return access;
}

Id create_file(const std::filesystem::path& path, hid_t access) {
  const Id create(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(create, false));
  return {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, create, access), H5Fclose};
}

Id new_dataset_properties() {
  Id create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(create, false));
  return create;
}

Id image_type(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
    case DType::kFloat16:
      return float_type(15, 5, 10, 15);
    case DType::kBfloat16:
      return float_type(15, 8, 7, 127);
    case DType::kFloat32:
      break;
  }
  return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
}

Id value_type(ValueType type) {
  const hid_t copied = type == ValueType::kUint8   ? H5T_STD_U8LE
                       : type == ValueType::kInt32 ? H5T_STD_I32LE
                       : type == ValueType::kInt64 ? H5T_STD_I64LE
                                                   : H5T_IEEE_F32LE;
  return {H5Tcopy(copied), H5Tclose};
}

Id string_type(std::size_t bytes) {
  Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type, std::max<std::size_t>(bytes, 1)));
  check(H5Tset_cset(type, H5T_CSET_UTF8));
  check(H5Tset_strpad(type, H5T_STR_NULLPAD));
  return type;
}

PackedTexts pack(std::span<const std::string> texts) {
  PackedTexts packed;
  for (const auto& text : texts) packed.width = std::max(packed.width, text.size());
  packed.bytes.resize(texts.size() * packed.width);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i].copy(&packed.bytes[i * packed.width], packed.width);
  }
  return packed;
}

void add_attribute(hid_t object, const char* attribute, std::string_view text) {
  write_attribute(object, attribute, string_type(text.size()), {H5Screate(H5S_SCALAR), H5Sclose},
                  text.data());
}

void add_classes(hid_t labels, std::span<const std::string> classes) {
  if (classes.empty()) return;
  const PackedTexts packed = pack(classes);
  const hsize_t count = classes.size();
  write_attribute(labels, kClassesAttribute, string_type(packed.width),
                  {H5Screate_simple(1, &count, nullptr), H5Sclose}, packed.bytes.data());
}

}  // namespace precache::hdf5
