// SPDX-License-Identifier: Apache-2.0
#include "formats/os/temporary_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <random>
#include <vector>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kLongestHost = 32;
constexpr std::size_t kRandomDigits = 16;

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

/// Machines may share a host name ("localhost"), containers on one machine its identity; what they
/// do not share is told by both and by the space of process numbers.
std::uint32_t machine_number() {
  std::string text;
  if (const int file = ::open("/etc/machine-id", O_RDONLY | O_CLOEXEC); file >= 0) {
    std::array<char, 64> id{};
    const ssize_t size = ::read(file, id.data(), id.size());
    ::close(file);
    text.assign(id.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  }
  struct stat processes {};
  if (::stat("/proc/self/ns/pid", &processes) == 0) text += fmt::format("/{}", processes.st_ino);
  return crc32c::value(as_bytes(text));
}

/// "HOST.NUMBER".
std::string machine_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  std::string host(name.data());
  host.resize(std::min(host.size(), kLongestHost));
  std::ranges::replace_if(
      host, [](char c) { return !is_host_character(c); }, '_');
  return fmt::format("{}.{}", host.empty() ? "_" : host, machine_number());
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) == sizeof number) return number;
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

struct Attempt {
  std::string_view machine;  // "HOST.NUMBER"
  pid_t process = 0;
};

/// Finds an attempt in the last four or five parts of a name.
bool parse_attempt(std::string_view name, Attempt& attempt) {
  std::vector<std::size_t> dots;
  for (std::size_t i = name.size(); i-- > 0 && dots.size() < 6;) {
    if (name[i] == '.') dots.push_back(i);
  }
  for (const std::size_t suffix_parts : {std::size_t{0}, std::size_t{1}}) {
    if (dots.size() < suffix_parts + 4) continue;
    const std::size_t end = suffix_parts == 0 ? name.size() : dots[0];
    const auto part = [&](std::size_t from_end) {  // 0: the last of the attempt's four parts
      const std::size_t begin = dots[suffix_parts + from_end] + 1;
      const std::size_t stop = from_end == 0 ? end : dots[suffix_parts + from_end - 1];
      return name.substr(begin, stop - begin);
    };
    const std::string_view host = part(3);
    attempt.process = parse_number<pid_t>(part(1)).value_or(0);
    if (part(0).size() != kRandomDigits || !parse_number<std::uint64_t>(part(0), 16) ||
        !parse_number<std::uint32_t>(part(2)) || attempt.process <= 0 || host.empty() ||
        !std::ranges::all_of(host, is_host_character)) {
      continue;
    }
    attempt.machine = name.substr(dots[suffix_parts + 3] + 1,
                                  dots[suffix_parts + 1] - dots[suffix_parts + 3] - 1);
    return true;
  }
  return false;
}

std::filesystem::path temporary_path(const std::filesystem::path& final_path) {
  const std::string ending = fmt::format(".{}.tmp", attempt_name());
  std::string name = final_path.filename().string();
  name.resize(std::min<std::size_t>(name.size(), NAME_MAX - ending.size()));
  return final_path.parent_path() / (name + ending);
}

}  // namespace

std::string attempt_name() {
  return fmt::format("{}.{}.{:016x}", machine_name(), ::getpid(), random_number());
}

bool has_attempt_name(std::string_view name) {
  Attempt attempt;
  return parse_attempt(name, attempt);
}

bool is_abandoned(std::string_view name) {
  Attempt attempt;
  if (!parse_attempt(name, attempt) || attempt.machine != machine_name()) return false;
  return ::kill(attempt.process, 0) != 0 && errno == ESRCH;
}

TemporaryFile::TemporaryFile(const std::filesystem::path& final_path)
    : final_path_(final_path),
      file_(temporary_path(final_path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW) {}

TemporaryFile::~TemporaryFile() {
  if (!committed_) ::unlink(path().c_str());
}

void TemporaryFile::commit() {
  file_.sync();
  rename_durably(path(), final_path_);
  committed_ = true;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  TemporaryFile temporary(path);
  temporary.file().write_at(0, as_bytes(text));
  temporary.commit();
}

}  // namespace precache
