// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "convert/pictures/painting.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/bytes/utf8.hpp"
#include "precache/convert/pictures.hpp"
#include "precache/tools/inspect.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostRows = 1000;
constexpr std::size_t kMostOpenRows = 12;  // longer tables are folded
constexpr std::size_t kMostNamedBars = 40;
constexpr std::size_t kMostSpacedBars = 200;
constexpr std::size_t kMostRankedBars = 600;  // more would share pixels

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--paper:#f6f7f9;--card:#fff;--line:#e2e5ea;--ink:#1d2127;--faint:#667080;
--accent:#3569c9;--track:#eceff4;--bad:#b3261e;--bad-paper:#fdecea;--warn:#7a5200;--warn-paper:#fff4dc;
--red:#d0524a;--green:#3f9a5b;--blue:#4272cf}
@media(prefers-color-scheme:dark){:root{--paper:#14161a;--card:#1c1f25;--line:#2e333c;--ink:#e7e9ee;
--faint:#98a1b0;--accent:#7aa5f5;--track:#2a2f38;--bad:#ffb4ab;--bad-paper:#3b1d1b;--warn:#f0c36d;
--warn-paper:#33290f;--red:#ea7b73;--green:#64bd80;--blue:#7ca3f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 24px 48px}
header{margin:0 0 20px}
h1{font-size:24px;line-height:1.3;margin:0;overflow-wrap:anywhere;letter-spacing:-.01em}
h2{font-size:13px;margin:0 0 14px;color:var(--faint);font-weight:600;text-transform:uppercase;
letter-spacing:.06em}
h2 small{font-weight:400;text-transform:none;letter-spacing:0;font-size:13px;margin-left:8px}
.kind{color:var(--faint);margin:2px 0 0}
section,.fact{background:var(--card);border:1px solid var(--line);border-radius:10px}
section{padding:20px 22px;margin:16px 0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:16px;margin:16px 0}
.fact{padding:14px 18px}
.fact b{display:block;font-size:22px;font-weight:600;letter-spacing:-.01em;white-space:nowrap}
.fact span{color:var(--faint);font-size:13px}
dl{display:grid;grid-template-columns:96px 1fr;gap:8px 16px;margin:0}
dt{color:var(--faint)}
dd{margin:0;overflow-wrap:anywhere}
.note{padding:10px 14px;border-radius:8px;margin:12px 0;overflow-wrap:anywhere;background:var(--warn-paper);
  color:var(--warn)}
.damaged{background:var(--bad-paper);color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:18px 14px}
.tile{min-width:0}
.tile .frame{aspect-ratio:1;background:var(--track);border-radius:6px;overflow:hidden;display:flex;
align-items:center;justify-content:center;color:var(--faint);font-size:13px;text-align:center}
.tile img{width:100%;height:100%;object-fit:contain;display:block}
.tile img.small{image-rendering:pixelated}
.tile b,.tile span{display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.tile b{margin-top:6px;font-weight:600;font-size:14px}
.tile span{color:var(--faint);font-size:12px}
.bars{display:grid;grid-template-columns:minmax(0,max-content) 1fr max-content;gap:5px 14px;
align-items:center;font-size:14px}
.bars .name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;max-width:320px}
.track{background:var(--track);border-radius:3px;height:14px;overflow:hidden}
.bar{display:block;height:100%;background:var(--accent);border-radius:3px}
.number{text-align:right;font-variant-numeric:tabular-nums}
svg{display:block;width:100%}
svg.ranked{height:180px;border-bottom:1px solid var(--line)}
.area{fill:var(--accent)}.red{fill:var(--red)}.green{fill:var(--green)}.blue{fill:var(--blue)}
.mean{fill:none;stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3;vector-effect:non-scaling-stroke}
.axis{display:flex;justify-content:space-between;gap:12px;flex-wrap:wrap;color:var(--faint);
font-size:13px;margin-top:6px}
.axis b{color:var(--ink);font-weight:600}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:22px}
figure{margin:0}
figcaption{font-size:13px;color:var(--faint);margin-bottom:8px}
figcaption b{color:var(--ink)}
figure svg{height:120px;border-bottom:1px solid var(--line)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;min-width:55%;font-size:14px}
.charts+.scroll{margin-top:18px}
th,td{padding:6px 0 6px 28px;border-bottom:1px solid var(--line);text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}
th{color:var(--faint);font-weight:500}
.word{text-align:left}th:first-child,td:first-child{padding-left:0}
tr:last-child td{border-bottom:0}
details{margin-top:14px}
summary{cursor:pointer;color:var(--accent);font-size:14px;margin-bottom:8px}
footer{color:var(--faint);font-size:13px;margin-top:24px}
)";

/// Text as HTML, with control characters made visible.
std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr std::array kEntities{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string html;
  for (const char letter : printable(text)) {
    const std::size_t at = kSpecial.find(letter);
    html += at == std::string_view::npos ? std::string(1, letter) : kEntities[at];
  }
  return html;
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool is_filling = i + k > bytes.size();
      text += is_filling ? '=' : kDigits[bits >> (18 - 6 * k) & 63U];
    }
  }
  return text;
}

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

/// Bars from the largest class to the smallest, each for one class or the mean of some neighbours.
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
  static constexpr std::array kNames{"red", "green", "blue"};
  if (channels == 3) return kNames[channel];
  return channels == 1 ? "all values" : fmt::format("channel {}", channel);
}

/// A bar for each class; for many classes, bars by rank.
std::string class_chart(const ClassFacts& classes) {
  if (classes.counts.empty()) return {};
  const auto [fewest, most] = std::ranges::minmax_element(classes.counts, {}, &ClassCount::samples);
  if (classes.counts.size() <= kMostNamedBars) return named_bars(classes, most->samples);
  // Many equal bars would be one block.
  return fewest->samples == most->samples ? "" : ranked_bars(classes, most->samples);
}

/// A histogram for each channel.
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
    // The last bin of bytes ends at 256, but their range ends at 255.
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

std::string section(std::string_view title, std::string_view detail, std::string_view body) {
  if (body.empty()) return {};
  const std::string small = detail.empty() ? "" : fmt::format("<small>{}</small>", escaped(detail));
  return fmt::format("<section><h2>{}{}</h2>\n{}</section>\n", escaped(title), small, body);
}

/// The most important numbers, large.
std::string figures(const Inspection& facts) {
  std::string html;
  const auto add = [&](const std::string& number, const std::string& what) {
    html += fmt::format("<div class=\"fact\"><b>{}</b><span>{}</span></div>\n", escaped(number),
                        escaped(what));
  };
  if (facts.samples) add(human::count(*facts.samples), *facts.samples == 1 ? "sample" : "samples");
  if (facts.spec) {
    const auto shape = facts.spec->shape();
    add(fmt::format("{}\u00d7{}\u00d7{}", shape[0], shape[1], shape[2]),
        fmt::format("{}, {}", name(facts.spec->dtype), name(facts.spec->layout)));
  } else if (facts.encoded && facts.encoded->width.count != 0) {
    const auto middle = [](const ValueRange& range) { return range.total / range.count; };
    add(fmt::format("{}\u00d7{}", middle(facts.encoded->width), middle(facts.encoded->height)),
        "pixels on average, width\u00d7height");
  }
  if (facts.classes && !facts.classes->counts.empty()) {
    add(human::count(facts.classes->counts.size()), "classes");
  }
  add(size_text(facts.bytes), "in " + human::count(facts.files, "file"));
  return "<div class=\"figures\">\n" + html + "</div>\n";
}

/// The rows on damage and other problems, or all the others.
std::string rows_html(const std::vector<FactRow>& rows, bool notes) {
  std::string html;
  for (const FactRow& row : rows) {
    const bool is_note = row.title == "damaged" || row.title == "note";
    if (is_note != notes) continue;
    html += fmt::format(fmt::runtime(notes ? "<p class=\"note {0}\"><b>{0}:</b> {1}</p>\n"
                                           : "<dt>{0}</dt><dd>{1}</dd>\n"),
                        escaped(row.title), escaped(row.text));
  }
  return notes ? html : "<dl>\n" + html + "</dl>\n";
}

std::string tile_html(const Tile& tile) {
  std::string frame = escaped(tile.unsupported_reason);
  if (!tile.picture.rgb.empty()) {
    const bool is_small = std::max(tile.picture.width, tile.picture.height) < kTileSide;
    frame = fmt::format("<img{} alt=\"{}\" src=\"data:image/png;base64,{}\">",
                        is_small ? " class=\"small\"" : "", escaped(tile.key),
                        base64(encode_png(tile.picture)));
  }
  const std::string label = tile.label.empty() ? "\u2013" : escaped(tile.label);
  const std::string key = escaped(tile.key);
  return fmt::format(
      "<div class=\"tile\"><div class=\"frame\">{}</div><b title=\"{}\">{}</b><span "
      "title=\"{}\">{}</span></div>\n",
      frame, label, label, key, key);
}

std::string table_html(const FactTable& table) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  const auto cell = [&](const char* tag, std::size_t column, const std::string& text) {
    html += fmt::format("<{}{}>{}</{}>", tag, column < table.left_columns ? " class=\"word\"" : "",
                        escaped(text), tag);
  };
  for (std::size_t i = 0; i < table.head.size(); ++i) cell("th", i, table.head[i]);
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) cell("td", i, row[i]);
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  if (!table.note.empty()) html += fmt::format("<p class=\"kind\">{}</p>\n", escaped(table.note));
  if (table.rows.size() <= kMostOpenRows) return html;
  return fmt::format("<details><summary>{}</summary>{}</details>\n",
                     human::count(table.rows.size(), "row"), html);
}

std::string path_html(const Inspected& path) {
  const Inspection& facts = path.facts;
  const auto rows = fact_rows(facts);
  const auto text_of = [&](std::string_view title) {
    const auto row = std::ranges::find(rows, title, &FactRow::title);
    return row == rows.end() ? std::string() : row->text;
  };
  std::string html = fmt::format("<header><h1>{}</h1><p class=\"kind\">{}</p></header>\n",
                                 escaped(facts.path.string()), escaped(headline(facts)));
  html += rows_html(rows, true) + figures(facts);
  html += section("facts", "", rows_html(rows, false));
  std::string tiles;
  for (const Tile& tile : path.preview.tiles) tiles += tile_html(tile);
  if (!tiles.empty()) tiles = "<div class=\"tiles\">\n" + tiles + "</div>\n";
  html += section("samples", path.preview.drawing, tiles);
  for (const FactTable& table : fact_tables(facts, kMostRows)) {
    std::string chart;
    if (table.title == "classes" && facts.classes) chart = class_chart(*facts.classes);
    if (table.title == "values" && facts.values) chart = value_charts(*facts.values);
    const bool has_named_bars = table.title == "classes" && chart.starts_with("<div");
    html += section(table.title, text_of(table.title),
                    has_named_bars ? chart : chart + table_html(table));
  }
  return html;
}

}  // namespace

std::string inspection_page(const std::vector<Inspected>& paths) {
  std::string body;
  for (const Inspected& path : paths) body += path_html(path);
  const std::string title =
      paths.size() == 1 ? paths[0].facts.path.string() : human::count(paths.size(), "path");
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "img-src data:; style-src 'unsafe-inline'\">\n"
      "<title>{} \u2013 precache inspect</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}"
      "<footer>precache inspect</footer>\n</main>\n</body>\n</html>\n",
      escaped(title), kStyle, body);
}

}  // namespace precache
