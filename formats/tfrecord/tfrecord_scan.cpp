// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/index_builder.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tfrecord/tfrecord_finder.hpp"
#include "precache/formats/error.hpp"

namespace precache::tfrecord {
namespace {

using Kind = ValueLocation::Kind;

/// Makes an index from the records of a file.
class Indexer {
 public:
  Indexer(std::span<const std::byte> file, const std::filesystem::path& path,
          const std::optional<TensorSpec>& given, const SampleKeys& keys)
      : file_(file),
        path_(path),
        keys_(keys),
        finder_(file, path, keys),
        builder_(Format::kTfrecord, file.size(), path, given) {}

  ShardIndex run() && {
    while (const FoundRecord* const found = finder_.next()) take(*found);
    return std::move(builder_).finish();
  }

 private:
  void take(const FoundRecord& found) {
    FoundSample sample{.record = found.record.begin,
                       .record_end = found.record.end,
                       .payload = offset_of(found.payload.data()),
                       .payload_bytes = found.payload.size(),
                       .spec = found.spec};
    if (!found.spec) explain(found, sample);
    if (found.kind == MessageKind::kExample) {
      take_label(found.label, sample);
      if (builder_.samples() == 0) {
        for (const std::string_view name : finder_.other_names()) builder_.note_left_out(name);
      }
    }
    if (found.key != nullptr) {
      sample.key = as_text(found.key->bytes);
      sample.key_spot = {Kind::kColumn, offset_of(found.key->encoded), "bytes"};
    }
    builder_.add(sample);
  }

  /// Says why there is no spec.
  void explain(const FoundRecord& found, FoundSample& sample) const {
    const std::string record = fmt::format("record {}", builder_.samples());
    if (!found.image_kind.empty()) {
      sample.unsupported_reason = fmt::format("its samples are {} files", found.image_kind);
    } else if (found.kind != MessageKind::kExample) {
      sample.unsupported_reason = record + " is not a tf.train.Example";
    } else if (found.has_image) {
      sample.shape_unknown = true;
      sample.unsupported_reason =
          "its samples are raw bytes of unknown shape: no features 'height', 'width' and "
          "'channels', "
          "or 'shape', match their number";
    } else if (finder_.image_name().empty()) {
      sample.unsupported_reason = record + " has no feature with bytes";
    } else {
      if (!keys_.image.empty()) refuse_without(keys_.image);
      sample.unsupported_reason =
          fmt::format("{} has no feature '{}'", record, finder_.image_name());
    }
  }

  [[noreturn]] void refuse_without(const std::string& feature) const {
    throw InvalidArgument(fmt::format("record {} of '{}' has no feature '{}'", builder_.samples(),
                                      path_.string(), feature));
  }

  void take_label(const Feature* label, FoundSample& sample) {
    if (label == nullptr) {
      if (!keys_.label.empty() && !keys_.without_labels) refuse_without(keys_.label);
      return;
    }
    if (const std::string unfit = unfit_label(*label); !unfit.empty()) {
      return builder_.note_unfit_labels(fmt::format("{} in record {}", unfit, builder_.samples()));
    }
    if (label->kind == FeatureKind::kIntegers) {
      sample.label = label->integers[0];
      sample.label_spot = {Kind::kColumn, offset_of(label->encoded), "varint"};
      return;
    }
    const std::string_view text = trimmed(as_text(label->bytes));
    if (const auto number = parse_number<std::int64_t>(text)) {
      sample.label = *number;
      sample.label_spot.kind = Kind::kElsewhere;
    } else {
      sample.label_name = text;
    }
  }

  [[nodiscard]] std::uint64_t offset_of(const std::byte* place) const {
    return static_cast<std::uint64_t>(place - file_.data());
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  const SampleKeys& keys_;
  SampleFinder finder_;
  IndexBuilder builder_;
};

}  // namespace

ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                const std::optional<TensorSpec>& given, const SampleKeys& keys) {
  return Indexer(file, path, given, keys).run();
}

}  // namespace precache::tfrecord
