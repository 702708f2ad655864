#include "host/chip/core_model.h"

#include <algorithm>
#include <utility>

#include "host/chip/core_stream.h"

namespace gpusim::host::chip {
namespace {

uint64_t mask_of(uint64_t address, uint32_t bytes, uint32_t line_bytes) {
  const uint64_t first = (address & (line_bytes - 1)) / 8;
  const uint64_t last = ((address & (line_bytes - 1)) + std::max(bytes, 1u) - 1) / 8;
  const uint64_t count = std::min<uint64_t>(last, 63) - std::min<uint64_t>(first, 63) + 1;
  return (count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << std::min<uint64_t>(first, 63);
}

}  // namespace

CoreModel::CoreModel(const CoreContext& context, uint32_t number)
    : c_(context),
      number_(number),
      is_coherent_(context.shape.shared.coherence == Coherence::kMesi),
      writes_back_(!context.shape.l1_data || context.shape.l1_data->is_write_back),
      shares_(context.shape.cores.count > 1),
      is_private_(context.config.memory_model == MemoryModel::kPrivate),
      has_clocks_(context.config.notes_clocks),
      has_schedules_(context.program.has_latencies()),
      counts_loads_(has_schedules_ && context.shape.cores.outstanding_loads > 1) {
  const ChipShape& s = c_.shape;
  if (s.l1_data) l1_ = StateCache(*s.l1_data, s.line_bytes, c_.pool);
  if (s.l2 && !s.l2->is_of_tile) l2_ = StateCache(*s.l2, s.line_bytes, c_.pool);
  if (s.l1_instruction) fetch_ = StateCache(*s.l1_instruction, s.line_bytes, c_.pool);
}

void CoreModel::append(std::span<const uint64_t> words, uint32_t slice) {
  constexpr size_t kMuch = 1 << 14;
  if (at_ > kMuch && at_ > words_.size() / 2) {
    words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(at_));
    usable_ -= at_;
    scan_at_ -= std::min(scan_at_, at_);
    erased_ += at_;
    at_ = 0;
  }
  words_.insert(words_.end(), words.begin(), words.end());
  slice_of(at_);
  slices_.push_back({erased_ + words_.size(), slice});
}

void CoreModel::append(const Order& order) {
  words_.push_back(kOrderMark | orders_.size());
  orders_.push_back(order);
  handlers_ += order.begins_handler;
}

bool CoreModel::append_clock(uint64_t clock) {
  if (clock == last_clock_) return false;
  last_clock_ = clock;
  words_.push_back(kClockMark | clock);
  return true;
}

void CoreModel::begin(Ticks clock, Ticks patience) {
  for (Look& l : looks_) {  // requests after it cannot be undone
    if (requests.size() > l.requests) {
      l.since = l.since_l2 = 0;
      l.stalls = {};
    }
    l.requests = 0;
    l.estimate = clock;
  }
  requests.clear();
  next = 0;
  estimate_ = clock;
  hot_from_ = clock + since_ + patience;
  must_wait_ = false;
  apply_losses();
}

void CoreModel::apply_losses() {
  for (const uint64_t line : grants_)
    for (StateCache* cache : {&l1_, &l2_}) {
      if (cache == &l1_ ? !c_.shape.l1_data : (!c_.shape.l2 || c_.shape.l2->is_of_tile)) continue;
      uint64_t* const entry = cache->find(line);
      if (entry && StateCache::state(*entry) == LineState::kShared)
        StateCache::set_state(entry, LineState::kExclusive);
    }
  grants_.clear();
  for (const Loss& loss : losses_) {
    hot_[loss.line % kHotLines] = loss.line + 1;
    for (StateCache* cache : {&l1_, &l2_}) {
      if (cache == &l1_ ? !c_.shape.l1_data : (!c_.shape.l2 || c_.shape.l2->is_of_tile)) continue;
      if (loss.stays_shared) {
        if (uint64_t* const entry = cache->find(loss.line))
          StateCache::set_state(entry, LineState::kShared);
      } else {
        cache->drop(loss.line);
      }
    }
  }
  losses_.clear();
}

void CoreModel::emit(Kind kind, Ask ask, uint64_t line, uint64_t words, uint32_t order,
                     uint32_t unit, bool first, Ticks least) {
  const bool is_fill = (ask == Ask::kRead || ask == Ask::kOwn) &&
                       (kind == Kind::kLoad || kind == Kind::kStore || kind == Kind::kAtomic);
  requests.push_back({.line = line,
                      .words = words,
                      .gap = since_,
                      .stalls = stalls_,
                      .l2 = since_l2_,
                      .unit = unit,
                      .order = order,
                      .number = kind == Kind::kLoad ? ++loads_ : 0,
                      .kind = kind,
                      .ask = ask,
                      .counts = first,
                      .is_new = is_fill && had_.insert(line)});
  estimate_ += since_ + least;
  since_ = since_l2_ = 0;
  stalls_ = {};
  must_wait_ = may_block(kind) || (kind == Kind::kForget && words != 0);
}

void CoreModel::end_block() {
  if (!block_) return;
  if (!uses_.empty()) use_before(block_->cost + 1);
  come_to({block_->cost, block_->stalls});
  last_end_ = block_->end_pc;
  before_ = block_;
  block_ = nullptr;
}

void CoreModel::begin_block(uint32_t number) {
  end_block();
  if (last_end_ == ~uint64_t{0}) break_off();
  const BlockModel& b =
      has_schedules_ ? c_.program.scheduled(number, before_) : c_.program.block(number);
  const bool is_taken = b.pc != last_end_;
  if (is_taken) since_ += ticks(c_.shape.cores.taken_branch_cycles);
  block_ = &b;
  site_ = 0;
  counted_ = 0;
  counted_stalls_ = {};
  counts.instructions += b.insn_count;
  const uint32_t counter = b.counter_of(is_taken);
  if (counter >= executions_->size()) executions_->resize(c_.program.counters());
  ++(*executions_)[counter];
  if (looked_at_ != 0) look_blocks_.push_back(counter);
  if (!uses_.empty()) carry_uses();
  if (c_.shape.l1_instruction) fetch(b);
}

// --- Uses of loads that may be under way

// The core waits for those whose results are read earlier than at that moment of its block.
void CoreModel::use_before(Ticks at) {
  for (;;) {
    const auto first = std::ranges::min_element(
        uses_, {}, [](const Use& u) { return u.at ? u.at->at : ~Ticks{0}; });
    if (first == uses_.end() || !first->at || first->at->at >= at) return;
    const Use use = *first;
    std::erase_if(uses_, [&](const Use& u) { return u.load == use.load; });
    come_to(*use.at);
    emit(Kind::kUse, Ask::kRead, 0, 0, 0, 0, false, 0);
    requests.back().number = use.load;
    estimate_ = std::max(estimate_, use.least);
  }
}

// Behind an access whose requests begin there.
void CoreModel::note_uses(const SiteModel& site, size_t first_request) {
  const SitePoint& point = block_->points[static_cast<size_t>(&site - block_->sites.data())];
  for (size_t i = first_request; i < requests.size(); ++i) {
    if (requests[i].kind != Kind::kLoad) continue;
    const uint32_t load = requests[i].number;
    const Ticks least = estimate_ + c_.least_miss;
    if (point.use) uses_.push_back({load, point.use, 0, least});
    if (point.use) continue;
    for (const Slot slot : point.left) uses_.push_back({load, std::nullopt, slot, least});
  }
}

// Into the block that begins.
void CoreModel::carry_uses() {
  std::erase_if(uses_, [&](Use& use) {
    const auto touch =
        std::ranges::find(block_->touches, use.slot, [](const auto& t) { return t.slot; });
    if (touch == block_->touches.end())
      return loads_ - use.load >= c_.shape.cores.outstanding_loads;
    use.at = touch->use;
    return !use.at;
  });
}

void CoreModel::forget_looks() {
  looks_.clear();
  look_blocks_.clear();
  looked_at_ = 0;
}

// Between blocks. Whatever the core executed since the last one that words told of takes its time.
void CoreModel::meet_clock(uint64_t clock) {
  if (in_lock_ && !lock_returns_) {
    expected_ = clock;
    return;
  }
  if (in_lock_) {
    block_ = nullptr;
    leave_lock();
  }
  const Gap gap = gap_between(expected_, clock);
  if (gap.count != 0) {
    last_barrier_ = leaves_ = 0;
    forget_looks();
  } else if (block_) {
    last_barrier_ = block_->barrier;
  }
  end_block();
  if (gap.count != 0) last_end_ = ~uint64_t{0};
  since_ += gap.ticks;
  expected_ = clock;
}

// The same where a block begins, outside of a lock's function.
void CoreModel::meet_block(const BlockModel& block, uint64_t clock) {
  const Gap gap = gap_between(expected_, clock);
  if (gap.count != 0) {
    forget_looks();
    end_block();
    last_end_ = ~uint64_t{0};
    since_ += gap.ticks;
  }
  expected_ = end_of(block, clock);
}

void CoreModel::fetch(const BlockModel& b) {
  if (b.insn_count == 0) return;
  const uint64_t first = b.pc >> c_.line_shift, last = (b.end_pc - 1) >> c_.line_shift;
  for (uint64_t line = first; line <= last; ++line) {
    if (line == last_fetch_) continue;
    last_fetch_ = line;
    ++counts.fetches;
    if (fetch_.touch(line)) continue;
    ++counts.fetch_misses;
    fetch_.fill(line, LineState::kExclusive);
    emit(Kind::kFetch, Ask::kFetch, line_of(line << c_.line_shift, c_.line_shift), 0, 0, b.unit,
         true, c_.least_miss);
  }
}

void CoreModel::take_order(uint32_t index) {
  const Order& order = orders_[index];
  if (order.is_time_out) {
    awaited_ = 0;
    return;
  }
  break_off();
  if (order.begins_handler) return begin_handler();
  if (order.ends_handler) return end_handler();
  if (in_lock_) block_ = nullptr;
  if (in_lock_ && !order.is_release && !order.has_word) {
    const bool may_be_unknown =
        call_->word == LockWord::kArgument && lock_block_->role >= Role::kDown;
    return emit(Kind::kForget, Ask::kRead, 0, may_be_unknown ? lock_word_ : 0, index, 0, false, 0);
  }
  if (!order.is_release) awaited_ = 0;
  if (block_) last_barrier_ = block_->barrier;
  end_block();
  looked_at_ = 0;
  emit(order.is_release ? Kind::kRelease : Kind::kAcquire, Ask::kRead,
       order.has_word ? line_of(order.key >> 1, c_.shape.l1_data ? c_.line_shift : c_.granule_shift)
                      : 0,
       1, index, 0, false, 0);
  if (!order.is_release || !order.has_word) return;
  scanning_ = Scanning::kBarrier;
  scan_at_ = at_;
  scanned_ = skipped_ = 0;
  scan_block_ = nullptr;
  scan_expected_ = expected_;
  released_ = index;
}

// --- Accesses

void CoreModel::evict(const StateCache::Victim& victim, uint32_t unit) {
  const bool is_dirty = victim.state == LineState::kModified;
  if (!is_dirty && !is_coherent_) return;
  emit(Kind::kPut, is_dirty ? Ask::kPutDirty : Ask::kPut, victim.line, 0, 0, unit, false, 0);
}

void CoreModel::far(const SiteModel& site, uint64_t line, uint32_t bytes, bool first) {
  const bool is_atomic = site.kind == SiteKind::kAtomic;
  const bool waits = site.kind == SiteKind::kLoad && c_.shape.cores.outstanding_loads == 1;
  emit(is_atomic                       ? Kind::kAtomic
       : site.kind == SiteKind::kStore ? Kind::kStore
                                       : Kind::kLoad,
       site.kind == SiteKind::kLoad ? Ask::kFarRead : Ask::kFar, line, 0, std::max(bytes, 1u),
       site.unit, first, is_atomic || waits ? c_.least_miss : 0);
}

void CoreModel::miss(const SiteModel& site, uint64_t line, uint64_t words, bool write, bool first) {
  const ChipShape& s = c_.shape;
  if (first) ++counts.l1_misses;
  const bool has_l2 = s.l2 && !s.l2->is_of_tile;
  const bool makes_dirty = write && writes_back_;
  if (has_l2) {
    ++counts.l2_accesses;
    since_ += ticks(s.l2->hit_cycles);
    since_l2_ += ticks(s.l2->hit_cycles);
    if (uint64_t* entry = l2_.touch(line)) {
      const LineState was = StateCache::state(*entry);
      LineState now = makes_dirty ? LineState::kModified : was;
      if (const auto victim = l1_.fill(line, now); victim && victim->state == LineState::kModified)
        if (uint64_t* below = l2_.find(victim->line))
          StateCache::set_state(below, LineState::kModified);
      if (makes_dirty) StateCache::set_state(l2_.find(line), LineState::kModified);
      if (makes_dirty && was == LineState::kShared && is_coherent_)
        emit(site.kind == SiteKind::kAtomic ? Kind::kAtomic : Kind::kStore, Ask::kUpgrade, line,
             words, 0, site.unit, first, 0);
      return;
    }
    ++counts.l2_misses;
  }
  const bool is_load = site.kind == SiteKind::kLoad;
  const Kind kind = is_load                          ? Kind::kLoad
                    : site.kind == SiteKind::kAtomic ? Kind::kAtomic
                                                     : Kind::kStore;
  if (write && !writes_back_) {  // no line is fetched for a write
    emit(kind, Ask::kWriteThrough, line, words, 8, site.unit, first, 0);
    return;
  }
  emit(kind, write ? (is_coherent_ ? Ask::kOwn : Ask::kRead) : Ask::kRead, line, words, 0,
       site.unit, first,
       kind == Kind::kStore || c_.shape.cores.outstanding_loads > 1 ? 0 : c_.least_miss);
  const LineState state = makes_dirty    ? LineState::kModified
                          : is_coherent_ ? LineState::kShared
                                         : LineState::kExclusive;
  if (!has_l2) {
    if (const auto victim = l1_.fill(line, state)) evict(*victim, site.unit);
    return;
  }
  if (const auto victim = l1_.fill(line, state); victim && victim->state == LineState::kModified)
    if (uint64_t* below = l2_.find(victim->line))
      StateCache::set_state(below, LineState::kModified);
  if (auto victim = l2_.fill(line, state)) {
    if (l1_.drop(victim->line) == LineState::kModified) victim->state = LineState::kModified;
    evict(*victim, site.unit);
  }
}

void CoreModel::write_hit(const SiteModel& site, uint64_t line, uint64_t words, uint32_t bytes,
                          uint64_t* entry, bool first) {
  const Kind kind = site.kind == SiteKind::kAtomic ? Kind::kAtomic : Kind::kStore;
  if (!writes_back_) {
    emit(kind, Ask::kWriteThrough, line, words, std::max(bytes, 1u), site.unit, first, 0);
    return;
  }
  const LineState was = StateCache::state(*entry);
  if (was != LineState::kModified) StateCache::set_state(entry, LineState::kModified);
  if (!is_coherent_) return;
  if (was == LineState::kShared)
    emit(kind, Ask::kUpgrade, line, words, 0, site.unit, first, 0);
  else if (is_hot(line))
    emit(Kind::kNote, Ask::kRead, line, words, 0, site.unit, false, 0);
}

void CoreModel::access_line(const SiteModel& site, uint64_t line, uint64_t words, uint32_t bytes,
                            bool first) {
  const bool write = site.kind != SiteKind::kLoad;
  if (site.kind == SiteKind::kAtomic && !is_coherent_ && shares_) {
    if (first) ++counts.l1_misses;
    if (l1_.drop(line) == LineState::kModified)
      emit(Kind::kPut, Ask::kPutDirty, line, 0, 0, site.unit, false, 0);
    return far(site, line, bytes, first);
  }
  if (uint64_t* entry = l1_.touch(line)) {
    if (write)
      write_hit(site, line, words, bytes, entry, first);
    else if (c_.shape.l1_data->hit_cycles > 1 && !has_schedules_) {
      const Ticks more = ticks(c_.shape.l1_data->hit_cycles - 1);
      since_ += more;
      stalls_.l1 += more;
    }
    return;
  }
  miss(site, line, words, write, first);
}

// False: the core has to stop before it.
bool CoreModel::access(const SiteModel& site, uint64_t address, uint32_t bytes) {
  const uint32_t shift = c_.shape.l1_data ? c_.line_shift : c_.granule_shift;
  uint64_t line = line_of(address, shift);
  const uint64_t last = bytes > 1 ? line_of(address + bytes - 1, shift) : line;
  if (has_schedules_) {
    if (!uses_.empty()) use_before(site.before);
    const size_t number = static_cast<size_t>(&site - block_->sites.data());
    come_to({site.before, block_->points[number].stalls});
  } else {
    since_ += site.before - counted_;
    counted_ = site.before;
  }
  if (looked_at_ != 0 || site.acquires || site.kind == SiteKind::kAtomic) look(site, address);
  if (site.kind == SiteKind::kLoad) last_load_ = line;
  ++counts.l1_accesses;
  if (c_.shape.is_ideal) {
    if (site.kind == SiteKind::kAtomic || site.releases)
      emit(Kind::kWrite, Ask::kRead, line, 0, 0, site.unit, false, 0);
    return true;
  }
  if (!c_.shape.l1_data) {
    for (bool first = true;; first = false, ++line) {
      far(site, line, bytes, first);
      if (line == last) return true;
    }
  }
  const uint32_t line_bytes = c_.shape.line_bytes;
  for (bool first = true;; first = false, ++line) {
    const uint64_t from = first ? address : 0;
    const uint64_t end = line == last ? ((address + bytes - 1) & (line_bytes - 1)) + 1 : line_bytes;
    const auto here = static_cast<uint32_t>(end - (from & (line_bytes - 1)));
    access_line(site, line, mask_of(from, here, line_bytes), here, first);
    if (line == last) return true;
  }
}

// --- The stream

// Words of which nothing has to be known but what the core's own caches say: hits, in blocks that
// are no more than their instructions. Most words are such. Stops before the first that is not.
// kIdeal: memory takes no time, so that every plain access is a hit.
// kSchedules: cycles of blocks are those of their schedules, in which hits are.
template <bool kIdeal, bool kSchedules>
void CoreModel::run_hits(Ticks until) {
  constexpr std::ptrdiff_t kAhead = 24;  // words whose sets are fetched from the host's memory
  const uint32_t shift = kIdeal ? c_.granule_shift : c_.line_shift;
  const uint32_t line_bytes = c_.shape.line_bytes;
  const Ticks l1_more = kIdeal || kSchedules ? 0 : ticks(c_.shape.l1_data->hit_cycles - 1);
  const Ticks branch = ticks(c_.shape.cores.taken_branch_cycles);
  const bool fetches = c_.shape.l1_instruction.has_value();
  const uint64_t region_return = in_region_ ? region_return_ : ~uint64_t{0};
  const bool may_write = writes_back_, is_coherent = is_coherent_;
  // Whatever is written to here might be a member, to a compiler.
  uint64_t* executions = executions_->data();
  const StateCache::View l1(l1_), lines_of_code(fetch_);
  uint64_t last_fetch = last_fetch_, fetched = 0;
  const uint64_t *word = words_.data() + at_, *const end = words_.data() + usable_;
  const BlockModel* block = block_;
  const SiteModel* site = block->sites.data() + site_;
  const SiteModel* last_site = block->sites.data() + block->sites.size();
  Ticks since = since_, counted = counted_, left = until - std::min(until, estimate_);
  const SiteModel* counted_site = nullptr;
  uint64_t last_end = last_end_, instructions = 0, accesses = 0;
  for (; word != end && since < left; ++word) {
    if (*word & kBlockMark) {
      if (is_order(*word)) break;
      const auto number = static_cast<uint32_t>(*word);
      const BlockModel& b =
          kSchedules ? c_.program.scheduled(number, block) : c_.program.block(number);
      if (b.waits || b.role != Role::kNone || b.pc == region_return) break;
      since += block->cost - counted;
      if constexpr (kSchedules) {
        stalls_ += block->stalls - counted_stalls_;
        counted_stalls_ = {};
        counted_site = nullptr;
        if (b.counter_of(true) >= executions_->size()) {
          executions_->resize(c_.program.counters());
          executions = executions_->data();
        }
      }
      last_end = block->end_pc;
      const bool is_taken = b.pc != last_end;
      since += is_taken ? branch : 0;
      block = &b;
      site = b.sites.data();
      last_site = site + b.sites.size();
      counted = 0;
      instructions += b.insn_count;
      ++executions[b.counter_of(is_taken)];
      if (!fetches || b.insn_count == 0) continue;
      const uint64_t line = b.pc >> c_.line_shift;
      if (line == (b.end_pc - 1) >> c_.line_shift) {
        if (line == last_fetch) continue;
        if (lines_of_code.touch(line)) {
          last_fetch = line;
          ++fetched;
          continue;
        }
      }
      since_ = since;
      last_fetch_ = last_fetch;
      fetch(b);
      last_fetch = last_fetch_;
      since = since_;
      left = until - std::min(until, estimate_);
    } else {
      if (site == last_site || !site->is_plain) break;
      const uint64_t line = line_of(*word, shift);
      uint64_t* entry = nullptr;
      if constexpr (!kIdeal) {
        if (end - word > kAhead) l1.prefetch(line_of(word[kAhead], shift));
        if (is_hot(line) || (*word & (line_bytes - 1)) + site->bytes > line_bytes) break;
        entry = l1.touch(line);
        if (!entry) break;
      }
      if (site->kind == SiteKind::kLoad) {
        last_load_ = line;
      } else if constexpr (!kIdeal) {
        if (!may_write || (is_coherent && StateCache::state(*entry) == LineState::kShared)) break;
        StateCache::set_state(entry, LineState::kModified);
      }
      since += site->before - counted;
      counted = site->before;
      if constexpr (kSchedules) {
        counted_site = site;
      } else if (site->kind == SiteKind::kLoad) {
        since += l1_more;
        stalls_.l1 += l1_more;
      }
      ++accesses;
      ++site;
    }
  }
  at_ = static_cast<size_t>(word - words_.data());
  block_ = block;
  site_ = static_cast<size_t>(site - block->sites.data());
  since_ = since;
  counted_ = counted;
  if (counted_site) {
    const SitePoint& point = block->points[static_cast<size_t>(counted_site - block->sites.data())];
    stalls_ += point.stalls - counted_stalls_;
    counted_stalls_ = point.stalls;
  }
  last_end_ = last_end;
  last_fetch_ = last_fetch;
  counts.fetches += fetched;
  counts.instructions += instructions;
  counts.l1_accesses += accesses;
}

void CoreModel::run(Ticks until, std::vector<uint64_t>& executions) {
  executions_ = &executions;
  starved_ = false;
  const bool has_lines = c_.shape.l1_data.has_value();
  const bool has_hits = (has_lines || c_.shape.is_ideal) && !has_clocks_;
  while (estimate_ + since_ < until && !must_wait_) {
    if (scanning_ != Scanning::kNo && !resume_scan()) {
      starve();
      return;
    }
    if (must_wait_) return;
    if (has_hits && block_ && !block_->waits && !in_lock_ && condition_ == Role::kNone &&
        leaves_ == 0 && looked_at_ == 0 && scanning_ == Scanning::kNo && once_.empty() &&
        uses_.empty()) {
      if (c_.shape.is_ideal)
        run_hits<true, false>(until);
      else if (has_schedules_)
        run_hits<false, true>(until);
      else
        run_hits<false, false>(until);
      if (estimate_ + since_ >= until) return;
    }
    if (at_ >= usable_) {
      starve();
      if (!is_final_) return;
      if (in_lock_) block_ = nullptr;
      end_block();
      if (since_ != 0) emit(Kind::kTail, Ask::kRead, 0, 0, 0, 0, false, 0);
      return;
    }
    const uint64_t word = words_[at_];
    if (is_order(word)) {
      ++at_;
      take_order(static_cast<uint32_t>(word));
      continue;
    }
    if (is_clock(word)) {
      ++at_;
      meet_clock(word & ~kClockMark);
      continue;
    }
    if (in_lock_) {
      if (skip_lock()) at_ += has_clocks_ && is_block(word) ? 2 : 1;
      continue;
    }
    if (leaves_ != 0 && leaves_barrier()) continue;
    if (is_block(word)) {
      ++at_;
      const auto number = static_cast<uint32_t>(word);
      const BlockModel& b = c_.program.block(number);
      if (has_clocks_) meet_block(b, words_[at_++]);
      if (is_left_out(b.role) && !c_.program.function(b.function).is_part) {
        end_block();
        call_ = &c_.program.function(b.function);
        values_.clear();
        in_lock_ = true;
        lock_has_word_ = false;
        was_inside_ = true;
        lock_word_ = 0;
        lock_block_ = &b;
        lock_return_ = last_end_;
        lock_returns_ = has_clocks_ && b.returns;
        lock_tail_ = lock_tail_end_ = 0;
        is_withdrawn_ = makes_name_ = false;
        block_ = &b;
        site_ = 0;
        counts.skipped += b.insn_count;
        looked_at_ = 0;
        break_off();
        await_signal(*call_);
        continue;
      }
      if (!once_.empty() && (b.pc == once_.back().function || (has_clocks_ && b.calls_once)))
        once_.back().calls = true;
      if (b.role == Role::kOnce && !c_.program.function(b.function).is_part) once_.push_back({});
      if (b.role == Role::kSignal || b.role == Role::kAwait) {
        condition_ = b.role;
        awaited_ = 0;
      }
      if (in_region_ && b.pc == region_return_) {
        end_block();
        in_region_ = false;
        emit(Kind::kEnd, Ask::kRead, 0, 0, 0, 0, false, 0);
      }
      if (b.role == Role::kBegin || b.role == Role::kEnd) {
        end_block();
        if (b.role == Role::kBegin && c_.program.region_is_function() && !in_region_) {
          in_region_ = true;
          region_return_ = last_end_;
        }
        emit(b.role == Role::kBegin ? Kind::kBegin : Kind::kEnd, Ask::kRead, 0, 0, 0, 0, false, 0);
      }
      begin_block(number);
    } else {
      while (site_ < block_->sites.size() && !has_word(block_->sites[site_].kind)) ++site_;
      if (site_ >= block_->sites.size()) {
        ++at_;
        continue;
      }
      const SiteModel& site = block_->sites[site_];
      if (!has_address(site.kind)) {
        if (site.kind == SiteKind::kValue && !block_->is_of_naming) see_value_of_once(word);
        ++site_;
        ++at_;
        continue;
      }
      if (site.is_vector && (word & VectorNote::kEnd)) {
        ++site_;
        ++at_;
        if (site_ < block_->sites.size()) continue;
      } else {
        const uint64_t address = site.is_vector ? VectorNote::address(word) : word;
        const uint32_t bytes = site.is_vector ? VectorNote::bytes(word) : site.bytes;
        if (has_lines && is_coherent_ && is_hot(line_of(address, c_.line_shift)) &&
            estimate_ + since_ >= hot_from_)
          return;
        ++at_;
        if (!site.is_vector) ++site_;
        const size_t requests_before = requests.size();
        access(site, address, bytes);
        if (counts_loads_ && site.kind == SiteKind::kLoad) note_uses(site, requests_before);
        if (condition_ != Role::kNone) see_condition(site, address);
        if (site.acquires || site.releases || site.kind == SiteKind::kAtomic)
          note_order(site, address);
        if (site.acquires && !c_.left_words.empty()) see_left(address);
        if (site.acquires && !c_.guard_words.empty()) see_guard(address);
      }
    }
    // A wait ends its block.
    if (block_ && block_->waits && site_ + 1 >= block_->sites.size()) {
      size_t left = site_;
      while (left < block_->sites.size() && !has_address(block_->sites[left].kind)) ++left;
      if (left < block_->sites.size()) continue;
      end_block();
      break_off();
      looked_at_ = 0;
      scanning_ = Scanning::kLooks;
      scan_at_ = at_;
      scanned_ = 0;
      scan_block_ = nullptr;
      scan_expected_ = expected_;
    }
  }
}

}  // namespace gpusim::host::chip
