// Runs the same short instruction sequences from the same register and memory state under
// qemu-aarch64 and through our translator and a backend. README.md says how to write a test.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/isa/a64/insn_oracle/protocol.h"
#include "translator/a64/decode.h"

namespace gpusim::a64::oracle {

using Rng = std::mt19937_64;
using State = oracle_state;
using Change = oracle_change;

struct Case {
  std::vector<uint32_t> words;  // 1 .. ORACLE_MAX_WORDS
  State state{};
  bool uses_memory = false;
  uint32_t loaded = 0;  // general registers that a faulting load may have written already
};

struct Result {
  int signal = 0;
  uint32_t exit = 0;  // 0: fell through; 1: left one instruction further
  State state{};
  std::vector<Change> changes;  // of the window, by offset
};

/// Address of the first instruction of case number i, and where a branch out of it has to go.
constexpr uint64_t case_pc(size_t i) { return ORACLE_CODE + i * ORACLE_CASE_BYTES + 4; }
inline uint64_t jump_exit_pc(size_t i, const Case& c) {
  return case_pc(i) + 4 * c.words.size() + 4;
}

/// `cpu` as in qemu-aarch64 -cpu. At most ORACLE_MAX_CASES. Throws std::runtime_error.
std::vector<Result> run_qemu(std::span<const Case> cases, const std::string& cpu);

/// With our translator, with or without its optimising passes.
std::vector<Result> run_gpusim(std::span<const Case> cases, const std::string& backend,
                               bool optimise);

/// Empty if both agree, else what differs, with the case's state and disassembly-ready words.
/// Bits of FPSR in `fpsr_ignore` may differ.
std::string difference(size_t index, const Case& c, const Result& qemu, const Result& ours,
                       uint64_t fpsr_ignore = 0);

// --- drawing cases (draw.cpp)

/// All registers, flags, FP status and vectors; values that instructions find interesting.
State random_state(Rng& rng);
uint64_t random_value(Rng& rng);
/// One 64-bit half with floating-point values of one format: zeros, subnormals, infinities, NaNs,
/// small integers, neighbours and anything.
uint64_t random_fp_word(Rng& rng);
/// A valid FPCR: rounding mode, DN, FZ, AHP.
uint64_t random_fpcr(Rng& rng);

/// An address in the window with room for `room` bytes behind it, most often aligned to them.
uint64_t random_address(Rng& rng, unsigned room);

/// One random instruction of the row. Base registers of loads and stores mostly point into the
/// window, offsets mostly stay inside, branches lead to the case's second exit.
Case random_case(const Row& row, Rng& rng, size_t index);

/// Seed from GPUSIM_SEED, or a random one.
uint64_t test_seed();

}  // namespace gpusim::a64::oracle
