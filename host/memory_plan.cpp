#include "host/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"
#include "translator/common/isa_list.h"
#include "translator/common/limits.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr uint64_t kUsualStack = 8 * kMiB, kArena = 64 * kMiB;
// Of user space. The first stack of a process under qemu-user has 8 MiB above a guard page. A
// program that prints addresses on its stack prints the same ones here, if it has one core or
// private memory; with more stacks, at least as many digits.
struct Layout {
  uint64_t stack_zone, stack_zone_end, end;
  uint64_t private_stack_top() const { return stack_zone + kUsualStack; }
};
constexpr Layout kLayout64{0x55'0000'1000, uint64_t{1} << 40, uint64_t{1} << 47};
constexpr Layout kLayout32{0x4000'1000, kEnd32, kEnd32};

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

void check_segments(const Module& module, const Layout& layout) {
  if (module.segments.empty()) throw Error("the program has nothing to load");
  for (const Segment& s : module.segments)
    if (s.size_bytes > layout.end || s.address > layout.end - s.size_bytes)
      throw Error(fmt::format(
          "the segment at {:#x} ({:#x} bytes) reaches beyond the highest user address {:#x}",
          s.address, s.size_bytes, layout.end));
}

uint64_t stack_window(const PlanRequest& request, const Layout& layout) {
  uint64_t window = request.stack_size_bytes;
  if (window == 0) {
    const uint64_t cores = power_of_two_above(request.cores);
    if (request.memory_is_real || layout.end == kLayout32.end) {
      window = request.cores <= 64 ? kUsualStack : kLeastStack;
      // Hundreds of thousands of stacks should leave room on a GPU for what the cores work on.
      if (request.memory_is_real) window = std::min(window, std::max(16 * kKiB, 4 * kGiB / cores));
    } else {
      // A page that nobody touches costs a byte.
      window = std::clamp(32 * kGiB / cores, kLeastStack, kUsualStack);
    }
  }
  return power_of_two_above(std::max<uint64_t>(window, 4 * kPageSize));
}

[[noreturn]] void fail_stacks(uint32_t cores, uint64_t window) {
  throw Error(
      fmt::format("{} stacks of {} do not fit into the address space; "
                  "use fewer cores or a smaller --stack-size",
                  cores, mib(window)));
}

// Where memory is scarce, the stacks come first: in their zone, or at the end if the program is
// there. Heap and mappings get what is left behind the image.
void place_in_32_bits(const Extent& image, const PlanRequest& request, uint64_t window,
                      MemoryPlan* plan) {
  const uint64_t stacks = window * request.cores;
  const uint64_t room_needed = image.end + kLeastHeap;
  const Layout& layout = kLayout32;
  uint64_t base = layout.stack_zone;
  const uint64_t wish = image.begin + page_up(request.memory_size_bytes);
  const auto is_free = [&](uint64_t begin) {
    return begin >= std::max(room_needed, wish) || begin + stacks <= image.begin;
  };
  if (std::max(room_needed, wish) > layout.end)
    throw Error(
        fmt::format("a 32-bit program at {:#x} with a heap ends below {:#x}; use a smaller "
                    "--memory-size, or place it lower in the linker script",
                    image.begin, layout.end));
  if (stacks > layout.end - base) fail_stacks(request.cores, window);
  if (base + stacks > layout.end || !is_free(base)) base = page_down(layout.end - stacks);
  if (!is_free(base)) fail_stacks(request.cores, window);
  plan->config.window_base = base;
  const uint64_t end = base > image.end ? base : layout.end;
  plan->heap_limit = std::min(image.begin + plan->config.linear_size, end);
  plan->config.linear_size = plan->heap_limit - image.begin;
}

MemoryPlan plan_shared(const Extent& image, const PlanRequest& request, const Layout& layout) {
  MemoryPlan plan;
  const uint64_t image_size = image.end - image.begin;
  uint64_t size = page_up(request.memory_size_bytes);
  if (size == 0) {
    // Where memory is taken at once, room for the stacks that a C library gives as many threads as there
    // are cores, within reason.
    const uint64_t threads = kGiB / 4 + request.cores * kUsualStack;
    // Elsewhere memory costs nothing until it is touched: room for those of thousands, and for the
    // arena of 64 MiB in which glibc's malloc serves a thread. Without an arena each of its
    // allocations is a mapping of its own.
    const uint64_t many = kGiB + request.cores * (2 * kUsualStack + kArena);
    size = request.memory_is_real ? std::clamp(threads, kGiB, 4 * kGiB)
                                  : std::clamp(many, 4 * kGiB, 128 * kGiB);
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

  const uint64_t window = stack_window(request, layout);
  plan.config.window_shift = static_cast<uint32_t>(std::countr_zero(window));
  plan.stack_size_bytes = window - kPageSize;
  if (layout.end == kLayout32.end) {
    place_in_32_bits(image, request, window, &plan);
    return plan;
  }
  plan.config.window_base = layout.stack_zone;
  if (plan.heap_limit > layout.stack_zone ||
      (layout.stack_zone_end - layout.stack_zone) / window < request.cores)
    plan.config.window_base =
        std::max(layout.stack_zone_end, power_of_two_above(plan.heap_limit));
  const uint64_t room = layout.end - plan.config.window_base;
  if (plan.config.window_base > layout.end || room / window < request.cores)
    fail_stacks(request.cores, window);
  return plan;
}

// Half of the room at most: the heap wants some.
uint64_t room_for_code(const MemoryPlan& plan, const Extent& image) {
  const uint64_t half = (plan.heap_limit - image.end) / 2, size = image.end - image.begin;
  return page_down(std::min(kCodeLimit - std::min(kCodeLimit, size), half));
}

MemoryPlan plan_private(const Extent& image, const Extent& writable, const PlanRequest& request,
                        const Layout& layout) {
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
    const uint64_t share =
        budget / power_of_two_above(request.all_cores ? request.all_cores : request.cores);
    window = std::max(window, std::min(share, 256 * kMiB));
    while (base + window > layout.end && window / 2 >= least) window /= 2;
  }
  // The window must not wrap around; it need not be aligned to its size.
  if (base + window > layout.end || window > kLayout64.end / request.cores)
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
  const uint64_t top = layout.private_stack_top();
  if (plan.stack_size_bytes < top && base + window <= top - plan.stack_size_bytes) {
    plan.config.stack_size = plan.stack_size_bytes;
    plan.config.stack_base = top - plan.stack_size_bytes;
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
  const GuestIsa* const isa = find_isa(module.isa);
  const Layout& layout = isa && isa->register_bits == 32 ? kLayout32 : kLayout64;
  check_segments(module, layout);
  Extent image, writable;
  for (const Segment& s : module.segments) {
    if (s.size_bytes == 0) continue;
    image.add(s);
    if (s.flags & kWrite) writable.add(s);
  }
  if (image.empty()) throw Error("the program has nothing to load");
  if (module.is_dynamic() && request.model == MemoryModel::kPrivate)
    throw Error(
        "a dynamically linked program needs --memory shared; link it with -static to run "
        "private copies of it");
  MemoryPlan plan = request.model == MemoryModel::kShared
                        ? plan_shared(image, request, layout)
                        : plan_private(image, writable, request, layout);
  plan.config.cores = request.cores;
  plan.first_core = request.first_core;
  plan.all_cores = request.all_cores;
  plan.config.memory_model = request.model;
  if (module.is_dynamic()) {
    plan.code_room = room_for_code(plan, image);
    plan.heap_start += plan.code_room;
  }
  return plan;
}

}  // namespace gpusim::host
