// SPDX-License-Identifier: Apache-2.0
// Compares the speed of the reader with the speed of memory.
//
//   reader_bench FOLDER [SAMPLES] [ROUNDS]
//
// Writes datasets of random tensors to FOLDER if they are missing: 224x224x3 uint8 in three
// formats, 256x256x3 in uint8 and in float16. Then prints images per second and the ratio to a
// bound, as the median of the ratios of the rounds. A bound is a loop over the same mapped bytes
// that does only the unavoidable work. Everything runs from the page cache.
#include <fcntl.h>
#include <fmt/format.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/shards.hpp"

namespace {

using namespace precache;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 256;
constexpr std::size_t kShards = 3;
constexpr std::size_t kHugePage = 2 << 20;
std::atomic<std::uint64_t> sink;  // keeps the compiler from dropping reads

void write_dataset(const std::filesystem::path& folder, Format format, const TensorSpec& spec,
                   std::uint64_t samples) {
  std::filesystem::create_directories(folder);
  NameLimits limits;
  limits.include("sample-0000000", 999);
  const auto framing = test::make_framing(format, spec, limits, {});
  Manifest manifest;
  manifest.spec = spec;
  manifest.format = format;
  SplitEntry& split = manifest.splits["train"];
  std::mt19937_64 random(1);
  std::vector<std::byte> record(framing->record_bytes());
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    const std::uint64_t first = samples * shard / kShards;
    const std::uint64_t count = samples * (shard + 1) / kShards - first;
    const std::string file_name = fmt::format("train-{:06}{}", shard, extension(format));
    File file(folder / file_name, O_WRONLY | O_CREAT | O_TRUNC);
    std::vector<WrittenRecord> records;
    for (std::uint64_t i = 0; i < count; ++i) {
      const SampleName sample{fmt::format("sample-{:07}", first + i),
                              std::int64_t(random() % 1000)};
      for (std::size_t at = 0; at + 8 <= record.size(); at += 8) {
        const std::uint64_t bits = random();
        std::memcpy(record.data() + at, &bits, 8);
      }
      const auto tensor = std::span(record).subspan(framing->tensor_offset(), spec.size_bytes());
      records.push_back({sample, framing->frame(record, sample, crc32c::value(tensor))});
      file.write_at(framing->records_base() + i * framing->record_bytes(), record);
    }
    const Envelope envelope = framing->envelope(records, folder);
    file.write_at(0, envelope.prologue);
    file.write_at(framing->records_base() + count * framing->record_bytes(), envelope.epilogue);
    split.shards.push_back({file_name, count, file.size(), 0, framing->columns(count)});
    split.samples += count;
  }
  write_file_atomically(folder / kManifestName, manifest.to_json());
}

Dataset open_made(const std::filesystem::path& folder, Format format, std::uint32_t side,
                  std::uint64_t samples, DType dtype = DType::kUint8) {
  auto path = folder / fmt::format("{}-{}-{}", name(format), side, samples);
  if (dtype != DType::kUint8) path += fmt::format("-{}", name(dtype));
  if (!std::filesystem::exists(path / kManifestName)) {
    write_dataset(path, format, {dtype, Layout::kChw, side, side, 3}, samples);
  }
  return Dataset::open(path);
}

/// Memory on huge pages, like the loader's.
struct Buffer {
  explicit Buffer(std::size_t size)
      : bytes(static_cast<std::byte*>(
            std::aligned_alloc(kHugePage, (size + kHugePage - 1) / kHugePage * kHugePage))) {
    ::madvise(bytes, size, MADV_HUGEPAGE);
    std::memset(bytes, 0, size);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(bytes); }
  std::byte* bytes;
};

std::uint64_t read_all(const std::byte* bytes, std::size_t size) {
  __m256i sum = _mm256_setzero_si256();
  for (std::size_t i = 0; i + 32 <= size; i += 32) {
    sum = _mm256_add_epi64(sum, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i)));
  }
  std::uint64_t parts[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), sum);
  return parts[0] + parts[1] + parts[2] + parts[3];
}

void on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work, i);
  work(0);
  for (auto& thread : threads) thread.join();
}

double seconds(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Measure {
  std::string label;
  std::function<void()> run;  // one pass over `images` images
};

/// Runs the measures of a group in turns; the first is the bound of the others.
void compare(const std::string& title, std::uint64_t images, std::size_t rounds,
             const std::vector<Measure>& group) {
  std::vector<std::vector<double>> times(group.size());
  for (std::size_t round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      const double time = seconds(group[i].run);
      if (round != 0) times[i].push_back(time);  // the first round warms up
    }
  }
  fmt::print("\n{}\n", title);
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < rounds; ++round) {
      ratios.push_back(times[0][round] / times[i][round]);
    }
    fmt::print("  {:<58} {:>9.0f} images/s  {:.2f}\n", group[i].label,
               static_cast<double>(images) / median(times[i]), median(ratios));
  }
  std::fflush(stdout);
}

/// All rows of a dataset, in place.
std::vector<Rows> all_rows(const Dataset& dataset) {
  std::vector<Rows> all;
  for (std::uint64_t at = 0; at < dataset.size(); at += dataset.contiguous_rows(at)) {
    all.push_back(dataset.rows(at, dataset.contiguous_rows(at)));
  }
  return all;
}

const std::byte* row_of(const std::vector<Rows>& all, std::uint64_t sample) {
  std::size_t shard = 0;
  for (; sample >= all[shard].size(); ++shard) sample -= all[shard].size();
  return all[shard][sample].data();
}

void read_rows(const std::vector<Rows>& all, std::size_t thread, std::size_t threads) {
  std::uint64_t sum = 0;
  for (const Rows& rows : all) {
    const std::size_t first = rows.size() * thread / threads;
    const std::size_t last = rows.size() * (thread + 1) / threads;
    for (std::size_t i = first; i < last; ++i) sum += read_all(rows[i].data(), rows[i].size());
  }
  sink += sum;
}

/// One epoch of a loader; with `read`, every byte of every batch is read.
void run_epoch(Loader& loader, bool read) {
  std::uint64_t sum = 0;
  while (const auto batch = loader.next()) {
    if (!read) continue;
    for (std::size_t i = 0; i < batch->size(); ++i)
      sum += read_all((*batch)[i].data(), (*batch)[i].size());
  }
  sink += sum;
}

LoaderOptions options_of(Shuffle shuffle, unsigned threads) {
  LoaderOptions options;
  options.batch_size = kBatch;
  options.order.shuffle = shuffle;
  options.last_batch = LastBatch::kKeep;
  options.threads = threads;
  return options;
}

void sequential(const Dataset& dataset, const std::string& format, std::size_t rounds) {
  const std::vector<Rows> rows = all_rows(dataset);
  // 250 divides the shards, so all batches are views; with 256, every 21st batch is a copy.
  LoaderOptions options = options_of(Shuffle::kNone, 1);
  Loader crossing(dataset, options);
  options.batch_size = 250;
  Loader one(dataset, options);
  std::vector<Loader> two;
  options.world_size = 2;
  for (options.rank = 0; options.rank < 2; ++options.rank) two.emplace_back(dataset, options);
  compare(fmt::format("{}, sequential, read in full by 1 thread", format), dataset.size(), rounds,
          {{"bound A: the mapped bytes, page tables warm", [&] { read_rows(rows, 0, 1); }},
           {"loader, batches of 250, 1 thread ahead", [&] { run_epoch(one, true); }},
           {"loader, batches of 256, 1 thread ahead", [&] { run_epoch(crossing, true); }}});
  compare(fmt::format("{}, sequential, read in full by 2 threads", format), dataset.size(), rounds,
          {{"bound A: the mapped bytes, page tables warm",
            [&] { on_threads(2, [&](std::size_t i) { read_rows(rows, i, 2); }); }},
           {"2 loaders, batches of 250, 1 thread ahead each",
            [&] { on_threads(2, [&](std::size_t i) { run_epoch(two[i], true); }); }}});
}

/// The same read, while the system makes the page tables.
void sequential_cold(const std::filesystem::path& folder, const Dataset& dataset,
                     std::size_t rounds) {
  const auto read_cold = [&](std::size_t threads) {
    const Dataset fresh = Dataset::open(folder);
    const std::vector<Rows> rows = all_rows(fresh);
    on_threads(threads, [&](std::size_t i) { read_rows(rows, i, threads); });
  };
  Loader one(dataset, options_of(Shuffle::kNone, 1));
  compare("tar, sequential, next to a read that makes page tables", dataset.size(), rounds,
          {{"bound A: newly mapped bytes, 1 thread", [&] { read_cold(1); }},
           {"bound A: newly mapped bytes, 2 threads", [&] { read_cold(2); }},
           {"loader, 1 thread ahead", [&] { run_epoch(one, true); }}});
}

void shuffled(const Dataset& dataset, std::size_t rounds) {
  const std::vector<Rows> rows = all_rows(dataset);
  const std::size_t bytes = dataset.spec().size_bytes();
  std::vector<const std::byte*> order;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) order.push_back(row_of(rows, i));
  std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
  const Buffer buffer(kBatch * bytes);
  const auto copy = [&](std::size_t thread) {
    for (std::size_t i = thread; i < order.size(); i += 2) {
      std::memcpy(buffer.bytes + i % kBatch * bytes, order[i], bytes);
    }
  };
  Loader full(dataset, options_of(Shuffle::kFull, 2));
  Loader block(dataset, options_of(Shuffle::kBlock, 2));
  compare("uint8 batches, shuffled, 2 threads", dataset.size(), rounds,
          {{"bound B: memcpy in random order into a reused buffer", [&] { on_threads(2, copy); }},
           {"loader, full shuffle", [&] { run_epoch(full, false); }},
           {"loader, block shuffle", [&] { run_epoch(block, false); }}});
}

struct Crops {
  const std::byte* tensor;
  std::size_t y, x;
  bool flip;
};

const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
constexpr std::size_t kSide = 256;
constexpr std::size_t kCrop = 224;

/// A loop written by hand for just this job: 256x256 chw to a crop of 224x224, one multiply-add.
template <bool kHalf, bool kFlip>
[[gnu::target("avx2,fma,f16c")]] void hand_tuned(const Crops& crop, std::byte* out) {
  const __m256i backwards = _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::size_t c = 0; c < 3; ++c) {
    const __m256 scale = _mm256_set1_ps(1.0F / (255.0F * kImagenet.std[c]));
    const __m256 offset = _mm256_set1_ps(-kImagenet.mean[c] / kImagenet.std[c]);
    for (std::size_t y = 0; y < kCrop; ++y) {
      const auto* in = reinterpret_cast<const std::uint8_t*>(crop.tensor) +
                       (c * kSide + crop.y + y) * kSide + crop.x;
      for (std::size_t x = 0; x < kCrop; x += 64) __builtin_prefetch(in + 8 * kSide + x);
      for (std::size_t x = 0; x < kCrop; x += 8) {
        const std::uint8_t* from = kFlip ? in + kCrop - 8 - x : in + x;
        __m256i pixels =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
        if (kFlip) pixels = _mm256_permutevar8x32_epi32(pixels, backwards);
        const __m256 value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(pixels), scale, offset);
        const std::size_t at = (c * kCrop + y) * kCrop + x;
        if constexpr (kHalf) {
          _mm_stream_si128(reinterpret_cast<__m128i*>(out + at * 2), _mm256_cvtps_ph(value, 0));
        } else {
          _mm256_stream_ps(reinterpret_cast<float*>(out + at * 4), value);
        }
      }
    }
  }
}

/// The same for float16 as it is stored, or cast to float32.
template <bool kHalf, bool kFlip>
[[gnu::target("avx2,f16c")]] void hand_moved(const Crops& crop, std::byte* out) {
  const __m128i backwards = _mm_set_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < kCrop; ++y) {
      const auto* in = reinterpret_cast<const std::uint16_t*>(crop.tensor) +
                       (c * kSide + crop.y + y) * kSide + crop.x;
      for (std::size_t x = 0; x < kCrop; x += 32) __builtin_prefetch(in + 8 * kSide + x);
      for (std::size_t x = 0; x < kCrop; x += 8) {
        const std::uint16_t* from = kFlip ? in + kCrop - 8 - x : in + x;
        __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        if (kFlip) halves = _mm_shuffle_epi8(halves, backwards);
        const std::size_t at = (c * kCrop + y) * kCrop + x;
        if constexpr (kHalf) {
          _mm_stream_si128(reinterpret_cast<__m128i*>(out + at * 2), halves);
        } else {
          _mm256_stream_ps(reinterpret_cast<float*>(out + at * 4), _mm256_cvtph_ps(halves));
        }
      }
    }
  }
}

using ByHand = void (*)(const Crops&, std::byte*);

/// Batches of crops, half of them flipped, against a loop that was written for them.
void fused(const std::string& title, const Dataset& dataset, const BatchTransform& transform,
           const std::array<ByHand, 2>& by_flip, std::size_t rounds) {
  const std::vector<Rows> rows = all_rows(dataset);
  std::mt19937_64 random(3);
  std::vector<Crops> crops;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    crops.push_back({row_of(rows, i), random() % 33, random() % 33, random() % 2 == 1});
  }
  std::shuffle(crops.begin(), crops.end(), random);
  LoaderOptions options = options_of(Shuffle::kFull, 2);
  options.transform = transform;
  options.transform.crop = Crop{kCrop, kCrop, CropPosition::kRandom};
  options.transform.flip = true;
  Loader loader(dataset, options);
  const std::size_t bytes = options.transform.result(dataset.spec()).size_bytes();
  const Buffer buffer(kBatch * bytes);
  const auto by_hand = [&](std::size_t thread) {
    for (std::size_t i = thread; i < crops.size(); i += 2) {
      by_flip[crops[i].flip ? 1 : 0](crops[i], buffer.bytes + i % kBatch * bytes);
    }
  };
  compare(title + ", random crop and flip, 2 threads", dataset.size(), rounds,
          {{"bound C: a loop for just this, written by hand", [&] { on_threads(2, by_hand); }},
           {"loader, full shuffle", [&] { run_epoch(loader, false); }}});
}

/// The least work of a first shuffled batch: copies from new mappings into new memory. The kernel
/// clears each page when a thread first touches it.
std::pair<Dataset, std::shared_ptr<std::byte>> gather_by_hand(const std::filesystem::path& folder) {
  Dataset dataset = Dataset::open(folder);
  const std::size_t bytes = dataset.spec().size_bytes();
  const std::size_t size = (kBatch * bytes + kHugePage - 1) / kHugePage * kHugePage;
  std::shared_ptr<std::byte> batch(static_cast<std::byte*>(std::aligned_alloc(kHugePage, size)),
                                   &std::free);
  ::madvise(batch.get(), size, MADV_HUGEPAGE);
  const std::vector<Rows> rows = all_rows(dataset);
  on_threads(2, [&](std::size_t thread) {
    for (std::size_t i = kBatch / 2 * thread; i < kBatch / 2 * (thread + 1); ++i) {
      std::memcpy(batch.get() + i * bytes, row_of(rows, i * 7919 % dataset.size()), bytes);
    }
  });
  return {std::move(dataset), std::move(batch)};
}

std::pair<std::unique_ptr<Loader>, std::optional<Batch>> load_first(
    const std::filesystem::path& folder, Shuffle shuffle) {
  auto loader = std::make_unique<Loader>(Dataset::open(folder), options_of(shuffle, 2));
  auto batch = loader->next();
  return {std::move(loader), std::move(batch)};
}

/// Prints the time until `make` returns, without the time to destroy the result.
template <typename Make>
void print_first(const std::string& label, const Make& make) {
  std::vector<double> times;
  for (int round = 0; round < 25; ++round) {
    const auto begin = Clock::now();
    const auto made = make();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  fmt::print("  {:<58} {:>9.2f} ms\n", label, median(times) * 1e3);
}

/// From nothing to the first batch, with all data in the page cache.
void first_batch(const std::filesystem::path& folder) {
  fmt::print("\nopen and first batch of {}\n", kBatch);
  print_first("loader, sequential", [&] { return load_first(folder, Shuffle::kNone); });
  print_first("bound D: copied by hand from new mappings to new memory",
              [&] { return gather_by_hand(folder); });
  print_first("loader, full shuffle", [&] { return load_first(folder, Shuffle::kFull); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: reader_bench FOLDER [SAMPLES] [ROUNDS]\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    const std::uint64_t samples = argc > 2 ? std::stoull(argv[2]) : 10'500;
    const std::size_t rounds = argc > 3 ? std::stoull(argv[3]) : 7;
    for (const Format format : {Format::kTar, Format::kTfrecord, Format::kHdf5}) {
      const Dataset dataset = open_made(folder, format, 224, samples);
      sequential(dataset, std::string(name(format)), rounds);
      if (format != Format::kTar) continue;
      const auto path = folder / fmt::format("tar-224-{}", samples);
      sequential_cold(path, dataset, rounds);
      shuffled(dataset, rounds);
      first_batch(path);
    }
    const Dataset larger = open_made(folder, Format::kTar, kSide, samples * 3 / 4);
    BatchTransform normalized;
    normalized.normalize = kImagenet;
    normalized.dtype = DType::kFloat16;
    fused("uint8 normalised to float16", larger, normalized,
          {hand_tuned<true, false>, hand_tuned<true, true>}, rounds);
    normalized.dtype = DType::kFloat32;
    fused("uint8 normalised to float32", larger, normalized,
          {hand_tuned<false, false>, hand_tuned<false, true>}, rounds);
    const Dataset halves = open_made(folder, Format::kTar, kSide, samples * 3 / 8, DType::kFloat16);
    BatchTransform cast;
    fused("stored float16", halves, cast, {hand_moved<true, false>, hand_moved<true, true>},
          rounds);
    cast.dtype = DType::kFloat32;
    fused("stored float16 cast to float32", halves, cast,
          {hand_moved<false, false>, hand_moved<false, true>}, rounds);
  } catch (const Error& error) {
    fmt::print(stderr, "reader_bench: {}\n", error.what());
    return 3;
  }
}
