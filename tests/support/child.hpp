// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

namespace precache::test {

// Set for tests that the handlers and allocators of sanitizers do not allow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Runs `call`, which might end the process, in a child process. True if `call` returned.
template <typename Call>
[[nodiscard]] bool ends_normally(const Call& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
      std::signal(number, SIG_DFL);
    const int quiet =
        ::open("/dev/null", O_WRONLY);  // discards a sanitizer's report of an expected fault
    ::dup2(quiet, STDERR_FILENO);
    call();
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// How a process ended: by exit status, or by a signal.
struct ChildEnd {
  int status = -1;
  int signal = 0;
  bool operator==(const ChildEnd&) const = default;
};

/// The scenario of a process that run_scenario() started; empty in other processes.
inline constexpr const char* kScenarioVariable = "PRECACHE_TEST_SCENARIO";

[[nodiscard]] inline std::string scenario() {
  const char* const text = std::getenv(kScenarioVariable);
  return text == nullptr ? "" : text;
}

/// Runs one test case of this program in a new process that inherits no state, such as signal
/// handlers. The test case gets its task from scenario().
[[nodiscard]] inline ChildEnd run_scenario(const std::string& test_case, const std::string& name) {
  std::vector<std::string> variables{std::string(kScenarioVariable) + "=" + name};
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string program = "precache_tests";
  std::string filter = test_case;
  char* arguments[] = {program.data(), filter.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = 0;
  int status = 0;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0 || ::waitpid(child, &status, 0) != child) return {};
  return WIFSIGNALED(status) ? ChildEnd{-1, WTERMSIG(status)} : ChildEnd{WEXITSTATUS(status), 0};
}

}  // namespace precache::test
