// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_display.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/human.hpp"
#include "cli/say.hpp"

namespace precache {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBarWidth = 12;

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
  if (terminal_) say("\r\x1b[K");
}

void ProgressDisplay::run() {
  constexpr auto kTick = 100ms;
  constexpr int kTicksPerLine = 50;  // where no terminal is
  std::unique_lock lock(mutex_);
  for (int tick = 1; !stop_.wait_for(lock, kTick, [&] { return stopping_; }); ++tick) {
    if (begin_ == decltype(begin_){} && progress_.samples_planned != 0) {
      begin_ = std::chrono::steady_clock::now() - kTick;
    }
    if (terminal_) {
      say("\r{}\x1b[K", line(terminal_columns() - 1));
    } else if (tick % kTicksPerLine == 0) {
      say("{}\n", line(0));
    }
    std::fflush(stderr);
  }
}

std::string ProgressDisplay::line(std::size_t columns) const {
  const std::uint64_t planned = progress_.samples_planned;
  const std::uint64_t done = progress_.samples_done;
  if (planned == 0) return "listing images ...";
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double rate = static_cast<double>(done) / seconds;
  const double share = static_cast<double>(done) / static_cast<double>(planned);
  const double rest = rate > 0 ? static_cast<double>(planned - done) / rate : 0;
  const std::string text =
      fmt::format("{:.0f}% {}/{} {:.0f} images/s {:.0f} MB/s ETA {} {} skipped", share * 100,
                  human::count(done), human::count(planned), rate,
                  static_cast<double>(progress_.bytes_written) / seconds / 1e6, human::clock(rest),
                  human::count(progress_.samples_skipped));
  // A narrow terminal keeps the numbers.
  const std::string drawn = bar(share) + " " + text;
  return drawn.size() <= columns ? drawn : columns == 0 ? text : text.substr(0, columns);
}

}  // namespace precache
