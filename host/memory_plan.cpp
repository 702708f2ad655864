#include "host/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr uint64_t kUsualStack = 8 * kMiB;
// The first stack of an AArch64 process under qemu-user has 8 MiB above a guard page. A program that
// prints addresses on its stack prints the same ones here, if it has one core or private memory; with
// more stacks, at least as many digits.
constexpr uint64_t kStackZone = 0x55'0000'1000, kStackZoneEnd = uint64_t{1} << 40;
constexpr uint64_t kPrivateStackTop = kStackZone + kUsualStack;
constexpr uint64_t kHighestAddress = uint64_t{1} << 47;  // of user space, as on common hosts
// Enough for a C library's start-up: stdio buffers and a first arena.
constexpr uint64_t kLeastHeap = 256 * kKiB;
constexpr uint64_t kLeastStack = 64 * kKiB;

struct Extent {
  uint64_t begin = ~uint64_t{0}, end = 0;
  bool empty() const { return begin >= end; }
  void add(const Segment& s) {
    begin = std::min(begin, page_down(s.address));
    end = std::max(end, page_up(s.address + s.size_bytes));
  }
};

std::string mib(uint64_t bytes) { return fmt::format("{:.1f} MiB", double(bytes) / double(kMiB)); }

uint64_t power_of_two_above(uint64_t n) { return std::bit_ceil(n); }

void check_segments(const Module& module) {
  if (module.segments.empty()) throw Error("the program has nothing to load");
  for (const Segment& s : module.segments)
    if (s.size_bytes > kHighestAddress || s.address > kHighestAddress - s.size_bytes)
      throw Error(fmt::format(
          "the segment at {:#x} ({:#x} bytes) reaches beyond the highest user address {:#x}",
          s.address, s.size_bytes, kHighestAddress));
}

MemoryPlan plan_shared(const Extent& image, const PlanRequest& request) {
  MemoryPlan plan;
  const uint64_t image_size = image.end - image.begin;
  uint64_t size = page_up(request.memory_size_bytes);
  if (size == 0) {
    // Where memory is taken at once, room for the stacks that a C library gives as many threads as there
    // are cores, within reason.
    const uint64_t threads = kGiB / 4 + request.cores * kUsualStack;
    size = request.memory_is_real ? std::clamp(threads, kGiB, 4 * kGiB) : 4 * kGiB;
    size = std::max(size, page_up(image_size + kGiB / 4));
  } else if (size < image_size + kLeastHeap) {
    throw Error(
        fmt::format("--memory-size {} is too small: the program itself takes {} and "
                    "needs room for a heap; give at least {}",
                    mib(size), mib(image_size), mib(image_size + kLeastHeap)));
  }
  plan.config.linear_base = image.begin;
  plan.config.linear_size = size;
  plan.heap_start = image.end;
  plan.heap_limit = image.begin + size;

  uint64_t window = request.stack_size_bytes;
  if (window == 0) {
    window = request.cores <= 64 ? kUsualStack : kLeastStack;
    // Hundreds of thousands of stacks should leave room on a GPU for what the cores work on.
    if (request.memory_is_real)
      window = std::min(window, std::max(16 * kKiB, 4 * kGiB / power_of_two_above(request.cores)));
  }
  window = power_of_two_above(std::max<uint64_t>(window, 4 * kPageSize));
  plan.config.window_shift = static_cast<uint32_t>(std::countr_zero(window));
  plan.config.window_base = kStackZone;
  if (plan.heap_limit > kStackZone || (kStackZoneEnd - kStackZone) / window < request.cores)
    plan.config.window_base = std::max(kStackZoneEnd, power_of_two_above(plan.heap_limit));
  const uint64_t room = kHighestAddress - plan.config.window_base;
  if (plan.config.window_base > kHighestAddress || room / window < request.cores)
    throw Error(
        fmt::format("{} stacks of {} do not fit into the address space; "
                    "use fewer cores or a smaller --stack-size",
                    request.cores, mib(window)));
  plan.stack_size_bytes = window - kPageSize;
  return plan;
}

MemoryPlan plan_private(const Extent& image, const Extent& writable, const PlanRequest& request) {
  MemoryPlan plan;
  const uint64_t base = writable.empty() ? image.end : writable.begin;
  const uint64_t own = image.end - base;  // of each core
  const uint64_t stack_wish = page_up(request.stack_size_bytes);
  const uint64_t least =
      own + kLeastHeap + kPageSize + (stack_wish != 0 ? stack_wish : kLeastStack);
  uint64_t window = power_of_two_above(least);
  if (request.memory_size_bytes != 0) {
    const uint64_t wish = power_of_two_above(page_up(request.memory_size_bytes));
    if (wish < window)
      throw Error(
          fmt::format("--memory-size {} is too small: each core needs {} for data, "
                      "heap and stack, so give at least {}",
                      mib(request.memory_size_bytes), mib(least), mib(window)));
    window = wish;
  } else {
    const uint64_t budget = request.memory_is_real ? 4 * kGiB : 16 * kGiB;
    const uint64_t share = budget / power_of_two_above(request.cores);
    window = std::max(window, std::min(share, 256 * kMiB));
  }
  // The window must not wrap around; it need not be aligned to its size.
  if (base + window > kHighestAddress || window > kHighestAddress / request.cores)
    throw Error(
        fmt::format("{} cores with {} of private memory each do not fit; use fewer "
                    "cores or a smaller --memory-size",
                    request.cores, mib(window)));
  plan.config.linear_base = image.begin;
  plan.config.linear_size = base - image.begin;
  plan.config.window_base = base;
  plan.config.window_shift = static_cast<uint32_t>(std::countr_zero(window));
  const uint64_t share_of_stack = page_down(std::max(window / 4, kLeastStack));
  plan.stack_size_bytes = stack_wish != 0 ? stack_wish : std::min(kUsualStack, share_of_stack);
  plan.stack_size_bytes = std::min(plan.stack_size_bytes, window - own - kLeastHeap - kPageSize);
  plan.heap_start = image.end;
  plan.heap_limit = base + window - plan.stack_size_bytes - kPageSize;
  if (plan.stack_size_bytes < kPrivateStackTop &&
      base + window <= kPrivateStackTop - plan.stack_size_bytes) {
    plan.config.stack_size = plan.stack_size_bytes;
    plan.config.stack_base = kPrivateStackTop - plan.stack_size_bytes;
  }
  return plan;
}

}  // namespace

uint64_t MemoryPlan::stack_top(uint32_t core) const {
  const uint64_t window = uint64_t{1} << config.window_shift;
  if (config.stack_size != 0) return config.stack_base + config.stack_size;
  const uint64_t index = config.memory_model == MemoryModel::kShared ? core : 0;
  return config.window_base + (index + 1) * window;
}

MemoryPlan plan_memory(const Module& module, const PlanRequest& request) {
  check_segments(module);
  Extent image, writable;
  for (const Segment& s : module.segments) {
    if (s.size_bytes == 0) continue;
    image.add(s);
    if (s.flags & kWrite) writable.add(s);
  }
  if (image.empty()) throw Error("the program has nothing to load");
  MemoryPlan plan = request.model == MemoryModel::kShared ? plan_shared(image, request)
                                                          : plan_private(image, writable, request);
  plan.config.cores = request.cores;
  plan.config.memory_model = request.model;
  return plan;
}

}  // namespace gpusim::host
