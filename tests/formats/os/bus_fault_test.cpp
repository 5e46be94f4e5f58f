// SPDX-License-Identifier: Apache-2.0
// Tests of the SIGBUS handler, in separate processes, since it
// is installed for a whole process.
#include "formats/os/bus_fault.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <functional>
#include <map>

#include "precache/formats/error.hpp"
#include "precache/reader/dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/threads.hpp"

namespace precache {
namespace {

using test::ChildEnd;
using test::kSanitized;
using test::TempFolder;

constexpr std::size_t kPage = 4096;

/// Mapped pages whose file was then truncated, so that reading any of them raises SIGBUS.
class LostPages {
 public:
  explicit LostPages(const std::filesystem::path& path, std::size_t pages = 1)
      : size_(pages * kPage) {
    File file(path, O_RDWR | O_CREAT | O_TRUNC);
    file.truncate(size_);
    bytes_ = static_cast<std::byte*>(
        ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0));
    if (bytes_ == MAP_FAILED) throw std::runtime_error("cannot map");
    file.truncate(0);
  }
  LostPages(const LostPages&) = delete;
  LostPages& operator=(const LostPages&) = delete;
  ~LostPages() { ::munmap(bytes_, size_); }
  [[nodiscard]] const std::byte* data() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::byte read(std::size_t i) const {
    return *static_cast<const volatile std::byte*>(bytes_ + i);
  }

 private:
  std::size_t size_;
  std::byte* bytes_;
};

volatile sig_atomic_t calls = 0;
const void* volatile called_with = nullptr;

void set_predecessor(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(SIGBUS, &action, nullptr);
}

void set_predecessor(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

int check(bool is_good) { return is_good ? 0 : 1; }

/// Reads rows of a shard that was truncated; 0 if they are refused afterwards.
int read_cut_shard(const OpenOptions& options) {
  const TempFolder folder;
  const test::MadeDataset made =
      test::make_dataset(folder.path(), {.spec = test::spec_of(40, 40, 3), .shards = {20}});
  const Dataset dataset = Dataset::open(made.folder, {}, options);
  const Rows rows = dataset.rows(0, 20);
  test::cut_file(made.shards[0], 0);
  const bool is_zero = *static_cast<const volatile std::byte*>(rows[19].data()) == std::byte{0};
  try {
    rows.lease().check();
  } catch (const CorruptData&) {
    return check(is_zero);
  }
  return 1;
}

int read_foreign_page() {
  const TempFolder folder;
  const LostPages pages(folder / "foreign");
  (void)pages.read(0);
  return 1;
}

/// A function to run in a new process; its return value becomes the exit status.
const std::map<std::string, std::function<int()>> kScenarios{
    {"watched fault", [] { return read_cut_shard({}); }},
    {"watched fault, opted out",
     [] {
       OpenOptions options;
       options.handle_bus_errors = false;
       return read_cut_shard(options);
     }},
    {"watched fault, opted out elsewhere",
     [] {
       const TempFolder folder;
       const auto made = test::make_dataset(folder.path(), {});
       OpenOptions options;
       options.handle_bus_errors = false;
       const Dataset first = Dataset::open(made.folder, {}, options);
       return read_cut_shard({});
     }},
    {"other fault",
     [] {
       bus_fault::install_handler();
       return read_foreign_page();
     }},
    {"other fault after a watched one",
     [] { return read_cut_shard({}) == 0 ? read_foreign_page() : 1; }},
    {"raised",
     [] {
       bus_fault::install_handler();
       ::raise(SIGBUS);
       return 1;
     }},
    {"sent",
     [] {
       bus_fault::install_handler();
       ::kill(::getpid(), SIGBUS);
       ::sleep(10);
       return 1;
     }},
    {"raised, ignored before",
     [] {
       set_predecessor(SIG_IGN);
       bus_fault::install_handler();
       ::raise(SIGBUS);
       ::raise(SIGBUS);
       return read_cut_shard({});
     }},
    {"other fault, ignored before",
     [] {
       set_predecessor(SIG_IGN);
       bus_fault::install_handler();
       return read_foreign_page();
     }},
    {"raised, plain predecessor",
     [] {
       set_predecessor([](int signal) { calls = calls + (signal == SIGBUS ? 1 : 100); });
       bus_fault::install_handler();
       bus_fault::install_handler();  // does not chain to itself
       ::raise(SIGBUS);
       ::raise(SIGBUS);
       return check(calls == 2);
     }},
    {"other fault, plain predecessor",
     [] {
       set_predecessor([](int signal) { ::_exit(signal == SIGBUS ? 42 : 1); });
       bus_fault::install_handler();
       return read_foreign_page();
     }},
    {"other fault, predecessor with information",
     [] {
       static const void* page = nullptr;
       set_predecessor([](int signal, siginfo_t* info, void* context) {
         const bool is_told = signal == SIGBUS && info->si_addr == page && context != nullptr;
         ::_exit(is_told ? 42 : 1);
       });
       bus_fault::install_handler();
       const TempFolder folder;
       const LostPages pages(folder / "foreign");
       page = pages.data() + 100;
       (void)pages.read(100);
       return 1;
     }},
    {"watched fault, predecessor",
     [] {
       set_predecessor([](int) { ::_exit(1); });
       return read_cut_shard({});
     }},
    {"watched fault, a handler over ours",
     [] {
       bus_fault::install_handler();
       set_predecessor([](int) { ::_exit(1); });
       return read_cut_shard({});
     }},
    {"watched fault, reset since",
     [] {
       for (int i = 0; i < 10; ++i) {
         bus_fault::install_handler();
         set_predecessor(SIG_DFL);
       }
       return read_cut_shard({});
     }},
    {"raised, a handler over ours that passes on",
     [] {
       set_predecessor([](int) { calls = calls + 100; });
       bus_fault::install_handler();
       static struct sigaction before {};
       struct sigaction action {};
       action.sa_flags = SA_SIGINFO;
       action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
         calls = calls + 1;
         before.sa_sigaction(signal, info, context);
       };
       ::sigaction(SIGBUS, &action, &before);
       bus_fault::install_handler();
       ::raise(SIGBUS);
       ::raise(SIGBUS);
       return check(calls == 202);
     }},
    {"raised, a handler over ours each time",
     [] {
       for (int i = 0; i < 10; ++i) {
         set_predecessor(i % 2 == 0 ? [](int) { calls = calls + 1; }
                                    : [](int) { calls = calls + 2; });
         bus_fault::install_handler();
       }
       ::raise(SIGBUS);
       return check(calls == 2);
     }},
};

constexpr const char* kScenarioCase = "a scenario that another test starts in a new process";

TEST_CASE(kScenarioCase, "[.scenario]") {
  const auto found = kScenarios.find(test::scenario());
  if (found == kScenarios.end()) PRECACHE_SKIP("this is a part of other tests");
  ::alarm(60);
  ::_exit(found->second());
}

ChildEnd end_of(const std::string& name) {
  REQUIRE(kScenarios.contains(name));
  return test::run_scenario(kScenarioCase, name);
}

constexpr ChildEnd kDone{0, 0};
constexpr ChildEnd kBusError{-1, SIGBUS};

TEST_CASE("a fault in a watched range is handled, whatever handler was there before",
          "[reader][fault]") {
  CHECK(end_of("watched fault") == kDone);
  CHECK(end_of("watched fault, predecessor") == kDone);
  CHECK(end_of("watched fault, a handler over ours") == kDone);
  CHECK(end_of("watched fault, reset since") == kDone);
  CHECK(end_of("watched fault, opted out elsewhere") == kDone);
}

TEST_CASE("a fault ends the process if requested", "[reader][fault]") {
  if (kSanitized) PRECACHE_SKIP("sanitizers report SIGBUS in their own way");
  CHECK(end_of("watched fault, opted out") == kBusError);
}

TEST_CASE("a bus error elsewhere ends the process as usual", "[reader][fault]") {
  if (kSanitized) PRECACHE_SKIP("sanitizers report SIGBUS in their own way");
  CHECK(end_of("other fault") == kBusError);
  CHECK(end_of("other fault after a watched one") == kBusError);
  CHECK(end_of("other fault, ignored before") == kBusError);  // as the kernel does
  CHECK(end_of("raised") == kBusError);
  CHECK(end_of("sent") == kBusError);
}

TEST_CASE("a bus error elsewhere goes to the previous handler", "[reader][fault]") {
  CHECK(end_of("raised, ignored before") == kDone);
  CHECK(end_of("raised, plain predecessor") == kDone);
  CHECK(end_of("raised, a handler over ours that passes on") == kDone);
  CHECK(end_of("raised, a handler over ours each time") == kDone);
  CHECK(end_of("other fault, plain predecessor") == ChildEnd{42, 0});
  CHECK(end_of("other fault, predecessor with information") == ChildEnd{42, 0});
}

TEST_CASE("a fault sets the flag of its range only", "[reader][fault]") {
  bus_fault::install_handler();
  const TempFolder folder;
  const LostPages pages(folder / "pages", 8);
  std::atomic<bool> lost[3]{};
  {
    const bus_fault::Watch first(pages.data(), 3 * kPage, lost[0]);
    const bus_fault::Watch second(pages.data() + 3 * kPage, 2 * kPage, lost[1]);
    const bus_fault::Watch third(pages.data() + 5 * kPage, 3 * kPage, lost[2]);
    CHECK(pages.read(4 * kPage + 17) == std::byte{0});
    CHECK_FALSE(lost[0]);
    CHECK(lost[1]);
    CHECK_FALSE(lost[2]);
    lost[1] = false;
    CHECK(pages.read(4 * kPage) == std::byte{0});  // the page is there now
    CHECK_FALSE(lost[1]);
    CHECK(pages.read(8 * kPage - 1) == std::byte{0});
    CHECK(lost[2]);
    CHECK_FALSE(lost[0]);
    CHECK(pages.read(0) == std::byte{0});
    CHECK(lost[0]);
  }
}

TEST_CASE("watches come and go while faults happen", "[reader][fault][concurrency]") {
  bus_fault::install_handler();
  const TempFolder folder;
  const LostPages standing(folder / "standing", 600);
  std::vector<std::atomic<bool>> standing_lost(600);
  std::vector<std::unique_ptr<bus_fault::Watch>> watches;
  for (std::size_t i = 0; i < 600; ++i) {  // more than one chunk of slots
    watches.push_back(
        std::make_unique<bus_fault::Watch>(standing.data() + i * kPage, kPage, standing_lost[i]));
  }
  constexpr std::size_t kThreads = 6;
  std::vector<std::size_t> wrong(kThreads);
  test::on_threads(kThreads, [&](std::size_t thread) {
    for (std::size_t round = 0; round < 100; ++round) {
      const LostPages own(folder / fmt::format("own-{}", thread), 4);
      std::atomic<bool> first_lost{false};
      std::atomic<bool> second_lost{false};
      const bus_fault::Watch first(own.data(), kPage, first_lost);
      const bus_fault::Watch second(own.data() + kPage, 3 * kPage, second_lost);
      wrong[thread] += own.read((1 + round % 3) * kPage) == std::byte{0} ? 0 : 1;
      wrong[thread] += second_lost && !first_lost ? 0 : 1;
      const std::size_t page = round * kThreads + thread;
      wrong[thread] += standing_lost[page] ? 1 : 0;
      wrong[thread] += standing.read(page * kPage + round) == std::byte{0} ? 0 : 1;
      wrong[thread] += standing_lost[page] ? 0 : 1;
    }
  });
  CHECK(wrong == std::vector<std::size_t>(kThreads));
}

}  // namespace
}  // namespace precache
