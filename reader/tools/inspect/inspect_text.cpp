// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/number_text.hpp"
#include "formats/bytes/utf8.hpp"
#include "precache/tools/inspect.hpp"

namespace precache {
namespace {

std::string samples_text(const Inspection& facts) {
  if (!facts.samples) return {};
  std::string text =
      fmt::format("{} in {}", human::count(*facts.samples), human::count(facts.files_read, "file"));
  if (facts.files_read < facts.files) {
    text += fmt::format("; {} were not read", human::count(facts.files - facts.files_read, "file"));
  }
  return text;
}

std::string tensor_text(const Inspection& facts) {
  if (!facts.spec) return {};
  const auto shape = facts.spec->shape();
  return fmt::format("{} {}x{}x{} ({}), {} each", name(facts.spec->dtype), shape[0], shape[1],
                     shape[2], name(facts.spec->layout), size_text(facts.spec->size_bytes()));
}

std::string access_text(const Inspection& facts) {
  const AccessFacts& access = facts.access;
  if (access.reason.empty()) return {};
  const bool is_view = access.batches == AccessFacts::Batches::kViews;
  std::string text = (is_view ? "zero-copy: " : "not zero-copy: ") + printable(access.reason);
  if (access.stride_bytes) {
    text += fmt::format("; stride {} bytes", human::count(*access.stride_bytes));
  }
  if (is_view && !access.stride_bytes && facts.samples.value_or(0) != 0) {
    text += "; strides differ between files";
  }
  if (access.alignment_bytes) {
    text += fmt::format("{} aligned to {}", access.stride_bytes ? "," : ";",
                        human::count(*access.alignment_bytes, "byte"));
  }
  return text;
}

std::string bytes_text(const Inspection& facts) {
  std::string text = size_text(facts.bytes);
  if (const auto overhead = facts.overhead_bytes()) {
    const double share =
        static_cast<double>(*overhead) / static_cast<double>(facts.bytes_read - *overhead);
    text += share < 1 ? fmt::format(", overhead {:.2f} %", 100 * share)
                      : fmt::format(", {} of them around the tensors", size_text(*overhead));
  }
  return text;
}

std::string read_text(std::uint64_t read, std::uint64_t total, bool is_complete,
                      const std::string& what) {
  if (is_complete) return fmt::format("all {} {}", human::count(total), what);
  return fmt::format("{} of {} {}", human::count(read), human::count(total), what);
}

std::string classes_text(const Inspection& facts) {
  if (!facts.classes || !facts.samples) return {};
  const ClassFacts& classes = *facts.classes;
  if (classes.unlabelled == classes.labels_read && classes.named == 0) {
    return classes.is_complete ? "none: samples have no labels" : "no labels among those read";
  }
  ValueRange samples;
  for (const ClassCount& count : classes.counts) samples.add(count.samples);
  const auto empty = static_cast<std::uint64_t>(
      std::ranges::count(classes.counts, std::uint64_t{0}, &ClassCount::samples));
  std::string text = human::count(classes.counts.size());
  if (classes.named == 0 && !classes.counts.empty()) {  // by label
    text = fmt::format("labels {} to {}, no names: {}", classes.counts.front().label,
                       classes.counts.back().label, text);
  }
  if (classes.uncounted != 0) text = "more than " + text;
  if (classes.is_complete) {
    text += samples.smallest == samples.largest
                ? fmt::format(", {} each", human::count(samples.largest, "sample"))
                : fmt::format(", {} samples each", count_range(samples));
  } else {
    text += fmt::format(" among {}",
                        read_text(classes.labels_read, *facts.samples, false, "labels read"));
  }
  if (empty != 0) {
    text += fmt::format("; {} without {}", human::count(empty),
                        classes.is_complete ? "samples" : "any there");
  }
  if (classes.unlabelled != 0) {
    text += fmt::format("; {} without a label", human::count(classes.unlabelled, "sample"));
  }
  return text;
}

std::string encoded_text(const Inspection& facts) {
  if (!facts.encoded || facts.encoded->bytes.count == 0) return {};
  const EncodedFacts& encoded = *facts.encoded;
  std::string text;
  for (const auto& [kind, count] : encoded.kinds) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", human::count(count),
                        kind == "other" ? "of an unknown kind" : kind);
  }
  text += fmt::format("; {} to {}, {} on average", size_text(encoded.bytes.smallest),
                      size_text(encoded.bytes.largest),
                      size_text(encoded.bytes.total / encoded.bytes.count));
  if (encoded.width.count != 0) {
    text += fmt::format("; {} pixels wide, {} high", count_range(encoded.width),
                        count_range(encoded.height));
  }
  if (!encoded.is_complete) {
    text += fmt::format(" ({} read)", human::count(encoded.samples_read, "sample"));
  }
  return text;
}

std::string keys_text(const Inspection& facts) {
  std::string text;
  for (const std::string& key : facts.first_keys) {
    if (key.empty()) continue;
    text += (text.empty() ? "" : ", ") + shortened(printable(key), 60);
  }
  if (!text.empty() && facts.samples && *facts.samples > facts.first_keys.size()) text += ", ...";
  return text;
}

/// The named columns of all splits; splits with other columns than the first are named.
std::string columns_text(const Inspection& facts) {
  std::string text;
  for (const SplitFacts& split : facts.splits) {
    if (&split != &facts.splits.front() && split.columns == facts.splits.front().columns) continue;
    std::string columns;
    for (const NamedColumn& column : split.columns) {
      columns += (columns.empty() ? "" : ", ") + column.text();
    }
    if (&split == &facts.splits.front()) {
      text = columns;
    } else {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", split.name,
                          columns.empty() ? "none" : columns);
    }
  }
  return text;
}

}  // namespace

std::string shortened(std::string_view text, std::size_t columns) {
  std::size_t letters = 0;
  std::size_t cut = 0;  // where the dots would begin
  for (std::size_t at = 0; at < text.size(); ++letters) {
    if (letters + 3 == columns) cut = at;
    at += std::max<std::size_t>(utf8_sequence_bytes(text.substr(at)), 1);
  }
  if (letters <= columns) return std::string(text);
  return std::string(text.substr(0, cut)) + std::string(std::min<std::size_t>(columns, 3), '.');
}

std::string headline(const Inspection& facts) {
  const std::string format = facts.format == "tfrecord" ? "TFRecord"
                             : facts.format == "hdf5"   ? "HDF5"
                                                        : facts.format;
  const std::string compressed =
      facts.compression.empty() ? "" : facts.compression + "-compressed ";
  switch (facts.kind) {
    case Inspection::Kind::kDataset:
      return fmt::format("precache dataset of {} shards", format);
    case Inspection::Kind::kShard:
      if (facts.has_manifest) return format + " shard of a precache dataset";
      return compressed + (format.empty() ? "file" : format + " shard");
    case Inspection::Kind::kShards:
      return fmt::format("{} {}{} shards", human::count(facts.files), compressed, format);
    case Inspection::Kind::kFile:
      break;
  }
  return facts.content.empty() ? "not a shard" : facts.content + ", not a shard";
}

std::vector<FactRow> fact_rows(const Inspection& facts) {
  std::vector<FactRow> rows;
  const auto add = [&](const char* title, std::string text) {
    if (!text.empty()) rows.push_back({title, std::move(text)});
  };
  add("samples", samples_text(facts));
  add("tensor", tensor_text(facts));
  const bool are_images =
      facts.encoded && (facts.encoded->kinds.size() > 1 || !facts.encoded->kinds.contains("other"));
  add(are_images ? "images" : "payloads", encoded_text(facts));
  add("columns", columns_text(facts));
  add("access", access_text(facts));
  add("bytes", bytes_text(facts));
  add("classes", classes_text(facts));
  add("recipe", facts.recipe ? printable(facts.recipe->text()) : "");
  add("keys", keys_text(facts));
  if (facts.values && facts.samples) {
    add("values", read_text(facts.values->samples_read, *facts.samples, facts.values->is_complete,
                            facts.values->is_decoded ? "samples decoded" : "samples read"));
  }
  if ((facts.tar || facts.tfrecord || facts.hdf5) && !facts.contents_extent.empty()) {
    add("contents", "of " + facts.contents_extent);
  }
  for (const std::string& reason : facts.unsupported_reasons) {
    if (reason != facts.access.reason) add("note", printable(reason));
  }
  for (const ShardFault& fault : facts.faults) {
    const std::string byte = fault.offset ? fmt::format("byte {}: ", *fault.offset) : "";
    add("damaged", printable(fmt::format("{}: {}{}", fault.file.string(), byte, fault.reason)));
  }
  return rows;
}

}  // namespace precache
