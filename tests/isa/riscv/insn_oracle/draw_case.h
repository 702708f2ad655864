// Random instructions and states.
#pragma once

#include "tests/isa/riscv/insn_oracle/oracle.h"

namespace gpusim::riscv::oracle {

bool is_memory(const Row& row);

/// All registers: values that instructions find interesting.
State random_state(Rng& rng);

/// The vector registers, and a state that vector instructions find legal most often.
void random_vectors(State& state, Rng& rng);
/// One random vector instruction, with registers that suit the type most often.
Case random_vector_case(const Row& row, Rng& rng, uint64_t pc);

/// One random instruction of the row. Base registers of loads and stores mostly point into the
/// window, branches lead to the case's second exit.
Case random_case(const Row& row, Rng& rng, uint64_t pc);

}  // namespace gpusim::riscv::oracle
