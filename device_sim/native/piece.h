// The machine instructions of one micro-op, over as many virtual registers as it takes. When they
// are complete, values move where they are wanted, 32-bit forms replace masks, and virtual
// registers get machine registers.
#pragma once
#include <asmjit/x86.h>

#include <array>
#include <cstdint>
#include <vector>

namespace gpusim::native {

namespace x86 = asmjit::x86;
namespace Inst = asmjit::x86::Inst;
using asmjit::InstId;
using asmjit::Label;
using asmjit::Operand;
using x86::CondCode;

class Piece {
 public:
  // Forgets everything; `cold`: where the code goes that does not take the common path.
  void begin(Label cold);

  x86::Gp gp() { return x86::gpq(next_id_++); }
  x86::Xmm xmm() { return x86::xmm(next_id_++); }

  template <class... Operands>
  void emit(InstId id, Operands... operands) {
    Ins ins{.id = id, .count = sizeof...(operands), .operands = {Operand(operands)...}};
    ins_.push_back(ins);
  }
  void jump_cold(CondCode if_so) {
    emit(x86::Inst::jccFromCond(if_so), cold_);
    last_cold_ = ins_.size();
    cold_used_ = true;
  }
  void jump(CondCode if_so, Label inside) { emit(x86::Inst::jccFromCond(if_so), inside); }
  void bind(Label inside) { emit(kBind, inside); }
  Label new_label() { return assembler_->newLabel(); }
  // d = a / b, or 0 if b is 0.
  void divide(x86::Gp d, x86::Gp a, x86::Gp b, bool is_signed) {
    emit(is_signed ? kDivideSigned : kDivideUnsigned, d, a, b);
    takes_pair_ = true;
  }
  // The high half of the product.
  void multiply_high(x86::Gp d, x86::Gp a, x86::Gp b, bool is_signed) {
    emit(is_signed ? kHighSigned : kHighUnsigned, d, a, b);
    takes_pair_ = true;
  }
  // NZCV of a - b, or of a + b, with as many bits as the registers have.
  void flags(x86::Gp d, x86::Gp a, x86::Gp b, bool of_difference) {
    emit(of_difference ? kFlagsOfDifference : kFlagsOfSum, d, a, b);
    takes_pair_ = true;
  }
  // The micro-op cannot be computed in this way.
  void give_up() { gave_up_ = true; }

  // What is computed last: copies `from`, virtual or not, to a register of a slot.
  // `is_source`: the micro-op reads it, too.
  void finish(x86::Gp to, x86::Gp from, bool is_source);
  void finish(x86::Xmm to, x86::Xmm from, bool is_source);

  // Writes the instructions; false: nothing was written, as the micro-op takes too much.
  bool flush();
  bool cold_used() const { return cold_used_; }
  void set_assembler(x86::Assembler* assembler) { assembler_ = assembler; }

  static constexpr std::array<uint32_t, 4> kScratch = {1, 11, 0, 2};  // rcx r11 rax rdx

 private:
  // Instructions that the machine does not have.
  enum : InstId {
    kBind = 0x10000,
    kDivideUnsigned,
    kDivideSigned,
    kHighUnsigned,
    kHighSigned,
    kFlagsOfSum,
    kFlagsOfDifference,
  };
  struct Ins {
    InstId id = 0;
    uint32_t count = 0;
    std::array<Operand, 4> operands;
  };
  static constexpr uint32_t kFirstId = Operand::kVirtIdMin;

  template <class F>
  static void for_registers(Ins& ins, F f);
  bool refers(const Ins& ins, uint32_t id, bool is_xmm) const;
  // `result` is used after all of these.
  void narrow_masks(const x86::Reg& result);
  void join_copies(const x86::Reg& result);
  static bool is_gp(const x86::Reg& r, uint32_t id) { return r.isGp() && r.id() == id; }
  bool narrow(Ins& ins) const;
  void rename(size_t from, uint32_t id, const x86::Reg& to);
  void finish_in(const x86::Reg& to, const x86::Reg& from, InstId copy, bool is_source);
  bool assign();
  void write(const Ins& ins);
  void write_division(const Ins& ins);
  void write_flags(const Ins& ins);

  x86::Assembler* assembler_ = nullptr;
  std::vector<Ins> ins_;
  Label cold_;
  uint32_t next_id_ = kFirstId;
  size_t last_cold_ = 0;
  bool cold_used_ = false, takes_pair_ = false, gave_up_ = false;
};

}  // namespace gpusim::native
