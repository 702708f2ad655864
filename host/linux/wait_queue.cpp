#include "host/linux/wait_queue.h"

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

void WaitQueue::erase(std::map<Key, Waiter>::iterator it) {
  const Waiter& waiter = it->second;
  if (waiter.deadline) deadlines_.erase({*waiter.deadline, waiter.core});
  if (waiter.cpu_deadline) cpu_deadlines_.erase({*waiter.cpu_deadline, waiter.core});
  if (waiter.kind == Waiter::Kind::kPi) {
    const auto lock = locks_.find({waiter.space, waiter.address});
    if (--lock->second.waiters == 0) locks_.erase(lock);
  }
  by_core_.erase(waiter.core);
  waiters_.erase(it);
}

std::vector<Waiter> WaitQueue::wake(uint32_t space, uint64_t address, uint64_t count,
                                    uint32_t bitset) {
  std::vector<Waiter> woken;
  auto it = waiters_.lower_bound({space, address, 0});
  while (it != waiters_.end() && it->first.space == space && it->first.address == address &&
         it->second.kind == Waiter::Kind::kPlain && woken.size() < count) {
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

template <class Deadlines, class Time>
std::vector<Waiter> WaitQueue::expire(const Deadlines& deadlines, Time now) {
  std::vector<Waiter> expired;
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    const auto it = waiters_.find(by_core_.at(deadlines.begin()->second));
    expired.push_back(it->second);
    erase(it);
  }
  return expired;
}

std::vector<Waiter> WaitQueue::expire(Clock::time_point now) { return expire(deadlines_, now); }

std::vector<Waiter> WaitQueue::expire_on_cpu_clock(std::chrono::nanoseconds now) {
  return expire(cpu_deadlines_, now);
}

const Waiter* WaitQueue::first(uint32_t space, uint64_t address) const {
  const auto it = waiters_.lower_bound({space, address, 0});
  const bool is_there =
      it != waiters_.end() && it->first.space == space && it->first.address == address;
  return is_there ? &it->second : nullptr;
}

const Waiter* WaitQueue::find(uint32_t core) const {
  const auto it = by_core_.find(core);
  return it == by_core_.end() ? nullptr : &waiters_.at(it->second);
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
  for (auto it = locks_.lower_bound({space, 0});
       it != locks_.end() && it->first.first == space; ++it)
    if (it->second.owner == owner) addresses.push_back(it->first.second);
  return addresses;
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
