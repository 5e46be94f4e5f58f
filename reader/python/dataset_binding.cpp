// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>

#include "precache/formats/error.hpp"
#include "precache/reader/dataset.hpp"
#include "reader/python/binding.hpp"

namespace precache::python {
namespace {

using Paths = std::vector<std::filesystem::path>;
using RowsToFill = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// The same parts as spec_tuple() returns.
using SpecParts =
    std::tuple<std::string, std::string, std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>>;

std::optional<TensorSpec> spec_of(const std::optional<SpecParts>& parts) {
  if (!parts) return std::nullopt;
  const auto& [dtype, layout, shape] = *parts;
  const auto [a, b, c] = shape;
  TensorSpec spec;
  spec.dtype = parse_dtype(dtype);
  spec.layout = parse_layout(layout);
  std::tie(spec.channels, spec.height, spec.width) =
      spec.layout == Layout::kChw ? std::tie(a, b, c) : std::tie(c, a, b);
  return spec;
}

/// A view of one sample's bytes as a row, and its label.
nb::tuple sample(const Dataset& dataset, std::uint64_t index) {
  auto kept = without_gil([&] { return std::make_unique<Sample>(dataset[index]); });
  const auto bytes = kept->bytes();
  const std::int64_t label = kept->label();
  const nb::capsule owner = owner_of(std::move(kept));
  return nb::make_tuple(ConstByteRows(bytes.data(), {1, bytes.size()}, owner), label);
}

/// A copy. If the shard was truncated meanwhile, throws instead of returning zeros.
nb::tuple copied_sample(const Dataset& dataset, std::uint64_t index) {
  std::int64_t label = 0;
  auto kept = without_gil([&] {
    const Sample sample = dataset[index];
    label = sample.label();
    auto copy =
        std::make_unique<std::vector<std::byte>>(sample.bytes().begin(), sample.bytes().end());
    sample.lease().check();
    return copy;
  });
  std::byte* const data = kept->data();
  const std::size_t size = kept->size();
  return nb::make_tuple(ByteRows(data, {1, size}, owner_of(std::move(kept))), label);
}

/// A view of neighbours in one shard.
ConstByteRows rows(const Dataset& dataset, std::uint64_t first, std::uint64_t count) {
  auto kept = without_gil([&] { return std::make_unique<Rows>(dataset.rows(first, count)); });
  const std::byte* const data = kept->data();
  const auto stride = static_cast<std::int64_t>(kept->stride_bytes());
  const nb::capsule owner = owner_of(std::move(kept));
  return ConstByteRows(data, {count, dataset.spec().size_bytes()}, owner, {stride, 1});
}

/// Copies samples, in this order, into memory that numpy allocated. numpy asks for huge pages;
/// without them the page faults of a new batch cost more than the copy.
void gather(const Dataset& dataset, const Indices& indices, const RowsToFill& out) {
  const std::size_t row_bytes = dataset.spec().size_bytes();
  if (out.shape(0) != indices.shape(0) || out.shape(1) != row_bytes) {
    throw InvalidArgument("`out` must have a row of the right size for each index");
  }
  const WithoutGil released;
  for (std::size_t i = 0; i < indices.shape(0); ++i) {
    const Sample sample = dataset[static_cast<std::uint64_t>(indices(i))];
    std::memcpy(out.data() + i * row_bytes, sample.bytes().data(), row_bytes);
    sample.lease().check();
  }
}

Labels labels(const Dataset& dataset, const Indices& indices) {
  return labels_array(without_gil([&] {
    std::vector<std::int64_t> labels(indices.shape(0));
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = dataset[static_cast<std::uint64_t>(indices(i))].label();
    }
    return labels;
  }));
}

/// The values of a column for samples in this order, as one array.
nb::ndarray<nb::numpy> column(const Dataset& dataset, const std::string& name,
                              const Indices& indices) {
  const auto columns = dataset.columns();
  const auto found = std::ranges::find(columns, name, &NamedColumn::name);
  if (found == columns.end()) {
    throw InvalidArgument("the dataset has no column '" + name + "'");
  }
  const std::size_t row_bytes = found->size_bytes();
  std::vector<std::size_t> shape{indices.shape(0)};
  shape.insert(shape.end(), found->shape.begin(), found->shape.end());
  auto kept = without_gil([&] {
    auto values = std::make_unique<std::vector<std::byte>>(indices.shape(0) * row_bytes);
    for (std::size_t i = 0; i < indices.shape(0); ++i) {
      const Sample sample = dataset[static_cast<std::uint64_t>(indices(i))];
      std::memcpy(values->data() + i * row_bytes, sample.column_bytes(name).data(), row_bytes);
      sample.lease().check();
    }
    return values;
  });
  std::byte* const data = kept->data();
  return {data,    shape.size(),         shape.data(), owner_of(std::move(kept)),
          nullptr, dtype_of(found->type)};
}

nb::object key(const Dataset& dataset, std::uint64_t index) {
  return text_of(without_gil([&] { return dataset[index].key(); }));
}

nb::list classes(const Dataset& dataset) {
  nb::list names;
  for (const std::string& name : dataset.classes()) names.append(text_of(name));
  return names;
}

}  // namespace

nb::list column_tuples(std::span<const NamedColumn> columns) {
  nb::list tuples;
  for (const NamedColumn& column : columns) {
    nb::list shape;
    for (const std::uint32_t extent : column.shape) shape.append(extent);
    nb::list names;
    for (const std::string& value : column.value_names) names.append(text_of(value));
    tuples.append(nb::make_tuple(text_of(column.name), std::string(name(column.type)),
                                 nb::tuple(shape), nb::tuple(names)));
  }
  return tuples;
}

nb::dlpack::dtype dtype_of(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
      return nb::dtype<std::uint8_t>();
    case ValueType::kInt32:
      return nb::dtype<std::int32_t>();
    case ValueType::kInt64:
      return nb::dtype<std::int64_t>();
    case ValueType::kFloat32:
      break;
  }
  return nb::dtype<float>();
}

void add_dataset(nb::module_& module) {
  nb::class_<Dataset>(module, "Dataset")
      .def_static(
          "open",
          [](const Paths& paths, const std::string& split, const std::optional<SpecParts>& spec,
             std::size_t max_open_shards, bool verify_on_read, unsigned scan_threads,
             const std::string& image_key, const std::string& label_key, bool without_labels,
             const std::filesystem::path& helper) {
            OpenOptions options;
            options.spec = spec_of(spec);
            options.max_open_shards = max_open_shards;
            options.verify_on_read = verify_on_read;
            options.scan_threads = scan_threads;
            options.image_key = image_key;
            options.label_key = label_key;
            options.without_labels = without_labels;
            options.helper = helper;
            const WithoutGil released;
            return paths.size() == 1 ? Dataset::open(paths[0], split, options)
                                     : Dataset::open(paths, options);
          },
          nb::arg("paths"), nb::arg("split"), nb::arg("spec").none(), nb::arg("max_open_shards"),
          nb::arg("verify_on_read"), nb::arg("scan_threads"), nb::arg("image_key"),
          nb::arg("label_key"), nb::arg("without_labels"), nb::arg("helper"))
      .def("__len__", &Dataset::size)
      .def_prop_ro("shard_count", &Dataset::shard_count)
      .def_prop_ro("has_spec", &Dataset::has_spec)
      .def_prop_ro("spec", [](const Dataset& dataset) { return spec_tuple(dataset.spec()); })
      .def_prop_ro("classes", &classes, nb::sig("def classes(self) -> list[str]"))
      .def_prop_ro(
          "recipe", [](const Dataset& dataset) { return text_of(dataset.recipe().to_json()); },
          nb::sig("def recipe(self) -> str"))
      .def_prop_ro("columns",
                   [](const Dataset& dataset) { return column_tuples(dataset.columns()); })
      .def("column", &column, nb::arg("name"), nb::arg("indices"))
      .def("sample", &sample, nb::arg("index"))
      .def("copied_sample", &copied_sample, nb::arg("index"))
      .def("rows", &rows, nb::arg("first"), nb::arg("count"))
      .def("contiguous_rows", &Dataset::contiguous_rows, nb::arg("first"))
      .def("gather", &gather, nb::arg("indices"), nb::arg("out"))
      .def("labels", &labels, nb::arg("indices"))
      .def("key", &key, nb::arg("index"), nb::sig("def key(self, index: int) -> str"));
}

}  // namespace precache::python
