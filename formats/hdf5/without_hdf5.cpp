// SPDX-License-Identifier: Apache-2.0

// Takes the place of this folder's other sources in a build without the library.

#include "formats/hdf5/exit_handler.hpp"
#include "formats/hdf5/hdf5_contents.hpp"
#include "formats/hdf5/hdf5_encoded.hpp"
#include "formats/hdf5/hdf5_framing.hpp"
#include "formats/hdf5/hdf5_images.hpp"
#include "formats/hdf5/hdf5_scan.hpp"
#include "formats/hdf5/hdf5_virtual.hpp"
#include "formats/hdf5/helper/helper_process.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/isolate_hdf5.hpp"

namespace precache {
namespace {

[[noreturn]] void refuse() {
  throw Unsupported("this build has no HDF5",
                    "Build with PRECACHE_WITH_HDF5, or choose another "
                    "format.");
}

}  // namespace

std::unique_ptr<const Framing> make_hdf5_framing(const TensorSpec&, const NameLimits&,
                                                 const std::vector<std::string>&) {
  refuse();
}

void check_encoded_hdf5() { refuse(); }

std::unique_ptr<EncodedShard> make_encoded_hdf5(const std::filesystem::path&, const NameLimits&,
                                                const std::vector<std::string>&) {
  refuse();
}

ShardIndex hdf5::scan(std::span<const std::byte>, const std::filesystem::path&, const SampleKeys&) {
  refuse();
}

void hdf5::write_virtual_file(const std::filesystem::path&, const VirtualShards&) { refuse(); }

bool hdf5::is_virtual_file(const std::filesystem::path&) { return false; }

ShardIndex hdf5::scan_in_helper(const std::filesystem::path&, const std::filesystem::path&,
                                std::uint64_t, const SampleKeys&) {
  refuse();
}

Hdf5Contents hdf5::survey_in_helper(const std::filesystem::path&, const std::filesystem::path&,
                                    std::uint64_t) {
  refuse();
}

void hdf5::serve_helper_request(const std::filesystem::path&, HelperRequest, const SampleKeys&) {
  refuse();
}

const std::filesystem::path& hdf5::scan_program() {
  static const std::filesystem::path none;
  return none;
}

void isolate_hdf5(const std::filesystem::path&) {}

void hdf5::forgo_exit_handler() {}

Hdf5Contents hdf5::survey(std::span<const std::byte>, const std::filesystem::path&) { refuse(); }

hdf5::ImageRows hdf5::find_images(std::span<const std::byte>, const std::filesystem::path&,
                                  const std::string&, const std::string&) {
  refuse();
}

std::uint64_t hdf5::check_images(std::span<const std::byte>, const std::filesystem::path&) {
  refuse();
}

std::uint64_t hdf5::check_images_apart(const std::filesystem::path&, const std::filesystem::path&,
                                       std::uint64_t, const std::atomic<bool>&) {
  refuse();
}

void hdf5::read_rows(std::span<const std::byte>, const std::filesystem::path&, const ImageRows&,
                     const std::function<void(std::span<const std::byte>)>&) {
  refuse();
}

}  // namespace precache
