// A power sensor with a known truth. True power goes in; what a sensor of the K20's kind would say
// of it comes out: smoothed as by a capacitor (Burtscher et al., section 5), averaged over a
// window, with gain and offset, noise and quantisation, taken once per update period and repeated
// until the next one, read by polls that take irregular time. Time is virtual.
#pragma once
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "energy/power/curve.h"
#include "energy/power/source.h"
#include "energy/power/workload.h"

namespace gpusim::power {

struct SensorModel {
  Seconds update_period{0.02};  // between new values; 0: every poll reads a new one
  Seconds update_phase{0};      // time of the first update
  Seconds update_jitter{0};     // standard deviation of each update's time
  Seconds update_drift{0};      // standard deviation of a step that stays: sensor clocks wander
  Seconds window{0};            // a value is the mean of what the capacitor holds over this time
  Seconds lag{0};               // C of P_true = P_measured + C dP/dt
  double gain = 1;
  Watts offset;
  Watts noise;               // standard deviation per update
  Watts quantum;             // values are multiples of it; 0: not rounded
  bool has_counter = false;  // gives Sample::energy_total, too, which has no lag and no window

  std::optional<Seconds> poll_idle;  // how long one takes while the device draws its idle power
  Seconds poll{0.0003};              // how long a poll takes
  Seconds poll_after_update{0};      // added to the first poll after an update (K20: 4.7 ms)
  double stall_chance = 0;           // of a poll, to take stall_length more
  Seconds stall_length{0};
  Seconds poll_jitter{0};  // standard deviation; a poll never takes less than a tenth of `poll`
};

// What the device does when nobody asks it to: see the file format in docs/power.md.
struct SimulatedDevice {
  Watts idle{60};
  // A kernel's true power from its start (time 0) to its end (the last knot).
  std::vector<Knot> kernel;
  // From a kernel's end on, if nothing else starts: "active idle", then down to idle (the K20's
  // steps). Times count from the kernel's end; empty: idle at once.
  std::vector<Knot> tail;
  std::vector<Seconds> starts;  // kernels that run by themselves
  std::vector<Knot> curve;      // instead of kernels: the whole truth
  Seconds length{0};            // the simulation is over then; 0: never
  bool fails_at_end = false;    // it does not end but dies
  uint64_t seed = 1;
};

class SimulatedSource final : public PowerSource {
 public:
  SimulatedSource(SensorModel sensor, SimulatedDevice device, std::string name = "sim");

  std::string name() const override { return name_; }
  Seconds now() const override { return now_; }
  void sleep_until(Seconds time) override;
  bool is_virtual() const override { return true; }
  bool is_endless() const override { return device_.length <= Seconds(0); }
  std::optional<Sample> poll() override;

  // Starts a kernel now, or `after` from now (a launch takes time). Returns when it ends. Truth
  // after its start is replaced.
  Seconds run(const std::vector<Knot>& kernel, Seconds after = Seconds(0));
  const std::vector<Knot>& kernel() const { return device_.kernel; }
  // The truth so far, and what the sensor would say of one moment without updates and noise.
  const Curve& truth() const { return truth_; }
  Watts smoothed_at(Seconds time) const;

 private:
  double capacitor_at(double time) const;
  double capacitor_integral(double begin, double end) const;
  void extend_capacitor() const;
  void update_until(double time);

  std::string name_;
  SensorModel sensor_;
  SimulatedDevice device_;
  Curve truth_;
  mutable std::vector<double> held_;  // by the capacitor at each knot of the truth
  std::mt19937_64 random_;
  Seconds now_;
  double next_update_ = 0;  // nominal
  double next_update_at_ = 0;
  Watts shown_;
  Joules shown_energy_;
  uint64_t updates_ = 0;
};

// The device's kernel as a workload.
class SimulatedWorkload final : public Workload {
 public:
  // `launch`: from start()'s return to the kernel's true start.
  explicit SimulatedWorkload(SimulatedSource& source, Seconds launch = Seconds(0))
      : source_(source), launch_(launch) {}
  Seconds start() override;
  bool is_running() override;
  Seconds finish() override;

 private:
  SimulatedSource& source_;
  Seconds launch_, end_;
};

// The sensor of a Tesla K20 (Burtscher et al.: 15 ms between updates, C = 0.84 s, polls of 0.283
// ms, 4.7 ms for the one that meets an update) on a device that stays at 52.5 W for 3.5 s after a
// kernel and then steps down to 25 W.
SensorModel k20_sensor();
SimulatedDevice k20_device();

// A file as docs/power.md describes it. Throws Error with the key at fault.
std::unique_ptr<SimulatedSource> parse_simulated(const std::string& json,
                                                 const std::string& origin);

}  // namespace gpusim::power
