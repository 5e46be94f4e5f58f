// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_display.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/human.hpp"

namespace precache {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBarWidth = 20;

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar(double share) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "]";
}

}  // namespace

ProgressDisplay::ProgressDisplay(const BuildProgress& progress)
    : progress_(progress), terminal_(::isatty(STDERR_FILENO) == 1), thread_([this] { run(); }) {}

ProgressDisplay::~ProgressDisplay() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressDisplay::run() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, terminal_ ? 100ms : 5000ms, [&] { return stopping_; })) {
    const std::string text = line();
    if (terminal_) {
      fmt::print(stderr, "\r{}\x1b[K", text.substr(0, terminal_columns() - 1));
    } else {
      fmt::print(stderr, "{}\n", text);
    }
    std::fflush(stderr);
  }
}

std::string ProgressDisplay::line() {
  const std::uint64_t planned = progress_.samples_planned;
  const std::uint64_t done = progress_.samples_done;
  if (planned == 0) return "listing images ...";
  const auto now = std::chrono::steady_clock::now();
  if (begin_ == decltype(begin_){}) begin_ = now;
  const double seconds = std::max(0.1, std::chrono::duration<double>(now - begin_).count());
  const double rate = static_cast<double>(done) / seconds;
  const double share = static_cast<double>(done) / static_cast<double>(planned);
  const double rest = rate > 0 ? static_cast<double>(planned - done) / rate : 0;
  return fmt::format(
      "{}{:3.0f} %  {} of {} images  {:.0f} images/s  {:.0f} MB/s  ETA {}  {} skipped",
      terminal_ ? bar(share) + " " : "", share * 100, human::count(done), human::count(planned),
      rate, static_cast<double>(progress_.bytes_written) / seconds / 1e6, human::clock(rest),
      human::count(progress_.samples_skipped));
}

}  // namespace precache
