// SPDX-License-Identifier: Apache-2.0
// Shows the Python tests what the reader reads, as JSON on stdout.
//
//   read_dataset PATH...                      spec, classes, and label, key and bytes' CRC of each
//   sample read_dataset PATH --batches FILE [...]    the batches of one epoch: samples and labels;
//   their rows go to FILE
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"

namespace {

using namespace precache;
using Json = nlohmann::ordered_json;

template <typename Kind>
int failure(const Kind& error, const char* kind) {
  std::cout << Json{{"error", kind}, {"message", error.what()}, {"hint", error.hint()}} << '\n';
  return 1;
}

Json describe(const Dataset& dataset) {
  Json json{{"samples", dataset.size()},
            {"shards", dataset.shard_count()},
            {"classes", dataset.classes()}};
  try {
    json["spec"] = dataset.spec().text();
  } catch (const Unsupported& error) {
    json["unsupported_reason"] = error.what();
  }
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset[i];
    json["items"].push_back({{"label", sample.label()},
                             {"key", sample.key()},
                             {"bytes", sample.bytes().size()},
                             {"crc32c", crc32c::value(sample.bytes())}});
    sample.lease().check();
  }
  return json;
}

Json batches(Loader& loader, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  Json json{{"spec", loader.spec().text()}, {"warnings", loader.warnings()}};
  while (const auto batch = loader.next()) {
    json["batches"].push_back({{"samples", batch->samples()}, {"labels", batch->labels()}});
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const auto row = (*batch)[i];
      out.write(reinterpret_cast<const char*>(row.data()),
                static_cast<std::streamsize>(row.size()));
    }
  }
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  std::vector<std::filesystem::path> paths;
  std::string split;
  std::string file;
  std::string shuffle = "none";
  std::string dtype;
  std::string layout;
  std::uint32_t crop = 0;
  std::vector<float> normalize;
  std::uint64_t epoch = 0;
  std::vector<std::string> spec;
  OpenOptions open_options;
  LoaderOptions options;
  options.last_batch = LastBatch::kKeep;
  app.add_option("paths", paths)->required();
  app.add_option("--split", split);
  app.add_option("--spec", spec, "dtype, layout, height, width, channels")->expected(5);
  app.add_option("--batches", file);
  app.add_option("--shuffle", shuffle);
  app.add_option("--block-rows", options.order.block_rows);
  app.add_option("--window-blocks", options.order.window_blocks);
  app.add_option("--seed", options.seed);
  app.add_option("--epoch", epoch);
  app.add_option("--batch-size", options.batch_size);
  app.add_option("--dtype", dtype);
  app.add_option("--layout", layout);
  app.add_option("--crop", crop);
  app.add_option("--normalize", normalize, "three means and three standard deviations");
  app.add_flag("--flip", options.transform.flip);
  app.add_flag("--verify", open_options.verify_on_read);
  app.add_option("--helper", open_options.helper, "the precache command");
  CLI11_PARSE(app, argc, argv);
  try {
    if (spec.size() == 5) {
      open_options.spec = TensorSpec{parse_dtype(spec[0]), parse_layout(spec[1]),
                                     static_cast<std::uint32_t>(std::stoul(spec[2])),
                                     static_cast<std::uint32_t>(std::stoul(spec[3])),
                                     static_cast<std::uint32_t>(std::stoul(spec[4]))};
    }
    const Dataset dataset = paths.size() == 1 ? Dataset::open(paths[0], split, open_options)
                                              : Dataset::open(paths, open_options);
    if (file.empty()) {
      // Keys are bytes, and those of third-party files need not be UTF-8.
      std::cout << describe(dataset).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
      return 0;
    }
    options.order.shuffle = parse_shuffle(shuffle);
    if (!dtype.empty()) options.transform.dtype = parse_dtype(dtype);
    if (!layout.empty()) options.transform.layout = parse_layout(layout);
    if (crop != 0) options.transform.crop = Crop{crop, crop, CropPosition::kRandom};
    if (normalize.size() == 6) {
      options.transform.normalize = Normalization{{normalize[0], normalize[1], normalize[2]},
                                                  {normalize[3], normalize[4], normalize[5]}};
    }
    Loader loader(dataset, options);
    loader.set_epoch(epoch);
    std::cout << batches(loader, file) << '\n';
    return 0;
  } catch (const InvalidArgument& error) {
    return failure(error, "InvalidArgument");
  } catch (const IoError& error) {
    return failure(error, "IoError");
  } catch (const CorruptData& error) {
    return failure(error, "CorruptData");
  } catch (const Unsupported& error) {
    return failure(error, "Unsupported");
  }
}
