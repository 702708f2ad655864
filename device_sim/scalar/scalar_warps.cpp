#include "device_sim/scalar/scalar_warps.h"

#include <algorithm>

#include "device_sim/core/execute.h"
#include "device_sim/core/interleaving.h"
#include "device_sim/core/lanes.h"
#include "device_sim/core/warp_results.h"

namespace gpusim {

uint64_t ScalarWarps::Warp::least_key(uint64_t mask) const {
  uint64_t least = kNoKey;
  for_each_lane(mask, [&](uint32_t lane) { least = std::min(least, keys[lane]); });
  return least;
}

uint32_t ScalarWarps::Warp::activate(uint64_t key) {
  call_depth = key_depth(key);
  active_lanes = 0;
  for_each_lane(runnable_lanes, [&](uint32_t lane) {
    if (key_rank(keys[lane]) == key_rank(key)) active_lanes |= uint64_t{1} << lane;
  });
  wait_key = least_key(runnable_lanes & ~active_lanes);
  return order->uop_at()[key_rank(key)];
}

void ScalarWarps::configure() {
  order_ = ReconvergenceOrder();
  order_.compute(*b_.module_);
  reset();
}

void ScalarWarps::reset() {
  ctas_.configure(b_.config_.cores, b_.config_.cta_threads, b_.config_.cluster_ctas, *this);
  warps_.assign(b_.config_.cores / kWarpLanes, {});
  for (uint32_t i = 0; i < warps_.size(); ++i) {
    warps_[i].first_core = i * kWarpLanes;
    warps_[i].order = &order_;
  }
}

void ScalarWarps::module_changed() {
  const std::vector<uint32_t> uop_of_former_rank = order_.extend(*b_.module_);
  if (uop_of_former_rank.empty()) return;
  for (Warp& w : warps_)
    for (uint64_t& key : w.keys)
      key = key_of(key_depth(key), order_.rank()[uop_of_former_rank[key_rank(key)]]);
}

void ScalarWarps::start(uint32_t core, uint32_t uop) {
  Warp& w = warp_of(core);
  const uint32_t lane = core % kWarpLanes;
  ctas_.start(core);
  w.keys[lane] = key_of(key_depth(w.keys[lane]), order_.rank()[uop]);
  w.runnable_lanes |= uint64_t{1} << lane;
}

void ScalarWarps::stop(uint32_t core) {
  const uint32_t lane = 1u << core % kWarpLanes;
  warp_of(core).runnable_lanes &= ~uint64_t{lane};
  ctas_.end(core & ~(kWarpLanes - 1), lane);
}

void ScalarWarps::start_cta(uint32_t place, uint32_t uop) {
  ctas_.begin(place);
  const uint32_t first = place << ctas_.shift();
  for (uint32_t core = first; core < first + (1u << ctas_.shift()); core += kWarpLanes) {
    Warp& w = warp_of(core);
    w.runnable_lanes = ctas_.warp_of(core).alive;
    w.active_lanes = 0;
    w.turns = {};
    w.call_depth = 0;
    w.keys.fill(key_at(w, uop));
  }
}

uint32_t ScalarWarps::place(uint32_t core) const {
  return order_.uop_at()[key_rank(warp_of(core).keys[core % kWarpLanes])];
}

uint32_t ScalarWarps::runnable() const {
  uint32_t sum = 0;
  for (const Warp& w : warps_) sum += static_cast<uint32_t>(std::popcount(w.runnable_lanes));
  return sum;
}

void ScalarWarps::run_slice(uint64_t instructions) {
  const uint32_t cta_cores = 1u << ctas_.shift();
  std::vector<uint64_t> left(cta_cores / kWarpLanes);
  for (uint32_t place = 0; place < ctas_.places(); ++place) {
    const uint32_t first = place * cta_cores;
    for (uint64_t& instr : left)
      instr = jittered(b_.config_.seed, b_.slices_,
                       first + static_cast<uint32_t>(&instr - &left[0]), instructions);
    // Warps that others of the CTA let go on have the rest of their slices.
    for (bool ran = true; ran;) {
      ran = false;
      for (uint32_t i = 0; i < left.size(); ++i) {
        Warp& w = warps_[first / kWarpLanes + i];
        if (left[i] == 0 || w.runnable_lanes == 0) continue;
        const uint64_t used = run(w, left[i]);
        left[i] = w.gave_way ? 0 : left[i] - std::min(left[i], std::max<uint64_t>(used, 1));
        ran = true;
      }
    }
    if (ctas_.is_stuck(place))
      ctas_.give_up(place, [&](uint32_t core) {
        b_.events_.push_back(fault_event(core, this->place(core), {Fault::kDeadlock, 0}));
      });
  }
}

const Uop& ScalarWarps::row(uint32_t core) { return b_.module_->uops[place(core)]; }
uint64_t ScalarWarps::get(uint32_t core, Slot slot) { return b_.cores_[core].slots[slot]; }
void ScalarWarps::set(uint32_t core, Slot slot, uint64_t value) {
  b_.cores_[core].slots[slot] = value;
}
void ScalarWarps::release(uint32_t first, uint32_t lanes) {
  Warp& w = warp_of(first);
  for_each_lane(lanes, [&](uint32_t lane) {
    const uint32_t next = place(first + lane) + 1;
    w.keys[lane] = key_of(key_depth(w.keys[lane]), order_.rank()[next]);
  });
  w.runnable_lanes |= lanes;
}

void ScalarWarps::set_keys(Warp& w, uint64_t lanes, uint64_t key) {
  for_each_lane(lanes, [&](uint32_t lane) { w.keys[lane] = key; });
}

void ScalarWarps::stop_lane(Warp& w, uint32_t lane, const Event& event) {
  w.runnable_lanes &= ~(uint64_t{1} << lane);
  w.keys[lane] = key_at(w, event.uop);
  b_.events_.push_back(event);
}

void ScalarWarps::stop_at_limit(Warp& w) {
  const uint64_t limit = b_.config_.max_instructions;
  if (limit == 0) return;
  for_each_lane(w.runnable_lanes, [&](uint32_t lane) {
    const uint32_t core = w.first_core + lane;
    if (b_.cores_[core].instructions < limit) return;
    w.runnable_lanes &= ~(uint64_t{1} << lane);
    b_.events_.push_back(limit_event(core, place(core)));
  });
}

int64_t ScalarWarps::to_limit(const Warp& w) const {
  if (b_.config_.max_instructions == 0) return INT64_MAX;
  int64_t least = INT64_MAX;
  for_each_lane(w.runnable_lanes, [&](uint32_t lane) {
    const uint64_t done = b_.cores_[w.first_core + lane].instructions;
    least = std::min(least, static_cast<int64_t>(b_.config_.max_instructions - done));
  });
  return least;
}

// Returns the instructions that it took.
uint64_t ScalarWarps::run(Warp& w, uint64_t instructions) {
  const auto all = static_cast<int64_t>(std::min<uint64_t>(instructions, uint64_t{1} << 62));
  int64_t left = all;
  w.gave_way = false;
  stop_at_limit(w);
  while (left > 0 && w.runnable_lanes != 0 && !w.gave_way) {
    const int64_t budget = std::min(left, to_limit(w));
    w.budget = budget;
    for (uint32_t at = first_of_slice(w); at != kNoUop;) at = step(w, at);
    left -= budget - w.budget;
    stop_at_limit(w);
  }
  return static_cast<uint64_t>(all - left);
}

uint32_t ScalarWarps::first_of_slice(Warp& w) {
  const uint64_t were_active = w.active_lanes & w.runnable_lanes;
  const Turns& t = w.turns;
  if (t.patience > 0 && t.aging && were_active != 0)
    return activate_lanes(w.turns, w, w.keys[lowest_bit(were_active)]);
  return t.patience > 0 || t.aging ? gpusim::schedule(w.turns, w) : schedule_after_wait(w.turns, w);
}

void ScalarWarps::complete_block(Warp& w, const Uop& u) {
  const Block& block = b_.module_->blocks[u.block()];
  b_.block_counts_[u.block()] += static_cast<uint64_t>(std::popcount(w.active_lanes));
  for_each_lane(w.active_lanes, [&](uint32_t lane) {
    ScalarBackend::Core& core = b_.cores_[w.first_core + lane];
    for (int c = 0; c < kInsnClassCount; ++c) core.tally.classes[c] += block.classes[c];
    core.instructions += block.insn_count;
  });
  w.budget -= block.insn_count;
  w.turns.patience -= block.insn_count;
}

// The active lanes all go on at `to`.
uint32_t ScalarWarps::go_to(Warp& w, uint32_t to) {
  const uint64_t key = key_at(w, to);
  if (w.budget <= 0) {
    set_keys(w, w.active_lanes, key);
    return kNoUop;
  }
  if (w.active_lanes == w.runnable_lanes) return to;
  if (goes_on(w.turns, key, w.wait_key, w.call_depth)) return to;
  set_keys(w, w.active_lanes, key);
  return schedule(w);
}

// Those of `lanes`, which are active, go on at next[lane]; others have stopped.
uint32_t ScalarWarps::part(Warp& w, const std::array<uint32_t, kWarpLanes>& next, uint64_t lanes) {
  const uint32_t first = lanes != 0 ? next[lowest_bit(lanes)] : kNoUop;
  bool is_one = lanes != 0 && lanes == w.active_lanes;
  for_each_lane(lanes, [&](uint32_t lane) { is_one &= next[lane] == first; });
  if (is_one) return go_to(w, first);
  for_each_lane(lanes, [&](uint32_t lane) { w.keys[lane] = key_at(w, next[lane]); });
  return schedule(w);
}

uint32_t ScalarWarps::step(Warp& w, uint32_t at) {
  const Uop& u = b_.module_->uops[at];
  const ShapeInfo shape = shape_info(op_info(u.op).shape);
  switch (op_info(u.op).shape) {
    case Shape::kEnd:
      return end_threads(w, u);
    case Shape::kGiveWay:
      if (static_cast<Turn>(u.aux) != Turn::kSignalEvent) return give_way(w, u);
      break;
    case Shape::kWarp: {
      const auto op = static_cast<WarpOp>(u.aux);
      if (converges(op)) return wait(w, at);
      const WarpFields f = WarpFields::unpack(u.imm);
      for_each_lane(w.active_lanes, [&](uint32_t lane) {
        ScalarBackend::Core& core = b_.cores_[w.first_core + lane];
        WarpOperands in{};
        set_operands(op, f, lane, core.get(u.a), core.get(u.b), in);
        core.set(u.d, op == WarpOp::kActiveMask
                          ? w.active_lanes
                          : shuffle_source(op, lane, in.b[lane], in.c[lane]).in_range);
      });
      return at + 1;
    }
    case Shape::kWarpSync:
    case Shape::kCtaSync:
    case Shape::kCtaReduce:
      return wait(w, at);
    case Shape::kAmo:
    case Shape::kCas:
    case Shape::kCas128:
    case Shape::kFence:
      if (w.active_lanes != w.runnable_lanes) w.turns.charge_polls(1);
      break;
    default:
      break;
  }
  if (!shape.ends_block) return step_values(w, at);

  std::array<uint32_t, kWarpLanes> next{};
  uint64_t lanes = w.active_lanes;
  if (u.op == Op::link) return u.target();
  if (u.op != Op::trap) complete_block(w, u);
  if (u.op == Op::jmp || u.op == Op::jmp_reg) {
    if (u.aux == static_cast<uint8_t>(JumpHint::kCall)) ++w.call_depth;
    if (u.op == Op::jmp_reg && u.aux == static_cast<uint8_t>(JumpHint::kReturn) && w.call_depth > 0)
      --w.call_depth;
  }
  for_each_lane(w.active_lanes, [&](uint32_t lane) {
    const uint32_t core = w.first_core + lane;
    StopInfo stop;
    const auto stop_with = [&](const Event& event) {
      stop_lane(w, lane, event);
      lanes &= ~(uint64_t{1} << lane);
    };
    switch (execute(u, b_.cores_[core], b_.memory_.view(), core, stop)) {
      case Outcome::kFault:
        return stop_with(fault_event(core, at, stop));
      case Outcome::kNotTaken:
        next[lane] = at + 1;
        return;
      case Outcome::kService:
        return stop_with(service_event(core, u));
      case Outcome::kJumpReg: {
        const uint64_t pc = b_.cores_[core].get(u.a);
        next[lane] = b_.code_.find(pc);
        if (next[lane] == kNoUop) stop_with(jump_event(core, at, pc));
        return;
      }
      default:
        next[lane] = u.target();
        return;
    }
  });
  return part(w, next, lanes);
}

// A micro-op inside of a block.
uint32_t ScalarWarps::step_values(Warp& w, uint32_t at) {
  const Uop& u = b_.module_->uops[at];
  uint64_t stopped = 0;
  for_each_lane(w.active_lanes, [&](uint32_t lane) {
    const uint32_t core = w.first_core + lane;
    StopInfo stop;
    if (execute(u, b_.cores_[core], b_.memory_.view(), core, stop) != Outcome::kFault) return;
    stop_lane(w, lane, fault_event(core, at, stop));
    stopped |= uint64_t{1} << lane;
  });
  w.active_lanes &= ~stopped;
  return w.active_lanes != 0 ? at + 1 : schedule(w);
}

// The active lanes are at a row of warps.
uint32_t ScalarWarps::wait(Warp& w, uint32_t at) {
  const Uop& u = b_.module_->uops[at];
  const uint64_t active = w.active_lanes;
  uint64_t lanes = active;
  set_keys(w, active, key_at(w, at));
  if (is_of_cluster(u)) {
    const uint32_t misusing = ctas_.misusing(w.first_core, static_cast<uint32_t>(active), u);
    for_each_lane(misusing, [&](uint32_t lane) {
      stop_lane(w, lane, fault_event(w.first_core + lane, at, {Fault::kBarrier, 0}));
    });
    lanes &= ~uint64_t{misusing};
  }
  if (is_of_barrier(u))
    for_each_lane(active, [&](uint32_t lane) {
      const uint32_t core = w.first_core + lane;
      if (barrier_of(u, [&](Slot slot) { return get(core, slot); }).is_valid()) return;
      stop_lane(w, lane, fault_event(core, at, {Fault::kBarrier, 0}));
      lanes &= ~(uint64_t{1} << lane);
    });
  w.runnable_lanes &= ~lanes;
  ctas_.wait(w.first_core, static_cast<uint32_t>(lanes));
  if (lanes == active && (w.runnable_lanes & active) == active) {  // none has to wait
    w.wait_key = w.least_key(w.runnable_lanes & ~active);
    return at + 1;
  }
  return schedule(w);
}

uint32_t ScalarWarps::end_threads(Warp& w, const Uop& u) {
  complete_block(w, u);
  const uint64_t lanes = w.active_lanes;
  w.runnable_lanes &= ~lanes;
  if (ctas_.end(w.first_core, static_cast<uint32_t>(lanes)))
    b_.events_.push_back(
        {.core = ctas_.place_of(w.first_core) << ctas_.shift(), .status = CoreStatus::kCtaEnd});
  return schedule(w);
}

uint32_t ScalarWarps::give_way(Warp& w, const Uop& u) {
  complete_block(w, u);
  set_keys(w, w.active_lanes, key_at(w, u.target()));
  w.budget -= kGiveWayCost;
  if (w.active_lanes == w.runnable_lanes) {
    w.gave_way = true;
    return kNoUop;
  }
  if (w.budget <= 0) {
    w.turns.end_at_next_slice();
    return kNoUop;
  }
  return schedule_after_wait(w.turns, w);
}

// --- the machine's part

ScalarBackend::ScalarBackend() = default;
ScalarBackend::~ScalarBackend() = default;

void ScalarBackend::start(uint32_t core, uint32_t uop) {
  if (warps_) return warps_->start(core, uop);
  cores_[core].pc = uop;
  cores_[core].status = CoreStatus::kRunnable;
  cores_[core].waits = false;
}

void ScalarBackend::stop(uint32_t core) {
  if (warps_) return warps_->stop(core);
  cores_[core].status = CoreStatus::kIdle;
}

uint32_t ScalarBackend::place(uint32_t core) {
  return warps_ ? warps_->place(core) : cores_[core].pc;
}

void ScalarBackend::start_cta(uint32_t place, uint32_t uop) { warps_->start_cta(place, uop); }

void ScalarBackend::set_cta_slots(uint32_t place, Slot slot, CoreWord value) {
  for (uint32_t thread = 0; thread < config_.cta_threads; ++thread)
    cores_[(place << warps_->shift()) + thread].slots[slot] = value.of(thread);
}

}  // namespace gpusim
