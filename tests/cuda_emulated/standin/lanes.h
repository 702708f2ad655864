// The threads of a launch: fibers, of which one runs at a time.
#pragma once
#include <array>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "emulated/launch.h"
#include "emulated/warp.h"
#include "standin/store_buffer.h"

namespace cuda_emulated {

inline constexpr uint32_t kLanes = 32;

// Lanes that wait for the others of their mask at one place.
struct Gathering {
  Meeting kind;
  uint32_t mask;
  const void* place;
  uint32_t arrived;
};

struct Warp {
  std::array<boost::context::fiber, kLanes> fibers;
  std::array<void*, kLanes> stacks{};
  // Masks of lanes. A lane that never was counts as ended.
  uint32_t ready = 0, waiting = 0, at_barrier = 0, ended = 0;
  uint32_t had_turn = 0;  // in this round, where lanes go in step
  std::vector<Gathering> gatherings;
  std::array<uint64_t, kLanes> values, results;
  std::array<uint32_t, kLanes> arguments;
  std::array<std::vector<DelayedStore>, kLanes> stores;
};

struct Block {
  uint32_t index = 0;
  std::vector<Warp> warps;
  std::vector<uint8_t> shared;  // while others run
  uint32_t live = 0, arrived = 0;  // lanes; of these, at the barrier
  const void* barrier = nullptr;   // its place
};

// Runs it to its end. False: it was given up, after a report.
bool run(const Launch& launch);

bool in_kernel();
// "kernel simulate, block 3, thread 7".
std::string running_lane();
bool is_on_lane_stack(const void* p);
// While host code runs device functions, as algorithms do.
class InAlgorithm {
 public:
  InAlgorithm();
  ~InAlgorithm();
};

// --- for meetings (meeting.cpp)
struct Running {
  const Launch* launch = nullptr;
  Block* block = nullptr;
  Warp* warp = nullptr;
  uint32_t warp_index = 0, lane = 0;
};
Running& running();
// Gives up the launch. Comes back only if no lane runs.
void give_up(const std::string& sentence);
// Lets others run until the scheduler comes back to this lane.
void switch_away();
void lane_ended(Warp& warp, Block& block, uint32_t lane);
// Whether the lanes of a warp go in step: GPUSIM_EMULATED_LANES.
bool in_step();
// Of a warp none of whose lanes can run: lets those go on that wait for nobody in particular.
bool release_active(Warp& warp);
std::string deadlock(const Warp& warp);

}  // namespace cuda_emulated
