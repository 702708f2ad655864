// How many instructions each thread of a program executes between two looks at system calls.
//
// Long slices keep a core's data in the caches, and cost the host little. But a core that stops for
// a call waits for the others: the more of them run, the shorter each of their slices.
#pragma once
#include <algorithm>
#include <cstdint>

namespace gpusim::host {

class SliceOfThreads {
 public:
  static constexpr uint64_t kLeast = 1 << 11, kFirst = 1 << 15;
  // Longer ones gain little, and have groups of cores in lockstep by chance too often.
  static constexpr uint64_t kMost = 1 << 17;

  uint64_t length() const { return length_; }
  // After a slice. `running`: threads that wait in no system call.
  void note(bool has_calls, uint64_t running) {
    constexpr uint64_t kOfAll = 1 << 21;  // instructions that a call may wait for
    length_ = has_calls ? std::clamp(kOfAll / std::max<uint64_t>(1, running), kLeast, kMost)
                        : std::min(2 * length_, kMost);
  }

  template <class Archive>
  void describe(Archive& a) {
    a.value(length_);
    a.require(length_ >= kLeast && length_ <= kMost, "the length of slices");
  }

 private:
  uint64_t length_ = kFirst;
};

}  // namespace gpusim::host
