// Atomic operations and fences. Lanes run one at a time, so each is done at once, but for stores
// that may be delayed (store_buffer.h); before it the lane may have to wait for others.
#pragma once
#include <cstdint>
#include <type_traits>

#include "emulated/language.h"
#include "emulated/preemption.h"
#include "emulated/reach.h"
#include "emulated/store_buffer.h"

namespace cuda_emulated {

template <class T, class F>
__forceinline__ T exchanged(T* p, F next) {
  atomic_point();
  reach(p, sizeof(T));
  if (watches_exchanges) note_exchange(p);
  if (delays_stores) settle(p, sizeof(T));
  const T old = *const_cast<volatile T*>(p);
  *const_cast<volatile T*>(p) = next(old);
  return old;
}

__forceinline__ void fence() {
  atomic_point();
  if (delays_stores) settle_all();
}

}  // namespace cuda_emulated

#define CUDA_EMULATED_ATOMIC(name, result)                                           \
  template <class T>                                                                 \
  __forceinline__ T name(T* p, std::type_identity_t<T> v) {                          \
    return cuda_emulated::exchanged(p, [v](T old) { return static_cast<T>(result); }); \
  }                                                                                  \
  template <class T>                                                                 \
  __forceinline__ T name##_block(T* p, std::type_identity_t<T> v) {                  \
    return name(p, v);                                                               \
  }                                                                                  \
  template <class T>                                                                 \
  __forceinline__ T name##_system(T* p, std::type_identity_t<T> v) {                 \
    return name(p, v);                                                               \
  }
CUDA_EMULATED_ATOMIC(atomicAdd, old + v)
CUDA_EMULATED_ATOMIC(atomicSub, old - v)
CUDA_EMULATED_ATOMIC(atomicAnd, old & v)
CUDA_EMULATED_ATOMIC(atomicOr, old | v)
CUDA_EMULATED_ATOMIC(atomicXor, old ^ v)
CUDA_EMULATED_ATOMIC(atomicMin, v < old ? v : old)
CUDA_EMULATED_ATOMIC(atomicMax, old < v ? v : old)
CUDA_EMULATED_ATOMIC(atomicExch, (static_cast<void>(old), v))
CUDA_EMULATED_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
CUDA_EMULATED_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#undef CUDA_EMULATED_ATOMIC

template <class T>
__forceinline__ T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  return cuda_emulated::exchanged(p, [=](T old) { return old == expected ? v : old; });
}

__forceinline__ void __threadfence() { cuda_emulated::fence(); }
__forceinline__ void __threadfence_block() { cuda_emulated::fence(); }
__forceinline__ void __threadfence_system() { cuda_emulated::fence(); }

// The compiler's own functions (CUDA C++ Programming Guide, "Built-in atomic functions").
enum CudaEmulatedOrder {
  __NV_ATOMIC_RELAXED, __NV_ATOMIC_CONSUME, __NV_ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE,
  __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST,
};
enum CudaEmulatedScope {
  __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER,
  __NV_THREAD_SCOPE_DEVICE, __NV_THREAD_SCOPE_SYSTEM,
};
// What an operation of this order has to wait for: the lane's earlier stores, if it is a release.
__forceinline__ void cuda_emulated_release(int order) {
  if (order >= __NV_ATOMIC_RELEASE && cuda_emulated::delays_stores) cuda_emulated::settle_all();
}
template <class T>
__forceinline__ T __nv_atomic_load_n(const T* p, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  cuda_emulated::atomic_point();
  cuda_emulated::reach(p, sizeof(T));
  cuda_emulated_release(order);
  if (uint64_t own; cuda_emulated::delays_stores && cuda_emulated::load_own(p, own, sizeof(T)))
    return static_cast<T>(own);
  return *const_cast<const volatile T*>(p);
}
template <class T>
__forceinline__ void __nv_atomic_store_n(T* p, std::type_identity_t<T> v, int order,
                                         int = __NV_THREAD_SCOPE_SYSTEM) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  cuda_emulated::atomic_point();
  cuda_emulated::reach(p, sizeof(T));
  cuda_emulated_release(order);
  if (cuda_emulated::delays_stores && order != __NV_ATOMIC_SEQ_CST)
    return cuda_emulated::store_later(p, static_cast<uint64_t>(v), sizeof(T));
  *const_cast<volatile T*>(p) = v;
}
#define CUDA_EMULATED_ATOMIC(name, function)                                                   \
  template <class T>                                                                           \
  __forceinline__ T name(T* p, std::type_identity_t<T> v, int order,                           \
                         int = __NV_THREAD_SCOPE_SYSTEM) {                                     \
    cuda_emulated_release(order);                                                              \
    return function(p, v);                                                                     \
  }
CUDA_EMULATED_ATOMIC(__nv_atomic_fetch_add, atomicAdd)
CUDA_EMULATED_ATOMIC(__nv_atomic_fetch_sub, atomicSub)
CUDA_EMULATED_ATOMIC(__nv_atomic_fetch_and, atomicAnd)
CUDA_EMULATED_ATOMIC(__nv_atomic_fetch_or, atomicOr)
CUDA_EMULATED_ATOMIC(__nv_atomic_fetch_xor, atomicXor)
CUDA_EMULATED_ATOMIC(__nv_atomic_fetch_min, atomicMin)
CUDA_EMULATED_ATOMIC(__nv_atomic_fetch_max, atomicMax)
CUDA_EMULATED_ATOMIC(__nv_atomic_exchange_n, atomicExch)
#undef CUDA_EMULATED_ATOMIC
template <class T>
__forceinline__ bool __nv_atomic_compare_exchange_n(T* p, T* expected, std::type_identity_t<T> v,
                                                    bool, int success, int,
                                                    int = __NV_THREAD_SCOPE_SYSTEM) {
  cuda_emulated_release(success);
  const T old = atomicCAS(p, *expected, v);
  const bool same = old == *expected;
  *expected = old;
  return same;
}
template <class T>
__forceinline__ bool __nv_atomic_compare_exchange(T* p, T* expected, T* v, bool weak, int success,
                                                  int failure,
                                                  int scope = __NV_THREAD_SCOPE_SYSTEM) {
  static_assert(sizeof(T) <= 8 || __CUDA_ARCH__ >= 900, "16 bytes: compute capability 9.0");
  return __nv_atomic_compare_exchange_n(p, expected, *v, weak, success, failure, scope);
}
__forceinline__ void __nv_atomic_thread_fence(int, int = __NV_THREAD_SCOPE_SYSTEM) {
  cuda_emulated::fence();
}
