#include "host/memory_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"
#include "tests/unit/host/toy_module.h"

namespace gpusim::host {
namespace {

TEST_CASE("shared: one zone for image and heap, one stack per core with a guard page") {
  const Module m = toy_module();
  for (const uint32_t cores : {1u, 7u, 64u, 1000u, 4096u, 65536u, 1u << 20}) {
    const MemoryPlan plan = plan_memory(m, {.cores = cores});
    CHECK(plan.config.linear_base == kToyText);
    CHECK(plan.heap_start == 0x414000);
    CHECK(plan.heap_limit == kToyText + plan.config.linear_size);
    CHECK(plan.config.window_base >= plan.heap_limit);
    CHECK(plan.stack_top(cores - 1) ==
          plan.config.window_base + (uint64_t{cores} << plan.config.window_shift));
    CHECK(plan.stack_bottom(0) == plan.config.window_base + kPageSize);
    const uint64_t stack = cores <= 4096 ? 8u << 20 : cores == 65536 ? 512u << 10 : 64u << 10;
    CHECK(plan.stack_size_bytes == stack - kPageSize);
  }
}

TEST_CASE("addresses of stacks have ten hexadecimal digits, as under qemu-aarch64") {
  const auto has_ten = [](uint64_t address) { return address >> 36 != 0 && address >> 40 == 0; };
  for (const MemoryModel model : {MemoryModel::kShared, MemoryModel::kPrivate}) {
    for (const uint32_t cores : {1u, 7u, 64u, 65536u, 1u << 20}) {
      const MemoryPlan plan = plan_memory(toy_module(), {.model = model, .cores = cores});
      for (const uint32_t core : {0u, cores - 1}) {
        CHECK(has_ten(plan.stack_bottom(core)));
        CHECK(has_ten(plan.stack_top(core)));
      }
      if (cores <= 64) CHECK(plan.stack_top(0) == 0x5500801000);
    }
  }
}

TEST_CASE("stacks lie higher where they would not fit, or not beside the heap") {
  constexpr uint64_t kGiB = uint64_t{1} << 30, kZoneEnd = uint64_t{1} << 40;
  for (const PlanRequest& request : {PlanRequest{.cores = 1u << 10, .stack_size_bytes = kGiB},
                                     PlanRequest{.memory_size_bytes = 400 * kGiB}}) {
    const MemoryPlan plan = plan_memory(toy_module(), request);
    CHECK(plan.stack_bottom(0) >= kZoneEnd);
    CHECK(plan.stack_bottom(0) >= plan.heap_limit);
    CHECK(plan.stack_top(0) - plan.stack_bottom(0) == plan.stack_size_bytes);
  }
  const MemoryPlan plan =
      plan_memory(toy_module(), {.model = MemoryModel::kPrivate, .memory_size_bytes = 400 * kGiB});
  CHECK(plan.config.stack_size == 0);
  CHECK(plan.stack_top(0) == kToyData + 512 * kGiB);
  CHECK(plan.stack_bottom(0) > plan.heap_limit);
}

// Addresses of memory may not leave 32 bits, nor come to the first or the last page: there, sums
// wrap.
TEST_CASE("everything of a 32-bit program lies in 32 bits") {
  constexpr uint64_t kEnd = 0xfffff000;
  for (const uint64_t text : {0x10000u, 0x3ff00000u, 0x80000000u, 0xf0000000u}) {
    for (const uint32_t cores : {1u, 20u, 64u, 1000u, 4096u}) {
      for (const MemoryModel model : {MemoryModel::kShared, MemoryModel::kPrivate}) {
        Module m = toy_module();
        m.isa = "riscv32";
        for (Segment& s : m.segments) s.address += text - kToyText;
        INFO("text ", text, " cores ", cores, " model ", static_cast<int>(model));
        const MemoryPlan plan = plan_memory(m, {.model = model, .cores = cores});
        CHECK(plan.heap_limit >= plan.heap_start + (256u << 10));
        CHECK(plan.heap_limit <= kEnd);
        for (const uint32_t core : {0u, cores - 1}) {
          CHECK(plan.stack_bottom(core) >= 0x1000);
          CHECK(plan.stack_top(core) <= kEnd);
          CHECK((plan.stack_bottom(core) > plan.heap_limit || plan.stack_top(core) <= text));
        }
        if (text == 0x10000 && cores == 1) CHECK(plan.stack_top(0) == 0x40801000);
      }
    }
  }
  Module m = toy_module();
  m.isa = "riscv32";
  CHECK_THROWS_AS(plan_memory(m, {.cores = 1000, .stack_size_bytes = 8 << 20}), Error);
  CHECK_THROWS_AS(plan_memory(m, {.cores = 1, .memory_size_bytes = uint64_t{4} << 30}), Error);
  CHECK(plan_memory(m, {.cores = 1, .memory_size_bytes = uint64_t{2} << 30}).heap_limit ==
        kToyText + (uint64_t{2} << 30));
}

TEST_CASE("memory that is really allocated stays within a few GiB") {
  const Module m = toy_module();
  for (const MemoryModel model : {MemoryModel::kShared, MemoryModel::kPrivate}) {
    for (const uint32_t cores : {1u, 1024u, 65536u, 262144u}) {
      const MemoryPlan plan =
          plan_memory(m, {.model = model, .cores = cores, .memory_is_real = true});
      const uint64_t windows = uint64_t{cores} << plan.config.window_shift;
      const uint64_t least = model == MemoryModel::kShared ? 16u << 10 : 512u << 10;
      CHECK(windows <= std::max(uint64_t{4} << 30, cores * least));
      CHECK(plan.config.linear_size <= uint64_t{4} << 30);
    }
  }
  // 149 threads with stacks of 8 MiB.
  const MemoryPlan plan = plan_memory(m, {.cores = 150, .memory_is_real = true});
  CHECK(plan.heap_limit - plan.heap_start >= 149 * (uint64_t{8} << 20));
  CHECK(plan_memory(m, {.cores = 1, .memory_is_real = true}).config.linear_size == uint64_t{1}
                                                                                       << 30);
}

TEST_CASE("memory that costs nothing until it is touched has room for stacks of many threads") {
  const Module m = toy_module();
  constexpr uint64_t kGiB = uint64_t{1} << 30, kStack = uint64_t{8} << 20;
  CHECK(plan_memory(m, {.cores = 1}).config.linear_size == 4 * kGiB);
  for (const uint32_t cores : {64u, 512u, 1024u, 4032u}) {
    const MemoryPlan plan = plan_memory(m, {.cores = cores});
    CHECK(plan.heap_limit - plan.heap_start >= cores * kStack);
    CHECK(plan.heap_limit <= plan.config.window_base);
  }
  CHECK(plan_memory(m, {.cores = 64}).config.linear_size == 6 * kGiB);
  CHECK(plan_memory(m, {.cores = 1u << 20}).config.linear_size == 128 * kGiB);
}

TEST_CASE("private: windows from the first writable page, as large as the cores allow") {
  const Module m = toy_module();
  uint64_t last = ~uint64_t{0};
  for (const uint32_t cores : {1u, 64u, 1000u, 4096u, 65536u, 262144u}) {
    const MemoryPlan plan = plan_memory(m, {.model = MemoryModel::kPrivate, .cores = cores});
    CHECK(plan.config.linear_base == kToyText);
    CHECK(plan.config.window_base == kToyData);
    CHECK(plan.config.linear_base + plan.config.linear_size == kToyData);
    const uint64_t window = uint64_t{1} << plan.config.window_shift;
    CHECK(window <= last);
    last = window;
    CHECK(plan.config.stack_size == plan.stack_size_bytes);
    CHECK(plan.stack_bottom(0) == plan.config.stack_base);
    CHECK(plan.stack_top(cores - 1) == plan.stack_top(0));
    CHECK(plan.heap_limit + kPageSize + plan.stack_size_bytes == kToyData + window);
    CHECK(kToyData + window <= plan.stack_bottom(0));
    CHECK(plan.heap_limit - plan.heap_start >= 256 * 1024);
    CHECK(plan.stack_size_bytes >= 64 * 1024);
  }
}

TEST_CASE("what does not fit is an error that says what to do") {
  const Module m = toy_module();
  CHECK_THROWS_AS(plan_memory(m, {.cores = 1, .memory_size_bytes = 4096}), Error);
  CHECK_THROWS_AS(plan_memory(m, {.model = MemoryModel::kPrivate, .memory_size_bytes = 4096}),
                  Error);
  CHECK_THROWS_AS(plan_memory(m, {.cores = 1u << 24, .stack_size_bytes = uint64_t{1} << 30}),
                  Error);
  CHECK_THROWS_AS(plan_memory(m, {.model = MemoryModel::kPrivate,
                                  .cores = 1u << 24,
                                  .memory_size_bytes = uint64_t{1} << 30}),
                  Error);
  Module high = toy_module();
  high.segments[1].address = ~uint64_t{0} - 0x100;
  CHECK_THROWS_AS(plan_memory(high, {}), Error);
  CHECK_THROWS_AS(plan_memory(Module{}, {}), Error);
}

}  // namespace
}  // namespace gpusim::host
