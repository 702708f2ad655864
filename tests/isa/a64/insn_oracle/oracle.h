// Runs the same short instruction sequences from the same register and memory state under
// qemu-aarch64 and through our translator and a backend. README.md says how to write a test.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "tests/isa/a64/insn_oracle/protocol.h"
#include "tests/isa/oracle/draw.h"
#include "translator/a64/decode.h"

namespace gpusim::a64::oracle {

using gpusim::oracle::case_count;
using gpusim::oracle::one_in;
using gpusim::oracle::random_address;
using gpusim::oracle::random_fp_word;
using gpusim::oracle::random_value;
using gpusim::oracle::Rng;
using gpusim::oracle::test_seed;
using gpusim::oracle::with_field;
using State = oracle_state;
using Change = oracle_change;

struct Case {
  std::vector<uint32_t> words;  // 1 .. ORACLE_MAX_WORDS
  State state{};
  uint64_t pc = 0;  // of the first word
  bool uses_memory = false;
  std::vector<uint64_t> entries;  // words where indirect jumps of the case may go
};

struct Result {
  int signal = 0;
  uint64_t pc = 0;    // of the signal
  uint32_t exit = 0;  // 0: fell through; 1: left one instruction further
  State state{};
  std::vector<Change> changes;  // of the window, by offset
  bool steady = true;  // ours: the same in all lanes that started alike, and when run again
};

/// Where a branch out of the case has to go.
inline uint64_t jump_exit_pc(const Case& c) { return c.pc + 4 * c.words.size() + 4; }

/// Cases of one run. Those that follow each other with the same code share its place; on our side
/// they run at the same time, in the lanes of a group.
class Batch {
 public:
  static constexpr size_t kMaxLanes = 64;
  /// Where the code of the next case will be: draw it for this pc.
  uint64_t next_pc() const { return next_pc_; }
  bool is_full() const;
  /// Sets its pc.
  void add(Case c);
  /// The last case's code again, from another state.
  void add_lane(const State& state);
  std::span<const Case> cases() const { return cases_; }
  bool empty() const { return cases_.empty(); }
  void clear() { *this = Batch(); }

 private:
  std::vector<Case> cases_;
  uint64_t next_pc_ = ORACLE_CODE + 4;
  size_t lanes_ = 0;  // of the last code
};

/// `cpu` as in qemu-aarch64 -cpu. Throws std::runtime_error.
std::vector<Result> run_qemu(std::span<const Case> cases, const std::string& cpu);

/// Cases after our translator.
struct Program {
  Module module;
  std::vector<uint64_t> exits;  // guest address of the fall-through exit, per case
};
enum class Passes : uint8_t { kNone, kUsual, kExactFlags };  // kExactFlags: also at faults
/// `cpu`: the one that our translator pretends to be.
Program translate(std::span<const Case> cases, Passes passes, const std::string& cpu = "");

struct Variant {
  const char* backend = "scalar";
  Passes passes = Passes::kUsual;
  bool native = false;  // simd: native code at once
  std::string name() const;
};
/// All that CPUs here can do.
std::span<const Variant> all_variants();

/// Backend simd has groups of 64 lanes: for some codes they are all busy, lanes beyond the cases
/// doing the same again. Native code comes from a first run and serves a second one;
/// `native_pieces` counts what was generated.
std::vector<Result> run_gpusim(std::span<const Case> cases, const Program& program,
                               const Variant& variant, size_t* native_pieces = nullptr);

/// Empty if both agree, else what differs, with the case's state and disassembly-ready words.
/// Bits of FPSR in `fpsr_ignore` may differ. `flags_at_faults`: compare NZCV there, too.
std::string difference(size_t index, const Case& c, const Result& qemu, const Result& ours,
                       bool flags_at_faults = true, uint64_t fpsr_ignore = 0);

/// Runs the batch under qemu and in all variants; reports at most one difference per kind of first
/// instruction and variant through `fail`. Returns how many pieces of native code were generated.
size_t compare(const Batch& batch, const std::string& cpu,
             const std::function<void(const std::string&)>& fail);

// --- drawing cases (draw.cpp)

/// All registers, flags, FP status and vectors; values that instructions find interesting.
State random_state(Rng& rng);
/// A valid FPCR: rounding mode, DN, FZ, FZ16, AHP.
uint64_t random_fpcr(Rng& rng);

/// All vector registers with values of one format, so that operands meet their like.
void fill_with_one_format(Rng& rng, State& state);

/// One random instruction of the row. Base registers of loads and stores mostly point into the
/// window, offsets mostly stay inside, branches lead to the case's second exit.
Case random_case(const Row& row, Rng& rng, uint64_t pc);
/// Another state for such a case.
State random_state_for(const Row& row, Rng& rng, const Case& c);

/// 5 to 30 instructions of all kinds on few registers, with branches forward and accesses that
/// mostly stay in the window.
Case random_stream(Rng& rng, uint64_t pc);
/// Another state for such a case.
State random_stream_state(Rng& rng, const Case& c);

}  // namespace gpusim::a64::oracle
