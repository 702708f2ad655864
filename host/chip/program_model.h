// What a chip's cores have to know of the program: cycles of its blocks, and functions that mean
// more than their instructions do.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device_sim/uir/module.h"
#include "host/chip/parts.h"
#include "host/chip/pipeline.h"
#include "host/chip/shape.h"
#include "host/journal/instruction_range.h"
#include "host/journal/journals.h"
#include "translator/common/translator.h"

namespace gpusim::host::chip {

enum class Role : uint8_t {
  kNone,
  // Left out, and played again in simulated time. Of locks; of locks for readers and writers; of
  // semaphores; of barriers.
  kLock,
  kUnlock,
  kRead,
  kWrite,
  kLeave,
  kDown,
  kUp,
  kSetSemaphore,
  kArrive,
  kSetBarrier,
  kOpenSemaphore,
  kGuardBegin,  // of what C++ initialises once
  kGuardEnd,
  // Of a condition variable.
  kSignal,
  kAwait,
  kOnce,
  kMakesName,  // of a file
  // Of the region of interest.
  kBegin,
  kEnd,
};
constexpr bool is_left_out(Role r) { return r >= Role::kLock && r <= Role::kGuardEnd; }

struct SiteModel {
  SiteKind kind;
  bool is_vector;
  // An acquire: a fence behind it. A release: a store with a fence before it. What may have to be
  // tried again: loads, and atomic operations that tell whether they did anything.
  bool acquires = false, releases = false, may_fail = false;
  bool is_store = false;  // also an exchange that stores
  bool is_plain = false;  // a load or a store, and nothing more
  uint16_t bytes;
  uint32_t unit;
  Ticks before;  // cycles of the block's instructions up to and with this one
};

struct BlockModel;

// The schedules that came behind one: cores find them here without a lock.
class NextSchedules {
 public:
  NextSchedules() = default;
  NextSchedules(const NextSchedules&) {}
  NextSchedules& operator=(const NextSchedules&) { return *this; }
  const BlockModel* find(uint32_t number) const;
  void put(const BlockModel& next) const;

 private:
  static constexpr size_t kFew = 4;
  mutable std::array<std::atomic<const BlockModel*>, kFew> at_{};
};

// Of a site, in a schedule.
struct SitePoint {
  Stalls stalls;  // up to its instruction
  // Of a load: the first instruction that reads what was loaded, in this block; or, if there is
  // none, registers that still have it at the end.
  std::optional<Point> use;
  std::vector<Slot> left;
};

struct BlockModel {
  uint64_t pc = 0, end_pc = 0;
  uint32_t unit = 0;  // of the code map, at `pc`
  uint32_t insn_count = 0;
  Ticks cost = 0;
  Role role = Role::kNone;  // of the function that starts here
  uint32_t function = 0;    // of those with a role: which
  bool starts_function = false;
  uint64_t function_end = 0;            // of the one that starts here
  bool calls = false, returns = false;  // at its end
  bool calls_once = false;              // what pthread_once() was given
  bool waits = false;                   // at its end, for an event, or gives way
  bool is_of_naming = false;            // belongs to a function that gives files names
  uint64_t barrier = 0;                 // begin of the function it belongs to, if that is a barrier
  std::vector<SiteModel> sites;
  uint32_t number = 0;
  uint32_t counter = 0;  // of its executions, twice: of those that a taken branch began apart
  uint32_t counter_of(bool is_taken) const { return 2 * counter + (is_taken ? 1 : 0); }

  // Of a chip with latencies this is one schedule of the block: cycles are of that.
  Stalls stalls;                         // all
  std::vector<SitePoint> points;         // per site
  std::vector<Pipeline::Stall> stalled;  // each
  // Registers that it reads before it writes them: when; or that it writes first.
  struct Touch {
    Slot slot;
    std::optional<Point> use;
  };
  std::vector<Touch> touches;
  uint32_t state = 0;  // of the pipeline at its end
  NextSchedules next;
};

inline const BlockModel* NextSchedules::find(uint32_t number) const {
  for (const auto& place : at_)
    if (const BlockModel* b = place.load(std::memory_order_acquire); b && b->number == number)
      return b;
  return nullptr;
}
// Of more than a few the latest take the places of others.
inline void NextSchedules::put(const BlockModel& next) const {
  for (auto& place : at_)
    if (place.load(std::memory_order_relaxed) == nullptr)
      return place.store(&next, std::memory_order_release);
  at_[next.number % kFew].store(&next, std::memory_order_release);
}

// How a function that takes or gives a lock shows which one. kFirst: by the first word that it
// accesses beside its stack. kAtomic: by the first word of an atomic operation. kHeld: by any word
// of a lock that its core holds. kArgument: by its first argument. Functions that do not come to
// such a word do nothing to a lock, as those of recursive mutexes that the thread has already.
enum class LockWord : uint8_t { kFirst, kAtomic, kHeld, kArgument };

struct SyncFunction {
  uint64_t begin, end;
  int32_t offset;  // of that word in the lock
  LockWord word = LockWord::kFirst;
  bool ends_wait = false;  // for a condition: takes the mutex again
  bool may_fail = false;   // a result other than 0: nothing happened
  bool is_part = false;    // only called by others of its role, and a part of them
  uint8_t arguments = 0;   // so many are noted
  bool is_once = false;    // pthread_once()
  bool is_naming = false;  // gives files names
};

// Functions of which the model has to know arguments and results.
std::vector<NotedName> noted_functions();

// Functions whose blocks the model has to see all.
std::vector<std::string_view> order_functions();

// MachineConfig::class_ticks of such cores.
std::array<Ticks, kInsnClassCount> class_ticks(const CoreShape& cores);

// Whether blocks that were executed so often include a function that is known to take locks.
bool takes_locks(const Module& module, std::span<const uint64_t> executions);

class ProgramModel {
 public:
  // `region`: a function whose calls are the region of interest, or FROM..TO or FROM.., in
  // instructions; empty: gpusim_roi_begin() to gpusim_roi_end(), if the program has them. Throws
  // Error if there is no such function.
  ProgramModel(const Module& module, uint32_t pointer_bytes, const ChipShape& shape,
               const std::string& region);

  void grow(std::span<const BlockSites> sites);
  const BlockModel& block(uint32_t number) const { return *block_at_[number]; }
  size_t size() const { return blocks_.size(); }
  // With `cores.latency`: the block's schedule behind that one, which ended just before it; null:
  // with nothing under way. Any thread.
  bool has_latencies() const { return pipeline_.has_value(); }
  const BlockModel& scheduled(uint32_t number, const BlockModel* before) const {
    if (!before) before = &nothing_before_;
    const BlockModel* next = before->next.find(number);
    return next ? *next : make_schedule(number, *before);
  }
  // Counters of executions that there are, and what they counted: executions by block, and, per
  // word of the code map, time that instructions there waited for results, and that taken branches
  // to there cost.
  size_t counters() const;
  void add_executions(std::span<const uint64_t> counted, std::vector<uint64_t>& of_blocks,
                      std::array<std::vector<Ticks>, kParts>& at) const;
  // So many schedules that all further ones begin with nothing under way.
  bool has_too_many_schedules() const { return has_too_many_; }
  const SyncFunction& function(uint32_t number) const { return functions_[number]; }
  bool has_guards() const { return has_guards_; }
  bool has_region() const { return has_region_; }
  bool region_is_function() const { return region_is_function_; }
  // Instructions of all cores together that count towards time.
  const std::optional<InstructionRange>& range() const { return range_; }
  // Not while the model works beside a slice: the module may grow.
  const Module& module() const { return module_; }
  // Whether the instruction there may access memory outside the chip.
  bool is_off_chip(uint32_t unit) const { return is_off_chip_[unit] != 0; }
  Ticks cost_of_unit(uint32_t unit) const;

 private:
  const BlockModel& make_schedule(uint32_t number, const BlockModel& before) const;

  const Module& module_;
  std::array<Ticks, kInsnClassCount> cost_{};
  Ticks taken_branch_ = 0;
  bool has_guards_ = false, has_region_ = false, region_is_function_ = false;
  std::optional<InstructionRange> range_;
  struct Start {
    Role role = Role::kNone;
    uint32_t function = 0;
    uint64_t end = 0;
  };
  std::unordered_map<uint64_t, Start> starts_;  // of all functions
  std::vector<SyncFunction> functions_;
  std::vector<SyncFunction> barriers_;
  std::vector<uint8_t> is_off_chip_;  // per word of the code map
  std::deque<BlockModel> blocks_;     // which never move: cores point to them
  std::vector<const BlockModel*> block_at_;

  // Schedules. States of the pipeline have numbers; 0: nothing is under way.
  std::optional<Pipeline> pipeline_;
  std::vector<Pipeline::Code> code_;                 // by block
  std::vector<std::vector<uint32_t>> insn_of_site_;  // likewise
  BlockModel nothing_before_;
  mutable std::mutex mutex_;  // for all that follows
  mutable std::deque<BlockModel> schedules_;
  mutable std::map<std::vector<Underway>, uint32_t> number_of_state_;
  mutable std::vector<std::vector<Underway>> states_;
  mutable std::unordered_map<uint64_t, const BlockModel*> schedule_of_;
  mutable bool has_too_many_ = false;
};

}  // namespace gpusim::host::chip
