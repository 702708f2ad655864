// The profile as a page: tables, and the source text beside what its lines took.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "device_sim/base/digits.h"
#include "device_sim/base/escape_xml.h"
#include "device_sim/base/page.h"
#include "device_sim/base/svg.h"
#include "host/chip/report.h"
#include "host/run/profile_report.h"

namespace gpusim::host {
namespace {

using page::Json;

constexpr int kLinesAround = 6;
constexpr uintmax_t kLargestSource = 4 << 20;
constexpr size_t kMostFiles = 40;

constexpr const char* kStyle = R"(
.src { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
.src table { border-collapse: collapse; font: 0.8rem/1.35 ui-monospace, monospace; width: 100%; }
.src td { padding: 0 0.6rem; white-space: pre; text-align: right; border: 0; }
.src td.t { text-align: left; width: 100%; tab-size: 4; }
.src td.n, .src th { color: var(--soft); }
.src th { font-weight: normal; text-align: right; padding: 0.2rem 0.6rem; white-space: nowrap; }
.src tr.gap td { color: var(--soft); text-align: left; background: var(--raised); }
.flames { overflow-x: auto; }
.flames svg { max-width: 100%; height: auto; }
.flames .chart .flame text { fill: #17202a; font: 11px ui-monospace, monospace; }
.flames .flame:hover rect { stroke: #17202a; stroke-width: 1; filter: brightness(1.08); }
.src td.h { background: color-mix(in srgb, var(--accent) calc(var(--heat) * 1%), transparent); }
@media print {
  .src, .flames { overflow: visible; }
  .src td { padding: 0 0.3rem; }
  .src td.t { white-space: pre-wrap; overflow-wrap: anywhere; }
}
)";

Json number(double x) { return page::rounded(x); }

Json table_of(const ProfileReport& r, const std::vector<ProfileRow>& rows, bool are_lines) {
  const double all = r.table.of(r.total.classes);
  Json columns = Json::array({Json{{"name", are_lines ? "line" : "function"}, {"format", "text"}},
                              Json{{"name", "cycles"}, {"format", "count"}},
                              Json{{"name", "share"}, {"format", "percent"}},
                              Json{{"name", "instructions"}, {"format", "count"}},
                              Json{{"name", "diverged"}, {"format", "percent"}},
                              Json{{"name", "waiting"}, {"format", "percent"}}});
  Json cells = Json::array();
  for (const ProfileRow& row : rows) {
    const PlaceUse& u = row.use;
    const double instructions = static_cast<double>(u.instructions());
    const double cycles = r.table.of(u.classes), lanes = static_cast<double>(u.lanes);
    std::string name = are_lines && !row.file.empty()
                           ? fmt::format("{}:{}", std::filesystem::path(row.file).filename().string(), row.line)
                           : row.name;
    if (name.empty()) name = "(unknown)";
    cells.push_back({name, number(cycles), number(all > 0 ? cycles / all : 0), u.instructions(),
                     r.lanes_are_known && lanes > 0 ? number((lanes - instructions) / lanes) : Json(nullptr),
                     number(instructions > 0 ? static_cast<double>(u.in_vain) / instructions : 0)});
  }
  return {{"columns", std::move(columns)}, {"rows", std::move(cells)}};
}

// Only what looks like source text: a program could name any file.
bool may_be_source(const std::filesystem::path& path) {
  static const std::set<std::string> kEndings = {".c",   ".h",   ".cc", ".cpp", ".cxx", ".hpp", ".hh",
                                                 ".inl", ".def", ".S",  ".s",   ".f",   ".f90", ".rs",
                                                 ".go",  ".zig", ".d",  ".nim", ".m"};
  std::error_code error;
  return kEndings.contains(path.extension().string()) &&
         std::filesystem::is_regular_file(path, error) &&
         std::filesystem::file_size(path, error) <= kLargestSource && !error;
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  if (!may_be_source(path)) return lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

struct SourceFile {
  std::string path;
  double cycles = 0;
  std::map<int, const PlaceUse*> lines;
};

// Where it went, and what was lost.
std::string answer(const ProfileReport& r) {
  const double all = r.table.of(r.total.classes);
  std::string text;
  if (!r.functions.empty() && all > 0) {
    const ProfileRow& first = r.functions.front();
    text = fmt::format("{} takes {:.3g} % of all cycles.",
                       first.name.empty() ? "Code without a name" : first.name,
                       100 * r.table.of(first.use.classes) / all);
  }
  const GroupUse& u = r.lanes.lanes;
  if (r.lanes_are_known && u.offered > 0)
    text += fmt::format(" Of the cores' steps {:.3g} % were lost because neighbours went other ways.",
                        100 * static_cast<double>(u.diverged) / static_cast<double>(u.offered));
  return text;
}

std::string source_html(const ProfileReport& r, const SourceFile& file, double most) {
  const std::vector<std::string> text = read_lines(file.path);
  std::string out =
      "<div class=\"src\"><table><tr><th>cycles</th><th>share</th><th>instructions</th>"
      "<th>diverged</th><th>waiting</th><th>line</th><th></th></tr>\n";
  const double all = r.table.of(r.total.classes);
  const auto percent = [](double part, double whole) {
    return whole > 0 && part > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : std::string();
  };
  const auto row = [&](int number) {
    const auto it = file.lines.find(number);
    const size_t index = static_cast<size_t>(number) - 1;
    const std::string line = index < text.size() ? escape_xml(text[index]) : std::string();
    if (it == file.lines.end()) {
      out += fmt::format("<tr><td></td><td></td><td></td><td></td><td></td><td class=\"n\">{}</td><td class=\"t\">{}</td></tr>\n",
                         number, line);
      return;
    }
    const PlaceUse& u = *it->second;
    const double cycles = r.table.of(u.classes), lanes = static_cast<double>(u.lanes),
                 instructions = static_cast<double>(u.instructions());
    out += fmt::format(
        "<tr><td class=\"h\" style=\"--heat:{:.0f}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td class=\"n\">{}</td><td class=\"t\">{}</td></tr>\n",
        most > 0 ? 70 * cycles / most : 0, grouped(static_cast<uint64_t>(std::llround(cycles))),
        percent(cycles, all), grouped(u.instructions()),
        percent(lanes - instructions, lanes),
        percent(static_cast<double>(u.in_vain), instructions), number, line);
  };
  int last = 0;
  for (const auto& [number, use] : file.lines) {
    const int from = text.empty() ? number : std::max(last + 1, number - kLinesAround);
    if (from > last + 1 || (last == 0 && from > 1))
      out += "<tr class=\"gap\"><td colspan=\"7\">…</td></tr>\n";
    for (int n = from; n <= number; ++n) row(n);
    last = std::max(last, number);
    // What follows, up to the next line that was executed.
    const auto next = file.lines.upper_bound(number);
    const int end = std::min(number + kLinesAround, static_cast<int>(text.size()));
    const int to = next == file.lines.end() ? end : std::min(end, next->first - 1);
    for (int n = number + 1; n <= to; ++n) row(n);
    last = std::max(last, to);
  }
  out += "</table></div>\n";
  if (text.empty()) out += "<p>The source text was not found where the program says it was.</p>\n";
  return out;
}

void add_flame_graph(page::Page& p, const ProfileReport& r) {
  const std::string picture = flame_graph_svg(r);
  if (picture.empty()) return;
  p.add_section("Call stacks");
  p.add_html("<div class=\"flames\">" + picture + "</div>\n");
  p.add_text(
      "A function stands on its caller; its width is the share of all cycles that it and what it "
      "called took. Rest the mouse on it to see how much that is.");
}

}  // namespace

std::string profile_html(const ProfileReport& r, const chip::ChipReport* chip) {
  page::Page p("Profile of " + std::filesystem::path(r.program).filename().string());
  p.set_subtitle(fmt::format("{} instructions on {} core{}, backend {}; cycles: {}",
                             grouped(r.total.instructions()), grouped(r.cores),
                             r.cores == 1 ? "" : "s", r.backend, r.table.name));
  p.set_answer(answer(r));
  p.add_style(svg_style());
  p.add_style(kStyle);
  p.add_section("Lanes and waiting");
  if (r.lanes_are_known) {
    const GroupUse& u = r.lanes.lanes;
    const auto share = [&](uint64_t x) {
      return number(u.offered > 0 ? static_cast<double>(x) / static_cast<double>(u.offered) : 0);
    };
    p.add_table({{"columns", Json::array({Json{{"name", "lanes"}, {"format", "text"}},
                                          Json{{"name", "slots"}, {"format", "count"}},
                                          Json{{"name", "share"}, {"format", "percent"}}})},
                 {"rows", Json::array({Json::array({"active", u.active, share(u.active)}),
                                       Json::array({"diverged", u.diverged, share(u.diverged)}),
                                       Json::array({"asleep", u.asleep, share(u.asleep)}),
                                       Json::array({"idle", u.offered - u.active - u.diverged - u.asleep,
                                                    share(u.offered - u.active - u.diverged - u.asleep)})})}},
                "Lanes");
  } else {
    p.add_text("This backend does not count lanes.");
  }
  p.add_text(fmt::format("Looks in vain at what other cores shall change: {} instructions.", grouped(r.lanes.in_vain)));
  if (r.has_callers)
    add_flame_graph(p, r);
  else
    p.add_text("Calls were not followed: with --call-stacks on there is a flame graph here.");
  p.add_section("Functions");
  p.add_table(table_of(r, r.functions, false), "Functions");
  p.add_table(table_of(r, r.inlined, false), "Inlined functions", "Inlined functions apart");
  p.add_section("Lines");
  p.add_table(table_of(r, r.lines, true), "Lines");

  std::map<std::string, SourceFile> by_path;
  double most = 0;
  for (const ProfileRow& row : r.lines) {
    if (row.file.empty()) continue;
    SourceFile& file = by_path[row.file];
    file.path = row.file;
    const double cycles = r.table.of(row.use.classes);
    file.cycles += cycles;
    file.lines[row.line] = &row.use;
    most = std::max(most, cycles);
  }
  std::vector<SourceFile> files;
  for (auto& [path, file] : by_path) files.push_back(std::move(file));
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.cycles > b.cycles; });
  p.add_section("Source");
  if (files.empty()) p.add_text("The program has no DWARF: compile it with -g to see lines.");
  for (size_t i = 0; i < files.size() && i < kMostFiles; ++i)
    p.add_html(fmt::format("<details{}><summary>{}</summary>\n{}</details>\n",
                           i == 0 ? " open" : "", escape_xml(files[i].path),
                           source_html(r, files[i], most)));
  if (files.size() > kMostFiles)
    p.add_text(fmt::format("{} more files took less.", files.size() - kMostFiles));
  if (chip) chip::add_to_page(p, *chip);
  return p.html();
}

}  // namespace gpusim::host
