// The execution domain whose values are general registers, xmm registers and constants of the code
// being generated, for one core. Same primitives as uir/scalar_domain.h.
//
// A semantic function runs once, when code is generated, and leaves instructions behind. Where it
// asks whether something holds, the generated code checks that it does and otherwise calls the
// interpreter's function for the whole micro-op. Shifts to the left, single bits and comparisons
// are kept back until it is known what they are for.
#pragma once
#include <bit>
#include <deque>
#include <type_traits>
#include <utility>

#include "device_sim/native/frame.h"
#include "device_sim/native/piece.h"
#include "device_sim/uir/scalar_domain.h"
#include "device_sim/uir/semantics.h"

namespace gpusim::native {

// Where slots are: in a general register, an xmm register, or the frame.
struct SlotPlace {
  enum Kind : uint8_t { kFrame, kGp, kXmm };
  Kind kind = kFrame;
  uint8_t id = 0;
};

inline x86::Mem slot_in_frame(Slot s, uint32_t size_bytes = 8) {
  return x86::ptr(x86::rbp, static_cast<int32_t>(8 * s), size_bytes);
}

struct Domain {
  static constexpr int kBits = 64;
  static constexpr bool kWide = true;

  struct V {
    enum Form : uint8_t { kKonst, kGp, kXmm, kSlot };
    Form form = kKonst;
    uint8_t left = 0;     // the value is what is held, shifted left by so much
    uint8_t bit = 0;      // if not 0: only bit `bit` - 1 of what is held
    uint8_t bare = 0;     // if not 0, 31 or 63: only so many bits of what is held, before the shift
    bool narrow = false;  // known to fit 32 bits
    uint64_t k = 0;
    uint32_t id = 0;  // of the register or slot
    bool is_konst() const { return form == kKonst; }
    bool is_konst(uint64_t x) const { return form == kKonst && k == x; }
    bool is_plain() const { return left == 0 && bit == 0 && bare == 0; }
  };
  struct M {
    enum Kind : uint8_t { kKnown, kCompare, kBit, kFloat, kAnd, kOr };
    Kind kind = kKnown;
    bool known = false;
    bool is_double = false;  // kFloat
    CondCode code{};         // that holds after a and b have been compared
    V a, b;
    const M* left = nullptr;
    const M* right = nullptr;
  };

  // While code is generated, one micro-op at a time per host thread.
  struct State {
    Piece piece;
    std::deque<M> conditions;
  };
  static State*& current() {
    static thread_local State* state = nullptr;
    return state;
  }
  static Piece& piece() { return current()->piece; }

  // --- operands
  static V konst(uint64_t x) { return {.k = x}; }
  static V in_gp(x86::Gp r, bool narrow = false) {
    return {.form = V::kGp, .narrow = narrow, .id = r.id()};
  }
  static V in_xmm(x86::Xmm r) { return {.form = V::kXmm, .id = r.id()}; }
  static bool fits_imm(uint64_t k) {
    return static_cast<int64_t>(k) == int64_t{static_cast<int32_t>(k)};
  }
  // A new register with the value.
  static x86::Gp copy(const V& a) {
    const x86::Gp r = piece().gp();
    switch (a.form) {
      case V::kKonst:
        load_konst(r, a.k);
        return r;
      case V::kGp:
        piece().emit(Inst::kIdMov, r, x86::gpq(a.id));
        break;
      case V::kXmm:
        piece().emit(Inst::kIdVmovq, r, x86::xmm(a.id));
        break;
      case V::kSlot:
        piece().emit(Inst::kIdMov, r, slot_in_frame(static_cast<Slot>(a.id)));
        break;
    }
    if (a.bit != 0) {
      const uint64_t mask = uint64_t{1} << (a.bit - 1);
      if (fits_imm(mask)) {
        piece().emit(Inst::kIdAnd, r, asmjit::imm(mask));
      } else {
        const x86::Gp m = piece().gp();
        load_konst(m, mask);
        piece().emit(Inst::kIdAnd, r, m);
      }
    }
    if (a.bare == 63) piece().emit(Inst::kIdBtr, r, asmjit::imm(63));
    if (a.bare == 31) piece().emit(Inst::kIdAnd, r.r32(), asmjit::imm(0x7fffffff));
    if (a.left != 0) piece().emit(Inst::kIdShl, r, asmjit::imm(a.left));
    return r;
  }
  static void load_konst(x86::Gp r, uint64_t k) {
    if (k >> 32 == 0)
      piece().emit(Inst::kIdMov, r.r32(), asmjit::imm(static_cast<uint32_t>(k)));
    else
      piece().emit(Inst::kIdMov, r, asmjit::imm(k));
  }
  // A register that holds the value, to be read only.
  static x86::Gp gp(const V& a) {
    return a.form == V::kGp && a.is_plain() ? x86::gpq(a.id) : copy(a);
  }
  // A register, the frame, or an immediate.
  static Operand source(const V& a) {
    if (a.is_konst() && fits_imm(a.k)) return asmjit::imm(static_cast<int64_t>(a.k));
    if (a.form == V::kSlot && a.is_plain()) return slot_in_frame(static_cast<Slot>(a.id));
    return gp(a);
  }
  static x86::Xmm xmm(const V& a) {
    if (a.form == V::kXmm && a.is_plain()) return x86::xmm(a.id);
    const x86::Xmm r = piece().xmm();
    if (a.is_konst(0))
      piece().emit(Inst::kIdVpxor, r, r, r);
    else if (a.form == V::kSlot && a.is_plain())
      piece().emit(Inst::kIdVmovq, r, slot_in_frame(static_cast<Slot>(a.id)));
    else
      piece().emit(Inst::kIdVmovq, r, gp(a));
    return r;
  }
  static bool prefers_xmm(const V& a, const V& b) {
    const auto may_be = [](const V& x) { return x.is_plain() && x.form != V::kGp; };
    return (a.form == V::kXmm || b.form == V::kXmm) && may_be(a) && may_be(b) &&
           !(a.is_konst() && a.k != 0) && !(b.is_konst() && b.k != 0);
  }
  static V xmm_op(InstId id, const V& a, const V& b) {
    const x86::Xmm x = xmm(a), y = xmm(b), r = piece().xmm();
    piece().emit(id, r, x, y);
    return in_xmm(r);
  }
  static V gp_op(InstId id, const V& a, const V& b) {
    const Operand y = source(b);
    const x86::Gp r = copy(a);
    piece().emit(id, r, y);
    return in_gp(r);
  }
  static V gp_commutative(InstId id, const V& a, const V& b) {
    return a.is_konst() ? gp_op(id, b, a) : gp_op(id, a, b);
  }
  static bool same(const V& a, const V& b) {
    return a.form == b.form && a.left == b.left && a.bit == b.bit && a.bare == b.bare &&
           a.k == b.k && a.id == b.id;
  }

  // --- integers
  static V add(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst()) return konst(a.k + b.k);
    if (a.is_konst()) return add(b, a);
    if (b.is_konst(0)) return a;
    if (prefers_xmm(a, b)) return xmm_op(Inst::kIdVpaddq, a, b);
    const x86::Gp r = piece().gp();
    if (b.is_konst() && fits_imm(b.k) && a.form == V::kGp && a.is_plain()) {
      piece().emit(Inst::kIdLea, r, x86::ptr(x86::gpq(a.id), static_cast<int32_t>(b.k)));
      return in_gp(r);
    }
    const auto scaled = [](const V& x) { return x.form == V::kGp && x.bit == 0 && x.bare == 0 && x.left <= 3; };
    if (scaled(a) && scaled(b) && (a.left == 0 || b.left == 0)) {
      const V& base = a.left == 0 ? a : b;
      const V& index = a.left == 0 ? b : a;
      piece().emit(Inst::kIdLea, r, x86::ptr(x86::gpq(base.id), x86::gpq(index.id), index.left));
      return in_gp(r);
    }
    return gp_op(Inst::kIdAdd, a, b);
  }
  static V sub(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst()) return konst(a.k - b.k);
    if (b.is_konst()) return add(a, konst(0 - b.k));
    if (prefers_xmm(a, b)) return xmm_op(Inst::kIdVpsubq, a, b);
    if (a.is_konst(0)) {
      const x86::Gp r = copy(b);
      piece().emit(Inst::kIdNeg, r);
      return in_gp(r);
    }
    return gp_op(Inst::kIdSub, a, b);
  }
  static V mul(const V& a, const V& b) {
    const x86::Gp r = copy(a);
    piece().emit(Inst::kIdImul, r, gp(b));
    return in_gp(r);
  }
  static V low(const V& a) { return and_(a, konst(0xffffffffu)); }
  static V mul_u32(const V& a, const V& b) { return mul(low(a), low(b)); }
  static V mul_s32(const V& a, const V& b) { return mul(sar(shl(a, 32), 32), sar(shl(b, 32), 32)); }
  static V mul_high(const V& a, const V& b, bool is_signed) {
    const x86::Gp r = piece().gp();
    piece().multiply_high(r, gp(a), gp(b), is_signed);
    return in_gp(r);
  }
  static V mulhi_u(const V& a, const V& b) { return mul_high(a, b, false); }
  static V mulhi_s(const V& a, const V& b) { return mul_high(a, b, true); }
  static V divide(const V& a, const V& b, bool is_signed) {
    const x86::Gp r = piece().gp();
    piece().divide(r, gp(a), gp(b), is_signed);
    return in_gp(r);
  }
  static V quotient33(const V& a, const V& b) { return divide(a, b, !(a.narrow && b.narrow)); }

  static V and_(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst()) return konst(a.k & b.k);
    if (a.is_konst()) return and_(b, a);
    if (b.is_konst(0) || b.is_konst(~uint64_t{0})) return b.k == 0 ? b : a;
    if (prefers_xmm(a, b)) return xmm_op(Inst::kIdVpand, a, b);
    if (!b.is_konst()) {
      V r = gp_op(Inst::kIdAnd, a, b);
      r.narrow = a.narrow || b.narrow;
      return r;
    }
    const uint64_t k = b.k;
    if (k == 0xffffffffu && a.narrow) return a;
    if ((k == ~uint64_t{0} >> 1 || k == 0x7fffffffu) && a.is_plain()) {
      V r = a;
      r.bare = k == 0x7fffffffu ? 31 : 63;
      r.narrow |= r.bare == 31;
      return r;
    }
    if (std::has_single_bit(k) && a.is_plain()) {
      V r = a;
      r.bit = static_cast<uint8_t>(std::countr_zero(k) + 1);
      return r;
    }
    const x86::Gp r = piece().gp();
    const bool is_narrow = k >> 32 == 0;
    if (k == 0xffffffffu || k == 0xffffu || k == 0xffu) {
      const InstId id = k == 0xffffffffu ? Inst::kIdMov : Inst::kIdMovzx;
      const uint32_t size = k == 0xffffffffu ? 4 : k == 0xffffu ? 2 : 1;
      if (a.form == V::kSlot && a.is_plain()) {
        piece().emit(id, r.r32(), slot_in_frame(static_cast<Slot>(a.id), size));
      } else if (a.form == V::kXmm && a.is_plain() && size == 4) {
        piece().emit(Inst::kIdVmovd, r.r32(), x86::xmm(a.id));
      } else {
        const x86::Gp from = gp(a);
        if (size == 4)
          piece().emit(id, r.r32(), from.r32());
        else if (size == 2)
          piece().emit(id, r.r32(), from.r16());
        else
          piece().emit(id, r.r32(), from.r8());
      }
      return in_gp(r, true);
    }
    const x86::Gp d = copy(a);
    if (std::has_single_bit(~k) && !fits_imm(k)) {
      piece().emit(Inst::kIdBtr, d, asmjit::imm(std::countr_zero(~k)));
    } else {
      piece().emit(Inst::kIdAnd, d, source(b));
    }
    return in_gp(d, is_narrow);
  }
  static V or_(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst()) return konst(a.k | b.k);
    if (a.is_konst(0)) return b;
    if (b.is_konst(0)) return a;
    if (prefers_xmm(a, b)) return xmm_op(Inst::kIdVpor, a, b);
    return gp_commutative(Inst::kIdOr, a, b);
  }
  static V xor_(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst()) return konst(a.k ^ b.k);
    if (b.is_konst(~uint64_t{0})) return not_(a);
    if (prefers_xmm(a, b)) return xmm_op(Inst::kIdVpxor, a, b);
    return gp_commutative(Inst::kIdXor, a, b);
  }
  static V andnot(const V& a, const V& b) {
    if (b.is_konst()) return and_(a, konst(~b.k));
    if (prefers_xmm(a, b)) return xmm_op(Inst::kIdVpandn, b, a);
    const x86::Gp x = gp(a), y = gp(b), r = piece().gp();
    piece().emit(Inst::kIdAndn, r, y, x);
    return in_gp(r);
  }
  static V not_(const V& a) {
    if (a.is_konst()) return konst(~a.k);
    if (a.form == V::kXmm && a.is_plain()) {
      const x86::Xmm ones = piece().xmm(), r = piece().xmm();
      piece().emit(Inst::kIdVpcmpeqd, ones, ones, ones);
      piece().emit(Inst::kIdVpxor, r, x86::xmm(a.id), ones);
      // Above the word there are zeros.
      piece().emit(Inst::kIdVmovq, r, r);
      return in_xmm(r);
    }
    const x86::Gp r = copy(a);
    piece().emit(Inst::kIdNot, r);
    return in_gp(r);
  }

  static V xmm_shift(InstId id, const V& a, int n) {
    const x86::Xmm x = xmm(a), r = piece().xmm();
    piece().emit(id, r, x, asmjit::imm(n));
    return in_xmm(r);
  }
  static V shl(const V& a, int n) {
    n &= 63;
    if (n == 0) return a;
    if (a.is_konst()) return konst(a.k << n);
    if (a.form == V::kXmm && a.is_plain() && n != 32) return xmm_shift(Inst::kIdVpsllq, a, n);
    if (a.bit == 0 && a.bare == 0 && a.left + n < 64) {
      V r = a;
      r.left = static_cast<uint8_t>(a.left + n);
      r.narrow = false;
      return r;
    }
    const x86::Gp r = copy(a);
    piece().emit(Inst::kIdShl, r, asmjit::imm(n));
    return in_gp(r);
  }
  static V shr(const V& a, int n) {
    n &= 63;
    if (n == 0) return a;
    if (a.is_konst()) return konst(a.k >> n);
    if (a.form == V::kXmm && a.is_plain()) return xmm_shift(Inst::kIdVpsrlq, a, n);
    const x86::Gp r = copy(a);
    piece().emit(Inst::kIdShr, r, asmjit::imm(n));
    return in_gp(r, a.narrow || n >= 32);
  }
  static V sar(const V& a, int n) {
    n &= 63;
    if (n == 0) return a;
    if (a.is_konst()) return konst(static_cast<uint64_t>(static_cast<int64_t>(a.k) >> n));
    const int width = 64 - a.left;
    if (a.bit == 0 && a.bare == 0 && n >= a.left && (width == 8 || width == 16 || width == 32)) {
      const x86::Gp r = piece().gp();
      const InstId id = width == 32 ? Inst::kIdMovsxd : Inst::kIdMovsx;
      if (a.form == V::kSlot) {
        piece().emit(id, r,
                     slot_in_frame(static_cast<Slot>(a.id), static_cast<uint32_t>(width / 8)));
      } else {
        V held = a;
        held.left = 0;
        const x86::Gp from = gp(held);
        if (width == 32)
          piece().emit(id, r, from.r32());
        else if (width == 16)
          piece().emit(id, r, from.r16());
        else
          piece().emit(id, r, from.r8());
      }
      if (n > a.left) piece().emit(Inst::kIdSar, r, asmjit::imm(n - a.left));
      return in_gp(r);
    }
    const x86::Gp r = copy(a);
    piece().emit(Inst::kIdSar, r, asmjit::imm(n));
    return in_gp(r);
  }
  static V shift(InstId id, const V& a, const V& n) {
    const x86::Gp x = gp(a), count = gp(n), r = piece().gp();
    piece().emit(id, r, x, count);
    return in_gp(r);
  }
  static V shl_v(const V& a, const V& n) {
    return n.is_konst() ? shl(a, static_cast<int>(n.k & 63)) : shift(Inst::kIdShlx, a, n);
  }
  static V shr_v(const V& a, const V& n) {
    return n.is_konst() ? shr(a, static_cast<int>(n.k & 63)) : shift(Inst::kIdShrx, a, n);
  }
  static V sar_v(const V& a, const V& n) {
    return n.is_konst() ? sar(a, static_cast<int>(n.k & 63)) : shift(Inst::kIdSarx, a, n);
  }

  // --- conditions
  static M konst_mask(bool x) { return {.known = x}; }
  static M compare(CondCode code, const V& a, const V& b) {
    return {.kind = M::kCompare, .code = code, .a = a, .b = b};
  }
  static M eq(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst()) return konst_mask(a.k == b.k);
    if (a.is_konst()) return eq(b, a);
    if (same(a, b)) return konst_mask(true);
    if (a.bit != 0 && a.left == 0 && b.is_konst()) {
      const uint64_t one = uint64_t{1} << (a.bit - 1);
      if (b.k != 0 && b.k != one) return konst_mask(false);
      return {.kind = M::kBit, .code = b.k == 0 ? CondCode::kNC : CondCode::kC, .a = a, .b = b};
    }
    return compare(CondCode::kE, a, b);
  }
  static M lt_u(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst()) return konst_mask(a.k < b.k);
    if (same(a, b)) return konst_mask(false);
    return compare(CondCode::kB, a, b);
  }
  static M lt_s(const V& a, const V& b) {
    if (a.is_konst() && b.is_konst())
      return konst_mask(static_cast<int64_t>(a.k) < static_cast<int64_t>(b.k));
    if (same(a, b)) return konst_mask(false);
    return compare(CondCode::kL, a, b);
  }
  static M both(M::Kind kind, const M& a, const M& b) {
    auto& all = current()->conditions;
    all.push_back(a);
    const M* left = &all.back();
    all.push_back(b);
    return {.kind = kind, .left = left, .right = &all.back()};
  }
  static M m_not(const M& m) {
    M r = m;
    switch (m.kind) {
      case M::kKnown:
        r.known = !m.known;
        break;
      case M::kCompare:
      case M::kBit:
      case M::kFloat:
        r.code = x86::negateCond(m.code);
        break;
      case M::kAnd:
        return both(M::kOr, m_not(*m.left), m_not(*m.right));
      case M::kOr:
        return both(M::kAnd, m_not(*m.left), m_not(*m.right));
    }
    return r;
  }
  static M m_and(const M& a, const M& b) {
    if (a.kind == M::kKnown) return a.known ? b : a;
    if (b.kind == M::kKnown) return b.known ? a : b;
    return both(M::kAnd, a, b);
  }
  static M m_or(const M& a, const M& b) {
    if (a.kind == M::kKnown) return a.known ? a : b;
    if (b.kind == M::kKnown) return b.known ? b : a;
    return both(M::kOr, a, b);
  }
  // Sets the flags; returns the code for which the condition holds.
  static CondCode emit_compare(const M& m) {
    if (m.kind == M::kFloat) {
      piece().emit(m.is_double ? Inst::kIdVucomisd : Inst::kIdVucomiss, xmm(m.a), xmm(m.b));
      return m.code;
    }
    if (m.kind == M::kBit) {
      V held = m.a;
      held.bit = 0;
      const x86::Gp r = gp(held);
      const int n = m.a.bit - 1;
      if (n < 31) {
        piece().emit(Inst::kIdTest, r.r32(), asmjit::imm(uint32_t{1} << n));
        return m.code == CondCode::kC ? CondCode::kNE : CondCode::kE;
      }
      piece().emit(Inst::kIdBt, r, asmjit::imm(n));
      return m.code;
    }
    V a = m.a, b = m.b;
    const bool is_equality = m.code == CondCode::kE || m.code == CondCode::kNE;
    if (is_equality && a.bare != 0 && a.left == 0 && b.is_konst(0)) {
      const bool is_short = std::exchange(a.bare, uint8_t{0}) == 31;
      if (is_short) {
        piece().emit(Inst::kIdTest, gp(a).r32(), asmjit::imm(0x7fffffff));
      } else {
        const x86::Gp r = copy(a);
        piece().emit(Inst::kIdAdd, r, r);
      }
      return m.code;
    }
    // The low halves of registers decide where both values are shifted so far.
    const auto is_high = [](const V& x) {
      return x.is_konst() ? static_cast<uint32_t>(x.k) == 0 : x.left == 32 && x.bit == 0 && x.bare == 0;
    };
    if (is_high(a) && is_high(b)) {
      const auto low_half = [](const V& x) -> V {
        if (x.is_konst()) return konst(x.k >> 32);
        V held = x;
        held.left = 0;
        return held;
      };
      a = low_half(a);
      b = low_half(b);
      const bool in_frame = a.form == V::kSlot;
      const x86::Gp r = in_frame ? x86::Gp() : gp(a).r32();
      if (b.is_konst()) {
        const auto k = static_cast<int32_t>(b.k);
        if (in_frame)
          piece().emit(Inst::kIdCmp, slot_in_frame(static_cast<Slot>(a.id), 4), asmjit::imm(k));
        else if (k == 0)
          piece().emit(Inst::kIdTest, r, r);
        else
          piece().emit(Inst::kIdCmp, r, asmjit::imm(k));
      } else if (in_frame) {
        piece().emit(Inst::kIdCmp, slot_in_frame(static_cast<Slot>(a.id), 4), gp(b).r32());
      } else if (b.form == V::kSlot) {
        piece().emit(Inst::kIdCmp, r, slot_in_frame(static_cast<Slot>(b.id), 4));
      } else {
        piece().emit(Inst::kIdCmp, r, gp(b).r32());
      }
      return m.code;
    }
    const Operand y = source(b);
    const x86::Gp r = gp(a);
    if (b.is_konst(0))
      piece().emit(Inst::kIdTest, r, r);
    else
      piece().emit(Inst::kIdCmp, r, y);
    return m.code;
  }
  // Goes to the label if `m` is `wanted`.
  static void jump_if(const M& m, bool wanted, Label to, bool is_cold) {
    const auto jump = [&](CondCode code) {
      if (is_cold)
        piece().jump_cold(code);
      else
        piece().jump(code, to);
    };
    switch (m.kind) {
      case M::kKnown:
        if (m.known == wanted) piece().give_up();
        return;
      case M::kAnd:
      case M::kOr: {
        if ((m.kind == M::kAnd) != wanted) {
          jump_if(*m.left, wanted, to, is_cold);
          return jump_if(*m.right, wanted, to, is_cold);
        }
        const Label stay = piece().new_label();
        jump_if(*m.left, !wanted, stay, false);
        jump_if(*m.right, wanted, to, is_cold);
        return piece().bind(stay);
      }
      default: {
        const CondCode code = emit_compare(m);
        return jump(wanted ? code : x86::negateCond(code));
      }
    }
  }
  static V select(const M& m, const V& a, const V& b) {
    if (m.kind == M::kKnown) return m.known ? a : b;
    if (same(a, b)) return a;
    if (m.kind == M::kAnd) return select(*m.left, select(*m.right, a, b), b);
    if (m.kind == M::kOr) return select(*m.left, a, select(*m.right, a, b));
    if (a.is_konst() && b.is_konst() && (a.k == 0 || b.k == 0) && std::has_single_bit(a.k | b.k)) {
      const CondCode code = emit_compare(m);
      const x86::Gp r = piece().gp();
      piece().emit(Inst::setccFromCond(b.k == 0 ? code : x86::negateCond(code)), r.r8());
      piece().emit(Inst::kIdMovzx, r.r32(), r.r8());
      const int n = std::countr_zero(a.k | b.k);
      if (n != 0) piece().emit(Inst::kIdShl, r, asmjit::imm(n));
      return in_gp(r, n < 32);
    }
    const x86::Gp chosen = gp(a), r = copy(b);
    const CondCode code = emit_compare(m);
    piece().emit(Inst::cmovccFromCond(code), r, chosen);
    return in_gp(r, a.narrow && b.narrow);
  }
  static bool all(const M& m) {
    if (m.kind == M::kKnown) return m.known;
    jump_if(m, false, Label(), true);
    return true;
  }
  static bool always(const M& m) { return m.kind == M::kKnown && m.known; }
  static V unsupported() {
    piece().give_up();
    return konst(0);
  }
  template <class F, class... A>
  static V map(F, const V& a, const A&... more) {
    if constexpr (std::is_same_v<F, sem::CountLeadingZeros>) {
      const x86::Gp r = piece().gp();
      piece().emit(Inst::kIdLzcnt, r, gp(a));
      return in_gp(r, true);
    } else if constexpr (std::is_same_v<F, sem::DivideUnsigned>) {
      return divide(a, more..., false);
    } else if constexpr (std::is_same_v<F, sem::DivideSigned>) {
      return divide(a, more..., true);
    } else {
      return unsupported();
    }
  }
  template <class F, class... A>
  static V map_state(const M& where, const V& otherwise, F, V&, const A&...) {
    if (where.kind == M::kKnown) return where.known ? unsupported() : otherwise;
    jump_if(where, true, Label(), true);
    return otherwise;
  }

  // --- floating point. Of floats the high halves of sources may be anything; those of results are
  // 0.
  template <class T>
  static V float_op(InstId single, InstId twice, const V& a, const V& b) {
    const V r = xmm_op(sizeof(T) == 8 ? twice : single, a, b);
    if (sizeof(T) == 4) clear_high(r);
    return r;
  }
  static void clear_high(const V& a) {
    const x86::Xmm r = x86::xmm(a.id);
    piece().emit(Inst::kIdVinsertps, r, r, r, asmjit::imm(0b1110));
  }
  template <class T>
  static V fadd(const V& a, const V& b) {
    return float_op<T>(Inst::kIdVaddss, Inst::kIdVaddsd, a, b);
  }
  template <class T>
  static V fsub(const V& a, const V& b) {
    return float_op<T>(Inst::kIdVsubss, Inst::kIdVsubsd, a, b);
  }
  template <class T>
  static V fmul(const V& a, const V& b) {
    return float_op<T>(Inst::kIdVmulss, Inst::kIdVmulsd, a, b);
  }
  template <class T>
  static V fdiv(const V& a, const V& b) {
    return float_op<T>(Inst::kIdVdivss, Inst::kIdVdivsd, a, b);
  }
  template <class T>
  static V fsqrt(const V& a) {
    return float_op<T>(Inst::kIdVsqrtss, Inst::kIdVsqrtsd, a, a);
  }
  static V fused(InstId id, const V& a, const V& b, const V& c) {
    const x86::Xmm x = xmm(a), y = xmm(b), r = piece().xmm();
    piece().emit(Inst::kIdVmovaps, r, xmm(c));
    piece().emit(id, r, x, y);
    return in_xmm(r);
  }
  template <class T>
  static V fma(const V& a, const V& b, const V& c) {
    const V r = fused(sizeof(T) == 8 ? Inst::kIdVfmadd231sd : Inst::kIdVfmadd231ss, a, b, c);
    if (sizeof(T) == 4) clear_high(r);
    return r;
  }
  // b above a, and not unordered.
  template <class T>
  static M flt(const V& a, const V& b) {
    return {.kind = M::kFloat, .is_double = sizeof(T) == 8, .code = CondCode::kA, .a = b, .b = a};
  }
  // Equal and not unordered: neither is below the other, and each is itself.
  template <class T>
  static M feq(const V& a, const V& b) {
    const x86::Xmm x = xmm(a), y = xmm(b), r = piece().xmm();
    piece().emit(sizeof(T) == 8 ? Inst::kIdVcmpsd : Inst::kIdVcmpss, r, x, y, asmjit::imm(0));
    const x86::Gp bits = piece().gp();
    piece().emit(Inst::kIdVmovd, bits.r32(), r);
    return m_not(compare(CondCode::kE, in_gp(bits, true), konst(0)));
  }
  static V fadd2(const V& a, const V& b) { return xmm_op(Inst::kIdVaddps, a, b); }
  static V fsub2(const V& a, const V& b) { return xmm_op(Inst::kIdVsubps, a, b); }
  static V fmul2(const V& a, const V& b) { return xmm_op(Inst::kIdVmulps, a, b); }
  // Zero by zero, above the word, is not zero.
  static V fdiv2(const V& a, const V& b) {
    const V r = xmm_op(Inst::kIdVdivps, a, b);
    piece().emit(Inst::kIdVmovq, x86::xmm(r.id), x86::xmm(r.id));
    return r;
  }
  static V fma2(const V& a, const V& b, const V& c) { return fused(Inst::kIdVfmadd231ps, a, b, c); }

  // --- elements E: uint8_t, uint16_t or uint32_t
  template <class E>
  static InstId by_element(InstId b, InstId w, InstId d) {
    return sizeof(E) == 1 ? b : sizeof(E) == 2 ? w : d;
  }
#define GPUSIM_BY_ELEMENT(name, b, w, d)                                                \
  template <class E>                                                                    \
  static V name(const V& x, const V& y) {                                               \
    return xmm_op(by_element<E>(Inst::kIdVp##b, Inst::kIdVp##w, Inst::kIdVp##d), x, y); \
  }
  GPUSIM_BY_ELEMENT(vadd, addb, addw, addd)
  GPUSIM_BY_ELEMENT(vsub, subb, subw, subd)
  GPUSIM_BY_ELEMENT(vmin_s, minsb, minsw, minsd)
  GPUSIM_BY_ELEMENT(vmax_s, maxsb, maxsw, maxsd)
  GPUSIM_BY_ELEMENT(vmin_u, minub, minuw, minud)
  GPUSIM_BY_ELEMENT(vmax_u, maxub, maxuw, maxud)
  GPUSIM_BY_ELEMENT(vgt_s, cmpgtb, cmpgtw, cmpgtd)
  GPUSIM_BY_ELEMENT(equal_elements, cmpeqb, cmpeqw, cmpeqd)
#undef GPUSIM_BY_ELEMENT
  // Above the word, zeros are equal: not part of the value.
  static V word_of(const V& a) {
    piece().emit(Inst::kIdVmovq, x86::xmm(a.id), x86::xmm(a.id));
    return a;
  }
  template <class E>
  static V veq(const V& a, const V& b) {
    return word_of(equal_elements<E>(a, b));
  }
  template <class E>
  static V vgt_u(const V& a, const V& b) {
    return not_(equal_elements<E>(vmin_u<E>(a, b), a));
  }
  template <class E>
  static V vmul(const V& a, const V& b) {
    if constexpr (sizeof(E) == 1)
      return unsupported();
    else
      return xmm_op(sizeof(E) == 2 ? Inst::kIdVpmullw : Inst::kIdVpmulld, a, b);
  }
  template <class E>
  static V vshl(const V& a, int n) {
    if constexpr (sizeof(E) == 1)
      return unsupported();
    else
      return xmm_shift(sizeof(E) == 2 ? Inst::kIdVpsllw : Inst::kIdVpslld, a, n);
  }
  template <class E>
  static V vshr(const V& a, int n) {
    if constexpr (sizeof(E) == 1)
      return unsupported();
    else
      return xmm_shift(sizeof(E) == 2 ? Inst::kIdVpsrlw : Inst::kIdVpsrld, a, n);
  }
  template <class E>
  static V vsar(const V& a, int n) {
    if constexpr (sizeof(E) == 1)
      return unsupported();
    else
      return xmm_shift(sizeof(E) == 2 ? Inst::kIdVpsraw : Inst::kIdVpsrad, a, n);
  }
};

}  // namespace gpusim::native
