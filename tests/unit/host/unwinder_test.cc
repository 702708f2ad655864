// Stacks that a core may have been left with, without debug information: chains of frame pointers.
#include "host/run/unwinder.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "host/loader.h"
#include "host/start_state.h"
#include "tests/unit/host/toy_module.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kCaller = kToyText + 0x108, kOuter = kToyText + 0x118;

struct Machine {
  Module module = toy_module();
  MemoryPlan plan;
  std::unique_ptr<Backend> backend = make_backend("scalar");
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Unwinder> unwinder;
  uint64_t sp = 0;

  explicit Machine(MemoryModel model) {
    module.symbols.front().is_function = false;  // else its code would be followed
    module.slot_names = {{9, "sp"}, {11, "x29"}, {12, "x30"}};
    module.code.text_base = kToyText;
    module.code.uop_at.assign(0x1000 / 4, kNoUop);
    plan = plan_memory(module, {.model = model, .cores = 3});
    backend->configure(module, plan.config);
    load_image(*backend, module, plan);
    kernel = std::make_unique<Kernel>(*backend, Kernel::Config{.plan = &plan,
                                                               .module = &module,
                                                               .roots = {},
                                                               .program = "/proc/self/exe",
                                                               .note = {}});
    unwinder = std::make_unique<Unwinder>(module, *kernel, nullptr);
    sp = plan.stack_top(2) - 0x200;
    set(sp, sp, 0);
  }
  void set(uint64_t stack_pointer, uint64_t frame_pointer, uint64_t link) {
    backend->set_slot(2, 9, stack_pointer);
    backend->set_slot(2, 11, frame_pointer);
    backend->set_slot(2, 12, link);
  }
  void record(uint64_t at, uint64_t frame_pointer, uint64_t return_address) {
    const uint64_t words[] = {frame_pointer, return_address};
    REQUIRE(backend->write_memory(2, at, {reinterpret_cast<const uint8_t*>(words), sizeof words}));
  }
  CallStack stack() { return unwinder->stack(2, {.pc = kToyText + 0x100}); }
  std::vector<uint64_t> callers() {
    std::vector<uint64_t> list;
    for (const CallPlace& p : stack().places) list.push_back(p.pc);
    list.erase(list.begin());
    return list;
  }
};

TEST_CASE("chains of frame pointers are followed, and end where they make no sense") {
  for (const MemoryModel model : {MemoryModel::kShared, MemoryModel::kPrivate}) {
    Machine m(model);
    using List = std::vector<uint64_t>;
    m.record(m.sp, m.sp + 0x40, kCaller);
    m.record(m.sp + 0x40, 0, kOuter);
    CHECK(m.callers() == List{kCaller, kOuter});
    CHECK_FALSE(m.stack().bad_return);
    m.record(m.sp + 0x40, 0, kReturnAddress);  // of --entry
    CHECK(m.callers() == List{kCaller});
    CHECK_FALSE(m.stack().bad_return);
    m.record(m.sp + 0x40, 0, 0x4141414141414141);
    CHECK(m.callers() == List{kCaller});
    CHECK(m.stack().bad_return == 0x4141414141414141);
    m.record(m.sp + 0x40, m.sp + 0x40, kOuter);  // back to itself
    CHECK(m.callers() == List{kCaller, kOuter});
    m.record(m.sp + 0x40, m.sp, kOuter);  // downwards
    CHECK(m.callers() == List{kCaller, kOuter});
    // To where nothing is mapped, beyond the end of addresses, and nowhere from the beginning.
    for (const uint64_t fp :
         {uint64_t{8}, m.plan.stack_bottom(2) - 16, ~uint64_t{7}, ~uint64_t{15}}) {
      m.record(m.sp + 0x40, fp, kOuter);
      CHECK(m.callers() == List{kCaller, kOuter});
      m.set(m.sp, fp, 0);
      CHECK(m.callers().empty());
      m.set(m.sp, m.sp, 0);
    }
    // Without end: there is one all the same.
    constexpr int kStep = 16;
    m.set(m.plan.stack_bottom(2), m.plan.stack_bottom(2), 0);
    for (int i = 0; i < 200; ++i)
      m.record(m.plan.stack_bottom(2) + i * kStep, m.plan.stack_bottom(2) + (i + 1) * kStep,
               kCaller);
    CHECK(m.stack().places.size() == Unwinder::kMostCalls);
    CHECK(m.stack().is_cut);
  }
}

TEST_CASE("the link register tells a leaf's caller, elsewhere what the last call left there") {
  Machine m(MemoryModel::kShared);
  m.module.symbols.push_back(
      {.address = kToyText + 0x200, .size_bytes = 0x40, .name = "outer", .is_function = true});
  const uint64_t outer = kToyText + 0x208;
  m.record(m.sp, 0, outer);
  m.set(m.sp, m.sp, outer);  // has made its frame, and called nothing yet
  CHECK(m.stack().places.size() == 2);
  m.set(m.sp, m.sp, kToyText + 0x110);  // came back from a call
  CHECK(m.stack().places.size() == 2);
  m.record(m.sp, 0, 0);
  m.set(m.sp, m.sp, outer);
  CHECK(m.stack().places.size() == 2);
  m.set(m.sp, 0, kReturnAddress);
  CHECK(m.stack().places.size() == 1);
}

TEST_CASE("no registers and no stack lead astray") {
  const char* const wanted = std::getenv("GPUSIM_SEED");
  const uint64_t seed = wanted ? std::strtoull(wanted, nullptr, 0) : std::random_device{}();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  Machine m(MemoryModel::kPrivate);
  const auto some_word = [&]() -> uint64_t {
    switch (random() % 6) {
      case 0:
        return random();
      case 1:
        return random() % 64;
      case 2:
        return ~(random() % 64);
      case 3:
        return kToyText + random() % 0x1100;
      default:
        return m.sp - 64 + random() % 0x280;
    }
  };
  for (int round = 0; round < 2000; ++round) {
    for (uint64_t at = 0; at < 0x200; at += 16) m.record(m.sp + at, some_word(), some_word());
    m.set(some_word(), some_word(), some_word());
    const CallStack stack = m.stack();
    CHECK(stack.places.size() <= Unwinder::kMostCalls);
    for (const CallPlace& p : stack.places)
      CHECK(p.inside() - kToyText < m.module.code.uop_at.size() * 4);
  }
}

}  // namespace
}  // namespace gpusim::host
