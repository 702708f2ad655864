#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/doctor/doctor.h"

namespace gpusim::host::doctor {

const char* name_of(State state) {
  switch (state) {
    case State::kGood:
      return "good";
    case State::kLimited:
      return "limited";
    case State::kAbsent:
      return "absent";
    case State::kBroken:
      return "broken";
  }
  return "";
}

bool can_run(const std::vector<Check>& checks) {
  return std::none_of(checks.begin(), checks.end(),
                      [](const Check& check) { return check.state == State::kBroken; });
}

std::string text_of(const std::vector<Check>& checks) {
  const auto mark = [](State state) {
    switch (state) {
      case State::kGood:
        return "ok";
      case State::kLimited:
        return "!";
      case State::kAbsent:
        return "-";
      case State::kBroken:
        return "!!";
    }
    return "";
  };
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.name.size());
  std::string text = "gpusim " GPUSIM_VERSION "\n", area;
  for (const Check& check : checks) {
    if (check.area != area) text += fmt::format("\n{}\n", check.area);
    area = check.area;
    text += fmt::format("  {:<2} {:<{}}  {}\n", mark(check.state), check.name, width, check.value);
    if (!check.advice.empty()) text += fmt::format("     {:<{}}  -> {}\n", "", width, check.advice);
  }
  const auto count = [&](State state) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const Check& check) { return check.state == state; });
  };
  if (can_run(checks))
    text += fmt::format("\ngpusim can run here; {} limited (!), {} absent (-).\n",
                        count(State::kLimited), count(State::kAbsent));
  else
    text += "\ngpusim cannot run here: see what is marked !!.\n";
  return text;
}

nlohmann::ordered_json json_of(const std::vector<Check>& checks) {
  nlohmann::ordered_json json = {{"version", GPUSIM_VERSION}, {"can_run", can_run(checks)}};
  json["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : checks)
    json["checks"].push_back({{"area", check.area},
                              {"name", check.name},
                              {"state", name_of(check.state)},
                              {"value", check.value},
                              {"advice", check.advice}});
  return json;
}

}  // namespace gpusim::host::doctor
