// Every integer, memory and branch row against qemu-aarch64: values, flags, memory and faults.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <map>

#include "tests/isa/a64/insn_oracle/oracle.h"

namespace gpusim::a64 {
namespace {

using oracle::Case;
using oracle::Result;
using oracle::Rng;

// Rows that this test does not draw, each with its reason.
const std::map<std::string_view, const char*> kNotDrawn = {
    {"UDF", "exceptions: tested by programs"},
    {"SVC", "the end of a case"},
    {"HVC", "UNDEFINED at EL0; qemu-user stops"},
    {"SMC", "UNDEFINED at EL0; qemu-user stops"},
    {"HLT", "qemu-user takes some for semihosting calls"},
    {"DCPS", "UNDEFINED at EL0"},
    {"ERET", "UNDEFINED at EL0"},
    {"ERETA", "UNDEFINED at EL0"},
    {"DRPS", "UNDEFINED at EL0"},
    {"WFI", "qemu-user waits for an interrupt that never comes"},
    {"SYS", "its encodings are tested one by one"},
    {"SYSL", "UNDEFINED at EL0"},
    {"MSR_imm", "UNDEFINED at EL0, but for extensions that we do not have"},
    {"MSR_reg", "tested register by register"},
    {"MRS", "tested register by register"},
    {"PACGA", "not supported"},
    {"PAC_reg", "qemu-user enables the keys; ours are disabled"},
    {"PAC_z", "qemu-user enables the keys; ours are disabled"},
    {"BRA_z", "qemu-user enables the keys; ours are disabled"},
    {"BLRA_z", "qemu-user enables the keys; ours are disabled"},
    {"BRA", "qemu-user enables the keys; ours are disabled"},
    {"BLRA", "qemu-user enables the keys; ours are disabled"},
    {"RETA", "qemu-user enables the keys; ours are disabled"},
    {"LDRA", "qemu-user enables the keys; ours are disabled"},
};

void compare(const std::vector<Case>& cases, const std::string& cpu) {
  const std::vector<Result> want = oracle::run_qemu(cases, cpu);
  for (const bool optimise : {false, true}) {
    const std::vector<Result> got = oracle::run_gpusim(cases, "scalar", optimise);
    std::map<std::string_view, int> failures;  // per row: one example each says enough
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string text = oracle::difference(i, cases[i], want[i], got[i]);
      if (text.empty()) continue;
      const Row* row = decode(cases[i].words[0]);
      if (failures[row ? row->name : "?"]++ == 0)
        FAIL_CHECK((optimise ? "optimised " : "") << text);
    }
    for (const auto& [name, count] : failures) MESSAGE(name << ": " << count << " differ");
  }
}

TEST_CASE("random instructions of every integer, memory and branch row") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  std::vector<Case> cases;
  size_t total = 0;
  const auto flush = [&] {
    compare(cases, "max");
    total += cases.size();
    cases.clear();
  };
  for (const Row& row : rows()) {
    if (row.group > Group::kBranchesSystem || kNotDrawn.contains(row.name)) continue;
    for (int i = 0; i < 150; ++i) {
      if (cases.size() == ORACLE_MAX_CASES) flush();
      cases.push_back(oracle::random_case(row, rng, cases.size()));
    }
  }
  flush();
  CHECK(total > 20000);
}

}  // namespace
}  // namespace gpusim::a64
