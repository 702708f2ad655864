// Chips that programs can be told they run on, and what the runtime says of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "host/cuda_api/cuda_types.h"

namespace gpusim::cuda_api {

struct Chip {
  std::string_view key, name;
  uint32_t compute_capability, sms;
  int clock_khz, memory_clock_khz, bus_bits;
  uint64_t memory_mib;
  int l2_kib, shared_kib_per_sm, shared_kib_per_block, threads_per_sm, blocks_per_sm;
};

inline constexpr int kWarp = 32, kThreadsPerBlock = 1024, kRegistersPerSm = 65536;
inline constexpr size_t kSharedPerBlock = 48 << 10, kReservedShared = 1 << 10;

std::span<const Chip> all_chips();
// Throws gpusim::Error that lists those there are.
const Chip& chip_named(std::string_view key);
// The first that runs PTX for compute_`architecture`; the newest for more than any has.
const Chip& chip_for(uint32_t architecture);

DeviceProp properties_of(const Chip& chip);
// By the number that cudaDeviceGetAttribute and cuDeviceGetAttribute take; nothing if unknown.
bool attribute_of(const Chip& chip, int attribute, int& value);

// Blocks of a kernel on one SM at a time, by the rules of CUDA's occupancy calculator.
int resident_blocks(const Chip& chip, uint32_t block_threads, uint32_t registers,
                    size_t shared_bytes);

}  // namespace gpusim::cuda_api
