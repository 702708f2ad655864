// When one lock was held, in simulated time, for locks of which it is known only afterwards how
// long a core had them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "host/chip/shape.h"

namespace gpusim::host::chip {

class LockCalendar {
 public:
  // Where the first free piece of that length begins, at or after `at`.
  Ticks first_free(Ticks at, Ticks length) const {
    auto next = spans_.upper_bound(at);
    if (next != spans_.begin()) at = std::max(at, std::prev(next)->second);
    for (; next != spans_.end() && next->first < at + length; ++next)
      at = std::max(at, next->second);
    return at;
  }
  // A piece that is free.
  void take(Ticks begin, Ticks length) {
    if (length == 0) return;
    Ticks end = begin + length;
    auto next = spans_.lower_bound(begin);
    if (next != spans_.end() && next->first == end) {
      end = next->second;
      next = spans_.erase(next);
    }
    if (next != spans_.begin() && std::prev(next)->second == begin)
      std::prev(next)->second = end;
    else
      spans_.emplace_hint(next, begin, end);
  }
  size_t size() const { return spans_.size(); }
  // Nobody will ask for what lies before.
  void forget_before(Ticks time) {
    auto end = spans_.begin();
    while (end != spans_.end() && end->second <= time) ++end;
    spans_.erase(spans_.begin(), end);
  }

 private:
  std::map<Ticks, Ticks> spans_;  // from when to when
};

}  // namespace gpusim::host::chip
