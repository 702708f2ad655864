#include "energy/accelwattch/ptx_counts.h"

#include <algorithm>

namespace gpusim::accelwattch {
namespace {

using energy::PtxSpelling;

// A warp's access to consecutive 4-byte words takes four sectors of 32 bytes.
constexpr double kSectorsPerAccess = 4;
// Operands that an instruction reads and writes in the register file, and instructions per fetch.
constexpr double kReads = 2, kWrites = 1, kPerFetch = 2;

bool is(const PtxSpelling& s, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), s.base) != names.end();
}
bool is_float(std::string_view type) {
  return !type.empty() && (type[0] == 'f' || type.starts_with("bf"));
}
bool has_space(const PtxSpelling& s, std::string_view space) {
  return std::any_of(s.modifiers.begin(), s.modifiers.end(),
                     [&](std::string_view m) { return m.starts_with(space); });
}
bool is_memory(const PtxSpelling& s) {
  return is(s,
            {"ld", "ldu", "st", "tex", "tld4", "suld", "sust", "sured", "ldmatrix", "atom", "red"});
}

}  // namespace

std::string_view ptx_counter(std::string_view opcode) {
  const PtxSpelling s = energy::split_ptx(opcode);
  const bool is_double = s.type() == "f64", has_float = is_float(s.type());
  if (is_memory(s)) return is(s, {"tex", "tld4"}) ? "TEX_ACC" : "";
  if (is(s, {"bar", "barrier", "membar", "fence", "mbarrier", "nanosleep", "prefetch"})) return "";
  if (is(s, {"wmma", "mma"})) return "TENSOR_ACC";
  if (is(s, {"sqrt", "rsqrt"})) return "FP_SQRT_ACC";
  if (is(s, {"lg2"})) return "FP_LG_ACC";
  if (is(s, {"sin", "cos"})) return "FP_SIN_ACC";
  if (is(s, {"ex2", "tanh"})) return "FP_EXP_ACC";
  if (is(s, {"div", "rem", "rcp"}))
    return is_double ? "DP_DIV_ACC" : has_float ? "FP_DIV_ACC" : "INT_DIV_ACC";
  if (is(s, {"mul", "mad", "fma", "madc"})) {
    if (has_float) return is_double ? "DP_MUL_ACC" : "FP_MUL_ACC";
    return s.type().ends_with("32") && !s.has("wide") ? "INT_MUL32_ACC" : "INT_MUL_ACC";
  }
  if (is(s, {"mul24", "mad24"})) return "INT_MUL24_ACC";
  if (is(s, {"setp", "set", "testp"}) && !s.types.empty() && is_float(s.types.back()))
    return s.types.back() == "f64" ? "DP_ACC" : "FP_ACC";
  if (has_float && is(s, {"add", "sub", "neg", "abs", "min", "max", "cvt", "copysign"}))
    return is_double ? "DP_ACC" : "FP_ACC";
  return "INT_ACC";
}

void set_ptx_counts(KernelActivity& k, const ChipModel& chip, const energy::OpcodeCounts& opcodes) {
  k.counts.assign(chip.counters.size(), 0.0);
  const auto add = [&](std::string_view counter, double value) {
    const int i = chip.find_counter(std::string(counter));
    if (i >= 0) k.counts[static_cast<size_t>(i)] += value;
  };
  const double sectors = kSectorsPerAccess / chip.lanes;
  for (const auto& [opcode, executions] : opcodes) {
    const auto n = static_cast<double>(executions);
    const PtxSpelling s = energy::split_ptx(opcode);
    if (const std::string_view counter = ptx_counter(opcode); !counter.empty()) add(counter, n);
    add("TOT_INST", n / k.lanes);
    add("IC_H", n / k.lanes / kPerFetch);
    add("REG_RD", kReads * n);
    add("REG_WR", kWrites * n);
    if (!is_memory(s)) {
      add("FP_INT", n / k.lanes);
    } else if (has_space(s, "shared") || is(s, {"ldmatrix"})) {
      add("SHRD_ACC", n / k.lanes);
    } else if (has_space(s, "param") || has_space(s, "const")) {
      add("CC_H", n / k.lanes);
    } else if (is(s, {"tex", "tld4"})) {
      add("TC_H", n / k.lanes);
    } else if (is(s, {"atom", "red", "sured"})) {
      add("L2_RH", sectors * n);  // executed in the L2 cache
    } else {
      add(is(s, {"st", "sust"}) ? "DC_WH" : "DC_RH", sectors * n);
    }
  }
}

}  // namespace gpusim::accelwattch
