#include "energy/power/microbench/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

constexpr auto kIntArith = InsnClass::kIntegerArithmetic;
constexpr auto kIntDiv = InsnClass::kIntegerDivision;
constexpr auto kIntLogic = InsnClass::kIntegerLogical;
constexpr auto kIntCompare = InsnClass::kIntegerComparison;
constexpr auto kFloatArith = InsnClass::kFloatArithmetic;
constexpr auto kFloatDiv = InsnClass::kFloatDivision;
constexpr auto kFloatCompare = InsnClass::kFloatComparison;
constexpr auto kDoubleArith = InsnClass::kDoubleArithmetic;
constexpr auto kDoubleDiv = InsnClass::kDoubleDivision;
constexpr auto kSpecial = InsnClass::kSpecialFunction;
constexpr auto kOnChip = InsnClass::kOnChipMemory;
constexpr auto kOffChip = InsnClass::kOffChipMemory;
constexpr auto kControl = InsnClass::kControlFlow;
constexpr auto kParallel = InsnClass::kParallelism;
constexpr auto kOther = InsnClass::kOther;

constexpr Row kRows[] = {
    {"int_add", "Integer Arithmetic: add / sub / min / max", true},
    {"int_mul", "Integer Arithmetic: mul / mad", true},
    {"int_div_signed", "Integer Arithmetic: {s} div", true},
    {"int_rem_signed", "Integer Arithmetic: {s} rem", true},
    {"int_abs", "Integer Arithmetic: abs", true},
    {"int_div_unsigned", "Integer Arithmetic: {u} div", true},
    {"int_rem_unsigned", "Integer Arithmetic: {u} rem", true},
    {"logic", "Logic and Shift: and / or / not / xor", true},
    {"cnot", "Logic and Shift: cnot", true},
    {"shift", "Logic and Shift: shl / shr", true},
    {"fp32_add", "Floating Single Precision: add / sub / min / max", true},
    {"fp32_mul", "Floating Single Precision: mul / mad / fma", true},
    {"fp32_div", "Floating Single Precision: div", true},
    {"fp64_add", "Double Precision: add / sub / min / max", true},
    {"fp64_div", "Double Precision: div", true},
    {"fp16", "Half Precision: add / sub / mul", true},
    {"multi_add", "Multi Precision: add.cc / addc / sub.cc", true},
    {"multi_subc", "Multi Precision: subc", true},
    {"multi_mad", "Multi Precision: mad.cc / madc", true},
    {"rcp", "Special Mathematical: rcp", true},
    {"sqrt", "Special Mathematical: sqrt", true},
    {"sqrt_approx", "Special Mathematical: approx.sqrt", true},
    {"rsqrt", "Special Mathematical: rsqrt", true},
    {"sin_cos", "Special Mathematical: sin / cos", true},
    {"lg2", "Special Mathematical: lg2", true},
    {"ex2", "Special Mathematical: ex2", true},
    {"copysign", "Special Mathematical: copysign", true},
    {"mul24", "Integer Intrinsic: mul24() / mad24()", true},
    {"sad", "Integer Intrinsic: sad()", true},
    {"popc", "Integer Intrinsic: popc()", true},
    {"clz", "Integer Intrinsic: clz()", true},
    {"bfind", "Integer Intrinsic: bfind()", true},
    {"fp64_mul", "Double precision: mul / fma (thesis: arithmetic)", false},
    {"fp64_special", "Double precision: sqrt, rcp (thesis: special)", false},
    {"int_special", "Integer: square root by way of floats (thesis: special)", false},
    {"int_compare", "Integer: setp (thesis: control)", false},
    {"fp32_compare", "Single precision: setp (thesis: control)", false},
    {"fp64_compare", "Double precision: setp (thesis: control)", false},
    {"branch", "Control: conditional branch, not taken", false},
    {"shared", "Memory on the chip: shared", false},
    {"global_l1", "Memory on the chip: global, served by L1", false},
    {"global_l2", "Memory on the chip: global, served by L2", false},
    {"global_dram", "Memory off the chip: global, 4 bytes of each thread, streaming", false},
    {"barrier", "Parallelism: bar.sync", false},
    {"vote", "Parallelism: vote.ballot", false},
    {"reduction", "Parallelism: red, atom", false},
    {"cvta", "Other: cvta", false},
};

// Integers: x runs through a linear congruential generator, so operands are random; s takes every
// result by a multiply-add. Neither can be fused with what is measured (two additions could: IADD3)
// nor folded.
#define INT_BEFORE "mad.lo.u32 {x}, {x}, {a}, {b};"
#define INT_AFTER "mad.lo.u32 {s}, {s}, {a}, {v};"
#define INT(id, row, cls, text) \
  { id, row, cls, 'u', INT_BEFORE, text, INT_AFTER }
#define INT_LONG(id, row, cls, text) \
  { id, row, cls, 'u', INT_BEFORE, text, INT_AFTER, MemoryUse::kNone, true }
// Floats: with a = -1 and b = 3 the chain x -> 3 - x moves between two values between 1 and 2.
#define FLOAT_BEFORE "fma.rn.f32 {x}, {x}, {a}, {b};"
#define FLOAT_AFTER "fma.rn.f32 {s}, {s}, {a}, {v};"
#define FLOAT(id, row, cls, text) \
  { id, row, cls, 'f', FLOAT_BEFORE, text, FLOAT_AFTER }
#define FLOAT_LONG(id, row, cls, text) \
  { id, row, cls, 'f', FLOAT_BEFORE, text, FLOAT_AFTER, MemoryUse::kNone, true }
#define DOUBLE_BEFORE "fma.rn.f64 {x}, {x}, {a}, {b};"
#define DOUBLE_AFTER "fma.rn.f64 {s}, {s}, {a}, {v};"
#define DOUBLE(id, row, cls, text) \
  { id, row, cls, 'd', DOUBLE_BEFORE, text, DOUBLE_AFTER }
#define DOUBLE_LONG(id, row, cls, text) \
  { id, row, cls, 'd', DOUBLE_BEFORE, text, DOUBLE_AFTER, MemoryUse::kNone, true }
#define HALF(id, text)                                                    \
  {                                                                       \
    id, "fp16", kFloatArith, 'h', "fma.rn.f16 {x}, {x}, {a}, {b};", text, \
        "fma.rn.f16 {s}, {s}, {a}, {v};"                                  \
  }
// Memory: {o} is an offset that moves on by the launch's stride and stays in its buffer.
// {z} keeps the address alive in the overhead, too.
#define GLOBAL_BEFORE                                                                   \
  "add.u64 {o}, {o}, {stride}; and.b64 {o}, {o}, {mask}; add.u64 {addr}, {base}, {o}; " \
  "mad.lo.u32 {x}, {x}, {a}, {b};"
#define GLOBAL_AFTER "xor.b64 {z}, {z}, {addr}; " INT_AFTER
#define GLOBAL(id, row, cls, use, text) \
  { id, row, cls, 'u', GLOBAL_BEFORE, text, GLOBAL_AFTER, use }

constexpr Instruction kInstructions[] = {
    INT("add.s32", "int_add", kIntArith, "add.s32 {t}, {x}, {y};"),
    INT("sub.s32", "int_add", kIntArith, "sub.s32 {t}, {x}, {y};"),
    INT("min.s32", "int_add", kIntArith, "min.s32 {t}, {x}, {y};"),
    INT("max.s32", "int_add", kIntArith, "max.s32 {t}, {x}, {y};"),
    INT("mul.lo.s32", "int_mul", kIntArith, "mul.lo.s32 {t}, {x}, {y};"),
    INT("mad.lo.s32", "int_mul", kIntArith, "mad.lo.s32 {t}, {x}, {y}, {c};"),
    INT_LONG("div.s32", "int_div_signed", kIntDiv, "div.s32 {t}, {s}, {x};"),
    INT_LONG("rem.s32", "int_rem_signed", kIntDiv, "rem.s32 {t}, {s}, {x};"),
    INT("abs.s32", "int_abs", kIntArith, "abs.s32 {t}, {x};"),
    INT_LONG("div.u32", "int_div_unsigned", kIntDiv, "div.u32 {t}, {s}, {x};"),
    INT_LONG("rem.u32", "int_rem_unsigned", kIntDiv, "rem.u32 {t}, {s}, {x};"),
    INT("and.b32", "logic", kIntLogic, "and.b32 {t}, {x}, {y};"),
    INT("or.b32", "logic", kIntLogic, "or.b32 {t}, {x}, {y};"),
    INT("not.b32", "logic", kIntLogic, "not.b32 {t}, {x};"),
    INT("xor.b32", "logic", kIntLogic, "xor.b32 {t}, {x}, {y};"),
    INT("cnot.b32", "cnot", kIntLogic, "cnot.b32 {t}, {x};"),
    INT("shl.b32", "shift", kIntLogic, "shl.b32 {t}, {x}, {c};"),
    INT("shr.u32", "shift", kIntLogic, "shr.u32 {t}, {x}, {c};"),
    FLOAT("add.f32", "fp32_add", kFloatArith, "add.rn.f32 {t}, {x}, {y};"),
    FLOAT("sub.f32", "fp32_add", kFloatArith, "sub.rn.f32 {t}, {x}, {y};"),
    FLOAT("min.f32", "fp32_add", kFloatArith, "min.f32 {t}, {x}, {y};"),
    FLOAT("max.f32", "fp32_add", kFloatArith, "max.f32 {t}, {x}, {y};"),
    FLOAT("mul.f32", "fp32_mul", kFloatArith, "mul.rn.f32 {t}, {x}, {y};"),
    FLOAT("mad.f32", "fp32_mul", kFloatArith, "mad.rn.f32 {t}, {x}, {y}, {c};"),
    FLOAT("fma.f32", "fp32_mul", kFloatArith, "fma.rn.f32 {t}, {x}, {y}, {c};"),
    FLOAT_LONG("div.f32", "fp32_div", kFloatDiv, "div.rn.f32 {t}, {y}, {x};"),
    DOUBLE("add.f64", "fp64_add", kDoubleArith, "add.rn.f64 {t}, {x}, {y};"),
    DOUBLE("sub.f64", "fp64_add", kDoubleArith, "sub.rn.f64 {t}, {x}, {y};"),
    DOUBLE("min.f64", "fp64_add", kDoubleArith, "min.f64 {t}, {x}, {y};"),
    DOUBLE("max.f64", "fp64_add", kDoubleArith, "max.f64 {t}, {x}, {y};"),
    DOUBLE_LONG("div.f64", "fp64_div", kDoubleDiv, "div.rn.f64 {t}, {y}, {x};"),
    HALF("add.f16", "add.rn.f16 {t}, {x}, {y};"),
    HALF("sub.f16", "sub.rn.f16 {t}, {x}, {y};"),
    HALF("mul.f16", "mul.rn.f16 {t}, {x}, {y};"),
    // A carry that nobody takes would leave a plain addition: pairs, of which the other half is in
    // the overhead.
    {"add.cc.u32", "multi_add", kIntArith, 'u', INT_BEFORE, "add.cc.u32 {t}, {x}, {y};",
     "addc.u32 {u}, {u}, {v}; " INT_AFTER},
    {"addc.u32", "multi_add", kIntArith, 'u', INT_BEFORE " add.cc.u32 {u}, {x}, {y};",
     "addc.u32 {t}, {x}, {c};", "mad.lo.u32 {s}, {s}, {u}, {v};"},
    {"sub.cc.u32", "multi_add", kIntArith, 'u', INT_BEFORE, "sub.cc.u32 {t}, {x}, {y};",
     "subc.u32 {u}, {u}, {v}; " INT_AFTER},
    {"subc.u32", "multi_subc", kIntArith, 'u', INT_BEFORE " sub.cc.u32 {u}, {x}, {y};",
     "subc.u32 {t}, {x}, {c};", "mad.lo.u32 {s}, {s}, {u}, {v};"},
    {"mad.lo.cc.u32", "multi_mad", kIntArith, 'u', INT_BEFORE, "mad.lo.cc.u32 {t}, {x}, {y}, {c};",
     "addc.u32 {u}, {u}, {v}; " INT_AFTER},
    {"madc.hi.u32", "multi_mad", kIntArith, 'u', INT_BEFORE " add.cc.u32 {u}, {x}, {y};",
     "madc.hi.u32 {t}, {x}, {y}, {c};", "mad.lo.u32 {s}, {s}, {u}, {v};"},
    FLOAT_LONG("rcp.rn.f32", "rcp", kSpecial, "rcp.rn.f32 {t}, {x};"),
    FLOAT_LONG("sqrt.rn.f32", "sqrt", kSpecial, "sqrt.rn.f32 {t}, {x};"),
    FLOAT("sqrt.approx.f32", "sqrt_approx", kSpecial, "sqrt.approx.f32 {t}, {x};"),
    FLOAT("rsqrt.approx.f32", "rsqrt", kSpecial, "rsqrt.approx.f32 {t}, {x};"),
    FLOAT("sin.approx.f32", "sin_cos", kSpecial, "sin.approx.f32 {t}, {x};"),
    FLOAT("cos.approx.f32", "sin_cos", kSpecial, "cos.approx.f32 {t}, {x};"),
    FLOAT("lg2.approx.f32", "lg2", kSpecial, "lg2.approx.f32 {t}, {x};"),
    FLOAT("ex2.approx.f32", "ex2", kSpecial, "ex2.approx.f32 {t}, {x};"),
    FLOAT("copysign.f32", "copysign", kSpecial, "copysign.f32 {t}, {y}, {x};"),
    INT("mul24.lo.u32", "mul24", kIntArith, "mul24.lo.u32 {t}, {x}, {y};"),
    INT("mad24.lo.u32", "mul24", kIntArith, "mad24.lo.u32 {t}, {x}, {y}, {c};"),
    INT("sad.s32", "sad", kIntArith, "sad.s32 {t}, {x}, {y}, {c};"),
    INT("popc.b32", "popc", kIntLogic, "popc.b32 {t}, {x};"),
    INT("clz.b32", "clz", kIntLogic, "clz.b32 {t}, {x};"),
    INT("bfind.u32", "bfind", kIntLogic, "bfind.u32 {t}, {x};"),
    DOUBLE("mul.f64", "fp64_mul", kDoubleArith, "mul.rn.f64 {t}, {x}, {y};"),
    DOUBLE("fma.f64", "fp64_mul", kDoubleArith, "fma.rn.f64 {t}, {x}, {y}, {c};"),
    DOUBLE_LONG("sqrt.rn.f64", "fp64_special", kSpecial, "sqrt.rn.f64 {t}, {x};"),
    DOUBLE_LONG("rcp.rn.f64", "fp64_special", kSpecial, "rcp.rn.f64 {t}, {x};"),
    INT("isqrt.u32", "int_special", kSpecial,
        "cvt.rn.f32.u32 {ft}, {x}; sqrt.approx.f32 {ft}, {ft}; cvt.rzi.u32.f32 {t}, {ft};"),
    {"setp.s32", "int_compare", kIntCompare, 'u', INT_BEFORE, "setp.lt.xor.s32 {p}, {x}, {y}, {p};",
     ""},
    {"setp.f32", "fp32_compare", kFloatCompare, 'f', FLOAT_BEFORE,
     "setp.lt.xor.f32 {p}, {x}, {y}, {p};", ""},
    {"setp.f64", "fp64_compare", kFloatCompare, 'd', DOUBLE_BEFORE,
     "setp.lt.xor.f64 {p}, {x}, {y}, {p};", ""},
    // x stays odd (it starts odd, a is odd): the branch is never taken. The launch knows, the
    // compiler does not. The overhead has the comparison, too, which a chain keeps alive there.
    {"bra", "branch", kControl, 'u', "mad.lo.u32 {x}, {x}, {a}, {even};",
     "setp.eq.u32 {q}, {x}, {even}; @{q} bra OUT;", "", MemoryUse::kNone, false, false,
     "setp.eq.xor.u32 {p}, {x}, {even}, {p};"},
    // Chains of addresses in shared memory: each load gives the next one's address.
    {"ld.shared", "shared", kOnChip, 'u', "", "ld.shared.u32 {x}, [{x}];", "", MemoryUse::kShared},
    {"st.shared", "shared", kOnChip, 'u', INT_BEFORE, "st.volatile.shared.u32 [{sh}], {x};", "",
     MemoryUse::kShared},
    GLOBAL("ld.global.l1", "global_l1", kOnChip, MemoryUse::kL1, "ld.global.ca.u32 {t}, [{addr}];"),
    GLOBAL("ld.global.l2", "global_l2", kOnChip, MemoryUse::kL2, "ld.global.cg.u32 {t}, [{addr}];"),
    GLOBAL("ld.global.dram", "global_dram", kOffChip, MemoryUse::kDram,
           "ld.global.cs.u32 {t}, [{addr}];"),
    GLOBAL("st.global.dram", "global_dram", kOffChip, MemoryUse::kDram,
           "st.global.cs.u32 [{addr}], {x};"),
    {"bar.sync", "barrier", kParallel, 'u', INT_BEFORE, "bar.sync 0;", "", MemoryUse::kNone, false,
     true},
    {"vote.ballot", "vote", kParallel, 'u', INT_BEFORE " setp.lt.s32 {q}, {x}, {y};",
     "vote.sync.ballot.b32 {t}, {q}, {lanemask};", "@{q} mad.lo.u32 {s}, {s}, {a}, {v};"},
    {"red.shared", "reduction", kParallel, 'u', INT_BEFORE, "red.shared.add.u32 [{sh}], {x};", "",
     MemoryUse::kShared},
    GLOBAL("red.global", "reduction", kParallel, MemoryUse::kL2,
           "red.global.add.u32 [{addr}], {x};"),
    {"cvta.shared", "cvta", kOther, 'l', "mad.lo.u64 {x}, {x}, {a}, {b};",
     "cvta.shared.u64 {t}, {x};", "mad.lo.u64 {s}, {s}, {a}, {v};"},
};

}  // namespace

std::span<const Row> rows() { return kRows; }

const Row& row(std::string_view key) {
  for (const Row& r : kRows)
    if (r.key == key) return r;
  throw Error(fmt::format("there is no row {}", key));
}

std::span<const Instruction> instructions() { return kInstructions; }

const Instruction* find_instruction(std::string_view id) {
  for (const Instruction& i : kInstructions)
    if (i.id == id) return &i;
  return nullptr;
}

std::vector<const Instruction*> select_instructions(const std::string& list) {
  std::vector<const Instruction*> chosen;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    const size_t before = chosen.size();
    for (const Instruction& i : kInstructions) {
      const std::string_view cls = kInsnClassNames[static_cast<size_t>(i.insn_class)];
      if ((name == "all" || name == i.id || name == i.row ||
           name == fmt::format("class:{}", cls)) &&
          std::find(chosen.begin(), chosen.end(), &i) == chosen.end())
        chosen.push_back(&i);
    }
    if (chosen.size() == before && name != "all" && find_instruction(name) == nullptr)
      throw Error(
          fmt::format("--rows: nothing is called {}; `gpusim power microbench --list` shows "
                      "instructions and rows, class:NAME takes a class, `all` everything",
                      name.empty() ? "\"\"" : name));
  }
  if (chosen.empty()) throw Error("--rows: no instruction is named");
  return chosen;
}

}  // namespace gpusim::power
