// Accesses to guest memory by the threads of a GPU. Included by core/atomics.h.
//
// All are "strong" in the PTX memory model (PTX ISA, "Memory Consistency Model"): relaxed, at the scope
// of the device, so that races between cores have a meaning and no load is served from a first-level
// cache, which other multiprocessors' stores do not reach. docs/memory-model.md says why this and
// fence_all() suffice.
//
// Kernels on memory that the host reaches at the same time (GPUSIM_MEMORY_IS_SHARED_WITH_HOST, for
// a whole source file) take the scope of the system instead.
#pragma once
#include <cstdint>
#include <type_traits>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

#ifdef GPUSIM_MEMORY_IS_SHARED_WITH_HOST
#define GPUSIM_ATOMIC_SCOPE __NV_THREAD_SCOPE_SYSTEM
#else
#define GPUSIM_ATOMIC_SCOPE __NV_THREAD_SCOPE_DEVICE
#endif

namespace gpusim {

// Of 1, 2, 4 or 8 aligned bytes.
template <class T>
__device__ __forceinline__ T atomic_load(const T* p) {
  return __nv_atomic_load_n(const_cast<T*>(p), __NV_ATOMIC_RELAXED, GPUSIM_ATOMIC_SCOPE);
}
template <class T>
__device__ __forceinline__ void atomic_store(T* p, T value) {
  __nv_atomic_store_n(p, value, __NV_ATOMIC_RELAXED, GPUSIM_ATOMIC_SCOPE);
}

// fence.sc at that scope.
#ifdef GPUSIM_MEMORY_IS_SHARED_WITH_HOST
__device__ __forceinline__ void fence_all() { __threadfence_system(); }
#else
__device__ __forceinline__ void fence_all() { __threadfence(); }
#endif

// Storage words are 8 bytes and aligned, so a small operand's 32-bit word may be used.
template <class T>
__device__ __forceinline__ bool compare_swap(T* p, T* expected, T desired) {
  if constexpr (sizeof(T) >= 4) {
    return __nv_atomic_compare_exchange_n(p, expected, desired, false, __NV_ATOMIC_RELAXED,
                                          __NV_ATOMIC_RELAXED, GPUSIM_ATOMIC_SCOPE);
  } else {
    const auto address = reinterpret_cast<uintptr_t>(p);
    auto* word = reinterpret_cast<uint32_t*>(address & ~uintptr_t{3});
    const uint32_t shift = 8 * (address & 3), mask = ((1u << (8 * sizeof(T))) - 1) << shift;
    uint32_t seen = atomic_load(word);
    for (;;) {
      const T old = static_cast<T>((seen & mask) >> shift);
      if (old != *expected) {
        *expected = old;
        return false;
      }
      if (compare_swap(word, &seen, (seen & ~mask) | (uint32_t{desired} << shift))) return true;
    }
  }
}

template <Op op, class T>
__device__ __forceinline__ uint64_t amo_sized(uint8_t* p, uint64_t operand, uint32_t log2_size) {
  auto* word = reinterpret_cast<T*>(p);
  const T value = static_cast<T>(operand);
  // What the memory does by itself, so that many arrivals at one place cost one operation each.
#define GPUSIM_BY_MEMORY(op_name, function, Type, value)                                          \
  if constexpr (op == Op::op_name)                                                                \
    return static_cast<T>(function(reinterpret_cast<Type*>(word), static_cast<Type>(value),       \
                                   __NV_ATOMIC_RELAXED, GPUSIM_ATOMIC_SCOPE));
  if constexpr (sizeof(T) >= 4) {
    using Signed = std::make_signed_t<T>;
    GPUSIM_BY_MEMORY(amo_add, __nv_atomic_fetch_add, T, value)
    GPUSIM_BY_MEMORY(amo_clr, __nv_atomic_fetch_and, T, ~value)
    GPUSIM_BY_MEMORY(amo_xor, __nv_atomic_fetch_xor, T, value)
    GPUSIM_BY_MEMORY(amo_or, __nv_atomic_fetch_or, T, value)
    GPUSIM_BY_MEMORY(amo_umax, __nv_atomic_fetch_max, T, value)
    GPUSIM_BY_MEMORY(amo_umin, __nv_atomic_fetch_min, T, value)
    GPUSIM_BY_MEMORY(amo_smax, __nv_atomic_fetch_max, Signed, value)
    GPUSIM_BY_MEMORY(amo_smin, __nv_atomic_fetch_min, Signed, value)
    GPUSIM_BY_MEMORY(amo_swp, __nv_atomic_exchange_n, T, value)
  }
#undef GPUSIM_BY_MEMORY
  T old = atomic_load(word);
  while (!compare_swap(word, &old, static_cast<T>(amo_result<op>(old, value, log2_size)))) {
  }
  return old;
}

// 16 aligned bytes at once, also with respect to smaller accesses. False: this chip cannot, and did
// nothing; else `same` says whether they were as expected. No bus to a host's memory is known to do
// it.
__device__ __forceinline__ bool cas_16_bytes(uint8_t* p, uint64_t* expected,
                                             const uint64_t* desired, bool& same) {
#if __CUDA_ARCH__ >= 900 && !defined(GPUSIM_MEMORY_IS_SHARED_WITH_HOST)
  using Pair = unsigned __int128;
  Pair old = Pair{expected[1]} << 64 | expected[0];
  Pair next = Pair{desired[1]} << 64 | desired[0];
  same = __nv_atomic_compare_exchange(reinterpret_cast<Pair*>(p), &old, &next, false,
                                      __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED,
                                      GPUSIM_ATOMIC_SCOPE);
  expected[0] = static_cast<uint64_t>(old);
  expected[1] = static_cast<uint64_t>(old >> 64);
  return true;
#else
  return false;
#endif
}

}  // namespace gpusim

#undef GPUSIM_ATOMIC_SCOPE
