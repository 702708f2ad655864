// Functions of a warp: every one is a meeting of the lanes that its mask names.
//
// A meeting's place is the address where meet() returns to, told by source lines and inlined
// callers: these functions must be inlined, so that two calls of a helper are two places.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "emulated/language.h"

namespace cuda_emulated {

enum class Meeting : uint32_t {
  kSyncwarp, kBallot, kAny, kAll, kMatchAny, kMatchAll,
  kShfl, kShflUp, kShflDown, kShflXor,
  kMin, kMax, kSignedMin, kSignedMax, kAdd, kAnd, kOr, kXor,
  kActive,  // of whoever happens to be there
};
// Returns when all lanes of `mask` that have not ended are there.
uint64_t meet(Meeting kind, uint32_t mask, uint64_t value, uint32_t argument);
void meet_block();
void nap();

template <class T>
__forceinline__ T shuffle(Meeting kind, uint32_t mask, T value, int argument, int width) {
  static_assert(sizeof(T) <= 8);
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = meet(kind, mask, word,
              static_cast<uint32_t>(argument & 0xff) | static_cast<uint32_t>(width) << 8);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace cuda_emulated

__forceinline__ void __syncwarp(unsigned mask = ~0u) {
  cuda_emulated::meet(cuda_emulated::Meeting::kSyncwarp, mask, 0, 0);
}
__forceinline__ void __syncthreads() { cuda_emulated::meet_block(); }
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(
      cuda_emulated::meet(cuda_emulated::Meeting::kBallot, mask, predicate != 0, 0));
}
__forceinline__ int __any_sync(unsigned mask, int predicate) {
  return cuda_emulated::meet(cuda_emulated::Meeting::kAny, mask, predicate != 0, 0) != 0;
}
__forceinline__ int __all_sync(unsigned mask, int predicate) {
  return cuda_emulated::meet(cuda_emulated::Meeting::kAll, mask, predicate != 0, 0) != 0;
}
template <class T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return static_cast<unsigned>(
      cuda_emulated::meet(cuda_emulated::Meeting::kMatchAny, mask, word, 0));
}
template <class T>
__forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* all_same) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const auto same = static_cast<unsigned>(
      cuda_emulated::meet(cuda_emulated::Meeting::kMatchAll, mask, word, 0));
  *all_same = same != 0;
  return same;
}
template <class T>
__forceinline__ T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return cuda_emulated::shuffle(cuda_emulated::Meeting::kShfl, mask, value, lane, width);
}
template <class T>
__forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return cuda_emulated::shuffle(cuda_emulated::Meeting::kShflUp, mask, value,
                                static_cast<int>(delta), width);
}
template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return cuda_emulated::shuffle(cuda_emulated::Meeting::kShflDown, mask, value,
                                static_cast<int>(delta), width);
}
template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  return cuda_emulated::shuffle(cuda_emulated::Meeting::kShflXor, mask, value, lanes, width);
}

// Compute capability 8.0.
#if __CUDA_ARCH__ >= 800
#define CUDA_EMULATED_REDUCE(name, Type, meeting)                                               \
  __forceinline__ Type name(unsigned mask, Type value) {                                        \
    return static_cast<Type>(                                                                   \
        cuda_emulated::meet(cuda_emulated::Meeting::meeting, mask, static_cast<uint32_t>(value), \
                            0));                                                                \
  }
CUDA_EMULATED_REDUCE(__reduce_min_sync, unsigned, kMin)
CUDA_EMULATED_REDUCE(__reduce_max_sync, unsigned, kMax)
CUDA_EMULATED_REDUCE(__reduce_add_sync, unsigned, kAdd)
CUDA_EMULATED_REDUCE(__reduce_min_sync, int, kSignedMin)
CUDA_EMULATED_REDUCE(__reduce_max_sync, int, kSignedMax)
CUDA_EMULATED_REDUCE(__reduce_add_sync, int, kAdd)
CUDA_EMULATED_REDUCE(__reduce_and_sync, unsigned, kAnd)
CUDA_EMULATED_REDUCE(__reduce_or_sync, unsigned, kOr)
CUDA_EMULATED_REDUCE(__reduce_xor_sync, unsigned, kXor)
#undef CUDA_EMULATED_REDUCE
#endif

// Which lanes are together is the hardware's choice, here left to chance.
__forceinline__ unsigned __activemask() {
  return static_cast<unsigned>(cuda_emulated::meet(cuda_emulated::Meeting::kActive, ~0u, 0, 0));
}
__forceinline__ void __nanosleep(unsigned) { cuda_emulated::nap(); }
