#include "host/chip/chip_model.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "host/chip/chip_core.h"

namespace gpusim::host::chip {
namespace {

// A core keeps lines that others want for so much of an interval.
constexpr Ticks kHotParts = 64;
// Slices without a word after which a core sleeps if its backend does not say so, and if it only
// looked at a word and gave way, which no backend calls sleep.
constexpr uint32_t kSilentSlices = 2, kSilentSlicesOfLooks = 64;
// Words of all cores' streams that may wait for slower cores.
constexpr size_t kMostBacklog = size_t{1} << 26;

}  // namespace

// Kept from window to window: making one takes longer than a window.
struct ChipModel::Workers : tbb::task_arena {
  using tbb::task_arena::task_arena;
};

// Of a core that is soon looked at, what is looked at first.
void ChipModel::prefetch(const Core& c) {
  constexpr size_t kLine = 64, kLines = 4;
  for (size_t i = 0; i < kLines; ++i)
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&c) + i * kLine, 1);
}

ChipModel::ChipModel(const ChipShape& shape, const Module& module, const MachineConfig& config,
                     uint32_t pointer_bytes, const std::string& region)
    : shape_(shape),
      config_(config),
      program_(module, pointer_bytes, shape_, region),
      context_{
          .shape = shape_,
          .program = program_,
          .lock_words = lock_words_,
          .left_words = left_words_,
          .guard_words = guard_words_,
          .config = config_,
          .pool = pool_,
          .line_shift = static_cast<uint32_t>(std::countr_zero(shape.line_bytes)),
          .granule_shift = static_cast<uint32_t>(std::countr_zero(shape.shared.interleave_bytes)),
          .stack_base = config.window_base,
          .stack_end = config.window_base + (uint64_t{config.cores} << config.window_shift),
          .least_miss = ticks(shape.l2 && shape.l2->is_of_tile ? shape.l2->hit_cycles
                                                               : shape.shared.cache.hit_cycles)},
      memory_(shape_,
              [this](uint32_t core, uint64_t line, bool stays) { lost(core, line, stays); }),
      objects_(*this),
      queue_(config.cores),
      ready_(config.cores) {
  for (uint32_t core = 0; core < config.cores; ++core) {
    cores_.emplace_back(new (pool_.take(sizeof(Core))) Core(context_, core));
    cores_.back()->until = ticks(shape_.interval_cycles);
  }
  const unsigned threads = std::max(1u, config.threads);
  executions_.resize(threads);
  now_.cores.resize(config.cores);
  now_.held_up.resize(config.cores);
  now_.counts.resize(config.cores);
  for (auto& at : now_.at) at.resize(module.code.insn_class.size());
  off_chip_at_.resize(module.code.insn_class.size());
  off_chip_of_.resize(config.cores);
  memory_.on_write = [this](uint64_t line, const MemorySystem::Version& v) {
    const auto it = watchers_.find(line);
    if (it == watchers_.end()) return;
    std::vector<uint32_t> left;
    for (const uint32_t core : it->second) {
      if (core == v.core) {
        left.push_back(core);
        continue;
      }
      cores_[core]->seen[line] = v.count;
      unblock(core, v.at, v.core, Phase::kWaitingWord);
    }
    if (left.empty())
      watchers_.erase(it);
    else
      it->second = std::move(left);
  };
  sample_length_ = ticks(shape.interval_cycles);
  if (program_.range() && program_.range()->first == 0)
    begin_ = std::make_unique<Totals>(totals_at(0));
}

ChipModel::~ChipModel() = default;

void ChipModel::DestroyCore::operator()(Core* core) const { core->~Core(); }

// --- What cores did

void ChipModel::read(uint32_t core, std::span<const uint64_t> words, std::span<const BlockSites>) {
  cores_[core]->model.append(words, slice_);
  cores_[core]->silent = 0;
}

// Of a core that stopped, or whose slice ended.
bool ChipModel::note_clock(uint32_t core) {
  return clock_of_ && cores_[core]->model.append_clock(clock_of_(core));
}

void ChipModel::order(uint32_t before, uint32_t after) {
  settle();
  note_clock(before);
  note_clock(after);
  const uint64_t key = next_key_++;
  keys_[key].appended = 1;
  cores_[before]->model.append(Order{.key = key, .is_release = true});
  cores_[after]->model.append(Order{.key = key, .required = 1});
  cores_[after]->has_ended = false;
}

void ChipModel::release(uint32_t core, uint64_t address, uint64_t number) {
  settle();
  note_clock(core);
  const uint64_t key = key_of(address, number);
  ++keys_[key].appended;
  cores_[core]->model.append(Order{.key = key, .is_release = true, .has_word = true});
}

void ChipModel::acquire(uint32_t core, uint64_t address, uint64_t number) {
  settle();
  note_clock(core);
  const uint64_t key = key_of(address, number);
  cores_[core]->model.append(Order{.key = key, .required = keys_[key].appended, .has_word = true});
}

void ChipModel::timed_out(uint32_t core) {
  settle();
  note_clock(core);
  cores_[core]->model.append(Order{.is_time_out = true});
}

void ChipModel::left(uint32_t core, uint64_t word) {
  settle();
  note_clock(core);
  const uint64_t key = next_key_++;
  keys_[key].appended = 1;
  cores_[core]->model.append(Order{.key = key, .is_release = true, .stays = true});
  left_words_[word].push_back({core, slice_, key});
}

void ChipModel::handler_begins(uint32_t core) {
  settle();
  note_clock(core);
  cores_[core]->model.append(Order{.begins_handler = true});
}

void ChipModel::handler_ends(uint32_t core) {
  settle();
  note_clock(core);
  cores_[core]->model.append(Order{.ends_handler = true});
}

void ChipModel::ended(uint32_t core) {
  settle();
  cores_[core]->has_ended = true;
}

void ChipModel::note_sleepers(std::span<const uint8_t> sleepers) {
  for (size_t core = 0; core < cores_.size(); ++core) {
    Core& c = *cores_[core];
    if (c.has_ended)
      c.sleeps = true;
    else if (sleepers.empty())
      c.sleeps = c.silent >= kSilentSlices;
    else
      c.sleeps = sleepers[core] != 0 || (c.silent >= kSilentSlicesOfLooks && c.model.only_looks());
    ++c.silent;
  }
}

void ChipModel::after_slice(std::span<const BlockSites> blocks, std::span<const uint8_t> sleepers) {
  settle();
  ++slice_;
  program_.grow(blocks);
  for (uint32_t core = 0; clock_of_ && core < cores_.size(); ++core)
    if (note_clock(core)) cores_[core]->silent = 0;
  for (uint32_t core = 0; program_.has_guards() && core < cores_.size(); ++core)
    cores_[core]->model.for_each_initialised([&](uint64_t word) {
      guard_words_.try_emplace(word, Initialised{.core = core, .slice = slice_ - 1});
    });
  note_sleepers(sleepers);
  if (config_.threads > 1)
    beside_.start([this] { go_on_after_slice(); });
  else
    go_on_after_slice();
}

void ChipModel::go_on_after_slice() {
  find_woken();
  while (advance(false)) {
  }
  // Words of this slice are used after the next one. Who gives way to look again and again does not
  // sleep; if it looked in vain in the next slice, too, nothing in this one was what it waits for.
  size_t backlog = 0;
  for (auto& c : cores_) {
    backlog += c->model.backlog();
    c->model.open(c->has_ended);
  }
  if (backlog <= kMostBacklog) return;
  ++forced_;
  for (auto& c : cores_) c->sleeps = true;
  is_forced_ = true;
  find_woken();
  while (advance(false) || (let_one_go() && advance(false))) {
  }
  is_forced_ = false;
}

// --- Windows

// False: some core has to say more first, or nobody has anything to do.
bool ChipModel::advance(bool is_final) {
  if (!in_window_) {
    // Those that woke go on in the windows in which they fell asleep, so that the windows of the
    // others do not depend on when it was known that they would. What woke them was not served yet.
    if (!run_freely(is_final)) return false;
    weave_until_ = from_;
    go_on_from_free_run();
    serve_until(from_);
    if (!begin_window()) return false;
  }
  if (!run_freely(is_final)) return false;
  in_window_ = false;
  weave_until_ = ready_.empty() ? until_ : ready_.first();
  go_on_from_free_run();
  serve_until(until_);
  from_ = std::max(from_, weave_until_);
  // At the end of a whole interval cores have executed what belongs to the time up to here.
  if (from_ == until_) {
    if (program_.range()) look_at_range();
    if (plan_) look_at_plan();
  }
  sample(from_);
  return true;
}

bool ChipModel::begin_window() {
  if (queue_.empty() && ready_.empty()) return false;
  const Ticks first = std::min(queue_.first(), ready_.first());
  const Ticks interval = ticks(shape_.interval_cycles);
  from_ = std::max(from_, first);
  until_ = (from_ / interval + 1) * interval;
  in_window_ = true;
  // Those who begin now: who begins later has to see what others do before.
  const Ticks patience = std::max<Ticks>(1, interval / kHotParts);
  while (ready_.first() < std::min(until_, from_ + patience)) {
    const uint32_t core = ready_.first_core();
    ready_.take_out(core);
    Core& c = *cores_[core];
    prefetch(*cores_[ready_.first_core()]);
    c.is_done = false;
    c.until = until_;
    c.model.begin(c.clock, patience);
    running_.push_back(core);
  }
  return true;
}

// False: some core has to say more first.
bool ChipModel::run_freely(bool is_final) {
  if (running_.empty()) return true;
  const auto run = [&](size_t at, std::vector<uint64_t>& executions) {
    Core& c = *cores_[running_[at]];
    if (!c.is_done) c.model.run(c.until, executions);
  };
  for (auto& e : executions_) e.resize(program_.counters());
  constexpr size_t kFew = 16;
  const size_t all = running_.size();
  if (config_.threads <= 1 || all <= kFew) {
    for (size_t at = 0; at < all; ++at) run(at, executions_[0]);
  } else {
    if (!workers_) workers_ = std::make_unique<Workers>(static_cast<int>(config_.threads));
    workers_->execute([&] {
      const size_t parts = executions_.size();
      // Dealt out in small pieces, so that no thread waits for another's slow ones.
      std::atomic<size_t> next{0};
      tbb::parallel_for(size_t{0}, parts, [&](size_t thread) {
        constexpr size_t kPiece = 16;
        for (size_t at; (at = next.fetch_add(kPiece, std::memory_order_relaxed)) < all;)
          for (size_t i = at; i < std::min(all, at + kPiece); ++i) run(i, executions_[thread]);
      });
    });
  }
  bool all_there = true;
  for (const uint32_t core : running_) {
    Core& c = *cores_[core];
    // A core that sleeps has come as far as it could.
    if (!c.model.is_starved())
      c.is_done = true;
    else if (!is_final && may_say_more(c))
      all_there = false;
  }
  return all_there;
}

bool ChipModel::may_say_more(const Core& c) const {
  if (c.model.has_more()) return !c.model.only_looks();
  return !c.sleeps || (c.model.is_taking_lock() && !c.has_ended && !is_forced_);
}

// Of what it does next.
Ticks ChipModel::time_of(const Core& c) const {
  return c.clock +
         (c.model.has_request() ? c.model.requests[c.model.next].gap : c.model.since_request());
}

// After each slice: cores that had nothing to do may have something.
void ChipModel::find_woken() {
  for (uint32_t core = 0; core < cores_.size(); ++core) {
    Core& c = *cores_[core];
    if (c.why == kLockHeld && c.model.is_interrupted()) {
      objects_.withdraw(core);
      c.model.withdraw();
      unblock(core, c.clock, core, Phase::kWaitingLock);
    }
    if (!c.is_parked || !(may_say_more(c) || c.model.can_go())) continue;
    c.is_parked = c.is_done = false;
    running_.push_back(core);
  }
}

void ChipModel::go_on_from_free_run() {
  for (const uint32_t core : running_) {
    std::vector<uint64_t>& found = cores_[core]->model.lock_words;
    lock_words_.insert(found.begin(), found.end());
    found.clear();
    go_on(core);
  }
  running_.clear();
}

void ChipModel::go_on(uint32_t core) {
  Core& c = *cores_[core];
  if (c.why != kRuns) return;
  if (!c.model.has_request()) {
    c.is_parked = c.model.is_starved();
    if (!c.is_parked) {
      // It runs freely again. What it does next may come before the window's end: that ends the
      // window.
      const Ticks at = time_of(c);
      weave_until_ = std::min(weave_until_, at);
      ready_.put(core, at);
      return;
    }
    // What it waits for does not end the window. Its place in the queue is taken in any case, as
    // it would be if its next words were known already.
  }
  if (std::exchange(c.is_queued, true)) return;
  queue_.put(core, time_of(c));
  if (c.model.has_request()) {
    const Request& r = c.model.requests[c.model.next];
    if (is_access(r.kind)) {
      memory_.prefetch(r.line, r.ask);
      lost_.prefetch(r.line);
    }
  }
}

// In the order of issue, up to the window's end.
void ChipModel::serve_until(Ticks end) {
  weave_until_ = std::min(weave_until_, end);
  while (queue_.first() < weave_until_) {
    const Ticks now = queue_.first();
    const uint32_t core = queue_.first_core();
    Core& c = *cores_[core];
    c.is_queued = false;
    if (c.model.has_request()) {
      if (now >= time_of(c)) {  // else it is the place of one that was parked
        memory_.advance(now);
        serve(core);
      }
      go_on(core);
    }
    if (!c.is_queued) queue_.take_out(core);  // else it has its new place there
  }
}

void ChipModel::charge(Core& c, Part part, Ticks time, uint32_t unit) {
  (void)c;
  const uint32_t core = serving_core_;
  note_time(core, phase_of(part), time);
  now_.cores[core][static_cast<size_t>(part)] += time;
  auto& at = now_.at[static_cast<size_t>(part)];
  if (unit < at.size()) at[unit] += time;
}

void ChipModel::charge(Core& c, const Stack& parts, uint32_t unit) {
  for (size_t p = 0; p < kParts; ++p)
    if (parts[p] != 0) charge(c, static_cast<Part>(p), parts[p], unit);
}

// Until at most `most` loads or stores are under way.
void ChipModel::wait_for_slot(Core& c, size_t most, bool loads, uint32_t unit) {
  auto& list = loads ? c.loads : c.stores;
  while (!list.empty() && list.front().done <= c.clock) list.pop_front();
  while (list.size() > most) {
    const Pending& p = list.front();
    wait_until(c, p.done, p.parts, unit);
    list.pop_front();
  }
}

// Until what takes `of` in all is done.
void ChipModel::wait_until(Core& c, Ticks done, const Stack& of, uint32_t unit) {
  if (done <= c.clock) return;
  const Ticks stall = done - c.clock;
  Ticks whole = 0;
  for (const Ticks t : of) whole += t;
  // Shared out as the whole was; the rest to the largest part.
  Stack parts{};
  Ticks given = 0;
  size_t largest = 0;
  for (size_t i = 0; i < kParts; ++i) {
    parts[i] = whole == 0 ? 0 : stall * of[i] / whole;
    given += parts[i];
    if (of[i] > of[largest]) largest = i;
  }
  parts[largest] += stall - given;
  charge(c, parts, unit);
  c.clock = done;
}

// An instruction reads what a load brings.
void ChipModel::wait_for_load(Core& c, uint32_t number) {
  if (c.numbered.empty()) return;
  const auto& [latest, load] = c.numbered[number & (c.numbered.size() - 1)];
  if (latest == number) wait_until(c, load.done, load.parts, load.unit);
}

void ChipModel::drain(Core& c) {
  wait_for_slot(c, 0, true, 0);
  wait_for_slot(c, 0, false, 0);
}

void ChipModel::serve(uint32_t core) {
  Core& c = *cores_[core];
  const Request r = c.model.requests[c.model.next++];
  // It is looked at when this one is done, the one behind it when that is.
  __builtin_prefetch(c.model.requests.data() + c.model.next + 1);
  if (region_ends_ && r.kind != Kind::kEnd) end_region();
  serving_ = &r;
  serving_core_ = core;
  Stack& stack = now_.cores[core];
  const Ticks compute = r.gap - r.stalls.l1 - r.stalls.dependence - r.l2;
  stack[static_cast<size_t>(Part::kCompute)] += compute;
  note_time(core, phase_of(Part::kCompute), compute);
  // Of schedules it is known, at the end, which instructions waited.
  const uint32_t stalled = program_.has_latencies() ? ~uint32_t{0} : r.unit;
  if (r.stalls.l1 != 0) charge(c, Part::kL1, r.stalls.l1, stalled);
  if (r.stalls.dependence != 0) charge(c, Part::kDependence, r.stalls.dependence, stalled);
  if (r.l2 != 0) charge(c, Part::kL2, r.l2, r.unit);
  c.clock += r.gap;
  switch (r.kind) {
    case Kind::kTail:
      break;
    case Kind::kUse:
      wait_for_load(c, r.number);
      break;
    case Kind::kNote:
      note_written(core, r);
      break;
    case Kind::kWait:
      wait(core, r);
      break;
    case Kind::kRelease:
      reach(core, r);
      break;
    case Kind::kAcquire:
      acquire_now(core, r);
      break;
    case Kind::kTake:
      take_own_lock(core, r);
      break;
    case Kind::kGive:
      give_own_lock(core, r);
      break;
    case Kind::kForget:
      forget(core, r);
      break;
    case Kind::kSignal:
      signal(core, r);
      break;
    case Kind::kAwait:
      await_signal(core, r);
      break;
    case Kind::kWrite:
      memory_.note_write(r.line, core, c.clock);
      break;
    case Kind::kBegin:
      if (!begin_) begin_ = std::make_unique<Totals>(totals_at(c.clock));
      break;
    case Kind::kEnd:
      region_ends_ = begin_ != nullptr;
      region_end_ = std::max(region_end_, c.clock);
      break;
    case Kind::kLoad:
    case Kind::kStore:
    case Kind::kAtomic:
    case Kind::kFetch:
    case Kind::kPut:
      serve_access(c, core, r);
      break;
    default:
      objects_.serve(core, r);
  }
  now_.time = std::max(now_.time, c.clock);
}

void ChipModel::serve_access(Core& c, uint32_t core, const Request& r) {
  const bool is_data = r.kind == Kind::kLoad || r.kind == Kind::kStore || r.kind == Kind::kAtomic;
  if (r.kind == Kind::kAtomic) drain(c);
  if (r.kind == Kind::kLoad) wait_for_slot(c, shape_.cores.outstanding_loads - 1, true, r.unit);
  if (r.kind == Kind::kStore)
    wait_for_slot(c, std::max(1u, shape_.cores.store_buffer) - 1, false, r.unit);
  if (is_data && (r.ask == Ask::kRead || r.ask == Ask::kOwn)) classify(core, r);
  const Answer a = memory_.ask(core, r.ask, r.line, r.order, c.clock);
  if (r.ask == Ask::kOwn || r.ask == Ask::kUpgrade) note_written(core, r);
  if (a.is_exclusive && r.ask == Ask::kRead) c.model.grant_exclusive(r.line);
  if (is_data) c.model.keep(r.line);
  if (is_data && r.counts && a.from_memory) {
    if (program_.is_off_chip(r.unit)) {
      ++off_chip_at_[r.unit];
      ++off_chip_of_[core];
    }
  }
  if (r.kind == Kind::kLoad || r.kind == Kind::kAtomic) {
    c.last_line = r.line;
    c.last_wait = a.done - c.clock;
  }
  if (r.kind == Kind::kPut || a.done == c.clock) return;
  if (r.kind == Kind::kFetch) {
    charge(c, Part::kFetch, a.done - c.clock, r.unit);
    c.clock = a.done;
  } else if (r.kind == Kind::kStore && shape_.cores.store_buffer > 0) {
    c.stores.push_back({a.done, a.parts, r.unit});
  } else if (r.kind == Kind::kLoad && shape_.cores.outstanding_loads > 1) {
    c.loads.push_back({a.done, a.parts, r.unit});
    if (program_.has_latencies()) {
      if (c.numbered.empty()) c.numbered.resize(std::bit_ceil(shape_.cores.outstanding_loads));
      c.numbered[r.number & (c.numbered.size() - 1)] = {r.number, {a.done, a.parts, r.unit}};
    }
  } else {
    charge(c, a.parts, r.unit);
    c.clock = a.done;
  }
}

// --- Misses by reason

void ChipModel::lost(uint32_t core, uint64_t line, bool stays_shared) {
  cores_[core]->model.lose(line, stays_shared);
  if (stays_shared || serving_ == nullptr) return;
  Lost& list = lost_[line];
  list.cores.push_back(core);
  list.changes.push_back({serving_->words, serving_->unit});
}

void ChipModel::note_written(uint32_t core, const Request& r) {
  Lost* const list = lost_.find(r.line);
  if (!list) return;
  for (size_t i = 0; i < list->cores.size(); ++i)
    if (list->cores[i] != core) {
      list->changes[i].written |= r.words;
      list->changes[i].writer_unit = r.unit;
    }
}

void ChipModel::classify(uint32_t core, const Request& r) {
  Miss miss = r.is_new ? Miss::kCold : Miss::kCapacity;
  if (Lost* const list = lost_.find(r.line)) {
    const uint32_t* const first = list->cores.data();
    const uint32_t* const mine = find_core(first, first + list->cores.size(), core);
    if (const auto at = mine - first; mine != first + list->cores.size()) {
      const auto change = list->changes.begin() + at;
      const bool is_true = (change->written & r.words) != 0;
      miss = is_true ? Miss::kSharing : Miss::kFalseSharing;
      ++(is_true ? now_.true_sharing : now_.false_sharing)[{change->writer_unit, r.unit}];
      list->cores.erase(list->cores.begin() + at);
      list->changes.erase(change);
      if (list->cores.empty()) lost_.erase(list);
    }
  }
  ++now_.misses[static_cast<size_t>(miss)];
}

}  // namespace gpusim::host::chip
