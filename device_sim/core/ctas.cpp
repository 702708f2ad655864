#include "device_sim/core/ctas.h"

#include <bit>

#include "device_sim/core/lanes.h"
#include "device_sim/core/warp_results.h"

namespace gpusim {

namespace {

uint32_t lowest(uint32_t lanes) { return static_cast<uint32_t>(std::countr_zero(lanes)); }

}  // namespace

void Ctas::configure(uint32_t cores, uint32_t cta_threads, uint32_t cluster_ctas,
                     Threads& threads) {
  threads_ = &threads;
  cta_threads_ = cta_threads;
  cluster_ctas_ = cluster_ctas;
  shift_ = cta_shift_of(cta_threads);
  warps_.assign(cores / kWarpLanes, {});
  ctas_.assign(cores >> shift_, {});
  clusters_.assign(ctas_.size() / cluster_ctas, {});
}

void Ctas::begin(uint32_t place) {
  ctas_[place] = {};
  const uint32_t first = (place << shift_) / kWarpLanes;
  for (uint32_t w = 0; w < 1u << shift_ >> 5; ++w) {
    const uint32_t begin = w * kWarpLanes;
    const uint32_t lanes = begin < cta_threads_ ? std::min(cta_threads_ - begin, kWarpLanes) : 0;
    Cluster& cluster = cluster_of(place);
    cluster.alive += lanes - static_cast<uint32_t>(std::popcount(warps_[first + w].alive));
    cluster.arrived -= static_cast<uint32_t>(std::popcount(warps_[first + w].in_cluster));
    warps_[first + w] = {.alive = lanes == 0 ? 0 : ~uint32_t{0} >> (kWarpLanes - lanes)};
    ctas_[place].live_warps += lanes != 0;
  }
}

void Ctas::start(uint32_t core) {
  Warp& warp = warps_[core / kWarpLanes];
  const uint32_t lane = 1u << core % kWarpLanes;
  if (warp.alive == 0) ++ctas_[place_of(core)].live_warps;
  cluster_of(place_of(core)).alive += (warp.alive & lane) == 0;
  warp.alive |= lane;
  warp.waiting &= ~lane;
  warp.arrived &= ~lane;
}

bool Ctas::end(uint32_t first, uint32_t lanes) {
  Warp& warp = warps_[first / kWarpLanes];
  if ((warp.alive & lanes) == 0) return false;
  Cluster& cluster = cluster_of(place_of(first));
  cluster.alive -= static_cast<uint32_t>(std::popcount(warp.alive & lanes));
  cluster.arrived -= static_cast<uint32_t>(std::popcount(warp.in_cluster & lanes));
  warp.alive &= ~lanes;
  warp.waiting &= ~lanes;
  warp.arrived &= ~lanes;
  warp.in_cluster &= ~lanes;
  warp.owes_wait &= ~lanes;
  warp.at_cluster &= ~lanes;
  settle_cluster(place_of(first));
  Cta& cta = ctas_[place_of(first)];
  if (warp.alive != 0) {
    settle(first);
    return false;
  }
  if (--cta.live_warps == 0) return true;
  for (uint32_t b = 0; b < kCtaBarriers; ++b)
    if (cta.barriers[b].arrived != 0) settle_barrier(place_of(first), b);
  return false;
}

void Ctas::wait(uint32_t first, uint32_t lanes) {
  if (lanes == 0) return;
  if (const Uop& u = row(first, lowest(lanes)); is_of_cluster(u))
    return come_to_cluster(first, lanes, u);
  warps_[first / kWarpLanes].waiting |= lanes;
  settle(first);
}

uint32_t Ctas::mask_of(uint32_t first, uint32_t lane) const {
  const Uop& u = row(first, lane);
  const WarpFields f = WarpFields::unpack(u.imm);
  return f.mask_in_slot ? static_cast<uint32_t>(threads_->get(first + lane, u.c)) : f.mask;
}

// The living members that the waiting lane waits for, itself among them, if all are there; else 0.
uint32_t Ctas::ready_members(uint32_t first, uint32_t lane) const {
  const Warp& warp = warps_[first / kWarpLanes];
  const Uop& u = row(first, lane);
  const uint32_t mask = mask_of(first, lane);
  if ((mask >> lane & 1) == 0) return 1u << lane;
  const uint32_t members = mask & warp.alive;
  if ((members & ~warp.waiting) != 0) return 0;
  bool is_ready = true;
  for_each_lane(members, [&](uint32_t other) {
    const Uop& v = row(first, other);
    is_ready = is_ready && v.op == u.op && v.aux == u.aux && mask_of(first, other) == mask;
  });
  return is_ready ? members : 0;
}

void Ctas::finish(uint32_t first, uint32_t members) {
  const Uop& any = row(first, lowest(members));
  if (any.op == Op::warp) {
    const auto op = static_cast<WarpOp>(any.aux);
    WarpOperands operands{};
    uint64_t results[kWarpLanes] = {};
    for_each_lane(members, [&](uint32_t lane) {
      const Uop& u = row(first, lane);
      set_operands(op, WarpFields::unpack(u.imm), lane, threads_->get(first + lane, u.a),
                   threads_->get(first + lane, u.b), operands);
    });
    find_warp_results(op, members, operands, results);
    for_each_lane(members, [&](uint32_t lane) {
      threads_->set(first + lane, row(first, lane).d, results[lane]);
    });
  }
  warps_[first / kWarpLanes].waiting &= ~members;
  threads_->release(first, members);
}

// If all living lanes of the warp are at one barrier, the warp arrives there.
bool Ctas::try_arrive(uint32_t first) {
  Warp& warp = warps_[first / kWarpLanes];
  if (warp.waiting == 0 || warp.waiting != warp.alive) return false;
  const auto use_of = [&](uint32_t lane) {
    return barrier_of(row(first, lane),
                      [&](Slot slot) { return threads_->get(first + lane, slot); });
  };
  const BarrierUse use = use_of(lowest(warp.waiting));
  bool is_one = true;
  for_each_lane(warp.waiting, [&](uint32_t lane) {
    is_one = is_one && is_of_barrier(row(first, lane)) && use_of(lane).barrier == use.barrier;
  });
  if (!is_one) return false;
  uint32_t leaving = 0, is_true = 0;
  bool reduces = false;
  for_each_lane(warp.waiting, [&](uint32_t lane) {
    const Uop& u = row(first, lane);
    const uint32_t bit = 1u << lane;
    reduces |= u.op == Op::cta_reduce;
    if (u.op == Op::cta_reduce)
      is_true |=
          (threads_->get(first + lane, u.a) != 0) != BarrierFields::unpack(u.imm).negated ? bit : 0;
    else if (u.aux == static_cast<uint8_t>(CtaSync::kArrive))
      leaving |= bit;
  });
  const uint32_t staying = warp.waiting & ~leaving;
  warp.waiting = 0;
  if (leaving != 0) threads_->release(first, leaving);
  arrive(first, staying, static_cast<uint32_t>(use.barrier), static_cast<uint32_t>(use.threads),
         reduces ? std::optional(is_true) : std::nullopt);
  return true;
}

// Lanes that only take part in the barrier, and no reduction, have no true predicates: a program
// does not mix the two.
void Ctas::arrive(uint32_t first, uint32_t lanes, uint32_t number, uint32_t threads,
                  std::optional<uint32_t> is_true) {
  Barrier& barrier = ctas_[place_of(first)].barriers[number];
  barrier.arrived += kWarpLanes;
  barrier.expected = threads;
  barrier.popc += static_cast<uint32_t>(std::popcount(is_true.value_or(0)));
  barrier.all &= is_true.value_or(0) == lanes;
  barrier.any |= is_true.value_or(0) != 0;
  barrier.reduces |= is_true.has_value();
  Warp& warp = warps_[first / kWarpLanes];
  warp.arrived = lanes;
  warp.barrier = static_cast<uint8_t>(number);
  settle_barrier(place_of(first), number);
}

void Ctas::come_to_cluster(uint32_t first, uint32_t lanes, const Uop& u) {
  Warp& warp = warps_[first / kWarpLanes];
  if (u.aux == static_cast<uint8_t>(CtaSync::kClusterArrive)) {
    warp.in_cluster |= lanes;
    warp.owes_wait |= lanes;
    cluster_of(place_of(first)).arrived += static_cast<uint32_t>(std::popcount(lanes));
    threads_->release(first, lanes);
    return settle_cluster(place_of(first));
  }
  warp.owes_wait &= ~lanes;
  warp.at_cluster |= lanes & warp.in_cluster;
  const uint32_t opened = lanes & ~warp.in_cluster;
  if (opened != 0) threads_->release(first, opened);
}

// The phase ends when all living threads of the cluster have arrived.
void Ctas::settle_cluster(uint32_t place) {
  Cluster& cluster = cluster_of(place);
  if (cluster.arrived == 0 || cluster.arrived < cluster.alive) return;
  cluster.arrived = 0;
  const uint32_t first = (place - place % cluster_ctas_) << shift_;
  for (uint32_t core = first; core < first + (cluster_ctas_ << shift_); core += kWarpLanes) {
    Warp& warp = warps_[core / kWarpLanes];
    const uint32_t lanes = warp.at_cluster;
    warp.in_cluster = warp.at_cluster = 0;
    if (lanes != 0) threads_->release(core, lanes);
  }
}

// Whoever of the warp can go on does so.
void Ctas::settle(uint32_t first) {
  const Warp& warp = warps_[first / kWarpLanes];
  uint32_t left = warp.waiting;
  while (left != 0) {
    const uint32_t lane = lowest(left);
    if (is_of_barrier(row(first, lane))) {
      if (try_arrive(first)) return;
      left &= ~(1u << lane);
      continue;
    }
    const uint32_t members = ready_members(first, lane);
    if (members != 0) finish(first, members);
    left &= ~(members | 1u << lane);
  }
}

void Ctas::settle_barrier(uint32_t place, uint32_t number) {
  Cta& cta = ctas_[place];
  Barrier& barrier = cta.barriers[number];
  const uint32_t expected = barrier.expected != 0 ? barrier.expected : cta.live_warps * kWarpLanes;
  if (barrier.arrived < expected) return;
  const Barrier done = barrier;
  barrier = {};
  const uint32_t first = place << shift_;
  for (uint32_t core = first; core < first + (1u << shift_); core += kWarpLanes) {
    Warp& warp = warps_[core / kWarpLanes];
    if (warp.arrived == 0 || warp.barrier != number) continue;
    for_each_lane(done.reduces ? warp.arrived : 0, [&](uint32_t lane) {
      const Uop& u = row(core, lane);
      if (u.op != Op::cta_reduce) return;
      switch (static_cast<CtaReduce>(u.aux)) {
        case CtaReduce::kPopc:
          threads_->set(core + lane, u.d, done.popc);
          break;
        case CtaReduce::kAnd:
          threads_->set(core + lane, u.d, done.all);
          break;
        case CtaReduce::kOr:
          threads_->set(core + lane, u.d, done.any);
          break;
      }
    });
    const uint32_t lanes = warp.arrived;
    warp.arrived = 0;
    threads_->release(core, lanes);
  }
}

bool Ctas::opens(uint32_t first, uint32_t cores, uint64_t lanes, uint32_t barrier,
                 uint32_t threads) const {
  const Cta& cta = ctas_[place_of(first)];
  const uint32_t warps = uint32_t{static_cast<uint32_t>(lanes) != 0} + (lanes >> kWarpLanes != 0);
  return cores <= 1u << shift_ && cta.live_warps == warps && cta.barriers[barrier].arrived == 0 &&
         (threads == 0 || threads == warps * kWarpLanes);
}

bool Ctas::is_blocked(uint32_t place) const {
  const uint32_t first = (place << shift_) / kWarpLanes;
  for (uint32_t w = first; w < first + (1u << shift_ >> 5); ++w)
    if (warps_[w].alive != warps_[w].blocked()) return false;
  return true;
}

bool Ctas::is_stuck(uint32_t place) const {
  if (ctas_[place].live_warps == 0 || !is_blocked(place)) return false;
  const uint32_t warp = (place << shift_) / kWarpLanes;
  bool waits_for_cluster = false;
  for (uint32_t w = warp; w < warp + (1u << shift_ >> 5); ++w)
    waits_for_cluster |= warps_[w].at_cluster != 0;
  if (!waits_for_cluster) return true;
  const uint32_t first = place - place % cluster_ctas_;
  for (uint32_t p = first; p < first + cluster_ctas_; ++p)
    if (!is_blocked(p)) return false;
  return true;
}

void Ctas::give_up(uint32_t place, const std::function<void(uint32_t)>& f) {
  const uint32_t first = place << shift_;
  for (uint32_t core = first; core < first + (1u << shift_); core += kWarpLanes) {
    Warp& warp = warps_[core / kWarpLanes];
    for_each_lane(warp.blocked(), [&](uint32_t lane) { f(core + lane); });
    warp.waiting = warp.arrived = warp.at_cluster = 0;
  }
}

}  // namespace gpusim
