#include "energy/power/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "energy/power/trace_columns.h"

namespace gpusim::power {

Seconds Trace::duration() const {
  return samples.empty() ? Seconds(0) : samples.back().time - samples.front().time;
}

namespace {

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

}  // namespace

std::string trace_csv(const Trace& trace) {
  std::string text = "# gpusim power trace\n";
  const auto out = std::back_inserter(text);
  if (!trace.source.empty()) fmt::format_to(out, "# source: {}\n", one_line(trace.source));
  if (trace.is_partial) text += "# partial: yes\n";
  for (const std::string& note : trace.notes) fmt::format_to(out, "# note: {}\n", one_line(note));
  for (const Interval& i : trace.intervals)
    fmt::format_to(out, "# interval: {:.9f} {:.9f} {}\n", i.begin.value(), i.end.value(),
                   one_line(i.name));
  std::vector<const Column*> used;
  for (const Column& column : own_columns()) {
    const bool has = std::any_of(trace.samples.begin(), trace.samples.end(),
                                 [&](const Sample& s) { return column.get(s).has_value(); });
    if (has || column.is_required) used.push_back(&column);
  }
  for (size_t c = 0; c < used.size(); ++c) fmt::format_to(out, "{}{}", c ? "," : "", used[c]->name);
  text += '\n';
  for (const Sample& s : trace.samples) {
    for (size_t c = 0; c < used.size(); ++c) {
      if (c > 0) text += ',';
      if (const auto value = used[c]->get(s))
        fmt::format_to(out, "{:.{}f}", *value, used[c]->decimals);
    }
    text += '\n';
  }
  return text;
}

Joules trapezoid(const std::vector<Sample>& samples, Seconds begin, Seconds end) {
  if (samples.empty() || !(end > begin)) return Joules(0);
  Joules sum;
  Seconds t = begin;
  const auto at = [&](size_t next, Seconds time) {  // next: the first sample after `time`
    if (next == 0) return samples.front().power;
    if (next == samples.size()) return samples.back().power;
    const Sample &a = samples[next - 1], &b = samples[next];
    return a.power + (b.power - a.power) * ((time - a.time) / (b.time - a.time));
  };
  size_t next = static_cast<size_t>(
      std::upper_bound(samples.begin(), samples.end(), begin,
                       [](Seconds time, const Sample& s) { return time < s.time; }) -
      samples.begin());
  Watts before = at(next, begin);
  for (; next < samples.size() && samples[next].time < end; ++next) {
    sum += (samples[next].time - t) * (samples[next].power + before) * 0.5;
    t = samples[next].time;
    before = samples[next].power;
  }
  return sum + (end - t) * (before + at(next, end)) * 0.5;
}

Joules trapezoid(const std::vector<Sample>& samples) {
  return samples.empty() ? Joules(0)
                         : trapezoid(samples, samples.front().time, samples.back().time);
}

}  // namespace gpusim::power
