// Atomic accesses to guest memory by host threads. Included by core/atomics.h.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

template <Op op>
GPUSIM_HD_INLINE uint64_t amo_result(uint64_t old, uint64_t operand, uint32_t log2_size);

template <class T>
GPUSIM_HD_INLINE bool compare_swap(T* p, T* expected, T desired) {
  return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}
template <class T>
GPUSIM_HD_INLINE T atomic_load(const T* p) {
  return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
template <class T>
GPUSIM_HD_INLINE void atomic_store(T* p, T value) {
  __atomic_store_n(p, value, __ATOMIC_SEQ_CST);
}
GPUSIM_HD_INLINE void fence_all() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <Op op, class T>
GPUSIM_HD_INLINE uint64_t amo_sized(uint8_t* p, uint64_t operand, uint32_t log2_size) {
  auto* word = reinterpret_cast<T*>(p);
  const T value = static_cast<T>(operand);
  // One instruction of the host, which others cannot make fail.
  if constexpr (op == Op::amo_add) return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
  if constexpr (op == Op::amo_swp) return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
  T old = atomic_load(word);
  while (!compare_swap(word, &old, static_cast<T>(amo_result<op>(old, value, log2_size)))) {
  }
  return old;
}

// 16 aligned bytes at once, also with respect to smaller accesses. False: this host cannot, and did
// nothing; else `same` says whether they were as expected.
GPUSIM_HD_INLINE bool cas_16_bytes([[maybe_unused]] uint8_t* p, [[maybe_unused]] uint64_t* expected,
                                   [[maybe_unused]] const uint64_t* desired,
                                   [[maybe_unused]] bool& same) {
#if defined(__x86_64__)
  struct Words {
    uint64_t word[2];
  };
  __asm__ volatile("lock cmpxchg16b %1"
                   : "=@ccz"(same), "+m"(*reinterpret_cast<Words*>(p)),
                     "+a"(expected[0]), "+d"(expected[1])
                   : "b"(desired[0]), "c"(desired[1])
                   : "memory");
  return true;
#else
  return false;
#endif
}

}  // namespace gpusim
