// SPDX-License-Identifier: Apache-2.0
#include "convert/job/job_file.hpp"

#include <fmt/format.h>

#include "convert/job/work_names.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/bytes/text.hpp"
#include "formats/os/folder.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

namespace fs = std::filesystem;

namespace job_file {
namespace {

std::uint64_t version_of(const Json& job) {
  if (job.contains("version")) return strict_json::count(job["version"]);
  (void)job.at("plan");  // throws for another file
  return 1;
}

}  // namespace

bool has_this_version(const Json& job) { return version_of(job) == kVersion; }

Json to_json(const std::vector<ReplacedFile>& files) {
  Json list = Json::array();
  for (const ReplacedFile& file : files) {
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"mtime_ns", file.mtime_ns}});
  }
  return list;
}

std::vector<ReplacedFile> replaced_of_json(const Json& json) {
  std::vector<ReplacedFile> files;
  for (const Json& entry : json) {
    ReplacedFile file{entry.at("name").get<std::string>(), strict_json::count(entry.at("bytes")),
                      strict_json::integer(entry.at("mtime_ns"))};
    if (!is_file_name(file.name)) {
      throw std::invalid_argument(fmt::format("'{}' is not the name of a file", file.name));
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<ReplacedFile> replaced_by(const fs::path& path) {
  return with_usable(path, [](const Json& job) { return replaced_of_json(job.at("replaces")); });
}

std::uint64_t parts_noted_in(const fs::path& folder) {
  const auto path = folder / work_names::kParts;
  std::error_code error;
  if (!fs::exists(path, error)) return 0;
  const auto bytes = read_file(path);
  std::string_view text = as_text(bytes);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return parse_number<std::uint64_t>(text).value_or(0);
}

void check_version(const Json& job, const fs::path& out) {
  const std::uint64_t version = version_of(job);
  if (version == kVersion) return;
  throw Unsupported(
      fmt::format("'{}' holds an unfinished job of {} version of precache", out.string(),
                  version < kVersion ? "an earlier" : "a later"),
      "Finish it with that version, set `overwrite` to discard it, or choose another `out`.");
}

void write(const fs::path& path, const Json& job) {
  write_file_atomically(path, job.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace job_file

std::optional<FrozenJob> frozen_job(const fs::path& out, const std::string& job) {
  const fs::path folder = out / kWorkFolderName / job;
  if (!fs::exists(folder / work_names::kJob)) return std::nullopt;
  return job_file::with(folder / work_names::kJob, [&](const job_file::Json& json) {
    job_file::check_version(json, out);
    // Not inside of the braces, where GCC 12 destroys members twice if a call throws.
    const std::uint64_t parts = job_file::parts_noted_in(folder);
    FrozenJob found{.facts = {.plan = json.at("plan").get<std::string>(),
                              .root = json.at("source").get<std::string>()},
                    .parts = parts,
                    .is_replacing = !json.at("replaces").empty()};
    found.facts.format = parse_format(json.at("format").get<std::string>());
    for (const job_file::Json& split : json.at("splits")) {
      found.facts.splits.push_back({split.at("name").get<std::string>(),
                                    strict_json::count(split.at("samples")),
                                    strict_json::count(split.at("shards"))});
    }
    return std::optional(std::move(found));
  });
}

std::vector<std::string> shards_of_unfinished_jobs(const fs::path& out) {
  std::vector<std::string> shards;
  if (!fs::exists(out / kWorkFolderName) || is_link(out / kWorkFolderName)) return shards;
  const Folder root(out / kWorkFolderName);
  for (const Folder::Entry& job : root.entries()) {
    if (!job.is_folder) continue;
    for (const Folder::Entry& entry : Folder(root, job.name).entries()) {
      if (auto shard = work_names::shard_of_result(entry.name)) shards.push_back(std::move(*shard));
      if (entry.name != work_names::kJob) continue;
      for (const ReplacedFile& file :
           job_file::replaced_by(out / kWorkFolderName / job.name / entry.name)) {
        shards.push_back(file.name);
      }
    }
  }
  return shards;
}

}  // namespace precache
