#include "device_sim/cuda/meetings.h"

#include <bit>

#include "device_sim/core/lanes.h"

namespace gpusim::cuda {

namespace {

Event fault(uint32_t core, uint32_t uop, Fault what) {
  return {.core = core, .status = CoreStatus::kFault, .fault = what, .uop = uop};
}

}  // namespace

void Meetings::configure(const Module& module, const MachineConfig& config, Cores& machine) {
  module_ = &module;
  config_ = config;
  machine_ = &machine;
  reset();
}

void Meetings::reset() {
  ctas_.configure(config_.cores, config_.cta_threads, config_.cluster_ctas, *this);
  row_of_.assign(config_.cores, 0);
}

void Meetings::start(uint32_t core, uint32_t uop) {
  ctas_.start(core);
  machine_->run_from(core, uop);
}

void Meetings::stop(uint32_t core) {
  machine_->halt(core);
  ctas_.end(core & ~(kWarpLanes - 1), 1u << core % kWarpLanes);
}

void Meetings::start_cta(uint32_t place, uint32_t uop) {
  ctas_.begin(place);
  const uint32_t first = place << ctas_.shift();
  for (uint32_t t = 0; t < ctas_.cta_threads(); ++t) machine_->run_from(first + t, uop);
}

void Meetings::release(uint32_t first, uint32_t lanes) {
  for_each_lane(
      lanes, [&](uint32_t lane) { machine_->run_from(first + lane, row_of_[first + lane] + 1); });
}

void Meetings::settle(std::span<const Came> came, std::vector<Event>& events) {
  for (size_t i = 0; i < came.size();) {
    const uint32_t first = came[i].core & ~(kWarpLanes - 1);
    size_t end = i;
    uint32_t ended = 0, left = 0;
    for (; end < came.size() && came[end].core - first < kWarpLanes; ++end) {
      const uint32_t bit = 1u << came[end].core % kWarpLanes;
      (came[end].has_ended ? ended : left) |= bit;
      row_of_[came[end].core] = came[end].uop;
    }
    i = end;
    if (ended != 0 && ctas_.end(first, ended))
      events.push_back(
          {.core = ctas_.place_of(first) << ctas_.shift(), .status = CoreStatus::kCtaEnd});
    // Those at one row come together.
    while (left != 0) {
      const uint32_t uop = row_of_[first + static_cast<uint32_t>(std::countr_zero(left))];
      uint32_t lanes = 0;
      for_each_lane(left, [&](uint32_t lane) {
        if (row_of_[first + lane] == uop) lanes |= 1u << lane;
      });
      left &= ~lanes;
      wait(first, lanes, uop, events);
    }
  }
  for (uint32_t place = 0; place < ctas_.places(); ++place)
    if (ctas_.is_stuck(place))
      ctas_.give_up(place, [&](uint32_t core) {
        events.push_back(fault(core, row_of_[core], Fault::kDeadlock));
      });
}

void Meetings::wait(uint32_t first, uint32_t lanes, uint32_t uop, std::vector<Event>& events) {
  const Uop& u = module_->uops[uop];
  const auto refuse = [&](uint32_t lane) {
    events.push_back(fault(first + lane, uop, Fault::kBarrier));
    lanes &= ~(1u << lane);
  };
  if (is_of_cluster(u)) for_each_lane(ctas_.misusing(first, lanes, u), refuse);
  if (is_of_barrier(u))
    for_each_lane(lanes, [&](uint32_t lane) {
      const auto use = barrier_of(u, [&](Slot slot) { return get(first + lane, slot); });
      if (!use.is_valid()) refuse(lane);
    });
  ctas_.wait(first, lanes);
}

}  // namespace gpusim::cuda
