// Static power and the components that have hardware counters, recomputed from what the authors of
// AccelWattch published.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "energy/accelwattch/components.h"
#include "energy/accelwattch/model.h"
#include "energy/accelwattch/sheet.h"
#include "published_data.h"

using namespace gpusim;
using namespace gpusim::accelwattch;

namespace {

double watts(const Sheet& sheet, const SheetKernel& kernel, std::string_view component) {
  const int c = sheet.find(component);
  return c < 0 ? 0 : kernel.component[static_cast<size_t>(c)].value();
}

// As the published code chooses: a unit is used if it takes power.
Mix mix_of_row(const Sheet& s, const SheetKernel& k) {
  const auto uses = [&](std::initializer_list<const char*> components) {
    for (const char* c : components)
      if (watts(s, k, c) > 0) return true;
    return false;
  };
  return classify({.int_add = uses({"INTP"}),
                   .int_mul = uses({"INT_MULP"}),
                   .fp = uses({"FPUP", "FP_MULP"}),
                   .dp = uses({"DPUP", "DP_MULP"}),
                   .sfu = uses({"FP_SQRTP", "FP_LGP", "FP_SINP", "FP_EXP"}),
                   .tex = uses({"TEXP"}),
                   .tensor = uses({"TENSORP"}),
                   .l1 = uses({"DCP"}),
                   .shared = uses({"SHRDP"}),
                   .l2 = uses({"L2CP"})});
}

// Rows of hw_perf.csv in the names of the sheets.
const char* const kNames[][2] = {
    {"findRangeK", "b+tree-rodinia-3.1_k1"},
    {"findK", "b+tree-rodinia-3.1_k2"},
    {"_Z22bpnn_layerforward", "backprop-rodinia-3.1_k1"},
    {"_Z24bpnn_adjust_weights", "backprop-rodinia-3.1_k2"},
    {"_Z14calculate_temp", "hotspot-rodinia-3.1_k1"},
    {"_Z11kmeansPoint", "kmeans-rodinia-3.1_k1"},
    {"_Z4srad", "srad_v1-rodinia-3.1_k1"},
    {"_Z11mb_sad_calc", "parboil-sad_k1"},
    {"_Z9mysgemmNT", "parboil-sgemm_k1"},
    {"_Z12ComputeQ_GPU", "parboil-mri-q_k1"},
    {"_Z14CUDAkernel1DCT", "dct8x8_k1"},
    {"_Z14CUDAkernel2DCT", "dct8x8_k2"},
    {"_Z21binomialOptions", "binomialOptions_k1"},
    {"_Z15fwtBatch2Kernel", "fastWalshTransform_k1"},
    {"_Z15fwtBatch1Kernel", "fastWalshTransform_k2"},
    {"_Z17histogram64Kernel", "histogram_k1"},
    {"_Z21mergeSortSharedKernel", "mergeSort_k2"},
    {"_Z30mergeElementaryIntervals", "mergeSort_k1"},
    {"_Z26quasirandomGenerator", "quasirandomGenerator_k1"},
    {"_Z16inverseCNDKernel", "quasirandomGenerator_k2"},
    {"_Z15sobolGPU_kernel", "sobolQRNG_k1"},
    {"_Z12compute_gemm", "cudaTensor_k1"},
};

}  // namespace

TEST_CASE("static power of the hardware variants: lane counts come out as whole numbers") {
  const Model model = find_model("gv100/hw");
  for (const char* name : {"volta_hw", "volta_hybrid"}) {
    const Sheet sheet = read_sheet(published_folder() + "csv/" + name + ".csv");
    int with_lanes = 0;
    for (const SheetKernel& k : sheet.kernels) {
      CAPTURE(k.name);
      const double idle = watts(sheet, k, kIdle) / model.chip->idle_sm.value();
      const double active = model.chip->sms - idle;
      const StaticCategory& c = model.chip->statics[static_cast<size_t>(mix_of_row(sheet, k))];
      const Watts published(watts(sheet, k, kStatic));
      double lanes = 1;
      if (const auto exact = lanes_of(c, published, active, model.chip->sms)) {
        ++with_lanes;
        lanes = std::round(*exact);
        CHECK(std::abs(*exact - lanes) < 0.001);
        CHECK(lanes >= 1);
        CHECK(lanes <= 32);
      }
      CHECK(std::abs(static_power(c, lanes, active, model.chip->sms).value() - published.value()) <
            0.001);
    }
    CHECK(with_lanes == 22);  // the three others take no power per lane
  }
}

TEST_CASE("static power of the three GEMM kernels from their counters") {
  const Model model = find_model("gv100/hw");
  const CsvTable counters = read_csv(published_folder() + "hw_perf.csv");
  const size_t idle = counters.require("Num_Idle_SMs"), name = counters.require("Benchmark");
  const std::map<std::string, double> expected = {{"cutlass_perf_test_k1", 12.040},
                                                  {"cutlass_perf_test_k2", 19.310},
                                                  {"cutlass_perf_test_k3", 47.828}};
  int found = 0;
  for (const CsvRow& row : counters.rows) {
    if (!expected.contains(row.cells[name])) continue;
    ++found;
    const double active = 80 - require_number(counters, row, idle);
    const StaticCategory& c = model.chip->statics[static_cast<size_t>(Mix::kIntFpTensor)];
    CHECK(std::abs(static_power(c, 32, active, 80).value() - expected.at(row.cells[name])) <
          0.0006);
  }
  CHECK(found == 3);
}

TEST_CASE("components of the hardware variant from raw counters") {
  const Model model = find_model("gv100/hw");
  const ChipModel& chip = *model.chip;
  const Sheet sheet = read_sheet(published_folder() + "csv/volta_hw.csv");
  const CsvTable counters = read_csv(published_folder() + "hw_perf.csv");
  std::map<std::string, double> worst;
  int kernels = 0;
  for (const CsvRow& row : counters.rows) {
    const auto value = [&](const char* c) {
      return require_number(counters, row, counters.require(c));
    };
    const std::string& mangled = row.cells[counters.require("Kernel")];
    std::string kernel_name;
    for (const auto& [begin, of_sheet] : kNames)
      if (mangled.starts_with(begin)) kernel_name = of_sheet;
    if (mangled.starts_with("_ZN7cutlass"))
      kernel_name = "cutlass_k" + row.cells[counters.require("Benchmark")].substr(19);
    CAPTURE(kernel_name);
    const SheetKernel* published = nullptr;
    for (const SheetKernel& k : sheet.kernels)
      if (k.name == kernel_name) published = &k;
    REQUIRE(published);
    ++kernels;
    KernelActivity k;
    k.name = kernel_name;
    k.counts.assign(chip.counters.size(), 0.0);
    const auto set = [&](const char* counter, double count) {
      k.counts[static_cast<size_t>(chip.find_counter(counter))] = count;
    };
    for (const auto& [counter, column] :
         std::initializer_list<std::pair<const char*, const char*>>{{"DC_RH", "L1_RH"},
                                                                    {"DC_RM", "L1_RM"},
                                                                    {"DC_WH", "L1_WH"},
                                                                    {"DC_WM", "L1_WM"},
                                                                    {"CC_H", "CC_ACC"},
                                                                    {"SHRD_ACC", "SHRD_ACC"},
                                                                    {"MEM_RD", "DRAM_Rd"},
                                                                    {"MEM_WR", "DRAM_Wr"},
                                                                    {"L2_RH", "L2_RH"},
                                                                    {"L2_RM", "L2_RM"},
                                                                    {"L2_WH", "L2_WH"},
                                                                    {"L2_WM", "L2_WM"},
                                                                    {"NOC_A", "NOC"}})
      set(counter, value(column));
    // The counters were collected in another run than the sheet's: a kernel takes up to 2.6 %
    // longer in one of them. Work is the same, so energies are compared; how long the sheet's run
    // was follows from its pipeline power, which only depends on work per time.
    const double duty_cycles = value("Pipeline_Duty") * value("Elapsed_Cycles");
    set("PIPE_A", duty_cycles);
    k.time = Seconds(value("Elapsed_Cycles") / chip.clock.value());
    const auto watts_of = [&](const PowerBreakdown& p, const char* c) {
      return p.dynamic[static_cast<size_t>(chip.find_component(c))].value();
    };
    const double stretch = watts_of(power(model, k), "PIPEP") / watts(sheet, *published, "PIPEP");
    CHECK(std::abs(stretch - 1) < 0.03);
    if (kernel_name.starts_with("cutlass")) CHECK(std::abs(stretch - 1) < 0.0001);
    k.time = k.time * stretch;
    const PowerBreakdown p = power(model, k);
    for (const char* c : {"SHRDP", "DCP", "CCP", "L2CP", "DRAMP"}) {
      const double theirs = watts(sheet, *published, c), ours = watts_of(p, c);
      if (theirs == 0) {
        CHECK(ours == 0);
        continue;
      }
      const double error = 100 * std::abs(ours / theirs - 1);
      if (theirs > 0.1) worst[c] = std::max(worst[c], error);
    }
  }
  CHECK(kernels == 25);
  for (const auto& [component, error] : worst) {
    MESSAGE(component << ": at most " << error << " % from the published watts");
    CHECK(error < 0.5);
  }
}

TEST_CASE("technology scaling takes Pascal's sheet from one to the other") {
  const Sheet before = read_sheet(published_folder() + "csv/pascal_sass_sim_before_scaling.csv");
  const Sheet after = read_sheet(published_folder() + "csv/pascal_sass_sim.csv");
  const Technology t = find_model("gv100").chip->technology(16);
  REQUIRE(before.kernels.size() == after.kernels.size());
  for (size_t k = 0; k < before.kernels.size(); ++k) {
    for (size_t c = 0; c < before.components.size(); ++c) {
      const std::string& name = before.components[c];
      if (name == kStatic) continue;  // of another run of the simulator: up to 1 % apart
      const double factor = name == kConstant ? 1 : name == kIdle ? t.idle : t.dynamic;
      CHECK(before.kernels[k].component[c].value() * factor ==
            doctest::Approx(after.kernels[k].component[c].value()).epsilon(1e-6));
    }
  }
}
