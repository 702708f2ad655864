// Against what was published: the thesis's table and example, the tables of the PTX paper and of
// the RISC-V chip, which lie in tests/published.
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "energy/builtin_targets.h"
#include "energy/model.h"
#include "energy/trace.h"
#include "helpers.h"

namespace gpusim::energy {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json target_json(const std::string& name) {
  for (const EmbeddedFile& file : builtin_target_files())
    if (file.name == name + ".json") return Json::parse(file.text);
  FAIL("no target file ", name);
  return {};
}

// Rows of a published table by its columns' names.
using Row = std::map<std::string, std::string>;
std::vector<Row> published(const std::string& name) {
  const fs::path path = fs::path(GPUSIM_SOURCE_DIR) / "tests" / "published" / "papers" / name;
  INFO(path.string());
  std::ifstream in(path);
  REQUIRE(in);
  const auto split = [](std::string line) {
    std::vector<std::string> cells;
    if (line.ends_with('\r')) line.pop_back();
    std::istringstream s(line);
    for (std::string cell; std::getline(s, cell, ',');) cells.push_back(cell);
    if (line.ends_with(',')) cells.emplace_back();
    return cells;
  };
  std::string line;
  std::getline(in, line);
  const auto names = split(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const auto cells = split(line);
    REQUIRE(cells.size() <= names.size());
    Row row;
    for (size_t i = 0; i < cells.size(); ++i) row[names[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST_CASE("thesis, Table 6.1: every row, its parts, and how classes use it") {
  const Json json = target_json("fermi");
  const auto rows = published("thesis_table_6_1_nJ.csv");
  for (const Row& row : rows) {
    INFO(row.at("instruction_class"));
    const Json& m = json["measurements"][row.at("instruction_class")];
    CHECK(m["unit"] == "nJ");
    CHECK(m["value"].get<double>() == std::stod(row.at("total_nJ")));
    CHECK(m["parts"]["main"].get<double>() == std::stod(row.at("main_nJ")));
    CHECK(m["parts"]["supplementary"].get<double>() == std::stod(row.at("supplementary_nJ")));
  }
  if (!rows.empty()) CHECK(rows.size() == json["measurements"].size());
  const Target& t = one_target("fermi");
  const std::pair<InsnClass, double> nanojoules_of[] = {{InsnClass::kIntegerArithmetic, 0.11},
                                                        {InsnClass::kIntegerDivision, 2.08},
                                                        {InsnClass::kIntegerLogical, 0.62},
                                                        {InsnClass::kIntegerComparison, 0.62},
                                                        {InsnClass::kFloatArithmetic, 0.08},
                                                        {InsnClass::kFloatDivision, 4.67},
                                                        {InsnClass::kFloatComparison, 0.83},
                                                        {InsnClass::kDoubleArithmetic, 0.79},
                                                        {InsnClass::kDoubleDivision, 12.94},
                                                        {InsnClass::kSpecialFunction, 1.72},
                                                        {InsnClass::kOnChipMemory, 0.20},
                                                        {InsnClass::kOffChipMemory, 17.95},
                                                        {InsnClass::kControlFlow, 0.62},
                                                        {InsnClass::kParallelism, 0.62},
                                                        {InsnClass::kOther, 0.62}};
  for (const auto& [c, nj] : nanojoules_of)
    CHECK(t.cost(c).energy.value.value() == doctest::Approx(nj * 1e-9));
}

// By hand from Table 6.1: control flow and parallelism as "integer other" (section 6.1.1.1).
TEST_CASE("thesis, section 6.1.3: the trace of a transpose kernel in joules") {
  const Activity a = activity_of_trace(
      parse_trace("Kernel name: _Z9transposeIjEvPT_jS1_j10NcvSize32u\n"
                  "Integer_arithmetic: 9041472\nInteger_logical: 828432\n"
                  "Integer_comparison: 1378080\nMemory_offchip: 526338\nMemory_onchip: 2724930\n"
                  "Control: 1943793\nParallelism: 278784\n",
                  "trace"),
      "trace");
  const double by_hand_nj = 0.11 * 9041472 + 0.62 * (828432 + 1378080 + 1943793 + 278784) +
                            17.95 * 526338 + 0.20 * 2724930;
  const Estimate e = estimate(one_target("fermi"), a, {});
  CHECK(e.dynamic.value.value() == doctest::Approx(by_hand_nj * 1e-9).epsilon(1e-12));
  CHECK(e.dynamic.value.value() == doctest::Approx(13.73e-3).epsilon(1e-3));
  CHECK(e.dynamic.low < e.dynamic.value);
  CHECK(e.dynamic.value < e.dynamic.high);
}

TEST_CASE("thesis, section 6.2.2: face detection's watts") {
  const Target& t = one_target("fermi");
  const Watts idle = t.states.at(0).idle_power;
  const Watts predicted_rise(46.1), measured(144.5);
  CHECK((idle + predicted_rise).value() == doctest::Approx(147.0));
  const double error = (idle + predicted_rise - measured) / predicted_rise;
  CHECK(100 * error == doctest::Approx(5.4).epsilon(0.01));
  CHECK(t.states.at(0).hold == Seconds(10));
  CHECK(t.states.at(1).hold == Seconds(5));
  CHECK(t.transfer->power == Watts(40));
  // A kernel with that rise, in the model: 147.0 W on average.
  Activity a;
  a.classes[static_cast<size_t>(InsnClass::kIntegerArithmetic)] = 1'000'000'000;
  const Seconds time = Joules(0.11) / predicted_rise;
  const Estimate e = estimate(t, a, {.time = time, .transfers = {}});
  CHECK(e.dynamic_power->value() == doctest::Approx(46.1));
  CHECK((e.total.value / *e.time).value() == doctest::Approx(147.0));
}

TEST_CASE("PTX, Table I: every cell of four GPUs, both readers, optimised and not") {
  const std::map<std::string, std::string> columns = {{"mtsm-o3", "opt_{}_mtsm_uJ"},
                                                      {"papi-o3", "opt_{}_papi_uJ"},
                                                      {"mtsm-o0", "nonopt_{}_mtsm_uJ"},
                                                      {"papi-o0", "nonopt_{}_papi_uJ"}};
  const auto rows = published("ptx_instruction_energy_table1.csv");
  for (const char* gpu : {"maxwell", "pascal", "volta", "turing"}) {
    const Json json = target_json(std::string("ptx-") + gpu);
    size_t cells = 0;
    for (const Row& row : rows) {
      std::string category = row.at("category");
      category.resize(category.size() - std::string(" Instructions").size());
      const std::string name = category + ": " + row.at("instruction");
      INFO(gpu << ", " << name);
      const Json* found = nullptr;
      for (const auto& m : json["measurements"])
        if (m["row"] == name) found = &m;
      for (const auto& [variant, pattern] : columns) {
        std::string column = pattern;
        column.replace(column.find("{}"), 2, gpu);
        if (row.at(column).empty()) {  // half precision on Maxwell
          CHECK(found == nullptr);
          continue;
        }
        REQUIRE(found != nullptr);
        CHECK((*found)["unit"] == "uJ");
        CHECK((*found)["values"][variant].get<double>() == std::stod(row.at(column)));
        ++cells;
      }
    }
    if (!rows.empty()) CHECK(cells == 4 * json["measurements"].size());
  }
  const Target& volta = one_target("ptx-volta/papi-o0");
  CHECK(volta.cost(InsnClass::kFloatDivision).energy.value.value() == doctest::Approx(34.1050e-6));
  CHECK(volta.cost(InsnClass::kFloatDivision).energy.high.value() ==
        doctest::Approx(34.1050e-6 * 1.1024));
}

TEST_CASE("RISC-V chip: the published rows, zeros as lower bounds") {
  const Json json = target_json("et-soc1");
  const std::map<std::string, double> all = [&] {
    std::map<std::string, double> values;
    for (const auto& m : json["measurements"].items())
      values[m.key()] = m.value()["value"].get<double>();
    return values;
  }();
  for (const Row& row : published("et_soc1_riscv_manycore_pJ.csv")) {
    INFO(row.at("instruction"));
    REQUIRE(all.contains(row.at("instruction")));
    CHECK(all.at(row.at("instruction")) == std::stod(row.at("random_pJ")));
    CHECK(json["measurements"][row.at("instruction")]["low"].get<double>() ==
          std::stod(row.at("zeros_pJ")));
  }
}

}  // namespace
}  // namespace gpusim::energy
