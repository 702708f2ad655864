// Points in time and durations of guests, on the clocks of this process.
#pragma once
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "host/linux/guest_abi.h"
#include "host/linux/kernel.h"

namespace gpusim::host {

inline constexpr int64_t kLongestSeconds = int64_t{1} << 32;  // far from overflow in nanoseconds

inline bool is_valid(const GuestTimespec& t) {
  return t.seconds >= 0 && t.nanoseconds >= 0 && t.nanoseconds < 1'000'000'000;
}
inline bool is_valid(const GuestTimeval& t) {
  return t.seconds >= 0 && t.microseconds >= 0 && t.microseconds < 1'000'000;
}
inline std::chrono::nanoseconds duration_of(const GuestTimespec& t) {
  return std::chrono::seconds(std::min(t.seconds, kLongestSeconds)) +
         std::chrono::nanoseconds(t.nanoseconds);
}
inline std::chrono::nanoseconds duration_of(const GuestTimeval& t) {
  return std::chrono::seconds(std::min(t.seconds, kLongestSeconds)) +
         std::chrono::microseconds(t.microseconds);
}
inline GuestTimespec timespec_of(std::chrono::nanoseconds d) {
  return {d.count() / 1'000'000'000, d.count() % 1'000'000'000};
}
inline GuestTimeval timeval_of(std::chrono::nanoseconds d) {
  return {d.count() / 1'000'000'000, d.count() % 1'000'000'000 / 1000};
}

// The point on our clock when the host's `clock` shows `t`.
Clock::time_point deadline_on(clockid_t clock, const GuestTimespec& t);

// What a guest's clock number means.
struct GuestClock {
  enum class Kind : uint8_t {
    kHost,  // a clock of the host
    kCpu,   // processor time of the process: see Kernel::cpu_time
  };
  Kind kind = Kind::kHost;
  clockid_t host = CLOCK_REALTIME;
  bool can_wait = false;  // sleeps and timers
};
// Nothing: there is no such clock.
std::optional<GuestClock> find_clock(Kernel& kernel, const Call& call, int64_t number);

Waiter waiter_for(const Call& call);

}  // namespace gpusim::host
