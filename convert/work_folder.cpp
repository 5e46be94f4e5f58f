// SPDX-License-Identifier: Apache-2.0
#include "convert/work_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw IoError("cannot create", path, error.value());
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
    : root_(out / ".precache"),
      folder_(root_ / split),
      shared_(shared),
      made_out_(!fs::exists(out)) {
  for (;;) {
    create_folder(root_);
    lock_ = File(root_ / "lock", O_RDWR | O_CREAT);
    if (!lock_.try_lock(!shared)) {
      throw IoError("another build is writing to", out, 0,
                    "Wait for it to end, or choose another OUT.");
    }
    if (lock_.is_at_path()) return;  // else a build that just ended has removed the folder
  }
}

WorkFolder::~WorkFolder() {
  if (shared_ || is_prepared()) return;
  std::error_code error;
  fs::remove_all(folder_, error);
  remove_root();
  if (made_out_) fs::remove(root_.parent_path(), error);  // fails, rightly, if anything is in it
}

File WorkFolder::lock_preparation() const {
  create_folder(folder_);
  File file(folder_ / "prepare.lock", O_RDWR | O_CREAT);
  file.lock();
  return file;
}

void WorkFolder::freeze(const std::string& identity, const Source& source) const {
  create_folder(folder_);
  source.listing.save(folder_ / "listing");
  const Json job = {{"identity", Json::parse(identity)},
                    {"classes", source.classes},
                    {"left_out", source.left_out}};
  write_file_atomically(folder_ / "job.json", job.dump(2) + "\n");
}

Source WorkFolder::load(const std::string& identity) const {
  const auto path = folder_ / "job.json";
  Source source;
  Json before;
  try {
    const Json job = Json::parse(as_text(read_file(path)));
    before = job.at("identity");
    source.classes = job.at("classes").get<std::vector<std::string>>();
    source.left_out = job.at("left_out").get<LeftOut>();
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

void WorkFolder::clear() {
  std::error_code error;
  fs::remove_all(folder_, error);
  if (error) throw IoError("cannot remove", folder_, error.value());
}

void WorkFolder::remove() {
  clear();
  remove_root();
}

void WorkFolder::remove_root() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_, error)) {
    if (entry.path().filename() != "lock") return;
  }
  fs::remove(root_ / "lock", error);
  fs::remove(root_, error);  // if it fails, an empty folder stays: no harm
}

}  // namespace precache
