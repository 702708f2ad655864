// Whether a kernel may reach what an atomic operation names: device memory, registered memory of
// the host, or any of it where the driver offers pageable access.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuda_emulated {

// The allocation that was reached last.
extern uintptr_t reach_begin;
extern size_t reach_bytes;
void look_up_reach(const void* p, size_t size);
void forget_reach();
__attribute__((always_inline)) inline void reach(const void* p, size_t size) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(p) - reach_begin;
  if (offset >= reach_bytes || size > reach_bytes - offset) look_up_reach(p, size);
}

// Atomic operations on the host's memory that several devices make at the same time: where the
// driver does not say that they are one for all (cudaDevAttrHostNativeAtomicSupported), they are
// reported.
extern bool watches_exchanges;
void note_exchange(const void* p);

}  // namespace cuda_emulated
