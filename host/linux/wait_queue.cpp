#include "host/linux/wait_queue.h"

namespace gpusim::host {

void WaitQueue::park(const Waiter& waiter) {
  const Key key{waiter.space, waiter.address, arrivals_++};
  waiters_.emplace(key, waiter);
  by_core_.emplace(waiter.core, key);
  if (waiter.deadline) deadlines_.emplace(*waiter.deadline, waiter.core);
}

void WaitQueue::erase(std::map<Key, Waiter>::iterator it) {
  if (it->second.deadline) deadlines_.erase({*it->second.deadline, it->second.core});
  by_core_.erase(it->second.core);
  waiters_.erase(it);
}

std::vector<Waiter> WaitQueue::wake(uint32_t space, uint64_t address, uint64_t count,
                                    uint32_t bitset) {
  std::vector<Waiter> woken;
  auto it = waiters_.lower_bound({space, address, 0});
  while (it != waiters_.end() && it->first.space == space && it->first.address == address &&
         woken.size() < count) {
    const auto next = std::next(it);
    if (it->second.bitset & bitset) {
      woken.push_back(it->second);
      erase(it);
    }
    it = next;
  }
  return woken;
}

uint64_t WaitQueue::requeue(uint32_t space, uint64_t from, uint64_t to, uint64_t count) {
  std::vector<Waiter> moved = wake(space, from, count, ~uint32_t{0});
  for (Waiter& w : moved) {
    w.address = to;
    park(w);
  }
  return moved.size();
}

std::vector<Waiter> WaitQueue::expire(Clock::time_point now) {
  std::vector<Waiter> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto it = waiters_.find(by_core_.at(deadlines_.begin()->second));
    expired.push_back(it->second);
    erase(it);
  }
  return expired;
}

std::optional<Waiter> WaitQueue::take(uint32_t core) {
  const auto it = by_core_.find(core);
  if (it == by_core_.end()) return std::nullopt;
  const auto found = waiters_.find(it->second);
  const Waiter waiter = found->second;
  erase(found);
  return waiter;
}

std::optional<Clock::time_point> WaitQueue::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

std::vector<Waiter> WaitQueue::all() const {
  std::vector<Waiter> list;
  for (const auto& [core, key] : by_core_) list.push_back(waiters_.at(key));
  return list;
}

}  // namespace gpusim::host
