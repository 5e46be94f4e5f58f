// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "formats/bytes/number_text.hpp"
#include "formats/bytes/utf8.hpp"
#include "precache/tools/inspect.hpp"

namespace precache {
namespace {

constexpr std::size_t kLongestName = 40;
constexpr std::size_t kFieldRows = 100;  // of messages

std::string name_text(const std::string& text) {
  return text.empty() ? "(none)" : shortened(printable(text), kLongestName);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

/// Shortened at its beginning, because the end of a path says more.
std::string shortened_front(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : "..." + text.substr(text.size() - most + 3);
}

std::string range_text(const ValueRange& range,
                       const std::function<std::string(std::uint64_t)>& text) {
  if (range.count == 0) return "-";
  if (range.smallest == range.largest) return text(range.smallest);
  return text(range.smallest) + " to " + text(range.largest);
}

std::string size_range(const ValueRange& range) { return range_text(range, size_text); }

/// Limits the rows of a table, and notes the rest.
FactTable limited(FactTable table, std::size_t most_rows, bool has_more = false) {
  const std::size_t rows = table.rows.size();
  if (rows > most_rows) {
    table.rows.resize(most_rows);
    table.note = fmt::format("{} more{}", human::count(rows - most_rows),
                             has_more ? ", and others that were not listed" : "");
  } else if (has_more) {
    table.note = "and others that were not listed";
  }
  return table;
}

FactTable splits_table(const Inspection& facts) {
  FactTable table{"splits", {"split", "samples", "files", "bytes", "skipped", "order"}, {}, 1, {}};
  for (const SplitFacts& split : facts.splits) {
    table.rows.push_back(
        {name_text(split.name), human::count(split.samples), human::count(split.files),
         size_text(split.bytes), human::count(split.skipped),
         split.shuffled ? fmt::format("shuffled, seed {}", split.seed) : "as in the source"});
  }
  return table;
}

FactTable classes_table(const ClassFacts& classes) {
  FactTable table{"classes", {"class", "label", "samples", "share"}, {}, 1, {}};
  std::vector<ClassCount> counts = classes.counts;
  std::ranges::stable_sort(counts, std::greater{}, &ClassCount::samples);
  std::uint64_t labelled = 0;
  for (const ClassCount& count : counts) labelled += count.samples;
  for (const ClassCount& count : counts) {
    const double share =
        labelled == 0 ? 0
                      : 100.0 * static_cast<double>(count.samples) / static_cast<double>(labelled);
    table.rows.push_back({count.name.empty() ? "-" : name_text(count.name),
                          fmt::format("{}", count.label), human::count(count.samples),
                          fmt::format("{:.1f} %", share)});
  }
  return table;
}

FactTable values_table(const ValueFacts& values) {
  FactTable table{"values", {"channel", "min", "max", "mean", "std"}, {}, 1, {}};
  const bool has_gaps = std::ranges::any_of(
      values.channels, [](const ChannelFacts& channel) { return channel.non_finite != 0; });
  if (has_gaps) table.head.emplace_back("not finite");
  for (const ChannelFacts& channel : values.channels) {
    auto& row = table.rows.emplace_back();
    row.push_back(fmt::format("{}", table.rows.size() - 1));
    for (const double value : {channel.min, channel.max, channel.mean, channel.std}) {
      row.push_back(fmt::format("{:.4g}", value));
    }
    if (has_gaps) row.push_back(human::count(channel.non_finite));
  }
  return table;
}

FactTable entries_table(const TarContents& tar) {
  FactTable table{"entries", {"extension", "files", "bytes"}, {}, 1, {}};
  for (const auto& extension : tar.extensions) {
    table.rows.push_back({name_text("." + extension.name), human::count(extension.bytes.count),
                          size_range(extension.bytes)});
  }
  const auto add = [&](const char* what, std::uint64_t count) {
    if (count != 0) table.rows.push_back({what, human::count(count), "-"});
  };
  add("(in no sample)", tar.ungrouped_files);
  add("(directories)", tar.directories);
  add("(links)", tar.links);
  add("(sparse files)", tar.sparse_files);
  add("(other entries)", tar.others);
  return table;
}

FactTable groups_table(const TarContents& tar) {
  FactTable table{"grouping", {"files of a sample", "samples"}, {}, 1, {}};
  for (const auto& pattern : tar.patterns) {
    std::string text;
    for (const std::string& extension : pattern.extensions) {
      text += (text.empty() ? "." : " + .") + extension;
    }
    table.rows.push_back({name_text(text), human::count(pattern.samples)});
  }
  return table;
}

/// Features of Examples, or fields of other messages; `name_and_type` returns the first two cells.
template <typename Field, typename NameAndType>
FactTable fields_table(const char* title, const char* noun, const std::vector<Field>& fields,
                       const NameAndType& name_and_type) {
  FactTable table{title, {noun, "type", "content", "records", "values", "bytes"}, {}, 3, {}};
  for (const Field& field : fields) {
    const auto [name, type] = name_and_type(field);
    table.rows.push_back({name, type, or_dash(field.content), human::count(field.records),
                          count_range(field.values), size_range(field.bytes)});
  }
  return table;
}

FactTable features_table(const TfrecordContents& tfrecord) {
  return fields_table("features", "feature", tfrecord.features, [](const auto& feature) {
    return std::pair(name_text(feature.name), feature.kind + (feature.is_sequence ? " list" : ""));
  });
}

FactTable messages_table(const MessageContents& messages) {
  return fields_table("fields", "field", messages.fields, [](const auto& field) {
    return std::pair(shortened_front(printable(field.path), kLongestName),
                     shortened(printable(field.type), kLongestName));
  });
}

FactTable records_table(const TfrecordContents& tfrecord) {
  FactTable table{"records", {"kind", "records", "bytes"}, {}, 1, {}};
  const auto add = [&](const char* kind, std::uint64_t count) {
    if (count != 0) table.rows.push_back({kind, human::count(count), "-"});
  };
  add("tf.train.Example", tfrecord.examples);
  add("tf.train.SequenceExample", tfrecord.sequence_examples);
  const std::uint64_t others = tfrecord.records - tfrecord.examples - tfrecord.sequence_examples;
  if (tfrecord.messages && !tfrecord.messages->message.empty()) {
    add(printable(tfrecord.messages->message).c_str(), tfrecord.messages->records);
    add("not such a message", tfrecord.messages->malformed);
  } else if (tfrecord.messages) {
    add("protobuf message", tfrecord.messages->records);
    add("of another kind", others - tfrecord.messages->records);
  } else {
    add("of another kind", others);
  }
  if (table.rows.size() == 1) table.rows[0][2] = size_range(tfrecord.record_bytes);
  return table;
}

FactTable tree_table(const Hdf5Contents& hdf5) {
  FactTable table{"objects", {"name", "type", "storage", "filters", "shape", "stored"}, {}, 4, {}};
  for (const auto& object : hdf5.objects) {
    const bool is_dataset = object.kind == "dataset";
    std::string type = is_dataset ? object.type : object.kind;
    if (type.ends_with("link") && !object.target.empty()) {
      type = shortened(fmt::format("{} to {}", type, printable(object.target)), kLongestName);
    }
    std::string storage = object.storage;
    if (!object.chunk.empty()) storage += fmt::format(" {}", fmt::join(object.chunk, "x"));
    table.rows.push_back({name_text("/" + object.name), type, or_dash(storage),
                          or_dash(fmt::format("{}", fmt::join(object.filters, ", "))),
                          or_dash(fmt::format("{}", fmt::join(object.shape, "x"))),
                          is_dataset ? size_text(object.stored_bytes) : "-"});
  }
  return table;
}

}  // namespace

std::string count_range(const ValueRange& range) {
  return range_text(range, [](std::uint64_t value) { return human::count(value); });
}

std::vector<FactTable> fact_tables(const Inspection& facts, std::size_t most_rows) {
  std::vector<FactTable> tables;
  const auto add = [&](FactTable table, bool has_more = false) {
    if (!table.rows.empty()) tables.push_back(limited(std::move(table), most_rows, has_more));
  };
  add(splits_table(facts));
  if (facts.classes) add(classes_table(*facts.classes), facts.classes->uncounted != 0);
  if (facts.values) add(values_table(*facts.values));
  if (facts.tar) {
    add(entries_table(*facts.tar), facts.tar->has_more);
    add(groups_table(*facts.tar), facts.tar->has_more);
  }
  if (facts.tfrecord) {
    add(records_table(*facts.tfrecord));
    add(features_table(*facts.tfrecord), facts.tfrecord->has_more);
    if (const auto& messages = facts.tfrecord->messages; messages && !messages->fields.empty()) {
      // More rows, because `build` takes these paths as arguments.
      tables.push_back(
          limited(messages_table(*messages), std::max(most_rows, kFieldRows), messages->has_more));
    }
  }
  if (facts.hdf5) add(tree_table(*facts.hdf5), facts.hdf5->has_more);
  return tables;
}

}  // namespace precache
