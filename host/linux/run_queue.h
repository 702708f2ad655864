// Threads beyond the number of cores: what a core would hold of them, and their order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace gpusim::host {

// In each round every thread has a turn. One that has used its turn up comes last, and when only
// such threads are left a new round begins. A thread that is woken has what it left of its turn.
struct RunQueue {
  // A thread with all of its registers takes some kilobytes.
  static constexpr uint32_t kMostThreads = 16384;
  // What slices count in a turn, while others wait: of at most 32,768 instructions, and those that
  // end for the thread in a system call, or another event, much earlier as a rule.
  static constexpr uint32_t kOfSlice = 16, kOfEvent = 1;
  static constexpr uint32_t kTurn = 4 * kOfSlice;

  struct Entry {
    uint32_t number = 0, uop = 0;  // the thread, and where it goes on
  };

  bool empty() const { return ready.empty() && later.empty(); }
  void remove(uint32_t number) {
    const auto is_it = [&](const Entry& e) { return e.number == number; };
    std::erase_if(ready, is_it);
    std::erase_if(later, is_it);
  }
  std::optional<uint32_t> place_of(uint32_t number) const {
    for (const auto* const list : {&ready, &later})
      for (const Entry& e : *list)
        if (e.number == number) return e.uop;
    return std::nullopt;
  }

  std::deque<Entry> ready;  // in the order in which they get cores
  std::deque<Entry> later;  // have used up their turns
  uint64_t round = 0;
  std::vector<std::vector<uint64_t>> contexts;  // slots, from the first number beyond the cores on
  bool is_counting = false;                     // others waited when this slice began
  // Per core: its thread has come there and not run yet. Empty until there are others.
  std::vector<uint8_t> is_new;
  // With a limit of instructions: cores that run a new thread in this slice, and what they had
  // executed before.
  std::vector<std::pair<uint32_t, uint64_t>> begun_at;
};

}  // namespace gpusim::host
