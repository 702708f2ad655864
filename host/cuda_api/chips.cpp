#include "host/cuda_api/chips.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device_sim/base/error.h"

namespace gpusim::cuda_api {
namespace {

constexpr Chip kChips[] = {
#define CHIP(...) {__VA_ARGS__},
#include "host/cuda_api/chips.def"
#undef CHIP
};

struct Attribute {
  int number;
  int DeviceProp::*field;
};

struct Fixed {
  int number, value;
};

// Numbers of enum cudaDeviceAttr that are fields of the properties.
constexpr Attribute kFields[] = {
    {1, &DeviceProp::max_threads_per_block},
    {10, &DeviceProp::warp_size},
    {12, &DeviceProp::regs_per_block},
    {16, &DeviceProp::multi_processor_count},
    {18, &DeviceProp::integrated},
    {19, &DeviceProp::can_map_host_memory},
    {21, &DeviceProp::max_texture_1d},
    {31, &DeviceProp::concurrent_kernels},
    {32, &DeviceProp::ecc_enabled},
    {33, &DeviceProp::pci_bus_id},
    {34, &DeviceProp::pci_device_id},
    {35, &DeviceProp::tcc_driver},
    {37, &DeviceProp::memory_bus_width},
    {38, &DeviceProp::l2_cache_size},
    {39, &DeviceProp::max_threads_per_multi_processor},
    {40, &DeviceProp::async_engine_count},
    {41, &DeviceProp::unified_addressing},
    {50, &DeviceProp::pci_domain_id},
    {75, &DeviceProp::major},
    {76, &DeviceProp::minor},
    {78, &DeviceProp::stream_priorities_supported},
    {79, &DeviceProp::global_l1_cache_supported},
    {80, &DeviceProp::local_l1_cache_supported},
    {82, &DeviceProp::regs_per_multiprocessor},
    {83, &DeviceProp::managed_memory},
    {84, &DeviceProp::is_multi_gpu_board},
    {86, &DeviceProp::host_native_atomic_supported},
    {88, &DeviceProp::pageable_memory_access},
    {89, &DeviceProp::concurrent_managed_access},
    {90, &DeviceProp::compute_preemption_supported},
    {91, &DeviceProp::can_use_host_pointer_for_registered_mem},
    {95, &DeviceProp::cooperative_launch},
    {99, &DeviceProp::host_register_supported},
    {100, &DeviceProp::pageable_memory_access_uses_host_page_tables},
    {101, &DeviceProp::direct_managed_mem_access_from_host},
    {106, &DeviceProp::max_blocks_per_multi_processor},
    {108, &DeviceProp::persisting_l2_cache_max_size},
    {109, &DeviceProp::access_policy_max_window_size},
    {115, &DeviceProp::memory_pools_supported},
    {120, &DeviceProp::cluster_launch},
    {125, &DeviceProp::ipc_event_supported},
};

// Those that are the same everywhere, and what we do not have.
constexpr Fixed kFixed[] = {{15, 1},  {17, 0},  {20, 0},   {98, 0},  {102, 1}, {103, 1}, {112, 0},
                            {113, 0}, {114, 0}, {116, 0},  {117, 0}, {118, 0}, {119, 0}, {121, 0},
                            {126, 1}, {130, 0}, {131, -1}, {133, 0}, {134, -1}};

}  // namespace

std::span<const Chip> all_chips() { return kChips; }

const Chip& chip_named(std::string_view key) {
  std::string known;
  for (const Chip& c : kChips) {
    if (c.key == key) return c;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", c.key);
  }
  throw Error(fmt::format("--chip {}: there is no such chip; there are: {}", key, known));
}

const Chip& chip_for(uint32_t architecture) {
  for (const Chip& c : kChips)
    if (c.compute_capability >= architecture) return c;
  return *(std::end(kChips) - 1);
}

DeviceProp properties_of(const Chip& chip) {
  DeviceProp p{};
  const std::string name(chip.name);
  std::snprintf(p.name, sizeof p.name, "%s", name.c_str());
  std::memcpy(p.uuid, "gpusim", 6);
  std::memcpy(p.uuid + 8, chip.key.data(), std::min<size_t>(8, chip.key.size()));
  p.total_global_mem = size_t{chip.memory_mib} << 20;
  p.shared_mem_per_block = kSharedPerBlock;
  p.shared_mem_per_block_optin = static_cast<size_t>(chip.shared_kib_per_block) << 10;
  p.shared_mem_per_multiprocessor = static_cast<size_t>(chip.shared_kib_per_sm) << 10;
  p.reserved_shared_mem_per_block = chip.compute_capability >= 80 ? kReservedShared : 0;
  p.regs_per_block = p.regs_per_multiprocessor = kRegistersPerSm;
  p.warp_size = kWarp;
  p.mem_pitch = 0x7fffffff;
  p.max_threads_per_block = kThreadsPerBlock;
  p.max_threads_dim[0] = p.max_threads_dim[1] = 1024;
  p.max_threads_dim[2] = 64;
  p.max_grid_size[0] = 0x7fffffff;
  p.max_grid_size[1] = p.max_grid_size[2] = 65535;
  p.total_const_mem = 65536;
  p.major = static_cast<int>(chip.compute_capability / 10);
  p.minor = static_cast<int>(chip.compute_capability % 10);
  p.texture_alignment = p.surface_alignment = 512;
  p.texture_pitch_alignment = 32;
  p.multi_processor_count = static_cast<int>(chip.sms);
  p.can_map_host_memory = p.concurrent_kernels = p.unified_addressing = 1;
  p.async_engine_count = 2;
  p.memory_bus_width = chip.bus_bits;
  p.l2_cache_size = chip.l2_kib << 10;
  if (chip.compute_capability >= 80) {  // hints that streams take and nothing heeds
    p.persisting_l2_cache_max_size = p.l2_cache_size / 4 * 3;
    p.access_policy_max_window_size = 128 << 20;
  }
  p.max_threads_per_multi_processor = chip.threads_per_sm;
  p.max_blocks_per_multi_processor = chip.blocks_per_sm;
  p.stream_priorities_supported = 1;
  p.global_l1_cache_supported = p.local_l1_cache_supported = 1;
  p.managed_memory = p.concurrent_managed_access = 1;
  p.compute_preemption_supported = p.cooperative_launch = 1;
  p.can_use_host_pointer_for_registered_mem = p.host_register_supported = 1;
  p.memory_pools_supported = 1;
  p.cluster_launch = chip.compute_capability >= 90;
  p.device_numa_id = p.host_numa_id = -1;
  p.max_texture_1d = 131072;
  p.max_texture_2d[0] = 131072;
  p.max_texture_2d[1] = 65536;
  for (int& size : p.max_texture_3d) size = 16384;
  return p;
}

bool attribute_of(const Chip& chip, int attribute, int& value) {
  const DeviceProp p = properties_of(chip);
  for (const Attribute& a : kFields)
    if (a.number == attribute) return value = p.*a.field, true;
  for (const Fixed& f : kFixed)
    if (f.number == attribute) return value = f.value, true;
  switch (attribute) {
    case 2:
    case 3:
    case 4:
      return value = p.max_threads_dim[attribute - 2], true;
    case 5:
    case 6:
    case 7:
      return value = p.max_grid_size[attribute - 5], true;
    case 8:
      return value = static_cast<int>(p.shared_mem_per_block), true;
    case 9:
      return value = static_cast<int>(p.total_const_mem), true;
    case 11:
      return value = static_cast<int>(p.mem_pitch), true;
    case 13:
      return value = chip.clock_khz, true;
    case 14:
      return value = static_cast<int>(p.texture_alignment), true;
    case 22:
    case 23:
      return value = p.max_texture_2d[attribute - 22], true;
    case 24:
    case 25:
    case 26:
      return value = p.max_texture_3d[attribute - 24], true;
    case 30:
      return value = static_cast<int>(p.surface_alignment), true;
    case 36:
      return value = chip.memory_clock_khz, true;
    case 51:
      return value = static_cast<int>(p.texture_pitch_alignment), true;
    case 81:
      return value = static_cast<int>(p.shared_mem_per_multiprocessor), true;
    case 87:  // f32 against f64: full rate for half only on the chips for computing
      return value = chip.shared_kib_per_sm >= 164 && chip.compute_capability != 87 ? 2 : 32, true;
    case 97:
      return value = static_cast<int>(p.shared_mem_per_block_optin), true;
    case 111:
      return value = static_cast<int>(p.reserved_shared_mem_per_block), true;
    default:
      // Sizes of textures and surfaces that no program of ours can use are zero.
      return value = 0, attribute >= 1 && attribute <= 147;
  }
}

int resident_blocks(const Chip& chip, uint32_t block_threads, uint32_t registers,
                    size_t shared_bytes) {
  if (block_threads == 0 || block_threads > kThreadsPerBlock) return 0;
  const auto up = [](size_t value, size_t step) { return (value + step - 1) / step * step; };
  const size_t warps = (block_threads + kWarp - 1) / kWarp;
  size_t blocks = std::min<size_t>(static_cast<size_t>(chip.blocks_per_sm),
                                   static_cast<size_t>(chip.threads_per_sm) / kWarp / warps);
  // Registers go to warps in steps of 256, and an SM's four parts share them equally.
  const size_t per_warp = up(size_t{std::max(registers, 1u)} * kWarp, 256);
  const size_t fitting_warps = size_t{kRegistersPerSm} / 4 / per_warp * 4;
  blocks = std::min(blocks, fitting_warps / warps);
  const size_t reserved = chip.compute_capability >= 80 ? kReservedShared : 0;
  const size_t per_block = up(shared_bytes + reserved, chip.compute_capability >= 80 ? 128 : 256);
  if (per_block > 0)
    blocks = std::min(blocks, (static_cast<size_t>(chip.shared_kib_per_sm) << 10) / per_block);
  return static_cast<int>(blocks);
}

}  // namespace gpusim::cuda_api
