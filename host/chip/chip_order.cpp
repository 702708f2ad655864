// The chip model: what one core does comes after what another one did.
#include <algorithm>
#include <utility>

#include "host/chip/chip_core.h"

namespace gpusim::host::chip {
namespace {

// Locks that a core has at the same time by code that the model does not know, at most.
constexpr size_t kMostTaken = 8;

// From the word that a wait for a condition changes, to the one by which a signal begins.
constexpr uint64_t kConditionBytes = 48;

}  // namespace

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
  const CoreModel& model = cores_[best]->model;
  const bool program_ended = !is_forced_ && cores_[best]->why == kWord && !model.has_request() &&
                             (model.only_looks() || model.is_at_end());
  unexplained_waits_ += !program_ended;
  for (auto& [line, list] : watchers_) std::erase(list, best);
  for (auto& [key, state] : keys_) std::erase(state.waiting, best);
  objects_.withdraw(best);
  for (auto& [word, list] : awaiting_) std::erase(list, best);
  unblock(best, cores_[best]->clock, best, Phase::kWaitingOrder);
  return true;
}

}  // namespace gpusim::host::chip
