#include "standin/chip.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

const Chip& choose() {
  const char* const name = std::getenv("GPUSIM_EMULATED_CHIP");
  for (const Chip& c : kChips)
    if (name ? std::strcmp(name, c.name) == 0 : compiled_for == c.major * 100 + c.minor * 10)
      return c;
  std::fprintf(stderr, "cuda-emulated: GPUSIM_EMULATED_CHIP=%s: there are", name ? name : "");
  for (const Chip& c : kChips) std::fprintf(stderr, " %s", c.name);
  std::fprintf(stderr, "\n");
  std::_Exit(kReportedStatus);
}

}  // namespace

const Chip& chip() {
  static const Chip chosen = [] {
    Chip c = choose();
    c.memory_bytes = setting("GPUSIM_EMULATED_MEMORY", c.memory_bytes);
    return c;
  }();
  return chosen;
}

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

int blocks_per_multiprocessor(int threads, size_t shared_bytes) {
  const Chip& c = chip();
  const int whole_warps = (threads + 31) / 32 * 32;
  const size_t each = shared_bytes + c.shared_reserved;
  const int most = std::min(c.blocks_per_multiprocessor, c.threads_per_multiprocessor / whole_warps);
  return each == 0 ? most : std::min(most, static_cast<int>(c.shared_per_multiprocessor / each));
}

}  // namespace cuda_emulated
