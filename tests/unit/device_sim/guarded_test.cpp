// Native code of one core that leaves permissions to the host's page protection: what the guest may
// not access faults as in the reference, whatever the access, and wherever permissions come from.
#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "device_sim/core/guest_memory.h"
#include "device_sim/scalar/scalar_backend.h"
#include "device_sim/simd/simd_backend.h"
#include "device_sim/uir/access.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

enum Slots : Slot { kValue, kAddress, kIndex, kSum, kRounds, kOther, kSlots };
constexpr uint64_t kBase = 0x10000, kPages = 16;
constexpr uint64_t kWindows = kBase + (kPages + 4) * kPageSize;
constexpr uint32_t kWindowShift = 14;
constexpr uint8_t kReadWrite = kRead | kWrite;
constexpr Uop kEnd = {.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)};

MachineConfig config_of(uint32_t cores = 1) {
  MachineConfig config;
  config.cores = cores;
  config.linear_base = kBase;
  config.linear_size = kPages * kPageSize;
  config.window_base = kWindows;
  config.window_shift = kWindowShift;
  config.group_width = 1;
  config.native_after = 0;
  return config;
}

enum class Kind { kScalar, kGuarded, kChecked };

std::unique_ptr<Backend> make(Kind kind, const Module& module, uint32_t cores = 1) {
  if (kind == Kind::kScalar) {
    auto b = std::make_unique<ScalarBackend>();
    b->configure(module, config_of(cores));
    return b;
  }
  auto b = std::make_unique<SimdBackend>();
  if (kind == Kind::kChecked) b->limit_guarded_runs(0);
  b->configure(module, config_of(cores));
  return b;
}

// Whether this processor, and its kernel, have what it takes; the rest is tested all the same.
bool find_out_whether_guarded() {
  Module m;
  add_block(m, {{.op = Op::addi64, .d = kSum, .a = kSum, .imm = 1}, {.op = Op::jmp}});
  finish(m, kSlots);
  const auto b = make(Kind::kGuarded, m);
  b->start(0, 0);
  for (int i = 0; i < 4; ++i) b->run_slice(1000);
  return dynamic_cast<SimdBackend&>(*b).is_guarded();
}

bool can_guard() {
  static const bool can = find_out_whether_guarded();
  return can;
}

// All of what can be seen from outside when core 0 stops.
struct Seen {
  Event event;
  std::vector<uint64_t> slots, block_counts;
  ClassCounts classes{};
  std::vector<uint8_t> memory;

  bool operator==(const Seen& other) const {
    return event.status == other.event.status && event.fault == other.event.fault &&
           event.uop == other.event.uop && event.address == other.event.address &&
           slots == other.slots && block_counts == other.block_counts && classes == other.classes &&
           memory == other.memory;
  }
};
Seen run_to_event(Backend& b, uint64_t slice = 1000) {
  std::span<const Event> events;
  for (int i = 0; events.empty() && i < 100000; ++i) events = b.run_slice(slice);
  REQUIRE(events.size() == 1);
  Seen seen{.event = events[0], .block_counts = b.block_counts(), .classes = b.tally(0).classes};
  for (Slot s = 0; s < kSlots; ++s) seen.slots.push_back(b.slot(0, s));
  seen.memory.resize(kPages * kPageSize);
  CHECK(b.read_memory(0, kBase, seen.memory));
  return seen;
}

// One access per round, which goes on by a byte each time.
Module make_walk(Op op, uint64_t offset) {
  const AddressMode mode = access_info(op).mode;
  const bool is_immediate = mode == AddressMode::kImmediate;
  Uop access{.op = op, .d = kValue, .a = kAddress, .imm = is_immediate ? offset : 0};
  if (!is_immediate) access.b = kIndex;
  const Slot moving = is_immediate ? kAddress : kIndex;
  Module m;
  add_block(m,
            {{.op = Op::addi64, .d = moving, .a = moving, .imm = 1},
             {.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             access,
             {.op = Op::add64, .d = kSum, .a = kSum, .b = kValue},
             {.op = Op::bri_ne64, .a = kRounds}},
            0);
  add_block(m, {kEnd});
  finish(m, kSlots);
  return m;
}

// From a little before `border` on.
Seen walk(Kind kind, const Module& module, Op op, uint64_t border, uint64_t offset) {
  const auto b = make(kind, module);
  std::vector<uint8_t> bytes(kPages * kPageSize);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 >> 3);
  b->write_memory(0, kBase, bytes);
  b->set_permissions(0, kBase, 2 * kPageSize, kReadWrite);
  b->set_permissions(0, kBase + 2 * kPageSize, kPageSize, kRead);
  b->set_permissions(0, kBase + 4 * kPageSize, 12 * kPageSize, kReadWrite);
  b->set_permissions(0, kWindows + kPageSize, kPageSize, kReadWrite);
  constexpr uint64_t kBefore = 3000;
  const uint64_t start = border - kBefore;
  if (access_info(op).mode == AddressMode::kImmediate) {
    b->set_slot(0, kAddress, start - offset);
  } else {
    const uint64_t index = access_info(op).mode == AddressMode::kIndex32 ? ~uint64_t{0} - 5000 : 77;
    b->set_slot(0, kIndex, index);
    b->set_slot(0, kAddress, start - index);
  }
  b->set_slot(0, kRounds, 20000);
  b->set_slot(0, kValue, 0x0123456789abcdef);
  b->start(0, 0);
  const Seen seen = run_to_event(*b);
  if (kind != Kind::kScalar) {
    const auto& simd = dynamic_cast<SimdBackend&>(*b);
    if (can_guard()) {
      CHECK(simd.is_guarded() == (kind == Kind::kGuarded));
      CHECK(simd.native_instructions() > 1000);
    }
  }
  return seen;
}

TEST_CASE("accesses of every kind fault at borders of pages as in the reference") {
  const uint64_t borders[] = {kBase + 2 * kPageSize,       // may be read from there on
                              kBase + 3 * kPageSize,       // not at all
                              kBase + kPages * kPageSize,  // no memory
                              kWindows + 2 * kPageSize};   // the end of a stack
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    if (access_info(op).size == 0) continue;
    const bool is_store = shape_info(op_info(op).shape).d.reads != 0;
    for (const uint64_t border : borders) {
      if (is_store && border == borders[1]) continue;
      CAPTURE(op_info(op).name);
      CAPTURE(border);
      const Module module = make_walk(op, 24);
      const Seen expected = walk(Kind::kScalar, module, op, border, 24);
      const bool ends_there = is_store || border != borders[0];
      CHECK((expected.event.fault != Fault::kBreakpoint) == true);
      if (ends_there) CHECK(expected.event.address + 16 > border);
      CHECK(walk(Kind::kGuarded, module, op, border, 24) == expected);
      CHECK(walk(Kind::kChecked, module, op, border, 24) == expected);
    }
  }
}

// Who starts the process may have blocked it; a fault would then end the process.
TEST_CASE("faults go to their slow paths where the signal was blocked") {
  const Module module = make_walk(Op::ld64, 0);
  const uint64_t border = kBase + kPages * kPageSize;
  const Seen expected = walk(Kind::kScalar, module, Op::ld64, border, 0);
  std::optional<Seen> seen;
  std::thread([&] {
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &faults, nullptr);
    seen = walk(Kind::kGuarded, module, Op::ld64, border, 0);
  }).join();
  CHECK(*seen == expected);
}

TEST_CASE("offsets of any size, and addresses that wrap around or lie far out") {
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{1} << 18, 0 - (uint64_t{1} << 18), uint64_t{1} << 19,
        0 - (uint64_t{1} << 19), uint64_t{1} << 24, uint64_t{1} << 40, 0 - (uint64_t{1} << 40)}) {
    CAPTURE(offset);
    const Module module = make_walk(Op::ld64, offset);
    const uint64_t border = kBase + kPages * kPageSize;
    const Seen expected = walk(Kind::kScalar, module, Op::ld64, border, offset);
    CHECK(walk(Kind::kGuarded, module, Op::ld64, border, offset) == expected);
  }
  // Natively from the first round on, and then there.
  Module m;
  add_block(m,
            {{.op = Op::ld64, .d = kValue, .a = kAddress, .imm = 8},
             {.op = Op::st32, .d = kValue, .a = kAddress, .imm = 0 - uint64_t{4}},
             {.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne64, .a = kRounds}},
            0);
  add_block(m, {{.op = Op::mov, .d = kAddress, .a = kOther}, {.op = Op::jmp}}, 0);
  finish(m, kSlots);
  const uint64_t limit = kWindows + (uint64_t{1} << kWindowShift);
  for (const uint64_t far : {uint64_t{0}, 0 - uint64_t{8}, 0 - uint64_t{4}, 0 - (uint64_t{1} << 20),
                             limit - 12, limit - 8, limit, limit + 4, limit + (uint64_t{1} << 20),
                             uint64_t{1} << 46, uint64_t{1} << 47, uint64_t{1} << 63}) {
    CAPTURE(far);
    const auto go = [&](Kind kind) {
      const auto b = make(kind, m);
      b->set_permissions(0, kBase, kPageSize, kReadWrite);
      b->set_permissions(0, limit - kPageSize, kPageSize, kReadWrite);
      b->set_slot(0, kAddress, kBase + 100);
      b->set_slot(0, kOther, far);
      b->set_slot(0, kRounds, 20000);
      b->start(0, 0);
      return run_to_event(*b);
    };
    CHECK(go(Kind::kGuarded) == go(Kind::kScalar));
  }
}

TEST_CASE("permissions that change while code is hot, and what the host does meanwhile") {
  const Module module = make_walk(Op::st32, 0);
  const auto go = [&](Kind kind) {
    const auto b = make(kind, module);
    std::vector<Seen> all;
    b->set_permissions(0, kBase, kPages * kPageSize, kReadWrite);
    b->set_slot(0, kRounds, ~uint64_t{0});
    b->start(0, 0);
    for (uint64_t i = 1; i < 40; ++i) {
      const uint64_t page = kBase + (1 + i % (kPages - 2)) * kPageSize;
      b->set_slot(0, kAddress, page - 2000);
      const std::array<uint8_t, 3> rights = {0, kRead, kRead | kExecute};
      b->set_permissions(0, page, kPageSize, rights[i % 3]);
      all.push_back(run_to_event(*b));
      const uint32_t uop = all.back().event.uop;
      // The host may do there what it wants, and the guest still may not.
      const std::vector<uint8_t> bytes(300, static_cast<uint8_t>(i));
      CHECK(b->write_memory(0, page + 100, bytes));
      CHECK(b->fill_zero(0, page + 200, 50));
      uint64_t visited = 0;
      dynamic_cast<MachineState&>(*b).visit_linear(
          [&](uint64_t, std::span<const uint8_t> p) { visited += p.size(); });
      CHECK(visited >= kPageSize);
      b->start(0, uop);
      all.push_back(run_to_event(*b));
      b->set_permissions(0, page, kPageSize, kReadWrite);
      b->start(0, uop);
    }
    if (kind == Kind::kGuarded && can_guard()) CHECK(dynamic_cast<SimdBackend&>(*b).is_guarded());
    return all;
  };
  const std::vector<Seen> expected = go(Kind::kScalar);
  CHECK(go(Kind::kGuarded) == expected);
  CHECK(go(Kind::kChecked) == expected);
}

TEST_CASE("the host may read and write no bytes at any address") {
  const Module module = make_walk(Op::st32, 0);
  const auto b = make(Kind::kGuarded, module);
  b->set_permissions(0, kBase, kPages * kPageSize, kReadWrite);
  b->set_slot(0, kRounds, ~uint64_t{0});
  b->set_slot(0, kAddress, kBase);
  b->start(0, 0);
  run_to_event(*b);
  if (can_guard()) CHECK(dynamic_cast<SimdBackend&>(*b).is_guarded());
  for (const uint64_t address : {uint64_t{1}, uint64_t{0xffffffff}, ~uint64_t{0}}) {
    CAPTURE(address);
    CHECK(b->read_memory(0, address, {}) == b->write_memory(0, address, {}));
  }
}

TEST_CASE("where a process may have few mappings, code looks permissions up") {
  const Module module = make_walk(Op::ld64, 0);
  const auto go = [&](Kind kind) {
    const auto b = make(kind == Kind::kScalar ? kind : Kind::kGuarded, module);
    SimdBackend* const simd = dynamic_cast<SimdBackend*>(b.get());
    // Nothing; all; at first enough. After that every other page has other permissions.
    if (simd) simd->limit_guarded_runs(8);
    b->set_permissions(0, kBase, kPages * kPageSize, kReadWrite);
    b->set_slot(0, kRounds, ~uint64_t{0});
    b->set_slot(0, kAddress, kBase);
    b->start(0, 0);
    for (int i = 0; i < 3; ++i) CHECK(b->run_slice(1000).empty());
    if (simd && can_guard()) CHECK(simd->is_guarded());
    for (uint64_t page = 1; page < kPages; page += 2)
      b->set_permissions(0, kBase + page * kPageSize, kPageSize, kRead);
    b->set_permissions(0, kBase + (kPages - 2) * kPageSize, kPageSize, 0);
    const Seen seen = run_to_event(*b);
    if (simd) {
      CHECK_FALSE(simd->is_guarded());
      if (can_guard()) CHECK(simd->native_instructions() > 100000);
    }
    return seen;
  };
  CHECK(go(Kind::kGuarded) == go(Kind::kScalar));
}

TEST_CASE("pages that may be written and not read are not left to the host") {
  const Module module = make_walk(Op::st8, 0);
  const auto go = [&](Kind kind) {
    const auto b = make(kind, module);
    b->set_permissions(0, kBase, 2 * kPageSize, kReadWrite);
    b->set_slot(0, kRounds, ~uint64_t{0});
    b->set_slot(0, kAddress, kBase);
    b->start(0, 0);
    for (int i = 0; i < 2; ++i) CHECK(b->run_slice(1000).empty());
    b->set_permissions(0, kBase + kPageSize, kPageSize, kWrite);
    return run_to_event(*b);
  };
  CHECK(go(Kind::kGuarded) == go(Kind::kScalar));
}

TEST_CASE("a core that watches a word goes on when the word may no longer be read") {
  Module m;
  add_block(m, {{.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = 1}, {.op = Op::jmp}}, 0);
  const auto waiter = static_cast<uint32_t>(m.uops.size());
  add_block(m, {{.op = Op::ldu32, .d = kValue, .a = kAddress}, {.op = Op::bri_ne64, .a = kValue}},
            waiter);
  // The monitor, and in the slot behind it what was read.
  add_block(m,
            {{.op = Op::mov, .d = kIndex, .a = kAddress},
             {.op = Op::mov, .d = kIndex + 1, .a = kValue},
             {.op = Op::give_way, .a = kIndex, .aux = static_cast<uint8_t>(Turn::kWaitForEvent)}},
            waiter);
  finish(m, kSlots);
  const auto b = make(Kind::kGuarded, m, 2);
  b->set_permissions(0, kBase, kPageSize, kReadWrite);
  for (uint32_t core = 0; core < 2; ++core) {
    b->set_slot(core, kAddress, kBase);
    b->start(core, core == 0 ? 0 : waiter);
  }
  for (int i = 0; i < 20; ++i) CHECK(b->run_slice(1000).empty());
  if (can_guard()) CHECK(dynamic_cast<SimdBackend&>(*b).is_guarded());
  b->set_permissions(0, kBase, kPageSize, 0);
  std::span<const Event> events;
  for (int i = 0; events.empty() && i < 10; ++i) events = b->run_slice(1000);
  REQUIRE(events.size() == 1);
  CHECK(events[0].core == 1);
  CHECK(events[0].fault == Fault::kLoadAccess);
  CHECK(events[0].address == kBase);
}

// Random loads and stores around a few bases, so that checks of some serve others, in pages with
// random permissions that change at random.
Module random_accesses(std::mt19937_64& random) {
  std::vector<Op> ops;
  for (int i = 0; i < kOpCount; ++i)
    if (access_info(static_cast<Op>(i)).size != 0) ops.push_back(static_cast<Op>(i));
  Module m;
  const auto access = [&] {
    Uop u{.op = ops[random() % ops.size()],
          .d = kValue,
          .a = random() % 2 == 0 ? kAddress : kOther,
          .imm = random() % 4};
    if (access_info(u.op).mode == AddressMode::kImmediate)
      u.imm = random() % 64 - 32 + (random() % 8 == 0 ? kPageSize : 0);
    else
      u.b = kIndex;
    return u;
  };
  const Uop step{.op = Op::addi64, .d = kAddress, .a = kAddress, .imm = random() % 16};
  const Uop copy = random() % 2 == 0 ? Uop{.op = Op::mov, .d = kOther, .a = kAddress}
                                     : Uop{.op = Op::addi64, .d = kOther, .a = kOther, .imm = 3};
  add_block(m,
            {access(),
             access(),
             step,
             access(),
             copy,
             access(),
             access(),
             {.op = Op::add64, .d = kSum, .a = kSum, .b = kValue},
             access(),
             {.op = Op::addi64, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}},
             {.op = Op::bri_ne64, .a = kRounds}},
            0);
  add_block(m, {kEnd});
  finish(m, kSlots);
  return m;
}

std::vector<Seen> run_random(Kind kind, const Module& module, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto b = make(kind, module);
  const auto rights = [&] {
    constexpr uint8_t kCode = kRead | kExecute;
    return std::array<uint8_t, 6>{
        0, kRead, kReadWrite, kReadWrite, kReadWrite, kCode}[random() % 6];
  };
  for (uint64_t page = 0; page < kPages; ++page)
    b->set_permissions(0, kBase + page * kPageSize, kPageSize,
                       page % 4 == 0 ? rights() : kReadWrite);
  b->set_permissions(0, kWindows, 2 * kPageSize, kReadWrite);
  b->set_slot(0, kRounds, 4000);
  std::vector<Seen> all;
  uint32_t uop = 0;
  for (int i = 0; i < 20; ++i) {
    const auto anywhere = [&] { return kBase + random() % ((kPages + 6) * kPageSize); };
    b->set_slot(0, kAddress, anywhere());
    b->set_slot(0, kOther, anywhere());
    b->set_slot(0, kIndex, random() % 128 - 64);
    b->start(0, uop);
    all.push_back(run_to_event(*b, 300));
    uop = all.back().event.fault == Fault::kBreakpoint ? 0 : all.back().event.uop;
    if (uop == 0) b->set_slot(0, kRounds, 4000);
    b->set_permissions(0, kBase + random() % kPages * kPageSize, kPageSize * (1 + random() % 3),
                       rights());
  }
  return all;
}

uint64_t seed_from_environment() {
  const char* const text = std::getenv("GPUSIM_SEED");
  return text ? std::strtoull(text, nullptr, 0) : std::random_device()();
}

TEST_CASE("random accesses in pages with random permissions do as in the reference") {
  const uint64_t first = seed_from_environment();
  for (uint64_t seed = first; seed < first + 60; ++seed) {
    INFO("replay: GPUSIM_SEED=" << seed);
    std::mt19937_64 random(seed);
    const Module module = random_accesses(random);
    const std::vector<Seen> expected = run_random(Kind::kScalar, module, seed);
    CHECK(run_random(Kind::kGuarded, module, seed) == expected);
    CHECK(run_random(Kind::kChecked, module, seed) == expected);
  }
}

}  // namespace
}  // namespace gpusim
