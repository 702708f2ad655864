#include "host/chip/program_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_set>

#include "device_sim/base/error.h"

namespace gpusim::host::chip {
namespace {

// Locks whose holders exclude each other. `offset`: of the word by which the function shows the
// lock. The second half are those of C libraries, and of OpenMP's run-time; what waits for a
// condition gives and takes its mutex by two of them.
struct KnownFunction {
  std::string_view name;
  Role role;
  int32_t offset;
  LockWord word = LockWord::kFirst;
  bool ends_wait = false, may_fail = false, is_part = false;
  uint8_t arguments = 0;  // that are noted: a bit for each
};
constexpr int32_t kSecondPointer = -1;

// Of the object that is the first argument.
constexpr uint8_t kFirstArgument = 1, kFirstAndSecond = 3, kFirstAndThird = 5,
                  kSecondAndFourth = 10;
constexpr KnownFunction call(std::string_view name, Role role, uint8_t arguments = kFirstArgument) {
  return {
      .name = name, .role = role, .offset = 0, .word = LockWord::kArgument, .arguments = arguments};
}
constexpr KnownFunction attempt(std::string_view name, Role role,
                                uint8_t arguments = kFirstArgument) {
  KnownFunction f = call(name, role, arguments);
  f.may_fail = true;
  return f;
}
constexpr KnownFunction part(std::string_view name, Role role) {
  KnownFunction f = call(name, role, 0);
  f.is_part = true;
  return f;
}
constexpr KnownFunction kKnown[] = {
    {"gpusim_lock", Role::kLock, 0},
    {"gpusim_unlock", Role::kUnlock, 8},
    {"gpusim_spin_lock", Role::kLock, 0},
    {"gpusim_spin_unlock", Role::kUnlock, 0},
    {"gpusim_mutex_lock", Role::kLock, 0},
    {"gpusim_mutex_unlock", Role::kUnlock, kSecondPointer},

    {"pthread_mutex_lock", Role::kLock, 0, LockWord::kAtomic},
    {"__pthread_mutex_cond_lock", Role::kLock, 0, LockWord::kAtomic, /*ends_wait=*/true},
    {"pthread_mutex_unlock", Role::kUnlock, 0, LockWord::kHeld},
    {"__pthread_mutex_unlock_usercnt", Role::kUnlock, 0, LockWord::kHeld},
    {"pthread_spin_lock", Role::kLock, 0, LockWord::kAtomic},
    {"pthread_spin_unlock", Role::kUnlock, 0, LockWord::kHeld},
    {"GOMP_critical_start", Role::kLock, 0, LockWord::kAtomic},
    {"GOMP_critical_end", Role::kUnlock, 4, LockWord::kHeld},
    {"GOMP_critical_name_start", Role::kLock, 0, LockWord::kAtomic},
    {"GOMP_critical_name_end", Role::kUnlock, 4, LockWord::kHeld},
    {"GOMP_atomic_start", Role::kLock, 0, LockWord::kAtomic},
    {"GOMP_atomic_end", Role::kUnlock, 4, LockWord::kHeld},
    {"omp_set_lock", Role::kLock, 0, LockWord::kAtomic},
    {"omp_unset_lock", Role::kUnlock, 0, LockWord::kHeld},

    attempt("pthread_mutex_trylock", Role::kLock),
    attempt("pthread_mutex_timedlock", Role::kLock),
    attempt("pthread_mutex_clocklock", Role::kLock),
    part("__pthread_mutex_clocklock_common", Role::kLock),
    attempt("pthread_spin_trylock", Role::kLock),

    call("pthread_rwlock_rdlock", Role::kRead),
    attempt("pthread_rwlock_tryrdlock", Role::kRead),
    attempt("pthread_rwlock_timedrdlock", Role::kRead),
    attempt("pthread_rwlock_clockrdlock", Role::kRead),
    call("pthread_rwlock_wrlock", Role::kWrite),
    attempt("pthread_rwlock_trywrlock", Role::kWrite),
    attempt("pthread_rwlock_timedwrlock", Role::kWrite),
    attempt("pthread_rwlock_clockwrlock", Role::kWrite),
    call("pthread_rwlock_unlock", Role::kLeave),

    call("sem_init", Role::kSetSemaphore, kFirstAndThird),
    call("sem_wait", Role::kDown),
    attempt("sem_trywait", Role::kDown),
    attempt("sem_timedwait", Role::kDown),
    attempt("sem_clockwait", Role::kDown),
    part("__new_sem_wait_slow64", Role::kDown),
    call("sem_post", Role::kUp),
    attempt("sem_open", Role::kOpenSemaphore, kSecondAndFourth),
    attempt("link", Role::kMakesName, 0),  // in sem_open(), of a new semaphore

    call("pthread_barrier_init", Role::kSetBarrier, kFirstAndThird),
    call("pthread_barrier_wait", Role::kArrive),

    call("pthread_once", Role::kOnce, kFirstAndSecond),
    part("__pthread_once_slow", Role::kOnce),
    attempt("__cxa_guard_acquire", Role::kGuardBegin),
    call("__cxa_guard_release", Role::kGuardEnd),

    {"pthread_cond_wait", Role::kAwait, 0},
    {"pthread_cond_timedwait", Role::kAwait, 0},
    {"pthread_cond_clockwait", Role::kAwait, 0},
    {"pthread_cond_signal", Role::kSignal, 0},
    {"pthread_cond_broadcast", Role::kSignal, 0},
};

// Between their release and their return, cores do different things: one of them opens the barrier.
constexpr std::string_view kBarriers[] = {"gpusim_barrier", "gpusim_group_barrier", "omp_barrier"};

// Whether the i-th site is behind or before a fence of its own instruction, or, where instructions
// are but fences, of its neighbour.
void find_order(const std::vector<AccessSite>& sites, size_t i, SiteModel& site) {
  const AccessSite& s = sites[i];
  if (!has_address(s.kind) || s.is_vector) return;
  const auto accesses = [&](uint32_t insn) {
    return std::ranges::any_of(
        sites, [&](const AccessSite& o) { return o.insn == insn && has_address(o.kind); });
  };
  const auto is_fence = [&](size_t k, uint32_t neighbour) {
    const AccessSite& f = sites[k];
    return f.kind == SiteKind::kFence &&
           (f.insn == s.insn || (f.insn == neighbour && !accesses(neighbour)));
  };
  site.is_store = s.kind == SiteKind::kStore || s.is_store;
  site.may_fail = s.kind == SiteKind::kLoad || s.may_fail;
  site.acquires = !site.is_store && i + 1 < sites.size() && is_fence(i + 1, s.insn + 1);
  site.releases = site.is_store && i != 0 && is_fence(i - 1, s.insn - 1);
}

}  // namespace

std::vector<NotedName> noted_functions() {
  std::vector<NotedName> names;
  for (const KnownFunction& known : kKnown)
    if (known.word == LockWord::kArgument) names.push_back({known.name, known.arguments});
  return names;
}

std::vector<std::string_view> order_functions() {
  std::vector<std::string_view> names(std::begin(kBarriers), std::end(kBarriers));
  for (const KnownFunction& known : kKnown) names.push_back(known.name);
  return names;
}

std::array<Ticks, kInsnClassCount> class_ticks(const CoreShape& cores) {
  std::array<Ticks, kInsnClassCount> all;
  for (size_t c = 0; c < all.size(); ++c)
    all[c] = ticks(cores.cycles[c] - 1 + 1 / cores.issue_width);
  return all;
}

bool takes_locks(const Module& module, std::span<const uint64_t> executions) {
  std::unordered_set<uint64_t> entries;
  for (const Symbol& symbol : module.symbols)
    for (const KnownFunction& known : kKnown)
      if (symbol.is_function && is_left_out(known.role) && name_of_whole(symbol.name) == known.name)
        entries.insert(symbol.address);
  for (size_t b = 0; b < executions.size(); ++b)
    if (executions[b] != 0 && entries.contains(module.blocks[b].pc)) return true;
  return false;
}

ProgramModel::ProgramModel(const Module& module, uint32_t pointer_bytes, const ChipShape& shape,
                           const std::string& region)
    : module_(module), range_(parse_range("--region", region)) {
  region_is_function_ = !region.empty() && !range_;
  cost_ = class_ticks(shape.cores);
  taken_branch_ = ticks(shape.cores.taken_branch_cycles);
  if (shape.cores.latency) pipeline_.emplace(module, shape);
  number_of_state_[{}] = 0;
  states_.emplace_back();
  bool found = false;
  for (const Symbol& symbol : module.symbols) {
    if (!symbol.is_function) continue;
    if (std::ranges::find(kBarriers, symbol.name) != std::end(kBarriers))
      barriers_.push_back({symbol.address, symbol.address + symbol.size_bytes, 0});
    Start& start = starts_[symbol.address];
    start.end = std::max(start.end, symbol.address + symbol.size_bytes);
    for (const KnownFunction& known : kKnown) {
      if (name_of_whole(symbol.name) != known.name) continue;
      start.role = known.role;
      has_guards_ |= known.role == Role::kGuardEnd;
      start.function = static_cast<uint32_t>(functions_.size());
      functions_.push_back(
          {symbol.address, symbol.address + symbol.size_bytes,
           known.offset == kSecondPointer ? static_cast<int32_t>(pointer_bytes) : known.offset,
           known.word, known.ends_wait, known.may_fail, known.is_part,
           static_cast<uint8_t>(std::popcount(known.arguments)), known.role == Role::kOnce,
           known.role == Role::kMakesName});
    }
    if (range_) continue;
    const bool is_region =
        region_is_function_ ? symbol.name == region : symbol.name == "gpusim_roi_begin";
    if (is_region) {
      start.role = Role::kBegin;
      start.function = static_cast<uint32_t>(functions_.size());
      functions_.push_back({symbol.address, symbol.address + symbol.size_bytes, 0});
      found = true;
    }
    if (!region_is_function_ && symbol.name == "gpusim_roi_end") start.role = Role::kEnd;
  }
  if (region_is_function_ && !found)
    throw Error(fmt::format("--region {}: the program has no function of that name", region));
  has_region_ = found;
}

Ticks ProgramModel::cost_of_unit(uint32_t unit) const {
  const auto& classes = module_.code.insn_class;
  const size_t c = unit < classes.size() ? classes[unit] : kInsnClassCount;
  return c < kInsnClassCount ? cost_[c] : cost_[static_cast<size_t>(InsnClass::kOther)];
}

void ProgramModel::grow(std::span<const BlockSites> sites) {
  const auto& classes = module_.code.insn_class;
  is_off_chip_.resize(classes.size());
  for (size_t b = blocks_.size(); b < sites.size(); ++b) {
    const Block& block = module_.blocks[b];
    BlockModel m{.pc = block.pc,
                 .end_pc = insn_pc(module_, block, block.insn_count),
                 .unit = static_cast<uint32_t>(module_.code.unit_of(block.pc)),
                 .insn_count = block.insn_count,
                 .sites = {}};
    if (const auto start = starts_.find(block.pc); start != starts_.end()) {
      m.starts_function = true;
      m.role = start->second.role;
      m.function = start->second.function;
      m.function_end = start->second.end;
    }
    if (block.uop_count != 0) {
      const Uop& end = module_.uops[block.first_uop + block.uop_count - 1];
      const auto hint = static_cast<JumpHint>(end.aux);
      m.calls = (end.op == Op::jmp || end.op == Op::jmp_reg) && hint == JumpHint::kCall;
      m.returns = end.op == Op::jmp_reg && hint == JumpHint::kReturn;
      const auto is_here = [&](const SyncFunction& f) {
        return f.is_once && m.pc - f.begin < f.end - f.begin;
      };
      m.calls_once = end.op == Op::jmp_reg && m.calls && std::ranges::any_of(functions_, is_here);
    }
    for (const SyncFunction& f : barriers_)
      if (m.pc - f.begin < f.end - f.begin) m.barrier = f.begin;
    m.is_of_naming = std::ranges::any_of(functions_, [&](const SyncFunction& f) {
      return f.is_naming && m.pc - f.begin < f.end - f.begin;
    });
    std::vector<Ticks> costs(block.insn_count), until(block.insn_count + 1, 0);
    for (uint32_t i = 0; i < block.insn_count; ++i) {
      costs[i] =
          cost_of_unit(static_cast<uint32_t>(module_.code.unit_of(insn_pc(module_, block, i))));
      until[i + 1] = until[i] + costs[i];
    }
    m.cost = until.back();
    for (size_t i = 0; i < sites[b].accesses.size(); ++i) {
      const AccessSite& s = sites[b].accesses[i];
      m.sites.push_back({.kind = s.kind,
                         .is_vector = s.is_vector,
                         .bytes = s.bytes,
                         .unit = s.unit,
                         .before = until[std::min<size_t>(s.insn + 1, block.insn_count)]});
      SiteModel& site = m.sites.back();
      find_order(sites[b].accesses, i, site);
      site.is_plain = has_address(s.kind) && s.kind != SiteKind::kAtomic && !s.is_vector &&
                      !site.acquires && !site.releases;
      is_off_chip_[s.unit] = static_cast<InsnClass>(classes[s.unit]) == InsnClass::kOffChipMemory;
    }
    m.waits = !m.sites.empty() && (m.sites.back().kind == SiteKind::kWaitForEvent ||
                                   m.sites.back().kind == SiteKind::kYield);
    m.number = m.counter = static_cast<uint32_t>(b);
    if (pipeline_) {
      code_.push_back(pipeline_->code_of(block, costs));
      std::vector<uint32_t>& insns = insn_of_site_.emplace_back();
      for (const AccessSite& s : sites[b].accesses)
        insns.push_back(std::min(s.insn, block.insn_count));
    }
    block_at_.push_back(&blocks_.emplace_back(std::move(m)));
  }
}

// --- Schedules

size_t ProgramModel::counters() const {
  if (!pipeline_) return 2 * blocks_.size();
  const std::lock_guard lock(mutex_);
  return 2 * schedules_.size();
}

void ProgramModel::add_executions(std::span<const uint64_t> counted,
                                  std::vector<uint64_t>& of_blocks,
                                  std::array<std::vector<Ticks>, kParts>& at) const {
  const auto add = [&](Part part, size_t unit, Ticks time) {
    std::vector<Ticks>& of_part = at[static_cast<size_t>(part)];
    if (unit < of_part.size()) of_part[unit] += time;
  };
  const std::lock_guard lock(mutex_);
  for (size_t c = 0; c + 1 < counted.size(); c += 2) {
    const uint64_t taken = counted[c + 1], count = counted[c] + taken;
    if (count == 0) continue;
    const BlockModel& b = pipeline_ ? schedules_[c / 2] : blocks_[c / 2];
    of_blocks[b.number] += count;
    add(Part::kCompute, b.unit, taken * taken_branch_);
    for (const Pipeline::Stall& stall : b.stalled)
      add(stall.is_l1 ? Part::kL1 : Part::kDependence, code_[b.number][stall.insn].unit,
          count * stall.time);
  }
}

const BlockModel& ProgramModel::make_schedule(uint32_t number, const BlockModel& before) const {
  constexpr size_t kMostSchedules = size_t{1} << 18;
  const BlockModel& block = *block_at_[number];
  const std::lock_guard lock(mutex_);
  const auto key_of = [&](uint64_t state) {
    const bool is_taken = state != 0 && block.pc != before.end_pc;
    return (2 * state + is_taken) << 32 | number;
  };
  uint64_t state = before.state;
  if (schedules_.size() >= kMostSchedules && !schedule_of_.contains(key_of(state))) {
    has_too_many_ = true;
    state = 0;
  }
  const bool is_taken = state != 0 && block.pc != before.end_pc;
  const BlockModel*& known = schedule_of_[key_of(state)];
  if (!known) {
    const Pipeline::Code& code = code_[number];
    const Pipeline::Schedule s =
        Pipeline::schedule(code, states_[state], is_taken ? taken_branch_ : 0);
    BlockModel& m = schedules_.emplace_back(block);
    m.counter = static_cast<uint32_t>(schedules_.size() - 1);
    m.cost = s.begin.back().at;
    m.stalls = s.begin.back().stalls;
    m.stalled = s.stalls;
    const auto [left, is_new] =
        number_of_state_.try_emplace(s.left, static_cast<uint32_t>(states_.size()));
    if (is_new) states_.push_back(s.left);
    m.state = left->second;
    // From an instruction on: the first that reads a register before another one writes it.
    const auto touch_of = [&](size_t from, Slot slot) -> std::optional<BlockModel::Touch> {
      for (size_t i = from; i < code.size(); ++i) {
        if (std::ranges::find(code[i].reads, slot) != code[i].reads.end())
          return BlockModel::Touch{slot, s.begin[i]};
        if (std::ranges::any_of(code[i].results, [&](const auto& r) { return r.slot == slot; }))
          return BlockModel::Touch{slot, std::nullopt};
      }
      return std::nullopt;
    };
    for (size_t i = 0; i < m.sites.size(); ++i) {
      const size_t insn = insn_of_site_[number][i];
      SitePoint& point = m.points.emplace_back();
      m.sites[i].before = s.begin[insn].at + (insn < code.size() ? code[insn].cost : 0);
      point.stalls = s.begin[insn].stalls;
      if (insn >= code.size() || m.sites[i].kind != SiteKind::kLoad) continue;
      for (const Pipeline::Result& r : code[insn].results) {
        if (!r.is_load) continue;
        const auto touch = touch_of(insn + 1, r.slot);
        if (!touch) {
          point.left.push_back(r.slot);
        } else if (touch->use && (!point.use || touch->use->at < point.use->at)) {
          point.use = touch->use;
        }
      }
    }
    std::array<bool, 256> is_seen{};
    for (const Pipeline::Insn& insn : code) {
      const auto see = [&](Slot slot) {
        if (std::exchange(is_seen[slot], true)) return;
        m.touches.push_back(*touch_of(0, slot));
      };
      for (const Slot slot : insn.reads) see(slot);
      for (const Pipeline::Result& r : insn.results) see(r.slot);
    }
    known = &m;
  }
  before.next.put(*known);
  return *known;
}

}  // namespace gpusim::host::chip
