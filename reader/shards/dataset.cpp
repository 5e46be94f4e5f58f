// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/dataset.hpp"

#include <fmt/format.h>

#include "precache/formats/error.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

void Lease::check() const {
  if (shard_ != nullptr) shard_->check();
}

namespace detail {

void check_elements(const TensorSpec& spec, DType asked, const std::byte* data,
                    std::size_t stride_bytes) {
  if (spec.dtype != asked) {
    throw InvalidArgument(
        fmt::format("the elements are {}, not {}", name(spec.dtype), name(asked)));
  }
  if (!is_aligned(asked, data, stride_bytes)) {
    throw Unsupported(fmt::format("the values are not aligned for {}", name(asked)),
                      "Copy the bytes, or use a Loader, which copies them.");
  }
}

bool is_aligned(DType dtype, const std::byte* data, std::size_t stride_bytes) {
  const std::size_t element = size_bytes(dtype);
  return reinterpret_cast<std::uintptr_t>(data) % element == 0 && stride_bytes % element == 0;
}

void check_values(const NamedColumn& column, ValueType asked) {
  if (column.type == asked) return;
  throw InvalidArgument(fmt::format("the values of column '{}' are {}, not {}", column.name,
                                    name(column.type), name(asked)));
}

}  // namespace detail

void Sample::check_elements(DType asked) const {
  if (!shards_->spec()) {
    throw Unsupported("the sample is not a tensor: " + shards_->unsupported_reason());
  }
  detail::check_elements(*shards_->spec(), asked, bytes_.data(), 0);
}

std::string Sample::key() const {
  const ShardSet::Location place = shards_->locate(index_);
  const MappedShard& mapped = *lease_.shard_;
  std::string key =
      mapped.checked([&] { return shards_->values(place.shard).key(mapped.bytes(), place.row); });
  lease_.check();
  return key;
}

std::span<const std::byte> Sample::column_bytes(std::string_view name) const& {
  const std::size_t number = shards_->named_column(name);
  const ShardSet::Location place = shards_->locate(index_);
  const MappedShard& mapped = *lease_.shard_;
  return mapped.checked(
      [&] { return shards_->values(place.shard).named(mapped.bytes(), number, place.row); });
}

void Sample::check_column(std::string_view name, ValueType asked) const {
  detail::check_values((*shards_->named())[shards_->named_column(name)], asked);
}

std::span<const NamedColumn> Dataset::columns() const& {
  const NamedColumns& named = shards_->named();
  return named == nullptr ? std::span<const NamedColumn>() : *named;
}

std::uint64_t Dataset::size() const { return shards_->samples(); }
std::size_t Dataset::shard_count() const { return shards_->shard_count(); }
bool Dataset::has_spec() const { return shards_->spec().has_value(); }
const std::vector<std::string>& Dataset::classes() const& { return shards_->classes(); }
const StoredRecipe& Dataset::recipe() const& { return shards_->recipe(); }

TensorSpec Dataset::spec() const {
  if (!shards_->spec()) {
    throw Unsupported("the samples are not tensors of one shape and type: " +
                      shards_->unsupported_reason());
  }
  return *shards_->spec();
}

Sample Dataset::operator[](std::uint64_t index) const {
  if (index >= size()) {
    throw InvalidArgument(
        fmt::format("there is no sample {}: the dataset has {} samples", index, size()));
  }
  const ShardSet::Location place = shards_->locate(index);
  auto mapped = shards_->map(place.shard);
  const ColumnValues& values = shards_->values(place.shard);
  const auto [offset, bytes] = values.payload(place.row);
  const std::int64_t label = mapped->checked([&] {
    if (shards_->verify_on_read()) values.verify(mapped->bytes(), place.row);
    return values.label(mapped->bytes(), place.row);
  });
  mapped->check();
  const auto payload = mapped->bytes().subspan(offset, bytes);
  return {payload, label, Lease(std::move(mapped)), shards_, index};
}

std::uint64_t Dataset::contiguous_rows(std::uint64_t first) const {
  return first >= size() ? 0 : shards_->rows_from(shards_->locate(first));
}

Rows Dataset::rows(std::uint64_t first, std::uint64_t count) const {
  if (first > size() || count > size() - first) {
    throw InvalidArgument(fmt::format(
        "`first` and `count` must be within the {} samples of the dataset, got {} and {}", size(),
        first, count));
  }
  const TensorSpec tensor = spec();
  if (count == 0) return {tensor, nullptr, 0, 0, Lease(nullptr)};
  const ShardSet::Location place = shards_->locate(first);
  if (count > shards_->rows_from(place)) {
    throw InvalidArgument(
        fmt::format("{} rows from row {} are in more than one shard", count, first),
        fmt::format("Ask for at most {} of them.", shards_->rows_from(place)));
  }
  auto mapped = shards_->map(place.shard);
  const ColumnValues& values = shards_->values(place.shard);
  const auto& stride = shards_->stride(place.shard);
  if (!stride && count > 1) {
    throw Unsupported(
        fmt::format("the samples of '{}' are not at equal distances", mapped->path().string()),
        "Read them one by one.");
  }
  if (shards_->verify_on_read()) {
    mapped->checked([&] {
      for (std::uint64_t i = 0; i < count; ++i) values.verify(mapped->bytes(), place.row + i);
    });
  }
  mapped->check();
  const std::byte* data = mapped->bytes().data() + values.payload(place.row).offset;
  return {tensor, data, count, stride.value_or(tensor.size_bytes()), Lease(std::move(mapped))};
}

}  // namespace precache
