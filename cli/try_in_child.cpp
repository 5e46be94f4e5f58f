// SPDX-License-Identifier: Apache-2.0
#include "cli/try_in_child.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// Neither words of an allocator on stderr, nor a core file, nor a wait for ever.
void expect_the_worst() {
  constexpr rlim_t kSeconds = 60;
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    std::signal(number, SIG_DFL);
  }
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit time{kSeconds, kSeconds};
  ::setrlimit(RLIMIT_CPU, &time);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
}

}  // namespace

bool try_in_child(const std::function<void()>& call) {
  const pid_t child = ::fork();
  if (child < 0) throw IoError("cannot start a process for", "/proc/self/exe", errno);
  if (child == 0) {
    expect_the_worst();
    try {
      call();
    } catch (...) {  // is met again outside
    }
    std::exit(0);  // so that what a library does at the very end is tried too
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw IoError("cannot wait for", "/proc/self/exe", errno);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace precache
