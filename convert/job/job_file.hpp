// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/os/file.hpp"
#include "precache/convert/job.hpp"
#include "precache/formats/error.hpp"

namespace precache {

/// A file in OUT that a job replaces, as it was when the job began.
struct ReplacedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;

  // clang-tidy 14 takes the 0 of the comparison for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const ReplacedFile&, const ReplacedFile&) = default;
};

/// The description of a job in its work folder.
struct JobFacts {
  std::string plan{};      // its identity
  std::string identity{};  // a JSON object
  std::filesystem::path root{};
  Format format = Format::kTar;
  std::vector<SplitEstimate> splits{};
};

/// A job that is frozen in OUT, as a look from outside finds it.
struct FrozenJob {
  JobFacts facts{};  // without identity
  std::uint64_t parts = 0;
  bool is_replacing = false;  // files of a finished split
};

/// None if there is no such job. Takes no lock. Throws as WorkFolder::load() does.
[[nodiscard]] std::optional<FrozenJob> frozen_job(const std::filesystem::path& out,
                                                  const std::string& job);

/// The shards in OUT that unfinished jobs of any kind have made or have begun to replace.
[[nodiscard]] std::vector<std::string> shards_of_unfinished_jobs(const std::filesystem::path& out);

/// Reads and writes job.json.
namespace job_file {

using Json = nlohmann::ordered_json;

/// 1 had no number, and one listing in the order of the source.
inline constexpr std::uint64_t kVersion = 2;

/// Passes the parsed file to `use`. Throws CorruptData if it is not what was written.
template <typename Use>
auto with(const std::filesystem::path& path, const Use& use) {
  try {
    return use(Json::parse(as_text(read_file(path))));
  } catch (const Json::exception& error) {
    throw CorruptData(path, 0, error.what());
  } catch (const std::invalid_argument& error) {
    throw CorruptData(path, 0, error.what());
  }
}

/// As with(), but empty if the file is missing or cannot be read: such a job cannot continue.
template <typename Use>
auto with_usable(const std::filesystem::path& path, const Use& use) -> decltype(use(Json())) {
  try {
    if (std::filesystem::exists(path)) return with(path, use);
  } catch (const CorruptData&) {
  }
  return {};
}

void write(const std::filesystem::path& path, const Json& job);
[[nodiscard]] bool has_this_version(const Json& job);
/// Throws Unsupported if another version of precache wrote the job in `out`.
void check_version(const Json& job, const std::filesystem::path& out);
[[nodiscard]] Json to_json(const std::vector<ReplacedFile>& files);
/// Throws nlohmann::json::exception and std::invalid_argument.
[[nodiscard]] std::vector<ReplacedFile> replaced_of_json(const Json& json);
/// The files that a frozen job has not removed yet.
[[nodiscard]] std::vector<ReplacedFile> replaced_by(const std::filesystem::path& path);
/// The number of parts that a job's folder notes; 0 if it notes none.
[[nodiscard]] std::uint64_t parts_noted_in(const std::filesystem::path& folder);

}  // namespace job_file
}  // namespace precache
