// Conversions of singles to formats that tensor cores take: f16 with limits, tf32, and pairs of
// e4m3 and e5m2, which become pairs of f16 again.
//
// NaNs are canonical: 0x7fff, 0x7fffe000 (tf32, whose lower 13 bits are zero), 0x7f.
#include "device_sim/uir/fp_aux.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Type kF32{Kind::kFloat, 32};
constexpr uint64_t kSize = 0x7fffffff, kSign = 0x80000000, kInfinity = 0x7f800000;

constexpr uint8_t conversion(FpFormat from, FpFormat to) {
  return static_cast<uint8_t>(static_cast<int>(from) | static_cast<int>(to) << 2);
}

// d = 0 where its bit `sign` is set.
void relu(Emitter& e, Slot d, uint64_t sign) {
  const BlockBuilder::Temporaries own(e.b);
  const Slot t = e.temp();
  e.b.andi64(t, d, sign);
  e.b.sel_cmpi(d, d, kZeroSlot, t, 0, kEqual64);
}

// --- f16

void to_half(Emitter& e, I i, Slot d, Slot single) {
  constexpr uint64_t kMost = 0x477fe000;  // 65504
  if (i.has("satfinite")) clamp_single(e, d, single, kMost);
  e.fp(Op::fconvert, e.state(i), d, i.has("satfinite") ? d : single, 0, 0,
       conversion(FpFormat::kF32, FpFormat::kF16));
  if (i.has("relu")) relu(e, d, 0x8000);
}

void half_from_single(Emitter& e, I i) {
  const Slot d = e.temp();
  to_half(e, i, d, e.src(i.operands[1], kF32));
  e.b.mov(e.dst(i.operands[0]), d);
}

// d, a, b: a is the upper half.
void halves_from_singles(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], kF32), b = e.src(i.operands[2], kF32);
  const Slot high = e.temp(), low = e.temp();
  to_half(e, i, high, a);
  to_half(e, i, low, b);
  e.b.add_lsl64(e.dst(i.operands[0]), low, high, 16);
}

// --- tf32: 13 bits of a single's fraction go

void tf32_from_single(Emitter& e, I i) {
  constexpr uint64_t kLost = 0x1fff, kHalf = 0x1000, kNan = 0x7fffe000, kMost = 0x7f7fe000;
  const Slot s = e.src(i.operands[1], kF32), size = e.temp(), d = e.temp();
  e.b.mov(d, s);
  if (i.has("satfinite")) clamp_single(e, d, d, kMost);
  if (i.has("rna")) {
    e.b.addi64(d, d, kHalf);
  } else if (i.has("rn")) {  // ties to even
    e.b.ubfx(size, d, 1, 13);
    e.b.add64(d, d, size);
    e.b.addi64(d, d, kHalf - 1);
  }
  e.b.andi64(d, d, 0xffffffff & ~kLost);
  e.b.andi64(size, s, kSize);
  e.b.sel_cmp(d, e.konst(kNan), d, e.konst(kInfinity), size, kBelow64);
  if (i.has("relu")) relu(e, d, kSign);
  e.b.mov(e.dst(i.operands[0]), d);
}

// --- e4m3 and e5m2

struct Small {
  int exponent_bits, fraction_bits;
  uint64_t most;  // the largest finite number, as a single

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr Small kE4m3{4, 3, 0x43e00000};  // 448
constexpr Small kE5m2{5, 2, 0x47600000};  // 57344
Small small_of(I i) { return i.has("e4m3x2") ? kE4m3 : kE5m2; }

constexpr uint64_t kSmallNan = 0x7f;

// To the nearest, ties to even; never infinite. d is not s.
void to_small(Emitter& e, I i, Slot d, Slot s) {
  const BlockBuilder::Temporaries own(e.b);
  const Small f = small_of(i);
  const Slot size = e.temp(), t = e.temp(), u = e.temp();
  e.b.andi64(size, s, kSize);
  const Slot most = e.konst(f.most);
  e.b.sel_cmp(t, most, size, most, size, kBelow64);
  // Normal numbers: bits of the fraction go, and the exponent begins elsewhere.
  const int lost = 23 - f.fraction_bits;
  e.b.ubfx(u, t, 1, static_cast<uint8_t>(lost));
  e.b.add64(u, u, t);
  e.b.addi64(u, u, (uint64_t{1} << (lost - 1)) - 1);
  e.b.lsri64(u, u, static_cast<uint64_t>(lost));
  e.b.addi64(u, u, 0 - (static_cast<uint64_t>(127 - f.bias()) << f.fraction_bits));
  // Others are a number of units: a sum that ends with them rounds as it has to.
  const int unit = 1 - f.bias() - f.fraction_bits;
  const uint64_t large = static_cast<uint64_t>(127 + 23 + unit) << 23;
  e.fp(Op::fadd32, Emitter::kExact, d, t, e.konst(large));
  e.b.addi64(d, d, 0 - large);
  const Slot least_normal = e.konst(static_cast<uint64_t>(127 + 1 - f.bias()) << 23);
  e.b.sel_cmp(d, d, u, t, least_normal, kBelow64);
  e.b.ubfx(t, s, 1, 31);
  e.b.add_lsl64(d, d, t, 7);
  e.b.sel_cmp(d, e.konst(kSmallNan), d, e.konst(kInfinity), size, kBelow64);
  if (i.has("relu")) relu(e, d, 0x80);
}

// d, a, b: a is the upper byte.
void small_from_singles(Emitter& e, I i) {
  const Slot a = e.src(i.operands[1], kF32), b = e.src(i.operands[2], kF32);
  const Slot high = e.temp(), low = e.temp();
  to_small(e, i, high, a);
  to_small(e, i, low, b);
  e.b.add_lsl64(e.dst(i.operands[0]), low, high, 8);
}

void small_from_halves(Emitter& e, I i) {
  const Slot word = e.src(i.operands[1], i.types[1]), single = e.temp();
  const Slot bytes[2] = {e.temp(), e.temp()};
  for (int half = 0; half < 2; ++half) {
    e.b.ubfx(single, word, 0xffff, static_cast<uint8_t>(16 * half));
    e.fp(Op::fconvert, Emitter::kExact, single, single, 0, 0,
         conversion(FpFormat::kF16, FpFormat::kF32));
    to_small(e, i, bytes[half], single);
  }
  e.b.add_lsl64(e.dst(i.operands[0]), bytes[0], bytes[1], 8);
}

// Every one of them is an f16. The fields of e4m3 are those of an f16 that is 2^-8 times as large.
void halves_from_small(Emitter& e, I i) {
  constexpr uint64_t k256 = 0x5c00, kHalfNan = 0x7fff, kHalfInfinity = 0x7c00;
  const bool is_e4m3 = i.has("e4m3x2");
  const Slot word = e.src(i.operands[1], i.types[1]), size = e.temp(), sign = e.temp();
  const Slot halves[2] = {e.temp(), e.temp()};
  for (int half = 0; half < 2; ++half) {
    const Slot d = halves[half];
    e.b.ubfx(size, word, 0x7f, static_cast<uint8_t>(8 * half));
    e.b.ubfx(sign, word, 1, static_cast<uint8_t>(8 * half + 7));
    e.b.lsli64(d, size, is_e4m3 ? 7 : 8);
    if (is_e4m3)
      e.fp(Op::fmisc2, Emitter::kExact, d, d, e.konst(k256), 0,
           static_cast<uint8_t>(static_cast<int>(FpFormat::kF16) | static_cast<int>(FpMisc2::kMul)
                                                                       << 2));
    e.b.add_lsl64(sign, d, sign, 15);
    if (is_e4m3)
      e.b.sel_cmpi(d, e.konst(kHalfNan), sign, size, kSmallNan, kEqual64);
    else
      e.b.sel_cmp(d, e.konst(kHalfNan), sign, e.konst(kHalfInfinity), d, kBelow64);
    if (i.has("relu")) relu(e, d, 0x8000);
  }
  e.b.add_lsl64(e.dst(i.operands[0]), halves[0], halves[1], 16);
}

}  // namespace

const RowList& narrow_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"cvt (rn|rz) (relu) {satfinite} .f16 .f32", "c0 c1", kArithmetic, half_from_single},
      {"cvt (rn|rz) (satfinite) .f16 .f32", "c0 c1", kArithmetic, half_from_single},
      {"cvt (rn|rz) {relu} {satfinite} .f16x2 .f32", "d0 s1 s1", kArithmetic, halves_from_singles},
      {"cvt (rn|rz) {relu} .tf32 .f32", "d0 s1", kArithmetic, tf32_from_single},
      {"cvt (rna) {satfinite} .tf32 .f32", "d0 s1", kArithmetic, tf32_from_single},
      {"cvt (rn) (satfinite) {relu} .e4m3x2|.e5m2x2 .f32", "d0 s1 s1", kArithmetic,
       small_from_singles},
      {"cvt (rn) (satfinite) {relu} .e4m3x2|.e5m2x2 .f16x2", "d0 s1", kArithmetic,
       small_from_halves},
      {"cvt (rn) {relu} .f16x2 .e4m3x2|.e5m2x2", "d0 s1", kArithmetic, halves_from_small},
  };
  return rows;
}

}  // namespace gpusim::ptx
