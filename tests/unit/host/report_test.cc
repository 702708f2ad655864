#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "host/run/stop_report.h"
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
          .exit_status = 139,
          .pc_is_return = false,
          .report = 0};
}

CallStack called_from(std::vector<uint64_t> callers) {
  CallStack stack{.places = {{.pc = 0x400104}}, .bad_return = {}};
  for (const uint64_t pc : callers) stack.places.push_back({.pc = pc, .is_return = true});
  return stack;
}

std::vector<CallFrame> frames() {
  return {{.pc = 0x400104, .function = "fill", .source = "grid.c:41"},
          {.pc = 0x400204, .function = "step", .source = "grid.c:88"},
          {.pc = 0x400204, .function = "step", .source = "grid.c:88"},
          {.pc = 0x400304, .function = "main", .source = ""}};
}

struct Said {
  std::vector<std::string> lines;
  StopReports reports{[this](const std::string& l) { lines.push_back(l); }};
};

TEST_CASE("cores that stop alike are one report") {
  Said said;
  for (uint32_t core = 0; core < 57; ++core) {
    StopRecord record = stop(core == 56 ? 60 : core);
    record.address = 0x10 + 8 * core;
    CHECK(said.reports.add(record, called_from({0x400204}), frames) == 0);
  }
  CHECK(said.reports.add(stop(70), called_from({0x400304}), frames) == 1);
  said.reports.say_new();
  CHECK(said.lines ==
        std::vector<std::string>{
            "cores 0-55, 60 (57 cores): fault: because, addresses 0x10 to 0x1d0 (a null pointer?)",
            "  in fill() at grid.c:41: ldr x0, [x1] at pc 0x400104 (main+0x4)",
            "  called from step() at grid.c:88 (2 times)", "  called from main()",
            "core 70: fault: because, address 0x10 (a null pointer?)",
            "  in fill() at grid.c:41: ldr x0, [x1] at pc 0x400104 (main+0x4)",
            "  called from step() at grid.c:88 (2 times)", "  called from main()"});
  said.lines.clear();
  said.reports.say_new();
  CHECK(said.lines.empty());
  for (const uint32_t core : {62u, 61u, 99u})
    said.reports.add(stop(core), called_from({0x400204}), frames);
  said.reports.finish();
  CHECK(said.lines ==
        std::vector<std::string>{"cores 61-62, 99 (3 cores): fault: because, addresses 0x10 to "
                                 "0x1d0 (a null pointer?), in fill() at grid.c:41, as above"});
}

TEST_CASE("eight reports are said in full, eight in a line, the others in a number") {
  Said said;
  for (uint32_t core = 0; core < 40; ++core) {
    StopRecord record = stop(core);
    record.pc += 8 * (core / 2);
    said.reports.add(record, called_from({}), frames);
  }
  said.reports.finish();
  REQUIRE(said.lines.size() == 8 * 4 + 8 + 1);
  CHECK(said.lines[32] ==
        "cores 16-17 (2 cores): fault: because, address 0x10 (a null pointer?), in fill() at "
        "grid.c:41");
  CHECK(said.lines.back() == "and 8 more cores in 4 other ways or places (all of them: --stats)");
}

TEST_CASE("places without end share a report without a place") {
  Said said;
  constexpr uint32_t kCores = 5000;
  for (uint32_t core = 0; core < kCores; ++core) {
    StopRecord record = stop(core);
    record.pc += 8 * core;
    said.reports.add(record, called_from({}), frames);
  }
  const std::vector<StopReport>& all = said.reports.all();
  CHECK(all.size() == 1025);
  CHECK_FALSE(all.back().has_place);
  CHECK(all.back().stack.empty());
  uint64_t cores = 0;
  for (const StopReport& r : all) cores += r.cores.size();
  CHECK(cores == kCores);
}

TEST_CASE("a call into the library is one line; names tell the library where lines do not") {
  std::vector<CallFrame> stack = {{.pc = 1, .function = "raise", .source = {}},
                                  {.pc = 2, .function = "abort", .source = {}},
                                  {.pc = 3, .function = "check", .source = {}}};
  find_library_frames(stack);
  CHECK(stack_text(stack, ", here", 9) ==
        std::vector<std::string>{"in abort(), here", "called from check()"});
  stack[2].source = "t.c:3";
  stack.insert(stack.begin() + 2, {.pc = 4, .function = "unheard_of", .source = {}});
  find_library_frames(stack);
  CHECK(stack_text(stack, {}, 9) ==
        std::vector<std::string>{"in unheard_of()", "called from check() at t.c:3"});
  CHECK_FALSE(has_library_name("gpusim_main"));
  CHECK(has_library_name("gpusim_barrier_wait"));
  // In a handler nothing is hidden.
  stack[0].function = "on_signal", stack[0].source = "t.c:9";
  stack[1].was_interrupted = true;
  find_library_frames(stack);
  CHECK(stack_text(stack, {}, 9) ==
        std::vector<std::string>{"in on_signal() at t.c:9", "interrupted by a signal: abort()",
                                 "called from unheard_of()", "called from check() at t.c:3"});
  CHECK(stack_text(stack, {}, 2).back() == "and 2 more callers");
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
  write_stats(summary, OutputFile("--stats", path));
  const auto json = nlohmann::json::parse(std::ifstream(path));
  for (const char* key : {"isa", "backend", "device", "cores", "guest_instructions", "classes",
                          "micro_ops", "seconds", "mips", "exit_status", "faults", "fault_reports"})
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

  CHECK_NOTHROW(write_stats(summary, OutputFile("--stats", "/dev/null")));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace gpusim::host
