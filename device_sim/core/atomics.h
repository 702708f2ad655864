// Atomic read-modify-write on guest memory, on the host and in CUDA code. Sizes are 1 << log2_size
// bytes; addresses are naturally aligned.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

GPUSIM_HD_INLINE uint64_t size_mask(uint32_t log2_size) {
  return ~uint64_t{0} >> (64 - (8u << log2_size));
}

// The new memory value; `old` and `operand` are zero-extended from their size.
template <Op op>
GPUSIM_HD_INLINE uint64_t amo_result(uint64_t old, uint64_t operand, uint32_t log2_size) {
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

// Storage words are 8 bytes and aligned, so CUDA, which has no 8-bit compare-and-swap, may use the
// 32-bit word around a small operand.
template <class T>
GPUSIM_HD_INLINE bool compare_swap(T* p, T* expected, T desired) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 8) {
    const T old = atomicCAS(reinterpret_cast<unsigned long long*>(p), *expected, desired);
    const bool same = old == *expected;
    *expected = old;
    return same;
  } else if constexpr (sizeof(T) == 4) {
    const T old = atomicCAS(reinterpret_cast<unsigned*>(p), *expected, desired);
    const bool same = old == *expected;
    *expected = old;
    return same;
  } else {
    const auto address = reinterpret_cast<uintptr_t>(p);
    auto* word = reinterpret_cast<uint32_t*>(address & ~uintptr_t{3});
    const uint32_t shift = 8 * (address & 3), mask = ((1u << (8 * sizeof(T))) - 1) << shift;
    uint32_t seen = *reinterpret_cast<volatile uint32_t*>(word);
    for (;;) {
      const T old = static_cast<T>((seen & mask) >> shift);
      if (old != *expected) {
        *expected = old;
        return false;
      }
      const uint32_t next = (seen & ~mask) | (uint32_t{desired} << shift);
      const uint32_t was = atomicCAS(word, seen, next);
      if (was == seen) return true;
      seen = was;
    }
  }
#else
  return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
#endif
}

template <class T>
GPUSIM_HD_INLINE T atomic_load(const T* p) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const volatile T*>(p);
#else
  return __atomic_load_n(p, __ATOMIC_SEQ_CST);
#endif
}

template <Op op, class T>
GPUSIM_HD_INLINE uint64_t amo_sized(uint8_t* p, uint64_t operand, uint32_t log2_size) {
  auto* word = reinterpret_cast<T*>(p);
  const T value = static_cast<T>(operand);
#ifndef __CUDA_ARCH__
  // One instruction of the host, which others cannot make fail.
  if constexpr (op == Op::amo_add) return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
  if constexpr (op == Op::amo_swp) return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
#endif
  T old = atomic_load(word);
  while (!compare_swap(word, &old, static_cast<T>(amo_result<op>(old, value, log2_size)))) {
  }
  return old;
}

// Returns the old value, zero-extended.
template <Op op>
GPUSIM_HD_INLINE uint64_t amo(uint8_t* p, uint64_t operand, uint32_t log2_size) {
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

// 16 bytes need not lie together in storage (windows are interleaved) and not every target swaps so
// much at once: then there is one lock, seen only by other 16-byte accesses, and a smaller store that
// another host thread makes to one of the words at the same moment may be lost. `lock` is shared by
// all cores of a machine.
class PairLock {
 public:
  GPUSIM_HD_INLINE explicit PairLock(uint32_t* lock) : lock_(lock) {
    uint32_t free = 0;
    while (!compare_swap(lock_, &free, 1u)) free = 0;
    fence();
  }
  GPUSIM_HD_INLINE ~PairLock() {
    fence();
    uint32_t held = 1;
    compare_swap(lock_, &held, 0u);
  }
  PairLock(const PairLock&) = delete;
  PairLock& operator=(const PairLock&) = delete;

  GPUSIM_HD_INLINE static void fence() {
#ifdef __CUDA_ARCH__
    __threadfence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  }

 private:
  uint32_t* lock_;
};

#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
// 16 aligned bytes at once, also with respect to smaller accesses.
inline bool cas_16_bytes(uint8_t* p, uint64_t* expected, const uint64_t* desired) {
  struct Words {
    uint64_t word[2];
  };
  bool same;
  __asm__ volatile("lock cmpxchg16b %1"
                   : "=@ccz"(same), "+m"(*reinterpret_cast<Words*>(p)),
                     "+a"(expected[0]), "+d"(expected[1])
                   : "b"(desired[0]), "c"(desired[1])
                   : "memory");
  return same;
}
#endif

// {p0, p1}: if equal to expected[2], becomes desired[2]. expected receives what was there.
GPUSIM_HD_INLINE bool cas_pair(uint32_t* lock, uint8_t* p0, uint8_t* p1, uint64_t* expected,
                               const uint64_t* desired) {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  if (p1 == p0 + 8) return cas_16_bytes(p0, expected, desired);
#endif
  auto* w0 = reinterpret_cast<uint64_t*>(p0);
  auto* w1 = reinterpret_cast<uint64_t*>(p1);
  const PairLock held(lock);
  const uint64_t old0 = atomic_load(w0), old1 = atomic_load(w1);
  const bool same = old0 == expected[0] && old1 == expected[1];
  if (same) {
    *reinterpret_cast<volatile uint64_t*>(w0) = desired[0];
    *reinterpret_cast<volatile uint64_t*>(w1) = desired[1];
  }
  expected[0] = old0;
  expected[1] = old1;
  return same;
}

}  // namespace gpusim
