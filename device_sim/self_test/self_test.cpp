#include "device_sim/self_test/self_test.h"

#include <vector>

#include "device_sim/scalar/scalar_backend.h"
#include "device_sim/self_test/value_program.h"
#include "device_sim/self_test/waiting_programs.h"

namespace gpusim::self_test {
namespace {

constexpr uint64_t kLinearSize = 2 * 4096, kWindows = 0x100000;
constexpr uint32_t kWindowShift = 12;
constexpr uint8_t kReadOnly = kRead, kRights = kRead | kWrite;
// Of one core. A kernel that never gets on ends here.
constexpr uint64_t kMostInstructions = 300'000;
constexpr uint64_t kMostSlices = 100'000;

struct Program {
  std::string name;
  Module module;
  uint32_t cores;
  MemoryModel model = MemoryModel::kShared;
  uint64_t slice = uint64_t{1} << 14;
  uint64_t rounds = 0;  // of programs whose cores wait: how they interleave shows in registers
};

// What must not depend on the backend. Words, and how to name the i-th of them.
struct Outcome {
  std::vector<std::vector<Event>> events;  // per core
  std::vector<uint64_t> registers;         // [core][slot]; of programs without waiting cores
  std::vector<uint64_t> block_counts;      // likewise
  std::vector<CoreTally> tallies;          // likewise
  std::vector<std::vector<uint8_t>> memory;  // the linear zone, then each core's window
  std::string trouble;
};

void set_up(const Program& p, Backend& b) {
  MachineConfig config;
  config.cores = p.cores;
  config.memory_model = p.model;
  config.linear_base = kMemory;
  config.linear_size = kLinearSize;
  config.window_base = kWindows;
  config.window_shift = kWindowShift;
  config.max_instructions = kMostInstructions;
  b.configure(p.module, config);
  const bool is_private = p.model == MemoryModel::kPrivate;
  b.set_permissions_all(kMemory, 4096, is_private ? kReadOnly : kRights);
  for (uint32_t core = 0; core < p.cores; ++core)
    b.set_permissions(core, kWindows + (is_private ? 0 : uint64_t{core} << kWindowShift),
                      uint64_t{1} << kWindowShift, kRights);
  if (p.rounds != 0) {
    b.set_slots(kRounds, {p.rounds, 0});
    b.set_slots(kCores, {p.cores, 0});
    b.set_slots(kLast, {p.cores - 1u, 0});
    b.set_slots(kCoreId, {0, 1});
  } else {
    b.set_slots(kNumber, {0, 1});
    b.set_slots(kOwn, {kWindows, is_private ? 0 : uint64_t{1} << kWindowShift});
    b.set_slots(kCommon, {is_private ? kWindows + 256 : kMemory, 0});
    b.set_slots(kFaulty, {kMemory + 4096, 0});
  }
  b.start_all(0);
}

Outcome run(const Program& p, Backend& b) {
  set_up(p, b);
  Outcome out;
  out.events.resize(p.cores);
  uint64_t slices = 0;
  while (b.runnable() != 0 && out.trouble.empty()) {
    if (++slices > kMostSlices) out.trouble = "it does not end";
    for_each_core(b.run_slice(p.slice), [&](const Event& e) {
      out.events[e.core].push_back(e);
      if (e.status != CoreStatus::kService) return b.stop(e.core);
      b.set_slot(e.core, kResult, e.core);
      b.start(e.core, e.uop);
    });
  }
  if (p.rounds == 0) {
    for (uint32_t core = 0; core < p.cores; ++core) {
      for (uint32_t s = 0; s < p.module.slot_count; ++s)
        out.registers.push_back(b.slot(core, static_cast<Slot>(s)));
      out.tallies.push_back(b.tally(core));
    }
    out.block_counts = b.block_counts();
  }
  out.memory.emplace_back(4096);
  b.read_memory(0, kMemory, out.memory[0]);
  for (uint32_t core = 0; core < p.cores; ++core) {
    const bool is_private = p.model == MemoryModel::kPrivate;
    b.read_memory(core, kWindows + (is_private ? 0 : uint64_t{core} << kWindowShift),
                  out.memory.emplace_back(uint64_t{1} << kWindowShift));
  }
  return out;
}

// The fields that core/backend.h gives a meaning.
std::string text_of(const Event& e) {
  std::string text = "stop " + std::to_string(static_cast<int>(e.status)) + " at micro-op " +
                     std::to_string(e.uop);
  if (e.status == CoreStatus::kService)
    text += ", service " + std::to_string(static_cast<int>(e.service));
  if (e.status == CoreStatus::kFault)
    text += ", fault " + std::to_string(static_cast<int>(e.fault));
  if (e.status == CoreStatus::kFault || e.status == CoreStatus::kJump)
    text += ", address " + std::to_string(e.address);
  return text;
}

// The place of the first element that differs; the size: none.
template <class T>
size_t mismatch(const std::vector<T>& x, const std::vector<T>& y) {
  size_t i = 0;
  while (i < x.size() && i < y.size() && x[i] == y[i]) ++i;
  return i == x.size() && i == y.size() ? x.size() : i;
}

std::string core_text(size_t core) { return "core " + std::to_string(core) + ": "; }

std::string compare_events(const std::vector<Event>& want, const std::vector<Event>& got) {
  if (want.size() != got.size())
    return "it stopped " + std::to_string(got.size()) + " times, not " +
           std::to_string(want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (text_of(want[i]) != text_of(got[i]))
      return "expected " + text_of(want[i]) + "; got " + text_of(got[i]);
  return {};
}

std::string compare(const Program& p, const Outcome& want, const Outcome& got) {
  if (!got.trouble.empty()) return got.trouble;
  for (uint32_t core = 0; core < p.cores; ++core)
    if (const std::string what = compare_events(want.events[core], got.events[core]); !what.empty())
      return core_text(core) + what;
  if (const size_t i = mismatch(want.registers, got.registers); i < want.registers.size())
    return core_text(i / p.module.slot_count) + "register " +
           std::to_string(i % p.module.slot_count) + ": expected " +
           std::to_string(want.registers[i]) + ", got " + std::to_string(got.registers[i]);
  for (size_t core = 0; core < want.tallies.size(); ++core)
    if (want.tallies[core].classes != got.tallies[core].classes)
      return core_text(core) + "its instructions are counted wrongly";
  if (const size_t i = mismatch(want.block_counts, got.block_counts); i < want.block_counts.size())
    return "block " + std::to_string(i) + ": expected " + std::to_string(want.block_counts[i]) +
           " executions, got " + std::to_string(got.block_counts[i]);
  for (size_t m = 0; m < want.memory.size(); ++m)
    if (const size_t i = mismatch(want.memory[m], got.memory[m]); i < want.memory[m].size())
      return (m == 0 ? std::string("common memory") : "memory of core " + std::to_string(m - 1)) +
             ", byte " + std::to_string(i) + ": expected " + std::to_string(want.memory[m][i]) +
             ", got " + std::to_string(got.memory[m][i]);
  return {};
}

std::vector<Program> programs() {
  std::vector<Program> all;
  all.push_back({"values", value_program(), 1});
  all.push_back({"values", value_program(), 70});
  all.push_back(
      {.name = "values in short slices", .module = value_program(), .cores = 40, .slice = 50});
  all.push_back({"values", value_program(), 70, MemoryModel::kPrivate});
  const auto add_waiting = [&](const char* name, Module module, uint32_t cores, uint64_t rounds) {
    all.push_back({.name = name, .module = std::move(module), .cores = cores, .rounds = rounds});
  };
  // Few, since each waits until the patience of the others ends; in one slice, whose end would help
  // where patience does not.
  add_waiting("a lock whose takers spin", ticket_lock(How::kSpin), 3, 1);
  all.back().slice = uint64_t{1} << 40;
  add_waiting("a lock whose takers give way", swap_lock(How::kYield), 40, 2);
  add_waiting("exclusives", exclusive_counter(How::kWatch), 70, 2);
  add_waiting("a barrier", barrier(How::kEvent), 70, 5);
  add_waiting("a chain of cores", relay(How::kYield), 70, 1);
  return all;
}

}  // namespace

std::string run_self_test(const std::function<std::unique_ptr<Backend>()>& make) {
  for (const Program& p : programs()) {
    ScalarBackend scalar;
    const Outcome want = run(p, scalar);
    const std::unique_ptr<Backend> tested = make();
    const std::string what = compare(p, want, run(p, *tested));
    if (!what.empty())
      return p.name + ", " + std::to_string(p.cores) + " cores" +
             (p.model == MemoryModel::kPrivate ? ", private memory: " : ": ") + what;
  }
  return {};
}

}  // namespace gpusim::self_test
