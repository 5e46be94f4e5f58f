// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/helper/helper_client.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "formats/hdf5/helper/helper_message.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

extern char** environ;

namespace precache::hdf5 {
namespace {

using Path = std::filesystem::path;
using Kind = HelperRequest::Kind;

constexpr const char* kCommand = "precache";
constexpr int kUsageError = 2;  // of the command, where it does not know the request
constexpr int kPollMilliseconds = 200;
constexpr std::uint64_t kSmallestMessageLimit = std::uint64_t{1} << 20;

/// Both ends of a pipe, which child processes do not inherit.
struct Pipe {
  explicit Pipe(const Path& path) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError("cannot scan", path, errno);
    out = File(ends[0], path);
    in = File(ends[1], path);
  }
  File out;
  File in;
};

[[noreturn]] void refuse_start(const Path& helper, int error) {
  if (helper.empty() && (error == ENOENT || error == EACCES)) {
    throw Unsupported(
        "third-party HDF5 files are read by the precache command, which was not found on PATH",
        "Put the command on PATH, or set `helper` to its path.");
  }
  throw IoError("cannot start", helper.empty() ? kCommand : helper, error,
                helper.string().starts_with("/proc/")
                    ? "A separate process reads HDF5 files; starting it needs /proc to be mounted."
                    : "");
}

pid_t start(const Path& helper, const HelperRequest& request, int out) {
  std::vector<std::string> texts{kCommand, kHelperCommand};
  for (std::string& word : words_of(request)) texts.push_back(std::move(word));
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  // The C library and the HDF5 library print messages when they detect memory corruption.
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const char* const program = helper.empty() ? kCommand : helper.c_str();
  const int error = ::posix_spawnp(&child, program, &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) refuse_start(helper, error);
  return child;
}

/// Reads the pipe to its end, but keeps not much more than `most` bytes. Returns nothing once
/// `stop` is set.
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

/// Throws if a signal killed the process: CorruptData if the file may be the cause.
void check_death(int status, const Path& path) {
  if (!WIFSIGNALED(status)) return;
  switch (const int signal = WTERMSIG(status)) {
    case SIGXCPU:
      throw CorruptData(path, 0, "reading the file with the HDF5 library took too long");
    case SIGSEGV:
    case SIGBUS:
    case SIGABRT:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
      throw CorruptData(
          path, 0,
          fmt::format("the HDF5 library crashed while reading the file ({})", ::strsignal(signal)));
    default:
      throw IoError(fmt::format("a signal ended the process that scans ({}):", ::strsignal(signal)),
                    path, 0);
  }
}

[[noreturn]] void refuse_silence(const Path& helper, int status, const Path& path) {
  const bool is_itself = helper == "/proc/self/exe";
  const std::string program = helper.empty() || is_itself ? kCommand : helper.string();
  if (WEXITSTATUS(status) == kUsageError) {
    throw Unsupported(fmt::format("'{}' is built without HDF5, or has another version", program),
                      "Install a precache command of the same version, built with HDF5.");
  }
  throw IoError(fmt::format("'{}' failed to read", program), path, 0);
}

/// The largest possible answer about a file of `bytes` bytes.
std::uint64_t longest_answer(Kind kind, std::uint64_t bytes) {
  // There is at most one sample for 16 bytes of the file. Its place takes 48 bytes; its label and
  // key in a list of rows take up to a few hundred.
  const std::uint64_t times = kind == Kind::kRows ? 64 : 4;
  return std::min(bytes, UINT64_MAX / 128) * times + kSmallestMessageLimit;
}

/// Empty only if `stop` was set.
Message ask(const Path& helper, const HelperRequest& request, std::uint64_t bytes,
            const std::atomic<bool>& stop = {}) {
  const Path& path = request.shown_as;
  Pipe pipe(path);
  const pid_t child = start(helper, request, pipe.in.descriptor());
  pipe.in = File();  // else reading would never reach the end
  Message message = receive(pipe.out, longest_answer(request.kind, bytes), stop);
  if (stop) ::kill(child, SIGKILL);
  const int status = wait_for(child);
  if (stop) return {};
  check_death(status, path);
  if (message.empty()) refuse_silence(helper, status, path);
  return message;
}

}  // namespace

ShardIndex scan_in_helper(const Path& helper, const Path& path, std::uint64_t bytes,
                          const SampleKeys& keys) {
  return decode<ShardIndex>(ask(helper, {Kind::kIndex, path, path, keys}, bytes), path, bytes);
}

ImageRows find_images_in_helper(const Path& helper, const Path& path, std::uint64_t bytes,
                                const SampleKeys& keys, const Path& shown_as) {
  return decode<ImageRows>(ask(helper, {Kind::kRows, path, shown_as, keys}, bytes), shown_as,
                           bytes);
}

Hdf5Contents survey_in_helper(const Path& helper, const Path& path, std::uint64_t bytes) {
  return decode<Hdf5Contents>(ask(helper, {Kind::kContents, path, path}, bytes), path, bytes);
}

std::uint64_t check_images_in_helper(const Path& helper, const Path& path, std::uint64_t bytes,
                                     const std::atomic<bool>& stop) {
  const Message message = ask(helper, {Kind::kCheck, path, path}, bytes, stop);
  return message.empty() ? 0 : decode<std::uint64_t>(message, path, bytes);
}

}  // namespace precache::hdf5
