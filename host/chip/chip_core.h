// A core as the chip model sees it: its model, its clock, and what it waits for.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/chip/chip_model.h"

namespace gpusim::host::chip {

enum Why : uint8_t { kRuns, kOrder, kWord, kLockHeld };

// Loads or stores under way, the oldest first.
struct Pending {
  Ticks done;
  Stack parts;
  uint32_t unit;
};
class PendingQueue {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  const Pending& front() const { return ring_[first_]; }
  void pop_front() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
  }
  void push_back(const Pending& p) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = p;
  }

 private:
  void grow() {
    std::vector<Pending> more(std::max<size_t>(4, 2 * ring_.size()));
    for (size_t i = 0; i < count_; ++i) more[i] = ring_[(first_ + i) & (ring_.size() - 1)];
    ring_ = std::move(more);
    first_ = 0;
  }
  std::vector<Pending> ring_;  // a power of two
  size_t first_ = 0, count_ = 0;
};

struct ChipModel::Core {
  Core(const CoreContext& context, uint32_t number) : model(context, number) {}

  CoreModel model;
  Ticks clock = 0;
  bool has_ended = false;
  bool sleeps = false;     // in the run, since the slice before
  uint32_t silent = 0;     // slices since it wrote a word
  bool is_done = false;    // ran freely as far as it should
  bool is_queued = false;  // in queue_
  bool is_parked = true;   // starved without a request: more words let it go on
  Ticks until = 0;         // end of the window in which it ran freely last
  Why why = kRuns;
  Ticks blocked_at = 0;
  PendingQueue loads, stores;
  // With latencies: of the latest loads, by number. Those before have come.
  std::vector<std::pair<uint32_t, Pending>> numbered;
  uint64_t last_line = 0;  // that it accessed and waited for, and how long
  Ticks last_wait = 0;
  struct Taken {
    uint64_t word;
    Ticks at;
  };
  std::vector<Taken> taken;  // locks of code that the model does not know
  std::unordered_map<uint64_t, uint64_t>
      seen;  // of watched lines: version that ended the last wait
};

}  // namespace gpusim::host::chip
