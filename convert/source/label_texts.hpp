// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace precache {

/// Numbers of class names.
class ClassNumbers {
 public:
  explicit ClassNumbers(const std::vector<std::string>& classes);
  /// `where` is for the message. Throws InvalidArgument if there is no such class.
  [[nodiscard]] std::int64_t of(const std::string& name, const std::string& where) const;

 private:
  std::unordered_map<std::string, std::int64_t> numbers_;
};

/// Whether a text is a list of labels rather than one class name: `ant;red`, `ant|red`, `[1]`,
/// `1 5 7`. Names may have spaces and commas.
[[nodiscard]] bool is_label_list(std::string_view text);

/// The labels of samples as a source writes them: all integers, or all names of classes.
class LabelTexts {
 public:
  struct Numbers {
    std::vector<std::string> classes;  // as given, or the names sorted; empty of plain integers
    std::vector<std::int64_t> labels;  // by sample
  };
  /// Says where the label of a sample comes from, for messages.
  using Where = std::function<std::string(std::size_t sample)>;

  /// Adds the label of the next sample.
  void add(std::string_view text);
  void append(const LabelTexts& other);
  [[nodiscard]] std::size_t size() const { return samples_.size(); }
  [[nodiscard]] std::string_view text(std::size_t sample) const {
    return texts_[samples_[sample]].text;
  }

  /// `classes` fixes the names by number; if empty they come from the labels. Throws
  /// InvalidArgument for names among integers, for other numbers that are not fixed classes, and
  /// for a label that is not one of the fixed classes.
  [[nodiscard]] Numbers number(const std::vector<std::string>& classes, const Where& where) const;

 private:
  struct Text {
    std::string text;
    std::size_t first_sample;
  };
  std::vector<Text> texts_;  // in the order in which they came
  std::unordered_map<std::string, std::uint32_t> known_;
  std::vector<std::uint32_t> samples_;  // the text of each
};

}  // namespace precache
