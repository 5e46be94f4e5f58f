// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/typed_rows.hpp"

#include <cstring>

#include "formats/bytes/half_float.hpp"
#include "precache/reader.hpp"
#include "precache/tools/inspect.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

using test::contains;
using test::make_dataset;
using test::message_of;
using test::same_bytes;
using test::TempFolder;

constexpr DType kTypes[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32};

/// Calls with a T{} of each element type, and true if it is the type of the tensors.
template <typename Call>
void for_each_type(DType stored, const Call& call) {
  const auto one = [&]<TensorElement T>(T zero) { call(zero, kDTypeOf<T> == stored); };
  one(std::uint8_t{});
  one(Float16{});
  one(Bfloat16{});
  one(0.0F);
}

/// A tar of float32 arrays whose headers end at an odd offset, as other programs may write them.
std::filesystem::path odd_floats(const TempFolder& folder) {
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 3), }\n";
  std::string tar;
  for (const char* name : {"a.npy", "b.npy", "c.npy", "d.npy"}) {
    std::string file = test::npy_file(dict, 48);
    for (std::size_t i = 0; i < 12; ++i) {
      const float value = static_cast<float>(i) / 2;
      std::memcpy(file.data() + file.size() - 48 + i * sizeof(value), &value, sizeof(value));
    }
    tar += test::tar_entry(name, file);
  }
  test::write_text(folder / "odd.tar", tar + test::kTarEnd);
  return folder / "odd.tar";
}

TEST_CASE("samples, rows and batches only have elements of the stored type", "[reader][typed]") {
  for (const DType stored : kTypes) {
    const TempFolder folder;
    const auto made =
        make_dataset(folder / "set", {.spec = test::spec_of(8, 6, 3, stored), .shards = {6}});
    const Dataset dataset = Dataset::open(made.folder);
    const Sample sample = dataset[2];
    const Rows rows = dataset.rows(1, 3);
    Loader loader(dataset, {.batch_size = 6});
    auto batch = loader.next().value();
    for_each_type(stored, [&]<typename T>(T, bool is_stored) {
      CAPTURE(name(stored), name(kDTypeOf<T>));
      if (!is_stored) {
        const auto wrong = contains("not " + std::string(name(kDTypeOf<T>)));
        CHECK_THAT(message_of<InvalidArgument>([&] { (void)sample.as<T>(); }), wrong);
        CHECK_THAT(message_of<InvalidArgument>([&] { (void)rows.as<T>(); }), wrong);
        CHECK_THAT(message_of<InvalidArgument>([&] { (void)batch.as<T>(); }), wrong);
        CHECK_THAT(message_of<InvalidArgument>([&] { (void)batch.as_writable<T>(); }), wrong);
        return;
      }
      CHECK(same_bytes(std::as_bytes(sample.as<T>()), made.samples[2].tensor));
      CHECK(rows.as<T>().size() == 3);
      CHECK(same_bytes(std::as_bytes(rows.as<T>()[2]), made.samples[3].tensor));
      REQUIRE(batch.as<T>().size() == 6);
      CHECK(batch.as<T>()[0].size() == 8 * 6 * 3);
      CHECK(batch.as<T>().stride() * sizeof(T) == batch.stride_bytes());
      CHECK(same_bytes(std::as_bytes(batch.as<T>()[5]), made.samples[5].tensor));
      batch.as_writable<T>()[5][7] = T{};
      CHECK(std::memcmp(&batch.as<T>()[5][7], "\0\0\0\0", sizeof(T)) == 0);
    });
  }
}

TEST_CASE("halves become floats", "[reader][typed]") {
  for (const float value : {0.0F, -1.5F, 0.333251953125F}) {
    CHECK(static_cast<float>(Float16{to_float16(value)}) == value);
    CHECK(static_cast<float>(Bfloat16{to_bfloat16(value)}) == from_bfloat16(to_bfloat16(value)));
  }
}

TEST_CASE("encoded images have no elements", "[reader][typed]") {
  const TempFolder folder;
  test::write_text(folder / "a.tar", test::tar_entry("a.jpg", "\xff\xd8\xff") +
                                         test::tar_entry("b.jpg", "\xff\xd8") + test::kTarEnd);
  const Dataset dataset = Dataset::open(folder / "a.tar");
  const Sample sample = dataset[0];
  CHECK_THAT(message_of<Unsupported>([&] { (void)sample.as<std::uint8_t>(); }),
             contains("not a tensor"));
}

TEST_CASE("floats at odd addresses are copied, as inspect reports", "[reader][typed]") {
  const TempFolder folder;
  const auto path = odd_floats(folder);
  const Dataset dataset = Dataset::open(path);
  const Sample sample = dataset[1];
  REQUIRE(reinterpret_cast<std::uintptr_t>(sample.bytes().data()) % sizeof(float) != 0);
  CHECK_THAT(message_of<Unsupported>([&] { (void)sample.as<float>(); }), contains("not aligned"));
  const Rows rows = dataset.rows(0, 4);
  CHECK_THAT(message_of<Unsupported>([&] { (void)rows.as<float>(); }), contains("not aligned"));
  Loader loader(dataset, {.batch_size = 4});
  const auto batch = loader.next().value();
  CHECK_FALSE(batch.is_view());
  for (std::size_t i = 0; i < 4; ++i) CHECK(batch.as<float>()[i][11] == 5.5F);
  const Inspection facts = inspect(path, {});
  CHECK(facts.access.batches == AccessFacts::Batches::kGathered);
  CHECK_THAT(facts.access.reason, contains("not aligned"));
}

}  // namespace
}  // namespace precache
