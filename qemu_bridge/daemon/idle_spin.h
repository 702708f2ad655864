// How long the daemon looks for work before it sleeps. Looking answers a guest within microseconds, where
// waking up takes longer than an empty kernel; but where guest and daemon share processors, with each other
// or with other programs, it keeps the very thread from running that brings the work. So it goes on only
// while it pays.
#pragma once
#include <algorithm>
#include <chrono>

namespace gpusim::daemon {

class IdleSpin {
 public:
  using Clock = std::chrono::steady_clock;
  // So often in a row it may look in vain: a guest that pauses says nothing yet.
  static constexpr int kTolerated = 2;
  // How long it does not look after that; twice as long each time, until it pays again.
  static constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{80};

  explicit IdleSpin(std::chrono::nanoseconds longest) : longest_(longest) {}

  /// Again and again while there is nothing to do. False: sleep now.
  bool goes_on(Clock::time_point now) {
    if (now < paused_until_) return looks_ = false;
    if (!looks_) begin_ = now;
    looks_ = true;
    if (now - begin_ < longest_) return true;
    if (++in_vain_ >= kTolerated) {
      paused_until_ = now + pause_;
      pause_ = std::min(2 * pause_, kLongestPause);
    }
    return looks_ = false;
  }
  /// There was something to do.
  void worked() {
    if (looks_) {
      in_vain_ = 0;
      pause_ = kFirstPause;
    }
    looks_ = false;
  }

 private:
  const std::chrono::nanoseconds longest_;
  bool looks_ = false;
  int in_vain_ = 0;
  Clock::time_point begin_, paused_until_;
  std::chrono::milliseconds pause_ = kFirstPause;
};

}  // namespace gpusim::daemon
