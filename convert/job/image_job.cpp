// SPDX-License-Identifier: Apache-2.0
#include "convert/job/image_job.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "convert/source/input_files.hpp"
#include "convert/source/open_source.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

std::string file_digest(const std::filesystem::path& path) {
  return fmt::format("crc32c:{:08x}", crc32c::value(read_file(path)));
}

JobRequest with_image_options(JobRequest request, const ImageJobOptions& options) {
  check_job_folders(options.source, "source", options.out);
  check_apart(options.source, options.out);
  request.source = options.source;
  request.out = options.out;
  request.work_name = options.split;
  request.splits = {options.split};
  request.overwrite = options.overwrite;
  return request;
}

}  // namespace

ImageJob::ImageJob(const ImageJobOptions& options, JobRequest request, JobProgress& progress,
                   JobReport& report)
    : ShardJob(with_image_options(std::move(request), options), progress, report),
      options_(options) {}

Labelling ImageJob::labelling_of(const ImageJobOptions& options) {
  Labelling labelling =
      parse_labelling(options.labels, options.classes, options.image_key, options.label_key);
  labelling.proto = options.proto;
  labelling.message = options.message;
  return labelling;
}

std::uint64_t ImageJob::checked_shard_count() const {
  if (options_.shard_count <= listing().size()) return options_.shard_count;
  throw InvalidArgument(
      fmt::format("`shard_count` must be at most the number of samples, {}; got {}",
                  listing().size(), options_.shard_count));
}

nlohmann::ordered_json ImageJob::image_identity() const {
  const bool csv = options_.labels != "none" && options_.labels != "folder";
  nlohmann::ordered_json json = {
      {"format", name(options_.format)},
      {"shard_count", options_.shard_count},
      {"shard_size_bytes", options_.shard_count == 0 ? options_.shard_size_bytes : 0},
      {"labels", csv ? file_digest(options_.labels) : options_.labels},
      {"classes", options_.classes.empty() ? "" : file_digest(options_.classes)},
      {"image_key", options_.image_key},
      {"label_key", options_.label_key}};
  if (!options_.proto.empty()) {
    json["proto"] = file_digest(options_.proto);
    json["message"] = options_.message;
  }
  return json;
}

void ImageJob::fill_images(JobEstimate& estimate) const {
  fill(estimate);
  estimate.classes = source_.classes;
  estimate.labels = listing().labels();
  for (std::size_t i = 0; i < listing().size(); ++i) estimate.source_bytes += listing()[i].size;
}

void ImageJob::refuse_finished() const {
  throw InvalidArgument(fmt::format("'{}' already holds a finished split '{}'",
                                    options_.out.string(), options_.split),
                        "Set `overwrite` to replace it, give another `split` to add one, or "
                        "choose another `out`.");
}

Source ImageJob::list(Unpacker& unpacker) {
  return open_source(options_.source, labelling(), unpacker, options_.helper);
}

void ImageJob::make_plan(Source source) {
  source_ = std::move(source);
  keys_.emplace(source_.listing, source_.key_rule, short_keys_);
  plan_.emplace(plan_shards());
}

std::vector<JobSplit> ImageJob::plans() const {
  return {{options_.split, &*plan_, [this](std::uint64_t shard) { return shard_bytes(shard); }}};
}

std::function<SampleCrc()> ImageJob::crc_reader(const JobSplit& /*split*/) const {
  return [samples = std::make_shared<const InputFiles>(options_.source, source_)] {
    return samples->crc_reader();
  };
}

}  // namespace precache
