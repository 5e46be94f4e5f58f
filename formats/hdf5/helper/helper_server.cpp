// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/hdf5/helper/helper_message.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

using Kind = HelperRequest::Kind;

constexpr rlim_t kCpuSeconds = 60;                  // a scan takes much less than one
constexpr std::uint64_t kBytesPerSecond = 1 << 20;  // more time to unpack a file
constexpr rlim_t kMemoryBytes = rlim_t{1} << 30;    // on top of the file

void limit(decltype(RLIMIT_CPU) resource, rlim_t value) {
  rlimit old{};
  ::getrlimit(resource, &old);
  const rlimit wanted{std::min(value, old.rlim_max), old.rlim_max};
  ::setrlimit(resource, &wanted);
}

void limit_resources(Kind kind, std::uint64_t file_bytes) {
  // These requests unpack data, in chunks of up to 1 GiB.
  const bool unpacks = kind == Kind::kCheck || kind == Kind::kRows;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, kCpuSeconds + (unpacks ? file_bytes / kBytesPerSecond : 0));
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they reserve terabytes of addresses
  limit(RLIMIT_AS, (unpacks ? 4 : 1) * kMemoryBytes + file_bytes);
#endif
}

Message answer(const HelperRequest& request) {
  const auto& path = request.shown_as;
  const File file(request.file, O_RDONLY);
  const std::uint64_t size = file.size();
  if (size == 0) throw CorruptData(path, 0, "the file is empty");
  limit_resources(request.kind, size);
  const void* const base = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (base == MAP_FAILED) throw IoError("cannot map", path, errno);
  const std::span bytes(static_cast<const std::byte*>(base), size);
  switch (request.kind) {
    case Kind::kIndex:
      return encode(scan(bytes, path, request.keys));
    case Kind::kRows:
      return encode(find_images(bytes, path, request.keys));
    case Kind::kContents:
      return encode(survey(bytes, path));
    case Kind::kCheck:
      return encode(check_images(bytes, path));
  }
  return {};
}

Message answer_or_error(std::span<char* const> words) {
  try {
    return answer(request_from(words));
  } catch (...) {
    return encode(std::current_exception());
  }
}

}  // namespace

void serve_helper_request(std::span<char* const> words) {
  ::signal(SIGINT, SIG_IGN);  // the terminal sends it to both processes; the client decides
  const Message message = answer_or_error(words);
  std::span<const std::uint8_t> rest(message);
  while (!rest.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (size < 0 && errno != EINTR) break;
    if (size > 0) rest = rest.subspan(static_cast<std::size_t>(size));
  }
  ::_exit(0);
}

}  // namespace precache::hdf5
