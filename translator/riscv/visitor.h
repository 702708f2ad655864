// Translates RISC-V instructions to micro-ops: one method per row of rows/*.def, with the row's
// name and fields (README.md). False: the encoding is allocated but not supported, or illegal in
// user mode; nothing has been emitted then.
#pragma once

#include <cstdint>

#include "device_sim/uir/compare.h"
#include "translator/common/block_builder.h"
#include "translator/common/visit.h"
#include "translator/riscv/registers.h"

namespace gpusim::riscv {

// RISC-V has an `Op` too (decode.h).
using MicroOp = gpusim::Op;

class Visitor {
 public:
  /// `bytes`: the instruction's length, before any expansion. `xlen`: of registers, 32 or 64.
  Visitor(uint64_t pc, unsigned bytes, int xlen, BlockBuilder& builder)
      : b_(builder), is_rv32_(xlen == 32), pc_(pc), next_pc_(pc + bytes) {}

  // --- integer.cpp
  bool LUI(Imm<20> i, Reg d);
  bool AUIPC(Imm<20> i, Reg d);
  bool ADDI(Imm<12> i, Reg n, Reg d, bool w);
  bool SLTI(Imm<12> i, Reg n, Reg d);
  bool SLTIU(Imm<12> i, Reg n, Reg d);
  bool XORI(Imm<12> i, Reg n, Reg d);
  bool ORI(Imm<12> i, Reg n, Reg d);
  bool ANDI(Imm<12> i, Reg n, Reg d);
  bool SLLI(Imm<6> i, Reg n, Reg d, bool w);
  bool SRLI(Imm<6> i, Reg n, Reg d, bool w);
  bool SRAI(Imm<6> i, Reg n, Reg d, bool w);
  bool ADD(Reg m, Reg n, Reg d, bool w);
  bool SUB(Reg m, Reg n, Reg d, bool w);
  bool SLL(Reg m, Reg n, Reg d, bool w);
  bool SLT(Reg m, Reg n, Reg d);
  bool SLTU(Reg m, Reg n, Reg d);
  bool XOR(Reg m, Reg n, Reg d);
  bool SRL(Reg m, Reg n, Reg d, bool w);
  bool SRA(Reg m, Reg n, Reg d, bool w);
  bool OR(Reg m, Reg n, Reg d);
  bool AND(Reg m, Reg n, Reg d);
  bool CZERO_EQZ(Reg m, Reg n, Reg d);
  bool CZERO_NEZ(Reg m, Reg n, Reg d);

  // --- multiply.cpp
  bool MUL(Reg m, Reg n, Reg d, bool w);
  bool MULH(Reg m, Reg n, Reg d);
  bool MULHSU(Reg m, Reg n, Reg d);
  bool MULHU(Reg m, Reg n, Reg d);
  bool DIV(Reg m, Reg n, Reg d, bool w);
  bool DIVU(Reg m, Reg n, Reg d, bool w);
  bool REM(Reg m, Reg n, Reg d, bool w);
  bool REMU(Reg m, Reg n, Reg d, bool w);

  // --- bits.cpp
  bool ADD_UW(Reg m, Reg n, Reg d);
  bool SH1ADD(Reg m, Reg n, Reg d, bool uw);
  bool SH2ADD(Reg m, Reg n, Reg d, bool uw);
  bool SH3ADD(Reg m, Reg n, Reg d, bool uw);
  bool SLLI_UW(Imm<6> i, Reg n, Reg d);
  bool ANDN(Reg m, Reg n, Reg d);
  bool ORN(Reg m, Reg n, Reg d);
  bool XNOR(Reg m, Reg n, Reg d);
  bool CLZ(Reg n, Reg d, bool w);
  bool CTZ(Reg n, Reg d, bool w);
  bool CPOP(Reg n, Reg d, bool w);
  bool MIN(Reg m, Reg n, Reg d);
  bool MINU(Reg m, Reg n, Reg d);
  bool MAX(Reg m, Reg n, Reg d);
  bool MAXU(Reg m, Reg n, Reg d);
  bool SEXT_B(Reg n, Reg d);
  bool SEXT_H(Reg n, Reg d);
  bool ZEXT_H(Reg n, Reg d, bool y);
  bool ROL(Reg m, Reg n, Reg d, bool w);
  bool ROR(Reg m, Reg n, Reg d, bool w);
  bool RORI(Imm<6> i, Reg n, Reg d, bool w);
  bool ORC_B(Reg n, Reg d);
  bool REV8(bool y, Reg n, Reg d);
  bool CLMUL(Reg m, Reg n, Reg d);
  bool CLMULR(Reg m, Reg n, Reg d);
  bool CLMULH(Reg m, Reg n, Reg d);
  bool BCLR(Reg m, Reg n, Reg d);
  bool BEXT(Reg m, Reg n, Reg d);
  bool BINV(Reg m, Reg n, Reg d);
  bool BSET(Reg m, Reg n, Reg d);
  bool BCLRI(Imm<6> i, Reg n, Reg d);
  bool BEXTI(Imm<6> i, Reg n, Reg d);
  bool BINVI(Imm<6> i, Reg n, Reg d);
  bool BSETI(Imm<6> i, Reg n, Reg d);

  // --- memory.cpp
  bool LB(Imm<12> i, Reg n, Reg d);
  bool LH(Imm<12> i, Reg n, Reg d);
  bool LW(Imm<12> i, Reg n, Reg d);
  bool LD(Imm<12> i, Reg n, Reg d);
  bool LBU(Imm<12> i, Reg n, Reg d);
  bool LHU(Imm<12> i, Reg n, Reg d);
  bool LWU(Imm<12> i, Reg n, Reg d);
  bool SB(Imm<7> i, Reg m, Reg n, Imm<5> k);
  bool SH(Imm<7> i, Reg m, Reg n, Imm<5> k);
  bool SW(Imm<7> i, Reg m, Reg n, Imm<5> k);
  bool SD(Imm<7> i, Reg m, Reg n, Imm<5> k);
  bool FLH(Imm<12> i, Reg n, Reg d);
  bool FLW(Imm<12> i, Reg n, Reg d);
  bool FLD(Imm<12> i, Reg n, Reg d);
  bool FSH(Imm<7> i, Reg m, Reg n, Imm<5> k);
  bool FSW(Imm<7> i, Reg m, Reg n, Imm<5> k);
  bool FSD(Imm<7> i, Reg m, Reg n, Imm<5> k);

  // --- atomic.cpp
  bool LR(bool q, bool l, Reg n, bool y, Reg d);
  bool SC(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOSWAP(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOADD(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOXOR(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOAND(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOOR(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOMIN(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOMAX(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOMINU(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOMAXU(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOCAS(bool q, bool l, Reg m, Reg n, bool y, Reg d);
  bool AMOCAS_Q(bool q, bool l, Reg m, Reg n, Reg d);

  // --- branch.cpp
  bool JAL(Imm<1> g, Imm<10> i, Imm<1> h, Imm<8> k, Reg d);
  bool JALR(Imm<12> i, Reg n, Reg d);
  bool BEQ(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h);
  bool BNE(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h);
  bool BLT(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h);
  bool BGE(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h);
  bool BLTU(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h);
  bool BGEU(Imm<1> g, Imm<6> i, Reg m, Reg n, Imm<4> k, Imm<1> h);

  // --- system.cpp
  bool FENCE(Imm<4> f, Imm<4> p, Imm<4> s, Reg n, Reg d);
  bool PAUSE();
  bool FENCE_I(Imm<12> i, Reg n, Reg d);
  bool ECALL();
  bool EBREAK();
  bool WRS_NTO();
  bool WRS_STO();
  bool CSRRW(Imm<12> c, Reg n, Reg d);
  bool CSRRS(Imm<12> c, Reg n, Reg d);
  bool CSRRC(Imm<12> c, Reg n, Reg d);
  bool CSRRWI(Imm<12> c, Imm<5> u, Reg d);
  bool CSRRSI(Imm<12> c, Imm<5> u, Reg d);
  bool CSRRCI(Imm<12> c, Imm<5> u, Reg d);

  // --- float.cpp
  bool FMADD(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FMSUB(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FNMSUB(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FNMADD(Reg a, Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FADD(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FSUB(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FMUL(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FDIV(Imm<2> f, Reg m, Reg n, Imm<3> r, Reg d);
  bool FSQRT(Imm<2> f, Reg n, Imm<3> r, Reg d);
  bool FSGNJ(Imm<2> f, Reg m, Reg n, Reg d);
  bool FSGNJN(Imm<2> f, Reg m, Reg n, Reg d);
  bool FSGNJX(Imm<2> f, Reg m, Reg n, Reg d);
  bool FMIN(Imm<2> f, Reg m, Reg n, Reg d);
  bool FMAX(Imm<2> f, Reg m, Reg n, Reg d);
  bool FMINM(Imm<2> f, Reg m, Reg n, Reg d);
  bool FMAXM(Imm<2> f, Reg m, Reg n, Reg d);
  bool FLE(Imm<2> f, Reg m, Reg n, Reg d);
  bool FLT(Imm<2> f, Reg m, Reg n, Reg d);
  bool FEQ(Imm<2> f, Reg m, Reg n, Reg d);
  bool FLEQ(Imm<2> f, Reg m, Reg n, Reg d);
  bool FLTQ(Imm<2> f, Reg m, Reg n, Reg d);
  bool FCLASS(Imm<2> f, Reg n, Reg d);

  // --- float_convert.cpp
  bool FCVT_F(Imm<2> f, Imm<2> g, Reg n, Imm<3> r, Reg d);
  bool FROUND(Imm<2> f, Reg n, Imm<3> r, Reg d);
  bool FROUNDNX(Imm<2> f, Reg n, Imm<3> r, Reg d);
  bool FCVT_TO_X(Imm<2> f, Imm<2> o, Reg n, Imm<3> r, Reg d);
  bool FCVT_FROM_X(Imm<2> f, Imm<2> o, Reg n, Imm<3> r, Reg d);
  bool FCVTMOD_W_D(Reg n, Reg d);
  bool FMV_TO_X(Imm<2> f, Reg n, Reg d);
  bool FMV_FROM_X(Imm<2> f, Reg n, Reg d);
  bool FLI(Imm<2> f, Imm<5> i, Reg d);
  bool FMVH_X_D(Reg n, Reg d);
  bool FMVP_D_X(Reg m, Reg n, Reg d);

 private:
  void set_class(InsnClass c) { b_.set_class(c); }
  // A slot that holds the constant: kZero, or a temporary.
  Slot konst(uint64_t value);
  // A value as a register holds it: RV32's are zero-extended to the slot's 64 bits.
  uint64_t in_register(uint64_t value) const { return is_rv32_ ? value & 0xffffffff : value; }
  // An operation on registers, on words of RV64's (*W, sign-extended), and on RV32's registers.
  struct Widths {
    MicroOp rv64, word, rv32;
  };
  MicroOp pick(const Widths& op, bool w) const {
    return is_rv32_ ? op.rv32 : w ? op.word : op.rv64;
  }
  // d = the low word of a as a register holds a word: what *W instructions write.
  void write_word(Slot d, Slot a) {
    if (is_rv32_) {
      b_.mov32(d, a);
    } else {
      b_.sbf64(d, a, 32, 32);
    }
  }
  void write_konst(Reg d, uint64_t value) { b_.konst(x_dst(d), in_register(value)); }
  CompareKind comparison(CompareRelation relation) const { return {relation, is_rv32_, false}; }

  // --- integer: d = op(n, m); the 32-bit form works on words and its result is sign-extended
  bool arithmetic(InsnClass c, const Widths& op, bool w, Reg d, Slot n, Slot m);
  bool logic(MicroOp op, Reg d, Slot n, Slot m);
  bool logic_imm(MicroOp op, Reg d, Reg n, Imm<12> i);
  bool shift_imm(const Widths& op, bool w, Reg d, Reg n, uint32_t amount);
  bool set_less(CompareRelation relation, Reg d, Slot n, Slot m);
  bool set_less_imm(CompareRelation relation, Reg d, Reg n, Imm<12> i);
  bool conditional_zero(bool when_zero, Reg d, Reg n, Reg m);
  bool high_word(MicroOp multiply_add, Reg d, Slot n, Slot m);
  void divide(bool w, bool is_signed, Slot quotient, Slot n, Slot m);
  bool remainder(bool w, bool is_signed, Reg d, Reg n, Reg m);
  bool add_shifted(uint32_t shift, bool uw, Reg d, Reg n, Reg m);
  bool count(bool w, Reg d, Slot a);
  bool rotate(bool w, Reg d, Slot n, Slot amount);
  bool extreme(CompareRelation relation, bool maximum, Reg d, Reg n, Reg m);
  Slot bit_of(Reg m);
  // d = 32 bits of the carry-less product.
  bool product_bits(uint8_t from, Reg d, Reg n, Reg m);
  // A word in its low half, zero above, where the instruction works on words.
  Slot low_word(bool w, Slot a);

  // --- memory
  uint64_t offset_from(Reg n, int64_t offset) const;
  bool load(MicroOp op, Reg d, Reg n, Imm<12> i);
  bool store(MicroOp op, Imm<7> i, Slot value, Reg n, Imm<5> k);
  bool load_float(MicroOp op, unsigned bits, Reg d, Reg n, Imm<12> i);
  // The slots of an even register and the next one; for x0 two of zero.
  Slot pair(Reg even);
  bool atomic(MicroOp op, bool q, bool l, Slot operand, Reg n, bool y, Reg d);

  // --- branches and system
  struct Compared {
    MicroOp registers, with_zero;
  };
  bool branch(const Compared& rv64, const Compared& rv32, uint64_t offset, Reg n, Reg m);
  bool give_way(Turn turn);
  bool custom_hint(Imm<12> i, Reg n);
  enum class Change : uint8_t { kWrite, kSet, kClear };
  // `operand`: the register's slot or a constant's. `writes`: the CSR is written.
  bool access_csr(uint32_t csr, Change change, bool writes, Slot operand, Reg d);
  void read_float_csr(uint32_t csr, Slot d);
  void write_float_csr(uint32_t csr, Slot value);
  void read_vector_csr(uint32_t csr, Slot d);
  void write_vector_csr(uint32_t csr, Slot value);

  // --- floating point. `f` is the instruction's format field
  static bool is_double(uint32_t f) { return f == 1; }
  static FpFormat format(uint32_t f);
  static uint64_t box_bits(uint32_t f);  // that are set above a value of the format
  static uint64_t sign_bit(uint32_t f);
  void set_float_class(uint32_t f) {
    set_class(is_double(f) ? InsnClass::kDoubleArithmetic : InsnClass::kFloatArithmetic);
  }
  // The register's value; the canonical NaN where it is not boxed as one of that format.
  Slot unboxed(uint32_t f, Reg r);
  bool is_boxed(uint32_t f, Slot slot) const;
  // Where a result goes before box() puts it into the register.
  Slot result_slot(uint32_t f, Reg d) { return is_double(f) ? f_reg(d) : b_.temp(); }
  void box(uint32_t f, Reg d, Slot value);
  // A slot with the state that rounds as `r` says: kFpState, or a temporary one, whose flags
  // merge_state() adds to kFpState.
  Slot state_for(uint32_t r);
  void merge_state(Slot state);
  bool float_binary(MicroOp op32, MicroOp op64, FpMisc2 half, Imm<2> f, Reg m, Reg n, Imm<3> r,
                    Reg d);
  bool multiply_add(bool negate_product, bool negate_addend, Imm<2> f, Reg a, Reg m, Reg n,
                    Imm<3> r, Reg d);
  bool sign_inject(uint32_t f, Reg d, Slot n, Slot sign);
  bool min_max(FpMinMax kind, Imm<2> f, Reg m, Reg n, Reg d);
  bool compare(uint16_t truth_table, bool signalling, Imm<2> f, Reg m, Reg n, Reg d);
  bool round_to_integral(bool exact, Imm<2> f, Reg n, Imm<3> r, Reg d);

  BlockBuilder& b_;
  bool is_rv32_;
  uint64_t pc_, next_pc_;
};

}  // namespace gpusim::riscv
