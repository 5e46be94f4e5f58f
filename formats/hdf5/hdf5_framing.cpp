// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/hdf5/hdf5_id.hpp"
#include "formats/hdf5/hdf5_writers.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// Every allocation is aligned, and all metadata (2 to 4 KiB) fits the block before the images.
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kImagesBase = 8192;
// Class names of up to this size fit in that block, too. Longer ones follow the data, with a
// header.
constexpr std::uint64_t kClassBytesInFront = 4096;
constexpr std::uint64_t kAttributeBytes = 128;
// At most as much does the library write about named columns in that block: the links of more than
// eight datasets are in a heap.
constexpr std::uint64_t kNamedColumnsBase = 16384;
constexpr std::uint64_t kNamedColumnBytes = 1024;

using hdf5::check;
using hdf5::Id;

/// A file that has a name only until the library has opened it.
class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& folder)
      : path_((folder / "hdf5-XXXXXX").string()) {
    file_ = File(::mkstemp(path_.data()), path_);
    if (!file_.is_open()) throw IoError("cannot create", path_, errno);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { remove_name(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const File& file() const { return file_; }
  void remove_name() {
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
  }

 private:
  std::string path_;
  File file_;
};

/// An HDF5 file under construction. The rows of /images are a hole in it, which takes no space.
class Skeleton {
 public:
  Skeleton(const std::filesystem::path& folder, std::uint64_t images_base) : scratch_(folder) {
    const Id access = hdf5::new_file_access(H5F_LIBVER_V18);
    check(H5Pset_alignment(access, 1, kAlignment));
    check(H5Pset_meta_block_size(access, images_base));
    check(H5Pset_small_data_block_size(access, 0));
    file_.emplace(hdf5::create_file(scratch_.path(), access));
    scratch_.remove_name();
  }

  /// Returns the dataset's offset in the file; writes `data` unless it is null.
  std::uint64_t add(const char* dataset_name, hid_t type, std::span<const hsize_t> extents,
                    const void* data, const char* attribute = nullptr,
                    std::string_view attribute_text = {}) {
    const Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                   H5Sclose);
    const Id create = hdf5::new_dataset_properties();
    check(H5Pset_layout(create, H5D_CONTIGUOUS));
    check(H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY));
    check(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER));
    Id dataset(H5Dcreate2(*file_, dataset_name, type, space, H5P_DEFAULT, create, H5P_DEFAULT),
               H5Dclose);
    if (attribute != nullptr) hdf5::add_attribute(dataset, attribute, attribute_text);
    if (data != nullptr) check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
    const std::uint64_t offset = H5Dget_offset(dataset);
    dataset.close();
    return offset;
  }

  void add_classes(const std::vector<std::string>& classes) {
    Id labels(H5Dopen2(*file_, "labels", H5P_DEFAULT), H5Dclose);
    hdf5::add_classes(labels, classes);
    labels.close();
  }

  void close() { file_->close(); }

  /// The bytes of the closed file from `begin` to `end` or to its end.
  [[nodiscard]] std::vector<std::byte> bytes(std::uint64_t begin, std::uint64_t end) const {
    end = std::min(end, scratch_.file().size());
    std::vector<std::byte> result(end > begin ? end - begin : 0);
    scratch_.file().read_at(begin, result);
    return result;
  }

 private:
  ScratchFile scratch_;
  std::optional<Id> file_;
};

/// A record is a row of /images; labels, keys, named columns and classes follow all rows.
/// docs/formats/hdf5.md has the bytes.
class Hdf5Framing : public Framing {
 public:
  Hdf5Framing(const TensorSpec& spec, const NameLimits& limits, std::vector<std::string> classes,
              const std::vector<NamedColumn>& named)
      : Framing(named), spec_(spec), key_bytes_(limits.longest_key), classes_(std::move(classes)) {
    records_base_ =
        named.empty() ? kImagesBase
                      : round_up(kNamedColumnsBase + named.size() * kNamedColumnBytes, kImagesBase);
    record_bytes_ = spec.size_bytes();
  }

  std::uint32_t frame(std::span<std::byte>, const SampleName&,
                      std::uint32_t tensor_crc) const override {
    return tensor_crc;
  }

  [[nodiscard]] bool keeps_values() const override { return !named_.empty(); }

  Envelope envelope(std::span<const WrittenRecord> records,
                    const std::filesystem::path& scratch_folder) const override {
    return hdf5::write(scratch_folder, [&] { return make_envelope(records, scratch_folder); });
  }

  ShardColumns columns(std::uint64_t samples) const override {
    const std::uint64_t labels =
        round_up(checked_add(records_base_, checked_mul(samples, record_bytes_)), kAlignment);
    const std::uint64_t keys =
        round_up(checked_add(labels, checked_mul(samples, sizeof(std::int64_t))), kAlignment);
    const std::uint64_t crcs =
        round_up(checked_add(keys, checked_mul(samples, key_bytes_)), kAlignment);
    ShardColumns all{.image = {records_base_, record_bytes_, std::string(name(spec_.dtype))},
                     .label = {labels, sizeof(std::int64_t), "int64"},
                     .key = {keys, key_bytes_, "utf8"},
                     .crc32c = {crcs, sizeof(std::uint32_t), "uint32"}};
    std::uint64_t end = checked_add(crcs, checked_mul(samples, sizeof(std::uint32_t)));
    for (const NamedColumn& column : named_) {
      const std::uint64_t base = round_up(end, kAlignment);
      all.named.push_back({base, column.size_bytes(), std::string(name(column.type))});
      end = checked_add(base, checked_mul(samples, column.size_bytes()));
    }
    return all;
  }

  std::uint64_t shard_bytes(std::uint64_t samples) const override {
    const ShardColumns all = columns(samples);
    const Column& last = all.named.empty() ? all.crc32c : all.named.back();
    const std::uint64_t end = checked_add(last.base, checked_mul(samples, last.stride));
    const std::uint64_t class_bytes = hdf5::pack(classes_).bytes.size();
    if (class_bytes <= kClassBytesInFront) return end;
    return round_up(end, kAlignment) + kAttributeBytes + class_bytes;
  }

 private:
  [[nodiscard]] Envelope make_envelope(std::span<const WrittenRecord> records,
                                       const std::filesystem::path& scratch_folder) const {
    const hsize_t count = records.size();
    std::vector<std::int64_t> labels;
    std::vector<std::uint32_t> crcs;
    std::string keys(count * key_bytes_, '\0');
    for (std::size_t i = 0; i < count; ++i) {
      const SampleName& sample = records[i].name;
      labels.push_back(sample.label);
      const auto key = std::span(keys).subspan(i * key_bytes_, key_bytes_);
      sample.key.copy(key.data(), key.size());
      const std::uint32_t crc =
          crc32c::extend(records[i].crc32c, std::as_bytes(std::span(&labels.back(), 1)));
      crcs.push_back(crc32c::extend(crc32c::extend(crc, std::as_bytes(key)), sample.values));
    }

    Skeleton skeleton(scratch_folder, records_base_);
    const auto shape = spec_.shape();
    const std::array<hsize_t, 4> images{count, shape[0], shape[1], shape[2]};
    errno = 0;
    std::vector<std::uint64_t> offsets{
        skeleton.add("images", hdf5::image_type(spec_.dtype), images, nullptr, "layout",
                     name(spec_.layout)),
        skeleton.add("labels", Id(H5Tcopy(H5T_STD_I64LE), H5Tclose), std::span(&count, 1),
                     labels.data()),
        skeleton.add("keys", hdf5::string_type(key_bytes_), std::span(&count, 1), keys.data()),
        skeleton.add(hdf5::kCrcName, Id(H5Tcopy(H5T_STD_U32LE), H5Tclose), std::span(&count, 1),
                     crcs.data(), named_.empty() ? nullptr : hdf5::kColumnsAttribute,
                     joined_names())};
    add_values(skeleton, records, offsets);
    skeleton.add_classes(classes_);  // after the datasets, so that their offsets do not change
    skeleton.close();
    const ShardColumns wanted = columns(count);
    std::vector<std::uint64_t> bases{wanted.image.base, wanted.label.base, wanted.key.base,
                                     wanted.crc32c.base};
    for (const Column& column : wanted.named) bases.push_back(column.base);
    if (count != 0 && offsets != bases) {
      throw Unsupported("this version of the HDF5 library places datasets at other offsets",
                        "Use HDF5 1.10, or choose another `format`.");
    }
    const std::uint64_t images_end = records_base_ + count * record_bytes_;
    Envelope envelope{.prologue = skeleton.bytes(0, records_base_),
                      .epilogue = skeleton.bytes(images_end, UINT64_MAX)};
    envelope.prologue.resize(records_base_);  // a file without samples and classes is shorter
    return envelope;
  }

  [[nodiscard]] std::string joined_names() const {
    std::string names;
    for (const NamedColumn& column : named_) names += (names.empty() ? "" : ",") + column.name;
    return names;
  }

  /// Adds a dataset for each named column, and its offset.
  void add_values(Skeleton& skeleton, std::span<const WrittenRecord> records,
                  std::vector<std::uint64_t>& offsets) const {
    std::uint64_t begin = 0;
    for (const NamedColumn& column : named_) {
      std::vector<std::byte> rows;
      rows.reserve(records.size() * column.size_bytes());
      for (const WrittenRecord& record : records) {
        const auto values = record.name.values.subspan(begin, column.size_bytes());
        rows.insert(rows.end(), values.begin(), values.end());
      }
      std::vector<hsize_t> extents{records.size()};
      extents.insert(extents.end(), column.shape.begin(), column.shape.end());
      offsets.push_back(
          skeleton.add(column.name.c_str(), hdf5::value_type(column.type), extents, rows.data()));
      begin += column.size_bytes();
    }
  }

  TensorSpec spec_;
  std::size_t key_bytes_;
  std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<const Framing> make_hdf5_framing(const TensorSpec& spec, const NameLimits& limits,
                                                 const std::vector<std::string>& classes,
                                                 const std::vector<NamedColumn>& named) {
  return std::make_unique<Hdf5Framing>(spec, limits, classes, named);
}

}  // namespace precache
