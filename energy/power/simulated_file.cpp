#include <algorithm>

#include "device_sim/base/json_object.h"
#include "energy/power/json_quantities.h"
#include "energy/power/simulated.h"

namespace gpusim::power {
namespace {

using Json = nlohmann::ordered_json;

bool is_k20(const JsonObject& in) {
  if (!in.has("preset")) return false;
  if (in.get("preset") != "k20") in.fail("\"preset\": only k20 is known");
  return true;
}

SensorModel read_sensor(const Json& json, const std::string& where) {
  const JsonObject in(json, where);
  SensorModel s = is_k20(in) ? k20_sensor() : SensorModel{};
  seconds(in, "update_period_s", s.update_period);
  seconds(in, "update_phase_s", s.update_phase);
  seconds(in, "update_jitter_s", s.update_jitter);
  seconds(in, "update_drift_s", s.update_drift);
  seconds(in, "window_s", s.window);
  seconds(in, "lag_s", s.lag);
  s.gain = in.number_or("gain", s.gain);
  watts(in, "offset_W", s.offset, -1e9);
  watts(in, "noise_W", s.noise);
  watts(in, "quantum_W", s.quantum);
  s.has_counter = in.flag_or("energy_counter", s.has_counter);
  seconds(in, "poll_s", s.poll);
  if (in.has("poll_idle_s")) s.poll_idle = Seconds(in.number("poll_idle_s", 1e-6));
  seconds(in, "poll_after_update_s", s.poll_after_update);
  seconds(in, "poll_jitter_s", s.poll_jitter);
  s.stall_chance = in.number_or("stall_chance", s.stall_chance);
  seconds(in, "stall_s", s.stall_length);
  in.no_other_keys(kDocs);
  if (s.poll < Seconds(1e-6)) in.fail("\"poll_s\" must be at least 1e-6");
  if (s.update_period > Seconds(0) && s.update_period < Seconds(1e-6))
    in.fail("\"update_period_s\" must be 0, or at least 1e-6");
  return s;
}

SimulatedDevice read_device(const Json& json, const std::string& where) {
  const JsonObject in(json, where);
  SimulatedDevice d = is_k20(in) ? k20_device() : SimulatedDevice{};
  watts(in, "idle_W", d.idle);
  knots(in, "kernel", d.kernel);
  knots(in, "tail", d.tail);
  knots(in, "curve", d.curve);
  if (in.has("starts_s")) {
    const Json& starts = in.get("starts_s");
    const auto is_time = [](const Json& t) { return t.is_number() && t.get<double>() >= 0; };
    if (!starts.is_array() || !std::all_of(starts.begin(), starts.end(), is_time))
      in.fail("\"starts_s\" must be a list of seconds");
    for (const Json& t : starts) d.starts.push_back(Seconds(t.get<double>()));
    if (!d.starts.empty() && d.kernel.empty())
      in.fail("\"starts_s\": there is no \"kernel\" to start");
  }
  seconds(in, "length_s", d.length);
  d.fails_at_end = in.flag_or("fails_at_end", d.fails_at_end);
  d.seed = static_cast<uint64_t>(in.number_or("seed", 1));
  in.no_other_keys(kDocs);
  return d;
}

}  // namespace

SensorModel k20_sensor() {
  return {.update_period = Seconds(0.015),
          .lag = Seconds(0.84),
          .quantum = Watts(0.01),
          .poll = Seconds(0.000283),
          .poll_after_update = Seconds(0.0047)};
}

SimulatedDevice k20_device() {
  SimulatedDevice d{.idle = Watts(25)};
  // Burtscher et al., section 6.1: active idle for about 3.5 s, then a step down every second.
  const double steps[] = {52.5, 45, 38, 31, 25};
  double t = 0;
  for (size_t i = 0; i < std::size(steps); ++i) {
    if (i > 0) d.tail.push_back({Seconds(t), Watts(steps[i - 1])});
    d.tail.push_back({Seconds(t), Watts(steps[i])});
    t += i == 0 ? 3.5 : 1;
  }
  return d;
}

std::unique_ptr<SimulatedSource> parse_simulated(const std::string& text,
                                                 const std::string& origin) {
  const Json json = parse_json(text, origin);
  const JsonObject in(json, origin);
  const Json empty = Json::object();
  const Json& sensor = in.has("sensor") ? in.get("sensor") : empty;
  const Json& device = in.has("device") ? in.get("device") : empty;
  in.no_other_keys(kDocs);
  const SensorModel model = read_sensor(sensor, origin + ": sensor");
  if (device.empty())
    in.fail("\"device\": what it draws is expected: idle_W, kernel, curve or preset");
  return std::make_unique<SimulatedSource>(model, read_device(device, origin + ": device"),
                                           "sim:" + origin);
}

}  // namespace gpusim::power
