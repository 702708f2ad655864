// Files with random damage are read or refused, never anything else.
#include <random>

#include "device_sim/base/file.h"
#include "energy/builtin_targets.h"
#include "energy/power_log.h"
#include "energy/schedule.h"
#include "energy/trace.h"
#include "helpers.h"

namespace gpusim::energy {
namespace {

std::string damaged(std::string text, std::mt19937_64& random) {
  constexpr std::string_view kBytes = "0123456789-.,:{}[]\"eE WnN\nx";
  for (uint64_t left = 1 + random() % 4; left > 0 && !text.empty(); --left) {
    const size_t at = random() % text.size();
    const char byte = kBytes[random() % kBytes.size()];
    switch (random() % 4) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.erase(at, 1 + random() % 20);
        break;
      case 2:
        text.insert(at, 1 + random() % 3, byte);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 30));
    }
  }
  return text;
}

TEST_CASE("damaged files are read or refused") {
  const char* given = std::getenv("GPUSIM_SEED");
  const uint64_t seed = given ? std::stoull(given) : std::random_device{}();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 random(seed);
  const std::string golden = GPUSIM_SOURCE_DIR "/tests/system/energy/golden/";
  const Target& fermi = one_target("fermi");
  const std::string target = builtin_target_files()[0].text;
  const std::string trace = read_text(golden + "transpose.trace");
  const std::string log = read_text(golden + "supply.log");
  const std::string schedule = read_text(golden + "schedule.json");
  std::string stats = R"({"cores": 2, "classes": {)";
  for (int c = 0; c < kInsnClassCount; ++c)
    stats += (c == 0 ? "\"" : ", \"") + std::string(kInsnClassNames[c]) + "\": 3";
  stats += R"(}, "functions": [{"function": "f", "classes": {"other": 3}}]})";
  for (int i = 0; i < 500; ++i) {
    INFO("round " << i);
    message_of([&] { parse_target(damaged(target, random), "f"); });
    message_of([&] { summarize(parse_power_log(damaged(log, random), "f")); });
    message_of([&] {
      estimate(fermi, activity_of_trace(parse_trace(damaged(trace, random), "f"), "f"), {});
    });
    message_of([&] { estimate(fermi, parse_stats(damaged(stats, random), "f"), {}); });
    message_of([&] {
      const PowerCurve curve =
          power_curve(fermi, parse_schedule(fermi, damaged(schedule, random), "f", golden));
      CHECK(curve.energy >= Joules(0));
    });
  }
}

}  // namespace
}  // namespace gpusim::energy
