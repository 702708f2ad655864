// Whether cores run in lockstep or each alone, decided by what either costs.
//
// A step of a group costs more where few lanes are active than where all are, as native code serves
// full groups best; a core alone has native code of its own. Costs are in instructions of a core
// alone. Changing over has a price, so it is done when so much has been lost, and lockstep is only
// tried again after a while of running alone, which grows where it did not pay. Everything follows
// from counts: runs repeat.
#pragma once
#include <cstdint>

#include "device_sim/simd/access_cost.h"

namespace gpusim::simd {

class Gear {
 public:
  // What a step of a group costs, by how many of its lanes are active; linear in between.
  struct StepCost {
    int64_t few, all;
  };
  // `lanes`: all of a group. `price`: of changing over.
  Gear(StepCost step_cost, int64_t lanes, int64_t price)
      : step_cost_(step_cost), lanes_(lanes), least_price_(price), price_(price),
        pause_(first_pause()) {}

  // What a change cost beyond the least price: the next one is taken to cost as much, or more.
  void note_change(int64_t more);

  // After a slice in lockstep, with so many instructions over all lanes in so many steps of a group.
  // `accesses`: samples of what came next. True: the cores had better run alone.
  bool loses(uint64_t instructions, uint64_t steps, const AccessCost& accesses = {});
  // After a slice in which so many cores ran alone. True: lockstep is worth a try.
  bool tries(uint64_t instructions, uint64_t cores);
  // After tries() said no: whether lockstep may be tried all the same, if cores are at few places.
  bool may_try_early() const { return apart_ >= pause_ / kEarly; }
  void try_now();
  bool is_on_trial() const { return on_trial_; }

  template <class Archive>
  void describe(Archive& a) {
    a(loss_);
    a(apart_);
    a(pause_);
    a(on_trial_);
    a(price_);
    a(accesses_.steps);
    a(accesses_.cost);
  }
  // Of what describe() read.
  bool is_sound() const;

 private:
  static constexpr int64_t kFirstPause = 32, kLongestPause = 1024;  // prices
  static constexpr int64_t kLonger = 4;  // times as long a pause after a trial that did not pay
  static constexpr int64_t kEarly = 16;  // the part of a pause that is kept in any case
  static constexpr uint64_t kMostSampled = 1024;  // steps, between slices
  static constexpr uint64_t kHighestCost = 1024;  // of a step's accesses
  static constexpr int64_t kHighestPrice = int64_t{1} << 48;
  int64_t first_pause() const { return kFirstPause * price_; }

  // Of lockstep over cores alone.
  int64_t gain(uint64_t instructions, uint64_t steps) const;

  StepCost step_cost_;
  int64_t lanes_, least_price_, price_;
  int64_t loss_ = 0;   // by lockstep, since the change
  int64_t apart_ = 0;  // instructions, since the change, where enough cores ran
  int64_t pause_;      // until lockstep is tried again
  bool on_trial_ = false;
  AccessCost accesses_;   // since the change, the later ones with more weight
};

}  // namespace gpusim::simd
