// Native code for the hot parts of a module: which blocks are hot, what was recorded and compiled.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "device_sim/native/engine.h"
#include "device_sim/simd/jit/compiler.h"
#include "device_sim/simd/side_counts.h"

namespace gpusim::simd {

// Native code for one entry and one kind of mask.
struct NativeVariants {
  static constexpr int kMost = 8;  // for groups whose values have different forms
  static constexpr int kAttempts = 12;
  // Passes that a variant left before the end of a block, for values of other forms, until another
  // is tried.
  static constexpr uint32_t kPatienceForMisfits = 64;

  std::atomic<int> count = 0;
  std::atomic<NativeCode> code[kMost] = {};
  // Passes that found no variant since one was recorded; the first pass is.
  std::atomic<uint32_t> misses = std::numeric_limits<uint32_t>::max() / 2;
  std::atomic<bool> closed = false;     // no more of them
  std::atomic<bool> recording = false;  // a pass is; two of the same would take the room of others
  // Several may fit what values are like at the entry, and differ in what they expect later.
  std::atomic<int> first = 0;           // the one that is tried first
  std::atomic<uint32_t> misfits = 0;    // since it is
  std::atomic<uint32_t> togethers = 0;  // passes at whose end lanes stayed together, likewise
  std::atomic<bool> stale = false;      // it does not fit any more
  std::atomic<bool> replaces = false;   // what is being recorded comes first
  int attempts = 0;                     // under the cache's mutex

  // Whether this pass shall be recorded, and given to CodeCache::add().
  bool want_trace(uint32_t patience) {
    return !closed.load(std::memory_order_relaxed) &&
           misses.fetch_add(1, std::memory_order_relaxed) >= patience &&
           !recording.exchange(true, std::memory_order_relaxed);
  }
  // The first variant was left before the end of a block. If that happened too often, the next pass
  // is recorded, or another variant comes first.
  void note_misfit() {
    if (misfits.fetch_add(1, std::memory_order_relaxed) != kPatienceForMisfits) return;
    if (closed.load(std::memory_order_relaxed))
      try_another();
    else
      stale.store(true, std::memory_order_relaxed);
  }
  // The first variant ends where lanes part, and they did not. If that happens often, the next pass
  // is recorded.
  void note_together() {
    if (togethers.fetch_add(1, std::memory_order_relaxed) == kPatienceForMisfits &&
        !closed.load(std::memory_order_relaxed))
      stale.store(true, std::memory_order_relaxed);
  }
  void try_another() {
    first.store((first.load(std::memory_order_relaxed) + 1) % count, std::memory_order_relaxed);
    misfits.store(0, std::memory_order_relaxed);
  }
  // Whether this pass shall be recorded for that.
  bool want_another() {
    const bool wants = stale.load(std::memory_order_relaxed) &&
                       !closed.load(std::memory_order_relaxed) &&
                       stale.exchange(false, std::memory_order_relaxed) &&
                       !recording.exchange(true, std::memory_order_relaxed);
    if (wants) replaces = true;
    return wants;
  }
};

// How often something is left to the interpreter before code is generated for it. Code takes some
// 6 us per micro-op to generate, and saves 15 ns each time.
struct Patience {
  uint32_t misses = 256;   // group passes over an entry that found no variant
  uint32_t misfits = 200;  // code that was left before a micro-op which is no entry
};

struct NativeEntry {
  Op op{};
  // For groups of fewer than kMaxLanes cores and for whole ones; under a mask and with all lanes.
  // Code for fewer cores is made for so many, and leaves at once where a group has others.
  NativeVariants variants[2][2];
};

// Belongs to one backend. Entries are added between slices; during slices, host threads that run
// groups use and complete them.
class CodeCache {
 public:
  explicit CodeCache(VectorCode groups, Patience patience = {})
      : patience_(patience), compiler_(groups) {}
  const Patience& patience() const { return patience_; }
  // The module's micro-ops, as the groups shall run them: takes what it grew by since the last
  // time.
  void follow(const Module& module);
  const Uop* uops() const { return uops_.data(); }
  void mark(uint32_t uop);
  // For who marks all blocks of a module as they come: how many it has seen, when it sees `now`.
  size_t note_blocks(size_t now) { return std::exchange(blocks_noted_, now); }
  // Whether this is the first time that the block is found to be hot.
  bool note_hot(size_t block) { return std::exchange(is_hot_[block], 1) == 0; }
  // Native code left before this micro-op because values did not have the forms that it was made
  // for. Where that happens often, a trace shall begin. During slices, by any thread.
  void note_misfit(uint32_t uop);
  // Marks such places; between slices.
  void mark_misfits();
  size_t variants() const;

  // Code for groups of one lane; null: none.
  native::Engine* alone() const { return alone_.get(); }
  void set_alone(std::unique_ptr<native::Engine> engine) { alone_ = std::move(engine); }

  NativeEntry& entry(uint32_t uop) { return entries_[entry_of_[uop]]; }
  Op original_op(uint32_t uop) const {
    const Uop& u = uops_[uop];
    return u.op == kEntryOp ? entries_[entry_of_[uop]].op : u.op;
  }
  void add(NativeVariants& variants, Trace& trace, const NativeCalls& calls);
  // The block whose executions by single lanes are counted at that place (simd/side_counts.h).
  uint32_t side_block(size_t place) const { return side_blocks_[place]; }

 private:
  void patch(uint32_t uop);
  void find_places(Trace& trace);

  std::vector<Uop> uops_;
  size_t relinked_ = 0;  // of Module::relinked, that are known
  size_t blocks_noted_ = 0;
  std::vector<uint8_t> is_hot_;     // by block
  std::vector<uint32_t> entry_of_;  // by micro-op
  std::deque<NativeEntry> entries_;
  const Patience patience_;
  std::deque<std::atomic<uint32_t>> misfits_;  // by micro-op
  std::atomic<bool> any_misfits_ = false;
  std::array<uint32_t, kSidePlaces> side_blocks_ = {};
  size_t sides_ = 0;  // places that are taken
  std::mutex mutex_;
  TraceCompiler compiler_;
  std::unique_ptr<native::Engine> alone_;
};

}  // namespace gpusim::simd
