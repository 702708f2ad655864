// What the fields of a micro-op that name no slots may hold: aux, imm16() and imm. Each row of
// uops.def and helpers.def names one of these kinds.
//
// Semantics, passes and backends rely on it: with other values they would shift by more than a
// word, loop for ever, or differ between backends. The translator emits nothing else, and module
// files are checked (check_fields.h). Fields that a kind does not mention are not looked at.
//
// Below, `width` is 8 << aux, the bits of an element. `low` and `high` are bits 16..23 and 24..31
// of imm, the parameters of fhelpN; all bits above them are zero.
#pragma once
#include <cstdint>

namespace gpusim {

enum class Fields : uint8_t {
  kNone,
  kImm,           // imm: any value
  kTruthTable,    // imm16: any value; bit f says whether flags f satisfy the condition
  kSmallImm,      // imm16: any value, a signed number
  kBit,           // imm16 < 64
  kComparison,    // aux: a CompareKind (compare.h)
  kByHelper,      // e, or the low 16 bits of imm: a helper's number; the rest as its row says
  // Words.
  kShift,         // imm < 64
  kShift32,       // imm < 32
  kExtract,       // aux < 64: shift to the right; imm: a mask of what there is then
  kExtract32,     // the same of 32 bits
  kInsert,        // aux < 64: shift to the left; imm: a mask of what there is then
  kInsert32,      // the same of 32 bits
  kSignedField,   // imm < 64: shift to the left; aux < 64: to the right
  kFunnel,        // 0 < imm < 64
  kFunnel32,      // 0 < imm < 32
  // Memory.
  kAccessSize,    // aux < 4
  kFloatWord,     // aux: FloatWord (warp.h)
  kAlignment,     // imm16: a power of two; imm: any value
  kNote,          // see journal.h
  kVector,        // imm: a vector::Insn
  // Warps and CTAs (warp.h).
  kWarp,          // aux: WarpOp, imm: its WarpFields
  kWarpSync,      // imm: WarpFields, of which only the mask is used
  kCtaSync,       // aux: CtaSync, imm: BarrierFields; who only arrives gives a count
  kCtaReduce,     // aux: CtaReduce, imm: BarrierFields
  // Floating point; aux as in fp_aux.h.
  kFpCompare,     // format | signalling << 2
  kFpMinMax,      // format | FpMinMax << 2
  kFpRound,       // format | FpRounding << 2
  kFpConvert,     // two formats | to odd << 4, of doubles to singles
  kFpToInt,       // f2i_aux(); imm: fraction bits, at most the integer's
  kFpFromInt,     // i2f_aux(); likewise
  kFpMisc1,       // format | FpMisc1 << 2; FpMisc1::kJscvt is of doubles
  kFpMisc2,       // format | FpMisc2 << 2
  kFpMisc3,       // format | FpMisc3 << 2
  kFpFormat,      // aux: FpFormat
  // Vectors.
  kElements,      // aux < 4
  kSmallElements,  // aux < 3
  kElementShift,  // aux < 4, imm < width
  kElementShiftRight,  // aux < 4, 0 < imm <= width
  kElementIndex,  // aux < 4, imm < 64 / width
  kByteIndex,     // 0 < imm < 8
  kHalf,          // aux < 3, imm < 2
  // Helpers of integers.
  kFlag,          // imm < 2
  kTwoFlags,      // imm < 4
  kThreeFlags,    // imm < 8
  kPermutation,   // imm < 7
  kTruthTable3,   // imm < 256
  kSha1Function,  // imm < 3
  kHalving,       // aux < 3, imm < 8
  kShiftKind,     // aux < 4, imm < 4
  kReversal,      // aux < 3, imm: 16, 32 or 64, at least 2 * width
  kTableStart,    // imm: 0, 16, 32 or 48
  kBytes,         // imm: 1, 2, 4 or 8
  // Helpers with a state word; aux: FpFormat of the elements. low: the aux of the scalar micro-op,
  // of the same format.
  kEachRound,
  kEachRoundToSize,  // format not half; high: 32 or 64
  kEachToInt,     // high: fraction bits, at most the element's
  kEachFromInt,   // likewise
  kEachMisc1,     // not FpMisc1::kJscvt
  kEachMisc2,
  kEachMisc3,
  kEachMinMax,
  kEachTest,      // low: FpTest
  kWiden,         // format not double; high < 2
  kNarrow,        // format not double; high < 2, to odd only to singles
  kHalfProducts,  // low < 4
  // Saturating helpers.
  kOfElements,    // aux < 4
  kOfElementsFlag,  // aux < 4, low < 2
  kProducts,      // aux 1 or 2, low < 2
  kLeftShift,     // aux < 4, low < width
  kNarrowingShift,  // aux < 3, low <= width, high < 8
  // Ends of blocks.
  kJumpHint,      // aux: JumpHint
  kTurn,          // aux: Turn
  kService,       // aux: Service
  kFault,         // aux: Fault, but not kNone
};

}  // namespace gpusim
