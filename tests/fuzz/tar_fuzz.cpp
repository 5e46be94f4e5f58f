// SPDX-License-Identifier: Apache-2.0
// Third-party archives: every entry, then samples as the
// reader, build and inspect see them.
#include <charconv>
#include <cstring>

#include "convert/source/tar_images.hpp"
#include "formats/bytes/inflate.hpp"
#include "formats/shard/contents_survey.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tar/tar_entries.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/read_index.hpp"

namespace {

using namespace precache;

constexpr std::size_t kBlock = 512;

/// Corrects the checksum of every header that is found by the sizes before it.
void repair_checksums(std::span<std::uint8_t> file) {
  for (std::size_t at = 0; at + kBlock <= file.size();) {
    const auto block = file.subspan(at, kBlock);
    if (block[0] == 0) return;
    std::memset(&block[148], ' ', 8);
    unsigned sum = 0;
    for (const std::uint8_t byte : block) sum += byte;
    for (std::size_t digit = 6; digit-- > 0; sum /= 8) {
      block[148 + digit] = static_cast<std::uint8_t>('0' + sum % 8);
    }
    block[154] = 0;
    std::size_t size = 0;
    const char* const text = reinterpret_cast<const char*>(&block[124]);
    (void)std::from_chars(text, text + 12, size, 8);
    if (size > file.size() - at - kBlock) return;
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
}

void walk(std::span<const std::byte> file) {
  tar::EntryCursor cursor(file, "fuzz.tar");
  std::uint64_t end = 0;
  while (const auto entry = cursor.next()) {
    fuzz::expect(entry->begin == end && entry->end > end && entry->end <= file.size(),
                 "entries follow one another in the file");
    fuzz::expect(entry->data <= entry->end && entry->size <= entry->end - entry->data,
                 "an entry holds its data");
    end = entry->end;
  }
}

/// Reads the file as a source of a build.
void list(std::span<const std::byte> file, Labelling::Kind kind) {
  Labelling labelling;
  labelling.kind = kind;
  std::vector<TarImages> tars;
  tars.push_back(scan_tar_images(file, "fuzz.tar", 0, labelling));
  const Source source = list_tar_images(std::move(tars), "fuzz.tar", labelling);
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    const ListedFile image = source.listing[i];
    fuzz::expect(image.offset <= file.size() && image.size <= file.size() - image.offset,
                 "an image lies in the file");
  }
}

void survey(std::span<const std::byte> file) {
  tar::ContentsSurvey contents;
  fuzz::may_refuse([&] { contents.add(file, "fuzz.tar"); });
  (void)contents.result();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  return fuzz::mutate_and_repair(data, size, most, seed, repair_checksums);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::bytes_of(data, size);
  const TensorSpec given{DType::kBfloat16, Layout::kChw, 4, 4, 3};
  fuzz::may_refuse([&] { (void)detect_format(file, "fuzz.tar"); });
  fuzz::may_refuse([&] { walk(file); });
  fuzz::may_refuse_source([&] { list(file, Labelling::Kind::kSource); });
  fuzz::may_refuse_source([&] { list(file, Labelling::Kind::kNone); });
  survey(file);
  (void)inflate_head(file, 64 << 10);
  fuzz::read_all(fuzz::scanned([&] { return tar::scan(file, "fuzz.tar", {}); }), file);
  fuzz::read_all(fuzz::scanned([&] { return tar::scan(file, "fuzz.tar", given); }), file);
  return 0;
}
