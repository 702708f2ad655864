#include "tests/differential/backends/uop_fields.h"

#include <bit>

#include "device_sim/uir/compare.h"
#include "device_sim/uir/fp_aux.h"
#include "device_sim/uir/helpers.h"

namespace gpusim::difftest {
namespace {

uint64_t ones(uint32_t n) { return n == 0 ? 0 : ~uint64_t{0} >> (64 - n); }

uint64_t double_bits(Rng& rng) {
  constexpr double kSome[] = {0.0, 1.0, -1.0, 0.5, 3.0, 1e10, 1e-10, 1.0 / 3, 2147483648.0, 1e300};
  constexpr uint64_t kSpecial[] = {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
                                   0x7ff0000000000001, 0xfff8000000001234, 0x8000000000000000,
                                   0x0000000000000001, 0x000fffffffffffff, 0x0010000000000000,
                                   0x7fefffffffffffff, 0x3ff0000000000001, 0x43e0000000000000};
  switch (rng.below(4)) {
    case 0: return rng.of(kSpecial);
    case 1: return std::bit_cast<uint64_t>(rng.of(kSome));
    case 2: return (rng.next() & 0x800fffffffffffff) | uint64_t{1000 + rng.below(60)} << 52;
    default: return rng.next();
  }
}

uint64_t float_bits(Rng& rng) {
  constexpr uint32_t kSpecial[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                   0xff800000, 0x7fc00000, 0x7f800001, 0x00000001, 0x007fffff,
                                   0x00800000, 0x7f7fffff, 0x4f000000, 0x3f000000, 0x40400000};
  switch (rng.below(3)) {
    case 0: return rng.of(kSpecial);
    case 1: return (rng.next() & 0x807fffff) | uint64_t{112 + rng.below(30)} << 23;
    default: return rng.next() & 0xffffffff;
  }
}

uint64_t half_bits(Rng& rng) {
  constexpr uint16_t kSpecial[] = {0, 0x8000, 0x3c00, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 1, 0x3ff, 0x400, 0x7bff};
  return rng.coin() ? rng.of(kSpecial) : rng.next() & 0xffff;
}

uint8_t with_kind(uint32_t format, uint32_t kind) { return static_cast<uint8_t>(format | kind << 2); }

uint8_t random_int_conversion(uint32_t format, Rng& rng, bool rounds, bool is_64bit) {
  const auto f = static_cast<FpFormat>(format);
  const bool is_signed = rng.coin();
  if (!rounds) return i2f_aux(f, is_signed, is_64bit);
  return f2i_aux(f, static_cast<FpRounding>(rng.below(5)), is_signed, is_64bit);
}

void random_helper1(Uop& u, Rng& rng) {
  const auto helper = rng.pick({Helper1::vclz, Helper1::vcls, Helper1::vrbit, Helper1::vrev,
                                Helper1::vsrshr, Helper1::vurshr, Helper1::vurecpe,
                                Helper1::vursqrte, Helper1::aes_mix, Helper1::popcount,
                                Helper1::find_leading});
  u.e = helper_number(helper);
  u.aux = static_cast<uint8_t>(rng.below(3));
  if (helper == Helper1::vrev) u.imm = uint64_t{16} << (u.aux + rng.below(3 - u.aux));
  if (helper == Helper1::vsrshr || helper == Helper1::vurshr) {
    u.aux = static_cast<uint8_t>(rng.below(4));
    u.imm = 1 + rng.below(8u << u.aux);
  }
  if (helper == Helper1::aes_mix) u.imm = rng.below(2);
  if (helper == Helper1::find_leading) u.imm = rng.below(8);
}

void random_helper2(Uop& u, Rng& rng) {
  const auto helper = rng.pick({Helper2::vhadd, Helper2::vshift, Helper2::vpmul, Helper2::vpmull,
                                Helper2::pmull_low, Helper2::pmull_high, Helper2::crc32,
                                Helper2::crc32c, Helper2::aes_round, Helper2::bit_mask});
  u.e = helper_number(helper);
  u.aux = static_cast<uint8_t>(rng.below(3));
  switch (helper) {
    case Helper2::vhadd: u.imm = rng.below(8); break;
    case Helper2::vshift: u.aux = static_cast<uint8_t>(rng.below(4)); u.imm = rng.below(4); break;
    case Helper2::bit_mask:
    case Helper2::vpmull: u.imm = rng.below(2); break;
    case Helper2::aes_round: u.imm = rng.below(4); break;
    case Helper2::crc32:
    case Helper2::crc32c: u.imm = uint64_t{1} << rng.below(4); break;
    default: break;
  }
}

void random_helper3(Uop& u, Rng& rng) {
  const auto helper = rng.pick({Helper3::vtable, Helper3::bfdot, Helper3::sha1_rounds,
                                Helper3::sha256_e, Helper3::sha256_a, Helper3::sm3_tt,
                                Helper3::sm4_rounds, Helper3::extract_field,
                                Helper3::insert_field, Helper3::funnel_shift,
                                Helper3::permute_bytes, Helper3::any_logic, Helper3::dot_bytes,
                                Helper3::dot_halves});
  u.e = helper_number(helper);
  switch (helper) {
    case Helper3::vtable: u.imm = 16 * rng.below(4); break;
    case Helper3::sha1_rounds: u.imm = rng.below(3); break;
    case Helper3::sm3_tt:
    case Helper3::extract_field:
    case Helper3::insert_field:
    case Helper3::funnel_shift:
    case Helper3::dot_bytes: u.imm = rng.below(4); break;
    case Helper3::permute_bytes: u.imm = rng.below(7); break;
    case Helper3::any_logic: u.imm = rng.below(256); break;
    case Helper3::dot_halves: u.imm = rng.below(8); break;
    case Helper3::sm4_rounds: u.imm = rng.below(2); break;
    default: break;
  }
}

uint64_t fp_helper_imm(uint16_t number, uint64_t at_16, uint64_t at_24 = 0) {
  return number | at_16 << 16 | at_24 << 24;
}

void random_fp_helper1(Uop& u, Rng& rng) {
  const auto helper =
      rng.pick({FpHelper1::each_fround, FpHelper1::each_fround_n, FpHelper1::each_f2i,
                FpHelper1::each_i2f, FpHelper1::each_fmisc1, FpHelper1::fwiden, FpHelper1::sqabs,
                FpHelper1::sqneg, FpHelper1::sqshlu});
  const uint16_t number = helper_number(helper);
  const uint32_t format = rng.below(3), bits = 16u << format;
  u.aux = static_cast<uint8_t>(format);
  u.imm = number;
  switch (helper) {
    case FpHelper1::each_fround: u.imm = fp_helper_imm(number, with_kind(format, rng.below(7))); break;
    case FpHelper1::each_fround_n:
      u.aux = static_cast<uint8_t>(1 + rng.below(2));
      u.imm = fp_helper_imm(number, with_kind(u.aux, rng.pick({3u, 5u})), rng.pick({32, 64}));
      break;
    case FpHelper1::each_f2i:
      u.imm = fp_helper_imm(number, random_int_conversion(format, rng, true, format == 2),
                            rng.coin() ? 0 : rng.below(bits + 1));
      break;
    case FpHelper1::each_i2f:
      u.imm = fp_helper_imm(number, random_int_conversion(format, rng, false, format == 2),
                            rng.coin() ? 0 : rng.below(bits + 1));
      break;
    case FpHelper1::each_fmisc1:
      u.imm = fp_helper_imm(number, with_kind(format, rng.pick({0u, 1u, 3u})));
      break;
    case FpHelper1::fwiden:
      u.aux = static_cast<uint8_t>(rng.below(2));
      u.imm = fp_helper_imm(number, 0, rng.below(2));
      break;
    case FpHelper1::sqshlu:
      u.aux = static_cast<uint8_t>(rng.below(4));
      u.imm = fp_helper_imm(number, rng.below(8u << u.aux));
      break;
    default: u.aux = static_cast<uint8_t>(rng.below(4)); break;
  }
}

void random_fp_helper2(Uop& u, Rng& rng) {
  const auto helper =
      rng.pick({FpHelper2::each_fmisc2, FpHelper2::each_fminmax, FpHelper2::each_fcompare,
                FpHelper2::fnarrow, FpHelper2::sqadd, FpHelper2::uqadd, FpHelper2::sqsub,
                FpHelper2::uqsub, FpHelper2::suqadd, FpHelper2::usqadd, FpHelper2::sqshl,
                FpHelper2::uqshl, FpHelper2::sqdmulh, FpHelper2::sqdmull, FpHelper2::qshrn,
                FpHelper2::bfcvt});
  const uint16_t number = helper_number(helper);
  u.imm = number;
  u.aux = static_cast<uint8_t>(rng.below(3));
  switch (helper) {
    case FpHelper2::each_fmisc2: u.imm = fp_helper_imm(number, with_kind(u.aux, rng.below(8))); break;
    case FpHelper2::each_fminmax: u.imm = fp_helper_imm(number, with_kind(u.aux, rng.below(4))); break;
    case FpHelper2::each_fcompare: u.imm = fp_helper_imm(number, rng.below(5)); break;
    case FpHelper2::fnarrow:
      u.aux = static_cast<uint8_t>(rng.below(2));
      u.imm = fp_helper_imm(number, 0, u.aux == 1 ? rng.below(2) : 0);
      break;
    case FpHelper2::sqdmulh:
    case FpHelper2::sqdmull:
      u.aux = static_cast<uint8_t>(1 + rng.below(2));
      u.imm = fp_helper_imm(number, rng.below(2));
      break;
    case FpHelper2::sqshl:
    case FpHelper2::uqshl:
      u.aux = static_cast<uint8_t>(rng.below(4));
      u.imm = fp_helper_imm(number, rng.below(2));
      break;
    case FpHelper2::qshrn:
      u.imm = fp_helper_imm(number, rng.below((8u << u.aux) + 1), rng.below(8));
      break;
    default: u.aux = static_cast<uint8_t>(rng.below(4)); break;
  }
}

void random_fp_helper3(Uop& u, Rng& rng) {
  const auto helper =
      rng.pick({FpHelper3::each_fmisc3, FpHelper3::fmlal, FpHelper3::sqrdmlah});
  const uint16_t number = helper_number(helper);
  u.aux = static_cast<uint8_t>(rng.below(3));
  switch (helper) {
    case FpHelper3::each_fmisc3: u.imm = fp_helper_imm(number, u.aux); break;
    case FpHelper3::fmlal: u.imm = fp_helper_imm(number, rng.below(4)); break;
    case FpHelper3::sqrdmlah:
      u.aux = static_cast<uint8_t>(1 + rng.below(2));
      u.imm = fp_helper_imm(number, rng.below(2));
      break;
  }
}

// Registers that groups of several can begin at, most often.
uint64_t random_vector(Rng& rng) {
  vector::Insn u{.op = static_cast<VectorOp>(rng.below(kVectorOpCount))};
  const uint32_t group = 1u << rng.below(4);
  const auto reg = [&] { return static_cast<uint8_t>(rng.below(32) & ~(group - 1)); };
  u.d = reg();
  u.a = reg();
  u.b = reg();
  u.masked = rng.coin();
  u.source = static_cast<uint8_t>(rng.below(4));
  u.fields = static_cast<uint8_t>(rng.coin() ? 1 : 1 + rng.below(8));
  u.log_size = static_cast<uint8_t>(rng.below(4));
  return u.pack();
}

// A mask of `n` ones and how far the field is shifted, within `bits`.
void random_field(Uop& u, Rng& rng, uint32_t bits, bool in_place) {
  u.aux = static_cast<uint8_t>(rng.coin() ? rng.below(bits) : 0);
  const uint64_t mask = ones(1 + rng.below(bits - u.aux));
  u.imm = in_place ? mask << u.aux : mask;
}

}  // namespace

uint64_t interesting_integer(Rng& rng) {
  constexpr uint64_t kSome[] = {0, 1, 2, 7, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff,
                                0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
                                0x8000000000000000, ~uint64_t{0}, 0xffffffff80000000};
  switch (rng.below(5)) {
    case 0: return rng.of(kSome);
    case 1: return rng.of(kSome) + rng.below(5) - 2;
    case 2: return rng.below(256);
    case 3: return rng.next() >> rng.below(64);
    default: return rng.next();
  }
}

uint64_t interesting_float(Rng& rng) {
  switch (rng.below(5)) {
    case 0:
    case 1: return double_bits(rng);
    case 2: return float_bits(rng);
    case 3: return float_bits(rng) | float_bits(rng) << 32;
    default:
      return half_bits(rng) | half_bits(rng) << 16 | half_bits(rng) << 32 | half_bits(rng) << 48;
  }
}

Op random_value_op(Traits any, Rng& rng) {
  for (;;) {
    const auto op = static_cast<Op>(rng.below(kOpCount));
    if (op_info(op).shape <= Shape::kGABC && (op_info(op).traits & any) != 0) return op;
  }
}

void random_fields(Uop& u, Slot fp_state, Rng& rng) {
  const uint32_t aux4 = rng.below(4), width = 8u << aux4;
  if (shape_info(op_info(u.op).shape).fp_state) u.e = fp_state;
  switch (u.op) {
    case Op::konst: case Op::addi64: case Op::addi32: case Op::addiw: case Op::ori64: case Op::ori32:
    case Op::xori64: case Op::xori32:
      u.imm = interesting_integer(rng);
      break;
    case Op::andi64:
      u.imm = rng.coin() ? ones(1 + rng.below(64)) : interesting_integer(rng);
      break;
    case Op::add_lsl64: case Op::sub_lsl64: case Op::lsli64: case Op::lsri64: case Op::asri64:
    case Op::rori64:
      u.imm = rng.coin() ? rng.below(5) : rng.below(64);
      break;
    case Op::add_lsl32: case Op::sub_lsl32: case Op::lsli32: case Op::lsri32: case Op::asri32:
    case Op::rori32:
      u.imm = rng.coin() ? rng.below(5) : rng.below(32);
      break;
    case Op::add_sxtw64: case Op::add_uxtw64: u.imm = rng.below(5); break;
    case Op::ubfx: case Op::bfxil64: random_field(u, rng, 64, false); break;
    case Op::bfxil32: random_field(u, rng, 32, false); break;
    case Op::ubfiz: case Op::bfi64: random_field(u, rng, 64, true); break;
    case Op::bfi32: random_field(u, rng, 32, true); break;
    case Op::sbf64: case Op::sbf32:
      u.imm = rng.below(64);
      u.aux = static_cast<uint8_t>(rng.coin() ? u.imm : rng.below(64));
      break;
    case Op::extr64: u.imm = 1 + rng.below(63); break;
    case Op::extr32: u.imm = 1 + rng.below(31); break;
    case Op::cset: case Op::csel64: case Op::csel32: case Op::csinc64: case Op::csinc32:
    case Op::csinv64: case Op::csinv32: case Op::csneg64: case Op::csneg32:
      u.set_imm16(static_cast<uint16_t>(rng.next()));
      break;
    case Op::sel_cmp: case Op::sel_cmpi:
      u.aux = CompareKind{static_cast<CompareRelation>(rng.below(3)), rng.coin(), rng.coin()}.pack();
      u.imm = interesting_integer(rng);
      break;
    case Op::fcmp: u.aux = with_kind(rng.below(3), rng.below(2)); break;
    case Op::fminmax: u.aux = with_kind(rng.below(3), rng.below(4)); break;
    case Op::fround: u.aux = with_kind(rng.below(3), rng.below(7)); break;
    case Op::fconvert: {
      const uint32_t from = rng.below(3), to = (from + 1 + rng.below(2)) % 3;
      const uint32_t odd = from == 2 && to == 1 ? rng.below(2) : 0;
      u.aux = static_cast<uint8_t>(from | to << 2 | odd << 4);
      break;
    }
    case Op::f2i: case Op::i2f: {
      const bool is_64bit = rng.coin();
      u.aux = random_int_conversion(rng.below(3), rng, u.op == Op::f2i, is_64bit);
      u.imm = rng.coin() ? 0 : rng.below(is_64bit ? 65 : 33);
      break;
    }
    case Op::fmisc1: {
      const auto kind = rng.below(5);
      u.aux = with_kind(kind == 4 ? 2 : rng.below(3), kind);
      break;
    }
    case Op::fmisc2: u.aux = with_kind(rng.below(3), rng.below(8)); break;
    case Op::fmisc3: u.aux = static_cast<uint8_t>(rng.below(3)); break;
    case Op::vshl: u.aux = static_cast<uint8_t>(aux4); u.imm = rng.below(width); break;
    case Op::vushr: case Op::vsshr:
      u.aux = static_cast<uint8_t>(aux4);
      u.imm = 1 + rng.below(width);
      break;
    case Op::vdup: case Op::vins: case Op::vumov: case Op::vsmov:
      u.aux = static_cast<uint8_t>(aux4);
      u.imm = rng.below(64 / width);
      break;
    case Op::vext: u.imm = 1 + rng.below(7); break;
    case Op::vzip1: case Op::vzip2: case Op::vuzp1: case Op::vuzp2: case Op::vxtn:
      u.aux = static_cast<uint8_t>(rng.below(3));
      break;
    case Op::vuxtl: case Op::vsxtl:
      u.aux = static_cast<uint8_t>(rng.below(3));
      u.imm = rng.below(2);
      break;
    case Op::vector: u.imm = random_vector(rng); break;
    case Op::help1: random_helper1(u, rng); break;
    case Op::help2: random_helper2(u, rng); break;
    case Op::help3: random_helper3(u, rng); break;
    case Op::fhelp1: random_fp_helper1(u, rng); break;
    case Op::fhelp2: random_fp_helper2(u, rng); break;
    case Op::fhelp3: random_fp_helper3(u, rng); break;
    default:
      // The other vector rows take elements of any width; the rest has no immediates.
      if (u.op >= Op::vadd && u.op <= Op::vaddp) u.aux = static_cast<uint8_t>(aux4);
      break;
  }
}

}  // namespace gpusim::difftest
