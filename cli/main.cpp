// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/events.hpp"
#include "cli/help.hpp"
#include "cli/stop_on_signal.hpp"
#include "precache/formats/error.hpp"
#include "precache/version.hpp"
#ifdef PRECACHE_WITH_HDF5
#include "formats/hdf5/hdf5_writers.hpp"
#include "formats/hdf5/helper/helper_message.hpp"
#endif

namespace precache {
namespace {

/// A file that is opened while a standard stream is closed would get its number, and messages would
/// be written into it.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDWR);
  }
}

void add_options_for_programs(CLI::App& app) {
  // Read at once, so that a mistake in a later option is an event already.
  cli::add(
      app, "--events", "FD",
      "For programs that run precache: write progress and errors as lines of JSON to this file "
      "descriptor",
      events::open)
      ->trigger_on_parse();
  cli::add(app, "--parent", "PID",
           "For programs that run precache: stop when this process, its parent, has ended",
           end_with_parent)
      ->trigger_on_parse();
}

/// The words of the command line. `--prepare I/N` becomes one word, because what follows an option
/// with an optional value may also be SOURCE.
std::vector<std::string> joined_words(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto is_share = [](std::string_view text) {
      const std::size_t slash = text.find('/');
      const auto is_number = [](std::string_view part) {
        return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
      };
      return slash != std::string_view::npos && is_number(text.substr(0, slash)) &&
             is_number(text.substr(slash + 1));
    };
    if (!words.empty() && words.back() == "--prepare" && is_share(word)) {
      words.back().append("=").append(word);
    } else {
      words.emplace_back(word);
    }
  }
  return words;
}

/// "precache build", as far as the command line names a command.
std::string asked_command(const CLI::App& app) {
  std::string name = app.get_name();
  const CLI::App* asked = &app;
  while (!asked->get_subcommands().empty()) {
    asked = asked->get_subcommands().front();
    name += " " + asked->get_name();
  }
  return name;
}

void set_up(CLI::App& app, Action& action) {
  app.name("precache");
  app.set_help_flag("-h,--help", "Show this help");
  app.set_version_flag("--version", fmt::format("precache {}", kVersion), "Show the version");
  app.require_subcommand(1);
  app.formatter_fn([](const CLI::App* asked, const std::string& name, CLI::AppFormatMode) {
    return cli::help_text(*asked, name);
  });
  add_options_for_programs(app);
  // In the order in which people need them.
  add_build(app, action);
  add_inspect(app, action);
  add_verify(app, action);
  add_bench(app, action);
  add_convert(app, action);
  add_pack(app, action);
  add_index(app, action);
  add_cluster(app, action);
  app.footer(
      "Examples:\n"
      "  precache build images shards --size 224\n"
      "  precache inspect shards\n"
      "  precache build --help\n");
}

/// Reports the exception that is being handled.
ExitCode fail_with_exception() {
  try {
    throw;
  } catch (const InvalidArgument& error) {
    return fail(ExitCode::kUsage, {"InvalidArgument", error.what(), error.hint()});
  } catch (const IoError& error) {
    return fail(ExitCode::kSystem,
                {"IoError", error.what(), error.hint(), error.path(), {}, error.code()});
  } catch (const CorruptData& error) {
    return fail(ExitCode::kCorrupt,
                {"CorruptData", error.what(), error.hint(), error.path(), error.offset()});
  } catch (const Unsupported& error) {
    return fail(ExitCode::kUnsupported, {"Unsupported", error.what(), error.hint()});
  } catch (const DeviceError& error) {
    return fail(ExitCode::kDevice, {"DeviceError", error.what(), error.hint()});
  } catch (const std::bad_alloc&) {
    return fail_out_of_memory();
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(ExitCode::kSystem,
                {"IoError", error.what(), {}, error.path1(), {}, error.code().value()});
  } catch (const std::system_error& error) {  // only threads throw it
    return fail(ExitCode::kSystem,
                {"IoError",
                 fmt::format("cannot start a thread: {}", error.code().message()),
                 "Use fewer --jobs, or raise the limit on processes (ulimit -u, or pids.max of "
                 "the cgroup).",
                 {},
                 {},
                 error.code().value()});
  } catch (const std::exception& error) {
    return fail(ExitCode::kSystem, {"Error", error.what()});
  }
}

ExitCode run(int argc, char** argv) {
  CLI::App app{"Decodes and resizes images once, before training, into shards of tensors."};
  Action action;
  set_up(app, action);
  try {
    std::vector<std::string> words = joined_words(argc, argv);
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(std::move(words));
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      return ExitCode::kDone;
    }
    const std::string message =
        cli::parse_error_text(error, app, std::vector<std::string>(argv + 1, argv + argc));
    return fail(ExitCode::kUsage,
                {"InvalidArgument", message, fmt::format("See '{} --help'.", asked_command(app))});
  } catch (...) {
    return fail_with_exception();
  }
}

std::atomic<bool> memory_ran_out = false;
std::terminate_handler default_terminate = nullptr;

void on_lack_of_memory() {
  memory_ran_out = true;
  throw std::bad_alloc();
}

/// Called when an error is thrown where nothing can catch it, such as in a destructor. Lack of
/// memory can cause that, and is not a bug of the program.
[[noreturn]] void on_terminate() noexcept {
  if (memory_ran_out) ::_exit(static_cast<int>(fail_out_of_memory()));
  default_terminate();
  std::abort();
}

void prepare_process() {
  std::set_new_handler(on_lack_of_memory);
  default_terminate = std::set_terminate(on_terminate);
  // At the limit on file sizes (ulimit -f) a write must fail, not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  StopOnSignal::reset();
  open_standard_streams();
}

/// Runs as the helper process of readers, which do not link the HDF5 library.
void serve_readers([[maybe_unused]] std::span<char* const> words) {
#ifdef PRECACHE_WITH_HDF5
  hdf5::forgo_exit_handler();
  if (words.size() > 1 && std::string_view(words[1]) == hdf5::kHelperCommand) {
    hdf5::serve_helper_request(words.subspan(2));
  }
#endif
}

ExitCode run_and_flush(int argc, char** argv) {
  prepare_process();
  serve_readers({argv, static_cast<std::size_t>(argc)});
  const ExitCode code = run(argc, argv);
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || code != ExitCode::kDone) return code;
  return fail(ExitCode::kSystem, {"IoError", "cannot write to standard output"});
}

}  // namespace
}  // namespace precache

int main(int argc, char** argv) {
  try {
    return static_cast<int>(precache::run_and_flush(argc, argv));
  } catch (const std::bad_alloc&) {  // setting up a command line and reporting errors take memory
    return static_cast<int>(precache::fail_out_of_memory());
  }
}
