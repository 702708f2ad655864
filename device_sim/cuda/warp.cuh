// A warp simulates up to 32 cores, one per thread. Threads whose cores are at the same micro-op run
// together; core/turns.h says who runs when cores are at several.
//
// Every operation that names all lanes is reached by all lanes: what decides whether it is reached is
// equal in all of them.
#pragma once
#include "device_sim/core/execute.h"
#include "device_sim/core/interleaving.h"
#include "device_sim/core/turns.h"
#include "device_sim/cuda/core_state.h"
#include "device_sim/cuda/cta_view.cuh"
#include "device_sim/cuda/in_place_view.cuh"

namespace gpusim::cuda {

inline constexpr uint32_t kAllLanes = 0xffffffffu;
// Copies of the block counters, so that multiprocessors do not contend for the same words.
inline constexpr uint32_t kCounterCopies = 64;
// A slice is no longer than so many instructions of a core.
inline constexpr uint64_t kLongestSlice = uint64_t{1} << 30;

// Guest instructions of a block: their number, that of accesses that synchronise (kPollCost), and
// those of each class.
struct BlockInfo {
  uint32_t insn_count;
  uint32_t polls;
  uint32_t classes[kInsnClassCount];
};

// The simulated machine as a thread sees it.
struct Machine {
  CodeView code;
  InPlaceView memory;  // of a machine with memory of its own, only its DeviceView
  const BlockInfo* blocks = nullptr;
  const uint32_t* rank = nullptr;  // of each micro-op; core/order.h
  uint64_t max_instructions = 0;   // per core; 0: none
  uint64_t seed = 0;               // see core/interleaving.h
  // Per micro-op: the compiled region (regions.h) that is entered there, from 1 on, or 0.
  const uint8_t* region_at = nullptr;
  const void* region_code = nullptr;  // where a kernel does not have its regions in itself
  bool one_warp_each = false;  // CTAs have no more than one warp
  // The most instructions of a region between two looks at the budget; 0 where cores have no limit.
  int32_t region_margin = 0;
};

// A kernel without compiled regions.
struct NoRegions {
  static constexpr bool kPresent = false;
};

struct Launch {
  Machine machine;
  uint64_t* slots = nullptr;          // [slot][core]
  uint32_t slot_count = 0;
  uint32_t core_count = 0;
  CoreState* states = nullptr;        // [core]
  StopRecord* records = nullptr;      // [core]
  const uint32_t* order = nullptr;    // cores that run and are awake, neighbours at the same micro-op
  uint32_t runnable = 0;
  const WarpStart* warps = nullptr;   // of modules with warps, `runnable` of them; no `order`
  uint64_t instructions = 0;          // per core and slice
  uint32_t slice = 0;
  unsigned long long* block_counts = nullptr;  // [block][kCounterCopies]
  unsigned long long* core_classes = nullptr;  // [class][core], or null
  uint32_t* stopped = nullptr;        // cores that stopped, in no order
  uint32_t* stopped_count = nullptr;
  // Of kernels of regions alone: how many cores left theirs, in the slice's second half or before.
  uint32_t* left_regions = nullptr;
};

// Adds to the counters what this lane and those that are here with it completed.
__device__ __forceinline__ void count_block(const Launch& launch, uint32_t core, uint32_t block,
                                            uint32_t times) {
  if (times == 0) return;
  // Most often all active lanes are here, with the same block and number. But a lane that stopped in
  // an earlier block comes here together with those that ran on.
  const uint32_t together = __match_any_sync(__activemask(), uint64_t{block} << 32 | times);
  const size_t copy = blockIdx.x % kCounterCopies;
  const uint32_t lane_bit = 1u << (threadIdx.x % kWarpSize);
  if ((together & (lane_bit - 1)) == 0)
    atomicAdd(&launch.block_counts[size_t{block} * kCounterCopies + copy],
              uint64_t{times} * static_cast<uint32_t>(__popc(together)));
  if (launch.core_classes) {
    const BlockInfo& info = launch.machine.blocks[block];
    for (uint32_t c = 0; c < kInsnClassCount; ++c)
      if (info.classes[c])
        launch.core_classes[size_t{c} * launch.core_count + core] +=
            uint64_t{info.classes[c]} * times;
  }
}

// A core's context in shared memory, [slot][thread]: neighbours touch neighbouring banks.
extern __shared__ uint64_t shared_slots[];
#ifdef __NVCC__
// An address is one multiplication and addition: left to itself the compiler forms the array's
// address anew for each micro-op.
class SharedContext {
 public:
  __device__ __forceinline__ SharedContext()
      : first_(static_cast<uint32_t>(__cvta_generic_to_shared(shared_slots + threadIdx.x))),
        pitch_(blockDim.x * static_cast<uint32_t>(sizeof(uint64_t))) {}
  __device__ __forceinline__ uint64_t get(Slot s) const {
    uint64_t value;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(value) : "r"(s * pitch_ + first_));
    return value;
  }
  __device__ __forceinline__ void set(Slot s, uint64_t value) {
    asm volatile("st.shared.u64 [%0], %1;" ::"r"(s * pitch_ + first_), "l"(value));
  }
  __device__ __forceinline__ void find_again() {}  // StoredContext has reason to

 private:
  uint32_t first_, pitch_;
};
#else
class SharedContext {
 public:
  uint64_t get(Slot s) const { return shared_slots[s * blockDim.x + threadIdx.x]; }
  void set(Slot s, uint64_t value) { shared_slots[s * blockDim.x + threadIdx.x] = value; }
  uint64_t* first() const { return shared_slots + threadIdx.x; }
  void find_again() {}
};
#endif

__device__ __forceinline__ uint32_t byte_of(uint32_t word, uint32_t number) {
#ifdef __NVCC__
  // One instruction, where a shift and a mask are two.
  const uint32_t byte = __byte_perm(word, 0, 0x4440 + number);
  __builtin_assume(byte < 256);
  return byte;
#else
  return word >> (8 * number) & 255;
#endif
}

// One load: the compiler would fetch the fields one by one. It takes them from the words where it
// needs them.
__device__ __forceinline__ Uop fetch(const CodeView& code, uint32_t at) {
  const uint4 words = reinterpret_cast<const uint4*>(code.uops)[at];
  Uop u;
  static_assert(sizeof words == sizeof u);
  __builtin_memcpy(static_cast<void*>(&u), &words, sizeof u);
  u.d = static_cast<Slot>(byte_of(words.x, 2));
#ifdef __NVCC__
  // The table's look-up tests for one number more than there are rows, not for a range.
  __builtin_assume(static_cast<uint32_t>(u.op) <= kOpCount);
#endif
  return u;
}

// Micro-ops one after the other, for execute_all().
template <bool has_vectors, bool in_step>
struct Straight {
  static constexpr bool kGoesOn = true, kHasVectors = has_vectors, kInStep = in_step;
  const CodeView& code;
  uint32_t following;
  Uop u;
  __device__ __forceinline__ const Uop& next() { return u = fetch(code, following++); }
};

// Computed by all lanes.
__device__ __forceinline__ uint32_t warp_min(uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kAllLanes, x);
#else
  for (int delta = kWarpSize / 2; delta > 0; delta /= 2) {
    const uint32_t other = __shfl_xor_sync(kAllLanes, x, delta);
    x = other < x ? other : x;
  }
  return x;
#endif
}

class Warp {
 public:
  // `is_present`: the lane has a core. `alive`: lanes of a guest's warp that have not ended.
  __device__ __forceinline__ Warp(const Launch& launch, uint32_t core, bool is_present,
                                  uint32_t alive = 0)
      : launch_(launch),
        core_(core),
        lane_bit_(1u << (threadIdx.x % kWarpSize)),
        is_present_(is_present),
        alive_(alive) {}

  // has_vectors: the module has micro-ops of shape kVector. View: how cores reach memory.
  // Regions: the compiled ones.
  template <bool has_vectors, class View, class Regions>
  __device__ __forceinline__ void run_slice();
  // For compiled regions: this lane executed the block so often.
  __device__ __forceinline__ void count(uint32_t block, uint32_t times) {
    counted_ = block;
    repeats_ = times;
    flush();
  }
  __device__ __forceinline__ const void* region_code() const { return machine().region_code; }

  // What core/turns.h schedules.
  __device__ __forceinline__ uint64_t runnable() const { return runnable_; }
  __device__ __forceinline__ uint64_t active() const { return active_; }
  __device__ __forceinline__ uint64_t key(uint32_t lane) const {
    return __shfl_sync(kAllLanes, key_, static_cast<int>(lane));
  }
  __device__ __forceinline__ uint64_t least_key(uint64_t mask) const;
  __device__ __forceinline__ uint32_t activate(uint64_t key);
  __device__ __forceinline__ void rest() { active_ = 0; }
  __device__ __forceinline__ uint32_t depth() const {
    return __shfl_sync(kAllLanes, depth_, static_cast<int>(lowest_bit(active_)));
  }

 private:
  // What an active lane did where its block ended, besides going on; or that it is where lanes in
  // step come together (in_step.cuh).
  enum Deed : uint32_t { kNothing, kGaveWay, kWakesOthers, kComesTogether };

  __device__ __forceinline__ const Machine& machine() const { return launch_.machine; }
  template <class View>
  __device__ __forceinline__ decltype(auto) memory() const {
    if constexpr (kHasCtas<View>)
      return View(launch_.machine.memory);
    else
      return static_cast<const View&>(launch_.machine.memory);
  }
  __device__ __forceinline__ CoreState& stored() const { return launch_.states[core_]; }
  __device__ __forceinline__ bool is_active() const { return (active_ & lane_bit_) != 0; }
  __device__ __forceinline__ bool is_runnable() const { return (runnable_ & lane_bit_) != 0; }

  __device__ __forceinline__ void begin_slice();
  __device__ __forceinline__ uint32_t held_back() const;
  __device__ __forceinline__ int32_t budget(int32_t left) const;
  __device__ __forceinline__ uint32_t first_turn(uint32_t passed);
  template <bool has_vectors, class View, class Regions>
  __device__ __forceinline__ void run_from(uint32_t pc);
  template <class View, class Regions>
  __device__ __forceinline__ uint32_t run_region(uint32_t region, uint32_t at);
  __device__ __forceinline__ void end_slice(uint32_t held);
  template <bool has_vectors, class View>
  __device__ __forceinline__ uint32_t run_blocks(uint32_t at, Deed& deed);
  template <class View>
  __device__ __forceinline__ uint32_t end_block(const Uop& u, uint32_t at, Outcome outcome,
                                                Deed& deed);
  __device__ __forceinline__ uint32_t meet(uint32_t next, Deed deed);
  // Of modules with warps: in_step.cuh.
  template <class View>
  __device__ __forceinline__ uint32_t run_in_step(uint32_t at, Deed& deed);
  template <class View>
  __device__ __forceinline__ bool access(const Uop& u, Shape shape, uint32_t at, bool is_here);
  __device__ __forceinline__ bool end_threads(const Uop& u, uint32_t at, uint32_t here);
  __device__ __forceinline__ bool meet_in_warp(const Uop& u, uint32_t at, uint32_t here);
  __device__ __forceinline__ void find_alone(const Uop& u, uint32_t here);
  __device__ __forceinline__ uint64_t find_together(const Uop& u, const WarpFields& f, bool is_here,
                                                    uint32_t members) const;
  __device__ __forceinline__ bool meet_in_cta(const Uop& u, uint32_t here);
  __device__ __forceinline__ void complete(uint32_t block);
  __device__ __forceinline__ void flush();
  __device__ __forceinline__ void park(uint32_t next);
  __device__ __forceinline__ void wake();
  __device__ __forceinline__ StopRecord& stop(CoreStatus status, uint32_t uop);
  __device__ __forceinline__ void stop_at_limit();

  const Launch& launch_;
  const uint32_t core_, lane_bit_;
  const bool is_present_;

  // Each lane's own.
  SharedContext context_;
  uint32_t pc_ = 0;              // of a parked lane
  uint32_t depth_ = 0;
  uint64_t key_ = kNoKey;        // of a parked lane
  uint64_t executed_ = 0;        // instructions, of a parked lane; of an active one, and left_ more
  uint32_t counted_ = kNoBlock;  // the block that this lane completed last
  uint32_t repeats_ = 0;         // how often since that was last counted
  bool has_run_ = false;         // in this slice

  // Equal in all lanes; left_ only between turns.
  int32_t left_ = 0;             // instructions of the slice
  int32_t settled_ = 0;          // left_ when patience was last reduced
  uint32_t runnable_ = 0;        // masks of lanes
  uint32_t active_ = 0;          // these run now, all at the same micro-op
  uint32_t waiting_ = 0;         // for events
  uint32_t alive_;               // of a guest's warp
  bool gave_way_ = false;        // all did: the slice is over
  uint64_t wait_key_ = kNoKey;   // the least of runnable lanes that are not active
  Turns turns_;
};

__device__ __forceinline__ uint64_t Warp::least_key(uint64_t mask) const {
  const bool counts = (mask & lane_bit_) != 0;
  const uint32_t high = static_cast<uint32_t>(key_ >> 32);
  const uint32_t least_high = warp_min(counts ? high : ~0u);
  const uint32_t least_low = warp_min(counts && high == least_high ? key_rank(key_) : ~0u);
  return uint64_t{least_high} << 32 | least_low;
}

__device__ __forceinline__ uint32_t Warp::activate(uint64_t key) {
  active_ = __ballot_sync(kAllLanes, is_runnable() && key_rank(key_) == key_rank(key));
  if (is_active()) {
    depth_ = key_depth(key);
    executed_ += static_cast<uint64_t>(left_);
    has_run_ = true;
  }
  wait_key_ = least_key(runnable_ & ~active_);
  return __shfl_sync(kAllLanes, pc_, static_cast<int>(lowest_bit(active_)));
}

__device__ __forceinline__ void Warp::flush() {
  count_block(launch_, core_, counted_, repeats_);
  repeats_ = 0;
}

__device__ __forceinline__ void Warp::complete(uint32_t block) {
  if (block != counted_) {
    flush();
    counted_ = block;
  }
  ++repeats_;
  left_ -= static_cast<int32_t>(machine().blocks[block].insn_count);
}

// An active lane will not go on at once.
__device__ __forceinline__ void Warp::park(uint32_t next) {
  flush();
  executed_ -= static_cast<uint64_t>(left_);
  pc_ = next;
  key_ = key_of(depth_, machine().rank[next]);
}

// A parked lane will not go on at all, until the host says so.
__device__ __forceinline__ StopRecord& Warp::stop(CoreStatus status, uint32_t uop) {
  stored().status = status;
  launch_.stopped[atomicAdd(launch_.stopped_count, 1u)] = core_;
  StopRecord& record = launch_.records[core_];
  record.uop = uop;
  return record;
}

// Makes the lanes runnable whose event has come.
__device__ __forceinline__ void Warp::wake() {
  const bool is_woken =
      (waiting_ & lane_bit_) != 0 && stored().watch.has_event(machine().memory);
  if (is_woken) {
    stored().waits = false;
    stored().rounds = 0;
  }
  const uint32_t woken = __ballot_sync(kAllLanes, is_woken);
  runnable_ |= woken;
  waiting_ &= ~woken;
  wait_key_ = least_key(runnable_ & ~active_);
}

// Runs an active lane from `at` to the end of a block; where no other lane waits to run, on through
// direct jumps. Returns where the lane would go on, or kNoUop if it stopped.
template <bool has_vectors, class View>
__device__ __forceinline__ uint32_t Warp::run_blocks(uint32_t at, Deed& deed) {
  const bool is_alone = active_ == runnable_;
  // Written where the lane stops; as a variable it would be carried from micro-op to micro-op.
  StopInfo& why = launch_.records[core_].why;
  Straight<has_vectors, kHasCtas<View>> code{machine().code, at, {}};
  const Uop& u = code.u;
  for (;;) {
    const Outcome outcome = execute_all(code, context_, memory<View>(), core_, why);
    if constexpr (kHasCtas<View>) {
      if (outcome == Outcome::kMeets) {
        deed = kComesTogether;
        return code.following - 1;
      }
    }
    if (outcome == Outcome::kTaken || outcome == Outcome::kNotTaken) {
      complete(u.block());
      return outcome == Outcome::kTaken ? u.target() : code.following;
    }
    if (outcome == Outcome::kJump) {
      depth_ += u.aux == static_cast<uint8_t>(JumpHint::kCall);
      complete(u.block());
      if (!is_alone || left_ <= 0) return u.target();
    } else if (outcome != Outcome::kLink) {
      return end_block<View>(u, code.following - 1, outcome, deed);
    }
    code.following = u.target();
  }
}

// `u`, at `at`, ended a block otherwise than by a direct jump, or faulted. Returns as run_blocks().
template <class View>
__device__ __forceinline__ uint32_t Warp::end_block(const Uop& u, uint32_t at, Outcome outcome,
                                                    Deed& deed) {
  if (outcome == Outcome::kFault) {
    park(at);
    stop(CoreStatus::kFault, at);
    return kNoUop;
  }
  complete(u.block());
  if (outcome == Outcome::kJumpReg) {
    depth_ += u.aux == static_cast<uint8_t>(JumpHint::kCall);
    if (u.aux == static_cast<uint8_t>(JumpHint::kReturn)) {
      depth_ -= depth_ > 0;
      // Who leaves a barrier meets those that it opened it for.
      deed = waiting_ ? kWakesOthers : kNothing;
    }
    const uint64_t address = context_.get(u.a);
    const uint32_t next = machine().code.find(address);
    if (next != kNoUop) return next;
    park(at);
    stop(CoreStatus::kJump, at).why = {Fault::kNone, address};
    return kNoUop;
  }
  if (outcome == Outcome::kService) {
    park(u.target());
    StopRecord& record = stop(CoreStatus::kService, u.target());
    record.service = static_cast<Service>(u.aux);
    record.slot = u.d;
    return kNoUop;
  }
  deed = outcome == Outcome::kSignalled ? kWakesOthers : kGaveWay;
  if (deed == kGaveWay && u.aux == static_cast<uint8_t>(gpusim::Turn::kWaitForEvent))
    wait_for_event(memory<View>().around(context_.get(u.a)), core_, launch_.slice, stored(),
                   context_, u.a);
  return u.target();
}

// After the active lanes ran, unless all just go on. Returns the micro-op of those that run next, or
// kNoUop if the slice is over.
__device__ __forceinline__ uint32_t Warp::meet(uint32_t next, Deed deed) {
  const uint32_t on = __ballot_sync(kAllLanes, is_active() && next != kNoUop);
  const uint32_t gave_way = __ballot_sync(kAllLanes, deed == kGaveWay);
  const uint32_t wakers = __ballot_sync(kAllLanes, deed == kWakesOthers);
  const int leader = static_cast<int>(lowest_bit(on ? on : active_));
  const uint32_t next_of_leader = __shfl_sync(kAllLanes, next, leader);
  const uint32_t depth_of_leader = __shfl_sync(kAllLanes, depth_, leader);
  const uint32_t completed = __shfl_sync(kAllLanes, counted_, leader);
  const int32_t left = __shfl_sync(kAllLanes, left_, leader);
  const bool is_apart = __any_sync(kAllLanes, is_active() && next != next_of_leader);
  turns_.patience -= settled_ - left;
  settled_ = left;
  if (active_ != runnable_ && completed != kNoBlock)
    turns_.charge_polls(machine().blocks[completed].polls);
  if (wakers) wake();

  const auto key_of_leader = [&] {
    return key_of(depth_of_leader, machine().rank[next_of_leader]);
  };
  if (!is_apart && on != 0 && gave_way == 0 && left > 0 &&
      (active_ == runnable_ || goes_on(turns_, key_of_leader(), wait_key_, depth_of_leader))) {
    left_ = left;
    return next_of_leader;
  }
  const bool is_on = is_active() && next != kNoUop;
  if (is_on) park(next);
  const uint32_t falls_asleep = __ballot_sync(kAllLanes, is_on && deed == kGaveWay && stored().waits);
  runnable_ &= ~(active_ & ~on) & ~falls_asleep;
  waiting_ |= falls_asleep;
  const bool some_poll = gave_way != 0 && (on & runnable_) != 0;
  left_ = settled_ = left - (some_poll ? static_cast<int32_t>(kGiveWayCost) : 0);
  if (some_poll && on == runnable_) gave_way_ = true;
  if (left_ <= 0 || gave_way_) return kNoUop;
  if (runnable_ == 0 && waiting_ != 0) wake();
  if (some_poll) return schedule_after_wait(turns_, *this);
  return schedule(turns_, *this);
}

// Runs the active lanes in a region, each on its own way and for as long as it likes; where others
// wait to run, no longer than their patience lasts. Returns as run_blocks(). The instructions that
// some lanes executed more than others are taken from the slice of all.
template <class View, class Regions>
__device__ __forceinline__ uint32_t Warp::run_region(uint32_t region, uint32_t at) {
  uint32_t next = kNoUop;
  int32_t left = left_;
  if (is_active()) {
    flush();
    const auto patience = static_cast<int32_t>(turns_.patience);
    int32_t kept = machine().region_margin;
    if (active_ != runnable_ && left - patience > kept) kept = left - patience;
    left -= kept;
    next = Regions::run(region, at, context_, memory<View>(), core_, left, depth_, *this);
    left += kept;
  }
  __syncwarp();
  constexpr uint32_t kSign = 1u << 31;  // unsigned numbers are compared
  const auto least = static_cast<int32_t>(
      warp_min(is_active() ? static_cast<uint32_t>(left) ^ kSign : ~0u) ^ kSign);
  if (is_active()) {
    executed_ -= static_cast<uint64_t>(int64_t{left} - least);
    left_ = least;
  }
  return next;
}

template <bool has_vectors, class View, class Regions>
__device__ __forceinline__ void Warp::run_from(uint32_t pc) {
  // Where a region was left the interpreter goes on: the region may have done nothing.
  bool may_enter = true;
  while (pc != kNoUop) {
    if constexpr (Regions::kPresent) {
      // Lanes that sleep look whether they were woken where others return.
      const int32_t left = __shfl_sync(kAllLanes, left_, static_cast<int>(lowest_bit(active_)));
      const uint32_t region = may_enter && waiting_ == 0 && left > machine().region_margin
                                  ? machine().region_at[pc]
                                  : 0;
      may_enter = region == 0;
      if (region != 0) {
        const uint32_t next = run_region<View, Regions>(region, pc);
        pc = meet(next, kNothing);
        continue;
      }
    }
    uint32_t next = kNoUop;
    Deed deed = kNothing;
    if constexpr (kHasCtas<View>)
      next = run_in_step<View>(pc, deed);
    else if (is_active())
      next = run_blocks<has_vectors, View>(pc, deed);
    __syncwarp();
    // Most often all active lanes go the same way, and no other waits to run.
    const uint32_t first = __shfl_sync(kAllLanes, next, static_cast<int>(lowest_bit(active_)));
    const bool goes_on = next == first && next != kNoUop && deed == kNothing && left_ > 0;
    const bool all_go_on = __all_sync(kAllLanes, goes_on || !is_active());
    pc = all_go_on && active_ == runnable_ ? first : meet(next, deed);
  }
  active_ = 0;
}

// Cores of this slice do not sleep. Those that reached the limit with a block that ended in an event
// stop now.
__device__ __forceinline__ void Warp::begin_slice() {
  if (is_present_) {
    CoreState& s = stored();
    pc_ = s.pc;
    depth_ = s.depth;
    executed_ = s.instructions;
    key_ = key_of(depth_, machine().rank[pc_]);
    if (s.waits) {
      if (s.watch.has_event(machine().memory)) s.rounds = 0;
      s.waits = false;
    }
    for (uint32_t slot = 0; slot < launch_.slot_count; ++slot)
      context_.set(static_cast<Slot>(slot),
                   launch_.slots[size_t{slot} * launch_.core_count + core_]);
  }
  runnable_ = __ballot_sync(kAllLanes, is_present_);
  stop_at_limit();
}

__device__ __forceinline__ void Warp::stop_at_limit() {
  if (machine().max_instructions == 0) return;
  const bool is_over =
      ((runnable_ | waiting_) & lane_bit_) != 0 && executed_ >= machine().max_instructions;
  if (is_over) stop(CoreStatus::kLimit, pc_);
  const uint32_t over = __ballot_sync(kAllLanes, is_over);
  runnable_ &= ~over;
  waiting_ &= ~over;
}

// With a seed, lanes that do not run in this slice, so that those that do overtake them.
__device__ __forceinline__ uint32_t Warp::held_back() const {
  const uint64_t seed = machine().seed;
  if (seed == 0) return 0;
  const uint32_t first_core = __shfl_sync(kAllLanes, core_, 0);
  const uint64_t random = mixed(seed, launch_.slice, launch_.core_count + first_core);
  const auto some = static_cast<uint32_t>(random >> 32);
  return random % 2 == 0 && (runnable_ & some) != 0 ? runnable_ & ~some : 0;
}

// As many of `left` instructions as may run before a lane reaches the limit.
__device__ __forceinline__ int32_t Warp::budget(int32_t left) const {
  if (machine().max_instructions == 0) return left;
  const bool counts = ((runnable_ | waiting_) & lane_bit_) != 0;
  const uint64_t rest = counts ? machine().max_instructions - executed_ : kLongestSlice;
  const uint32_t least = warp_min(static_cast<uint32_t>(rest < kLongestSlice ? rest : kLongestSlice));
  return left < static_cast<int32_t>(least) ? left : static_cast<int32_t>(least);
}

// Lanes that could run in earlier slices, but never did, go first. `passed`: this lane's such slices.
__device__ __forceinline__ uint32_t Warp::first_turn(uint32_t passed) {
  const uint32_t most = ~warp_min(~(is_runnable() ? passed : 0));
  if (most == 0) return schedule(turns_, *this);
  const uint32_t longest = __ballot_sync(kAllLanes, is_runnable() && passed == most);
  return schedule_lane(turns_, *this, lowest_bit(longest));
}

__device__ __forceinline__ void Warp::end_slice(uint32_t held) {
  if (!is_present_) return;
  CoreState& s = stored();
  s.pc = pc_;
  s.depth = depth_;
  s.instructions = executed_;
  s.passed = is_runnable() && !has_run_ && (held & lane_bit_) == 0 ? s.passed + 1 : 0;
  for (uint32_t slot = 0; slot < launch_.slot_count; ++slot)
    launch_.slots[size_t{slot} * launch_.core_count + core_] = context_.get(static_cast<Slot>(slot));
}

template <bool has_vectors, class View, class Regions>
__device__ __forceinline__ void Warp::run_slice() {
  begin_slice();
  const uint32_t held = held_back();
  runnable_ &= ~held;
  const uint64_t length = jittered(machine().seed, launch_.slice,
                                   __shfl_sync(kAllLanes, core_, 0), launch_.instructions);
  auto left = static_cast<int32_t>(length < kLongestSlice ? length : kLongestSlice);
  uint32_t passed = is_present_ ? stored().passed : 0;
  while (left > 0 && runnable_ != 0 && !gave_way_) {
    const int32_t most = budget(left);
    left_ = settled_ = most;
    run_from<has_vectors, View, Regions>(first_turn(passed));
    passed = 0;
    left -= most - left_;
    stop_at_limit();
  }
  runnable_ |= held;
  end_slice(held);
}

}  // namespace gpusim::cuda
