// When a slice has to end before its instructions are used up.
#pragma once
#include <atomic>
#include <chrono>

namespace gpusim {

class SliceClock {
 public:
  // From any thread: the slice that runs, and each one after it, ends soon.
  void end_all() { ends_all_.store(true, std::memory_order_relaxed); }
  // Slices end soon after so much time. Zero, as it begins: they last as long as they take.
  void limit(std::chrono::nanoseconds longest) { longest_ = longest; }

  bool has_limit() const { return longest_.count() != 0; }
  void start() {
    is_late_.store(false, std::memory_order_relaxed);
    if (has_limit()) deadline_ = std::chrono::steady_clock::now() + longest_;
  }
  // Now and then in a slice, by any of its threads.
  void look() {
    if (has_limit() && std::chrono::steady_clock::now() >= deadline_)
      is_late_.store(true, std::memory_order_relaxed);
  }
  bool is_over() const {
    return ends_all_.load(std::memory_order_relaxed) || is_late_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> ends_all_{false}, is_late_{false};
  std::chrono::nanoseconds longest_{0};
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace gpusim
