// SPDX-License-Identifier: Apache-2.0
#include "convert/job/skipped_report.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "convert/sidecars/sidecar_file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "skipped.tsv";
constexpr std::string_view kHeader = "split\tpath\tstage\treason\n";
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Calls `use` with each line of a file but the first, and its line end.
template <typename Use>
void for_each_line(const fs::path& path, const Use& use) {
  if (!fs::exists(path)) return;
  const File file(path, O_RDONLY);
  const std::uint64_t size = file.size();
  std::string rest;
  bool is_header = true;
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t kept = rest.size();
    const std::size_t count = std::min<std::uint64_t>(kPiece, size - at);
    rest.resize(kept + count);
    file.read_at(at, std::as_writable_bytes(std::span(rest)).subspan(kept));
    at += count;
    if (at == size && !rest.ends_with('\n')) rest += '\n';
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos;
         end = rest.find('\n', begin)) {
      if (!std::exchange(is_header, false)) {
        use(std::string_view(rest).substr(begin, end + 1 - begin));
      }
      begin = end + 1;
    }
    rest.erase(0, begin);
  }
}

}  // namespace

std::string tsv_escaped(std::string_view text) {
  constexpr std::string_view kEscaped = "\t\n\r\\";
  constexpr std::string_view kLetters = "tnr\\";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t at = kEscaped.find(c); at != std::string_view::npos) {
      result += {'\\', kLetters[at]};
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

SkippedReport::SkippedReport(const fs::path& folder, std::string split)
    : path_(folder / kName), split_(std::move(split)) {}

void SkippedReport::check(const fs::path& folder) {
  const auto head = head_of(folder / kName);
  if (!fs::is_directory(folder / kName) && (!head || head->starts_with(kHeader))) return;
  throw InvalidArgument(
      fmt::format("refusing to replace '{}': precache did not write it", (folder / kName).string()),
      "The report of skipped samples would get this name. Move the file away, or choose another "
      "`out`.");
}

void SkippedReport::flush() {
  if (buffer_.empty()) return;
  file_->file().write_at(written_, as_bytes(buffer_));
  written_ += buffer_.size();
  buffer_.clear();
}

void SkippedReport::begin() {
  file_ = std::make_unique<TemporaryFile>(path_);
  buffer_ = kHeader;
  // Other splits first, as they were there before.
  for_each_line(path_, [&](std::string_view other) {
    if (!other.starts_with(split_ + "\t")) add_line(other);
  });
}

void SkippedReport::add_line(std::string_view line) {
  if (!file_) begin();
  buffer_ += line;
  if (buffer_.size() >= kPiece) flush();
}

void SkippedReport::add(const SkippedSample& sample) {
  add_line(fmt::format("{}\t{}\t{}\t{}\n", split_, tsv_escaped(sample.path), name(sample.stage),
                       tsv_escaped(sample.reason)));
}

void SkippedReport::add_lines_of(const fs::path& folder) {
  for_each_line(folder / kName, [&](std::string_view line) {
    if (line.starts_with(split_ + "\t")) add_line(line);
  });
}

void SkippedReport::publish() {
  bool has_others = false;
  for_each_line(path_, [&](std::string_view other) {
    has_others = has_others || !other.starts_with(split_ + "\t");
  });
  if (!file_ && has_others) begin();
  if (file_) {
    flush();
    file_->commit();
    file_.reset();
  } else if (fs::exists(path_)) {
    remove_file(path_);
  }
}

bool SkippedReport::names(const std::string& lines, const std::string& path) {
  return lines.find("\t" + tsv_escaped(path) + "\t") != std::string::npos;
}

std::string SkippedReport::lines_of(const fs::path& folder, const std::string& split) {
  std::string lines;
  for_each_line(folder / kName, [&](std::string_view line) {
    if (line.starts_with(split + "\t")) lines += line;
  });
  return lines;
}

}  // namespace precache
