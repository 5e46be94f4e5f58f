// SPDX-License-Identifier: Apache-2.0
// Manifests, and the reader that opens them. The shards that
// the seed describes are next to each.
#include <nlohmann/json.hpp>
#include <random>

#include "precache/formats/manifest.hpp"
#include "precache/reader/dataset.hpp"
#include "tests/fuzz/expect.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/read_index.hpp"
#include "tests/fuzz/seed_dataset.hpp"
#include "tests/support/temp_folder.hpp"

namespace {

using namespace precache;
using Json = nlohmann::json;

/// Reads all samples of a split that the manifest allows to read.
void read_split(const std::filesystem::path& folder, const std::string& split) {
  constexpr std::uint64_t kMostSamples = 64;
  const Dataset dataset = Dataset::open(folder, split);
  for (std::uint64_t i = 0; i < std::min(dataset.size(), kMostSamples); ++i) {
    fuzz::may_refuse([&] {
      const Sample sample = dataset[i];
      fuzz::touch(sample.bytes());
      (void)sample.label();
      (void)sample.key();
    });
  }
}

void read_dataset(std::string_view text) {
  static const test::TempFolder folder;
  static const bool has_shards = (fuzz::make_seed_dataset(folder.path(), Format::kTar), true);
  (void)has_shards;
  const Manifest manifest = Manifest::from_json(text, "dataset.json");
  const std::string again = manifest.to_json();
  fuzz::expect(Manifest::from_json(again, "dataset.json").to_json() == again,
               "a manifest that was written is read as the same");
  test::write_text(folder / kManifestName, text);
  for (const auto& split : manifest.splits) {
    try {
      fuzz::may_refuse([&] { read_split(folder.path(), split.first); });
    } catch (const IoError&) {          // the manifest names a file that does not exist
    } catch (const InvalidArgument&) {  // there are several splits, and the reader needs a name
    }
  }
}

/// A random number of the manifest.
Json* choose_number(Json& json, std::minstd_rand& random) {
  std::vector<Json*> all{&json};
  std::vector<Json*> numbers;
  while (!all.empty()) {
    Json* const next = all.back();
    all.pop_back();
    if (next->is_number()) numbers.push_back(next);
    if (!next->is_structured()) continue;
    for (Json& inner : *next) all.push_back(&inner);
  }
  return numbers.empty() ? nullptr : numbers[random() % numbers.size()];
}

/// Random changes of bytes seldom leave a manifest that the reader accepts, so half of the time a
/// number gets another value instead.
std::string with_other_number(std::string_view text, unsigned seed) {
  std::minstd_rand random(seed);
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return {};
  Json* const number = choose_number(json, random);
  if (number == nullptr || !number->is_number_unsigned()) return {};
  *number = fuzz::other_number(number->get<std::uint64_t>(), random);
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string text = with_other_number({reinterpret_cast<const char*>(data), size}, seed);
  if (text.empty() || text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] { read_dataset({reinterpret_cast<const char*>(data), size}); });
  return 0;
}
