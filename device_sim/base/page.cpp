#include "device_sim/base/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>

#include "device_sim/base/assets.h"
#include "device_sim/base/chart_svg.h"
#include "device_sim/base/escape_xml.h"

namespace gpusim::page {
namespace {

// Inside <script> no text may look like its end.
std::string script_json(const Json& data) {
  const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

const std::string& asset(const std::string& name) {
  static const std::string none;
  for (const EmbeddedFile& file : assets())
    if (name == file.name) return file.text;
  return none;
}

Json rounded(double value, int digits) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
}

Page::Page(std::string title) : title_(std::move(title)) {}

void Page::add_section(const std::string& heading) {
  if (in_section_) body_ += "</section>\n";
  in_section_ = true;
  const std::string anchor = fmt::format("s{}", contents_.size() + 1);
  contents_.emplace_back(anchor, heading);
  body_ += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n", anchor, escape_xml(heading));
}

void Page::add_text(const std::string& text) {
  body_ += fmt::format("<p>{}</p>\n", escape_xml(text));
}

void Page::figure(const std::string& what, std::vector<std::pair<std::string, Json>> views) {
  if (views.empty()) return;
  body_ +=
      fmt::format("<figure class=\"gs-figure\" data-figure=\"{}\"></figure>\n", figures_.size());
  Json list = Json::array();
  for (auto& [name, view] : views) list.push_back({{"name", name}, {"view", std::move(view)}});
  figures_.push_back({{"what", what}, {"views", std::move(list)}});
}

void Page::add_chart(Json chart) {
  std::vector<std::pair<std::string, Json>> one;
  one.emplace_back("", std::move(chart));
  figure("", std::move(one));
}

void Page::add_charts(const std::string& what, std::vector<std::pair<std::string, Json>> charts) {
  figure(what, std::move(charts));
}

void Page::add_table(Json table, const std::string& name, const std::string& fold) {
  std::vector<std::pair<std::string, Json>> one;
  one.emplace_back("", std::move(table));
  if (!fold.empty()) body_ += fmt::format("<details><summary>{}</summary>\n", escape_xml(fold));
  add_tables("", name, std::move(one));
  if (!fold.empty()) body_ += "</details>\n";
}

void Page::add_tables(const std::string& what, const std::string& name,
                      std::vector<std::pair<std::string, Json>> tables) {
  for (auto& [option, table] : tables) {
    table["kind"] = "table";
    if (!table.contains("title")) table["title"] = name;
  }
  figure(what, std::move(tables));
}

void Page::add_code(const std::string& text, const std::string& fold) {
  if (!fold.empty()) body_ += fmt::format("<details><summary>{}</summary>\n", escape_xml(fold));
  body_ += fmt::format("<pre>{}</pre>\n", escape_xml(text));
  if (!fold.empty()) body_ += "</details>\n";
}

void Page::add_html(const std::string& html) { body_ += html; }

void Page::embed(const std::string& id, const Json& data) {
  embedded_ += fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n",
                           escape_xml(id), script_json(data));
}

std::vector<std::pair<std::string, std::string>> Page::svg_files() const {
  constexpr size_t kLongest = 60;
  std::vector<std::pair<std::string, std::string>> files;
  std::map<std::string, int> taken;
  for (const Json& figure : figures_)
    for (const Json& one : figure["views"]) {
      const Json& view = one["view"];
      if (view.value("kind", "") == "table") continue;
      std::string name;
      for (const char c : view.value("title", "chart")) {
        const auto letter = static_cast<unsigned char>(c);
        if (std::isalnum(letter) && letter < 0x80)
          name += static_cast<char>(std::tolower(letter));
        else if (!name.empty() && name.back() != '-')
          name += '-';
      }
      name.resize(std::min(name.size(), kLongest));
      while (name.ends_with('-')) name.pop_back();
      if (const int before = taken[name]++; before != 0) name += fmt::format("-{}", before + 1);
      files.emplace_back(name, chart_svg(view));
    }
  return files;
}

std::string Page::html() const {
  std::string contents;
  for (const auto& [anchor, heading] : contents_)
    contents += fmt::format("<a href=\"#{}\">{}</a>\n", anchor, escape_xml(heading));
  // The policy lets the page load nothing, whatever stands in it.
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>\n{1}{2}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n"
      "{3}{10}<nav aria-label=\"Contents\">\n{4}</nav>\n</header>\n<main>\n"
      "<noscript><p>The charts of this page need JavaScript; nothing is loaded from elsewhere.</p>"
      "</noscript>\n{5}{6}</main>\n"
      "<script type=\"application/json\" id=\"gpusim-figures\">{7}</script>\n{8}"
      "<script>\n{9}</script>\n</body>\n</html>\n",
      escape_xml(title_), asset("page.css"), style_,
      subtitle_.empty() ? "" : fmt::format("<p class=\"subtitle\">{}</p>\n", escape_xml(subtitle_)),
      contents, body_, in_section_ ? "</section>\n" : "", script_json(figures_), embedded_,
      asset("page.js"),
      answer_.empty() ? "" : fmt::format("<p class=\"answer\">{}</p>\n", escape_xml(answer_)));
}

}  // namespace gpusim::page
