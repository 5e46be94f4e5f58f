// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace precache::test {

/// Runs `call` in a child process, for what might end the process. True if the child came to its
/// end.
template <typename Call>
[[nodiscard]] bool ends_normally(const Call& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
      std::signal(number, SIG_DFL);
    const int quiet =
        ::open("/dev/null", O_WRONLY);  // what a sanitizer has to say of an expected fault
    ::dup2(quiet, STDERR_FILENO);
    call();
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace precache::test
