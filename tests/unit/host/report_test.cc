#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "host/error.h"
#include "host/run/stop_record.h"
#include "host/stats.h"

namespace gpusim::host {
namespace {
namespace fs = std::filesystem;

StopRecord stop(uint32_t core, const char* symbol = "main+0x4") {
  return {.core = core,
          .pc = 0x400104,
          .symbol = symbol,
          .reason = "fault: because",
          .instruction = "ldr x0, [x1]",
          .address = 0x10,
          .has_address = true,
          .exit_status = 139};
}

TEST_CASE("the first eight stops are lines, the others a summary by kind") {
  std::vector<std::string> lines;
  StopPrinter printer([&](const std::string& l) { lines.push_back(l); });
  for (uint32_t core = 0; core < 4096; ++core)
    printer.add(stop(core, core % 2 ? "main+0x4" : "f+0x8"));
  printer.finish();
  REQUIRE(lines.size() == 10);
  CHECK(lines[0] == "core 0: fault: because at pc 0x400104 (f+0x8): ldr x0, [x1], address 0x10");
  CHECK(lines[8] == "and 2044 more cores: fault: because at f+0x8");
  CHECK(lines[9] == "and 2044 more cores: fault: because at main+0x4");
}

TEST_CASE("statistics have the keys of the contract and replace a file as a whole") {
  const fs::path folder = fs::temp_directory_path() / ("gpusim-stats-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string path = folder / "s.json";
  RunSummary summary{.isa = "aarch64",
                     .backend = "scalar",
                     .device = "cpu",
                     .cores = 2,
                     .tally = {},
                     .seconds = 2,
                     .exit_status = 139,
                     .stops = {stop(1)},
                     .per_core = {}};
  summary.tally.classes[0] = 3'000'000;
  summary.tally.classes[14] = 1'000'000;
  write_stats(summary, path);
  const auto json = nlohmann::json::parse(std::ifstream(path));
  for (const char* key : {"isa", "backend", "device", "cores", "guest_instructions", "classes",
                          "micro_ops", "seconds", "mips", "exit_status", "faults"})
    CHECK(json.contains(key));
  CHECK(json["guest_instructions"] == 4'000'000);
  CHECK(json["mips"] == 2.0);
  CHECK(json["classes"]["integer_arithmetic"] == 3'000'000);
  CHECK(json["faults"][0]["core"] == 1);
  CHECK(json["faults"][0]["pc"] == "0x400104");
  CHECK_FALSE(json.contains("per_core"));
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);

  summary.per_core = {summary.tally.classes, {}};
  CHECK(stats_json(summary)["per_core"][0]["guest_instructions"] == 4'000'000);

  CHECK_THROWS_AS(check_stats_path(folder / "absent/s.json"), UserError);
  CHECK_THROWS_AS(check_stats_path(folder), UserError);
  CHECK_THROWS_AS(write_stats(summary, folder / "absent/s.json"), UserError);
  CHECK_NOTHROW(write_stats(summary, "/dev/null"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace gpusim::host
