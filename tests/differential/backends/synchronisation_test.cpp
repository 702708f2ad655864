// Cores that wait for each other, in groups and across them: every backend must get through,
// whatever the order in which it runs cores, and mutual exclusion must hold.
#include <doctest/doctest.h>

#include <map>

#include "device_sim/self_test/waiting_programs.h"
#include "tests/differential/backends/run_case.h"

namespace gpusim::difftest {
namespace {

using namespace self_test;

Case synchronisation_case(Module module, uint32_t cores, uint64_t rounds) {
  Case c;
  c.module = std::move(module);
  c.config.cores = cores;
  c.config.linear_base = kMemory;
  c.config.linear_size = 4096;
  c.config.window_base = 0x100000;
  c.config.window_shift = 12;
  c.slots.resize(kWaitingSlots);
  c.slots[kRounds].base = rounds;
  c.slots[kCores].base = cores;
  c.slots[kLast].base = cores - 1;
  c.slots[kCoreId] = {0, 1, {}};
  return c;
}

struct Outcome {
  uint64_t count = 0;
  std::string trouble;
};
Outcome run_to_end(const Case& c, const RunConfig& run) {
  MachineConfig config = c.config;
  config.group_width = run.group_width;
  config.threads = run.threads;
  config.native_after = run.native_after;
  config.seed = run.seed;
  const auto b = make_backend(run.backend);
  b->configure(c.module, config);
  b->set_permissions(0, kMemory, 4096, kRead | kWrite);
  for (uint32_t core = 0; core < config.cores; ++core) {
    for (size_t s = 0; s < c.slots.size(); ++s)
      b->set_slot(core, static_cast<Slot>(s), c.slots[s].at(core));
    b->start(core, 0);
  }
  Outcome out;
  uint64_t left = 20'000'000;  // core slices
  while (b->runnable() != 0) {
    if (left < b->runnable()) return {0, "does not end"};
    left -= b->runnable();
    for (const Event& e : b->run_slice(run.slice)) {
      if (e.status != CoreStatus::kFault || e.fault != Fault::kBreakpoint)
        out.trouble = "core " + std::to_string(e.core) + " stopped at " + print_uop(c.module, e.uop);
      b->stop(e.core);
    }
  }
  uint8_t bytes[8];
  b->read_memory(0, kCount, bytes);
  for (int i = 7; i >= 0; --i) out.count = out.count << 8 | bytes[i];
  return out;
}

struct Program {
  std::string name;
  Module (*make)(How how);
  bool rounds;
};

TEST_CASE("cores that wait for each other all get through") {
  const Program kPrograms[] = {{"ticket lock", ticket_lock, true},
                                   {"swap lock", swap_lock, true},
                                   {"exclusive counter", exclusive_counter, true},
                                   {"barrier", barrier, true},
                                   {"relay", relay, false}};
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  std::vector<std::string> backends = backends_under_test();
  backends.push_back("scalar");
  for (const Program& p : kPrograms) {
    for (const std::string& backend : backends) {
      for (uint32_t i = 0; i < 24; ++i) {
        // Backends hand over slowly between cores that do not give way: fewer of them.
        const How how = rng.pick({How::kSpin, How::kYield, How::kWatch, How::kEvent});
        const uint32_t cores = gives_way(how) ? rng.pick({1u, 2u, 3u, 17u, 64u, 65u, 200u})
                                         : rng.pick({1u, 2u, 3u, 7u, 20u});
        const uint64_t rounds = p.rounds ? 1 + rng.below(gives_way(how) && cores < 64 ? 10 : 3) : 1;
        RunConfig run{.backend = backend};
        run.group_width = rng.pick({1u, 2u, 8u, 16u, 64u, 64u});
        run.threads = rng.pick({1u, 2u, 4u});
        // A core that neither gives way nor gets what it waits for keeps the machine for a slice.
        run.slice = gives_way(how) ? rng.pick<uint64_t>({1, 7, 100, 10000, uint64_t{1} << 40})
                              : rng.pick<uint64_t>({cores > 3 ? 50u : 1u, 200, 1000, 20000});
        run.native_after = rng.pick({0u, MachineConfig::kNeverNative});
        if (rng.coin()) run.seed = 1 + rng.below(1000);
        CAPTURE(p.name);
        CAPTURE(print_run(run));
        CAPTURE(cores);
        CAPTURE(rounds);
        CAPTURE(int(how));
        const Outcome out = run_to_end(synchronisation_case(p.make(how), cores, rounds), run);
        CHECK(out.trouble == "");
        CHECK(out.count == cores * rounds);
      }
    }
  }
}

}  // namespace
}  // namespace gpusim::difftest
