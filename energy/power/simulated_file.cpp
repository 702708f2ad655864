#include <fmt/format.h>

#include "energy/error.h"
#include "energy/power/json_reader.h"
#include "energy/power/simulated.h"

namespace gpusim::power {
namespace {

using Json = nlohmann::json;

bool is_k20(JsonReader& in) {
  const Json* preset = in.find("preset");
  if (preset == nullptr) return false;
  if (*preset != "k20") in.fail("preset", "the preset k20 is expected");
  return true;
}

SensorModel read_sensor(const Json& json, const std::string& where) {
  JsonReader in(json, where);
  SensorModel s = is_k20(in) ? k20_sensor() : SensorModel{};
  in.seconds("update_period_s", s.update_period);
  in.seconds("update_phase_s", s.update_phase);
  in.seconds("update_jitter_s", s.update_jitter);
  in.seconds("update_drift_s", s.update_drift);
  in.seconds("window_s", s.window);
  in.seconds("lag_s", s.lag);
  s.gain = in.number("gain", s.gain, 0);
  in.watts("offset_W", s.offset, -1e9);
  in.watts("noise_W", s.noise);
  in.watts("quantum_W", s.quantum);
  in.boolean("energy_counter", s.has_counter);
  in.seconds("poll_s", s.poll);
  if (const auto idle = in.number("poll_idle_s", 1e-6)) s.poll_idle = Seconds(*idle);
  in.seconds("poll_after_update_s", s.poll_after_update);
  in.seconds("poll_jitter_s", s.poll_jitter);
  s.stall_chance = in.number("stall_chance", s.stall_chance, 0);
  in.seconds("stall_s", s.stall_length);
  in.finish();
  if (s.poll < Seconds(1e-6)) in.fail("poll_s", "at least 1e-6 is expected");
  if (s.update_period > Seconds(0) && s.update_period < Seconds(1e-6))
    in.fail("update_period_s", "0, or at least 1e-6, is expected");
  return s;
}

SimulatedDevice read_device(const Json& json, const std::string& where) {
  JsonReader in(json, where);
  SimulatedDevice d = is_k20(in) ? k20_device() : SimulatedDevice{};
  in.watts("idle_W", d.idle);
  in.knots("kernel", d.kernel);
  in.knots("tail", d.tail);
  in.knots("curve", d.curve);
  if (const Json* starts = in.find("starts_s")) {
    if (!starts->is_array()) in.fail("starts_s", "a list of seconds is expected");
    for (const Json& s : *starts) {
      if (!s.is_number() || s.get<double>() < 0)
        in.fail("starts_s", "a list of seconds is expected");
      d.starts.push_back(Seconds(s.get<double>()));
    }
    if (!d.starts.empty() && d.kernel.empty())
      in.fail("starts_s", "there is no \"kernel\" to start");
  }
  in.seconds("length_s", d.length);
  in.boolean("fails_at_end", d.fails_at_end);
  d.seed = static_cast<uint64_t>(in.number("seed", 1, 0));
  in.finish();
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
  JsonReader in(json, origin);
  const Json empty = Json::object();
  const Json* sensor = in.find("sensor");
  const Json* device = in.find("device");
  in.finish();
  const SensorModel model = read_sensor(sensor ? *sensor : empty, origin + ": sensor");
  if (device == nullptr || device->empty())
    in.fail("device", "what it draws is expected: idle_W, kernel, curve or preset");
  return std::make_unique<SimulatedSource>(model, read_device(*device, origin + ": device"),
                                           "sim:" + origin);
}

}  // namespace gpusim::power
