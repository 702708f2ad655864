// Random instructions and states.
#pragma once

#include "tests/isa/riscv/insn_oracle/oracle.h"

namespace gpusim::riscv::oracle {

bool is_memory(const Row& row);

/// All registers: values that instructions find interesting.
State random_state(Rng& rng);

/// One random instruction of the row. Base registers of loads and stores mostly point into the
/// window, branches lead to the case's second exit.
Case random_case(const Row& row, Rng& rng, uint64_t pc);

}  // namespace gpusim::riscv::oracle
