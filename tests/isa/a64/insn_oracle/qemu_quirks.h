// Where qemu-user 7.2 cannot serve as the oracle, each with its reason.
#pragma once

#include <span>
#include <string_view>

#include "tests/isa/a64/insn_oracle/oracle.h"

namespace gpusim::a64::oracle {

enum class Expect : uint8_t {
  kUndefined,  // SIGILL at its pc, nothing changed
  kNothing,    // goes on, nothing changed
  kJump,       // goes to the address in Rn, or X30
  kCall,       // the same, and X30 holds the next address
  kLoad,       // LDRA: a doubleword
  kElsewhere,  // tested as `reason` says
};
struct NotOnQemu {
  std::string_view row;
  Expect expect;
  const char* reason;
};
std::span<const NotOnQemu> all_not_on_qemu();
/// Null if qemu can run the row's words.
const NotOnQemu* not_on_qemu(const Row& row);

/// Why a case with this word and FPCR can't be compared, or null.
const char* qemu_quirk(const Row& row, uint32_t word, uint64_t fpcr);

}  // namespace gpusim::a64::oracle
