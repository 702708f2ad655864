// When something is taken, as a list of the times from when to when.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "host/chip/shape.h"

namespace gpusim::host::chip {

class SpanCalendar {
 public:
  SpanCalendar() = default;
  SpanCalendar(SpanCalendar&&) = delete;  // spans_ may point into it
  ~SpanCalendar() {
    if (spans_ != few_) delete[] spans_;
  }

  // Takes `length` ticks in one piece, from the first free place at or after `at`, and returns
  // where that begins. `now`: no request will ever arrive before.
  Ticks take(Ticks at, Ticks length, Ticks now) {
    if (at == last_.end) {
      last_.end += length;
      return at;
    }
    if (at < last_.end) return take_earlier(at, length, now);
    if (last_.end > now) {
      if (first_ + count_ == capacity_) make_room(now);
      spans_[first_ + count_++] = last_;
    } else {
      first_ = count_ = 0;  // all earlier than the last
    }
    last_ = {at, at + length};
    return at;
  }
  // Hands over what lies between `now` and `limit`, and keeps what lies behind. Returns where that
  // begins.
  template <class Take>
  Ticks take_out(Ticks now, Ticks limit, Take take) {
    const auto hand_over = [&](Span& s) {
      if (s.end > now) take(s.begin, std::min(s.end, limit));
      s.begin = limit;
      return s.end <= limit;
    };
    while (count_ != 0 && spans_[first_].begin < limit) {
      if (!hand_over(spans_[first_])) return limit;
      ++first_;
      --count_;
    }
    if (count_ != 0) return spans_[first_].begin;
    first_ = 0;
    if (last_.begin < limit && hand_over(last_)) last_ = {0, 0};
    return last_.end == 0 ? ~Ticks{0} : last_.begin;
  }

 private:
  static constexpr uint32_t kFew = 5, kNear = 8;
  struct Span {
    Ticks begin, end;
  };

  // What lies before `now` changes nothing. It is only looked for when there is no room.
  void make_room(Ticks now) {
    const Span* const from = spans_ + first_;
    const Span* const kept =
        std::partition_point(from, from + count_, [&](const Span& s) { return s.end <= now; });
    count_ -= static_cast<uint32_t>(kept - from);
    first_ = 0;
    if (4 * count_ <= 3 * capacity_) {
      std::memmove(spans_, kept, count_ * sizeof(Span));
      return;
    }
    auto* const more = new Span[size_t{2} * capacity_];
    std::memcpy(more, kept, count_ * sizeof(Span));
    if (spans_ != few_) delete[] spans_;
    spans_ = more;
    capacity_ *= 2;
  }
  Ticks take_earlier(Ticks at, Ticks length, Ticks now) {
    if (length == 0) return std::max(at, last_.begin <= at ? last_.end : at);
    // Most come shortly before the last.
    Span* const all = spans_ + first_;
    uint32_t i = count_;
    const uint32_t near = count_ > kNear ? count_ - kNear : 0;
    while (i > near && all[i - 1].end > at) --i;
    if (i == near && i != 0 && all[i - 1].end > at)
      i = static_cast<uint32_t>(
          std::partition_point(all, all + i, [&](const Span& s) { return s.end <= at; }) - all);
    Ticks begin = at;
    for (; i < count_ && all[i].begin < begin + length; ++i) begin = std::max(begin, all[i].end);
    if (i == count_ && last_.begin < begin + length) {
      begin = last_.end;
      last_.end += length;
      return begin;
    }
    insert(i, {begin, begin + length}, now);
    return begin;
  }
  // Before the i-th.
  void insert(uint32_t i, Span span, Ticks now) {
    Span* all = spans_ + first_;
    const bool joins_before = i != 0 && all[i - 1].end == span.begin;
    if (i == count_ && last_.begin == span.end) {
      last_.begin = joins_before ? all[i - 1].begin : span.begin;
      count_ -= joins_before;
      return;
    }
    const bool joins_after = i != count_ && all[i].begin == span.end;
    if (joins_before && joins_after) {
      all[i - 1].end = all[i].end;
      std::memmove(all + i, all + i + 1, (--count_ - i) * sizeof(Span));
    } else if (joins_before) {
      all[i - 1].end = span.end;
    } else if (joins_after) {
      all[i].begin = span.begin;
    } else {
      if (first_ + count_ == capacity_) {
        const uint32_t before = count_;
        make_room(now);
        i -= std::min(i, before - count_);  // it may lie before `now`: a core was woken late
        all = spans_;
      }
      std::memmove(all + i + 1, all + i, (count_++ - i) * sizeof(Span));
      all[i] = span;
    }
  }

  Span last_{0, 0};  // {0, 0}: there is none
  Span* spans_ = few_;
  uint32_t first_ = 0, count_ = 0, capacity_ = kFew;  // of spans_: by time, all before the last
  Span few_[kFew];
};

}  // namespace gpusim::host::chip
