// One core of a chip: where it waits, functions that are known by name, and signals' handlers.
#include <algorithm>
#include <utility>

#include "host/chip/core_model.h"
#include "host/chip/core_stream.h"

namespace gpusim::host::chip {

// --- Waiting

// Of a word of a scan. `expected`: the clock up to which the words before it tell; then, this one.
CoreModel::Step CoreModel::step_at(size_t at, uint64_t& expected) const {
  const uint64_t word = words_[at];
  Step step;
  step.is_order = is_order(word);
  if (is_block(word)) step.block = &c_.program.block(static_cast<uint32_t>(word));
  if (!has_clocks_ || !(step.block || is_clock(word))) return step;
  const uint64_t clock = step.block ? words_[at + 1] : word & ~kClockMark;
  step.untold = gap_between(expected, clock).count;
  expected = step.block ? end_of(*step.block, clock) : clock;
  return step;
}

// Behind a wait: blocks that come to another one within few instructions only looked.
CoreModel::Scan CoreModel::scan_looks() {
  // In vain: all up to here is left out.
  const auto skip = [&](uint64_t expected) {
    at_ = scan_at_;
    last_end_ = scan_block_->end_pc;
    counts.skipped += scanned_;
    scanned_ = 0;
    expected_ = expected;
    scan_block_ = nullptr;
  };
  for (; scan_at_ < usable_; ++scan_at_) {
    const uint64_t before = scan_expected_;
    const Step step = step_at(scan_at_, scan_expected_);
    if (step.is_order) return Scan::kFound;
    if (!step.is_any()) continue;
    if (scan_block_ && scan_block_->waits) skip(before);
    if (step.untold != 0) scan_block_ = nullptr;
    if (step.block) scan_block_ = step.block;
    scanned_ += step.instructions();
    if (scanned_ > kMostOfLook) return Scan::kFound;
  }
  if (scan_block_ && scan_block_->waits) skip(scan_expected_);
  return is_final_ ? Scan::kFound : Scan::kUnknown;
}

bool CoreModel::only_looks() const {
  if (scanning_ != Scanning::kLooks) return false;
  bool is_waiting = !scan_block_ || scan_block_->waits;
  uint64_t instructions = scanned_, expected = scan_expected_;
  for (size_t at = scan_at_; at < words_.size(); ++at) {
    const Step step = step_at(at, expected);
    if (step.is_order) return false;
    if (!step.is_any()) continue;
    instructions = step.instructions() + (is_waiting ? 0 : instructions);
    is_waiting = step.block && step.block->waits;
    if (instructions > kMostOfLook) return false;
  }
  return is_waiting;
}

bool CoreModel::is_at_end() const {
  uint64_t instructions = 0, expected = expected_;
  for (size_t at = at_; at < words_.size(); ++at) {
    const Step step = step_at(at, expected);
    if (step.is_order && !orders_[static_cast<uint32_t>(words_[at])].stays) return false;
    if (!step.is_order) instructions += step.instructions();
  }
  return instructions <= kMostOfLook;
}

// Behind a release: if the core acquires the same with only looks between, all that is the barrier.
CoreModel::Scan CoreModel::scan_barrier() {
  for (; scan_at_ < usable_; ++scan_at_) {
    const Step step = step_at(scan_at_, scan_expected_);
    if (step.is_order) {
      const Order& here = orders_[static_cast<uint32_t>(words_[scan_at_])];
      return !here.is_release && here.key == orders_[released_].key ? Scan::kFound : Scan::kNot;
    }
    scanned_ += step.instructions();
    skipped_ += step.instructions();
    if (scanned_ > kMostOfBarrier) return Scan::kNot;
    if (step.block && step.block->waits) scanned_ = 0;
  }
  return is_final_ ? Scan::kNot : Scan::kUnknown;
}

// False: more words are needed.
bool CoreModel::resume_scan() {
  if (scanning_ == Scanning::kLooks) {
    if (scan_looks() == Scan::kUnknown) return false;
    emit(Kind::kWait, Ask::kRead, last_load_, 0, 0, 0, false, 0);
  } else if (scanning_ == Scanning::kBarrier) {
    const Scan found = scan_barrier();
    if (found == Scan::kUnknown) return false;
    if (found == Scan::kFound) {
      at_ = scan_at_;
      expected_ = scan_expected_;
      counts.skipped += skipped_;
      leaves_ = last_barrier_;
    }
  }
  scanning_ = Scanning::kNo;
  return true;
}

void CoreModel::leave_lock() {
  in_lock_ = lock_returns_ = false;
  const Role role = lock_block_->role;
  if (call_->word == LockWord::kArgument) {
    const bool has_result = values_.size() > call_->arguments;
    if (role == Role::kOpenSemaphore) {
      // A new one begins with the fourth argument, whatever was at that address. One that was there
      // keeps its units: the process may have closed it.
      if (!has_result || values_[2] == 0 || !makes_name_) return;
      lock_word_ = values_[2];
      return play(Role::kSetSemaphore, static_cast<uint32_t>(values_[1]));
    }
    const bool has_failed = has_result && static_cast<uint32_t>(values_.back()) != 0;
    const bool is_played = !call_->may_fail && !std::exchange(is_withdrawn_, false);
    if (!is_played && has_result && !has_failed) play(role, 0);
    // A signal ended the wait.
    if (is_played && role == Role::kDown && has_failed) play(Role::kUp, 0);
    return;
  }
  if (lock_has_word_ || call_->word == LockWord::kFirst) play(role, 0);
}

// What the function does is played again in simulated time.
void CoreModel::play(Role role, uint32_t value) {
  Kind kind;
  switch (role) {
    case Role::kLock:
      if (std::ranges::find(held_, lock_word_) != held_.end() && call_->word == LockWord::kArgument)
        return;  // once more
      held_.push_back(lock_word_);
      kind = Kind::kLock;
      break;
    case Role::kUnlock:
      std::erase(held_, lock_word_);
      kind = Kind::kUnlock;
      break;
    case Role::kRead:
      kind = Kind::kReadLock;
      break;
    case Role::kWrite:
      kind = Kind::kWriteLock;
      break;
    case Role::kLeave:
      kind = Kind::kLeave;
      break;
    case Role::kDown:
      kind = Kind::kDown;
      break;
    case Role::kUp:
      kind = Kind::kUp;
      break;
    case Role::kSetSemaphore:
      kind = Kind::kSetSemaphore;
      break;
    case Role::kArrive:
      kind = Kind::kArrive;
      break;
    case Role::kSetBarrier:
      kind = Kind::kSetBarrier;
      break;
    case Role::kGuardBegin:
      kind = Kind::kOnceSeen;
      guards_.insert(lock_word_);
      break;
    case Role::kGuardEnd:
      kind = Kind::kOnceDone;
      guards_.insert(lock_word_);
      break;
    default:
      return;
  }
  emit(kind, Ask::kOwn, line_of(lock_word_, c_.shape.l1_data ? c_.line_shift : c_.granule_shift),
       lock_word_, value, lock_block_->unit, false, 0);
}

// An argument or the result of such a function. What cannot fail is played with the last argument:
// who waits for it, in simulated time, need not have come to its end in the run.
void CoreModel::see_value(uint64_t value) {
  values_.push_back(value);
  if (call_->word != LockWord::kArgument || values_.size() > call_->arguments) return;
  if (values_.size() == 1) lock_word_ = value;
  if (values_.size() == call_->arguments && !call_->may_fail)
    play(lock_block_->role, static_cast<uint32_t>(value));
}

// pthread_once(): its word and its function, and where it returns its result. Who did not call the
// function goes on when the one that did was there.
void CoreModel::see_value_of_once(uint64_t value) {
  if (once_.empty()) return;
  Once& once = once_.back();
  switch (once.values++) {
    case 0:
      once.word = value;
      return;
    case 1:
      once.function = value;
      return;
    default:
      break;
  }
  const Once done = once;
  once_.pop_back();
  emit(done.calls ? Kind::kOnceDone : Kind::kOnceSeen, Ask::kRead, 0, done.word, 0, 0, false, 0);
}

// Behind a load that acquires: who ended before the load's slice, and is known for it by the word,
// is behind it in simulated time, too.
void CoreModel::see_left(uint64_t address) {
  const auto found = c_.left_words.find(word_of(address));
  if (found == c_.left_words.end()) return;
  const uint32_t slice = slice_of(at_ - 1);
  const auto& all = found->second;
  const auto left =
      std::find_if(all.rbegin(), all.rend(), [&](const Left& l) { return l.slice < slice; });
  if (left == all.rend() || left->core == number_) return;
  orders_.push_back({.key = left->key, .required = 1, .stays = true});
  emit(Kind::kAcquire, Ask::kRead, 0, 1, static_cast<uint32_t>(orders_.size() - 1), 0, false, 0);
}

// Behind a load that acquires: what was initialised in an earlier slice is not initialised again,
// so this core need not have called a function to see it.
void CoreModel::see_guard(uint64_t address) {
  const auto done = c_.guard_words.find(address);
  if (done == c_.guard_words.end() || done->second.core == number_ ||
      done->second.slice >= slice_of(at_ - 1) || !guards_.insert(address).second)
    return;
  emit(Kind::kOnceSeen, Ask::kRead, 0, address, 0, 0, false, 0);
}

uint64_t CoreModel::initialised_at(size_t at) const {
  const size_t value = at + (has_clocks_ ? 2 : 1);  // the first word of that block's own
  if (!is_block(words_[at]) || value >= words_.size()) return 0;
  const BlockModel& b = c_.program.block(static_cast<uint32_t>(words_[at]));
  return b.role == Role::kGuardEnd ? words_[value] : 0;
}

// An access inside a function that takes or gives a lock.
void CoreModel::see_lock_word(const SiteModel& site, uint64_t address) {
  if (lock_has_word_ || address - c_.stack_base < c_.stack_end - c_.stack_base) return;
  const SyncFunction& f = c_.program.function(lock_block_->function);
  if (f.word == LockWord::kArgument) return;
  const uint64_t word = address - static_cast<uint64_t>(int64_t{f.offset});
  if (f.word == LockWord::kAtomic && site.kind != SiteKind::kAtomic) return;
  if (f.word == LockWord::kHeld && std::ranges::find(held_, word) == held_.end()) return;
  lock_word_ = word;
  lock_has_word_ = true;
}

// The word at at_ belongs to a function that takes or gives a lock, and is left out.
bool CoreModel::skip_lock() {
  const uint64_t word = words_[at_];
  if (!is_block(word)) {
    if (!block_) return true;
    while (site_ < block_->sites.size() && !has_word(block_->sites[site_].kind)) ++site_;
    if (site_ == block_->sites.size()) return true;
    const SiteModel& site = block_->sites[site_];
    if (!site.is_vector || (word & VectorNote::kEnd)) ++site_;
    if (site.is_vector) return true;
    if (has_address(site.kind)) see_lock_word(site, word);
    if (site.kind != SiteKind::kValue) return true;
    if (block_->is_of_naming)
      makes_name_ = static_cast<uint32_t>(word) == 0;
    else
      see_value(word);
    return true;
  }
  return skip_block_of_lock(c_.program.block(static_cast<uint32_t>(word)),
                            has_clocks_ ? words_[at_ + 1] : 0);
}

bool CoreModel::skip_block_of_lock(const BlockModel& b, uint64_t clock) {
  const SyncFunction& f = c_.program.function(lock_block_->function);
  bool is_inside = b.pc - f.begin < f.end - f.begin;
  // Back where it was called; or, from a call that was a jump, somewhere that is no beginning.
  const bool is_back = b.pc == lock_return_ || (was_inside_ && !is_inside && !b.starts_function);
  const bool is_next = !has_clocks_ || gap_between(expected_, clock).count == 0;
  if (lock_returns_ || is_back) {
    // What lies between belongs to the function, unless that is known to have returned.
    if (!lock_returns_) expected_ = clock;
    block_ = nullptr;
    last_end_ = is_next || is_back ? b.pc : ~uint64_t{0};
    leave_lock();
    return false;
  }
  if (has_clocks_) {
    const bool is_jump = is_next && was_inside_ && block_ && !block_->calls && !block_->returns;
    if (is_inside)
      lock_tail_ = lock_tail_end_ = 0;
    else if (b.starts_function && is_jump)
      lock_tail_ = b.pc, lock_tail_end_ = b.function_end;
    expected_ = end_of(b, clock);
  }
  was_inside_ = is_inside;
  if (b.role == lock_block_->role) {  // it goes on in another function of the kind
    lock_block_ = &b;
    was_inside_ = is_inside = true;
  }
  is_inside |= b.pc - lock_tail_ < lock_tail_end_ - lock_tail_;
  lock_returns_ = has_clocks_ && is_inside && b.returns;
  block_ = &b;
  site_ = 0;
  counts.skipped += b.insn_count;
  return true;
}

// The word at at_ belongs to a barrier that the core leaves, and was left out: who opened it and
// who waited return in different ways.
bool CoreModel::leaves_barrier() {
  if (is_block(words_[at_])) {
    const BlockModel& b = c_.program.block(static_cast<uint32_t>(words_[at_]));
    const uint64_t clock = has_clocks_ ? words_[at_ + 1] : 0;
    const bool is_next = !has_clocks_ || gap_between(expected_, clock).count == 0;
    if (b.barrier != leaves_ || !is_next) {
      leaves_ = 0;
      return false;
    }
    counts.skipped += b.insn_count;
    last_end_ = b.end_pc;
    if (has_clocks_) {
      expected_ = end_of(b, clock);
      ++at_;
    }
  }
  ++at_;
  return true;
}

// --- Signals
//
// What a handler does is no part of the function that it interrupts.

void CoreModel::begin_handler() {
  --handlers_;
  if (in_lock_) block_ = nullptr;
  end_block();
  last_end_ = ~uint64_t{0};
  looked_at_ = 0;
  interrupted_.push_back(std::exchange(static_cast<CallOfLock&>(*this), {}));
}

void CoreModel::end_handler() {
  if (interrupted_.empty()) return;  // it began in another program
  if (in_lock_) block_ = nullptr;
  end_block();
  last_end_ = ~uint64_t{0};
  looked_at_ = 0;
  static_cast<CallOfLock&>(*this) = std::move(interrupted_.back());
  interrupted_.pop_back();
}

bool CoreModel::is_interrupted() const {
  if (handlers_ == 0 || !in_lock_ || is_withdrawn_ || call_->may_fail ||
      lock_block_->role != Role::kDown)
    return false;
  const SyncFunction& f = c_.program.function(lock_block_->function);
  for (size_t at = at_; at < usable_; ++at) {
    const uint64_t word = words_[at];
    if (is_order(word) && orders_[static_cast<uint32_t>(word)].begins_handler) return true;
    if (!is_block(word)) continue;
    const BlockModel& b = c_.program.block(static_cast<uint32_t>(word));
    const bool is_inside = b.pc - f.begin < f.end - f.begin;
    if (b.pc == lock_return_ || (has_clocks_ && is_inside && b.returns)) return false;
  }
  return false;
}

}  // namespace gpusim::host::chip
