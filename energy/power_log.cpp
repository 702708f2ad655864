#include "energy/power_log.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <sstream>

#include "device_sim/base/digits.h"
#include "device_sim/base/error.h"

namespace gpusim::energy {
namespace {

double decimal(std::string_view whole, std::string_view fraction) {
  return std::stod(std::string(whole) + "." + (fraction.empty() ? "0" : std::string(fraction)));
}

// "15.7.2013 11:36:16": seconds since the epoch, without a time zone.
std::optional<double> parse_time(const std::string& text) {
  int day = 0, month = 0, year = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (std::sscanf(text.c_str(), "%2d.%2d.%4d %2d:%2d:%2d%n", &day, &month, &year, &hour, &minute,
                  &second, &used) != 6 ||
      used != static_cast<int>(text.size()))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (day < 0 || month < 0 || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 60)
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400.0 + hour * 3600.0 + minute * 60.0 + second;
}

struct Values {
  double supplementary = 0, efficiency = 0, in = 0, out = 0;
};

// The pieces between commas belong to four numbers of one or two pieces each. The first number ends
// with W; of the ways to cut the rest, the right one is that in which efficiency = out / in.
std::optional<Values> parse_values(const std::vector<std::string_view>& pieces) {
  Values v;
  size_t at = 0;
  std::string_view first = pieces.empty() ? std::string_view{} : pieces[0];
  std::string_view fraction;
  if (!first.ends_with('W') && pieces.size() > 1) fraction = pieces[++at];
  std::string_view& last = at == 0 ? first : fraction;
  if (!last.ends_with('W')) return std::nullopt;
  last.remove_suffix(1);
  if (!is_number(first) || (at == 1 && !is_number(fraction))) return std::nullopt;
  v.supplementary = decimal(first, fraction);

  const std::vector<std::string_view> rest(pieces.begin() + static_cast<ptrdiff_t>(at) + 1,
                                           pieces.end());
  for (const std::string_view piece : rest)
    if (!is_number(piece)) return std::nullopt;
  std::optional<Values> best;
  double best_error = 0.5;  // per cent
  for (unsigned cut = 0; cut < 8; ++cut) {
    std::array<double, 3> numbers{};
    size_t p = 0;
    bool fits = true;
    for (unsigned n = 0; n < 3 && fits; ++n) {
      const size_t length = (cut >> n & 1) ? 2 : 1;
      fits = p + length <= rest.size();
      if (fits) numbers[n] = decimal(rest[p], length == 2 ? rest[p + 1] : std::string_view{});
      p += length;
    }
    if (!fits || p != rest.size() || numbers[1] <= 0) continue;
    const double error = std::abs(numbers[0] - 100 * numbers[2] / numbers[1]);
    if (error > best_error) continue;
    best_error = error;
    best = Values{v.supplementary, numbers[0], numbers[1], numbers[2]};
  }
  return best;
}

}  // namespace

std::vector<PowerSample> parse_power_log(const std::string& text, const std::string& origin) {
  std::vector<PowerSample> log;
  std::istringstream in(text);
  double start = 0;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    const auto fail = [&](const std::string& what) {
      throw Error(fmt::format("{}, line {}: {}", origin, number, what));
    };
    const size_t comma = line.find(',');
    const auto time = parse_time(line.substr(0, comma));
    if (!time) fail("it does not begin with a date and time (15.7.2013 11:36:16)");
    std::vector<std::string_view> pieces;
    for (size_t at = comma; at != std::string::npos;) {
      const size_t next = line.find(',', at + 1);
      pieces.push_back(
          std::string_view(line).substr(at + 1, next == std::string::npos ? next : next - at - 1));
      at = next;
    }
    const auto values = parse_values(pieces);
    if (!values)
      fail(
          "four numbers are expected: watts of the supplementary input (ending in W), efficiency "
          "in per cent, watts in, watts out, with efficiency = out / in");
    if (log.empty()) start = *time;
    const Seconds t(*time - start);
    if (!log.empty() && t < log.back().time) fail("time runs backwards");
    log.push_back({t, Watts(values->supplementary), values->efficiency, Watts(values->in),
                   Watts(values->out)});
  }
  if (log.empty()) throw Error(fmt::format("{}: no sample in the log", origin));
  return log;
}

PowerSummary summarize(const std::vector<PowerSample>& log) {
  PowerSummary s;
  s.duration = log.back().time - log.front().time;
  for (size_t i = 1; i < log.size(); ++i) {
    const Seconds dt = log[i].time - log[i - 1].time;
    s.in += (log[i].in + log[i - 1].in) * 0.5 * dt;
    s.out += (log[i].out + log[i - 1].out) * 0.5 * dt;
    s.supplementary += (log[i].supplementary + log[i - 1].supplementary) * 0.5 * dt;
  }
  if (s.duration > Seconds(0)) {
    s.mean_in = s.in / s.duration;
    s.mean_out = s.out / s.duration;
    s.mean_supplementary = s.supplementary / s.duration;
  } else {
    s.mean_in = log[0].in;
    s.mean_out = log[0].out;
    s.mean_supplementary = log[0].supplementary;
  }
  return s;
}

}  // namespace gpusim::energy
