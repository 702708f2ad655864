// When something that serves one request at a time is taken: a link, a port of a cache, a channel.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "host/chip/shape.h"

namespace gpusim::host::chip {

// Requests come in the order in which cores issue them, and at other times than they arrive here:
// one that arrives earlier takes what is still free before those that were there first.
class Calendar {
 public:
  // Takes `length` ticks in one piece, from the first free place at or after `at`, and returns
  // where that begins. `now`: no request will ever arrive before.
  Ticks take(Ticks at, Ticks length, Ticks now) {
    used_ += length;
    if (at == last_.end) {
      last_.end += length;
      return at;
    }
    if (at < last_.end) return take_earlier(at, length, now);
    if (last_.end > now) {
      if (before_.size() >= many_) forget(now);
      before_.push_back(last_);
    } else if (!before_.empty()) {
      before_.clear();  // all earlier than the last
    }
    last_ = {at, at + length};
    return at;
  }
  Ticks used() const { return used_; }

 private:
  static constexpr size_t kMany = 32, kNear = 8;
  struct Span {
    Ticks begin = 0, end = 0;
  };

  // What lies before `now` changes nothing. It is only looked for when there is much of it.
  void forget(Ticks now) {
    const auto first = std::partition_point(before_.begin(), before_.end(),
                                            [&](const Span& s) { return s.end <= now; });
    before_.erase(before_.begin(), first);
    many_ = std::max(kMany, 2 * before_.size());
  }
  Ticks take_earlier(Ticks at, Ticks length, Ticks now) {
    if (length == 0) return std::max(at, last_.begin <= at ? last_.end : at);
    if (before_.size() >= many_) forget(now);
    // Most come shortly before the last.
    auto it = before_.end();
    for (size_t n = 0; n < kNear && it != before_.begin() && (it - 1)->end > at; ++n) --it;
    if (it != before_.begin() && (it - 1)->end > at)
      it = std::partition_point(before_.begin(), it, [&](const Span& s) { return s.end <= at; });
    Ticks begin = at;
    for (; it != before_.end() && it->begin < begin + length; ++it)
      begin = std::max(begin, it->end);
    if (it == before_.end() && last_.begin < begin + length) {
      begin = last_.end;
      last_.end += length;
      return begin;
    }
    insert(it, {begin, begin + length});
    return begin;
  }
  void insert(std::vector<Span>::iterator it, Span span) {
    const bool joins_before = it != before_.begin() && (it - 1)->end == span.begin;
    if (it == before_.end() && last_.begin == span.end) {
      last_.begin = joins_before ? (it - 1)->begin : span.begin;
      if (joins_before) before_.pop_back();
      return;
    }
    const bool joins_after = it != before_.end() && it->begin == span.end;
    if (joins_before && joins_after) {
      (it - 1)->end = it->end;
      before_.erase(it);
    } else if (joins_before) {
      (it - 1)->end = span.end;
    } else if (joins_after) {
      it->begin = span.begin;
    } else {
      before_.insert(it, span);
    }
  }

  Span last_;
  std::vector<Span> before_;  // by time, all before the last
  Ticks used_ = 0;
  size_t many_ = kMany;
};

}  // namespace gpusim::host::chip
