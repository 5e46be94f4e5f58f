// SPDX-License-Identifier: Apache-2.0
#include "convert/job/image_job.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "convert/job/work_names.hpp"
#include "convert/source/input_files.hpp"
#include "convert/source/open_source.hpp"
#include "convert/source/source_path.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "precache/reader/dataset.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostComparedSamples = 100'000;  // keeps a refusal quick

JobRequest with_image_options(JobRequest request, const ImageJobOptions& options) {
  check_job_folders(options.source, "source", options.out, request.is_encoded);
  // A part that comes after the end does not need the source.
  std::error_code error;
  const bool reads_source = request.step == JobStep::kWhole || request.step == JobStep::kPrepare;
  if (reads_source || std::filesystem::exists(options.source, error)) {
    check_apart(options.source, options.out);
  }
  request.source = options.source;
  request.out = options.out;
  if (request.splits.empty()) request.splits = {options.split};
  request.work_name =
      request.splits.size() == 1 ? request.splits.front() : work_names::kSeveralSplits;
  request.format = options.format;
  request.may_skip = true;
  request.overwrite = options.overwrite;
  request.finished_hint =
      "Set `overwrite` to replace it, give another `split` to add one, or choose another `out`.";
  return request;
}

}  // namespace

ImageJob::ImageJob(const ImageJobOptions& options, JobRequest request, bool short_keys,
                   JobProgress& progress, JobReport& report, JobEstimate& estimate)
    : ShardJob(with_image_options(std::move(request), options), progress, report, estimate),
      options_(options),
      estimate_(estimate),
      short_keys_(short_keys) {}

const std::string& ImageJob::digest_of(const std::filesystem::path& file) const {
  const auto [found, is_new] = digests_.try_emplace(file);
  if (is_new) {
    const File opened(file, O_RDONLY);
    found->second = fmt::format("crc32c:{:08x}", crc_of(opened, 0, opened.size()));
  }
  return found->second;
}

Labelling ImageJob::labelling() { return parse_labelling(options_); }

std::uint64_t ImageJob::checked_shard_count(const PlannedSplitFacts& split) const {
  if (options_.shard_count <= split.samples) return options_.shard_count;
  throw InvalidArgument(fmt::format(
      "`shard_count` must be at most {}, the number of samples{}, got {}", split.samples,
      request_.splits.size() == 1 ? "" : " of '" + split.name + "'", options_.shard_count));
}

std::string ImageJob::fingerprint(const JobSplit& split) const {
  const auto found = std::ranges::find(facts().splits, split.name, &PlannedSplitFacts::name);
  return found == facts().splits.end() ? "" : found->fingerprint;
}

std::uint64_t ImageJob::listed(const JobSplit& split, std::uint64_t sample) const {
  return samples_.empty() ? sample : samples_.at(split.name)[sample];
}

SampleName ImageJob::name_of(const Slice& slice, std::uint64_t slot) const {
  return {slice.key(slot, source().key_rule, short_keys_), slice.file(slot).label};
}

nlohmann::ordered_json ImageJob::identity() const {
  const bool csv = options_.labels != "none" && options_.labels != "folder";
  nlohmann::ordered_json json = {
      {"format", name(options_.format)},
      {"shard_count", options_.shard_count},
      {"shard_size_bytes", options_.shard_count == 0 ? options_.shard_size_bytes : 0},
      {"labels", csv ? digest_of(options_.labels) : options_.labels},
      {"classes", options_.classes.empty() ? "" : digest_of(options_.classes)},
      {"image_key", options_.image_key},
      {"label_key", options_.label_key}};
  for (const auto& [field, value] : {std::pair("path_column", &options_.path_column),
                                     std::pair("label_column", &options_.label_column),
                                     std::pair("label_regex", &options_.label_regex)}) {
    if (!value->empty()) json[field] = *value;
  }
  if (!options_.proto.empty()) {
    json["proto"] = digest_of(options_.proto);
    json["message"] = options_.message;
  }
  return json;
}

Source ImageJob::list(Unpacker& unpacker) {
  const std::vector<std::filesystem::path> found =
      request_.overwrite ? std::vector<std::filesystem::path>() : found_shares();
  if (found.empty()) return open_source(options_.source, labelling(), unpacker, options_.helper);
  return open_shares(options_.source, labelling(), unpacker, options_.helper,
                     found::Shares(found, share_identity()));
}

std::string ImageJob::share_identity() const {
  nlohmann::ordered_json json = ImageJob::identity();
  for (const char* field : {"format", "shard_count", "shard_size_bytes"}) json.erase(field);
  return json.dump();
}

void ImageJob::list_share(const std::filesystem::path& path) {
  found::save(path, share_identity(),
              precache::list_share(options_.source, labelling(), options_.helper, request_.share));
}

std::vector<JobSplit> ImageJob::make_plan() {
  if (!frozen_) {
    keys_.emplace(listing(), source().key_rule, short_keys_);
    facts_ = SourceFacts(listing(), *keys_, source().classes.size());
    facts_.stamp = stamp_of(listing());
    samples_ = divide();
    for (const std::string& name : request_.splits) {
      PlannedSplitFacts& split =
          facts_.splits.emplace_back(PlannedSplitFacts{name, facts_.samples, 0, ""});
      if (samples_.empty()) {
        split.fingerprint = source_fingerprint(listing(), facts_.fingerprint);
        continue;
      }
      const Listing chosen = listing().subset(samples_.at(name));
      split.samples = chosen.size();
      split.fingerprint = source_fingerprint(chosen, chosen.fingerprint());
    }
  }
  std::vector<JobSplit> splits = plan_splits();
  std::uint64_t slices = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    splits[i].first_slice = slices;
    slices += splits[i].plan.shards();
    if (!frozen_) facts_.splits[i].shards = splits[i].plan.shards();
  }
  return splits;
}

void ImageJob::save_plan(const std::filesystem::path& path, const std::string& identity) {
  std::vector<PlannedSplit> planned;
  for (const JobSplit& split : splits()) {
    planned.push_back({split.plan, samples_.empty() ? nullptr : &samples_.at(split.name)});
  }
  PlanFile::write(path, identity, facts_, planned, listing(), *keys_, note());
}

void ImageJob::open_plan(const std::filesystem::path& path, const std::string& identity) {
  PlanFile file(path);
  if (file.identity() != identity) throw CorruptData(path, 40, "this is the plan of another job");
  frozen_.emplace(std::move(file));
  keys_.reset();
  samples_.clear();
}

void ImageJob::find_source(Source& source, const std::string& listed_root) {
  const bool is_whole = request_.step == JobStep::kWhole || request_.step == JobStep::kFinish;
  check_same_source(source, options_.source, listed_root, *frozen_,
                    is_whole ? SourceCheck::kAll : SourceCheck::kNames);
}

void ImageJob::describe_plan() {
  estimate_.classes = source().classes;
  estimate_.labels = facts().labels;
  estimate_.source_bytes = facts().bytes;
}

std::string ImageJob::source_difference(const JobSplit& split) {
  const SplitEntry finished = *out(split.name).finished();
  const std::uint64_t samples = split.plan.records();
  if (frozen_ || std::max(finished.samples, samples) > kMostComparedSamples) {
    return fmt::format("the source: {} samples there, {} here", finished.samples + finished.skipped,
                       samples);
  }
  std::set<std::string> keys_in_out;
  try {
    OpenOptions open;
    open.helper = options_.helper;
    const Dataset dataset = Dataset::open(options_.out, split.name, open);
    for (std::uint64_t i = 0; i < dataset.size(); ++i) keys_in_out.insert(dataset[i].key());
  } catch (const Error&) {
    return "the source has other samples";  // the shards are damaged or missing
  }
  const InputFiles files(options_.source, source());
  const std::string skipped = SkippedReport::lines_of(options_.out, split.name);
  std::vector<std::string> added;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const std::uint64_t i = listed(split, sample);
    const std::string origin = files.origin(listing()[i]);
    const bool is_skipped = SkippedReport::names(skipped, origin);
    if (keys_in_out.erase(keys_->key(i)) == 0 && !is_skipped) added.push_back(origin);
  }
  std::vector<std::string> parts;
  const auto add = [&](const auto& found, const char* what) {
    if (found.empty()) return;
    parts.push_back(found.size() == 1 ? fmt::format("1 sample is {}: '{}'", what, *found.begin())
                                      : fmt::format("{} samples are {}, such as '{}'", found.size(),
                                                    what, *found.begin()));
  };
  add(added, "new in the source");
  add(keys_in_out, "missing from the source");
  return parts.empty() ? "the samples of the source have other sizes or labels"
                       : fmt::format("{}", fmt::join(parts, "; "));
}

std::function<SampleCrc()> ImageJob::crc_reader(const JobSplit& split) const {
  return [this, &split, files = std::make_shared<const InputFiles>(options_.source, source())] {
    return [this, &split, crc_of_listed = files->crc_reader()](std::uint64_t sample) {
      return crc_of_listed(listed(split, sample));
    };
  };
}

}  // namespace precache
