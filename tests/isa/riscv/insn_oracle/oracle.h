// Runs the same short instruction sequences from the same register and memory state under
// qemu-riscv64, or qemu-riscv32, and through our translator and a backend. Each register width has
// a test program, built from the same sources with another GPUSIM_ORACLE_BITS.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/isa/oracle/draw.h"
#include "tests/isa/riscv/insn_oracle/protocol.h"
#include "translator/riscv/decode.h"

namespace gpusim::riscv::oracle {

using gpusim::oracle::Rng;
using State = oracle_state;

inline constexpr int kXlen = GPUSIM_ORACLE_BITS;
inline constexpr uint64_t kRegisterMask = ~uint64_t{0} >> (64 - kXlen);

struct Case {
  std::vector<uint8_t> code;  // 1 .. ORACLE_MAX_BYTES
  State state{};
  uint64_t pc = 0;

  void append(uint32_t word, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) code.push_back(static_cast<uint8_t>(word >> 8 * i));
  }
};

/// Every case ends with a signal: SIGTRAP at one of the two EBREAKs behind it, or a fault.
struct Result {
  int signal = 0;
  uint64_t pc = 0;
  State state{};
  std::vector<oracle_change> changes;  // of the window, by offset
};

/// Where a branch out of the case has to go.
inline uint64_t jump_exit_pc(uint64_t pc, size_t code_bytes) { return pc + code_bytes + 4; }

/// Cases of one run.
class Batch {
 public:
  uint64_t next_pc() const { return next_pc_; }
  bool is_full() const {
    return cases_.size() >= 16384 ||
           next_pc_ + ORACLE_MAX_BYTES + 8 > ORACLE_CODE + ORACLE_CODE_BYTES;
  }
  /// Sets its pc.
  void add(Case c) {
    c.pc = next_pc_;
    next_pc_ += c.code.size() + 8;
    cases_.push_back(std::move(c));
  }
  std::span<const Case> cases() const { return cases_; }

 private:
  std::vector<Case> cases_;
  uint64_t next_pc_ = ORACLE_CODE;
};

/// Throws std::runtime_error.
std::vector<Result> run_qemu(std::span<const Case> cases);
/// On a backend, 64 cores at once where it is simd, with or without the passes.
std::vector<Result> run_gpusim(std::span<const Case> cases, const std::string& backend,
                               bool optimise);

/// Empty if both agree, else what differs.
std::string difference(const Case& c, const Result& qemu, const Result& ours);

/// Runs the batch under qemu and on our backends; one difference per first instruction and backend
/// goes to `fail`.
void compare(const Batch& batch, const std::function<void(const std::string&)>& fail);

}  // namespace gpusim::riscv::oracle
