// SPDX-License-Identifier: MIT
// Device addresses that are this process's own: where memory of the driver's is mapped, the cores
// and the program see it at one address. One arena for all devices of the process, so that they
// keep apart by themselves. Thread-safe.
#ifndef GPUSIM_OFFLOAD_ARENA_H
#define GPUSIM_OFFLOAD_ARENA_H

#include <stdint.h>

// Whole pages below `limit`, reserved in this process (mapped without access). A gpusim_status.
int gpusim_arena_reserve(uint64_t limit, uint64_t size_bytes, uint64_t* address);
// Unmaps what is there.
void gpusim_arena_release(uint64_t address, uint64_t size_bytes);

#endif  // GPUSIM_OFFLOAD_ARENA_H
