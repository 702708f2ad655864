// What a backend does for all cores at once is what it does for one after the other.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "device_sim/core/backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

constexpr uint64_t kNowhere = 0x7000;
enum Slots : Slot { kLink, kRounds, kSlots };

// Counts rounds down, and returns to where kLink says.
Module make_kernel() {
  Module m;
  add_block(m,
            {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne64, .a = kRounds}},
            0);
  add_block(m, {{.op = Op::jmp_reg, .a = kLink, .aux = static_cast<uint8_t>(JumpHint::kReturn)}});
  finish(m, kSlots);
  return m;
}

std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (const BackendInfo& info : all_backends())
    if (std::string why; info.available(&why)) names.push_back(info.name);
  return names;
}

struct Outcome {
  std::vector<uint32_t> ended;  // cores, in the order of their events
  size_t events = 0;
  std::vector<ClassCounts> tallies;
  ClassCounts sum{};
  bool operator==(const Outcome& o) const {
    return ended == o.ended && tallies == o.tallies && sum == o.sum;
  }
};

// Core c counts down from rounds(c).
template <class Rounds>
Outcome run(Backend& b, uint32_t cores, Rounds rounds, bool all_at_once) {
  b.set_slots(kLink, {kNowhere});
  for (uint32_t core = 0; core < cores; ++core) b.set_slot(core, kRounds, rounds(core));
  if (all_at_once)
    b.start_all(0);
  else
    for (uint32_t core = 0; core < cores; ++core) b.start(core, 0);
  CHECK(b.runnable() == cores);
  Outcome out;
  while (b.runnable() != 0) {
    const std::span<const Event> events = b.run_slice(1 << 16);
    out.events += events.size();
    for_each_core(events, [&](const Event& e) {
      CHECK(e.status == CoreStatus::kJump);
      CHECK(e.address == kNowhere);
      CHECK(e.count == 1);
      out.ended.push_back(e.core);
    });
  }
  for (uint32_t core = 0; core < cores; ++core) out.tallies.push_back(b.tally(core).classes);
  out.sum = b.tally_of_all().classes;
  return out;
}

}  // namespace

TEST_CASE("all cores at once, as one after the other") {
  const Module module = make_kernel();
  const auto same = [](uint32_t) { return uint64_t{5}; };
  const auto different = [](uint32_t core) { return uint64_t{1} + core * 7 % 5; };
  for (const std::string& name : backends())
    for (const uint32_t cores : {1u, 63u, 64u, 200u})
      for (const bool are_same : {true, false}) {
        CAPTURE(name);
        CAPTURE(cores);
        CAPTURE(are_same);
        const auto rounds = [&](uint32_t c) { return are_same ? same(c) : different(c); };
        MachineConfig config;
        config.cores = cores;
        config.linear_size = config.window_base = 1 << 20;
        const std::unique_ptr<Backend> b = make_backend(name);
        b->configure(module, config);
        const Outcome apart = run(*b, cores, rounds, false);
        CHECK(apart.ended.size() == cores);
        for (uint32_t core = 0; core < cores; ++core) CHECK(apart.ended[core] == core);
        for (const bool resets : {true, false}) {  // without: as the run before left them
          if (resets) b->reset(0);
          const Outcome together = run(*b, cores, rounds, true);
          if (resets) CHECK(together == apart);
          CHECK(together.ended == apart.ended);
          for (size_t c = 0; c < apart.sum.size(); ++c)
            CHECK(together.sum[c] == (resets ? 1 : 2) * apart.sum[c]);
        }
      }
}

TEST_CASE("cores are started that run and that wait") {
  const Module module = make_kernel();
  for (const std::string& name : backends()) {
    CAPTURE(name);
    constexpr uint32_t kCores = 100;
    MachineConfig config;
    config.cores = kCores;
    config.linear_size = config.window_base = 1 << 20;
    const std::unique_ptr<Backend> b = make_backend(name);
    b->configure(module, config);
    b->set_slots(kLink, {kNowhere});
    b->set_slots(kRounds, {1'000'000});
    for (uint32_t core = 0; core < kCores; core += 3) b->start(core, 0);
    CHECK(b->run_slice(1000).empty());
    b->set_slots(kRounds, {1});
    b->start_all(0);
    CHECK(b->runnable() == kCores);
    uint32_t ended = 0;
    while (b->runnable() != 0) for_each_core(b->run_slice(1000), [&](const Event&) { ++ended; });
    CHECK(ended == kCores);
  }
}

// 16,384 events of a kernel that every core returns from would cost more than the kernel.
TEST_CASE("cores of the simd backend that return together make few events") {
  std::string why_not;
  for (const BackendInfo& info : all_backends())
    if (std::string("simd") == info.name && !info.available(&why_not)) return;
  const Module module = make_kernel();
  constexpr uint32_t kCores = 640;
  MachineConfig config;
  config.cores = kCores;
  config.linear_size = config.window_base = 1 << 20;
  const std::unique_ptr<Backend> b = make_backend("simd");
  b->configure(module, config);
  CHECK(run(*b, kCores, [](uint32_t) { return uint64_t{3}; }, true).events == kCores / 64);
}

}  // namespace gpusim
