// SPDX-License-Identifier: Apache-2.0
#include "cli/events.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

int descriptor = -1;

void send(const Json& event) {
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  std::string_view rest = line;
  while (!rest.empty() && descriptor >= 0) {
    const ssize_t size = ::write(descriptor, rest.data(), rest.size());
    if (size >= 0) rest.remove_prefix(static_cast<std::size_t>(size));
    if (size < 0 && errno != EINTR) descriptor = -1;  // nobody listens: not worth ending for
  }
}

bool has_room() {
  pollfd state{descriptor, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLOUT) != 0;
}

}  // namespace

void events::open(const std::string& text) {
  const int given = static_cast<int>(option_values::integer("--events", text, 0, INT_MAX));
  const int flags = ::fcntl(given, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
    throw InvalidArgument(fmt::format("--events {}: no file is open for writing there", text));
  }
  if (given > STDERR_FILENO) ::fcntl(given, F_SETFD, FD_CLOEXEC);  // or a child could keep it open
  std::signal(SIGPIPE, SIG_IGN);
  descriptor = given;
}

bool events::are_wanted() { return descriptor >= 0; }

void events::progress(const ProgressLine& line, double seconds) {
  if (!has_room()) return;
  send({{"event", "progress"},
        {"share", line.share ? Json(*line.share) : Json(nullptr)},
        {"done", line.done},
        {"planned", line.planned},
        {"unit", line.unit},
        {"text", line.text},
        {"seconds", seconds}});
}

ExitCode fail(ExitCode code, const Failure& failure) {
  say("precache: {}\n", failure.message);
  if (!failure.hint.empty()) say("  {}\n", failure.hint);
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

void end_with_parent(const std::string& parent) {
  const auto pid = static_cast<pid_t>(option_values::integer("--parent", parent, 1, INT_MAX));
  if (::getppid() != pid) std::raise(SIGTERM);  // it has ended before
  // PR_SET_PDEATHSIG would tell for each thread of the parent that ends, and the second signal ends
  // us at once.
  std::thread([pid] {
    while (::getppid() == pid) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(::getpid(), SIGTERM);
  }).detach();
}

}  // namespace precache
