// Timers of one guest process: setitimer's three and those of timer_create.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

namespace gpusim::host {

// Processor time: what gpusim's own process took on the host since the guest began.
struct CpuTime {
  std::chrono::nanoseconds user{}, system{};
  std::chrono::nanoseconds total() const { return user + system; }
};

struct Timer {
  // What it counts: time, processor time, or processor time outside of the host's kernel.
  enum class Base : uint8_t { kSteady, kCpu, kUserCpu };
  // Whom it tells.
  enum class Notify : uint8_t { kNobody, kProcess, kThread };

  Base base = Base::kSteady;
  Notify notify = Notify::kProcess;
  int32_t signal = 0;
  int32_t clock = 0;   // timer_create's, for TIMER_ABSTIME
  int64_t tid = 0;     // kThread
  uint64_t value = 0;  // sigev_value
  std::optional<std::chrono::nanoseconds> due{};  // on its base
  std::chrono::nanoseconds interval{};            // 0: rings once
  uint32_t overruns = 0;       // since its signal began to wait
  uint32_t last_overruns = 0;  // of the signal that was delivered last

  // How often it has rung until `now`; sets when it rings next.
  uint64_t advance(std::chrono::nanoseconds now) {
    if (!due || *due > now) return 0;
    if (interval.count() <= 0) {
      due.reset();
      return 1;
    }
    const int64_t more = (now - *due) / interval;
    *due += (more + 1) * interval;
    return static_cast<uint64_t>(more) + 1;
  }
  // Until it rings; what is overdue rings at once.
  std::chrono::nanoseconds left(std::chrono::nanoseconds now) const {
    if (!due) return {};
    return std::max(*due - now, std::chrono::nanoseconds{1});
  }
};

struct Timers {
  static constexpr int kReal = 0, kVirtual = 1, kProf = 2;  // ITIMER_*
  std::array<Timer, 3> interval;
  std::map<int32_t, Timer> made;  // by timer_create
  int32_t next_id = 0;

  Timers();
  template <class F>
  void each(F visit) {
    for (Timer& t : interval) visit(t, kNoId);
    for (auto& [id, t] : made) visit(t, id);
  }
  static constexpr int32_t kNoId = -1;
  bool any_armed() {
    bool armed = false;
    each([&](const Timer& t, int32_t) { armed |= t.due.has_value(); });
    return armed;
  }
};

}  // namespace gpusim::host
