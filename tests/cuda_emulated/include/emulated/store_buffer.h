// Stores that other lanes see later: with GPUSIM_EMULATED_STORES=delayed each lane has a buffer,
// from which stores to different places go to memory in any order. The lane itself sees them at
// once.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuda_emulated {

extern bool delays_stores;  // and a kernel runs
void store_later(void* to, uint64_t value, uint32_t size);
// What this lane stored there, if that has not gone to memory.
bool load_own(const void* from, uint64_t& value, uint32_t size);
// The lane's stores to any of these bytes, or all of its stores, are in memory after that.
void settle(const void* place, size_t size);
void settle_all();

}  // namespace cuda_emulated
