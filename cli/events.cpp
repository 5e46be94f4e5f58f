// SPDX-License-Identifier: Apache-2.0
#include "cli/events.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/flag_names.hpp"
#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

int descriptor = -1;

/// Whether a piece of kPieceBytes can be written without waiting, now or within `patience`. Also
/// true if the reader has gone: then a write fails at once.
bool has_room(std::chrono::milliseconds patience) {
  pollfd state{descriptor, POLLOUT, 0};
  int result = 0;
  do {
    result = ::poll(&state, 1, static_cast<int>(patience.count()));
  } while (result < 0 && errno == EINTR);
  return result == 1;
}

/// Waits for a slow reader. A reader that does not read at all gets nothing more.
void send_text(std::string_view rest) noexcept {
  using namespace std::chrono_literals;
  constexpr std::size_t kPieceBytes = PIPE_BUF;  // a pipe with room takes it without waiting
  while (!rest.empty() && descriptor >= 0) {
    if (!has_room(2s)) {
      descriptor = -1;
      return;
    }
    const ssize_t size = ::write(descriptor, rest.data(), std::min(rest.size(), kPieceBytes));
    if (size >= 0) rest.remove_prefix(static_cast<std::size_t>(size));
    // The reader has gone; the command continues without it.
    if (size < 0 && errno != EINTR && errno != EAGAIN) descriptor = -1;
  }
}

void send(const Json& event) {
  send_text(event.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
}

}  // namespace

void events::open(const std::string& text) {
  const int given = static_cast<int>(option_values::integer("--events", text, 0, INT_MAX));
  const int flags = ::fcntl(given, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
    throw InvalidArgument(
        fmt::format("--events: file descriptor {} is not open for writing", text));
  }
  if (given > STDERR_FILENO) ::fcntl(given, F_SETFD, FD_CLOEXEC);  // or a child could keep it open
  std::signal(SIGPIPE, SIG_IGN);
  descriptor = given;
}

bool events::are_wanted() { return descriptor >= 0; }

void events::progress(const ProgressLine& line, double seconds) {
  if (!has_room(std::chrono::milliseconds(0))) return;
  send({{"event", "progress"},
        {"share", line.share ? Json(*line.share) : Json(nullptr)},
        {"done", line.done},
        {"planned", line.planned},
        {"unit", line.unit},
        {"text", line.text},
        {"seconds", seconds}});
}

ExitCode fail(ExitCode code, const Failure& failure) {
  write_message(escaped_text("precache: {}\n", with_flags(failure.message)), terminal::kRed);
  if (!failure.hint.empty()) say("  {}\n", with_flags(failure.hint));
  Json event{{"event", "error"},
             {"type", failure.type},
             {"message", failure.message},
             {"hint", failure.hint}};
  if (!failure.path.empty()) event["path"] = failure.path.string();
  if (failure.offset) event["offset"] = *failure.offset;
  if (failure.error_number != 0) event["errno"] = failure.error_number;
  send(event);
  return code;
}

ExitCode fail_out_of_memory() noexcept {
  constexpr std::string_view kText =
      "precache: out of memory\n  Use fewer --jobs, or a lower --max-pixels.\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  send_text(R"({"event":"error","type":"OutOfMemory","message":"out of memory",)"
            R"("hint":"Use fewer --jobs, or a lower --max-pixels."})"
            "\n");
  return ExitCode::kSystem;
}

void end_with_parent(const std::string& parent) {
  const auto pid = static_cast<pid_t>(option_values::integer("--parent", parent, 1, INT_MAX));
  if (::getppid() != pid) std::raise(SIGTERM);  // the parent has already ended
  // PR_SET_PDEATHSIG would signal for each thread of the parent that ends, and a second signal ends
  // the process at once.
  std::thread([pid] {
    while (::getppid() == pid) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(::getpid(), SIGTERM);
  }).detach();
}

}  // namespace precache
