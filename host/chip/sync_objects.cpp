#include "host/chip/sync_objects.h"

#include <utility>

namespace gpusim::host::chip {

void SyncObjects::serve(uint32_t core, const Request& r) {
  switch (r.kind) {
    case Kind::kLock:
      return take_lock(core, r);
    case Kind::kUnlock:
      return give_lock(core, r);
    case Kind::kReadLock:
      return take_to_read(core, r);
    case Kind::kWriteLock:
      return take_to_write(core, r);
    case Kind::kLeave:
      return leave(core, r);
    case Kind::kDown:
      return down(core, r);
    case Kind::kUp:
      return up(core, r);
    case Kind::kSetSemaphore:
      semaphores_[r.words] = {.is_known = true, .initial = r.order, .given = {}, .waiting = {}};
      return;
    case Kind::kArrive:
      return arrive(core, r);
    case Kind::kSetBarrier:
      barriers_[r.words] = {.count = r.order, .arrived = {}};
      return;
    case Kind::kOnceDone:
      return finish_once(core, r);
    case Kind::kOnceSeen:
      return see_once(core, r);
    default:
      return;
  }
}

void SyncObjects::withdraw(uint32_t core) {
  for (auto& [word, lock] : locks_) std::erase(lock.waiting, core);
  for (auto& [word, lock] : read_write_locks_) {
    std::erase(lock.waiting_readers, core);
    std::erase(lock.waiting_writers, core);
  }
  for (auto& [word, semaphore] : semaphores_) std::erase(semaphore.waiting, core);
  for (auto& [word, barrier] : barriers_) std::erase(barrier.arrived, core);
  for (auto& [word, once] : once_) std::erase(once.waiting, core);
}

bool SyncObjects::is_known(uint64_t word) const {
  if (const auto semaphore = semaphores_.find(word); semaphore != semaphores_.end())
    return semaphore->second.is_known;
  const auto barrier = barriers_.find(word);
  return barrier != barriers_.end() && barrier->second.count != 0;
}

void SyncObjects::wait_in(std::deque<uint32_t>& waiting, uint32_t core) {
  ++contended_locks;
  waiting.push_back(core);
  cores_.wait_for_lock(core);
}

// A lock goes to cores in the order in which they ask for it in simulated time, whatever the order
// in which the program's run gave it to them.
void SyncObjects::take_lock(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  ++locks;
  LockState& lock = locks_[r.words];
  if (!lock.is_held) {
    lock.is_held = true;
    lock.holder = core;
    return;
  }
  wait_in(lock.waiting, core);
}

void SyncObjects::give_lock(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  LockState& lock = locks_[r.words];
  if (!lock.is_held || lock.holder != core) return;  // it was taken by an attempt that may fail
  if (lock.waiting.empty()) {
    lock.is_held = false;
    return;
  }
  lock.holder = lock.waiting.front();
  lock.waiting.pop_front();
  cores_.hand_over(lock.holder, core, r);
}

// Locks for readers and writers as C libraries have them by default: readers wait for a writer that
// has the lock, and not for one that wants it.
void SyncObjects::take_to_read(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  ++locks;
  ReadWriteLock& lock = read_write_locks_[r.words];
  if (!lock.is_written) {
    ++lock.readers;
    return;
  }
  wait_in(lock.waiting_readers, core);
}

void SyncObjects::take_to_write(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  ++locks;
  ReadWriteLock& lock = read_write_locks_[r.words];
  if (!lock.is_written && lock.readers == 0) {
    lock.is_written = true;
    lock.writer = core;
    return;
  }
  wait_in(lock.waiting_writers, core);
}

void SyncObjects::leave(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  ReadWriteLock& lock = read_write_locks_[r.words];
  if (lock.is_written && lock.writer == core)
    lock.is_written = false;
  else if (lock.readers != 0)
    --lock.readers;
  if (lock.is_written || lock.readers != 0) return;
  if (!lock.waiting_readers.empty()) {
    const std::deque<uint32_t> readers = std::exchange(lock.waiting_readers, {});
    lock.readers = static_cast<uint32_t>(readers.size());
    for (const uint32_t reader : readers) cores_.hand_over(reader, core, r);
  } else if (!lock.waiting_writers.empty()) {
    lock.is_written = true;
    lock.writer = lock.waiting_writers.front();
    lock.waiting_writers.pop_front();
    cores_.hand_over(lock.writer, core, r);
  }
}

// Units go to cores in the order in which they ask for them, and have the times at which they were
// given: a wait with a time limit is known to have got one only at its end.
void SyncObjects::down(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  Semaphore& semaphore = semaphores_[r.words];
  if (!semaphore.is_known) return;
  if (semaphore.initial != 0) {
    --semaphore.initial;
  } else if (!semaphore.given.empty()) {
    const Unit unit = semaphore.given.front();
    semaphore.given.pop_front();
    cores_.unblock(core, unit.at, unit.by, Phase::kWaitingLock);
  } else {
    semaphore.waiting.push_back(core);
    cores_.wait_for_lock(core);
  }
}

void SyncObjects::up(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  Semaphore& semaphore = semaphores_[r.words];
  if (!semaphore.is_known) return;
  if (semaphore.waiting.empty()) {
    semaphore.given.push_back({cores_.clock_of(core), core});
    return;
  }
  const uint32_t next = semaphore.waiting.front();
  semaphore.waiting.pop_front();
  cores_.hand_over(next, core, r);
}

void SyncObjects::arrive(uint32_t core, const Request& r) {
  cores_.access_lock(core, r);
  CountedBarrier& barrier = barriers_[r.words];
  if (barrier.count == 0) return;
  barrier.arrived.push_back(core);
  if (barrier.arrived.size() < barrier.count) return cores_.wait_for_others(core);
  const std::vector<uint32_t> arrived = std::exchange(barrier.arrived, {});
  Unit last{};
  for (const uint32_t other : arrived)
    if (cores_.clock_of(other) >= last.at) last = {cores_.clock_of(other), other};
  for (const uint32_t other : arrived)
    cores_.unblock(other, last.at, last.by, Phase::kWaitingOrder);
}

void SyncObjects::finish_once(uint32_t core, const Request& r) {
  OnceState& once = once_[r.words];
  once.is_done = true;
  once.done = {cores_.clock_of(core), core};
  for (const uint32_t other : std::exchange(once.waiting, {}))
    cores_.unblock(other, once.done.at, core, Phase::kWaitingOrder);
}

void SyncObjects::see_once(uint32_t core, const Request& r) {
  OnceState& once = once_[r.words];
  if (once.is_done) return cores_.unblock(core, once.done.at, once.done.by, Phase::kWaitingOrder);
  once.waiting.push_back(core);
  cores_.wait_for_others(core);
}

}  // namespace gpusim::host::chip
