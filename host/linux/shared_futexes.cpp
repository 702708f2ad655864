#include "host/linux/shared_futexes.h"

#include <algorithm>
#include <cerrno>
#include <span>

namespace gpusim::host {

bool FutexTable::begin() {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  const bool is_possible = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE) == 0 &&
                           pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED) == 0 &&
                           pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0 &&
                           pthread_mutex_init(&lock, &kind) == 0;
  pthread_mutexattr_destroy(&kind);
  return is_possible;
}

SharedFutexes::SharedFutexes(FutexTable& table, const Processes& processes)
    : table_(&table), processes_(processes) {
  if (pthread_mutex_lock(&table_->lock) != EOWNERDEAD) return;
  // The owner was killed between two stores: each waiter is there or not, but the count may be off.
  pthread_mutex_consistent(&table_->lock);
  table_->count = static_cast<uint32_t>(
      std::ranges::count_if(std::span(table_->waiters, table_->used),
                            [](const Waiter& w) { return w.state != Waiter::kFree; }));
}

SharedFutexes::~SharedFutexes() {
  if (table_) pthread_mutex_unlock(&table_->lock);
}

bool SharedFutexes::add(const FutexPlace& place, const Request& request) {
  const std::span waiters(table_->waiters, table_->used);
  const auto is_free = [](const Waiter& w) { return w.state == Waiter::kFree; };
  const bool has_gap = table_->count != table_->used;
  const auto free = has_gap ? std::ranges::find_if(waiters, is_free) : waiters.end();
  if (free == waiters.end()) {
    if (table_->used == FutexTable::kMost) return false;
    ++table_->used;
  }
  Waiter& w = table_->waiters[free - waiters.begin()];
  w.process = processes_.own;
  w.core = request.core;
  w.bitset = request.bitset;
  w.order = table_->arrivals++;
  w.wake_result = request.wake_result;
  w.place = place;
  w.state = Waiter::kWaits;
  ++table_->count;
  return true;
}

void SharedFutexes::free(Waiter& waiter) {
  waiter.state = Waiter::kFree;
  if (--table_->count == 0) table_->used = 0;
}

void SharedFutexes::free_waits(uint32_t process, uint32_t core) {
  for (Waiter& w : std::span(table_->waiters, table_->used))
    if (w.state == Waiter::kWaits && w.process == process && w.core == core) free(w);
}

std::vector<FutexTable::Waiter*> SharedFutexes::waiting_at(const FutexPlace& place) {
  std::vector<Waiter*> found;
  for (Waiter& w : std::span(table_->waiters, table_->used))
    if (w.state == Waiter::kWaits && w.place == place) found.push_back(&w);
  std::ranges::sort(found, {}, [](const Waiter* w) { return w->order; });
  return found;
}

SharedFutexes::Woken SharedFutexes::wake(const FutexPlace& place, uint64_t count, uint32_t bitset) {
  Woken woken;
  for (Waiter* const w : waiting_at(place)) {
    if (woken.own.size() + woken.others == count) break;
    if (w->state != Waiter::kWaits || !(w->bitset & bitset)) continue;
    if (w->process == processes_.own) {
      woken.own.push_back({w->core, w->wake_result});
      free_waits(w->process, w->core);
      continue;
    }
    if (!processes_.lives(w->process)) {
      forget(w->process);
      continue;
    }
    w->state = Waiter::kWoken;
    free_waits(w->process, w->core);
    processes_.tell(w->process);
    ++woken.others;
  }
  return woken;
}

uint64_t SharedFutexes::requeue(const FutexPlace& from, const FutexPlace& to, uint64_t count) {
  uint64_t moved = 0;
  for (Waiter* const w : waiting_at(from)) {
    if (moved == count) break;
    w->place = to;
    w->order = table_->arrivals++;
    ++moved;
  }
  return moved;
}

std::optional<int64_t> SharedFutexes::withdraw(uint32_t core) {
  std::optional<int64_t> result;
  for (Waiter& w : std::span(table_->waiters, table_->used)) {
    if (w.state == Waiter::kFree || w.process != processes_.own || w.core != core) continue;
    if (w.state == Waiter::kWoken) result = w.wake_result;
    free(w);
  }
  return result;
}

void SharedFutexes::move(uint32_t from, uint32_t to) {
  for (Waiter& w : std::span(table_->waiters, table_->used))
    if (w.state != Waiter::kFree && w.process == processes_.own && w.core == from) w.core = to;
}

std::vector<SharedFutexes::OwnWaiter> SharedFutexes::take_woken() {
  std::vector<OwnWaiter> woken;
  for (Waiter& w : std::span(table_->waiters, table_->used)) {
    if (w.state != Waiter::kWoken || w.process != processes_.own) continue;
    woken.push_back({w.core, w.wake_result});
    free(w);
  }
  return woken;
}

void SharedFutexes::forget(uint32_t process) {
  for (Waiter& w : std::span(table_->waiters, table_->used))
    if (w.state != Waiter::kFree && w.process == process) free(w);
}

}  // namespace gpusim::host
