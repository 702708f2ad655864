// Cores that wait for each other, in groups and across them: every backend must get through,
// whatever the order in which it runs cores, and mutual exclusion must hold.
#include <doctest/doctest.h>

#include <map>

#include "tests/differential/backends/run_case.h"

namespace gpusim::difftest {
namespace {

constexpr uint64_t kMemory = 0x10000;
// Each on a cache line of its own.
constexpr uint64_t kNext = kMemory, kServing = kMemory + 64, kCount = kMemory + 128,
                   kArrived = kMemory + 192, kGeneration = kMemory + 256;

// Assembles micro-ops; every jump ends a block of one instruction per micro-op.
class Assembler {
 public:
  Assembler() { begin(); }
  void op(Op op, Slot d, Slot a, Slot b = 0, Slot c = 0, uint64_t imm = 0, uint8_t aux = 0) {
    module_.uops.push_back({.op = op, .d = d, .a = a, .b = b, .c = c, .aux = aux, .imm = imm});
  }
  void konst(Slot d, uint64_t value) { op(Op::konst, d, 0, 0, 0, value); }
  uint32_t label() {  // a block starts here
    if (module_.uops.size() != block_.first_uop) end(Op::jmp, 0, 0, 0, next());
    return block_.first_uop;
  }
  uint32_t next() const { return static_cast<uint32_t>(module_.uops.size()) + 1; }
  uint32_t end(Op op, Slot a, Slot b, uint16_t imm16, uint32_t target, uint8_t aux = 0) {
    const auto number = static_cast<uint32_t>(module_.blocks.size());
    module_.uops.push_back({.op = op, .a = a, .b = b, .aux = aux, .imm16 = imm16,
                            .imm = Uop::pack_target(number, target)});
    block_.uop_count = static_cast<uint32_t>(module_.uops.size()) - block_.first_uop;
    block_.insn_count = block_.uop_count;
    module_.blocks.push_back(block_);
    begin();
    return static_cast<uint32_t>(module_.uops.size()) - 1;
  }
  void aim(uint32_t branch, uint32_t target) {
    Uop& u = module_.uops[branch];
    u.imm = Uop::pack_target(u.block(), target);
  }
  Module take(uint32_t slots) {
    end(Op::trap, 0, 0, 0, 0, static_cast<uint8_t>(Fault::kBreakpoint));
    module_.slot_count = slots;
    module_.uop_block.assign(module_.uops.size(), 0);
    module_.uop_insn.assign(module_.uops.size(), 0);
    return std::move(module_);
  }

 private:
  void begin() {
    block_ = Block{};
    block_.first_uop = static_cast<uint32_t>(module_.uops.size());
  }
  Module module_;
  Block block_;
};

enum Slots : Slot {
  kA, kB, kC, kT, kOne, kRounds, kMark, kSeen, kCores, kLast, kCoreId, kMonitor, kMonitorData, kSlots
};

// What a waiting core does before it looks again.
enum class How {
  kSpin,
  kYield,
  kWatch,  // waits for a store to the word that it looked at
  kEvent,  // waits for a signalled event
};
bool gives_way(How how) { return how != How::kSpin; }

// The core saw in `seen` what lay at the address in `place`.
void wait(Assembler& a, How how, Slot place, Slot seen, uint32_t again) {
  if (how == How::kSpin) {
    a.end(Op::jmp, 0, 0, 0, again);
    return;
  }
  if (how == How::kWatch) {
    a.op(Op::mov, kMonitor, place);
    a.op(Op::mov, kMonitorData, seen);
  } else {
    a.konst(kMonitor, kNoMonitor);
  }
  const Turn turn = how == How::kYield ? Turn::kYield : Turn::kWaitForEvent;
  a.end(Op::give_way, kMonitor, 0, 0, again, static_cast<uint8_t>(turn));
}

// After a store that others may wait for.
void tell(Assembler& a, How how) {
  if (how == How::kEvent)
    a.end(Op::give_way, kMonitor, 0, 0, a.next(), static_cast<uint8_t>(Turn::kSignalEvent));
}

void repeat(Assembler& a, uint32_t start) {
  a.op(Op::addi64, kRounds, kRounds, 0, 0, ~uint64_t{0});
  a.end(Op::bri_ne64, kRounds, 0, 0, start);
}

void increment_count(Assembler& a) {
  a.konst(kA, kCount);
  a.op(Op::ld64, kB, kA);
  a.op(Op::addi64, kB, kB, 0, 0, 1);
  a.op(Op::st64, kB, kA);
}

Module ticket_lock(How how) {
  Assembler a;
  a.konst(kOne, 1);
  const uint32_t start = a.label();
  a.konst(kA, kNext);
  a.op(Op::amo_add, kT, kA, kOne, 0, 0, 3);
  a.konst(kC, kServing);
  const uint32_t spin = a.label();
  a.op(Op::ld64, kB, kC);
  const uint32_t got = a.end(Op::br_eq64, kB, kT, 0, 0);
  wait(a, how, kC, kB, spin);
  a.aim(got, a.label());
  increment_count(a);
  a.op(Op::addi64, kT, kT, 0, 0, 1);
  a.op(Op::st64, kT, kC);
  tell(a, how);
  repeat(a, start);
  return a.take(kSlots);
}

Module swap_lock(How how) {
  Assembler a;
  a.konst(kOne, 1);
  a.konst(kC, kNext);
  const uint32_t start = a.label();
  a.op(Op::amo_swp, kB, kC, kOne, 0, 0, 2);
  const uint32_t got = a.end(Op::bri_eq64, kB, 0, 0, 0);
  wait(a, how, kC, kB, start);
  a.aim(got, a.label());
  increment_count(a);
  a.konst(kB, 0);
  a.op(Op::st32, kB, kC);
  tell(a, how);
  repeat(a, start);
  return a.take(kSlots);
}

Module exclusive_counter(How how) {
  Assembler a;
  a.konst(kA, kCount);
  const uint32_t start = a.label();
  a.op(Op::mov, kMark, kA);
  a.op(Op::ld64, kSeen, kA);
  a.op(Op::addi64, kB, kSeen, 0, 0, 1);
  a.op(Op::stx, kT, kA, kB, kMark, 0, 3);
  const uint32_t done = a.end(Op::bri_eq64, kT, 0, 0, 0);
  wait(a, how, kA, kSeen, start);
  a.aim(done, a.label());
  tell(a, how);
  repeat(a, start);
  return a.take(kSlots);
}

// Rounds of: arrive; the last one opens the next generation. Core 0 is alone between two barriers
// to see that all had arrived.
Module barrier(How how) {
  Assembler a;
  a.konst(kOne, 1);
  const uint32_t start = a.label();
  a.konst(kA, kCount);
  a.op(Op::amo_add, kB, kA, kOne, 0, 0, 3);
  a.konst(kC, kGeneration);
  a.op(Op::ld64, kT, kC);
  a.konst(kA, kArrived);
  a.op(Op::amo_add, kB, kA, kOne, 0, 0, 3);
  a.op(Op::sub64, kB, kB, kLast);
  const uint32_t last = a.end(Op::bri_eq64, kB, 0, 0, 0);
  const uint32_t spin = a.label();
  a.op(Op::ld64, kB, kC);
  const uint32_t open = a.end(Op::br_ne64, kB, kT, 0, 0);
  wait(a, how, kC, kB, spin);
  a.aim(last, a.label());
  a.konst(kB, 0);
  a.op(Op::st64, kB, kA);
  a.op(Op::addi64, kT, kT, 0, 0, 1);
  a.op(Op::st64, kT, kC);
  tell(a, how);
  a.aim(open, a.label());
  // All cores of this round have counted: count >= (rounds so far) * cores.
  a.konst(kA, kCount);
  a.op(Op::ld64, kB, kA);
  a.op(Op::add64, kSeen, kSeen, kCores);
  const uint32_t fine = a.end(Op::br_geu64, kB, kSeen, 0, 0);
  a.end(Op::trap, 0, 0, 0, 0, static_cast<uint8_t>(Fault::kUndefined));
  a.aim(fine, a.label());
  repeat(a, start);
  return a.take(kSlots);
}

// Core i waits for core i - 1: the order in which groups run must not matter.
Module relay(How how) {
  Assembler a;
  a.konst(kC, kCount);
  const uint32_t spin = a.label();
  a.op(Op::ld64, kB, kC);
  const uint32_t mine = a.end(Op::br_eq64, kB, kCoreId, 0, 0);
  wait(a, how, kC, kB, spin);
  a.aim(mine, a.label());
  a.op(Op::addi64, kB, kB, 0, 0, 1);
  a.op(Op::st64, kB, kC);
  tell(a, how);
  return a.take(kSlots);
}

Case synchronisation_case(Module module, uint32_t cores, uint64_t rounds) {
  Case c;
  c.module = std::move(module);
  c.config.cores = cores;
  c.config.linear_base = kMemory;
  c.config.linear_size = 4096;
  c.config.window_base = 0x100000;
  c.config.window_shift = 12;
  c.slots.resize(kSlots);
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
