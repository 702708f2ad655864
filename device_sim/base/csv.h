// Comma-separated values as spreadsheets, scripts and profilers write them. Every message names the
// file and the line.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusim {

struct CsvRow {
  size_t line = 0;                 // where the row starts in the file, from 1
  std::vector<std::string> cells;  // as many as the header has, trimmed
};

struct CsvTable {
  std::string source;  // the file's name, for messages
  std::vector<std::string> header;
  std::vector<CsvRow> rows;
  char separator = ',';

  std::optional<size_t> find(std::string_view column) const;  // upper and lower case are the same
  size_t require(std::string_view column) const;              // throws Error that lists the columns
  const std::string& at(const CsvRow& row, size_t column) const { return row.cells[column]; }
};

// Takes a byte order mark, CR LF, quotes, and `;` or tabs for commas. Lines that are empty or start
// with `#` are no rows. Rows end at the header's width; empty cells beyond it are ignored.
// `header_has`: lines before the first one that has this cell are skipped (a profiler's messages).
// Throws Error.
CsvTable parse_csv(std::string_view text, std::string source, std::string_view header_has = {});
CsvTable read_csv(const std::string& path, std::string_view header_has = {});

// A plain decimal number; nullopt for anything else. `decimal_comma`: 12,5 is twelve and a half;
// `thousands`: 1,234,567 is one number. NaN and infinities are numbers here.
std::optional<double> parse_number(std::string_view text, bool decimal_comma = false,
                                   bool thousands = false);

// The cell as a finite number that is not negative. Throws Error with line and column.
double require_number(const CsvTable& table, const CsvRow& row, size_t column);

std::string lower(std::string_view text);
std::string_view trim(std::string_view text);

}  // namespace gpusim
