// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "convert/pictures/page_charts.hpp"
#include "convert/pictures/page_style.hpp"
#include "convert/pictures/png_encoder.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/convert/pictures.hpp"
#include "precache/tools/inspect_text.hpp"

namespace precache {
namespace {

using page::escaped;

constexpr std::size_t kMostRows = 1000;
constexpr std::size_t kMostOpenRows = 12;  // a longer table has to be unfolded

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

std::string section(std::string_view title, std::string_view detail, std::string_view body) {
  if (body.empty()) return {};
  const std::string small = detail.empty() ? "" : fmt::format("<small>{}</small>", escaped(detail));
  return fmt::format("<section><h2>{}{}</h2>\n{}</section>\n", escaped(title), small, body);
}

/// The numbers that are asked for first, large.
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
    const auto middle = [](const Range& range) { return range.total / range.count; };
    add(fmt::format("{}\u00d7{}", middle(facts.encoded->width), middle(facts.encoded->height)),
        "pixels on average, width\u00d7height");
  }
  if (facts.classes && !facts.classes->counts.empty()) {
    add(human::count(facts.classes->counts.size()), "classes");
  }
  add(size_text(facts.bytes), "in " + human::count(facts.files, "file"));
  return "<div class=\"figures\">\n" + html + "</div>\n";
}

/// What stands in its way, before all else; then the rows.
std::string notes(const std::vector<FactRow>& rows) {
  std::string html;
  for (const FactRow& row : rows) {
    if (row.title != "damaged" && row.title != "obstacle") continue;
    html +=
        fmt::format("<p class=\"note {0}\"><b>{0}:</b> {1}</p>\n", row.title, escaped(row.text));
  }
  return html;
}

std::string facts_list(const std::vector<FactRow>& rows) {
  std::string html;
  for (const FactRow& row : rows) {
    if (row.title == "damaged" || row.title == "obstacle") continue;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(row.title), escaped(row.text));
  }
  return "<dl>\n" + html + "</dl>\n";
}

std::string tile_html(const Tile& tile) {
  std::string frame = escaped(tile.obstacle);
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

std::string tiles_html(const Preview& preview) {
  if (preview.tiles.empty()) return {};
  std::string html = "<div class=\"tiles\">\n";
  for (const Tile& tile : preview.tiles) html += tile_html(tile);
  return html + "</div>\n";
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
  html += notes(rows) + figures(facts);
  html += section("facts", "", facts_list(rows));
  html += section("samples", path.preview.drawing, tiles_html(path.preview));
  for (const FactTable& table : fact_tables(facts, kMostRows)) {
    std::string chart;
    if (table.title == "classes" && facts.classes) chart = page::class_chart(*facts.classes);
    if (table.title == "values" && facts.values) chart = page::value_charts(*facts.values);
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
      escaped(title), page::kStyle, body);
}

}  // namespace precache
