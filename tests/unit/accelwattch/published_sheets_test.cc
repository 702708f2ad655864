// The accuracies that the paper prints, from the sheets that its authors published.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "energy/accelwattch/accuracy.h"
#include "energy/accelwattch/sheet.h"
#include "published_data.h"

using namespace gpusim::accelwattch;

namespace {

struct Published {
  const char* sheet;
  size_t kernels;
  double mape, confidence95;
};

}  // namespace

TEST_CASE("published accuracies come out to a hundredth of a percent") {
  for (const Published& p :
       {Published{"volta_sass_sim", 26, 9.23, 3.12}, Published{"volta_hw", 25, 7.46, 2.18},
        Published{"volta_hybrid", 25, 8.15, 2.15},
        Published{"pascal_sass_sim_before_scaling", 22, 12.84, -1},
        Published{"pascal_sass_sim", 22, 10.99, 3.81},
        Published{"turing_sass_sim", 26, 12.95, 4.71}}) {
    CAPTURE(p.sheet);
    const Sheet sheet = read_sheet(published_folder() + "csv/" + p.sheet + ".csv");
    const Accuracy a = accuracy(sheet);
    CHECK(a.kernels == p.kernels);
    CHECK(std::abs(a.mape - p.mape) <= 0.01);
    if (p.confidence95 >= 0) CHECK(std::abs(*a.confidence95 - p.confidence95) <= 0.01);
  }
}

TEST_CASE("Volta SASS SIM: maximum error and correlation") {
  const Sheet sheet = read_sheet(published_folder() + "csv/volta_sass_sim.csv");
  const Accuracy a = accuracy(sheet);
  CHECK(std::abs(a.largest - 30.0) <= 0.05);
  CHECK(sheet.kernels[a.largest_at].name == "dct8x8_k2");
  CHECK(std::abs(*a.pearson_r - 0.830) <= 0.0005);
  CHECK(a.within_10 == 17);  // section 6.2
}

TEST_CASE("components add up to the total, but for Turing's constant power") {
  for (const char* name : {"volta_sass_sim", "volta_hw", "volta_hybrid", "pascal_sass_sim"})
    CHECK(read_sheet(published_folder() + "csv/" + name + ".csv").notes.empty());
  // The total takes 1.7 times the constant power that the column shows.
  const Sheet turing = read_sheet(published_folder() + "csv/turing_sass_sim.csv");
  REQUIRE(turing.notes.size() == 1);
  CHECK(turing.notes[0].find("by 22.8995 W in 26 of 26 rows") != std::string::npos);
}
