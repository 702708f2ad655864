// Atomic read-modify-write on guest memory, on the host and in CUDA code. Sizes are 1 << log2_size
// bytes; addresses are naturally aligned.
#pragma once
#include <cstdint>

#include "device_sim/core/float_sum.h"
#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

GPUSIM_HD_INLINE uint64_t size_mask(uint32_t log2_size) {
  return ~uint64_t{0} >> (64 - (8u << log2_size));
}

// aux of a row that tells more than the size.
template <Op op>
inline constexpr bool kHasFloatWord = op_info(op).fields == Fields::kFloatWord;

// The new memory value; `old` and `operand` are zero-extended from their size. `log2_size` is the
// aux of rows with a FloatWord.
template <Op op>
GPUSIM_HD_INLINE uint64_t amo_result(uint64_t old, uint64_t operand, uint32_t log2_size) {
  if constexpr (op == Op::amo_fadd) return float_sum(old, operand, log2_size);
  if constexpr (op == Op::amo_inc) return old >= operand ? 0 : old + 1;
  if constexpr (op == Op::amo_dec) return old == 0 || old > operand ? operand : old - 1;
  const int up = 64 - (8 << log2_size);  // signed order is the order of the values shifted up
  const auto s_old = static_cast<int64_t>(old << up), s_new = static_cast<int64_t>(operand << up);
  if constexpr (op == Op::amo_add) return old + operand;
  if constexpr (op == Op::amo_clr) return old & ~operand;
  if constexpr (op == Op::amo_xor) return old ^ operand;
  if constexpr (op == Op::amo_or) return old | operand;
  if constexpr (op == Op::amo_smax) return s_new > s_old ? operand : old;
  if constexpr (op == Op::amo_smin) return s_new < s_old ? operand : old;
  if constexpr (op == Op::amo_umax) return operand > old ? operand : old;
  if constexpr (op == Op::amo_umin) return operand < old ? operand : old;
  if constexpr (op == Op::amo_swp) return operand;
}

}  // namespace gpusim

#ifdef __CUDA_ARCH__
#include "device_sim/core/device_atomics.h"
#else
#include "device_sim/core/host_atomics.h"
#endif

namespace gpusim {

// Returns the old value, zero-extended.
template <Op op>
GPUSIM_HD_INLINE uint64_t amo(uint8_t* p, uint64_t operand, uint32_t log2_size) {
  if constexpr (kHasFloatWord<op>) {
    switch (log2_size & 3) {
      case 1: return amo_sized<op, uint16_t>(p, operand, log2_size);
      case 2: return amo_sized<op, uint32_t>(p, operand, log2_size);
      default: return amo_sized<op, uint64_t>(p, operand, log2_size);
    }
  }
  switch (log2_size) {
    case 0: return amo_sized<op, uint8_t>(p, operand, 0);
    case 1: return amo_sized<op, uint16_t>(p, operand, 1);
    case 2: return amo_sized<op, uint32_t>(p, operand, 2);
    default: return amo_sized<op, uint64_t>(p, operand, 3);
  }
}

template <class T>
GPUSIM_HD_INLINE uint64_t cas_sized(uint8_t* p, uint64_t expected, uint64_t desired) {
  T old = static_cast<T>(expected);
  compare_swap(reinterpret_cast<T*>(p), &old, static_cast<T>(desired));
  return old;
}
GPUSIM_HD_INLINE uint64_t cas_any(uint8_t* p, uint64_t expected, uint64_t desired,
                                  uint32_t log2_size) {
  switch (log2_size) {
    case 0: return cas_sized<uint8_t>(p, expected, desired);
    case 1: return cas_sized<uint16_t>(p, expected, desired);
    case 2: return cas_sized<uint32_t>(p, expected, desired);
    default: return cas_sized<uint64_t>(p, expected, desired);
  }
}

// {p0, p1}: if equal to expected[2], becomes desired[2]. expected receives what was there.
//
// 16 bytes need not lie together in storage (windows are interleaved) and not every target swaps so
// much at once: then there is one lock, seen only by other 16-byte accesses, and a smaller store that
// another core makes to one of the words at the same moment may be lost. `lock` is shared by all cores
// of a machine.
GPUSIM_HD_INLINE bool cas_pair(uint32_t* lock, uint8_t* p0, uint8_t* p1, uint64_t* expected,
                               const uint64_t* desired) {
  bool same = false;
  if (p1 == p0 + 8 && cas_16_bytes(p0, expected, desired, same)) return same;
  auto* w0 = reinterpret_cast<uint64_t*>(p0);
  auto* w1 = reinterpret_cast<uint64_t*>(p1);
  // The section stands inside the loop: lanes of a warp may meet again only behind a loop, and one
  // that waited for the others there with the lock in its hands would wait for ever.
  for (bool done = false; !done;) {
    uint32_t free = 0;
    if (!compare_swap(lock, &free, 1u)) continue;
    fence_all();
    const uint64_t old0 = atomic_load(w0), old1 = atomic_load(w1);
    same = old0 == expected[0] && old1 == expected[1];
    if (same) {
      atomic_store(w0, desired[0]);
      atomic_store(w1, desired[1]);
    }
    expected[0] = old0;
    expected[1] = old1;
    fence_all();
    uint32_t held = 1;
    compare_swap(lock, &held, 0u);
    done = true;
  }
  return same;
}

}  // namespace gpusim
