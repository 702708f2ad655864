#include "device_sim/simd/access_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <vector>

#include "device_sim/core/execute.h"
#include "device_sim/simd/jit/code_cache.h"
#include "device_sim/simd/jit/step_info.h"

namespace gpusim::simd {

namespace {

// Of one lane, measured (docs/adr/0067-prices-of-far-accesses.md). Where lines of all lanes go to
// the same sets of the first cache, they leave it before their next words are wanted.
constexpr uint64_t kFar = 5, kSameSets = 12;
constexpr uint64_t kNearBytes = 64, kSetsBytes = 4096;
constexpr uint64_t kPairs = 3;  // of neighbouring lanes
constexpr uint64_t kMostSteps = 64;

// What a lane does next, on a copy of what it changes.
class Ahead {
 public:
  Ahead(const Group& g, uint32_t lane) : g_(g), lane_(lane) {}
  uint32_t core() const { return g_.core(lane_); }
  uint64_t get(Slot s) const { return is_own_[s] ? own_[s] : g_.get_lane(s, lane_); }
  void set(Slot s, uint64_t value) {
    is_own_[s] = true;
    own_[s] = value;
  }
  uint64_t address(const Uop& u) const {
    const AddressMode mode = access_info(u.op).mode;
    return address_of(mode, get(u.a), mode == AddressMode::kImmediate ? 0 : get(u.b), u.imm);
  }

 private:
  const Group& g_;
  uint32_t lane_;
  std::bitset<256> is_own_;
  std::array<uint64_t, 256> own_;
};

// The lanes that go on first, together.
uint64_t first_lanes(const Group& g, uint64_t& key) {
  uint64_t lanes = 0;
  key = ~uint64_t{0};
  for_each_lane(g.runnable, [&](uint32_t lane) {
    const uint64_t k = g.key(lane);
    if (k < key) lanes = 0;
    key = std::min(key, k);
    if (k == key) lanes |= uint64_t{1} << lane;
  });
  return lanes;
}

// From the beginning, the middle and the end.
std::vector<Ahead> pairs_of(const Group& g, uint64_t lanes) {
  std::vector<uint32_t> numbers;
  for_each_lane(lanes, [&](uint32_t lane) { numbers.push_back(lane); });
  std::vector<Ahead> pairs;
  if (numbers.size() < 2) return pairs;
  const size_t last = numbers.size() - 2;
  for (const size_t first : {size_t{0}, last / 2, last})
    for (const size_t k : {first, first + 1}) pairs.emplace_back(g, numbers[k]);
  return pairs;
}

// Of one access by `lanes` lanes.
uint64_t cost_of(const Group& g, const Uop& u, std::span<const Ahead> pairs, uint64_t lanes) {
  const MemoryView& m = g.machine->memory;
  const auto offset_in_own = [&](const Ahead& a) {
    return a.address(u) - m.window_base - (uint64_t{a.core()} << m.window_shift);
  };
  const uint64_t window = uint64_t{1} << m.window_shift;
  uint64_t cost = 0;
  for (size_t k = 0; k < pairs.size(); k += 2) {
    const Ahead &a = pairs[k], &b = pairs[k + 1];
    if (offset_in_own(a) < window && offset_in_own(b) < window) {
      // One row of stacks, or lane by lane.
      if (offset_in_own(a) != offset_in_own(b)) return kFar * lanes;
      continue;
    }
    const uint64_t apart = b.address(u) - a.address(u) + kNearBytes;
    if (apart <= 2 * kNearBytes) continue;
    cost += apart % kSetsBytes <= 2 * kNearBytes ? kSameSets : kFar;
  }
  return lanes * cost / kPairs;
}

}  // namespace

AccessCost next_access_cost(const Group& g) {
  AccessCost sum;
  uint64_t key = 0;
  const uint64_t first = first_lanes(g, key);
  if (first == 0) return sum;
  const auto lanes = static_cast<uint64_t>(std::popcount(first));
  std::vector<Ahead> pairs = pairs_of(g, first);
  const Machine& machine = *g.machine;
  std::bitset<256> unknown;  // slots
  for (uint32_t pc = key_pc(machine, key); sum.steps < kMostSteps; ++pc) {
    Uop u = machine.code.uops[pc];
    if (machine.native != nullptr) u.op = machine.native->original_op(pc);
    const Shape shape = shape_of(u);
    const ShapeInfo info = info_of(u);
    const bool loads = is_load(shape), stores = is_store(shape);
    const bool is_value = info.pure && info.d.writes == 1;
    ++sum.steps;
    if (info.ends_block || !(loads || stores || is_value)) break;
    bool is_known = !info.fp_state;
    const Sources sources = sources_of(u);
    for (int k = 0; k < sources.count; ++k) is_known &= !unknown[sources.slot[k]];
    if (is_known && (loads || stores)) sum.cost += cost_of(g, u, pairs, lanes);
    if (stores) continue;
    for (Ahead& a : pairs) {
      StopInfo stop;
      is_known = is_known && execute(u, a, machine.memory, a.core(), stop) == Outcome::kNext;
    }
    unknown[u.d] = !is_known;
  }
  return sum;
}

}  // namespace gpusim::simd
