// SPDX-License-Identifier: Apache-2.0
//
// The cost of a build on several machines apart from its images: the preparation of a plan, one
// part of 64, the end, and opening the dataset, on synthetic listings and shards of a few bytes.
//
//   cluster_bench FOLDER [ENTRIES...]     default: 1, 4 and 10 million
//
// FOLDER gets the files and should be on the disk to measure. Each step runs in a separate process,
// so that its processor time and its memory are known.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convert/job/collect.hpp"
#include "convert/job/out_folder.hpp"
#include "convert/job/plan_file.hpp"
#include "convert/job/shard_formats.hpp"
#include "convert/job/work_folder.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/reader/dataset.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kParts = 64;
constexpr std::uint64_t kSamplesPerShard = 3518;  // of 512 MiB, with uint8 tensors of 224x224
constexpr std::uint64_t kFinishedShards = 100'000;
constexpr std::uint64_t kOpenedShards = 300'000;
const std::string kIdentity = "crc64:0123456789abcdef";

struct Cost {
  double seconds = 0;
  double processor_seconds = 0;
  double bytes = 0;  // more than a process that does nothing
};

/// Runs `work` in a separate process.
Cost cost_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      std::_Exit(1);
    }
    std::_Exit(0);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child || status != 0) std::exit(1);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) * 1024};
}

/// Paths as ImageNet has them: 31 bytes.
Listing synthetic_listing(std::uint64_t entries) {
  Listing listing;
  for (std::uint64_t i = 0; i < entries; ++i) {
    // As a walk finds them: by folder, without an order in it.
    const std::uint64_t mixed = i * 0x9e3779b97f4a7c15;
    listing.add({fmt::format("n{:08}/n{:08}_{:08}.JPEG", i / 1300, i / 1300, mixed % 100'000'000),
                 100'000 + mixed % 50'000, static_cast<std::int64_t>(1'700'000'000'000'000'000 + i),
                 static_cast<std::int64_t>(i / 1300)});
  }
  return listing;
}

Plan plan_of(std::uint64_t entries) {
  return {entries, std::max<std::uint64_t>(1, entries / kSamplesPerShard), 0};
}

void prepare(const fs::path& path, std::uint64_t entries) {
  Listing listing = synthetic_listing(entries);
  listing.sort_by_path();
  const Keys keys(listing);
  const SourceFacts facts(listing, keys, entries / 1300 + 1);
  const Plan plan = plan_of(entries);
  PlanFile::write(path, kIdentity, facts, {{plan}}, listing, keys);
}

/// Reads what part 1 of 64 needs, one shard after another.
void read_part(const fs::path& path) {
  const PlanFile file(path);
  std::size_t bytes = 0;
  for (std::uint64_t shard = 1; shard < file.shards(); shard += kParts) {
    const Slice slice = file.slice(shard);
    for (std::uint64_t slot = 0; slot < slice.size(); ++slot) {
      bytes += slice.key(slot, KeyRule::kPath, false).size() + slice.file(slot).path.size();
    }
  }
  if (bytes == 0) throw std::runtime_error("the part has no samples");
}

void print_row(const char* step, const std::string& what, const Cost& cost, double entries,
               double idle_bytes) {
  const double bytes = std::max(0.0, cost.bytes - idle_bytes);
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.0f} | {:.0f} |\n", step, what, cost.seconds,
             cost.processor_seconds, cost.processor_seconds / entries * 1e6, bytes / 1e6,
             bytes / entries);
}

void measure_plan(const fs::path& folder, std::uint64_t entries, double idle_bytes) {
  const fs::path path = folder / "plan";
  const auto count = static_cast<double>(entries);
  const std::string what = fmt::format("{} million", count / 1e6);
  const Cost listing = cost_of([&] { static_cast<void>(synthetic_listing(entries)); });
  print_row("a listing in memory", what, listing, count, idle_bytes);
  const Cost all = cost_of([&] { prepare(path, entries); });
  print_row("the same, and prepare", what, all, count, idle_bytes);
  const Cost part = cost_of([&] { read_part(path); });
  print_row("part 1/64", what, part, count, idle_bytes);
  fmt::print(
      "part / prepare: time 1/{:.0f}, memory 1/{:.0f}; the plan has {:.0f} bytes a sample\n",
      (all.processor_seconds - listing.processor_seconds) / std::max(1e-4, part.processor_seconds),
      (all.bytes - idle_bytes) / std::max(1e5, part.bytes - idle_bytes),
      static_cast<double>(fs::file_size(path)) / count);
  fs::remove(path);
}

/// The shards and results of a job whose parts are all done.
void make_finished_parts(const fs::path& out) {
  WorkFolder work(out, "train", true);
  static_cast<void>(work.make_folder());
  JobFacts facts{.plan = kIdentity, .identity = "{}", .root = out};
  work.freeze(facts, Source(), {});
  for (std::uint64_t i = 0; i < kFinishedShards; ++i) {
    const fs::path shard = out / work_names::shard("train", i, Format::kTar);
    {
      File file(shard, O_RDWR | O_CREAT);
      file.write_at(0, as_bytes("shard"));
      ShardResult result{.plan = kIdentity, .entry = {}, .skipped = {}};
      result.entry.samples = 1;
      result.entry.bytes = 5;
      result.mtime_ns = file.mtime_ns();
      const std::string text = result.to_json();
      File(out / ".precache/train" / (shard.filename().string() + ".json"), O_RDWR | O_CREAT)
          .write_at(0, as_bytes(text));
    }
  }
}

/// The columns of a shard of uint8 tensors of 224x224, as each shard of a dataset has them.
SharedColumns columns_of(std::uint64_t samples) {
  return make_framing(Format::kTar, Recipe().spec(), NameLimits{.longest_key = 31},
                      std::vector<std::string>())
      ->columns(samples);
}

void write_manifest(const fs::path& out) {
  Manifest manifest{.classes = {}, .spec = Recipe().spec(), .recipe = Recipe(), .splits = {}};
  SplitEntry& split = manifest.splits["train"];
  const SharedColumns columns = columns_of(kSamplesPerShard);
  for (std::uint64_t i = 0; i < kOpenedShards; ++i) {
    ShardEntry& shard = split.shards.emplace_back();
    shard.file = work_names::shard("train", i, Format::kTar);
    shard.samples = kSamplesPerShard;
    shard.bytes = std::uint64_t{512} << 20;
    shard.crc32c = static_cast<std::uint32_t>(i * 0x9e3779b1);
    shard.columns = columns;
    split.samples += shard.samples;
  }
  write_file_atomically(out / kManifestName, manifest.to_json());
}

void open_dataset(const fs::path& out) {
  const Dataset dataset = Dataset::open(out);
  if (dataset.size() != kOpenedShards * kSamplesPerShard) {
    throw std::runtime_error("the dataset lacks samples");
  }
}

void finish(const fs::path& out) {
  WorkFolder work(out, "train", true);
  static_cast<void>(work.load("{}"));
  SkippedReport skipped(out, "train");
  SplitResults made = collect_results(
      work, kFinishedShards,
      [&](std::uint64_t shard) { return out / work_names::shard("train", shard, Format::kTar); },
      skipped);
  if (!made.missing.empty() || made.samples != kFinishedShards) {
    throw std::runtime_error("shards are missing");
  }
  Manifest manifest{.classes = {}, .spec = Recipe().spec(), .recipe = Recipe(), .splits = {}};
  SplitEntry& entry = manifest.splits["train"];
  entry.samples = made.samples;
  entry.shards = std::move(made.shards);
  const SharedColumns columns = columns_of(1);
  for (ShardEntry& shard : entry.shards) shard.columns = columns;
  OutFolder(out, "train").publish(std::move(manifest));
  work.remove();
}

int run(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const fs::path folder = argv[1];
  fs::create_directories(folder);
  std::vector<std::uint64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::stoull(argv[i]));
  if (sizes.empty()) sizes = {1'000'000, 4'000'000, 10'000'000};
  const Cost idle = cost_of([] {});
  fmt::print("| step | entries | s | processor s | us/entry | MB | bytes/entry |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const std::uint64_t entries : sizes) measure_plan(folder, entries, idle.bytes);
  const fs::path out = folder / "out";
  fs::remove_all(out);
  fs::create_directories(out);
  make_finished_parts(out);
  print_row("finish, warm", fmt::format("{} shards", kFinishedShards),
            cost_of([&] { finish(out); }), static_cast<double>(kFinishedShards), idle.bytes);
  fs::remove_all(out);
  fs::create_directories(out);
  static_cast<void>(cost_of([&] { write_manifest(out); }));
  fmt::print("the manifest of {} shards has {:.0f} MB\n", kOpenedShards,
             static_cast<double>(fs::file_size(out / kManifestName)) / 1e6);
  print_row("open", fmt::format("{} shards", kOpenedShards), cost_of([&] { open_dataset(out); }),
            static_cast<double>(kOpenedShards), idle.bytes);
  fs::remove_all(out);
  return 0;
}

}  // namespace
}  // namespace precache

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: cluster_bench FOLDER [ENTRIES...]\n");
    return 2;
  }
  return precache::run(argc, argv);
}
