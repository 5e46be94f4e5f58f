// SPDX-License-Identifier: Apache-2.0
#include "convert/pictures/page_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "formats/bytes/number_text.hpp"
#include "formats/bytes/utf8.hpp"

namespace precache::page {
namespace {

constexpr std::size_t kMostNamedBars = 40;
constexpr std::size_t kMostSpacedBars = 200;
constexpr std::size_t kMostRankedBars = 600;  // more have no pixel of their own

std::string class_name(const ClassCount& count) {
  return count.name.empty() ? fmt::format("{}", count.label) : count.name;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// A row with name, bar and number for each class.
std::string named_bars(const ClassFacts& classes, std::uint64_t most) {
  std::string html = "<div class=\"bars\">\n";
  for (const ClassCount& count : classes.counts) {
    const std::string name = escaped(class_name(count));
    html += fmt::format(
        "<span class=\"name\" title=\"{0}\">{0}</span><span class=\"track\"><span class=\"bar\" "
        "style=\"width:{1:.2f}%\"></span></span><span class=\"number\">{2}</span>\n",
        name, 100 * share(count.samples, most), human::count(count.samples));
  }
  return html + "</div>\n";
}

/// Bars from the largest class to the smallest, each for one class or some neighbours' mean.
std::string ranked_bars(const ClassFacts& classes, std::uint64_t most) {
  std::vector<const ClassCount*> order;
  for (const ClassCount& count : classes.counts) order.push_back(&count);
  std::ranges::stable_sort(order, std::greater{},
                           [](const ClassCount* count) { return count->samples; });
  const std::size_t bars = std::min(order.size(), kMostRankedBars);
  std::string path;
  for (std::size_t i = 0; i < bars; ++i) {
    const std::size_t begin = i * order.size() / bars;
    const std::size_t end = (i + 1) * order.size() / bars;
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += share(order[k]->samples, most);
    const double height = 100 * sum / static_cast<double>(end - begin);
    path += fmt::format("M{0} 100V{1:.2f}H{2}V100Z", i, 100 - height,
                        static_cast<double>(i) + (bars <= kMostSpacedBars ? 0.8 : 1));
  }
  const auto label = [](const ClassCount& count) {
    return fmt::format("<b>{}</b> {}", escaped(class_name(count)), human::count(count.samples));
  };
  return fmt::format(
      "<svg class=\"ranked\" viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"Samples by class, the largest first\"><path class=\"area\" d=\"{}\"/></svg>\n"
      "<div class=\"axis\"><span>most: {}</span><span>median: {}</span><span>fewest: "
      "{}</span></div>\n",
      bars, path, label(*order.front()), label(*order[order.size() / 2]), label(*order.back()));
}

std::string channel_name(std::size_t channel, std::size_t channels) {
  static constexpr std::array kColors{"red", "green", "blue"};
  if (channels == 3) return kColors[channel];
  return channels == 1 ? "all values" : fmt::format("channel {}", channel);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char letter : printable(text)) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += letter;
    }
  }
  return html;
}

std::string class_chart(const ClassFacts& classes) {
  if (classes.counts.empty()) return {};
  const auto [fewest, most] = std::ranges::minmax_element(classes.counts, {}, &ClassCount::samples);
  if (classes.counts.size() <= kMostNamedBars) return named_bars(classes, most->samples);
  // Many equal bars would be one block.
  return fewest->samples == most->samples ? "" : ranked_bars(classes, most->samples);
}

std::string value_charts(const ValueFacts& values) {
  std::string html = "<div class=\"charts\">\n";
  for (std::size_t i = 0; i < values.channels.size(); ++i) {
    const ChannelFacts& channel = values.channels[i];
    if (channel.histogram.empty()) continue;
    const std::uint64_t most = std::ranges::max(channel.histogram);
    std::string path;
    for (std::size_t bin = 0; bin < channel.histogram.size(); ++bin) {
      path += fmt::format("M{0} 100V{1:.2f}H{2}V100Z", bin,
                          100 - 100 * share(channel.histogram[bin], most), bin + 1);
    }
    const double bins = static_cast<double>(channel.histogram.size());
    const double width = values.high > values.low ? values.high - values.low : 1;
    const double mean = std::clamp((channel.mean - values.low) / width * bins, 0.0, bins);
    const std::string name = channel_name(i, values.channels.size());
    const std::string color = values.channels.size() == 3 ? name : "area";
    // The range of bytes ends at 255; 256 is where its last step would.
    const double last = values.high == 256 && values.low == 0 ? 255 : values.high;
    html += fmt::format(
        "<figure><figcaption><b>{0}</b> mean {1:.4g}, std {2:.4g}</figcaption>"
        "<svg viewBox=\"0 0 {3} 100\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"Histogram of {0}\"><path class=\"{4}\" d=\"{5}\"/><path class=\"mean\" "
        "d=\"M{6:.2f} 0V100\"/></svg><div class=\"axis\"><span>{7:.4g}</span><span>{8:.4g}"
        "</span></div></figure>\n",
        name, channel.mean, channel.std, bins, color, path, mean, values.low, last);
  }
  return html + "</div>\n";
}

}  // namespace precache::page
