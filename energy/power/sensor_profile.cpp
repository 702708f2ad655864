#include "energy/power/sensor_profile.h"

#include <fmt/format.h>

#include <filesystem>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "energy/power/json_quantities.h"

namespace gpusim::power {

SensorProfile parse_sensor_profile(const std::string& text, const std::string& origin) {
  const nlohmann::ordered_json json = parse_json(text, origin);
  const JsonObject in(json, origin);
  SensorProfile p;
  if (in.text_or("format", "") != "gpusim power sensor")
    in.fail("\"format\": \"gpusim power sensor\" is expected: this is not a sensor's profile");
  p.name = in.text_or("name", origin);
  seconds(in, "capacitance_s", p.capacitance);
  const std::string slope = in.text_or("slope", "symmetric");
  if (slope != "symmetric" && slope != "backward")
    in.fail("\"slope\" must be symmetric or backward");
  p.slope = slope == "backward" ? Slope::kBackward : Slope::kSymmetric;
  const double points = in.number_or("slope_points", 3, 3);
  if (points > 99 || points != static_cast<unsigned>(points) ||
      static_cast<unsigned>(points) % 2 == 0)
    in.fail("\"slope_points\" must be an odd number from 3 to 99");
  p.slope_points = static_cast<unsigned>(points);
  if (in.has("active_idle_W")) p.active_idle = Watts(in.number("active_idle_W", 0));
  if (in.has("update_period_s")) p.update_period = Seconds(in.number("update_period_s", 1e-6));
  if (in.has("duplicate_gap_s")) p.duplicate_gap = Seconds(in.number("duplicate_gap_s", 0));
  seconds(in, "window_s", p.window);
  seconds(in, "delay_s", p.delay, -1e3);
  p.gain = in.number_or("gain", 1, 1e-6);
  watts(in, "offset_W", p.offset, -1e6);
  p.notes = in.texts("notes");
  in.no_other_keys(kDocs);
  return p;
}

SensorProfile find_sensor_profile(const std::string& name_or_path) {
  if (name_or_path == "k20")
    return {.name = "k20",
            .capacitance = Seconds(0.84),
            .active_idle = Watts(52.5),
            .update_period = Seconds(0.015),
            .duplicate_gap = Seconds(0.004),
            .notes = {"Burtscher et al., Measuring GPU Power with the K20 Built-in Sensor"}};
  if (name_or_path == "none") return {.name = "none"};
  if (!std::filesystem::exists(name_or_path))
    throw Error(fmt::format(
        "{}: no such sensor profile; there are k20, none, and files of `gpusim power calibrate`",
        name_or_path));
  return parse_sensor_profile(read_text(name_or_path), name_or_path);
}

std::string sensor_profile_json(const SensorProfile& p) {
  nlohmann::ordered_json json = {{"format", "gpusim power sensor"},
                                 {"name", p.name},
                                 {"capacitance_s", p.capacitance.value()},
                                 {"slope", p.slope == Slope::kBackward ? "backward" : "symmetric"},
                                 {"slope_points", p.slope_points}};
  if (p.active_idle) json["active_idle_W"] = p.active_idle->value();
  if (p.update_period) json["update_period_s"] = p.update_period->value();
  if (p.duplicate_gap) json["duplicate_gap_s"] = p.duplicate_gap->value();
  json["window_s"] = p.window.value();
  json["delay_s"] = p.delay.value();
  json["gain"] = p.gain;
  json["offset_W"] = p.offset.value();
  if (!p.notes.empty()) json["notes"] = p.notes;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace gpusim::power
