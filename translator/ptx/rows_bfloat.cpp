// bf16, alone and in pairs. Values are widened to singles, which is exact, and computed there.
//
// To round twice would be wrong, so the first rounding is to odd: towards zero, with the last bit
// set where something was lost. A single has more than two bits beyond a bf16 everywhere, among
// subnormals, too, so the second rounding, to the nearest, sees on which side of a tie it is
// (Boldo and Melquiond, "When double rounding is odd", 2005).
#include "device_sim/uir/fp_aux.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;
using softfloat::Rounding;

constexpr uint64_t kNan = 0x7fff, kSign = 0x8000, kSingleInf = 0x7f800000;
constexpr uint64_t kSingleNan = 0x7fffffff;
constexpr uint64_t kMostSingle = 0x7f7f0000;  // of bf16, as a single
constexpr auto kF32 = static_cast<uint8_t>(FpFormat::kF32);

class Bfloats {
 public:
  Bfloats(Emitter& e, I i) : e_(e), i_(i), t_(e.temp()), u_(e.temp()) {}

  void widen(Slot d, Slot word, int half) {
    e_.b.ubfx(d, word, 0xffff, static_cast<uint8_t>(16 * half));
    e_.b.lsli64(d, d, 16);
  }

  // A single to bf16, d may be the same slot.
  void narrow(Slot d, Slot single, Rounding mode) {
    if (mode == Rounding::kTieEven) {
      e_.b.ubfx(t_, single, 1, 16);
      e_.b.add64(t_, t_, single);
      e_.b.addi64(t_, t_, 0x7fff);
    } else if (mode == Rounding::kZero) {
      e_.b.mov(t_, single);
    } else {
      // One more unit of bf16, less the last bit of the single, on the side that it rounds to.
      e_.b.ubfx(t_, single, 1, 31);
      e_.b.sel_cmpi(t_, e_.konst(0xffff), kZeroSlot, t_, mode == Rounding::kPosInf ? 0 : 1,
                    kEqual64);
      e_.b.add64(t_, t_, single);
    }
    e_.b.ubfx(t_, t_, 0xffff, 16);
    e_.b.andi64(u_, single, 0x7fffffff);
    e_.b.sel_cmp(d, e_.konst(kNan), t_, e_.konst(kSingleInf), u_, kBelow64);
    if (!i_.has("relu")) return;
    e_.b.andi64(t_, d, kSign);
    e_.b.sel_cmpi(d, d, kZeroSlot, t_, 0, kEqual64);
  }

  // d = what `compute(d, state)` gives, rounded to odd.
  template <class Compute>
  void to_odd(Slot d, Compute compute) {
    compute(t_, fp_slot(Rounding::kNegInf, false));
    compute(u_, fp_slot(Rounding::kPosInf, false));
    e_.b.sel_cmp(t_, kZeroSlot, kOneSlot, t_, u_, kEqual64);
    compute(u_, fp_slot(Rounding::kZero, false));
    e_.b.or64(d, u_, t_);
  }

 private:
  Emitter& e_;
  I i_;
  Slot t_, u_;
};

void arithmetic(Emitter& e, I i) {
  const Type t = i.type();
  Bfloats f(e, i);
  Slot s[3] = {kZeroSlot, kZeroSlot, kZeroSlot}, wide[3];
  const size_t count = i.operands.size() - 1;
  for (size_t k = 0; k < count; ++k) s[k] = e.src(i.operands[k + 1], t);
  for (Slot& w : wide) w = e.temp();
  const Slot results[2] = {e.temp(), e.temp()};
  const Rounding mode = i.base == "fma" ? Emitter::rounding(i) : Rounding::kTieEven;
  for (int half = 0; half < (t.is_packed ? 2 : 1); ++half) {
    for (size_t k = 0; k < count; ++k) f.widen(wide[k], s[k], half);
    const Slot d = results[half];
    if (i.base == "min" || i.base == "max") {
      const bool is_min = i.base == "min";
      const FpMinMax kind = i.has("NaN") ? (is_min ? FpMinMax::kMin : FpMinMax::kMax)
                            : is_min     ? FpMinMax::kMinimumNumber
                                         : FpMinMax::kMaximumNumber;
      const auto compute = [&](Slot to, Slot x, Slot y) {
        e.fp(Op::fminmax, Emitter::kExact, to, x, y, 0,
             static_cast<uint8_t>(kF32 | static_cast<int>(kind) << 2));
      };
      if (i.has("xorsign"))
        min_max_of_sizes(e, d, wide[0], wide[1], kSign << 16, kSingleNan, compute);
      else
        compute(d, wide[0], wide[1]);
    } else {
      const auto compute = [&](Slot to, Slot state) {
        if (i.base == "fma")
          e.fp(Op::fma32, state, to, wide[0], wide[1], wide[2]);
        else
          e.fp(i.base == "add"   ? Op::fadd32
               : i.base == "sub" ? Op::fsub32
                                 : Op::fmul32,
               state, to, wide[0], wide[1]);
      };
      // In one direction it may be rounded twice.
      if (mode == Rounding::kTieEven)
        f.to_odd(d, compute);
      else
        compute(d, fp_slot(mode, false));
    }
    f.narrow(d, d, mode);
  }
  if (t.is_packed) e.b.add_lsl64(results[0], results[0], results[1], 16);
  e.b.mov(e.dst(i.operands[0]), results[0]);
}

void sign(Emitter& e, I i) {
  const Type t = i.type();
  const Slot s = e.src(i.operands[1], t);
  const uint64_t signs = t.is_packed ? kSign << 16 | kSign : kSign;
  if (i.base == "neg")
    e.b.xori64(e.dst(i.operands[0]), s, signs);
  else
    e.b.andi64(e.dst(i.operands[0]), s, signs ^ ones(t.bits));
}

// Flushed, or within what is finite, where the instruction says so.
Slot prepared(Emitter& e, I i, Slot single) {
  if (!i.has("ftz") && !i.has("satfinite")) return single;
  const Slot s = e.temp();
  if (i.has("ftz"))
    e.fp(Op::fmul32, e.state(i), s, single, e.konst(0x3f800000));
  else
    clamp_single(e, s, single, kMostSingle);
  return s;
}

void from_single(Emitter& e, I i) {
  Bfloats f(e, i);
  const Slot s = prepared(e, i, e.src(i.operands[1], i.types[1])), d = e.temp();
  f.narrow(d, s, Emitter::rounding(i));
  e.b.mov(e.dst(i.operands[0]), d);
}

// d, a, b: a is the upper half.
void pair_from_singles(Emitter& e, I i) {
  Bfloats f(e, i);
  const Slot a = prepared(e, i, e.src(i.operands[1], i.types[1])),
             b = prepared(e, i, e.src(i.operands[2], i.types[1]));
  const Slot high = e.temp(), low = e.temp();
  f.narrow(high, a, Emitter::rounding(i));
  f.narrow(low, b, Emitter::rounding(i));
  e.b.add_lsl64(e.dst(i.operands[0]), low, high, 16);
}

constexpr uint8_t conversion(FpFormat from, FpFormat to) {
  return static_cast<uint8_t>(static_cast<int>(from) | static_cast<int>(to) << 2);
}

void from_half(Emitter& e, I i) {
  Bfloats f(e, i);
  const Slot d = e.temp();
  e.fp(Op::fconvert, Emitter::kExact, d, e.src(i.operands[1], i.types[1]), 0, 0,
       conversion(FpFormat::kF16, FpFormat::kF32));
  f.narrow(d, d, Emitter::rounding(i));
  e.b.mov(e.dst(i.operands[0]), d);
}

void from_double(Emitter& e, I i) {
  Bfloats f(e, i);
  const Slot s = e.src(i.operands[1], i.types[1]), d = e.temp();
  f.to_odd(d, [&](Slot to, Slot state) {
    e.fp(Op::fconvert, state, to, s, 0, 0, conversion(FpFormat::kF64, FpFormat::kF32));
  });
  f.narrow(d, d, Emitter::rounding(i));
  e.b.mov(e.dst(i.operands[0]), d);
}

// To f16 and f64; every single that is one is a double.
void to_float(Emitter& e, I i) {
  const Slot s = e.src(i.operands[1], i.types[1]), wide = e.temp();
  e.b.lsli64(wide, s, 16);
  e.fp(Op::fconvert, e.state(i), e.dst(i.operands[0]), wide, 0, 0,
       conversion(FpFormat::kF32, i.types[0].bits == 16 ? FpFormat::kF16 : FpFormat::kF64));
}

void to_single(Emitter& e, I i) {
  const Slot s = e.src(i.operands[1], i.types[1]), wide = e.temp();
  e.b.lsli64(wide, s, 16);
  // NaNs become canonical.
  e.fp(Op::fmul32, e.state(i), e.dst(i.operands[0]), wide, e.konst(0x3f800000));
}

// Whole numbers: of eight bits at most, or such already.
void to_integral(Emitter& e, I i) {
  const Slot s = e.src(i.operands[1], i.types[1]);
  const FpRounding mode = i.has("rni")   ? FpRounding::kNearestEven
                          : i.has("rzi") ? FpRounding::kZero
                          : i.has("rmi") ? FpRounding::kMinusInf
                                         : FpRounding::kPlusInf;
  Bfloats f(e, i);
  const Slot d = e.temp();
  e.b.lsli64(d, s, 16);
  e.fp(Op::fround, Emitter::kExact, d, d, 0, 0,
       static_cast<uint8_t>(kF32 | static_cast<int>(mode) << 2));
  f.narrow(d, d, Rounding::kZero);
  e.b.mov(e.dst(i.operands[0]), d);
}

void copy(Emitter& e, I i) { e.b.mov(e.dst(i.operands[0]), e.src(i.operands[1], i.types[1])); }

void from_integer(Emitter& e, I i) {
  const Type from = i.types[1];
  Bfloats f(e, i);
  const Slot s = from.is_signed() ? e.src_signed(i.operands[1], from) : e.src(i.operands[1], from);
  const Slot single = e.temp(), d = e.temp();
  f.to_odd(single, [&](Slot to, Slot state) {
    e.fp(Op::i2f, state, to, s, 0, 0, i2f_aux(FpFormat::kF32, from.is_signed(), from.bits == 64));
  });
  f.narrow(d, single, Emitter::rounding(i));
  e.b.mov(e.dst(i.operands[0]), d);
}

}  // namespace

#define GPUSIM_PTX_BF ".bf16|.bf16x2"
const RowList& bfloat_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"add {rn} " GPUSIM_PTX_BF, "d0 s0 s0", kArithmetic, arithmetic},
      {"sub {rn} " GPUSIM_PTX_BF, "d0 s0 s0", kArithmetic, arithmetic},
      {"mul {rn} " GPUSIM_PTX_BF, "d0 s0 s0", kArithmetic, arithmetic},
      {"fma (rn|rz|rm|rp) {relu} " GPUSIM_PTX_BF, "d0 s0 s0 s0", kArithmetic, arithmetic},
      {"min {NaN} " GPUSIM_PTX_BF, "d0 s0 s0", kArithmetic, arithmetic},
      {"max {NaN} " GPUSIM_PTX_BF, "d0 s0 s0", kArithmetic, arithmetic},
      {"min {NaN} (xorsign) (abs) " GPUSIM_PTX_BF, "d0 s0 s0", kArithmetic, arithmetic},
      {"max {NaN} (xorsign) (abs) " GPUSIM_PTX_BF, "d0 s0 s0", kArithmetic, arithmetic},
      {"neg " GPUSIM_PTX_BF, "d0 s0", kArithmetic, sign},
      {"abs " GPUSIM_PTX_BF, "d0 s0", kArithmetic, sign},
      {"cvt (rn|rz) {relu} {satfinite} .bf16 .f32", "d0 s1", kArithmetic, from_single},
      {"cvt (rn|rz|rm|rp) {ftz} .bf16 .f32", "d0 s1", kArithmetic, from_single},
      {"cvt (rn|rz) {relu} {satfinite} .bf16x2 .f32", "d0 s1 s1", kArithmetic, pair_from_singles},
      {"cvt {rn|rz|rm|rp} .bf16 .f16", "d0 s1", kArithmetic, from_half},
      {"cvt (rn|rz|rm|rp) .bf16 .f64", "d0 s1", kArithmetic, from_double},
      {"cvt {rn|rz|rm|rp} {ftz} .f32 .bf16", "d0 s1", kArithmetic, to_single},
      {"cvt {rn|rz|rm|rp} .f16|.f64 .bf16", "d0 s1", kArithmetic, to_float},
      {"cvt (rni|rzi|rmi|rpi) .bf16 .bf16", "d0 s1", kArithmetic, to_integral},
      {"cvt .bf16 .bf16", "d0 s1", kArithmetic, copy},
      {"cvt (rn|rz|rm|rp) .bf16 .u16|.u32|.u64|.s16|.s32|.s64", "d0 s1", kArithmetic, from_integer},
  };
  return rows;
}

}  // namespace gpusim::ptx
