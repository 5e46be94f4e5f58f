// SPDX-License-Identifier: Apache-2.0
#include "convert/work_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "convert/source/source_json.hpp"
#include "convert/source/source_path.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kLockName = ".lock";  // no split can be called so
constexpr const char* kPreparationLockName = "prepare.lock";

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw IoError("cannot create", path, error.value());
}

[[noreturn]] void refuse_other_source(const fs::path& path) {
  throw InvalidArgument(
      fmt::format("the unfinished build is one of another source: '{}' is not as it was listed",
                  path.string()),
      "Give the same SOURCE to continue it, --overwrite to throw it away, or another OUT.");
}

bool is_as_listed(const fs::path& path, std::uint64_t bytes, std::int64_t time) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) == bytes && mtime_ns(status) == time;
}

void check_files(const Listing& listing, const fs::path& root) {
  tbb::parallel_for(std::size_t{0}, listing.size(), [&](std::size_t i) {
    const ListedFile listed = listing[i];
    if (!is_as_listed(root / listed.path, listed.size, listed.mtime_ns)) {
      refuse_other_source(root / listed.path);
    }
  });
}

/// That the shards at `root` are those of the source, wherever they are now. A stream was copied
/// and is not looked at again.
void check_shards(Source& source, const fs::path& root) {
  const SourcePath now = resolve_source(root);
  const auto files = now.kind == SourcePath::Kind::kFolder ? shards_in_folder(root) : now.files;
  const bool is_stream = now.kind == SourcePath::Kind::kStream;
  if (files.size() != source.shards.size() || is_stream != source.shards.front().is_stream()) {
    refuse_other_source(root);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    SourceShard& shard = source.shards[i];
    if (!is_stream && !is_as_listed(files[i], shard.given.bytes, shard.given.mtime_ns)) {
      refuse_other_source(files[i]);
    }
    if (!shard.is_copied()) {
      shard.data.path = files[i];
    } else if (!is_as_listed(shard.data.path, shard.data.bytes, shard.data.mtime_ns)) {
      throw IoError("the copy has changed since it was made:", shard.data.path, 0,
                    "Start over with --overwrite.");
    }
    shard.given.path = files[i];
  }
}

// Which options differ, for a message.
std::string differences(const Json& now, const Json& before) {
  std::string text;
  for (const auto& [key, value] : now.items()) {
    const auto other = before.contains(key) ? before.at(key) : Json();
    if (other != value)
      text += fmt::format("{}{} is {}, was {}", text.empty() ? "" : "; ", key, value.dump(),
                          other.dump());
  }
  return text;
}

}  // namespace

WorkFolder::WorkFolder(const fs::path& out, const std::string& split, bool shared)
    : root_(out / kWorkFolderName),
      folder_(root_ / split),
      shared_(shared),
      made_out_(!fs::exists(out)) {
  for (;;) {
    create_folder(root_);
    try {
      lock_ = File(root_ / kLockName, O_RDWR | O_CREAT);
    } catch (const IoError& error) {
      if (error.code() == ENOENT) continue;  // a build that just ended has removed the folder
      throw;
    }
    if (!lock_.try_lock(!shared)) {
      throw IoError("another process is writing to", out, 0,
                    "Wait for it to end, or work in another folder.");
    }
    if (lock_.is_at_path()) return;  // else it was removed together with the folder
  }
}

WorkFolder::~WorkFolder() {
  if (!is_prepared()) remove_quietly();
}

File WorkFolder::lock_preparation() const {
  create_folder(folder_);
  File file(folder_ / kPreparationLockName, O_RDWR | O_CREAT);
  file.lock();
  return file;
}

fs::path WorkFolder::folder_for_copies() const {
  create_folder(folder_);
  if (!is_prepared()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.is_directory(ignored)) fs::remove_all(entry.path());
    }
  }
  return folder_;
}

void WorkFolder::freeze(const std::string& identity, const Source& source,
                        const fs::path& root) const {
  // What an earlier build that was thrown away has left must not pass for results of this one. The
  // job goes first: without it nothing else counts.
  fs::remove(folder_ / "job.json");
  std::set<fs::path> kept{folder_ / kPreparationLockName};
  for (const SourceShard& shard : source.shards) {
    if (shard.is_copied()) kept.insert(shard.data.path.parent_path());
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (!kept.contains(entry.path())) fs::remove_all(entry.path());
  }
  source.listing.save(folder_ / "listing");
  const Json job = {
      {"identity", Json::parse(identity)},
      {"source", source.shards.empty() ? fs::canonical(root).string() : root.string()},
      {"samples", to_json(source, folder_)}};
  write_file_atomically(folder_ / "job.json",
                        job.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Source WorkFolder::load(const std::string& identity, const fs::path& root) const {
  const auto path = folder_ / "job.json";
  Source source;
  Json before;
  std::string frozen_root;
  try {
    const Json job = Json::parse(as_text(read_file(path)));
    before = job.at("identity");
    frozen_root = job.at("source").get<std::string>();
    source = source_of_json(job.at("samples"), folder_);
  } catch (const Json::exception& error) {
    throw CorruptData(path, 0, error.what());
  }
  if (const std::string text = differences(Json::parse(identity), before); !text.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' holds an unfinished build with other options: {}",
                    root_.parent_path().string(), text),
        "Give the same options to continue it, --overwrite to throw it away, or another OUT.");
  }
  source.listing = Listing::load(folder_ / "listing");
  if (!source.shards.empty()) {
    check_shards(source, root);
  } else if (!fs::is_directory(root)) {
    refuse_other_source(root);
  } else if (frozen_root != fs::canonical(root).string()) {
    // Another machine may have the source elsewhere; another source would go unnoticed where no
    // shard is left to do.
    check_files(source.listing, root);
  }
  return source;
}

fs::path WorkFolder::temporary(std::uint64_t shard) const {
  return folder_ / fmt::format("{:06}.part", shard);
}

std::optional<ShardResult> WorkFolder::result(std::uint64_t shard,
                                              const fs::path& final_path) const {
  const auto path = folder_ / fmt::format("{:06}.json", shard);
  if (!fs::exists(path)) return std::nullopt;
  ShardResult result = ShardResult::from_json(as_text(read_file(path)), path);
  std::error_code error;
  if (fs::file_size(final_path, error) != result.entry.bytes || error) return std::nullopt;
  result.entry.file = final_path.filename().string();
  return result;
}

void WorkFolder::save_result(std::uint64_t shard, const ShardResult& result) const {
  write_file_atomically(folder_ / fmt::format("{:06}.json", shard), result.to_json());
}

void WorkFolder::remove() {
  // Parts share the folder; the exclusive lock of --finish is what makes removing it safe.
  if (!shared_) remove_quietly();
}

void WorkFolder::remove_quietly() {
  if (shared_ || std::exchange(removed_, true)) return;
  std::error_code error;  // what cannot be removed does no harm
  fs::remove_all(folder_, error);
  for (const auto& entry : fs::directory_iterator(root_, error)) {
    if (entry.path().filename() != kLockName) return;
  }
  fs::remove(root_ / kLockName, error);
  fs::remove(root_, error);
  if (made_out_) fs::remove(root_.parent_path(), error);  // fails, rightly, if anything is in it
}

}  // namespace precache
