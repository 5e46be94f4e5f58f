// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/helper/helper_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "formats/hdf5/hdf5_contents.hpp"
#include "formats/hdf5/hdf5_images.hpp"
#include "formats/hdf5/hdf5_scan.hpp"
#include "formats/hdf5/helper/helper_message.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/isolate_hdf5.hpp"

extern char** environ;

namespace precache {
namespace {

constexpr rlim_t kCpuSeconds = 60;                  // a scan takes well below one
constexpr std::uint64_t kBytesPerSecond = 1 << 20;  // more of them for whoever unpacks a file
constexpr rlim_t kMemoryBytes = rlim_t{1} << 30;    // beside the file
constexpr int kPollMilliseconds = 200;
constexpr std::uint64_t kSmallestMessageLimit = std::uint64_t{1} << 20;

using Message = std::vector<std::uint8_t>;

std::filesystem::path& program_setting() {
  static std::filesystem::path program;
  return program;
}

/// Both ends of a pipe; they are not inherited.
struct Pipe {
  explicit Pipe(const std::filesystem::path& path) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError("cannot scan", path, errno);
    out = File(ends[0], path);
    in = File(ends[1], path);
  }
  File out;
  File in;
};

using hdf5::HelperRequest;

pid_t start(const std::filesystem::path& program, const std::filesystem::path& path,
            HelperRequest question, const SampleKeys& keys, int out) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  // The C library and the HDF5 library have words for the terminal when they find memory broken.
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> texts{"precache", hdf5::kScanCommand};
  if (question == HelperRequest::kContents) texts.emplace_back(hdf5::kContentsOption);
  if (question == HelperRequest::kCheck) texts.emplace_back(hdf5::kCheckOption);
  if (!keys.image.empty()) texts.push_back(hdf5::kImageKeyOption + ("=" + keys.image));
  if (!keys.label.empty()) texts.push_back(hdf5::kLabelKeyOption + ("=" + keys.label));
  if (keys.without_labels) texts.emplace_back(hdf5::kWithoutLabelsOption);
  texts.emplace_back("--");  // a file may be called -x
  texts.push_back(path.string());
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw IoError(
        "cannot start", program, error,
        program.string().starts_with("/proc/")
            ? "A process of its own reads HDF5 files; to start it, /proc has to be mounted."
            : "");
  }
  return child;
}

/// All that comes out of the pipe; more than `most` bytes are not kept. Nothing if `stop` is set
/// before.
Message receive(const File& pipe, std::uint64_t most, const std::atomic<bool>& stop) {
  Message message;
  std::array<std::uint8_t, 1 << 16> buffer{};
  pollfd waiting{pipe.descriptor(), POLLIN, 0};
  for (;;) {
    while (::poll(&waiting, 1, kPollMilliseconds) <= 0) {
      if (stop) return {};
    }
    const ssize_t size = ::read(pipe.descriptor(), buffer.data(), buffer.size());
    if (size == 0 || (size < 0 && errno != EINTR)) return message;
    if (size > 0 && message.size() < most) {
      message.insert(message.end(), buffer.begin(), buffer.begin() + size);
    }
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// What killed it, if the file can be blamed for it.
void check_death(int status, const std::filesystem::path& path) {
  if (!WIFSIGNALED(status)) return;
  switch (const int signal = WTERMSIG(status)) {
    case SIGXCPU:
      throw CorruptData(path, 0, "the HDF5 library takes too long to read it");
    case SIGSEGV:
    case SIGBUS:
    case SIGABRT:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
      throw CorruptData(path, 0,
                        fmt::format("the HDF5 library crashed on it ({})", ::strsignal(signal)));
    default:
      throw IoError(fmt::format("the process that scans was ended ({}):", ::strsignal(signal)),
                    path, 0);
  }
}

struct Limits {
  rlim_t cpu_seconds;
  rlim_t memory_bytes;
};

Limits limits_for(HelperRequest question, std::uint64_t file_bytes) {
  if (question != HelperRequest::kCheck) return {kCpuSeconds, kMemoryBytes + file_bytes};
  // Data is unpacked, chunks of up to a GiB among it.
  return {kCpuSeconds + file_bytes / kBytesPerSecond, 4 * kMemoryBytes + file_bytes};
}

void limit_resources(const Limits& limits) {
  const auto limit = [](auto resource, rlim_t value) {
    rlimit old{};
    ::getrlimit(resource, &old);
    const rlimit wanted{std::min(value, old.rlim_max), old.rlim_max};
    ::setrlimit(resource, &wanted);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, limits.cpu_seconds);
#ifndef __SANITIZE_ADDRESS__  // which takes terabytes of addresses
  limit(RLIMIT_AS, limits.memory_bytes);
#endif
}

Message scan_message(const std::filesystem::path& path, HelperRequest question,
                     const SampleKeys& keys) {
  try {
    const File file(path, O_RDONLY);
    const std::uint64_t size = file.size();
    if (size == 0) throw CorruptData(path, 0, "the file is empty");
    limit_resources(limits_for(question, size));
    const void* const base = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (base == MAP_FAILED) throw IoError("cannot map", path, errno);
    const std::span bytes(static_cast<const std::byte*>(base), size);
    switch (question) {
      case HelperRequest::kIndex:
        return hdf5::encode(hdf5::scan(bytes, path, keys));
      case HelperRequest::kContents:
        return hdf5::encode(hdf5::survey(bytes, path));
      case HelperRequest::kCheck:
        return hdf5::encode(hdf5::check_images(bytes, path));
    }
    return {};
  } catch (...) {
    return hdf5::encode(std::current_exception());
  }
}

/// Empty only if `stop` was set.
Message ask(const std::filesystem::path& program, const std::filesystem::path& path,
            HelperRequest question, std::uint64_t bytes, const SampleKeys& keys = {},
            const std::atomic<bool>& stop = {}) {
  Pipe pipe(path);
  const pid_t child = start(program, path, question, keys, pipe.in.descriptor());
  pipe.in = File();  // so that its end is seen
  // A place takes 48 bytes, and there is at most one for 16 bytes of the file, and its key.
  Message message = receive(pipe.out, 4 * bytes + kSmallestMessageLimit, stop);
  if (stop) ::kill(child, SIGKILL);
  const int status = wait_for(child);
  if (stop) return {};
  check_death(status, path);
  if (message.empty()) throw IoError(fmt::format("'{}' cannot scan", program.string()), path, 0);
  return message;
}

}  // namespace

void isolate_hdf5(const std::filesystem::path& program) { program_setting() = program; }

const std::filesystem::path& hdf5::scan_program() { return program_setting(); }

ShardIndex hdf5::scan_in_helper(const std::filesystem::path& program,
                                const std::filesystem::path& path, std::uint64_t bytes,
                                const SampleKeys& keys) {
  return decode(ask(program, path, HelperRequest::kIndex, bytes, keys), path, bytes);
}

Hdf5Contents hdf5::survey_in_helper(const std::filesystem::path& program,
                                    const std::filesystem::path& path, std::uint64_t bytes) {
  return decode_contents(ask(program, path, HelperRequest::kContents, bytes), path);
}

std::uint64_t hdf5::check_images_apart(const std::filesystem::path& program,
                                       const std::filesystem::path& path, std::uint64_t bytes,
                                       const std::atomic<bool>& stop) {
  const Message message = ask(program, path, HelperRequest::kCheck, bytes, {}, stop);
  return message.empty() ? 0 : decode_count(message, path);
}

void hdf5::serve_helper_request(const std::filesystem::path& path, HelperRequest question,
                                const SampleKeys& keys) {
  ::signal(SIGINT, SIG_IGN);  // the terminal sends it to both; the other one decides
  const Message message = scan_message(path, question, keys);
  std::span<const std::uint8_t> rest(message);
  while (!rest.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (size < 0 && errno != EINTR) break;
    if (size > 0) rest = rest.subspan(static_cast<std::size_t>(size));
  }
  ::_exit(0);
}

}  // namespace precache
