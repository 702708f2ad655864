// Which block, warp and lane runs next: left to chance.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>

#include "emulated/preemption.h"
#include "emulated/store_buffer.h"
#include "standin/chip.h"
#include "standin/lanes.h"
#include "standin/memory.h"
#include "standin/places.h"
#include "standin/random.h"
#include "standin/report.h"
#include "standin/shared_memory.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_emulated {

// On the host the first atomic operation is one too many.
uint32_t until_preemption = 1;

namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 64 << 10, kGuardBytes = 4096;
// Lanes that run before another block, and another warp, has its turn, at most.
constexpr uint32_t kBlockTurn = 4096, kWarpTurn = 128;
// An atomic operation in so many exchanges lanes, about.
constexpr uint32_t kPreemptionEvery = 16;

// GPUSIM_EMULATED_LANES: in which order the lanes of a warp make an atomic operation.
enum class LaneOrder { chance, lowest_first, highest_first };

LaneOrder read_lane_order() {
  const char* const text = std::getenv("GPUSIM_EMULATED_LANES");
  if (!text) return LaneOrder::chance;
  if (text == std::string_view("lowest-first")) return LaneOrder::lowest_first;
  if (text == std::string_view("highest-first")) return LaneOrder::highest_first;
  std::fprintf(stderr,
               "cuda-emulated: GPUSIM_EMULATED_LANES is '%s': set lowest-first, highest-first or "
               "nothing\n",
               text);
  std::exit(2);
}

LaneOrder lane_order() {
  static const LaneOrder order = read_lane_order();
  return order;
}

Running now;
context::fiber scheduler;  // where lanes go when they stop
bool is_running = false, given_up = false;
int algorithms = 0;

class Stacks {
 public:
  void* take() {
    if (free_.empty()) {
      void* const p = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p == MAP_FAILED) throw std::bad_alloc();
      mprotect(p, kGuardBytes, PROT_NONE);
      free_.push_back(p);
    }
    void* const p = free_.back();
    free_.pop_back();
    return p;
  }
  void give(void* p) { free_.push_back(p); }

 private:
  std::vector<void*> free_;
} stacks;

struct KeepStack {  // Stacks has it again when the lane ended
  void deallocate(context::stack_context&) noexcept {}
};

context::fiber begin_lane(context::fiber&& from) {
  scheduler = std::move(from);
  now.launch->thread();
  if (delays_stores) settle_all();
  return std::move(scheduler);
}

void make_lane(Warp& warp, uint32_t lane) {
  warp.stacks[lane] = stacks.take();
  context::stack_context stack;
  stack.size = kStackBytes;
  stack.sp = static_cast<char*>(warp.stacks[lane]) + kGuardBytes + kStackBytes;
  warp.fibers[lane] = context::fiber(std::allocator_arg,
                                     context::preallocated(stack.sp, stack.size, stack),
                                     KeepStack{}, begin_lane);
  warp.ready |= 1u << lane;
}

Block make_block(const Launch& launch, uint32_t index) {
  Block block;
  block.index = index;
  block.live = launch.block.x;
  block.warps.resize((launch.block.x + kLanes - 1) / kLanes);
  block.shared.assign(static_shared_bytes() + launch.shared_bytes, kPoison);
  for (uint32_t w = 0; w < block.warps.size(); ++w) {
    const uint32_t lanes = std::min(kLanes, launch.block.x - w * kLanes);
    for (uint32_t lane = 0; lane < lanes; ++lane) make_lane(block.warps[w], lane);
    block.warps[w].ended = ~block.warps[w].ready;
  }
  return block;
}

void resume(Warp& warp, uint32_t lane) {
  now.warp = &warp;
  now.lane = lane;
  threadIdx.x = now.warp_index * kLanes + lane;
  warp.fibers[lane] = std::move(warp.fibers[lane]).resume();
  if (warp.fibers[lane] || given_up) return;
  stacks.give(warp.stacks[lane]);
  lane_ended(warp, *now.block, lane);
}

// Of the lanes that are ready. In an order, each runs to its next atomic operation, then the one
// behind it, and when all have run the first again: as if they went in step.
uint32_t next_lane(Warp& warp) {
  if (!in_step()) return chance().bit_of(warp.ready);
  if ((warp.ready & ~warp.had_turn) == 0) warp.had_turn = 0;
  const uint32_t lanes = warp.ready & ~warp.had_turn;
  const int lane =
      lane_order() == LaneOrder::lowest_first ? std::countr_zero(lanes) : std::bit_width(lanes) - 1;
  warp.had_turn |= 1u << lane;
  return static_cast<uint32_t>(lane);
}

// A few lanes of a warp. False: the launch was given up.
bool run_warp(uint32_t index) {
  Warp& warp = now.block->warps[index];
  now.warp_index = index;
  if (delays_stores) settle_by_chance(warp);
  for (uint32_t turn = 1 + chance().below(kWarpTurn); warp.ready != 0 && turn != 0; --turn) {
    resume(warp, next_lane(warp));
    if (given_up) return false;
  }
  if (warp.ready == 0 && warp.waiting != 0 && !release_active(warp)) give_up(deadlock(warp));
  return !given_up;
}

// A turn of a block. False: the launch was given up.
bool run_block(Block& block) {
  const std::span<uint8_t> memory = shared_memory(now.launch->shared_bytes);
  now.block = &block;
  blockIdx.x = block.index;
  std::copy(block.shared.begin(), block.shared.end(), memory.begin());
  const auto warps = static_cast<uint32_t>(block.warps.size());
  for (uint32_t turn = 1 + chance().below(kBlockTurn / kWarpTurn * 2); turn != 0 && block.live != 0;
       --turn) {
    uint32_t w = chance().below(warps);
    while (block.warps[w].ready == 0) w = w + 1 == warps ? 0 : w + 1;
    if (!run_warp(w)) return false;
  }
  std::copy_n(memory.begin(), block.shared.size(), block.shared.begin());
  return true;
}

// Lanes of a launch that was given up never run again; their stacks are lost.
void abandon(std::vector<Block>& blocks) {
  for (Block& block : blocks)
    for (Warp& warp : block.warps)
      for (context::fiber& fiber : warp.fibers)
        static_cast<void>(new context::fiber(std::move(fiber)));
}

}  // namespace

Running& running() { return now; }
bool in_kernel() { return is_running; }
bool in_step() { return lane_order() != LaneOrder::chance; }

std::string running_lane() {
  return "kernel " + function_name(now.launch->kernel) + ", block " +
         std::to_string(now.block->index) + ", thread " +
         std::to_string(now.warp_index * kLanes + now.lane);
}

bool is_on_lane_stack(const void* p) {
  if (!is_running) return false;
  const auto* const stack = static_cast<const char*>(now.warp->stacks[now.lane]);
  return p >= stack && p < stack + kGuardBytes;
}

void give_up(const std::string& sentence) {
  report(cudaErrorLaunchFailure,
         "kernel " + function_name(now.launch->kernel) + ", block " +
             std::to_string(now.block->index) + ", warp " + std::to_string(now.warp_index) + ": " +
             sentence);
  given_up = true;
  if (is_running && scheduler) switch_away();
}

void switch_away() { scheduler = std::move(scheduler).resume(); }

void preempt() {
  until_preemption = in_step() ? 1 : 1 + chance().below(2 * kPreemptionEvery);
  if (is_running) {
    if (delays_stores) settle_by_chance(*now.warp);
    switch_away();
  } else if (algorithms == 0) {
    until_preemption = 1;
    report(cudaErrorLaunchFailure, "host code calls a function of the device, " +
                                       describe_place(__builtin_return_address(0)));
  }
}

InAlgorithm::InAlgorithm() { ++algorithms; }
InAlgorithm::~InAlgorithm() {
  --algorithms;
  until_preemption = 1;
}

bool run(const Launch& launch) {
  now = Running{.launch = &launch};
  blockDim = launch.block;
  gridDim = launch.grid;
  given_up = false;
  is_running = true;
  static const char* const stores = std::getenv("GPUSIM_EMULATED_STORES");
  delays_stores = stores && std::string_view(stores) == "delayed";
  until_preemption = 1;
  std::vector<uint32_t> order(launch.grid.x);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t i = launch.grid.x; i > 1; --i) std::swap(order[i - 1], order[chance().below(i)]);
  const auto most = static_cast<size_t>(chip().multiprocessors) *
                    static_cast<size_t>(blocks_per_multiprocessor(
                        launch.kernel, static_cast<int>(launch.block.x), launch.shared_bytes));
  std::vector<Block> resident;
  while (!given_up && (!order.empty() || !resident.empty())) {
    while (!order.empty() && resident.size() < most) {
      resident.push_back(make_block(launch, order.back()));
      order.pop_back();
    }
    const uint32_t i = chance().below(static_cast<uint32_t>(resident.size()));
    if (!run_block(resident[i])) break;
    if (resident[i].live == 0) {
      std::swap(resident[i], resident.back());
      resident.pop_back();
    }
  }
  is_running = delays_stores = false;
  until_preemption = 1;
  if (given_up) abandon(resident);
  return !given_up;
}

}  // namespace cuda_emulated
