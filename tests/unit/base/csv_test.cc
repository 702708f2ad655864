#include "device_sim/base/csv.h"

#include <doctest/doctest.h>

#include <cmath>

#include "device_sim/base/error.h"

using namespace gpusim;

TEST_CASE("tables are read as spreadsheets write them") {
  const CsvTable t = parse_csv(
      "\xef\xbb\xbfkernel, \"a, b\" ,c,\r\n"
      "\r\n# a comment\r\n"
      "\"say \"\"hi\"\"\",1,2,\r\n"
      "\"two\nlines\",3, 4 ,,\r\n"
      ",,,\n"
      "last,5,6",
      "t.csv");
  REQUIRE(t.header == std::vector<std::string>{"kernel", "a, b", "c"});
  REQUIRE(t.rows.size() == 3);
  CHECK(t.rows[0].cells == std::vector<std::string>{"say \"hi\"", "1", "2"});
  CHECK(t.rows[1].cells == std::vector<std::string>{"two\nlines", "3", "4"});
  CHECK(t.rows[2].cells == std::vector<std::string>{"last", "5", "6"});
  CHECK(t.rows[0].line == 4);
  CHECK(t.rows[2].line == 8);
  CHECK(t.find("C") == 2);
  CHECK_FALSE(t.find("d"));
}

TEST_CASE("separators are guessed, and semicolons bring decimal commas") {
  const CsvTable t = parse_csv("kernel;W\nx;12,5\n", "t.csv");
  CHECK(t.separator == ';');
  CHECK(require_number(t, t.rows[0], 1) == 12.5);
  CHECK(parse_csv("a\tb\n1\t2\n", "t").separator == '\t');
}

TEST_CASE("lines before the header that is looked for are skipped") {
  const CsvTable t =
      parse_csv("==PROF== Connected\n==PROF== a, b\n\"ID\",\"Metric\"\n1,2\n", "t", "ID");
  CHECK(t.header[1] == "Metric");
  CHECK(t.rows[0].line == 4);
}

TEST_CASE("numbers") {
  CHECK(parse_number(" +1.5e3 ") == 1500);
  CHECK(parse_number("1,234,567.5", false, true) == 1234567.5);
  CHECK(parse_number("12,5", true) == 12.5);
  CHECK(std::isnan(*parse_number("NaN")));
  for (const char* text :
       {"", "-", "1.2.3", "0x10", "12 W", "1,2", "12,5", "1,23,456", ",123", "1e999"})
    CHECK_FALSE_MESSAGE(parse_number(text, false, true), text);
}

TEST_CASE("bad tables are refused with the file and the line") {
  const auto message = [](std::string_view text) -> std::string {
    try {
      const CsvTable t = parse_csv(text, "t.csv");
      for (const auto& row : t.rows) require_number(t, row, 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message("") == "t.csv is empty");
  CHECK(message("a,b\n") == "t.csv has a header, but no rows");
  CHECK(message("a,b\nx,1\ny\n") == "t.csv: line 3: 1 cells, but the header has 2");
  CHECK(message("a,b\nx,1,2\n") == "t.csv: line 2: 3 cells, but the header has 2");
  CHECK(message("a,b\nx,\"1\n") == "t.csv: line 2: a quote is not closed");
  CHECK(message("a,B,b\nx,1,2\n") == "t.csv: line 1: two columns are called b");
  CHECK(message("a,b\nx,-1\n") == "t.csv: line 2: column b: -1 is negative");
  CHECK(message("a,b\nx,nan\n") == "t.csv: line 2: column b: nan is not finite");
  CHECK(message("a,b\nx,inf\n") == "t.csv: line 2: column b: inf is not finite");
  CHECK(message("a,b\nx,\n") == "t.csv: line 2: column b is empty; write 0 for nothing");
  CHECK(message("a,b\nx,12 W\n") == "t.csv: line 2: column b: 12 W is no number");
  CHECK(message("PK\x03\x04zip") ==
        "t.csv is a ZIP archive (a spreadsheet?); save the sheet as CSV");
  CHECK(message(std::string_view("a\0b", 3)) == "t.csv is no text: it has NUL bytes");
}
