#include "tests/differential/backends/run_case.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "device_sim/core/cta.h"
#include "device_sim/core/devices.h"
#include "device_sim/simd/simd_backend.h"

namespace gpusim::difftest {
namespace {

constexpr uint64_t kCounterValue = 0x1234567;
constexpr int kMaxSlices = 2'000'000;

uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15;
  x ^= x >> 29;
  return x * 0xbf58476d1ce4e5b9;
}

std::vector<uint8_t> noise(uint64_t seed, uint64_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint64_t i = 0; i < size; i += 8) {
    const uint64_t word = mix(seed + i);
    std::memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

uint64_t window_address(const MachineConfig& config, uint32_t core) {
  const bool shared = config.memory_model == MemoryModel::kShared;
  return config.window_base + (shared ? uint64_t{core} << config.window_shift : 0);
}

// A core's window as addresses: one piece, or two where the end of it lies elsewhere.
struct Piece {
  uint64_t address, offset, size_bytes;
};
std::vector<Piece> window_pieces(const MachineConfig& config, uint32_t core) {
  const uint64_t near = (uint64_t{1} << config.window_shift) - config.stack_size;
  std::vector<Piece> pieces{{window_address(config, core), 0, near}};
  if (config.stack_size != 0) pieces.push_back({config.stack_base, near, config.stack_size});
  return pieces;
}

void set_up(const Case& c, Backend& b) {
  const MachineConfig& config = c.config;
  for (uint32_t core = 0; core < config.cores; ++core)
    for (size_t s = 0; s < c.slots.size(); ++s)
      b.set_slot(core, static_cast<Slot>(s), c.slots[s].at(core));
  b.write_memory(0, config.linear_base, noise(c.memory_seed, config.linear_size));
  const uint64_t window = uint64_t{1} << config.window_shift;
  const bool same = c.memory_seed % 2;
  for (uint32_t core = 0; core < config.cores; ++core) {
    const std::vector<uint8_t> bytes = noise(c.memory_seed + (same ? 1 : core + 2), window);
    for (const Piece& p : window_pieces(config, core))
      b.write_memory(core, p.address, std::span(bytes).subspan(p.offset, p.size_bytes));
  }
  for (uint32_t core = 0; core < config.cores; ++core) {
    for (size_t i = 0; i < c.window_words.size(); ++i) {
      const uint64_t word = c.window_words[i].at(core);
      uint8_t bytes[8];
      std::memcpy(bytes, &word, 8);
      b.write_memory(core, window_address(config, core) + 8 * i, bytes);
    }
  }
  for (const Region& r : c.regions) {
    if (r.address - config.linear_base < config.linear_size) {
      b.set_permissions(0, r.address, r.size_bytes, r.flags);
      continue;
    }
    for (uint32_t core = 0; core < config.cores; ++core) {
      const bool other = r.period != 0 && core % r.period == r.period - 1;
      b.set_permissions(core, r.address - config.window_base + window_address(config, core),
                        r.size_bytes, other ? r.other_flags : r.flags);
    }
  }
}

// What the host does after an event; the same for all backends.
void handle(const Case& c, Backend& b, const Event& e) {
  switch (e.status) {
    case CoreStatus::kService:
      if (e.service != Service::kSyscall) b.set_slot(e.core, e.slot, kCounterValue);
      else if (c.slots.size() > 3) b.set_slot(e.core, 2, e.core);
      return b.start(e.core, e.uop);
    case CoreStatus::kJump: return b.start(e.core, c.exit_uop);
    case CoreStatus::kFault: {
      // Some faults are put right as far as the guest can tell.
      const Uop& u = c.module.uops[e.uop];
      if (shape_info(op_info(u.op).shape).ends_block) break;
      if (mix(e.core + e.uop) % 16 >= c.resumed_faults) break;
      return b.start(e.core, e.uop + 1);
    }
    default: break;
  }
  b.stop(e.core);
}

std::string print_event(const Event& e) {
  std::ostringstream out;
  out << "status " << int(e.status) << " service " << int(e.service) << " slot " << int(e.slot)
      << " fault " << int(e.fault) << " uop " << e.uop << " address 0x" << std::hex << e.address;
  return out.str();
}

// Fields count where core/backend.h gives them a meaning.
bool same_event(const Event& x, const Event& y) {
  if (x.core != y.core || x.status != y.status || x.uop != y.uop) return false;
  switch (x.status) {
    case CoreStatus::kService: return x.service == y.service && x.slot == y.slot;
    case CoreStatus::kFault: return x.fault == y.fault && x.address == y.address;
    case CoreStatus::kJump: return x.address == y.address;
    default: return true;
  }
}

// A core that reaches its limit at a link may as well be where that leads.
Event behind_links(const Module& module, Event e) {
  while (e.status == CoreStatus::kLimit && module.uops[e.uop].op == Op::link)
    e.uop = module.uops[e.uop].target();
  return e;
}

uint64_t most_instructions(const Result& r) {
  uint64_t most = 0;
  for (const CoreTally& t : r.tallies)
    most = std::max(most, std::accumulate(t.classes.begin(), t.classes.end(), uint64_t{0}));
  return most;
}

// What the counts of lanes per block and per group must have in common.
std::string trouble_with_lanes(const Module& module, Backend& b, const RunConfig& run) {
  const std::vector<uint64_t> counts = b.block_counts(), lanes = b.block_lanes();
  if (lanes.empty()) return {};
  uint64_t active = 0, could_run = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (lanes[i] < counts[i]) return "block " + std::to_string(i) + ": more lanes ran than could";
    if (lanes[i] > counts[i] * 64) return "block " + std::to_string(i) + ": too many lanes could run";
    active += counts[i] * module.blocks[i].insn_count;
    could_run += lanes[i] * module.blocks[i].insn_count;
  }
  GroupUse sum;
  for (const GroupUse& g : b.group_use()) {
    // A seed holds lanes back for a while: neither run nor sleep.
    if (g.active + g.diverged + g.asleep > g.offered) return "a group used more lanes than it has";
    sum.active += g.active;
    sum.diverged += g.diverged;
  }
  if (sum.active != active) return "groups and blocks disagree about the instructions executed";
  if (sum.active + sum.diverged != could_run) return "groups and blocks disagree about divergence";
  if (run.group_width == 1 && sum.diverged != 0) return "one lane diverged";
  return {};
}

}  // namespace

std::string print_run(const RunConfig& run) {
  std::ostringstream out;
  out << run.backend << ", width " << run.group_width << ", threads " << run.threads << ", slices of "
      << run.slice << ", native code after " << run.native_after
      << (run.groups_code == simd::VectorCode::kAvx2 ? ", at most AVX2" : "")
      << (run.regroup ? "" : ", not regrouped") << ", seed " << run.seed
      << (run.count_lanes ? ", lanes counted" : "");
  for (const uint32_t device : run.devices) out << ", device " << device;
  return out.str();
}

Result run_case(const Case& c, const RunConfig& run) {
  MachineConfig config = c.config;
  config.group_width = run.group_width;
  config.threads = config.cluster_ctas > 1 ? 1 : run.threads;
  config.native_after = run.native_after;
  config.regroup = run.regroup;
  config.seed = run.seed;
  config.count_lanes = run.count_lanes;
  constexpr uint32_t kJournalWords = 4096;
  config.journal_words = kJournalWords;
  const std::unique_ptr<Backend> b = make_backend_on(run.backend, run.devices);
  if (auto* simd = dynamic_cast<SimdBackend*>(b.get())) simd->limit_groups_code(run.groups_code);
  b->configure(c.module, config);
  set_up(c, *b);
  const uint32_t places =
      config.cta_threads == 0 ? 0 : config.cores >> cta_shift_of(config.cta_threads);
  if (places == 0) b->start_all(0);
  for (uint32_t place = 0; place < places; ++place) {
    b->start_cta(place, 0);
    const std::span<uint8_t> memory = b->cta_memory(place);
    const std::vector<uint8_t> bytes = noise(c.memory_seed + place, memory.size());
    std::copy(bytes.begin(), bytes.end(), memory.begin());
  }
  Result r;
  r.events.resize(config.cores);
  r.journals.resize(config.cores);
  r.journal_is_full.resize(config.cores);
  int slices = 0;
  while (b->runnable() != 0) {
    if (++slices > kMaxSlices) {
      r.trouble = "does not end";
      break;
    }
    uint32_t last = 0;
    std::vector<Event> events;
    for_each_core(b->run_slice(run.slice), [&](const Event& e) { events.push_back(e); });
    for (uint32_t core = 0; core < config.cores; ++core) {
      try {
        const auto words = b->journal(core);
        r.journals[core].insert(r.journals[core].end(), words.begin(), words.end());
      } catch (const std::logic_error&) {
        r.journal_is_full[core] = true;
      }
    }
    b->clear_journals();
    for (const Event& e : events) {
      if (&e != &events.front() && e.core <= last) r.trouble = "events are not in core order";
      last = e.core;
      r.events[e.core].push_back(behind_links(c.module, e));
      handle(c, *b, e);
    }
  }
  // Cores behind the last thread of a CTA hold nothing.
  const auto is_thread = [&](uint32_t core) {
    return places == 0 || core % (config.cores / places) < config.cta_threads;
  };
  for (uint32_t core = 0; core < config.cores; ++core)
    for (size_t s = 0; s < c.slots.size(); ++s)
      r.slots.push_back(c.ignored[s] || !is_thread(core) ? 0
                                                         : b->slot(core, static_cast<Slot>(s)));
  r.block_counts = b->block_counts();
  if (run.count_lanes && r.trouble.empty()) r.trouble = trouble_with_lanes(c.module, *b, run);
  const CoreTally together = b->tally_of_all();
  CoreTally sum;
  for (uint32_t core = 0; core < config.cores; ++core) sum += r.tallies.emplace_back(b->tally(core));
  if (r.trouble.empty() && (sum.classes != together.classes ||
                            sum.classes != b->tally_of_all().classes))
    r.trouble = "the tallies of all cores are not those of each";
  r.memory.resize(1 + config.cores);
  r.memory[0].resize(config.linear_size);
  b->read_memory(0, config.linear_base, r.memory[0]);
  for (uint32_t core = 0; core < config.cores; ++core) {
    r.memory[1 + core].resize(uint64_t{1} << config.window_shift);
    for (const Piece& p : window_pieces(c.config, core))
      b->read_memory(core, p.address,
                     std::span(r.memory[1 + core]).subspan(p.offset, p.size_bytes));
  }
  for (uint32_t place = 0; place < places; ++place) {
    const std::span<uint8_t> memory = b->cta_memory(place);
    r.memory.emplace_back(memory.begin(), memory.end());
  }
  return r;
}

std::string difference(const Case& c, const Result& x, const Result& y) {
  std::ostringstream out;
  if (!y.trouble.empty()) return y.trouble;
  for (uint32_t core = 0; core < c.config.cores; ++core) {
    const auto& ex = x.events[core];
    const auto& ey = y.events[core];
    for (size_t i = 0; i < std::max(ex.size(), ey.size()); ++i) {
      if (i < ex.size() && i < ey.size() && same_event(ex[i], ey[i])) continue;
      out << "core " << core << ", event " << i << ": expected "
          << (i < ex.size() ? print_event(ex[i]) : "none") << ", got "
          << (i < ey.size() ? print_event(ey[i]) : "none");
      return out.str();
    }
    const size_t n = c.slots.size();
    for (size_t s = 0; s < n; ++s) {
      if (x.slots[core * n + s] == y.slots[core * n + s]) continue;
      out << "core " << core << ", slot " << s << ": expected 0x" << std::hex
          << x.slots[core * n + s] << ", got 0x" << y.slots[core * n + s];
      return out.str();
    }
    if (!x.journal_is_full[core] && !y.journal_is_full[core] && x.journals[core] != y.journals[core]) {
      out << "core " << core << ": journals differ, of " << x.journals[core].size() << " and "
          << y.journals[core].size() << " words";
      return out.str();
    }
    for (size_t k = 0; k < kInsnClassCount; ++k) {
      if (x.tallies[core].classes[k] == y.tallies[core].classes[k]) continue;
      out << "core " << core << ", tally of class " << k << ": expected "
          << x.tallies[core].classes[k] << ", got " << y.tallies[core].classes[k];
      return out.str();
    }
  }
  for (size_t b = 0; b < x.block_counts.size(); ++b) {
    if (x.block_counts[b] == y.block_counts[b]) continue;
    out << "block " << b << ": expected " << x.block_counts[b] << " executions, got "
        << y.block_counts[b];
    return out.str();
  }
  for (size_t m = 0; m < x.memory.size(); ++m) {
    for (size_t i = 0; i < x.memory[m].size(); ++i) {
      if (x.memory[m][i] == y.memory[m][i]) continue;
      if (m == 0) out << "linear zone";
      else if (m > c.config.cores) out << "memory of CTA " << m - 1 - c.config.cores;
      else out << "window of core " << m - 1;
      out << ", offset 0x" << std::hex << i << ": expected " << int(x.memory[m][i]) << ", got "
          << int(y.memory[m][i]);
      return out.str();
    }
  }
  return {};
}

void shrink(Case& c, const std::function<bool(const Case&)>& fails) {
  std::vector<uint32_t> body;
  for (uint32_t i = 0; i < c.module.uops.size(); ++i) {
    const Uop& u = c.module.uops[i];
    const Shape shape = op_info(u.op).shape;
    // Without rows of warps there would be races.
    if (!shape_info(shape).ends_block && !is_of_warps(shape) && u.op != Op::fence)
      body.push_back(i);
  }
  for (size_t size = (body.size() + 1) / 2; size > 0; size /= 2) {
    for (size_t from = 0; from < body.size();) {
      Case smaller = c;
      const size_t to = std::min(body.size(), from + size);
      for (size_t i = from; i < to; ++i) smaller.module.uops[body[i]] = {.op = Op::fence};
      if (fails(smaller)) {
        c = std::move(smaller);
        body.erase(body.begin() + static_cast<std::ptrdiff_t>(from),
                   body.begin() + static_cast<std::ptrdiff_t>(to));
      } else {
        from = to;
      }
    }
  }
  // Branches that only jump on; traps at once.
  for (uint32_t i = 0; i < c.module.uops.size(); ++i) {
    const Uop u = c.module.uops[i];
    if (!shape_info(op_info(u.op).shape).falls_through && u.op != Op::jmp_reg) continue;
    for (const Op op : {Op::trap, Op::jmp}) {
      if (op == Op::jmp && i + 1 == c.module.uops.size()) continue;
      Case smaller = c;
      smaller.module.uops[i] = {.op = op, .imm = Uop::pack_target(u.block(), i + 1)};
      if (op == Op::trap) smaller.module.uops[i].aux = static_cast<uint8_t>(Fault::kBreakpoint);
      if (!fails(smaller)) continue;
      c = std::move(smaller);
      break;
    }
  }
  for (SlotData& d : c.slots) {
    const SlotData before = d;
    d = SlotData{};
    if (!fails(c)) d = before;
  }
}

std::string check_case(const Case& c, const Result& expected, const RunConfig& run,
                       const RunConfig& reference) {
  std::string what = difference(c, expected, run_case(c, run));
  if (what.empty()) return what;
  Case small = c;
  // A program that a change made endless would take for ever.
  if (small.config.max_instructions == 0)
    small.config.max_instructions = std::max<uint64_t>(5000, 2 * most_instructions(expected));
  const auto compare = [&](const Case& candidate) {
    return difference(candidate, run_case(candidate, reference), run_case(candidate, run));
  };
  const auto fails = [&](const Case& candidate) { return !compare(candidate).empty(); };
  if (fails(small)) shrink(small, fails);
  else small = c;
  return print_run(run) + ": " + what + "\nshrunk: " + compare(small) + "\n" + print_case(small);
}

std::vector<std::string> backends_under_test() {
  std::vector<std::string> names;
  for (const BackendInfo& info : all_backends()) {
    std::string why_not;
    if (std::string(info.name) != "scalar" && info.available(&why_not)) names.push_back(info.name);
  }
  if (const char* only = env("GPUSIM_BACKEND")) names = {only};
  return names;
}

std::vector<RunConfig> random_runs(Rng& rng, uint32_t per_backend) {
  std::vector<RunConfig> runs;
  for (const std::string& backend : backends_under_test()) {
    for (uint32_t i = 0; i < per_backend; ++i) {
      RunConfig run{.backend = backend};
      run.group_width = rng.pick({1u, 2u, 8u, 16u, 64u, 64u, 64u});
      run.threads = rng.pick({1u, 1u, 1u, 2u, 4u});
      run.slice = rng.pick<uint64_t>({1, 7, 100, uint64_t{1} << 40, uint64_t{1} << 40});
      run.native_after = rng.pick({0u, 0u, 1u, MachineConfig::kNeverNative});
      run.groups_code = random_groups_code(rng);
      run.regroup = rng.coin();
      if (backend == "simd" && i == 0) {  // each core in native code of its own
        run.group_width = 1;
        run.native_after = 0;
      }
      if (rng.below(3) == 0) run.seed = 1 + rng.below(1000);
      run.count_lanes = rng.coin();
      runs.push_back(run);
      if (backend == "cuda" && i == 0) break;  // slices are all that it has
    }
  }
  return runs;
}

}  // namespace gpusim::difftest
