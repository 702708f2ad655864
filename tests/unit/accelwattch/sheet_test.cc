#include "energy/accelwattch/sheet.h"

#include <doctest/doctest.h>

#include <cmath>

#include "device_sim/base/error.h"
#include "energy/accelwattch/accuracy.h"
#include "energy/accelwattch/charts.h"
#include "energy/accelwattch/report.h"

using namespace gpusim;
using namespace gpusim::accelwattch;

namespace {

Sheet sheet_of(std::string_view text) { return make_sheet(parse_csv(text, "s.csv")); }

std::string message(std::string_view text) {
  try {
    sheet_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const char* const kSmall =
    "suite,kernel,A_W,B,model_total_W,measured_W\n"
    "s,k1,10,90,100,80\n"
    "s,k2,20,100,120,100\n"
    "t,k3,30,60,90,100\n";

}  // namespace

TEST_CASE("a sheet's columns") {
  const Sheet s = sheet_of(kSmall);
  CHECK(s.components == std::vector<std::string>{"A", "B"});
  REQUIRE(s.kernels.size() == 3);
  CHECK(s.kernels[1].name == "k2");
  CHECK(s.kernels[2].suite == "t");
  CHECK(s.kernels[2].component_sum() == Watts(90));
  CHECK(s.mean(0) == Watts(20));
  CHECK(s.notes.empty());
  CHECK(s.find("b") == 1);
  CHECK(s.find("c") == -1);
}

TEST_CASE("columns that are no components") {
  const Sheet s = sheet_of(
      ",benchmark,IBP,remark,time_ms,gone,Measured (W),model_total_W\n"
      "0,k1,100,,3.5,,80,101\n1,k2,120,good,4,,100,121\n");
  CHECK(s.components == std::vector<std::string>{"IBP"});
  CHECK(s.kernels[0].name == "k1");
  REQUIRE(s.notes.size() == 3);
  CHECK(s.notes[0] == "column time_ms is in ms: no component");
  CHECK(s.notes[1] == "column gone is empty: left out");
  CHECK(s.notes[2] ==
        "model_total_W differs from the sum of the components by 1.0000 W in 2 of 2 rows; errors "
        "are those of model_total_W");
}

TEST_CASE("the model's total may be left out where it is not needed") {
  const CsvTable t = parse_csv("kernel,A,B,measured_W\nk,1,2,3\n", "s.csv");
  CHECK(make_sheet(t, {.needs_model = false}).kernels[0].model == Watts(3));
  CHECK_THROWS_AS(make_sheet(t), Error);
}

TEST_CASE("sheets that cannot be right are refused") {
  CHECK(message("kernel,A,model_total_W\nk,1,2\n") ==
        "s.csv: there is no column measured_W; the columns are: kernel, A, model_total_W");
  CHECK(message("kernel,A,measured_W\nk,1,2\n") ==
        "s.csv: there is no column model_total_W; the columns are: kernel, A, measured_W");
  CHECK(message("kernel,A,model_total_W,measured_mW\nk,1,2,3\n") ==
        "s.csv: column measured_mW is in mW; a sheet has watts (measured_W)");
  CHECK(message("kernel,A_mJ,model_total_W,measured_W\nk,1,2,3\n") ==
        "s.csv: column A_mJ is in mJ; a sheet has watts");
  CHECK(message("kernel,model_total_W,measured_W\nk,1,2\n") ==
        "s.csv: there is no column of a component; the columns are: kernel, model_total_W, "
        "measured_W");
  CHECK(message("kernel,A,model_total_W,measured_W\nk,100,100,90000\n") ==
        "s.csv: line 2 (k): measured_W 90000 is 900 times model_total_W 100; are both in watts?");
  CHECK(message("kernel,A,model_total_W,measured_W\nk,100000,100,90\n") ==
        "s.csv: line 2 (k): A 100000 is more than model_total_W 100; is it in watts?");
  CHECK(message("kernel,A,model_total_W,measured_W\nk,0.1,100,90\n") ==
        "s.csv: line 2 (k): the components add up to 0.1, but model_total_W is 100; are they in "
        "watts?");
  CHECK(message("kernel,A,model_total_W,measured_W\nk,1,1,0\n") ==
        "s.csv: line 2 (k): measured_W is 0; no error can be relative to it");
  CHECK(message("kernel,A,model_total_W,measured_W\nk,-1,1,1\n") ==
        "s.csv: line 2: column A: -1 is negative");
  CHECK(message("kernel,A,model_total_W,measured_W\nk,NaN,1,1\n") ==
        "s.csv: line 2: column A: NaN is not finite");
  CHECK(message("kernel,A,model_total_W,measured_W\nk,1,1,1\nl,x,1,1\n") ==
        "s.csv: line 3: column A: x is no number");
}

TEST_CASE("accuracy of a small sheet, worked out by hand") {
  const Accuracy a = accuracy(sheet_of(kSmall));
  CHECK(a.mape == doctest::Approx((25.0 + 20 + 10) / 3));
  CHECK(a.bias == doctest::Approx((25.0 + 20 - 10) / 3));
  CHECK(a.largest == doctest::Approx(25));
  CHECK(a.largest_at == 0);
  CHECK(a.within_10 == 0);
  // Deviations from 55/3: 20/3, 5/3, -25/3.
  const double sigma = std::sqrt((400.0 + 25 + 625) / 9 / 3);
  CHECK(*a.confidence95 == doctest::Approx(1.959964 * sigma / std::sqrt(3.0)));
  // x - mean: -40/3, 20/3, 20/3; y - mean: -10/3, 50/3, -40/3.
  CHECK(*a.pearson_r == doctest::Approx((400.0 + 1000 - 800) / std::sqrt(2400.0 * 4200)));
}

TEST_CASE("a single kernel has neither an interval nor a correlation") {
  const Sheet s = sheet_of("kernel,A,model_total_W,measured_W\nk,100,100,80\n");
  const Accuracy a = accuracy(s);
  CHECK_FALSE(a.confidence95);
  CHECK_FALSE(a.pearson_r);
  CHECK(accuracy_line(s, a) ==
        "MAPE 25.00 % (1 kernel), maximum error 25.00 % (k), Pearson r not defined");
}

TEST_CASE("a model that says the same of all kernels has no correlation") {
  CHECK_FALSE(accuracy(sheet_of("kernel,A,model_total_W,measured_W\nk,0.1,0.1,0.2\nl,0.1,0.1,0.3\n"
                                "m,0.1,0.1,0.1\n"))
                  .pearson_r);
}

TEST_CASE("charts group known components and escape names") {
  const Sheet s =
      sheet_of("kernel,IBP,ICP,mine,model_total_W,measured_W\n<a&b>,1,2,3,10,10\nk2,1,2,4,10,10\n");
  const auto groups = grouped_components(s);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].label == "mine");
  CHECK(groups[1].label == "Not in a component");  // the total says 4 and 3 W more
  CHECK(groups[2].label == "Instruction supply");
  CHECK(groups[2].values[0] == 3);
  for (const std::string& svg :
       {component_chart(s, "<t>"), correlation_chart(s, accuracy(s), "<t>"),
        validation_page(s, accuracy(s), "<t>")}) {
    CHECK(svg.find("<a&b>") == std::string::npos);
    CHECK(svg.find("&lt;a&amp;b&gt;") != std::string::npos);
    CHECK(svg.find("&lt;t&gt;") != std::string::npos);
  }
}

TEST_CASE("many unknown components are summed up") {
  std::string header = "kernel", row = "k";
  for (int i = 0; i < 30; ++i) {
    header += ",c" + std::to_string(i);
    row += "," + std::to_string(i + 1);
  }
  const auto groups =
      grouped_components(sheet_of(header + ",model_total_W,measured_W\n" + row + ",465,465\n"));
  REQUIRE(groups.size() == 12);
  CHECK(groups.front().label == "c29");
  CHECK(groups.back().label == "Other");
  CHECK(groups.back().values[0] == 19 * 20 / 2);
}
