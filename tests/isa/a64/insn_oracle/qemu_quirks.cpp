#include "tests/isa/a64/insn_oracle/qemu_quirks.h"

#include <algorithm>

namespace gpusim::a64::oracle {
namespace {

constexpr char kKeys[] = "qemu-user enables the keys, with random values; ours are disabled";
constexpr char kStops[] = "qemu-user stops with an internal error; UNDEFINED at EL0";

constexpr NotOnQemu kNotOnQemu[] = {
    {"SVC", Expect::kElsewhere, "the end of a case; system calls are tested by programs"},
    {"HVC", Expect::kUndefined, kStops},
    {"SMC", Expect::kUndefined, kStops},
    {"WFI", Expect::kNothing, "qemu-user waits for an interrupt that never comes"},
    {"PAC_reg", Expect::kNothing, kKeys},
    {"PAC_z", Expect::kNothing, kKeys},
    {"BRA_z", Expect::kJump, kKeys},
    {"BLRA_z", Expect::kCall, kKeys},
    {"BRA", Expect::kJump, kKeys},
    {"BLRA", Expect::kCall, kKeys},
    {"RETA", Expect::kJump, kKeys},
    {"LDRA", Expect::kLoad, kKeys},
    {"PACGA", Expect::kElsewhere, "system_test.cpp: an algorithm of our own"},
    {"SYS", Expect::kElsewhere, "system_test.cpp, encoding by encoding"},
    {"MSR_reg", Expect::kElsewhere, "system_test.cpp, encoding by encoding"},
    {"MRS", Expect::kElsewhere, "system_test.cpp, encoding by encoding"},
};

}  // namespace

std::span<const NotOnQemu> all_not_on_qemu() { return kNotOnQemu; }

const NotOnQemu* not_on_qemu(const Row& row) {
  const auto found = std::find_if(std::begin(kNotOnQemu), std::end(kNotOnQemu),
                                  [&](const NotOnQemu& n) { return n.row == row.name; });
  return found == std::end(kNotOnQemu) ? nullptr : found;
}

const char* qemu_quirk(const Row& row, uint32_t word, uint64_t fpcr) {
  switch (row.op) {
    case Op::FCVTZS_fix_s:
      if (row.field('j', word) < 4)
        return "sign-extends the half-precision form's 16-bit result to 32 bits; the manual's V[d] "
               "setter zero-extends it, as qemu does everywhere else";
      break;
    case Op::FJCVTZS:
      if (fpcr >> 24 & 1)
        return "before 9.1 calls a flushed subnormal exact (Z = 1); in the manual it is not";
      break;
    case Op::HLT:
      if (row.field('i', word) == 0xf000) return "a semihosting call";
      break;
    case Op::MSR_imm:
      if (row.field('o', word) == 3 && row.field('l', word) == 4)
        return "max has FEAT_MTE, hence PSTATE.TCO; we do not";
      break;
    case Op::HINT:
      // CRm 0, 1 and 3.
      if (row.field('g', word) <= 1 || row.field('g', word) == 3) return kKeys;
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace gpusim::a64::oracle
