// SPDX-License-Identifier: Apache-2.0
// Tests the output of `precache bench --device cuda`; measure_test.cpp tests the measuring.
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "cli/commands.hpp"
#include "precache/formats/error.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::contains;
using test::FakeMachine;
using test::message_of;
using Json = nlohmann::json;

/// The text that a call writes to stdout.
template <typename Call>
std::string printed_by(const Call& call) {
  const test::TempFolder folder;
  const std::filesystem::path file = folder / "stdout";
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  {
    const File target(file, O_WRONLY | O_CREAT);
    REQUIRE(::dup2(target.descriptor(), STDOUT_FILENO) == STDOUT_FILENO);
  }
  std::exception_ptr failure;
  try {
    call();
  } catch (...) {
    failure = std::current_exception();
  }
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  if (failure) std::rethrow_exception(failure);
  return test::read_text(file);
}

struct Fixture {
  test::TempFolder folder;
  std::string shards = test::make_dataset(folder.path(), {}).folder.string();

  /// Runs `precache bench` with these options.
  [[nodiscard]] std::string bench(const std::string& options) const {
    return printed_by([&] {
      CLI::App app;
      Action action;
      add_bench(app, action);
      app.parse("bench " + shards + " --seconds 0.01 --batch 4 --jobs 1 " + options);
      const ExitCode code = action();  // not within the CHECK, which would catch what it throws
      CHECK(code == ExitCode::kDone);
    });
  }
};

const std::string kRate = R"( +[0-9,]+ images/s +[0-9]+\.[0-9]{2} GB/s)";

TEST_CASE("bench prints the link and all ways to a device", "[cli][device]") {
  const FakeMachine machine(2);
  const Fixture fixture;
  const std::string wait = "   steps of 0\\.5 ms wait [0-9]+\\.[0-9]% of the time\n";
  const std::regex expected(
      "data      12 samples of uint8 3x8x6 chw, loaded as float16 3x4x4 chw in batches of 4, "
      "shuffle none\n"
      "link      [0-9]+\\.[0-9]{2} GB/s from pinned memory to cuda:1\n"
      "staged   " +
      kRate + wait + "strided  " + kRate + wait + "gather   " + kRate + wait);
  const std::string text = fixture.bench(
      "--device cuda:1 --crop 4 --flip --dtype float16 --normalize imagenet --step 0.5");
  CAPTURE(text);
  CHECK(std::regex_match(text, expected));
}

TEST_CASE("bench says which way is not possible, and why", "[cli][device]") {
  const FakeMachine machine;
  const Fixture fixture;
  CHECK_THAT(fixture.bench("--device cuda --shuffle full"),
             contains("\nstrided   not possible: strided copies need neighbours, but the order is "
                      "shuffled\ngather   "));
  const std::string text = fixture.bench("--device cuda --pin-shards-up-to 1KiB");
  CHECK_THAT(text, contains("\nstrided   not possible: the shards have ") &&
                       contains("\ngather    not possible: the shards have ") &&
                       contains("more than the 1024 that may be pinned\n"));
  // A way that is asked for alone is an error.
  CHECK_THAT(message_of<InvalidArgument>([&] {
               (void)fixture.bench("--device cuda --device-path gather --pin-shards-up-to 1KiB");
             }),
             contains("1024"));
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)fixture.bench("--device-path gather"); }),
             contains("--device cuda"));
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)fixture.bench("--device cuda:1"); }),
             contains("must be below 1"));
  fake_cudart::fail_call("cudaMemcpyBatchAsync", 1, cudaErrorLaunchFailure);
  CHECK_THAT(message_of<DeviceError>([&] { (void)fixture.bench("--device cuda"); }),
             contains("cudaMemcpyBatchAsync"));
  fake_cudart::set_device_count(0);
  CHECK_THAT(message_of<Unsupported>([&] { (void)fixture.bench("--device cuda"); }),
             contains("no GPU"));
}

TEST_CASE("bench prints the same as JSON", "[cli][device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const Json json = Json::parse(fixture.bench("--device cuda --shuffle block --step 0.5 --json"));
  CHECK(json.at("device") == "cuda:0");
  CHECK(json.at("samples") == 12);
  CHECK(json.at("stored") == "uint8 3x8x6 chw");
  CHECK(json.at("loaded") == "uint8 3x8x6 chw");
  CHECK(json.at("batch") == 4);
  CHECK(json.at("shuffle") == "block");
  CHECK(json.at("step_seconds") == 0.0005);
  CHECK(json.at("link_bytes_per_second") > 0);
  const Json& paths = json.at("paths");
  REQUIRE(paths.size() == 3);
  for (const std::size_t i : {0U, 2U}) {
    const Json& path = paths[i];
    CAPTURE(path.dump());
    CHECK(path.at("path") == (i == 0 ? "staged" : "gather"));
    CHECK(path.at("images") == path.at("batches").get<int>() * 4);
    for (const char* const key : {"bytes", "seconds", "images_per_second", "bytes_per_second"}) {
      CHECK(path.at(key) > 0);
    }
    CHECK((path.at("bytes_registered") == 0) == (i == 0));
    const Json& step = path.at("step");
    CHECK(step.at("steps") > 0);
    CHECK(step.at("waited_seconds") <= step.at("seconds"));
    CHECK(step.at("waited_share") <= 1);
  }
  CHECK(paths[1].size() == 2);
  CHECK(paths[1].at("path") == "strided");
  CHECK_THAT(paths[1].at("refused").get<std::string>(), contains("shuffled"));

  const Json one = Json::parse(fixture.bench("--device cuda --device-path staged --json"));
  REQUIRE(one.at("paths").size() == 1);
  CHECK_FALSE(one.at("paths")[0].contains("step"));
}

}  // namespace
}  // namespace precache
