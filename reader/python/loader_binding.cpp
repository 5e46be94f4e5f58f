// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "precache/formats/error.hpp"
#include "reader/python/augmentation_binding.hpp"
#include "reader/python/loader_methods.hpp"

namespace precache::python {
namespace {

using Channels = std::array<float, 3>;
using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

BatchView checked_view(const Batch& batch, std::size_t view) {
  if (view >= batch.views()) throw nb::index_error("there is no such view");
  return batch.view(view);
}

/// The rows of one view of a batch; `writable` only sets the flag of the array.
nb::object images(nb::handle self, bool writable, std::size_t number) {
  const BatchView view = checked_view(nb::cast<const Batch&>(self), number);
  const std::size_t row_bytes = view.spec().size_bytes();
  const auto stride = static_cast<std::int64_t>(view.stride_bytes());
  if (!writable)
    return nb::cast(ConstByteRows(view.data(), {view.size(), row_bytes}, self, {stride, 1}));
  auto* const data = const_cast<std::byte*>(view.data());
  return nb::cast(ByteRows(data, {view.size(), row_bytes}, self, {stride, 1}));
}

/// A copy, so that labels do not keep the memory of the whole batch.
Labels labels(const Batch& batch) {
  return labels_array({batch.labels().begin(), batch.labels().end()});
}

/// The values of a column. Masks keep the memory of the whole batch; other columns are copies, as
/// labels are.
nb::ndarray<nb::numpy> column(nb::handle self, std::size_t number) {
  const auto& batch = nb::cast<const Batch&>(self);
  const NamedColumn& spec = batch.columns()[number];
  const std::span<const std::byte> bytes = batch.column_bytes(number);
  std::vector<std::size_t> shape{batch.size()};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  if (spec.is_mask()) {
    auto* const data = const_cast<std::byte*>(bytes.data());
    return {data, shape.size(), shape.data(), self, nullptr, dtype_of(spec.type)};
  }
  auto kept = std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end());
  std::byte* const data = kept->data();
  return {data,    shape.size(),       shape.data(), owner_of(std::move(kept)),
          nullptr, dtype_of(spec.type)};
}

using Normalize = std::pair<Channels, Channels>;
using Size = std::pair<std::uint32_t, std::uint32_t>;
using SizeFrom = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // epoch, height, width
using CropSize = std::tuple<std::uint32_t, std::uint32_t, std::string>;

Crop crop_of(const CropSize& size) {
  const auto& [height, width, place] = size;
  if (place != "random" && place != "center") {
    throw InvalidArgument("the position of `crop` must be random or center, got '" + place + "'");
  }
  return {height, width, place == "center" ? CropPosition::kCenter : CropPosition::kRandom};
}

/// `Loader` of the package documents the arguments.
void make_options(LoaderOptions* self, std::uint64_t batch_size, const std::string& shuffle,
                  std::uint64_t block_rows, std::uint64_t window_blocks, std::uint64_t seed,
                  std::uint64_t rank, std::uint64_t world_size, const std::string& last_batch,
                  const std::optional<CropSize>& crop, bool flip,
                  const std::optional<Normalize>& normalize, const nb::list& augmentation,
                  const nb::list& views, const std::vector<SizeFrom>& sizes,
                  const std::optional<Size>& max_size, std::optional<std::uint8_t> mask_fill,
                  std::uint32_t repeats, const std::optional<std::string>& dtype,
                  const std::optional<std::string>& layout, unsigned threads, std::size_t prefetch,
                  bool writable, const std::optional<Indices>& subset,
                  const std::optional<Weights>& weights, const std::vector<std::string>& columns) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.order = {parse_shuffle(shuffle), block_rows, window_blocks};
  options.seed = seed;
  options.rank = rank;
  options.world_size = world_size;
  options.last_batch = parse_last_batch(last_batch);
  if (crop) options.transform.crop = crop_of(*crop);
  options.transform.flip = flip;
  if (normalize) options.transform.normalize = {normalize->first, normalize->second};
  options.transform.augmentation = augmentation_of(augmentation);
  for (const nb::handle view : views) {
    options.transform.views.push_back(augmentation_of(nb::cast<nb::list>(view)));
  }
  for (const auto& [epoch, height, width] : sizes) {
    options.transform.sizes.push_back({epoch, {height, width}});
  }
  if (max_size) options.transform.max_size = {max_size->first, max_size->second};
  options.transform.mask_fill = mask_fill;
  options.repeats = repeats;
  if (dtype) options.transform.dtype = parse_dtype(*dtype);
  if (layout) options.transform.layout = parse_layout(*layout);
  options.threads = threads;
  options.prefetch = prefetch;
  options.writable = writable;
  if (subset) options.subset.emplace(subset->data(), subset->data() + subset->shape(0));
  if (weights) options.weights.assign(weights->data(), weights->data() + weights->shape(0));
  options.columns = columns;
  new (self) LoaderOptions(options);
}

void make_loader(Held<Loader>* self, const Dataset& dataset, const LoaderOptions& options) {
  const WithoutGil released;
  new (self) Held<Loader>(dataset, options);
}

}  // namespace

nb::dict stats_dict(const LoaderStats& stats) {
  nb::dict result;
  result["batches"] = stats.batches;
  result["views"] = stats.views;
  result["bytes_touched"] = stats.bytes_touched;
  result["consumer_waited"] = seconds_of(stats.consumer_waited);
  result["workers_waited"] = seconds_of(stats.workers_waited);
  result["batches_ahead"] = stats.batches_ahead;
  result["bottleneck"] = stats.bottleneck();
  return result;
}

void add_loader(nb::module_& module) {
  nb::class_<Batch>(module, "Batch")
      .def("__len__", &Batch::size)
      .def("images", &images, nb::arg("writable"), nb::arg("view"),
           nb::sig("def images(self, writable: bool, view: int) -> NDArray[numpy.uint8]"))
      .def(
          "spec",
          [](const Batch& batch, std::size_t view) {
            return spec_tuple(checked_view(batch, view).spec());
          },
          nb::arg("view"))
      .def("labels", &labels)
      .def("column", &column, nb::arg("number"))
      .def_prop_ro("is_view", &Batch::is_view);

  nb::class_<LoaderOptions>(module, "LoaderOptions")
      .def("__init__", &make_options, nb::kw_only(), nb::arg("batch_size"), nb::arg("shuffle"),
           nb::arg("block_rows"), nb::arg("window_blocks"), nb::arg("seed"), nb::arg("rank"),
           nb::arg("world_size"), nb::arg("last_batch"), nb::arg("crop").none(), nb::arg("flip"),
           nb::arg("normalize").none(), nb::arg("augmentation"), nb::arg("views"), nb::arg("sizes"),
           nb::arg("max_size").none(), nb::arg("mask_fill").none(), nb::arg("repeats"),
           nb::arg("dtype").none(), nb::arg("layout").none(), nb::arg("threads"),
           nb::arg("prefetch"), nb::arg("writable"), nb::arg("subset").none(),
           nb::arg("weights").none(), nb::arg("columns"));

  nb::class_<Held<Loader>> loader(module, "Loader");
  loader.def("__init__", &make_loader, nb::arg("dataset"), nb::arg("options"))
      .def("stats", [](const Held<Loader>& self) { return stats_dict(self.stats()); })
      .def_prop_ro("columns",
                   [](const Held<Loader>& self) { return column_tuples(self.columns()); });
  add_loader_methods(loader);
}

}  // namespace precache::python
