#include "device_sim/base/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/nearest_name.h"

namespace gpusim {
namespace {

[[noreturn]] void fail(const std::string& source, size_t line, const std::string& what) {
  throw Error(fmt::format("{}: line {}: {}", source, line, what));
}

void check_encoding(std::string_view text, const std::string& source) {
  if (text.starts_with("PK\x03\x04"))
    throw Error(source + " is a ZIP archive (a spreadsheet?); save the sheet as CSV");
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw Error(source + " is UTF-16; save it as UTF-8");
  if (text.find('\0') != std::string_view::npos)
    throw Error(source + " is no text: it has NUL bytes");
}

// One record: cells up to an unquoted line end. Moves `text` past it and `line` on.
std::vector<std::string> take_record(std::string_view& text, char separator, size_t& line,
                                     const std::string& source) {
  std::vector<std::string> cells;
  std::string cell;
  bool quoted = false, was_quoted = false;
  const size_t first_line = line;
  const auto finish = [&] {
    cells.push_back(was_quoted ? cell : std::string(trim(cell)));
    cell.clear();
    was_quoted = false;
  };
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\n') ++line;
      if (c != '"') {
        cell += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        cell += '"';
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"' && trim(cell).empty()) {
      cell.clear();
      quoted = was_quoted = true;
    } else if (c == separator) {
      finish();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cell += c;
    }
  }
  if (quoted) fail(source, first_line, "a quote is not closed");
  finish();
  text.remove_prefix(std::min(at + 1, text.size()));
  ++line;
  return cells;
}

char guess_separator(std::string_view line) {
  size_t counts[3] = {};
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    counts[0] += c == ',';
    counts[1] += c == ';';
    counts[2] += c == '\t';
  }
  if (counts[1] > counts[0] && counts[1] >= counts[2]) return ';';
  return counts[2] > counts[0] ? '\t' : ',';
}

bool is_blank(const std::vector<std::string>& cells) {
  return std::all_of(cells.begin(), cells.end(), [](const auto& c) { return trim(c).empty(); });
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<size_t> CsvTable::find(std::string_view column) const {
  const std::string wanted = lower(column);
  for (size_t i = 0; i < header.size(); ++i)
    if (lower(header[i]) == wanted) return i;
  return std::nullopt;
}

size_t CsvTable::require(std::string_view column) const {
  if (const auto found = find(column)) return *found;
  throw Error(fmt::format("{}: there is no column {}{}; the columns are: {}", source, column,
                          did_you_mean(column, header), fmt::join(header, ", ")));
}

CsvTable parse_csv(std::string_view text, std::string source, std::string_view header_has) {
  check_encoding(text, source);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  CsvTable table;
  table.source = std::move(source);
  size_t line = 1;
  while (!text.empty()) {
    const size_t start = line;
    const std::string_view first = text.substr(0, text.find('\n'));
    if (trim(first).empty() ||
        (first.starts_with('#') && table.header.empty() && header_has.empty()) ||
        (first.starts_with('#') && !table.header.empty())) {
      text.remove_prefix(std::min(first.size() + 1, text.size()));
      ++line;
      continue;
    }
    if (table.header.empty()) {
      table.separator = guess_separator(first);
      if (!header_has.empty() && first.find(header_has) == std::string_view::npos) {
        text.remove_prefix(std::min(first.size() + 1, text.size()));
        ++line;
        continue;
      }
      table.header = take_record(text, table.separator, line, table.source);
      while (table.header.size() > 1 && table.header.back().empty()) table.header.pop_back();
      for (auto& name : table.header) name = std::string(trim(name));
      for (size_t i = 0; i < table.header.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (!table.header[i].empty() && lower(table.header[i]) == lower(table.header[j]))
            fail(table.source, start, "two columns are called " + table.header[i]);
      continue;
    }
    CsvRow row{.line = start, .cells = take_record(text, table.separator, line, table.source)};
    if (is_blank(row.cells)) continue;
    const size_t width = table.header.size();
    while (row.cells.size() > width && trim(row.cells.back()).empty()) row.cells.pop_back();
    if (row.cells.size() != width)
      fail(table.source, start,
           fmt::format("{} cells, but the header has {}", row.cells.size(), width));
    table.rows.push_back(std::move(row));
  }
  if (table.header.empty()) {
    throw Error(table.source + (header_has.empty()
                                    ? std::string(" is empty")
                                    : fmt::format(" has no line with the column {}", header_has)));
  }
  if (table.rows.empty()) throw Error(table.source + " has a header, but no rows");
  return table;
}

CsvTable read_csv(const std::string& path, std::string_view header_has) {
  return parse_csv(read_text(path), path, header_has);
}

std::optional<double> parse_number(std::string_view text, bool decimal_comma, bool thousands) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::string plain(text);
  if (decimal_comma) {
    if (plain.find('.') == std::string::npos && std::count(plain.begin(), plain.end(), ',') == 1)
      plain[plain.find(',')] = '.';
  } else if (thousands && plain.find(',') != std::string::npos) {
    // 1,234,567.8: groups of three after the first comma, or it is no such number.
    size_t digits = 0;
    bool grouped = false;
    for (const char c : plain.substr(0, plain.find('.'))) {
      if (c == ',') {
        if (grouped ? digits != 3 : digits == 0 || digits > 3) return std::nullopt;
        grouped = true;
        digits = 0;
      } else {
        digits += c >= '0' && c <= '9';
      }
    }
    if (digits != 3) return std::nullopt;
    std::erase(plain, ',');
  }
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (plain.empty() || end != plain.data() + plain.size()) return std::nullopt;
  if (error != std::errc()) return std::nullopt;
  return value;
}

double require_number(const CsvTable& table, const CsvRow& row, size_t column) {
  const std::string& cell = row.cells[column];
  const std::string& name = table.header[column];
  if (trim(cell).empty())
    fail(table.source, row.line, fmt::format("column {} is empty; write 0 for nothing", name));
  const auto value = parse_number(cell, table.separator == ';', true);
  if (!value) fail(table.source, row.line, fmt::format("column {}: {} is no number", name, cell));
  if (!std::isfinite(*value))
    fail(table.source, row.line, fmt::format("column {}: {} is not finite", name, cell));
  if (*value < 0)
    fail(table.source, row.line, fmt::format("column {}: {} is negative", name, cell));
  return *value;
}

}  // namespace gpusim
