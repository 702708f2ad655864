#include "energy/accelwattch/ptx_counts.h"

#include <algorithm>

namespace gpusim::accelwattch {
namespace {

using energy::PtxSpelling;

// A warp's access to consecutive 4-byte words takes four sectors of 32 bytes.
constexpr double kSectorsPerAccess = 4;
// Instructions per fetch.
constexpr double kPerFetch = 2;
constexpr double kSectorBytes = 32;

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

// Requests that go on to the next level: each is a flit there and one back.
struct Sectors {
  double read_hits = 0, read_misses = 0, write_hits = 0, write_misses = 0;
  double all() const { return read_hits + read_misses + write_hits + write_misses; }
};

Sectors sectors_of(const energy::CacheActivity::Level& level, double sectors_per_line) {
  const auto of = [&](uint64_t lines) { return sectors_per_line * static_cast<double>(lines); };
  return {of(level.reads - level.read_misses), of(level.read_misses),
          of(level.writes - level.write_misses), of(level.write_misses)};
}

}  // namespace

PtxOperands ptx_operands(std::string_view opcode) {
  const PtxSpelling s = energy::split_ptx(opcode);
  const int elements = s.has("v4") ? 4 : s.has("v2") ? 2 : 1;
  if (is(s, {"bra", "brx", "call", "ret", "exit", "trap", "bar", "barrier", "membar", "fence"}))
    return {0, 0};
  if (is(s, {"ld", "ldu"})) return {1, elements};
  if (is(s, {"tex", "tld4"})) return {2, 4};
  if (is(s, {"st"})) return {1 + elements, 0};
  if (is(s, {"red"})) return {2, 0};
  if (is(s, {"atom"})) return {s.has("cas") ? 3 : 2, 1};
  if (is(s, {"setp"})) return {2, 0};
  if (is(s, {"mov", "cvt", "cvta", "neg", "abs", "not", "cnot", "popc", "clz", "brev", "bfind",
             "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"}))
    return {1, 1};
  if (is(s, {"mad", "fma", "madc", "sad", "mad24", "dp4a", "dp2a", "bfe", "prmt", "shf", "lop3",
             "slct", "vabsdiff4"}))
    return {3, 1};
  if (is(s, {"bfi"})) return {4, 1};
  return {2, 1};
}

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

void set_ptx_counts(KernelActivity& k, const ChipModel& chip, const energy::ActivityPart& kernel) {
  k.counts.assign(chip.counters.size(), 0.0);
  const auto add = [&](std::string_view counter, double value) {
    const int i = chip.find_counter(std::string(counter));
    if (i >= 0) k.counts[static_cast<size_t>(i)] += value;
  };
  const double sectors = kSectorsPerAccess / chip.lanes;
  for (const auto& [opcode, executions] : kernel.opcodes) {
    const auto n = static_cast<double>(executions);
    const PtxSpelling s = energy::split_ptx(opcode);
    if (const std::string_view counter = ptx_counter(opcode); !counter.empty()) add(counter, n);
    add("TOT_INST", n / k.lanes);
    add("IC_H", n / k.lanes / kPerFetch);
    const PtxOperands operands = ptx_operands(opcode);
    add("REG_RD", operands.reads * n);
    add("REG_WR", operands.writes * n);
    if (!is_memory(s)) {
      add("FP_INT", n / k.lanes);
    } else if (has_space(s, "shared") || is(s, {"ldmatrix"})) {
      add("SHRD_ACC", n / k.lanes);
    } else if (has_space(s, "param") || has_space(s, "const")) {
      add("CC_H", n / k.lanes);
    } else if (is(s, {"tex", "tld4"})) {
      add("TC_H", n / k.lanes);
    } else if (kernel.warps && !has_space(s, "local") && !is(s, {"suld", "sust", "sured"})) {
      // Counted: below.
    } else if (is(s, {"atom", "red", "sured"})) {
      add("L2_RH", sectors * n);  // executed in the L2 cache
    } else {
      add(is(s, {"st", "sust"}) ? "DC_WH" : "DC_RH", sectors * n);
    }
  }
  if (!kernel.warps) return;
  const auto number = [](uint64_t n) { return static_cast<double>(n); };
  const energy::WarpActivity& w = *kernel.warps;
  if (!kernel.caches || kernel.caches->levels.empty()) {
    add("DC_RH", number(w.sectors - w.store_sectors - w.atomic_sectors));
    add("DC_WH", number(w.store_sectors));
    add("L2_RH", number(w.atomic_sectors));
    return;
  }
  const energy::CacheActivity& c = *kernel.caches;
  const double per_line = number(c.line_bytes) / kSectorBytes;
  const Sectors l1 = sectors_of(c.levels.front(), per_line);
  add("DC_RH", l1.read_hits);
  add("DC_RM", l1.read_misses);
  add("DC_WH", l1.write_hits);
  add("DC_WM", l1.write_misses);
  if (c.levels.size() > 1) {
    const Sectors l2 = sectors_of(c.levels.back(), per_line);
    add("L2_RH", l2.read_hits);
    add("L2_RM", l2.read_misses);
    add("L2_WH", l2.write_hits);
    add("L2_WM", l2.write_misses);
    add("NOC_A", 2 * l2.all());
  }
  add("MEM_RD", per_line * number(c.memory_reads));
  add("MEM_WR", per_line * number(c.memory_writes));
}

}  // namespace gpusim::accelwattch
