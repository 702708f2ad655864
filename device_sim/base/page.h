// One self-contained HTML page with charts that can be hovered and downloaded: no network, no
// other files. Used by `gpusim sweep` and by whatever else wants to show a result in a browser.
//
// A chart is a JSON object. All of them have "kind", "title", and may have "note" (a sentence
// below) and "summary" (for screen readers). Axes are {"label", "scale": "linear" | "log2" |
// "log10", "format", "unit", "min", "max"}; formats are "count" (65,536), "si" (1.2 M, with
// "unit"), "percent" (of a share, 1 = 100 %), "number", "ratio" (1.25 x) and
// "change" (of a share, +12 %). Ticks of an axis with a "noun" ("cores": what its values count)
// stand where there are points.
//
//   lines  "x", "y", "series": [{"name", "points": [[x, y], [x, y, low, high], ...]}]; a series may
//          have "style": "solid" | "dashed" | "dotted" | "reference" (grey, no marks) |
//          "idle" (grey, of an area: what is there without any work), "colour":
//          its number in the palette, "marks": false, "band": true (low and high as an area),
//          "labels": true (its name beside its points)
//   area   the same, stacked: one [x, y] at the same x for all series
//   bars   "categories": [names], "y" (the axis of the values), "series": [{"name", "values"}],
//          stacked; bars lie on their side
//   heat   "columns": [names], "x": {"label"}, "y": {"label", "min", "max", "format"} (of the rows,
//   first
//          one on top), "cells": [per column: [a value or null per row]] (columns may have
//          different numbers of rows: each fills the height), "value": {"label", "format", "unit",
//          "min", "max"}
//
// A table is {"columns": [{"name", "format"}], "rows": [[cells]]}; cells are numbers, strings or
// null.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusim::page {

using Json = nlohmann::ordered_json;

// Six digits are enough for a picture, and keep the page small. Infinite and NaN become null.
Json rounded(double value, int digits = 6);

class Page {
 public:
  explicit Page(std::string title);

  void set_subtitle(std::string text) { subtitle_ = std::move(text); }
  // What a reader came for, in a sentence or two: it stands before all sections.
  void set_answer(std::string text) { answer_ = std::move(text); }
  // Everything that follows belongs to it, until the next one. It is listed in the contents.
  void add_section(const std::string& heading);
  void add_text(const std::string& text);  // a paragraph; escaped
  void add_chart(Json chart);
  // One is shown at a time; `what` names the choice: "program".
  void add_charts(const std::string& what, std::vector<std::pair<std::string, Json>> charts);
  // `fold`: shown only when this summary is clicked. `name` is that of the downloaded CSV file.
  void add_table(Json table, const std::string& name, const std::string& fold = "");
  void add_tables(const std::string& what, const std::string& name,
                  std::vector<std::pair<std::string, Json>> tables);
  void add_code(const std::string& text, const std::string& fold = "");  // preformatted; escaped
  // As they are: for views of one's own. No addresses of other files: the page may not load any.
  void add_html(const std::string& html);
  void add_style(const std::string& css) { style_ += css; }
  // Readable by scripts: JSON.parse(document.getElementById(id).textContent).
  void embed(const std::string& id, const Json& data);

  std::string html() const;
  // Each chart as a file for documents (chart_svg.h): a name made of its title, without ending, and
  // the SVG.
  std::vector<std::pair<std::string, std::string>> svg_files() const;

 private:
  void figure(const std::string& what, std::vector<std::pair<std::string, Json>> views);
  std::string title_, subtitle_, answer_, body_, embedded_, style_;
  std::vector<std::pair<std::string, std::string>> contents_;  // anchor, heading
  Json figures_ = Json::array();
  bool in_section_ = false;
};

}  // namespace gpusim::page
