#include "host/chip/chip_model.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "host/chip/line_set.h"

namespace gpusim::host::chip {
namespace {

// A core keeps lines that others want for so much of an interval.
constexpr Ticks kHotParts = 64;
// Slices without a word after which a core sleeps if its backend does not say so, and if it only
// looked at a word and gave way, which no backend calls sleep.
constexpr uint32_t kSilentSlices = 2, kSilentSlicesOfLooks = 64;
// Words of all cores' streams that may wait for slower cores.
constexpr size_t kMostBacklog = size_t{1} << 26;

// Locks that a core has at the same time by code that the model does not know, at most.
constexpr size_t kMostTaken = 8;

// From the word that a wait for a condition changes, to the one by which a signal begins.
constexpr uint64_t kConditionBytes = 48;

// Before a piece of a sampled run.
constexpr Ticks kWarmingIntervals = 5;

enum Why : uint8_t { kRuns, kOrder, kWord, kLockHeld };

// Loads or stores under way, the oldest first.
struct Pending {
  Ticks done;
  Stack parts;
  uint32_t unit;
};
class PendingQueue {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  const Pending& front() const { return ring_[first_]; }
  void pop_front() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
  }
  void push_back(const Pending& p) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = p;
  }

 private:
  void grow() {
    std::vector<Pending> more(std::max<size_t>(4, 2 * ring_.size()));
    for (size_t i = 0; i < count_; ++i) more[i] = ring_[(first_ + i) & (ring_.size() - 1)];
    ring_ = std::move(more);
    first_ = 0;
  }
  std::vector<Pending> ring_;  // a power of two
  size_t first_ = 0, count_ = 0;
};

}  // namespace

// Kept from window to window: making one takes longer than a window.
struct ChipModel::Workers : tbb::task_arena {
  using tbb::task_arena::task_arena;
};

struct ChipModel::Core {
  Core(const CoreContext& context, uint32_t number) : model(context, number) {}

  CoreModel model;
  Ticks clock = 0;
  bool has_ended = false;
  bool sleeps = false;     // in the run, since the slice before
  uint32_t silent = 0;     // slices since it wrote a word
  bool is_done = false;    // ran freely as far as it should
  bool is_queued = false;  // in queue_
  bool is_parked = true;   // starved without a request: more words let it go on
  Ticks until = 0;         // end of the window in which it ran freely last
  Why why = kRuns;
  Ticks blocked_at = 0;
  PendingQueue loads, stores;
  // With latencies: of the latest loads, by number. Those before have come.
  std::vector<std::pair<uint32_t, Pending>> numbered;
  uint64_t last_line = 0;  // that it accessed and waited for, and how long
  Ticks last_wait = 0;
  struct Taken {
    uint64_t word;
    Ticks at;
  };
  std::vector<Taken> taken;  // locks of code that the model does not know
  std::unordered_map<uint64_t, uint64_t>
      seen;  // of watched lines: version that ended the last wait
  LineSet had;
};

// Of a core that is soon looked at, what is looked at first.
void ChipModel::prefetch(const Core& c) {
  constexpr size_t kLine = 64, kLines = 4;
  for (size_t i = 0; i < kLines; ++i)
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&c) + i * kLine, 1);
}

Totals& Totals::operator-=(const Totals& b) {
  const auto less = [](auto& a, const auto& before) {
    for (size_t i = 0; i < before.size(); ++i) a[i] -= before[i];
  };
  time -= b.time;
  for (size_t c = 0; c < b.cores.size(); ++c) {
    less(cores[c], b.cores[c]);
    CoreCounts& n = counts[c];
    const CoreCounts& o = b.counts[c];
    n.instructions -= o.instructions;
    n.l1_accesses -= o.l1_accesses;
    n.l1_misses -= o.l1_misses;
    n.l2_accesses -= o.l2_accesses;
    n.l2_misses -= o.l2_misses;
    n.fetches -= o.fetches;
    n.fetch_misses -= o.fetch_misses;
    n.skipped -= o.skipped;
  }
  less(held_up, b.held_up);
  for (size_t p = 0; p < kParts; ++p) less(at[p], b.at[p]);
  less(executions, b.executions);
  less(misses, b.misses);
  for (auto [mine, theirs] :
       {std::pair{&false_sharing, &b.false_sharing}, std::pair{&true_sharing, &b.true_sharing}})
    for (const auto& [pair, count] : *theirs) (*mine)[pair] -= count;
  memory.l2_accesses -= b.memory.l2_accesses;
  memory.l2_misses -= b.memory.l2_misses;
  memory.shared_accesses -= b.memory.shared_accesses;
  memory.shared_misses -= b.memory.shared_misses;
  memory.memory_reads -= b.memory.memory_reads;
  memory.memory_writes -= b.memory.memory_writes;
  memory.row_hits -= b.memory.row_hits;
  memory.invalidations -= b.memory.invalidations;
  memory.broadcasts -= b.memory.broadcasts;
  memory.forwards -= b.memory.forwards;
  memory.messages -= b.memory.messages;
  memory.flit_hops -= b.memory.flit_hops;
  memory.network_queued -= b.memory.network_queued;
  memory.shared_queued -= b.memory.shared_queued;
  memory.memory_queued -= b.memory.memory_queued;
  less(links, b.links);
  less(slices, b.slices);
  less(channels, b.channels);
  less(bytes_between, b.bytes_between);
  locks -= b.locks;
  contended_locks -= b.contended_locks;
  return *this;
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
  lost_[line].push_back({core, serving_->words, serving_->unit});
}

void ChipModel::note_written(uint32_t core, const Request& r) {
  std::vector<Lost>* const list = lost_.find(r.line);
  if (!list) return;
  for (Lost& l : *list)
    if (l.core != core) {
      l.written |= r.words;
      l.writer_unit = r.unit;
    }
}

void ChipModel::classify(uint32_t core, const Request& r) {
  const bool is_new = cores_[core]->had.insert(r.line);
  Miss miss = is_new ? Miss::kCold : Miss::kCapacity;
  if (std::vector<Lost>* const list = lost_.find(r.line)) {
    const auto mine =
        std::find_if(list->begin(), list->end(), [&](const Lost& l) { return l.core == core; });
    if (mine != list->end()) {
      const bool is_true = (mine->written & r.words) != 0;
      miss = is_true ? Miss::kSharing : Miss::kFalseSharing;
      ++(is_true ? now_.true_sharing : now_.false_sharing)[{mine->writer_unit, r.unit}];
      list->erase(mine);
      if (list->empty()) lost_.erase(list);
    }
  }
  ++now_.misses[static_cast<size_t>(miss)];
}

// --- Order

void ChipModel::block(uint32_t core, uint8_t why) {
  Core& c = *cores_[core];
  c.why = static_cast<Why>(why);
  c.blocked_at = c.clock;
}

Ticks ChipModel::clock_of(uint32_t core) const { return cores_[core]->clock; }
void ChipModel::wait_for_lock(uint32_t core) { block(core, kLockHeld); }
void ChipModel::wait_for_others(uint32_t core) { block(core, kOrder); }

void ChipModel::unblock(uint32_t core, Ticks at, uint32_t by, Phase waited_for) {
  Core& c = *cores_[core];
  if (at > c.clock) {
    const Ticks waited = at - c.clock;
    now_.cores[core][static_cast<size_t>(Part::kWaiting)] += waited;
    note_time(core, waited_for, waited);
    if (by < now_.held_up.size()) now_.held_up[by] += waited;
    c.clock = at;
  }
  const bool was_blocked = c.why != kRuns;
  c.why = kRuns;
  if (was_blocked) go_on(core);
  now_.time = std::max(now_.time, c.clock);
}

// A word was looked at in vain until it changed.
void ChipModel::wait(uint32_t core, const Request& r) {
  Core& c = *cores_[core];
  drain(c);
  const MemorySystem::Version& v = memory_.watch(r.line);
  uint64_t& seen = c.seen[r.line];
  if (v.count > seen && v.core != core) {
    seen = v.count;
    return unblock(core, v.at, v.core, Phase::kWaitingWord);
  }
  watchers_[r.line].push_back(core);
  block(core, kWord);
}

void ChipModel::reach(uint32_t core, const Request& r) {
  Core& c = *cores_[core];
  drain(c);
  const Order& order = c.model.order(r.order);
  if (order.has_word && !shape_.is_ideal) {
    // Whoever comes says so by an atomic operation on the word.
    Request access = r;
    access.kind = Kind::kAtomic;
    access.ask = shape_.shared.coherence == Coherence::kMesi ? Ask::kOwn : Ask::kFar;
    access.order = 8;
    access.counts = false;
    serving_ = &access;
    const Answer a = memory_.ask(core, access.ask, access.line, access.order, c.clock);
    charge(c, a.parts, ~uint32_t{0});
    c.clock = a.done;
    serving_ = &r;
  }
  KeyState& key = keys_[order.key];
  if (key.is_forgotten) {
    keys_.erase(order.key);
    return;
  }
  ++key.reached;
  if (c.clock >= key.at) key.by = core;
  key.at = std::max(key.at, c.clock);
  if (key.reached < key.least) return;
  key.least = ~uint64_t{0};
  const std::vector<uint32_t> waiting = std::move(key.waiting);
  key.waiting.clear();
  for (const uint32_t other : waiting) {
    Core& w = *cores_[other];
    const Request& asked = w.model.requests[w.model.next - 1];
    const uint64_t required = w.model.order(asked.order).required;
    if (required > key.reached) {
      key.waiting.push_back(other);
      key.least = std::min(key.least, required);
    } else {
      unblock(other, key.at, key.by, Phase::kWaitingOrder);
    }
  }
  if (!order.has_word && !order.stays) keys_.erase(order.key);  // one waited, and no more will
}

void ChipModel::acquire_now(uint32_t core, const Request& r) {
  const Order& order = cores_[core]->model.order(r.order);
  KeyState& key = keys_[order.key];
  if (key.reached >= order.required) {
    unblock(core, key.at, key.by, Phase::kWaitingOrder);
    if (!order.has_word && !order.stays) keys_.erase(order.key);
    return;
  }
  key.least = std::min(key.least, order.required);
  key.waiting.push_back(core);
  block(core, kOrder);
}

// Of the kernel; one core would have waited.
void ChipModel::forget(uint32_t core, const Request& r) {
  if (r.words != 0 && !objects_.is_known(r.words))  // of a semaphore or a barrier
    return acquire_now(core, r);
  const Order& order = cores_[core]->model.order(r.order);
  KeyState& key = keys_[order.key];
  key.is_forgotten = true;
  if (key.reached != 0) keys_.erase(order.key);
}

void ChipModel::Signals::add(Last last) {
  Last& mine = last.core == second.core ? second : first;
  if (last.core == mine.core)
    mine.slice = std::max(mine.slice, last.slice);
  else if (first.core == ~uint32_t{0} || last.slice >= first.slice)
    second = std::exchange(first, last);
  else if (second.core == ~uint32_t{0} || last.slice > second.slice)
    second = last;
  if (second.core != ~uint32_t{0} && second.slice > first.slice) std::swap(first, second);
}

void ChipModel::signal(uint32_t core, const Request& r) {
  signals_[r.words].add({core, r.order});
  std::vector<uint32_t> awake;
  const uint64_t before = r.words - std::min(r.words, kConditionBytes);
  for (auto it = awaiting_.upper_bound(before); it != awaiting_.end() && it->first <= r.words; ++it)
    std::erase_if(it->second, [&](uint32_t other) {
      const CoreModel& waiting = cores_[other]->model;
      const bool goes_on = other != core && waiting.requests[waiting.next - 1].order <= r.order;
      if (goes_on) awake.push_back(other);
      return goes_on;
    });
  for (const uint32_t other : awake)
    unblock(other, cores_[core]->clock, core, Phase::kWaitingOrder);
}

void ChipModel::await_signal(uint32_t core, const Request& r) {
  for (auto it = signals_.lower_bound(r.words);
       it != signals_.end() && it->first - r.words < kConditionBytes; ++it)
    if (it->second.has_since(r.order, core)) return;
  awaiting_[r.words].push_back(core);
  block(core, kOrder);
}

// The atomic operation of a core that takes or gives a lock.
void ChipModel::access_lock(uint32_t core, const Request& r) {
  Core& c = *cores_[core];
  drain(c);
  if (shape_.is_ideal) return;
  const Ask ask = shape_.shared.coherence == Coherence::kMesi ? Ask::kOwn : Ask::kFar;
  const Answer a = memory_.ask(core, ask, r.line, 8, c.clock);
  charge(c, a.parts, r.unit);
  c.clock = a.done;
}

// The next one sees it by a read of the word.
void ChipModel::hand_over(uint32_t next, uint32_t core, const Request& r) {
  const Ticks now = cores_[core]->clock;
  if (shape_.is_ideal) return unblock(next, now, core, Phase::kWaitingLock);
  const Answer seen = memory_.ask(
      next, shape_.shared.coherence == Coherence::kMesi ? Ask::kRead : Ask::kFar, r.line, 8, now);
  unblock(next, seen.done, core, Phase::kWaitingLock);
}

void ChipModel::take_own_lock(uint32_t core, const Request& r) {
  Core& c = *cores_[core];
  if (!shape_.is_ideal) {
    OwnLock& lock = own_locks_[r.words];
    if (c.last_line == r.line) lock.handover = std::max(lock.handover, c.last_wait);
    c.last_wait = 0;
  }
  std::erase_if(c.taken, [&](const Core::Taken& t) { return t.word == r.words; });
  if (c.taken.size() == kMostTaken) c.taken.erase(c.taken.begin());
  c.taken.push_back({r.words, c.clock});
}

// How long the core had the lock is known now. The piece goes to where the lock was free, at or
// after the time at which the core took it, and the core is moved by as much.
void ChipModel::give_own_lock(uint32_t core, const Request& r) {
  Core& c = *cores_[core];
  const auto taken =
      std::ranges::find_if(c.taken, [&](const Core::Taken& t) { return t.word == r.words; });
  if (taken == c.taken.end()) return;
  const Ticks at = taken->at;
  c.taken.erase(taken);
  OwnLock& lock = own_locks_[r.words];
  Ticks length = c.clock - at;
  Ticks begin = lock.held.first_free(at, length);
  ++now_.locks;
  if (begin > at) {
    ++now_.contended_locks;
    length += lock.handover;  // its word comes from the one before
    begin = lock.held.first_free(at, length);
  }
  lock.held.take(begin, length);
  if (lock.held.size() >= lock.look_at) forget_pieces(r.words, lock);
  unblock(core, begin + length, lock.last_holder, Phase::kWaitingLock);
  lock.last_holder = core;
}

void ChipModel::forget_pieces(uint64_t word, OwnLock& lock) {
  Ticks first = ~Ticks{0};
  for (const auto& c : cores_) {
    if (c->has_ended && c->model.backlog() == 0 && !c->model.has_request()) continue;
    first = std::min(first, c->clock);
    for (const Core::Taken& t : c->taken)
      if (t.word == word) first = std::min(first, t.at);
  }
  lock.held.forget_before(first);
  lock.look_at = std::max<size_t>(1024, 2 * lock.held.size());
}

// Of cores that wait for what no simulated core will do: the earliest goes on.
bool ChipModel::let_one_go() {
  uint32_t best = ~uint32_t{0};
  for (uint32_t core = 0; core < cores_.size(); ++core) {
    const Core& c = *cores_[core];
    if (c.why != kRuns && (best == ~uint32_t{0} || c.clock < cores_[best]->clock)) best = core;
  }
  if (best == ~uint32_t{0}) return false;
  ++unexplained_waits_;
  for (auto& [line, list] : watchers_) std::erase(list, best);
  for (auto& [key, state] : keys_) std::erase(state.waiting, best);
  objects_.withdraw(best);
  for (auto& [word, list] : awaiting_) std::erase(list, best);
  unblock(best, cores_[best]->clock, best, Phase::kWaitingOrder);
  return true;
}

// --- Results

Totals ChipModel::totals_at(Ticks time) {
  Totals t = now_;
  t.time = time;
  t.locks += objects_.locks;
  t.contended_locks += objects_.contended_locks;
  for (size_t c = 0; c < cores_.size(); ++c) t.counts[c] = cores_[c]->model.counts;
  t.executions.assign(program_.size(), 0);
  for (const auto& thread : executions_) program_.add_executions(thread, t.executions, t.at);
  t.memory = memory_.counts();
  const Network& network = memory_.network();
  for (uint32_t l = 0; l < network.link_count(); ++l) t.links.push_back(network.used(l));
  for (uint32_t s = 0; s < shape_.shared.slices; ++s) t.slices.push_back(memory_.slice_used(s));
  for (uint32_t c = 0; c < shape_.memory.channels; ++c)
    t.channels.push_back(memory_.channel_used(c));
  const uint32_t tiles = network.tiles();
  t.bytes_between.reserve(size_t{tiles} * tiles);
  for (uint32_t a = 0; a < tiles; ++a)
    for (uint32_t b = 0; b < tiles; ++b) t.bytes_between.push_back(network.bytes_between(a, b));
  return t;
}

// Many cores end it at the same time: once for all of them.
void ChipModel::end_region() {
  end_ = std::make_unique<Totals>(totals_at(region_end_));
  region_ends_ = false;
}

uint64_t ChipModel::executed() const {
  uint64_t instructions = 0;
  for (const auto& c : cores_) instructions += c->model.counts.instructions;
  return instructions;
}

// A region by number of instructions begins and ends with a window.
void ChipModel::look_at_range() {
  if (end_) return;
  const uint64_t instructions = executed();
  if (!begin_) {
    if (instructions >= program_.range()->first)
      begin_ = std::make_unique<Totals>(totals_at(from_));
  } else if (instructions >= program_.range()->end) {
    end_ = std::make_unique<Totals>(totals_at(from_));
  }
}

// --- Pieces in detail

void ChipModel::sample_pieces(const SamplingPlan& plan) {
  plan_ = plan;
  if (is_of_interest()) return;  // from the first instruction on
  detail_ = Detail::kNo;
  memory_.ignore_load(true);
}

bool ChipModel::is_of_interest() const {
  if (end_ || region_ends_) return false;
  // Whether a program that could mark its region ever does so is not known before.
  return begin_ || !(program_.region_is_function() || program_.range());
}

// After an interval.
void ChipModel::look_at_plan() {
  if (detail_ != Detail::kNo) in_detail_ += from_ - looked_at_;
  looked_at_ = from_;
  const uint64_t now = executed();
  if (begin_ && !std::exchange(region_has_begun_, true)) {
    pieces_.clear();
    piece_from_ = detail_ == Detail::kNo ? now - std::min(now, plan_->skip) : now;
    if (detail_ == Detail::kYes) piece_begin_ = from_;
  }
  const auto stop = [&] {
    detail_ = Detail::kNo;
    memory_.ignore_load(true);
  };
  if (!is_of_interest()) {
    if (detail_ != Detail::kNo) stop();
    piece_from_ = now - std::min(now, plan_->skip);  // the next piece begins with the region
    return;
  }
  switch (detail_) {
    case Detail::kNo:
      if (now - piece_from_ < plan_->skip) return;
      detail_ = Detail::kWarming;
      piece_begin_ = from_ + kWarmingIntervals * ticks(shape_.interval_cycles);
      memory_.ignore_load(false);
      return;
    case Detail::kWarming:
      if (from_ < piece_begin_) return;
      detail_ = Detail::kYes;
      piece_from_ = now;
      piece_begin_ = from_;
      return;
    case Detail::kYes:
      if (now - piece_from_ < plan_->detail) return;
      pieces_.push_back({now - piece_from_, cycles_of(from_ - piece_begin_)});
      piece_from_ = now;
      stop();
  }
}

void ChipModel::sample(Ticks end, bool is_last) {
  constexpr size_t kMost = 256;
  constexpr uint32_t kMostChannels = 64;
  if (shape_.is_ideal || end < sampled_until_ + (is_last ? 1 : sample_length_)) return;
  Sample s{.begin = sampled_until_, .end = end};
  const Network& network = memory_.network();
  const auto length = static_cast<double>(end - sampled_until_);
  Ticks sum = 0, most = 0;
  sampled_.links.resize(network.link_count());
  for (uint32_t place = 0; place < network.link_count(); ++place) {
    const Ticks used = network.used_at(place);
    sum += used - sampled_.links[place];
    most = std::max(most, used - sampled_.links[place]);
    sampled_.links[place] = used;
  }
  s.busiest_link = static_cast<double>(most) / length;
  s.mean_link = static_cast<double>(sum) / length / network.link_count();
  sampled_.channels.resize(shape_.memory.channels);
  for (uint32_t c = 0; c < shape_.memory.channels; ++c) {
    const auto used = static_cast<double>(memory_.channel_used(c) - sampled_.channels[c]) / length;
    s.channels += used / shape_.memory.channels;
    if (shape_.memory.channels <= kMostChannels) s.each_channel.push_back(used);
    sampled_.channels[c] = memory_.channel_used(c);
  }
  sampled_.slices.resize(shape_.shared.slices);
  for (uint32_t i = 0; i < shape_.shared.slices; ++i) {
    s.slices += static_cast<double>(memory_.slice_used(i) - sampled_.slices[i]) / length /
                shape_.shared.slices;
    sampled_.slices[i] = memory_.slice_used(i);
  }
  uint64_t instructions = 0;
  for (const auto& c : cores_) instructions += c->model.counts.instructions;
  s.instructions_per_cycle = static_cast<double>(instructions - sampled_.locks) / length * kCycle;
  sampled_.locks = instructions;  // of the sample before
  sampled_until_ = end;
  samples_.push_back(s);
  if (samples_.size() < kMost) return;
  for (size_t i = 0; i + 1 < samples_.size(); i += 2) {
    const Sample &a = samples_[i], &b = samples_[i + 1];
    const auto la = static_cast<double>(a.end - a.begin), lb = static_cast<double>(b.end - b.begin);
    const auto mean = [&](double x, double y) { return (x * la + y * lb) / (la + lb); };
    std::vector<double> each_channel = a.each_channel;
    for (size_t c = 0; c < each_channel.size(); ++c)
      each_channel[c] = mean(each_channel[c], b.each_channel[c]);
    samples_[i / 2] = {
        .begin = a.begin,
        .end = b.end,
        .busiest_link = mean(a.busiest_link, b.busiest_link),
        .mean_link = mean(a.mean_link, b.mean_link),
        .channels = mean(a.channels, b.channels),
        .slices = mean(a.slices, b.slices),
        .instructions_per_cycle = mean(a.instructions_per_cycle, b.instructions_per_cycle),
        .each_channel = std::move(each_channel)};
  }
  samples_.resize(samples_.size() / 2);
  sample_length_ *= 2;
}

// The last window goes on behind the run's end.
void ChipModel::end_last_sample(Ticks end) {
  if (samples_.empty() || samples_.back().end <= end || samples_.back().begin >= end) return;
  Sample& s = samples_.back();
  const double longer = static_cast<double>(s.end - s.begin) / static_cast<double>(end - s.begin);
  for (double* value :
       {&s.busiest_link, &s.mean_link, &s.channels, &s.slices, &s.instructions_per_cycle})
    *value *= longer;
  for (double& value : s.each_channel) value *= longer;
  s.end = end;
}

ChipResult ChipModel::finish(std::span<const BlockSites> blocks) {
  settle();
  program_.grow(blocks);
  for (auto& c : cores_) {
    c->model.open(true);
    c->sleeps = true;
  }
  find_woken();
  while (advance(true) || let_one_go()) {
  }
  if (region_ends_) end_region();
  for (uint32_t core = 0; core < cores_.size(); ++core) {
    serving_core_ = core;
    drain(*cores_[core]);
    now_.time = std::max(now_.time, cores_[core]->clock);
  }
  sample(now_.time, true);
  end_last_sample(now_.time);
  ChipResult result;
  result.timeline = timeline_;
  result.region_has_ended = end_ != nullptr;
  result.totals = end_ ? std::move(*end_) : totals_at(now_.time);
  if (begin_) {
    result.begin = begin_->time;
    result.totals -= *begin_;
    result.has_region = true;
  }
  if (plan_) {
    if (detail_ != Detail::kNo) in_detail_ += now_.time - std::min(now_.time, looked_at_);
    if (detail_ == Detail::kYes && is_of_interest() && executed() > piece_from_ &&
        now_.time > piece_begin_)
      pieces_.push_back({executed() - piece_from_, cycles_of(now_.time - piece_begin_)});
    uint64_t instructions = 0;
    for (const CoreCounts& c : result.totals.counts) instructions += c.instructions;
    result.sampled = estimate_cycles(pieces_, instructions);
    result.sampled->modelled_cycles = cycles_of(result.totals.time);
    result.in_detail = in_detail_;
  }
  for (const auto& c : cores_) result.clocks.push_back(c->clock);
  for (const Stack& stack : now_.cores)
    result.waited.push_back(stack[static_cast<size_t>(Part::kWaiting)]);
  result.samples = samples_;
  result.off_chip_at = off_chip_at_;
  result.off_chip_of = off_chip_of_;
  result.unexplained_waits = unexplained_waits_;
  result.forced = forced_;
  return result;
}

}  // namespace gpusim::host::chip
