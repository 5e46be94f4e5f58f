// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "cli/commands.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

ExitCode fail(ExitCode code, const std::string& what, const std::string& hint = {}) {
  fmt::print(stderr, "precache: {}\n", what);
  if (!hint.empty()) fmt::print(stderr, "  {}\n", hint);
  return code;
}

ExitCode run(int argc, char** argv) {
  CLI::App app{"Turns image folders into training-ready tensor shards, once, before training."};
  app.name("precache");
  app.set_version_flag("--version", "precache " PRECACHE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Action action;
  add_build(app, action);
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      return ExitCode::kDone;
    }
    return fail(ExitCode::kUsage, error.what(), "See precache --help, or precache build --help.");
  } catch (const InvalidArgument& error) {
    return fail(ExitCode::kUsage, error.what(), error.hint());
  } catch (const IoError& error) {
    return fail(ExitCode::kSystem, error.what(), error.hint());
  } catch (const CorruptData& error) {
    return fail(ExitCode::kCorrupt, error.what(), error.hint());
  } catch (const Unsupported& error) {
    return fail(ExitCode::kUnsupported, error.what(), error.hint());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kSystem, "out of memory");
  } catch (const std::exception& error) {
    return fail(ExitCode::kSystem, error.what());
  }
}

}  // namespace
}  // namespace precache

int main(int argc, char** argv) { return static_cast<int>(precache::run(argc, argv)); }
