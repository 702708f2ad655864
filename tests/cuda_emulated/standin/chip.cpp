#include "standin/chip.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "emulated/reach.h"
#include "standin/report.h"

// Where NOPs begin before the entry of functions: patchable_function_entry.
extern "C" __attribute__((weak)) const uintptr_t __start___patchable_function_entries[];
extern "C" __attribute__((weak)) const uintptr_t __stop___patchable_function_entries[];

namespace cuda_emulated {
namespace {

constexpr size_t kKi = 1024, kGi = size_t{1} << 30;
constexpr Chip kChips[] = {
    {"sm_75", 7, 5, 16 * kGi, 48 * kKi, 64 * kKi, 64 * kKi, 0, 1024, 16, 4},
    {"sm_90", 9, 0, 80 * kGi, 48 * kKi, 227 * kKi, 228 * kKi, kKi, 2048, 32, 4},
    {"sm_120", 12, 0, 32 * kGi, 48 * kKi, 99 * kKi, 100 * kKi, kKi, 1536, 24, 4},
};

thread_local int device_of_thread = 0;

// Null: there is no such chip.
const Chip* find(std::string_view name) {
  const auto it = std::find_if(std::begin(kChips), std::end(kChips),
                               [&](const Chip& c) { return name == c.name; });
  return it == std::end(kChips) ? nullptr : it;
}

std::vector<Chip> choose() {
  const std::string compiled = "sm_" + std::to_string(compiled_for / 10);
  const char* const asked = std::getenv("GPUSIM_EMULATED_CHIP");
  std::string_view names = asked ? asked : compiled.c_str();
  std::vector<Chip> chosen;
  if (names == "none") return chosen;
  for (bool more = true; more;) {
    const size_t comma = names.find(',');
    const Chip* const found = find(names.substr(0, comma));
    if (!found) {
      std::fprintf(stderr, "cuda-emulated: GPUSIM_EMULATED_CHIP=%s: there are", asked ? asked : "");
      for (const Chip& c : kChips) std::fprintf(stderr, " %s", c.name);
      std::fprintf(stderr, " none\n");
      std::_Exit(kReportedStatus);
    }
    chosen.push_back(*found);
    chosen.back().memory_bytes = setting("GPUSIM_EMULATED_MEMORY", found->memory_bytes);
    more = comma != std::string_view::npos;
    if (more) names.remove_prefix(comma + 1);
  }
  return chosen;
}

}  // namespace

const std::vector<Chip>& chips() {
  static const std::vector<Chip> chosen = choose();
  return chosen;
}

int current_device() { return device_of_thread; }
void set_current_device(int device) {
  if (device != device_of_thread) forget_reach();
  device_of_thread = device;
}
const Chip& chip() { return chips()[static_cast<size_t>(device_of_thread)]; }

int launch_bound(const void* kernel) {
  const auto entry = reinterpret_cast<uintptr_t>(kernel);
  uintptr_t first = 0;
  for (const uintptr_t* r = __start___patchable_function_entries;
       r < __stop___patchable_function_entries; ++r)
    if (*r <= entry) first = std::max(first, *r);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(first);
  constexpr uint8_t kNop = 0x90;
  const bool own = first != 0 && entry - first <= kThreadsPerBlock &&
                   std::all_of(bytes, bytes + (entry - first),
                               [](uint8_t byte) { return byte == kNop; });
  return own && entry != first ? static_cast<int>(entry - first) : kThreadsPerBlock;
}

int registers_per_thread(const void* kernel) {
  constexpr int kMost = 255, kUnit = 8;
  return std::min(kMost, kRegisters / launch_bound(kernel) / kUnit * kUnit);
}

// A warp's registers are given out in units of 256.
int blocks_per_multiprocessor(const void* kernel, int threads, size_t shared_bytes) {
  constexpr int kUnit = 256, kWarp = 32;
  const Chip& c = chip();
  const int warps = (threads + kWarp - 1) / kWarp;
  const int registers = (registers_per_thread(kernel) * kWarp + kUnit - 1) / kUnit * kUnit * warps;
  const int most =
      std::min({c.blocks_per_multiprocessor, c.threads_per_multiprocessor / (warps * kWarp),
                kRegisters / registers});
  const size_t each = shared_bytes + c.shared_reserved;
  return each == 0 ? most : std::min(most, static_cast<int>(c.shared_per_multiprocessor / each));
}

}  // namespace cuda_emulated
