// SPDX-License-Identifier: Apache-2.0
#include "formats/os/temporary_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <optional>
#include <random>

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

/// Machines may share a host name ("localhost"), and containers share the machine-id of their host.
/// Together with the PID namespace they identify a space of process numbers.
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

/// Finds the attempt in "X.ATTEMPT" or "X.ATTEMPT.SUFFIX".
std::optional<Attempt> parse_attempt(std::string_view name) {
  for (const bool has_suffix : {false, true}) {
    std::string_view rest = name;
    const auto take_last_part = [&] {
      const std::size_t dot = std::min(rest.rfind('.'), rest.size());
      const std::string_view part = rest.substr(std::min(dot + 1, rest.size()));
      rest = rest.substr(0, dot);
      return part;
    };
    if (has_suffix) take_last_part();
    const std::string_view random = take_last_part();
    const pid_t process = parse_number<pid_t>(take_last_part()).value_or(0);
    const std::string_view until_number = rest;
    const std::string_view number = take_last_part();
    const std::string_view host = take_last_part();
    if (random.size() == kRandomDigits && parse_number<std::uint64_t>(random, 16) && process > 0 &&
        parse_number<std::uint32_t>(number) && !host.empty() &&
        std::ranges::all_of(host, is_host_character)) {
      return Attempt{until_number.substr(until_number.size() - number.size() - host.size() - 1),
                     process};
    }
  }
  return std::nullopt;
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

bool has_attempt_name(std::string_view name) { return parse_attempt(name).has_value(); }

bool is_abandoned(std::string_view name) {
  const auto attempt = parse_attempt(name);
  return attempt && attempt->machine == machine_name() && ::kill(attempt->process, 0) != 0 &&
         errno == ESRCH;
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
