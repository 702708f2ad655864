#include "host/linux/wait_queue.h"

#include <algorithm>
#include <utility>

namespace gpusim::host {

void WaitQueue::park(const Waiter& waiter) {
  const Key key{waiter.space, waiter.address, arrivals_++};
  waiters_.emplace(key, waiter);
  by_core_.emplace(waiter.core, key);
  if (waiter.deadline) deadlines_.emplace(*waiter.deadline, waiter.core);
  if (waiter.cpu_deadline) cpu_deadlines_.emplace(*waiter.cpu_deadline, waiter.core);
  if (waiter.kind == Waiter::Kind::kPi) {
    PiLock& lock = locks_[{waiter.space, waiter.address}];
    if (lock.waiters++ == 0) lock.owner = waiter.pi_owner;
  }
}

void WaitQueue::erase(uint32_t core) {
  const auto [first, last] = by_core_.equal_range(core);
  for (auto key = first; key != last; ++key) {
    const auto it = waiters_.find(key->second);
    const Waiter& waiter = it->second;
    if (waiter.deadline) deadlines_.erase({*waiter.deadline, core});
    if (waiter.cpu_deadline) cpu_deadlines_.erase({*waiter.cpu_deadline, core});
    if (waiter.kind == Waiter::Kind::kPi) {
      const auto lock = locks_.find({waiter.space, waiter.address});
      if (--lock->second.waiters == 0) locks_.erase(lock);
    }
    waiters_.erase(it);
  }
  by_core_.erase(first, last);
}

std::vector<Waiter> WaitQueue::wake(uint32_t space, uint64_t address, uint64_t count,
                                    uint32_t bitset) {
  std::vector<Waiter> woken;
  Key from{space, address, 0};
  while (woken.size() < count) {
    const auto it = waiters_.lower_bound(from);
    if (!is_on(it, space, address) || it->second.kind != Waiter::Kind::kPlain) break;
    from.order = it->first.order + 1;
    if (!(it->second.bitset & bitset)) continue;
    woken.push_back(it->second);
    erase(woken.back().core);
  }
  return woken;
}

uint64_t WaitQueue::requeue(uint32_t space, uint64_t from, uint64_t to, uint64_t count) {
  const uint64_t first_moved = arrivals_;  // `from` may be `to`
  uint64_t moved = 0;
  for (; moved < count; ++moved) {
    const auto it = waiters_.lower_bound({space, from, 0});
    if (!is_on(it, space, from) || it->second.kind != Waiter::Kind::kPlain ||
        it->first.order >= first_moved)
      break;
    auto node = waiters_.extract(it);
    const auto [first, last] = by_core_.equal_range(node.mapped().core);
    const auto known =
        std::find_if(first, last, [&](const auto& k) { return k.second == node.key(); });
    known->second = node.key() = {space, to, arrivals_++};
    node.mapped().address = to;
    waiters_.insert(std::move(node));
  }
  return moved;
}

template <class Deadlines, class Time>
std::vector<Waiter> WaitQueue::expire(const Deadlines& deadlines, Time now) {
  std::vector<Waiter> expired;
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    expired.push_back(*take(deadlines.begin()->second));
  }
  return expired;
}

std::vector<Waiter> WaitQueue::expire(Clock::time_point now) { return expire(deadlines_, now); }

std::vector<Waiter> WaitQueue::expire_on_cpu_clock(std::chrono::nanoseconds now) {
  return expire(cpu_deadlines_, now);
}

const Waiter* WaitQueue::first(uint32_t space, uint64_t address) const {
  const auto it = waiters_.lower_bound({space, address, 0});
  return is_on(it, space, address) ? &it->second : nullptr;
}

const Waiter* WaitQueue::find(uint32_t core) const {
  const auto it = by_core_.lower_bound(core);
  return it == by_core_.end() || it->first != core ? nullptr : &waiters_.at(it->second);
}

const WaitQueue::PiLock* WaitQueue::find_lock(uint32_t space, uint64_t address) const {
  const auto it = locks_.find({space, address});
  return it == locks_.end() ? nullptr : &it->second;
}

void WaitQueue::set_owner(uint32_t space, uint64_t address, int64_t owner) {
  const auto it = locks_.find({space, address});
  if (it != locks_.end()) it->second.owner = owner;
}

std::vector<uint64_t> WaitQueue::locks_of(uint32_t space, int64_t owner) const {
  std::vector<uint64_t> addresses;
  for (auto it = locks_.lower_bound({space, 0}); it != locks_.end() && it->first.first == space;
       ++it)
    if (it->second.owner == owner) addresses.push_back(it->first.second);
  return addresses;
}

std::optional<Waiter> WaitQueue::take(uint32_t core) {
  const Waiter* const found = find(core);
  if (!found) return std::nullopt;
  const Waiter waiter = *found;
  erase(core);
  return waiter;
}

void WaitQueue::move(uint32_t from, uint32_t to) {
  std::vector<Key> keys;
  const auto [first, last] = by_core_.equal_range(from);
  for (auto it = first; it != last; ++it) keys.push_back(it->second);
  by_core_.erase(first, last);
  for (const Key& key : keys) {
    Waiter& waiter = waiters_.at(key);
    waiter.core = to;
    by_core_.emplace(to, key);
    if (waiter.deadline && deadlines_.erase({*waiter.deadline, from}) != 0)
      deadlines_.emplace(*waiter.deadline, to);
    if (waiter.cpu_deadline && cpu_deadlines_.erase({*waiter.cpu_deadline, from}) != 0)
      cpu_deadlines_.emplace(*waiter.cpu_deadline, to);
  }
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

std::vector<Waiter> WaitQueue::in_arrival() const {
  std::vector<std::pair<uint64_t, Waiter>> ordered;
  ordered.reserve(waiters_.size());
  for (const auto& [key, waiter] : waiters_) ordered.emplace_back(key.order, waiter);
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<Waiter> list;
  list.reserve(ordered.size());
  for (const auto& [order, waiter] : ordered) list.push_back(waiter);
  return list;
}

}  // namespace gpusim::host
