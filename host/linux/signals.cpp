#include "host/linux/signals.h"

#include <algorithm>

namespace gpusim::host {

void SignalQueue::add(const SignalInfo& info) {
  constexpr int kFirstRealTime = 32;
  if (info.number < kFirstRealTime && (set() & signal_bit(info.number))) return;
  waiting_.push_back(info);
}

uint64_t SignalQueue::set() const {
  uint64_t set = 0;
  for (const SignalInfo& info : waiting_) set |= signal_bit(info.number);
  return set;
}

std::optional<SignalInfo> SignalQueue::take(uint64_t allowed) {
  const auto rank = [](const SignalInfo& info) {
    return info.number + (signal_bit(info.number) & kSynchronous ? 0 : kSignalCount);
  };
  auto best = waiting_.end();
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it)
    if ((signal_bit(it->number) & allowed) && (best == waiting_.end() || rank(*it) < rank(*best)))
      best = it;
  if (best == waiting_.end()) return std::nullopt;
  const SignalInfo info = *best;
  waiting_.erase(best);
  return info;
}

void SignalQueue::remove(int number) {
  std::erase_if(waiting_, [=](const SignalInfo& info) { return info.number == number; });
}

bool SignalQueue::has_timer(int32_t id) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const SignalInfo& info) {
    return info.code == kSiTimer && info.pid == id;
  });
}

}  // namespace gpusim::host
