// Whether the fields of a micro-op hold what its row, and a helper's row, allow (fields.h).
#pragma once
#include <bit>
#include <cstdint>
#include <iterator>

#include "device_sim/uir/compare.h"
#include "device_sim/uir/fp_aux.h"
#include "device_sim/uir/journal.h"
#include "device_sim/uir/uop.h"
#include "device_sim/uir/warp.h"

namespace gpusim {

#define GPUSIM_HELPER1(name, fields)
#define GPUSIM_HELPER2(name, fields)
#define GPUSIM_HELPER3(name, fields)
#define GPUSIM_FHELPER1(name, fields)
#define GPUSIM_FHELPER2(name, fields)
#define GPUSIM_FHELPER3(name, fields)
#define GPUSIM_KIND(name, fields) Fields::fields,

// By a helper's number.
#undef GPUSIM_HELPER1
#define GPUSIM_HELPER1 GPUSIM_KIND
inline constexpr Fields kHelper1Fields[] = {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_HELPER1
#define GPUSIM_HELPER1(name, fields)
#undef GPUSIM_HELPER2
#define GPUSIM_HELPER2 GPUSIM_KIND
inline constexpr Fields kHelper2Fields[] = {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_HELPER2
#define GPUSIM_HELPER2(name, fields)
#undef GPUSIM_HELPER3
#define GPUSIM_HELPER3 GPUSIM_KIND
inline constexpr Fields kHelper3Fields[] = {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_HELPER3
#define GPUSIM_HELPER3(name, fields)
#undef GPUSIM_FHELPER1
#define GPUSIM_FHELPER1 GPUSIM_KIND
inline constexpr Fields kFpHelper1Fields[] = {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_FHELPER1
#define GPUSIM_FHELPER1(name, fields)
#undef GPUSIM_FHELPER2
#define GPUSIM_FHELPER2 GPUSIM_KIND
inline constexpr Fields kFpHelper2Fields[] = {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_FHELPER2
#define GPUSIM_FHELPER2(name, fields)
#undef GPUSIM_FHELPER3
#define GPUSIM_FHELPER3 GPUSIM_KIND
inline constexpr Fields kFpHelper3Fields[] = {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_HELPER1
#undef GPUSIM_HELPER2
#undef GPUSIM_HELPER3
#undef GPUSIM_FHELPER1
#undef GPUSIM_FHELPER2
#undef GPUSIM_FHELPER3
#undef GPUSIM_KIND

namespace fields {

constexpr bool holds_mask(uint64_t mask, uint32_t bits) {
  return bits >= 64 || mask >> bits == 0;
}
constexpr bool is_format(uint32_t f) { return f <= static_cast<uint32_t>(FpFormat::kF64); }
// A format and a kind of operation above it.
template <class Kind>
constexpr bool is_operation(uint32_t aux, Kind last) {
  return is_format(aux & 3) && aux >> 2 <= static_cast<uint32_t>(last);
}
constexpr bool is_conversion(uint32_t aux) {
  const uint32_t from = aux & 3, to = aux >> 2 & 3;
  constexpr uint32_t kOddToSingle = static_cast<uint32_t>(FpFormat::kF64) |
                                    static_cast<uint32_t>(FpFormat::kF32) << 2 | 1 << 4;
  return is_format(from) && is_format(to) && from != to && (aux < 16 || aux == kOddToSingle);
}
constexpr bool is_int_conversion(uint32_t aux, FpRounding last) {
  return is_format(aux & 3) && (aux >> 2 & 7) <= static_cast<uint32_t>(last) && aux >> 7 == 0;
}

// One of the kinds but kByHelper.
constexpr bool are_valid(Fields kind, const Uop& u) {
  const uint64_t imm = u.imm;
  const uint32_t aux = u.aux;
  const uint32_t width = 8u << (aux & 3);
  // Parameters of fhelpN: nothing is left above them, and what is not used is zero.
  const uint32_t low = imm >> 16 & 0xff, high = imm >> 24 & 0xff;
  const bool is_fp_imm = imm >> 32 == 0;
  const auto only_low = [&] { return is_fp_imm && high == 0; };
  const auto same_format = [&] { return is_format(aux) && (low & 3) == aux; };
  const uint32_t float_bits = 16u << (aux & 3);
  switch (kind) {
    case Fields::kNone:
    case Fields::kImm:
    case Fields::kTruthTable:
    case Fields::kSmallImm: return true;
    case Fields::kBit: return u.imm16() < 64;
    case Fields::kComparison: return CompareKind::is_valid(u.aux);
    case Fields::kByHelper: return false;
    case Fields::kShift: return imm < 64;
    case Fields::kShift32: return imm < 32;
    case Fields::kExtract: return aux < 64 && holds_mask(imm, 64 - aux);
    case Fields::kExtract32: return aux < 32 && holds_mask(imm, 32 - aux);
    case Fields::kInsert: return aux < 64 && (imm >> aux) << aux == imm;
    case Fields::kInsert32: return aux < 32 && (imm >> aux) << aux == imm && imm >> 32 == 0;
    case Fields::kSignedField: return imm < 64 && aux < 64;
    case Fields::kFunnel: return imm > 0 && imm < 64;
    case Fields::kFunnel32: return imm > 0 && imm < 32;
    case Fields::kVector: return vector::Insn::is_valid(imm);
    case Fields::kAccessSize: return aux < 4;
    case Fields::kFloatWord: return is_float_word(aux);
    case Fields::kWarp: {
      if (aux > static_cast<uint32_t>(kLastWarpOp)) return false;
      const WarpFields f = WarpFields::unpack(imm);
      return f.pack() == imm && f.is_valid(static_cast<WarpOp>(aux));
    }
    case Fields::kWarpSync: {
      const WarpFields f = WarpFields::unpack(imm);
      return f.pack() == imm && f.is_valid(WarpOp::kElect);
    }
    case Fields::kCtaSync:
    case Fields::kCtaReduce: {
      const BarrierFields f = BarrierFields::unpack(imm);
      if (f.pack() != imm || !f.is_valid()) return false;
      if (kind == Fields::kCtaReduce) return aux <= static_cast<uint32_t>(CtaReduce::kOr);
      if (is_of_cluster(aux))
        return aux <= static_cast<uint32_t>(CtaSync::kClusterWait) && imm == BarrierFields{}.pack();
      const bool arrives = aux == static_cast<uint32_t>(CtaSync::kArrive);
      return !f.negated && (!arrives || f.threads_in_slot || f.threads != 0);
    }
    case Fields::kAlignment: return std::has_single_bit(u.imm16());
    case Fields::kNote:
      return aux >> 2 <= static_cast<uint32_t>(AccessKind::kAtomic) &&
             (aux == kNoteBlock || aux == kNoteStamp || aux == kNoteClock || imm < 64 ||
              (aux & 3) == 0);
    case Fields::kFpCompare: return is_format(aux & 3) && aux < 8;
    case Fields::kFpMinMax: return is_operation(aux, FpMinMax::kMaximumNumber);
    case Fields::kFpRound: return is_operation(aux, FpRounding::kFpcrExact);
    case Fields::kFpConvert: return is_conversion(aux);
    case Fields::kFpToInt:
      return is_int_conversion(aux, FpRounding::kFpcrExact) && imm <= (aux & 64 ? 64u : 32u);
    case Fields::kFpFromInt:
      return is_int_conversion(aux, FpRounding{0}) && imm <= (aux & 64 ? 64u : 32u);
    case Fields::kFpMisc1:
      return is_operation(aux, FpMisc1::kJscvt) &&
             (aux >> 2 != static_cast<uint32_t>(FpMisc1::kJscvt) ||
              (aux & 3) == static_cast<uint32_t>(FpFormat::kF64));
    case Fields::kFpMisc2: return is_operation(aux, FpMisc2::kAbsDiff);
    case Fields::kFpMisc3: return is_operation(aux, FpMisc3::kMulAdd);
    case Fields::kFpFormat: return is_format(aux);
    case Fields::kElements: return aux < 4;
    case Fields::kSmallElements: return aux < 3;
    case Fields::kElementShift: return aux < 4 && imm < width;
    case Fields::kElementShiftRight: return aux < 4 && imm > 0 && imm <= width;
    case Fields::kElementIndex: return aux < 4 && imm < 64 / width;
    case Fields::kByteIndex: return imm > 0 && imm < 8;
    case Fields::kHalf: return aux < 3 && imm < 2;
    case Fields::kFlag: return imm < 2;
    case Fields::kTwoFlags: return imm < 4;
    case Fields::kThreeFlags: return imm < 8;
    case Fields::kPermutation: return imm < 7;
    case Fields::kTruthTable3: return imm < 256;
    case Fields::kSha1Function: return imm < 3;
    case Fields::kHalving: return aux < 3 && imm < 8;
    case Fields::kShiftKind: return aux < 4 && imm < 4;
    case Fields::kReversal:
      return aux < 3 && imm >= 2 * width && imm <= 64 && std::has_single_bit(imm);
    case Fields::kTableStart: return imm <= 48 && imm % 16 == 0;
    case Fields::kBytes: return imm <= 8 && std::has_single_bit(imm);
    case Fields::kEachRound:
      return same_format() && only_low() && is_operation(low, FpRounding::kFpcrExact);
    case Fields::kEachRoundToSize:
      return same_format() && is_fp_imm && is_operation(low, FpRounding::kFpcrExact) &&
             aux != static_cast<uint32_t>(FpFormat::kF16) && (high == 32 || high == 64);
    case Fields::kEachToInt:
      return same_format() && is_fp_imm && is_int_conversion(low, FpRounding::kFpcrExact) &&
             high <= float_bits;
    case Fields::kEachFromInt:
      return same_format() && is_fp_imm && is_int_conversion(low, FpRounding{0}) &&
             high <= float_bits;
    case Fields::kEachMisc1:
      return same_format() && only_low() && is_operation(low, FpMisc1::kSqrt);
    case Fields::kEachMisc2:
      return same_format() && only_low() && is_operation(low, FpMisc2::kAbsDiff);
    case Fields::kEachMisc3:
      return same_format() && only_low() && is_operation(low, FpMisc3::kMulAdd);
    case Fields::kEachMinMax:
      return same_format() && only_low() && is_operation(low, FpMinMax::kMaximumNumber);
    case Fields::kEachTest:
      return is_format(aux) && only_low() && low <= static_cast<uint32_t>(FpTest::kAbsGt);
    case Fields::kWiden: return aux < 2 && is_fp_imm && low == 0 && high < 2;
    case Fields::kNarrow: return aux < 2 && is_fp_imm && low == 0 && high <= aux;
    case Fields::kHalfProducts: return only_low() && low < 4;
    case Fields::kOfElements: return aux < 4 && imm >> 16 == 0;
    case Fields::kOfElementsFlag: return aux < 4 && only_low() && low < 2;
    case Fields::kProducts: return (aux == 1 || aux == 2) && only_low() && low < 2;
    case Fields::kLeftShift: return aux < 4 && only_low() && low < width;
    case Fields::kNarrowingShift: return aux < 3 && is_fp_imm && low <= width && high < 8;
    case Fields::kJumpHint: return aux <= static_cast<uint32_t>(JumpHint::kReturn);
    case Fields::kTurn: return aux <= static_cast<uint32_t>(Turn::kSignalEvent);
    case Fields::kService: return aux <= static_cast<uint32_t>(Service::kTimeAcquire);
    case Fields::kFault:
      return aux > 0 && aux <= static_cast<uint32_t>(Fault::kModifiedCode);
  }
  return false;
}

// Whether the kind takes all of imm16, or a half of it that is not aux.
constexpr bool takes_e(Fields kind) {
  switch (kind) {
    case Fields::kTruthTable:
    case Fields::kSmallImm:
    case Fields::kBit:
    case Fields::kAlignment:
    case Fields::kNote: return true;
    default: return false;
  }
}
// One byte has one meaning: where `e` is a slot or a helper's number, no immediate takes it.
constexpr bool is_e_unambiguous(const OpInfo& row) {
  const ShapeInfo shape = shape_info(row.shape);
  return !((shape.e.reads || shape.fp_state) && takes_e(row.fields));
}
static_assert([] {
  for (const OpInfo& row : kOpInfo)
    if (!is_e_unambiguous(row)) return false;
  const auto fit = [](const auto& helpers) {
    for (const Fields kind : helpers)
      if (takes_e(kind)) return false;
    return std::size(helpers) <= 256;
  };
  return fit(kHelper1Fields) && fit(kHelper2Fields) && fit(kHelper3Fields) &&
         fit(kFpHelper1Fields) && fit(kFpHelper2Fields) && fit(kFpHelper3Fields);
}());

template <size_t kCount>
constexpr bool are_valid_of_helper(const Fields (&rows)[kCount], uint64_t number, const Uop& u) {
  return number < kCount && are_valid(rows[number], u);
}

}  // namespace fields

constexpr bool has_valid_fields(const Uop& u) {
  switch (u.op) {
    case Op::help1: return fields::are_valid_of_helper(kHelper1Fields, u.e, u);
    case Op::help2: return fields::are_valid_of_helper(kHelper2Fields, u.e, u);
    case Op::help3: return fields::are_valid_of_helper(kHelper3Fields, u.e, u);
    case Op::fhelp1: return fields::are_valid_of_helper(kFpHelper1Fields, u.imm & 0xffff, u);
    case Op::fhelp2: return fields::are_valid_of_helper(kFpHelper2Fields, u.imm & 0xffff, u);
    case Op::fhelp3: return fields::are_valid_of_helper(kFpHelper3Fields, u.imm & 0xffff, u);
    default: return fields::are_valid(op_info(u.op).fields, u);
  }
}

}  // namespace gpusim
