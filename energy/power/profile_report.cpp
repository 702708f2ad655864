#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "energy/power/profile.h"

namespace gpusim::power {
namespace {

double ms(Seconds s) { return s.value() * 1e3; }

}  // namespace

std::string profile_csv(const PowerProfile& profile) {
  std::string text = "# time since the kernel's start\ntime_s,power_W\n";
  for (const ProfilePoint& p : profile.points)
    fmt::format_to(std::back_inserter(text), "{:.9f},{:.4f}\n", p.time.value(), p.power.value());
  return text;
}

std::string profile_json(const PowerProfile& p) {
  nlohmann::ordered_json json = {{"source", p.source},
                                 {"sampling_interval_s", p.interval.period.value()},
                                 {"sampling_interval_error_s", p.interval.error.value()},
                                 {"runs", p.runs},
                                 {"points", p.points.size()},
                                 {"synchronisations", p.synchronisations},
                                 {"kernel_s", p.kernel.value()},
                                 {"kernel_spread_s", p.kernel_spread.value()},
                                 {"baseline_W", p.baseline.value()},
                                 {"plateau_W", p.plateau.value()},
                                 {"energy_J", p.energy.value()},
                                 {"energy_error_J", p.energy_error.value()},
                                 {"above_baseline_J", p.above_baseline.value()}};
  if (p.rise) json["rise_s"] = p.rise->value();
  if (p.fall) json["fall_s"] = p.fall->value();
  json["notes"] = p.notes;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string profile_text(const PowerProfile& p) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "source              {}\n", p.source);
  if (p.interval.intervals > 0)
    fmt::format_to(out, "sampling interval   {:.4f} ms +- {:.4f} ms ({} intervals)\n",
                   ms(p.interval.period), ms(p.interval.error), p.interval.intervals);
  else
    fmt::format_to(out, "sampling interval   {:.4f} ms, as given\n", ms(p.interval.period));
  fmt::format_to(out, "kernel              {:.4f} ms +- {:.4f} ms, {} runs, {} points\n",
                 ms(p.kernel), ms(p.kernel_spread), p.runs, p.points.size());
  if (p.synchronisations > 0) fmt::format_to(out, "synchronisations    {}\n", p.synchronisations);
  fmt::format_to(out, "baseline, plateau   {:.2f} W, {:.2f} W\n", p.baseline.value(),
                 p.plateau.value());
  if (p.rise) fmt::format_to(out, "rises at            {:+.3f} ms\n", ms(*p.rise));
  if (p.fall) fmt::format_to(out, "falls at            {:+.3f} ms\n", ms(*p.fall));
  fmt::format_to(out, "energy              {:.5g} J +- {:.2g} J in the kernel's time\n",
                 p.energy.value(), p.energy_error.value());
  fmt::format_to(out, "above the baseline  {:.5g} J over the whole curve\n",
                 p.above_baseline.value());
  for (const std::string& note : p.notes) fmt::format_to(out, "note: {}\n", note);
  return text;
}

std::vector<ProfilePoint> profile_curve(const PowerProfile& p, unsigned bins) {
  std::vector<ProfilePoint> curve;
  if (p.points.empty() || bins == 0) return curve;
  const Seconds begin = p.points.front().time;
  const Seconds width = (p.points.back().time - begin) / bins;
  size_t i = 0;
  for (unsigned b = 0; b < bins; ++b) {
    const Seconds end = begin + width * (b + 1);
    std::vector<double> values;
    for (; i < p.points.size() && (p.points[i].time <= end || b + 1 == bins); ++i)
      values.push_back(p.points[i].power.value());
    if (values.empty()) continue;
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    curve.push_back({end - width * 0.5, Watts(*middle)});
  }
  return curve;
}

}  // namespace gpusim::power
