// Threads beyond the number of cores: what a core would hold of them, and their order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace gpusim::host {

struct RunQueue {
  // A thread with all of its registers takes some kilobytes.
  static constexpr uint32_t kMostThreads = 16384;
  // While others wait a thread keeps its core for so many slices, of at most 32,768 instructions. A
  // slice with a system call counts as one, too.
  static constexpr uint32_t kSlices = 4;

  struct Entry {
    uint32_t number = 0, uop = 0;  // the thread, and where it goes on
  };

  void remove(uint32_t number) {
    std::erase_if(ready, [&](const Entry& e) { return e.number == number; });
  }

  std::deque<Entry> ready;                      // in the order in which they get cores
  std::vector<std::vector<uint64_t>> contexts;  // slots, from the first number beyond the cores on
  // Per core: slices of its thread during which others waited. Empty until there are others.
  std::vector<uint32_t> slices;
};

}  // namespace gpusim::host
