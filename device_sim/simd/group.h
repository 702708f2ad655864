// A group: up to 64 cores in lockstep on SIMD lanes. Plain data, shared by all SIMD targets.
//
// Registers are a structure of arrays, lanes[slot][64], but a slot whose lanes hold
// base + lane * stride is kept compact (affine.h): micro-ops on compact sources cost one scalar
// operation for the whole group, and touch none of its rows.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/effects.h"
#include "device_sim/core/lanes.h"
#include "device_sim/core/turns.h"
#include "device_sim/core/wait.h"
#include "device_sim/native/frame.h"
#include "device_sim/simd/affine.h"
#include "device_sim/simd/next_turn.h"

namespace gpusim::simd {

inline constexpr uint32_t kMaxLanes = 64;
inline constexpr uint32_t kLanesShift = 6;

// Instructions per class, and their sum in the last place: one 64-byte vector per block.
struct alignas(64) BlockTally {
  uint32_t counts[16];
};
inline constexpr int kInsnCount = 15;

// Sets of lanes whose tallies are kept until the set is given up: cheaper than adding to each lane.
inline constexpr size_t kEpochs = 8;

// The operation of micro-ops where native code may start; the original is in the code cache.
inline constexpr Op kEntryOp = static_cast<Op>(kOpCount);
class CodeCache;
class GroupedThreads;

// What a group needs of its machine.
struct Machine {
  CodeView code;
  CodeCache* native = nullptr;
  MemoryView memory;
  const BlockTally* block_tallies = nullptr;
  const uint32_t* rank = nullptr;         // core/order.h
  const uint32_t* uop_of_rank = nullptr;
  uint64_t max_instructions = 0;  // per core, 0: none
  bool counts_lanes = false;  // Group::weight, diverged, asleep
  bool is_alone = false;  // nobody else reads or writes guest memory during a slice
  uint32_t permission_changes = 0;  // so far
  GroupedThreads* ctas = nullptr;  // of modules with warps (cta_threads.h)
};

// Where a slot's values are.
enum Kind : uint8_t {
  kUniform = 0,  // one for all lanes, Group::base
  kAffine = 1,   // Group::base and stride; in the row, too, if Group::filled says so
  kLanes = 2,    // in the row, a 64-bit word per lane
  kNarrow = 4,   // in the row, 32 bits per lane, zero above
  kSigned = 8,   // in the row, 32 bits per lane, their sign above
};

// Addresses of the linear zone, [begin, end), known to have a permission.
struct Reach {
  uint64_t begin = 0, end = 0;
};

// A page of a group's windows, by its lanes' flags, known to have a permission in all of them.
struct KnownPage {
  const uint8_t* flags = nullptr;
  uint32_t changes = 0;  // Machine::permission_changes then
  // Of shared machines, for native code: the number of the page in lane 0's addresses, and where
  // its first word lies, with those of the other lanes behind it.
  uint64_t number = ~uint64_t{0};
  uint8_t* words = nullptr;
};

// Why native code was left otherwise than it was made for.
enum class Misfit : uint32_t {
  kNone,
  kForms,     // in the middle, for values of other forms
  kTogether,  // at its end, where lanes parted once: all went on together
};

// What a host thread needs while it runs one group or another.
struct Workspace {
  alignas(64) uint64_t operands[4][kMaxLanes];  // converted between 64 and 32 bits, or broadcast
  uint64_t atomics = 0;  // that went to several places
  uint64_t alone = 0;    // instructions that native code for one core executed
  native::CountingFrame frame;     // for that
  uint32_t* classes = nullptr;  // of the core whose counts `frame` has; null: it has none
};

// A machine has many: what every slice touches lies close together, the rest elsewhere.
struct Group {
  const Machine* machine = nullptr;
  uint64_t* lanes = nullptr;     // [slot][kMaxLanes], 64-byte aligned
  // Per block: weight, added for each step; of the host thread that runs the group.
  uint64_t* block_counts = nullptr;
  Workspace* workspace = nullptr;  // likewise
  const void* table = nullptr;   // handlers for the current mask: all lanes, or some

  uint64_t exists = 0;    // lanes that hold a core: bits 0 .. width - 1
  uint64_t runnable = 0;  // lanes that may run
  uint64_t waiting = 0;   // lanes that will be runnable once their event has come
  uint64_t active = 0;    // lanes that run now, all at the same micro-op; subset of runnable
  uint64_t weight = 0;    // number of active lanes; where lanes are counted, plus runnable ones << 32
  uint32_t width = 0;
  uint32_t chunks = 0;    // vectors per row: ceil(width / lanes per vector)
  uint32_t first_core = 0;
  const uint32_t* cores = nullptr;  // [lane]; null: one after the other from first_core
  uint32_t slot_count = 0;

  int64_t budget = 0;     // instructions per lane left in the slice
  // Scheduling of lanes that wait while others run.
  uint32_t depth = 0;      // call depth of the active lanes
  uint64_t wait_key = 0;   // best key among waiting lanes, ~0 if none
  Turns turns;
  CallTurns calls;
  bool gave_way = false;   // the slice ended early because everybody waits
  // It did because lanes came to code that is not translated: the others would run ahead of them.
  bool lacks_code = false;

  Watch watch;              // of the lanes in `watchers`: most often all wait for the same
  uint64_t watchers = 0;    // subset of waiting
  Watch* watches = nullptr;  // [kMaxLanes], of the other waiting lanes
  // MemoryView::events when this slice and the one before began. Lanes that were about to wait when
  // an event was signalled find it there.
  uint32_t events_now = 0, events_before = 0;

  Reach reach[2];  // for reading, for writing; empty if not known
  static constexpr uint32_t kFormer = 7;
  Reach former_reach[2][kFormer];  // likewise, of the blocks that were accessed before
  uint32_t reach_misses = 0, reach_changes = 0;
  KnownPage known_page[2];  // likewise
  uint32_t slices = 0;  // that it has run in
  Misfit misfit = Misfit::kNone;  // set by native code when it is left

  BlockTally* epoch = nullptr;  // of the active lanes
  std::vector<Event>* events = nullptr;

  // A waiting lane's key: `joint_key` for those of `joint`, else in lane_key.
  uint64_t joint = 0, joint_key = 0;

  uint8_t kind[256] = {};      // per slot: Kind
  bool filled[256] = {};       // of kAffine slots
  uint64_t base[256] = {};     // of compact slots
  uint64_t stride[256] = {};   // of kAffine slots
  // Slots that were compact and had lanes written; tried again when all lanes are together.
  uint64_t lost[4] = {};
  bool any_lost = false;
  alignas(64) uint64_t lane_key[kMaxLanes] = {};
  std::array<BlockTally, kEpochs> epochs = {};
  std::array<uint64_t, kEpochs> epoch_mask = {};
  size_t next_epoch = 0;
  uint64_t unflushed = 0;  // at most so many instructions of a lane are in `epochs`
  ClassCounts* lane_tally = nullptr;  // [kMaxLanes]; [kInsnCount]: instructions
  bool has_tallies = false;           // lane_tally may be other than zero
  uint64_t flushed_instructions = 0;  // in lane_tally, over all lanes
  uint64_t steps = 0;  // instructions of each set of lanes that ran, one after the other
  // With Machine::counts_lanes: instructions of steps times lanes that could have run, or slept; and
  // how many those are since `settled`, in terms of steps - budget, which grows by one per instruction.
  uint64_t diverged = 0, asleep = 0, settled = 0;
  uint32_t diverged_lanes = 0, asleep_lanes = 0;

  uint64_t key(uint32_t lane) const { return joint >> lane & 1 ? joint_key : lane_key[lane]; }
  uint32_t core(uint32_t lane) const { return cores ? cores[lane] : first_core + lane; }
  uint64_t get_lane(Slot s, uint32_t lane) const {
    const uint64_t* row = lanes + size_t{s} * kMaxLanes;
    if (kind[s] == kLanes) return row[lane];
    if (has_words(s)) {
      uint32_t value;
      std::memcpy(&value, reinterpret_cast<const char*>(row) + 4 * lane, 4);
      const int64_t extended = static_cast<int32_t>(value);
      return kind[s] == kNarrow ? value : static_cast<uint64_t>(extended);
    }
    return kind[s] == kAffine ? base[s] + lane * stride[s] : base[s];
  }
  bool is_compact(Slot s) const { return kind[s] <= kAffine; }
  bool has_words(Slot s) const { return kind[s] >= kNarrow; }
  // Of a compact slot.
  Compact compact(Slot s) const {
    return {base[s], kind[s] == kAffine ? stride[s] : 0};
  }
};

inline uint64_t make_key(const Machine& m, uint32_t depth, uint32_t pc) {
  return key_of(depth, m.rank[pc]);
}
inline uint32_t key_pc(const Machine& m, uint64_t key) { return m.uop_of_rank[key_rank(key)]; }

using gpusim::for_each_lane;

// Bookkeeping that does not depend on the SIMD target (group.cpp).
void flush_epochs(Group& g);
// Makes `mask` the active set; the tallies of former sets are kept in their epochs.
void set_active(Group& g, uint64_t mask);
// What the lane has executed so far, as a ClockWord.
uint64_t clock_of_lane(Group& g, uint32_t lane);
// The same of all active lanes, noted in their journals.
void note_clocks(Group& g);
// Adds up Group::diverged and asleep for what ran since the last time.
void settle_lanes(Group& g);
// The same where instructions up to now have been added up, or are not the group's.
inline void begin_lanes(Group& g) { g.settled = g.steps - static_cast<uint64_t>(g.budget); }
// The place where a lane, or the lanes of `mask`, wait.
inline void set_key(Group& g, uint32_t lane, uint64_t key) {
  g.joint &= ~(uint64_t{1} << lane);
  g.lane_key[lane] = key;
}
void set_keys(Group& g, uint64_t mask, uint64_t key);
// Parks the active lanes at micro-op `pc`.
void park(Group& g, uint32_t pc);
// Neither runs nor waits any more.
inline void take_out(Group& g, uint32_t lane) {
  const uint64_t others = ~(uint64_t{1} << lane);
  g.runnable &= others;
  g.waiting &= others;
  g.watchers &= others;
}
// Takes lanes out of the running and reports why.
void stop_lane(Group& g, uint32_t lane, const Event& event);
// The same of all lanes of `mask`, in one event where their cores are neighbours.
void stop_lanes(Group& g, uint64_t mask, Event event);
// The active lanes, which are parked, wait for an event, unless theirs has come already. `monitor`:
// the first of its slots.
void wait_for_event(Group& g, Slot monitor);
// The lanes of `mask` wait for the same.
void add_watch(Group& g, uint64_t mask, const Watch& watch);
// Whether the event of a waiting lane has come.
bool has_event(const Group& g);
// Makes the lanes runnable whose event has come. False: there are none.
bool wake(Group& g);
void wake_all(Group& g);
// What core/turns.h schedules.
class Lanes {
 public:
  explicit Lanes(Group& group) : g_(group) {}
  uint64_t runnable() const { return g_.runnable; }
  uint64_t active() const { return g_.active; }
  uint64_t key(uint32_t lane) const { return g_.key(lane); }
  uint64_t least_key(uint64_t mask) const;
  uint32_t activate(uint64_t key);
  void rest() { g_.active = 0; }
  uint32_t depth() const { return g_.depth; }

 private:
  Group& g_;
};
// See core/turns.h. Each returns the micro-op of the lanes that run next, or kNoUop.
uint32_t schedule(Group& g);
uint32_t schedule_after_wait(Group& g);
// At the start of a slice: goes on with the turn that the last slice's end interrupted, or gives the
// one that is due.
uint32_t schedule_slice(Group& g);
// Stops the lanes that reached the instruction limit. No lane is active.
void stop_at_limit(Group& g);
// The instructions that may still run before a lane reaches the limit.
int64_t instructions_to_limit(Group& g);

// Per SIMD target: runs the group until its budget is used up or no lane is runnable.
void run_group(Group& g);
// Spreads a uniform slot over its row; sets one lane.
void set_lane(Group& g, Slot slot, uint32_t lane, uint64_t value);
void set_compact(Group& g, Slot slot, Compact value);
const char* target_name();
uint32_t lanes_per_vector();

}  // namespace gpusim::simd
