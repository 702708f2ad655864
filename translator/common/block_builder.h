// Collects the micro-ops of one basic block while its guest instructions are translated.
//
// Visitors call one method per micro-op, named as its row in uops.def, with its operands in the
// order d, a, b, c, then immediates. Slots here are the guest ISA's canonical ones; a later pass
// renumbers those that a module really uses.
#pragma once
#include <cstdint>
#include <vector>

#include "device_sim/uir/fp_aux.h"
#include "device_sim/uir/insn_class.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

// How a block ends; the end's micro-op is the last one and its targets are resolved at link time.
struct BlockEnd {
  bool present = false;
  uint64_t taken_pc = 0;  // of a jump, taken branch, service or give_way
};

struct DraftBlock {
  uint64_t pc = 0;
  std::vector<Uop> uops;
  std::vector<uint16_t> uop_insn;  // per micro-op: index of its instruction
  std::vector<InsnClass> classes;  // per instruction
  BlockEnd end;
};

class BlockBuilder {
 public:
  // `fp_slot`: canonical slot of FPCR << 32 | FPSR. Temporaries are first_temp ..
  // first_temp+count-1.
  BlockBuilder(Slot fp_slot, Slot first_temp, int temp_count)
      : fp_slot_(fp_slot), first_temp_(first_temp), temp_count_(temp_count) {}

  void begin_block(uint64_t pc) {
    block_ = DraftBlock{.pc = pc, .uops = {}, .uop_insn = {}, .classes = {}, .end = {}};
  }
  void begin_instruction() {
    block_.classes.push_back(InsnClass::kOther);
    next_temp_ = 0;
  }
  void set_class(InsnClass c) { block_.classes.back() = c; }
  // Which of its ISA's CPUs (GuestIsa::cpus) the guest is to see.
  void set_cpu(uint32_t cpu) { cpu_ = cpu; }
  uint32_t cpu() const { return cpu_; }
  // Whether hints about the order in simulated time stop the core (Service::kTime*) or do nothing.
  void set_has_simulated_time(bool has) { has_simulated_time_ = has; }
  bool has_simulated_time() const { return has_simulated_time_; }
  DraftBlock take() { return std::move(block_); }
  const DraftBlock& draft() const { return block_; }
  bool ended() const { return block_.end.present; }

  // A scratch slot for the rest of this instruction. temp_run(n): n consecutive ones.
  Slot temp() { return temp_run(1); }
  Slot temp_run(int n);
  // Those that are taken while it lives are free behind it.
  class Temporaries {
   public:
    explicit Temporaries(BlockBuilder& b) : b_(b), first_(b.next_temp_) {}
    ~Temporaries() { b_.next_temp_ = first_; }
    Temporaries(const Temporaries&) = delete;
    Temporaries& operator=(const Temporaries&) = delete;

   private:
    BlockBuilder& b_;
    const int first_;
  };

  Uop& emit(Op op, Slot d = 0, Slot a = 0, Slot b = 0, Slot c = 0, uint64_t imm = 0,
            uint8_t aux = 0);

  void set_if(Slot d, Slot nzcv, uint16_t condition) {
    emit(Op::cset, d, nzcv).set_imm16(condition);
  }

  // Ends of blocks. Fall-through is to the next instruction.
  void jmp(uint64_t target_pc);
  void jmp_reg(Slot address, JumpHint hint);
  // Direct call: a jump that reconvergence should count as going one deeper. The caller has
  // already written the link register.
  void call(uint64_t target_pc);
  void branch(Op op, Slot a, Slot b, uint64_t taken_pc);              // br_*
  void branch_imm(Op op, Slot a, uint16_t imm16, uint64_t taken_pc);  // bri_*, br_bit*, br_cond
  void give_way(Turn turn, Slot monitor, uint64_t next_pc);
  void service(Service what, uint64_t next_pc, Slot d = 0);
  void trap(Fault fault);

#define GPUSIM_EMIT_kDI(name) \
  void name(Slot d, uint64_t imm) { emit(Op::name, d, 0, 0, 0, imm); }
#define GPUSIM_EMIT_kDA(name) \
  void name(Slot d, Slot a) { emit(Op::name, d, a); }
#define GPUSIM_EMIT_kDAI(name)                                              \
  void name(Slot d, Slot a, uint64_t imm, uint8_t aux = 0, uint8_t e = 0) { \
    emit(Op::name, d, a, 0, 0, imm, aux).e = e;                             \
  }
#define GPUSIM_EMIT_kDAB(name) \
  void name(Slot d, Slot a, Slot b) { emit(Op::name, d, a, b); }
#define GPUSIM_EMIT_kDABI(name)                                                     \
  void name(Slot d, Slot a, Slot b, uint64_t imm, uint8_t aux = 0, uint8_t e = 0) { \
    emit(Op::name, d, a, b, 0, imm, aux).e = e;                                     \
  }
#define GPUSIM_EMIT_kDABC(name) \
  void name(Slot d, Slot a, Slot b, Slot c) { emit(Op::name, d, a, b, c); }
#define GPUSIM_EMIT_kSel(name)                                       \
  void name(Slot d, Slot a, Slot b, Slot nzcv, uint16_t condition) { \
    emit(Op::name, d, a, b, nzcv).set_imm16(condition);              \
  }
#define GPUSIM_EMIT_kDABCI(name)                                                            \
  void name(Slot d, Slot a, Slot b, Slot c, uint64_t imm, uint8_t aux = 0, uint8_t e = 0) { \
    emit(Op::name, d, a, b, c, imm, aux).e = e;                                             \
  }
#define GPUSIM_EMIT_kSelCmp(name)                                          \
  void name(Slot d, Slot a, Slot b, Slot left, Slot right, uint8_t kind) { \
    emit(Op::name, d, a, b, left, 0, kind).e = right;                      \
  }
#define GPUSIM_EMIT_kSelCmpI(name)                                           \
  void name(Slot d, Slot a, Slot b, Slot left, uint64_t imm, uint8_t kind) { \
    emit(Op::name, d, a, b, left, imm, kind);                                \
  }
#define GPUSIM_EMIT_kFA(name)                                    \
  void name(Slot d, Slot a, uint8_t aux = 0, uint64_t imm = 0) { \
    emit(Op::name, d, a, 0, 0, imm, aux).e = fp_slot_;           \
  }
#define GPUSIM_EMIT_kFAB(name)                                           \
  void name(Slot d, Slot a, Slot b, uint8_t aux = 0, uint64_t imm = 0) { \
    emit(Op::name, d, a, b, 0, imm, aux).e = fp_slot_;                   \
  }
#define GPUSIM_EMIT_kFABC(name)                                                  \
  void name(Slot d, Slot a, Slot b, Slot c, uint8_t aux = 0, uint64_t imm = 0) { \
    emit(Op::name, d, a, b, c, imm, aux).e = fp_slot_;                           \
  }
#define GPUSIM_EMIT_kGA GPUSIM_EMIT_kFA
#define GPUSIM_EMIT_kGAB GPUSIM_EMIT_kFAB
#define GPUSIM_EMIT_kGABC GPUSIM_EMIT_kFABC
#define GPUSIM_EMIT_kLdI(name) \
  void name(Slot d, Slot base, uint64_t offset) { emit(Op::name, d, base, 0, 0, offset); }
#define GPUSIM_EMIT_kLdX(name)                               \
  void name(Slot d, Slot base, Slot index, uint64_t shift) { \
    emit(Op::name, d, base, index, 0, shift);                \
  }
#define GPUSIM_EMIT_kLdW GPUSIM_EMIT_kLdX
#define GPUSIM_EMIT_kStI GPUSIM_EMIT_kLdI
#define GPUSIM_EMIT_kStX GPUSIM_EMIT_kLdX
#define GPUSIM_EMIT_kStW GPUSIM_EMIT_kLdX
#define GPUSIM_EMIT_kAmo(name)                                         \
  void name(Slot old, Slot address, Slot operand, uint8_t log2_size) { \
    emit(Op::name, old, address, operand, 0, 0, log2_size);            \
  }
#define GPUSIM_EMIT_kCas(name)                                                        \
  void name(Slot old, Slot address, Slot desired, Slot expected, uint8_t log2_size) { \
    emit(Op::name, old, address, desired, expected, 0, log2_size);                    \
  }
#define GPUSIM_EMIT_kCas128(name) /* expected_old and desired: first of two slots */ \
  void name(Slot expected_old, Slot address, Slot desired) {                         \
    emit(Op::name, expected_old, address, desired);                                  \
  }
#define GPUSIM_EMIT_kStx(name)                                                        \
  void name(Slot status, Slot address, Slot value, Slot monitor, uint8_t log2_size) { \
    emit(Op::name, status, address, value, monitor, 0, log2_size);                    \
  }
#define GPUSIM_EMIT_kStx128(name)                                  \
  void name(Slot status, Slot address, Slot value, Slot monitor) { \
    emit(Op::name, status, address, value, monitor);               \
  }
#define GPUSIM_EMIT_kAlign(name)                         \
  void name(Slot a, uint64_t offset, uint16_t bytes) {   \
    emit(Op::name, 0, a, 0, 0, offset).set_imm16(bytes); \
  }
#define GPUSIM_EMIT_kFence(name) \
  void name() { emit(Op::name); }
#define GPUSIM_EMIT_kNote(name)
#define GPUSIM_EMIT_kVector(name)                                           \
  void name(Slot d, Slot a, Slot b, Slot state, const vector::Insn& insn) { \
    emit(Op::name, d, a, b, state, insn.pack()).e = fp_slot_;               \
  }
// Only in modules with warps, whose translator emits rows of its own.
#define GPUSIM_EMIT_kWarp(name)
#define GPUSIM_EMIT_kWarpSync(name)
#define GPUSIM_EMIT_kCtaSync(name)
#define GPUSIM_EMIT_kCtaReduce(name)
#define GPUSIM_EMIT_kEnd(name)
#define GPUSIM_EMIT_kJmp(name)
#define GPUSIM_EMIT_kLink(name)
#define GPUSIM_EMIT_kJmpReg(name)
#define GPUSIM_EMIT_kBrAB(name)
#define GPUSIM_EMIT_kBrAI(name)
#define GPUSIM_EMIT_kGiveWay(name)
#define GPUSIM_EMIT_kService(name)
#define GPUSIM_EMIT_kTrap(name)
#define GPUSIM_UOP(name, shape, fields, traits) GPUSIM_EMIT_##shape(name)
#include "device_sim/uir/uops.def"
#undef GPUSIM_UOP

 private:
  void end(Op op, Slot d, Slot a, Slot b, uint8_t aux, uint64_t taken_pc);

  Slot fp_slot_, first_temp_;
  int temp_count_, next_temp_ = 0;
  uint32_t cpu_ = 0;
  bool has_simulated_time_ = false;
  DraftBlock block_;
};

}  // namespace gpusim
