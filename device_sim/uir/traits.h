// What a row of uops.def says of its operation beside shape and fields: a sum of these. General code
// asks the row, so that nothing else lists micro-ops by name. A trait that is left out costs speed
// at most; one that is not true makes wrong results.
#pragma once
#include <cstdint>

namespace gpusim {

namespace traits {

using Traits = uint32_t;
inline constexpr Traits kPlain = 0;

// When the result is below 2^32: one of the conditions that the row names is enough. "A" is "the
// source a is", "I" is "imm is", and AB, AI and BI want both.
inline constexpr Traits kFits = 1u << 0, kFitsA = 1u << 1, kFitsB = 1u << 2, kFitsI = 1u << 3,
                        kFitsAB = 1u << 4, kFitsAI = 1u << 5, kFitsBI = 1u << 6;

// Lanes of 32 bits serve: whatever the sources hold (the row looks at their low halves only), for a
// result with zeros above or with its sign above; or where sources and result are such words, for
// rows that work bit by bit. simd/narrow.h says which fields forbid or allow it.
inline constexpr Traits kNarrow = 1u << 7, kNarrowIfFits = 1u << 8, kNarrowSigned = 1u << 15;
inline constexpr Traits kLow32 = kNarrow | kFits;

inline constexpr Traits kHot = 1u << 9;     // the interpreter's loop over a full row is unrolled
inline constexpr Traits kByLane = 1u << 10;  // native code calls a scalar function for each lane
inline constexpr Traits kSingle = 1u << 11;  // of floats: needs 32 bits, though the row is of words

// simd/affine.h has a rule; generated code computes it with a few scalar instructions.
inline constexpr Traits kAffine = 1u << 12, kAffineInline = kAffine | 1u << 13;

inline constexpr Traits kCommutes = 1u << 14;  // a and b may change places

// Loads and stores: the width in memory, and how what is loaded fills its slot (else with zeros). The
// shape says how the address is formed.
inline constexpr int kWidthShift = 16;
inline constexpr Traits kBits8 = 1u << kWidthShift, kBits16 = 2u << kWidthShift,
                        kBits32 = 3u << kWidthShift, kBits64 = 4u << kWidthShift,
                        kWidthMask = 7u << kWidthShift;
inline constexpr Traits kSign64 = 1u << 19, kSign32 = 1u << 20;

}  // namespace traits
using traits::Traits;

}  // namespace gpusim
