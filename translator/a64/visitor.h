// Translates AArch64 instructions to micro-ops: one method per row of rows/*.def, with the row's
// name and fields (README.md). False: the encoding is allocated but not supported, or UNDEFINED at
// EL0; nothing has been emitted then.
#pragma once

#include <cstdint>

#include "translator/a64/registers.h"
#include "translator/a64/simd_visitor.h"
#include "translator/common/block_builder.h"
#include "translator/common/visit.h"

namespace gpusim::a64 {

// Floating-point and vector instructions are its bases' (float_visitor.h, simd_visitor.h).
class Visitor : public SimdVisitor {
 public:
  Visitor(uint64_t pc, BlockBuilder& builder) : SimdVisitor(builder), pc_(pc) {}

  // --- integer_add_sub.cpp
  bool ADR(Imm<2> l, Imm<19> i, Reg d);
  bool ADRP(Imm<2> l, Imm<19> i, Reg d);
  bool ADD_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d);
  bool ADDS_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d);
  bool SUB_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d);
  bool SUBS_imm(bool sf, bool sh, Imm<12> i, Reg n, Reg d);
  bool ADD_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool ADDS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool SUB_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool SUBS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool ADD_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d);
  bool ADDS_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d);
  bool SUB_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d);
  bool SUBS_ext(bool sf, Reg m, Imm<3> option, Imm<3> i, Reg n, Reg d);
  bool ADC(bool sf, Reg m, Reg n, Reg d);
  bool ADCS(bool sf, Reg m, Reg n, Reg d);
  bool SBC(bool sf, Reg m, Reg n, Reg d);
  bool SBCS(bool sf, Reg m, Reg n, Reg d);

  // --- integer_logical.cpp
  bool AND_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d);
  bool ORR_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d);
  bool EOR_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d);
  bool ANDS_imm(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d);
  bool AND_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool BIC_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool ORR_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool ORN_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool EOR_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool EON_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool ANDS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool BICS_shift(bool sf, Imm<2> shift, Reg m, Imm<6> i, Reg n, Reg d);
  bool MOVN(bool sf, Imm<2> hw, Imm<16> i, Reg d);
  bool MOVZ(bool sf, Imm<2> hw, Imm<16> i, Reg d);
  bool MOVK(bool sf, Imm<2> hw, Imm<16> i, Reg d);

  // --- integer_bits.cpp
  bool SBFM(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d);
  bool BFM(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d);
  bool UBFM(bool sf, Imm<1> N, Imm<6> r, Imm<6> s, Reg n, Reg d);
  bool EXTR(bool sf, Imm<1> N, Reg m, Imm<6> i, Reg n, Reg d);
  bool LSLV(bool sf, Reg m, Reg n, Reg d);
  bool LSRV(bool sf, Reg m, Reg n, Reg d);
  bool ASRV(bool sf, Reg m, Reg n, Reg d);
  bool RORV(bool sf, Reg m, Reg n, Reg d);
  bool RBIT(bool sf, Reg n, Reg d);
  bool REV16(bool sf, Reg n, Reg d);
  bool REV_w(Reg n, Reg d);
  bool REV32(Reg n, Reg d);
  bool REV_x(Reg n, Reg d);
  bool CLZ(bool sf, Reg n, Reg d);
  bool CLS(bool sf, Reg n, Reg d);

  // --- integer_multiply.cpp
  bool MADD(bool sf, Reg m, Reg a, Reg n, Reg d);
  bool MSUB(bool sf, Reg m, Reg a, Reg n, Reg d);
  bool SMADDL(Reg m, Reg a, Reg n, Reg d);
  bool SMSUBL(Reg m, Reg a, Reg n, Reg d);
  bool SMULH(Reg m, Reg n, Reg d);
  bool UMADDL(Reg m, Reg a, Reg n, Reg d);
  bool UMSUBL(Reg m, Reg a, Reg n, Reg d);
  bool UMULH(Reg m, Reg n, Reg d);
  bool UDIV(bool sf, Reg m, Reg n, Reg d);
  bool SDIV(bool sf, Reg m, Reg n, Reg d);
  bool CRC32(bool sf, Reg m, Imm<2> size, Reg n, Reg d);
  bool CRC32C(bool sf, Reg m, Imm<2> size, Reg n, Reg d);

  // --- integer_conditional.cpp
  bool CCMN_reg(bool sf, Reg m, Imm<4> cond, Reg n, Imm<4> nzcv);
  bool CCMN_imm(bool sf, Imm<5> i, Imm<4> cond, Reg n, Imm<4> nzcv);
  bool CCMP_reg(bool sf, Reg m, Imm<4> cond, Reg n, Imm<4> nzcv);
  bool CCMP_imm(bool sf, Imm<5> i, Imm<4> cond, Reg n, Imm<4> nzcv);
  bool CSEL(bool sf, Reg m, Imm<4> cond, Reg n, Reg d);
  bool CSINC(bool sf, Reg m, Imm<4> cond, Reg n, Reg d);
  bool CSINV(bool sf, Reg m, Imm<4> cond, Reg n, Reg d);
  bool CSNEG(bool sf, Reg m, Imm<4> cond, Reg n, Reg d);
  bool RMIF(Imm<6> i, Reg n, Imm<4> mask);
  bool SETF8(Reg n);
  bool SETF16(Reg n);
  bool CFINV();
  bool XAFLAG();
  bool AXFLAG();

  // --- memory_single.cpp. `size` is the log2 of the access in bytes; `w` chooses sign extension
  // to 32 bits.
  bool STR_uimm(Imm<2> size, Imm<12> i, Reg n, Reg t);
  bool LDR_uimm(Imm<2> size, Imm<12> i, Reg n, Reg t);
  bool LDRS_uimm(Imm<2> size, bool w, Imm<12> i, Reg n, Reg t);
  bool STUR(Imm<2> size, Imm<9> i, Reg n, Reg t);
  bool LDUR(Imm<2> size, Imm<9> i, Reg n, Reg t);
  bool LDURS(Imm<2> size, bool w, Imm<9> i, Reg n, Reg t);
  bool STTR(Imm<2> size, Imm<9> i, Reg n, Reg t);
  bool LDTR(Imm<2> size, Imm<9> i, Reg n, Reg t);
  bool LDTRS(Imm<2> size, bool w, Imm<9> i, Reg n, Reg t);
  bool STR_prepost(Imm<2> size, Imm<9> i, bool pre, Reg n, Reg t);
  bool LDR_prepost(Imm<2> size, Imm<9> i, bool pre, Reg n, Reg t);
  bool LDRS_prepost(Imm<2> size, bool w, Imm<9> i, bool pre, Reg n, Reg t);
  bool STR_reg(Imm<2> size, Reg m, Imm<3> option, bool scaled, Reg n, Reg t);
  bool LDR_reg(Imm<2> size, Reg m, Imm<3> option, bool scaled, Reg n, Reg t);
  bool LDRS_reg(Imm<2> size, bool w, Reg m, Imm<3> option, bool scaled, Reg n, Reg t);
  bool LDR_lit(bool is_64, Imm<19> i, Reg t);
  bool LDRSW_lit(Imm<19> i, Reg t);
  bool PRFM_lit(Imm<19> i, Reg t);
  bool PRFM_uimm(Imm<12> i, Reg n, Reg t);
  bool PRFM_reg(Reg m, Imm<3> option, bool scaled, Reg n, Reg t);
  bool PRFUM(Imm<9> i, Reg n, Reg t);
  bool LDRA(Imm<1> key, Imm<1> s, Imm<9> i, bool writeback, Reg n, Reg t);

  // --- memory_pair.cpp
  bool STNP(bool is_64, Imm<7> i, Reg u, Reg n, Reg t);
  bool LDNP(bool is_64, Imm<7> i, Reg u, Reg n, Reg t);
  bool STP(bool is_64, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t);
  bool LDP(bool is_64, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t);
  bool LDPSW(Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t);

  // --- memory_fp.cpp: scalar FP/SIMD registers. Size 128 where `q` is set.
  bool STR_fp_uimm(Imm<2> size, Imm<1> q, Imm<12> i, Reg n, Reg t);
  bool LDR_fp_uimm(Imm<2> size, Imm<1> q, Imm<12> i, Reg n, Reg t);
  bool STUR_fp(Imm<2> size, Imm<1> q, Imm<9> i, Reg n, Reg t);
  bool LDUR_fp(Imm<2> size, Imm<1> q, Imm<9> i, Reg n, Reg t);
  bool STR_fp_prepost(Imm<2> size, Imm<1> q, Imm<9> i, bool pre, Reg n, Reg t);
  bool LDR_fp_prepost(Imm<2> size, Imm<1> q, Imm<9> i, bool pre, Reg n, Reg t);
  bool STR_fp_reg(Imm<2> size, Imm<1> q, Reg m, Imm<3> option, bool scaled, Reg n, Reg t);
  bool LDR_fp_reg(Imm<2> size, Imm<1> q, Reg m, Imm<3> option, bool scaled, Reg n, Reg t);
  bool LDR_fp_lit(Imm<2> size, Imm<19> i, Reg t);
  bool STNP_fp(Imm<2> size, Imm<7> i, Reg u, Reg n, Reg t);
  bool LDNP_fp(Imm<2> size, Imm<7> i, Reg u, Reg n, Reg t);
  bool STP_fp(Imm<2> size, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t);
  bool LDP_fp(Imm<2> size, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t);

  // --- memory_ordered.cpp: exclusives, acquire and release
  bool STXR(Imm<2> size, Reg s, Reg n, Reg t);
  bool STLXR(Imm<2> size, Reg s, Reg n, Reg t);
  bool STXP(bool is_64, Reg s, Reg u, Reg n, Reg t);
  bool STLXP(bool is_64, Reg s, Reg u, Reg n, Reg t);
  bool LDXR(Imm<2> size, Reg n, Reg t);
  bool LDAXR(Imm<2> size, Reg n, Reg t);
  bool LDXP(bool is_64, Reg u, Reg n, Reg t);
  bool LDAXP(bool is_64, Reg u, Reg n, Reg t);
  bool CLREX(Imm<4> m);
  bool STLLR(Imm<2> size, Reg n, Reg t);
  bool STLR(Imm<2> size, Reg n, Reg t);
  bool LDLAR(Imm<2> size, Reg n, Reg t);
  bool LDAR(Imm<2> size, Reg n, Reg t);
  bool LDAPR(Imm<2> size, Reg n, Reg t);
  bool STLUR(Imm<2> size, Imm<9> i, Reg n, Reg t);
  bool LDAPUR(Imm<2> size, Imm<9> i, Reg n, Reg t);
  bool LDAPURS(Imm<2> size, bool w, Imm<9> i, Reg n, Reg t);

  // --- memory_atomic.cpp
  bool CAS(Imm<2> size, bool A, Reg s, bool R, Reg n, Reg t);
  bool CASP(bool is_64, bool A, Reg s, bool R, Reg n, Reg t);
  bool LDADD(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool LDCLR(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool LDEOR(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool LDSET(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool LDSMAX(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool LDSMIN(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool LDUMAX(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool LDUMIN(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);
  bool SWP(Imm<2> size, bool A, bool R, Reg s, Reg n, Reg t);

  // --- branch.cpp
  bool B_cond(Imm<19> i, Imm<4> cond);
  bool B(Imm<26> i);
  bool BL(Imm<26> i);
  bool CBZ(bool sf, Imm<19> i, Reg t);
  bool CBNZ(bool sf, Imm<19> i, Reg t);
  bool TBZ(Imm<1> b5, Imm<5> b40, Imm<14> i, Reg t);
  bool TBNZ(Imm<1> b5, Imm<5> b40, Imm<14> i, Reg t);
  bool BR(Reg n);
  bool BLR(Reg n);
  bool RET(Reg n);
  bool BRA_z(Imm<1> key, Reg n);
  bool BLRA_z(Imm<1> key, Reg n);
  bool RETA(Imm<1> key);
  bool BRA(Imm<1> key, Reg n, Reg m);
  bool BLRA(Imm<1> key, Reg n, Reg m);

  // --- system.cpp: exceptions, hints, barriers, system registers and instructions
  bool UDF(Imm<16> i);
  bool SVC(Imm<16> i);
  bool HVC(Imm<16> i);
  bool SMC(Imm<16> i);
  bool BRK(Imm<16> i);
  bool HLT(Imm<16> i);
  bool DCPS(Imm<16> i, Imm<2> level);
  bool ERET();
  bool DRPS();
  bool ERETA(Imm<1> key);
  bool HINT(Imm<4> CRm, Imm<3> op2);
  bool NOP();
  bool YIELD();
  bool WFE();
  bool WFI();
  bool SEV();
  bool SEVL();
  bool DSB(Imm<4> m);
  bool DMB(Imm<4> m);
  bool ISB(Imm<4> m);
  bool SB();
  bool MSR_imm(Imm<3> op1, Imm<4> CRm, Imm<3> op2);
  bool SYS(Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t);
  bool SYSL(Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t);
  bool MSR_reg(Imm<1> o0, Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t);
  bool MRS(Imm<1> o0, Imm<3> op1, Imm<4> CRn, Imm<4> CRm, Imm<3> op2, Reg t);
  bool PAC_reg(Imm<3> kind, Reg n, Reg d);
  bool PAC_z(Imm<3> kind, Reg d);
  bool PACGA(Reg m, Reg n, Reg d);
  bool XPAC(Imm<1> data, Reg d);

 private:
  // --- visitor.cpp: for every section
  uint64_t next_pc() const { return pc_ + 4; }
  // pc plus a word offset.
  uint64_t label(int64_t words) const { return pc_ + static_cast<uint64_t>(words) * 4; }
  // A slot that holds the constant: kZero, or a temporary.
  Slot konst(uint64_t value);
  // Rd's slot if the result has to be read again: a temporary instead of the sink.
  Slot readable_dst(Reg d) { return d == 31 ? b_.temp() : x_dst(d); }
  // d = a, or its low word.
  void move(bool sf, Slot d, Slot a);
  // The value that a slot surely has, if the last micro-op gave it one.
  const uint64_t* last_konst(Slot s) const;
  // DecodeBitMasks.
  static uint64_t bit_mask(bool sf, uint32_t N, uint32_t r, uint32_t s);
  // Rm shifted (LSL LSR ASR ROR) by an immediate; Rm itself if that is 0.
  Slot shifted(bool sf, Reg m, uint32_t shift, uint32_t amount);
  void shift_imm(bool sf, Slot d, Slot a, uint32_t shift, uint32_t amount);
  // ExtendReg; the upper half is meaningless when !sf.
  Slot extended(bool sf, Reg m, uint32_t option, uint32_t amount);

  // --- integer
  enum class Flags : uint8_t { kKeep, kSet };
  bool add_imm(bool sf, Slot d, Slot n, int64_t imm);
  bool add_reg(bool sf, bool subtract, Slot d, Slot n, Slot m);
  void flags_add_imm(bool sf, Slot flags, Slot n, uint32_t imm);
  void flags_sub_imm(bool sf, Slot flags, Slot n, uint32_t imm);
  bool adc(bool sf, Flags flags, Slot d, Slot n, Slot m);
  bool set_flags_reg(bool sf, bool subtract, Reg d, Slot n, Slot m);
  bool add_shift(bool sf, bool subtract, uint32_t shift, Reg m, uint32_t amount, Reg n, Reg d);
  bool add_ext(bool sf, bool subtract, Reg m, uint32_t option, uint32_t amount, Reg n, Reg d);
  Slot inverted(Slot m);
  bool logical(bool sf, MicroOp op64, MicroOp op32, Reg d, Slot n, Slot m);
  bool logical_not(bool sf, MicroOp op64, Reg d, Slot n, Slot m);
  bool logical_flags(bool sf, Reg d, Slot result);
  void write_konst(Reg d, uint64_t value);
  bool conditional_compare(bool sf, Slot new_flags, uint32_t cond, uint32_t nzcv);
  bool conditional_select(MicroOp op, Reg m, uint32_t cond, Reg n, Reg d);
  bool set_sign_flags(Reg n, unsigned bits);
  // NZCV becomes N<<3 | Z<<2 | C<<1 | V of four truth tables over the old flags.
  void map_flags(uint16_t n, uint16_t z, uint16_t c, uint16_t v);
  bool arithmetic(MicroOp op, Reg d, Slot a, Slot b, Slot c = 0);
  bool bits(MicroOp op, Reg d, Slot a, Slot b = 0);

  // --- memory
  enum class Extend : uint8_t { kUnsigned, kSign64, kSign32 };
  struct Address {
    Slot base = 0;
    uint64_t offset = 0;
    Slot index = 0;  // meaningful if indexed
    uint8_t shift = 0;
    bool indexed = false;
    bool signed_word = false;  // the index is a signed word
  };
  static Extend sign(bool w) { return w ? Extend::kSign32 : Extend::kSign64; }
  static Address at(Slot base, int64_t offset) {
    return {.base = base, .offset = static_cast<uint64_t>(offset)};
  }
  Address register_offset(Reg n, Reg m, uint32_t option, unsigned shift);
  // The same place as base and offset alone.
  Address flat(const Address& address);
  void load(unsigned log2_size, Extend extend, Slot d, const Address& address);
  void store(unsigned log2_size, Slot value, const Address& address);
  bool load_x(unsigned log2_size, Extend extend, Reg t, const Address& address);
  bool store_x(unsigned log2_size, Reg t, const Address& address);
  bool load_prepost(unsigned log2_size, Extend extend, Reg t, Reg n, int64_t offset, bool pre);
  bool load_pair(unsigned log2_size, Extend extend, unsigned mode, Imm<7> i, Reg u, Reg n, Reg t);
  bool store_pair(unsigned log2_size, unsigned mode, Imm<7> i, Reg u, Reg n, Reg t);
  void load_v(unsigned log2_size, Reg t, const Address& address);
  void store_v(unsigned log2_size, Reg t, const Address& address);
  bool prefetch();
  bool load_ordered(unsigned log2_size, Extend extend, Reg t, Reg n, int64_t offset);
  bool store_ordered(unsigned log2_size, Reg t, Reg n, int64_t offset);
  bool load_exclusive(unsigned log2_size, bool acquire, Reg t, Reg n);
  bool load_exclusive_pair(bool is_64, bool acquire, Reg u, Reg t, Reg n);
  bool store_exclusive(unsigned log2_size, bool release, Reg s, Reg t, Reg n);
  bool store_exclusive_pair(bool is_64, bool release, Reg s, Reg u, Reg t, Reg n);
  // A slot with the low words of two registers.
  Slot joined_words(Slot low, Slot high);
  bool atomic(MicroOp op, unsigned log2_size, bool acquire, bool release, Reg s, Reg n, Reg t);

  // --- branches and system
  bool branch(MicroOp op, Slot a, uint32_t imm16, int64_t words);
  bool branch_reg(Slot target, JumpHint hint);
  bool call_reg(Reg n);
  bool trap(Fault fault);
  bool give_way(Turn turn);
  void random_number(Slot d);

  uint64_t pc_;
};

}  // namespace gpusim::a64
