#include "energy/accelwattch/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "device_sim/base/escape_xml.h"
#include "device_sim/base/svg.h"
#include "energy/accelwattch/charts.h"
#include "energy/accelwattch/components.h"

namespace gpusim::accelwattch {

namespace {

struct ComponentRow {
  std::string name, title;
  Watts mean, least, most;
  double share = 0;  // of the mean model_total_W, percent
};

std::vector<ComponentRow> component_rows(const Sheet& sheet) {
  Watts total;
  for (const SheetKernel& k : sheet.kernels) total += k.model;
  total = total / static_cast<double>(sheet.kernels.size());
  std::vector<ComponentRow> rows;
  for (size_t c = 0; c < sheet.components.size(); ++c) {
    const ComponentInfo* info = find_component(sheet.components[c]);
    ComponentRow row{.name = sheet.components[c],
                     .title = info ? std::string(info->title) : std::string(),
                     .mean = sheet.mean(c),
                     .least = sheet.kernels[0].component[c],
                     .most = sheet.kernels[0].component[c]};
    for (const SheetKernel& k : sheet.kernels) {
      row.least = std::min(row.least, k.component[c]);
      row.most = std::max(row.most, k.component[c]);
    }
    row.share = row.mean / total * 100;
    rows.push_back(row);
  }
  return rows;
}

constexpr const char* kPageStyle = R"(
:root { color-scheme: light dark; --ground: #ffffff; --text: #17202a; --soft: #55606c; --line: #dfe4ea; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #161b22; --text: #e6ecf2; --soft: #9aa6b2; --line: #2b333d; --bad: #ff8a80; } }
body { background: var(--ground); color: var(--text); font: 15px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; margin: 0 auto; max-width: 1080px; padding: 24px; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin-top: 36px; }
.line { font-size: 16px; font-weight: 600; } .note { color: var(--soft); }
.wide { overflow-x: auto; } .chart { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: 3px 14px 3px 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
th { color: var(--soft); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
@media print {
  body { font-size: 10pt; max-width: none; padding: 0; }
  h2, h2 + p, thead { break-after: avoid; }
  .chart, tr { break-inside: avoid; }
  .wide { overflow: visible; }
  table { font-size: 7.5pt; } th, td { padding: 1px 5px 1px 0; white-space: normal; }
}
)";

std::string page_head(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}</title>\n<style>{1}{2}</style>\n"
      "</head>\n<body>\n<h1>{0}</h1>\n",
      escape_xml(title), kPageStyle, svg_style());
}

std::string page_notes(const Sheet& sheet) {
  std::string text;
  for (const auto& note : sheet.notes)
    text += fmt::format("<p class=\"note\">Note: {}.</p>\n", escape_xml(note));
  return text;
}

std::string page_components(const Sheet& sheet) {
  std::string text =
      "<h2>Components</h2>\n<div class=\"wide\"><table>\n<tr><th>component</th><th "
      "class=\"text\">what</th><th>mean W</th><th>share %</th><th>least W</th><th>most W</th></tr>"
      "\n";
  for (const ComponentRow& row : component_rows(sheet))
    text += fmt::format(
        "<tr><td>{}</td><td class=\"text\">{}</td><td>{:.3f}</td><td>{:.2f}</td><td>{:.3f}</td>"
        "<td>{:.3f}</td></tr>\n",
        escape_xml(row.name), escape_xml(row.title), row.mean.value(), row.share, row.least.value(),
        row.most.value());
  return text + "</table></div>\n";
}

}  // namespace

std::string accuracy_line(const Sheet& sheet, const Accuracy& a) {
  std::string line = fmt::format("MAPE {:.2f}", a.mape);
  if (a.confidence95) line += fmt::format(" +- {:.2f}", *a.confidence95);
  line += fmt::format(" % ({}{} kernel{}), maximum error {:.2f} % ({}), Pearson r ",
                      a.confidence95 ? "95 % confidence, " : "", a.kernels,
                      a.kernels == 1 ? "" : "s", a.largest, sheet.kernels[a.largest_at].name);
  return line + (a.pearson_r ? fmt::format("{:.3f}", *a.pearson_r) : std::string("not defined"));
}

std::string kernel_table(const Sheet& sheet) {
  size_t width = 6;
  for (const SheetKernel& k : sheet.kernels) width = std::max(width, k.name.size());
  width = std::min<size_t>(width, 60);  // mangled names can have a thousand characters
  std::string text = fmt::format("{:<{}}  {:>10}  {:>10}  {:>8}\n", "kernel", width, "measured W",
                                 "modelled W", "error %");
  for (const SheetKernel& k : sheet.kernels)
    text += fmt::format("{:<{}}  {:>10.2f}  {:>10.2f}  {:>+8.2f}\n", k.name.substr(0, width), width,
                        k.measured.value(), k.model.value(), percent_error(k.model, k.measured));
  return text;
}

std::string component_table(const Sheet& sheet) {
  size_t width = 9;
  for (const auto& name : sheet.components) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}}  {:>8}  {:>8}  {:>8}  {:>8}\n", "component", width,
                                 "mean W", "share %", "least W", "most W");
  for (const ComponentRow& row : component_rows(sheet))
    text += fmt::format("{:<{}}  {:>8.3f}  {:>8.2f}  {:>8.3f}  {:>8.3f}{}{}\n", row.name, width,
                        row.mean.value(), row.share, row.least.value(), row.most.value(),
                        row.title.empty() ? "" : "  ", row.title);
  return text;
}

nlohmann::ordered_json accuracy_json(const Sheet& sheet, const Accuracy& a) {
  nlohmann::ordered_json json = {{"kernels", a.kernels},
                                 {"mape_percent", a.mape},
                                 {"confidence95_percent", nullptr},
                                 {"maximum_error_percent", a.largest},
                                 {"maximum_error_kernel", sheet.kernels[a.largest_at].name},
                                 {"mean_error_percent", a.bias},
                                 {"kernels_within_10_percent", a.within_10},
                                 {"pearson_r", nullptr}};
  if (a.confidence95) json["confidence95_percent"] = *a.confidence95;
  if (a.pearson_r) json["pearson_r"] = *a.pearson_r;
  return json;
}

nlohmann::ordered_json validation_json(const Sheet& sheet, const Accuracy& accuracy) {
  nlohmann::ordered_json json = {{"sheet", sheet.source},
                                 {"accuracy", accuracy_json(sheet, accuracy)},
                                 {"notes", sheet.notes},
                                 {"kernels", nlohmann::ordered_json::array()},
                                 {"components", nlohmann::ordered_json::array()}};
  for (const SheetKernel& k : sheet.kernels) {
    nlohmann::ordered_json row = {{"kernel", k.name},
                                  {"measured_W", k.measured.value()},
                                  {"model_total_W", k.model.value()},
                                  {"error_percent", percent_error(k.model, k.measured)}};
    if (!k.suite.empty()) row["suite"] = k.suite;
    for (size_t c = 0; c < sheet.components.size(); ++c)
      row["components_W"][sheet.components[c]] = k.component[c].value();
    json["kernels"].push_back(std::move(row));
  }
  for (const ComponentRow& row : component_rows(sheet))
    json["components"].push_back({{"component", row.name},
                                  {"mean_W", row.mean.value()},
                                  {"share_percent", row.share},
                                  {"least_W", row.least.value()},
                                  {"most_W", row.most.value()}});
  return json;
}

std::string validation_page(const Sheet& sheet, const Accuracy& a, const std::string& title) {
  std::string page = page_head(title);
  page += fmt::format(
      "<p class=\"line\">{}</p>\n<p class=\"note\">{} of {} kernels have less than 10 % error; the "
      "mean signed error is {:+.2f} %.</p>\n",
      escape_xml(accuracy_line(sheet, a)), a.within_10, a.kernels, a.bias);
  page += page_notes(sheet);
  page += "<h2>Modelled and measured power</h2>\n<div class=\"wide\">" +
          embedded_svg(correlation_chart(sheet, a, "Modelled and measured power")) +
          "</div>\n<h2>Power by component</h2>\n<div class=\"wide\">" +
          embedded_svg(component_chart(sheet, "Power by component")) +
          "</div>\n<h2>Kernels</h2>\n<div class=\"wide\"><table>\n<tr><th>kernel</th><th "
          "class=\"text\">suite</th><th>measured W</th><th>modelled W</th><th>error %</th></tr>\n";
  for (const SheetKernel& k : sheet.kernels) {
    const double error = percent_error(k.model, k.measured);
    page += fmt::format(
        "<tr><td>{}</td><td class=\"text\">{}</td><td>{:.2f}</td><td>{:.2f}</td><td{}>{:+.2f}</td>"
        "</tr>\n",
        escape_xml(k.name), escape_xml(k.suite), k.measured.value(), k.model.value(),
        error > 20 || error < -20 ? " class=\"bad\"" : "", error);
  }
  return page + "</table></div>\n" + page_components(sheet) + "</body>\n</html>\n";
}

std::string prediction_page(const Sheet& sheet, const std::string& chart,
                            const std::string& title) {
  std::string page = page_head(title) + page_notes(sheet) + "<div class=\"wide\">" +
                     embedded_svg(chart) +
                     "</div>\n<h2>Kernels</h2>\n<div class=\"wide\"><table>\n<tr><th>kernel</th>"
                     "<th>modelled W</th></tr>\n";
  for (const SheetKernel& k : sheet.kernels)
    page +=
        fmt::format("<tr><td>{}</td><td>{:.2f}</td></tr>\n", escape_xml(k.name), k.model.value());
  return page + "</table></div>\n" + page_components(sheet) + "</body>\n</html>\n";
}

}  // namespace gpusim::accelwattch
