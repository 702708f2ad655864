#include "host/sweep/point.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device_sim/base/error.h"
#include "host/sweep/results.h"
#include "host/sweep/study_page.h"

namespace gpusim::sweep {
namespace {
namespace fs = std::filesystem;

// Statistics of a run in which core i executes 10 + i % 7 additions and one store.
Json statistics(uint32_t cores) {
  const auto classes = [](uint64_t add, uint64_t store) {
    Json c = Json::object();
    for (const char* name : kInsnClassNames) c[name] = 0;
    c["integer_arithmetic"] = add;
    c["off_chip_memory"] = store;
    return c;
  };
  uint64_t all = 0;
  Json per_core = Json::array();
  for (uint32_t i = 0; i < cores; ++i) {
    all += 10 + i % 7;
    per_core.push_back(
        {{"core", i}, {"guest_instructions", 11 + i % 7}, {"classes", classes(10 + i % 7, 1)}});
  }
  Json functions = Json::array();
  for (int f = 0; f < 100; ++f)
    functions.push_back({{"function", fmt::format("f{}", f)},
                         {"guest_instructions", f == 0 ? all + cores : 0},
                         {"classes", f == 0 ? classes(all, cores) : Json::object()}});
  return {{"isa", "a64"},
          {"backend", "simd"},
          {"device", "here"},
          {"cores", cores},
          {"guest_instructions", all + cores},
          {"classes", classes(all, cores)},
          {"micro_ops", 3 * all},
          {"seconds", 0.5},
          {"mips", 12.5},
          {"exit_status", 0},
          {"faults", Json::array()},
          {"functions", functions},
          {"lines", Json::array()},
          {"per_core", per_core}};
}

struct StatsFile {
  explicit StatsFile(const Json& json) {
    std::string name = fs::temp_directory_path() / "sweep_stats.XXXXXX";
    ::close(::mkstemp(name.data()));
    path = name;
    std::ofstream(path) << json.dump();
  }
  ~StatsFile() { fs::remove(path); }
  std::string path;
};

Point point_of(const Json& stats, uint32_t cores, const std::string& label = "p") {
  const StatsFile file(stats);
  Point p;
  p.label = label;
  p.backend_asked = "simd";
  p.cores = cores;
  p.repeat = 1;
  p.status = "ok";
  p.output_sha256 = "same";
  read_statistics(file.path, p);
  return p;
}

TEST_CASE("statistics of few cores are kept as they are") {
  const Point p = point_of(statistics(9), 9);
  CHECK(p.instructions == 10 * 9 + (0 + 1 + 2 + 3 + 4 + 5 + 6 + 0 + 1) + 9);
  CHECK(p.busiest == 17);
  CHECK(p.least == 11);
  CHECK(p.active_cores == 9);
  REQUIRE(p.bins.size() == 9);
  CHECK(p.bins[6].mean == 17);
  CHECK(p.functions.size() == kMostParts);
  CHECK(p.longest_cores.active_cores() == 9);
  CHECK(p.longest_cores.list().size() == 1);
  CHECK(p.work() == 17);
}

TEST_CASE("65,536 cores take no more room than 64") {
  const Json stats = statistics(65536);
  const Point p = point_of(stats, 65536);
  REQUIRE(p.bins.size() == kMostBins);
  uint64_t sum = 0;
  for (const Bin& bin : p.bins) {
    CHECK(bin.cores == 1024);
    CHECK(bin.least == 11);
    CHECK(bin.most == 17);
    sum += energy::instructions_of(bin.classes);
  }
  CHECK(sum == p.instructions);
  CHECK(point_json(p, Json::object()).dump().size() < 20000);
}

TEST_CASE("cores that do not divide evenly are all counted") {
  const Point p = point_of(statistics(100), 100);
  uint32_t cores = 0;
  for (const Bin& bin : p.bins) cores += bin.cores;
  CHECK(cores == 100);
  CHECK(p.bins.size() == 64);
}

TEST_CASE("keys that not all runs have") {
  Json stats = statistics(4);
  CHECK_FALSE(point_of(stats, 4).lanes.diverged_share);
  stats["divergence"] = nullptr;
  stats["waiting"] = {{"lost_share", 0.25}, {"instructions", 3}};
  stats["simulated_time"] = {{"timing", "et-soc1"},
                             {"cycles", 1234},
                             {"seconds", 1e-6},
                             {"per_core", {{{"core", 0}, {"cycles", 9}}}}};
  const Point p = point_of(stats, 4);
  CHECK_FALSE(p.lanes.diverged_share);
  CHECK(*p.lanes.waiting_share == 0.25);
  REQUIRE(p.simulated_time);
  CHECK(p.work() == 1234);
  CHECK(p.simulated_time->target == "et-soc1");
  const Point again = point_of_json(point_json(p, {{"x", 1}}), "here");
  CHECK(point_json(again, {{"x", 1}}) == point_json(p, {{"x", 1}}));
  stats["divergence"] = {{"lost_share", 0.125}};
  CHECK(*point_of(stats, 4).lanes.diverged_share == 0.125);
}

TEST_CASE("what a chip did is kept, without its lists") {
  Json stats = statistics(4);
  Json list = Json::array();
  for (int i = 0; i < 1000; ++i) list.push_back({{"core", i}, {"stack", {{"compute", 7}}}});
  stats["chip"] = {{"name", "c"},
                   {"cycles", 500.5},
                   {"seconds", 5e-7},
                   {"instructions_per_cycle", 0.25},
                   {"stack", {{"compute", 300}, {"memory", 200.5}}},
                   {"energy", {{"joules", 3.0}, {"parts", {{{"part", "l1"}, {"joules", 3.0}}}}}},
                   {"samples", list},
                   {"per_core", list}};
  const Point p = point_of(stats, 4);
  REQUIRE(p.chip);
  CHECK(p.work() == 500.5);
  CHECK(p.chip->stack == ChipRun::Parts{{"compute", 300}, {"memory", 200.5}});
  CHECK(p.chip->energy == ChipRun::Parts{{"l1", 3}});
  CHECK(p.memory_is_placed);
  CHECK(p.bins.size() == 4);
  const Json json = point_json(p, {{"x", 1}});
  CHECK(json.dump().size() < 5000);
  CHECK(point_json(point_of_json(json, "here"), {{"x", 1}}) == json);
}

TEST_CASE("what is not the statistics of a run is refused, or run anew") {
  Json stats = statistics(2);
  stats.erase("classes");
  CHECK_THROWS_AS(point_of(stats, 2), Error);
  CHECK_THROWS_AS(point_of("text", 2), Error);
  Point p;
  CHECK_THROWS_AS(read_statistics("/nonexistent", p), Error);
  const StatsFile file(point_json(point_of(statistics(2), 2), {{"id", 1}}));
  CHECK(load_point(file.path, {{"id", 1}}));
  CHECK_FALSE(load_point(file.path, {{"id", 2}}));
  std::ifstream in(file.path);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t length = 0; length < whole.size(); length += 97) {
    std::ofstream(file.path) << whole.substr(0, length);
    CHECK_FALSE(load_point(file.path, {{"id", 1}}));
  }
}

std::unique_ptr<Results> results_of(std::vector<Point> points, std::vector<uint32_t> cores,
                                    const std::string& energy) {
  StoredStudy stored;
  stored.study.title = "t";
  stored.study.cases = {{"p", "p.elf", {}, {}, Scaling::kStrong, cores}};
  stored.study.backends = {"simd"};
  stored.simulator = {{"version", "1"}, {"sha256", "abc"}};
  stored.machine = {{"processor", "x"}};
  stored.begun = "2026-01-01T00:00:00Z";
  stored.points = std::move(points);
  return put_together(std::move(stored), energy);
}

TEST_CASE("results: every row of the CSV has every column") {
  Point failed;
  failed.label = "p";
  failed.backend_asked = "simd";
  failed.cores = 3;
  failed.message = "a \"fault\", badly\nplaced";
  const auto results = results_of({point_of(statistics(1), 1), point_of(statistics(2), 2), failed},
                                  {1, 2, 3}, "fermi,template");
  std::string csv = results_csv(*results);
  size_t columns = 0, rows = 0;
  bool in_quotes = false;
  size_t fields = 1;
  for (const char c : csv) {
    if (c == '"') in_quotes = !in_quotes;
    if (c == ',' && !in_quotes) ++fields;
    if (c != '\n') continue;
    REQUIRE_FALSE(in_quotes);
    if (rows++ == 0) columns = fields;
    CHECK(fields == columns);
    fields = 1;
  }
  CHECK(rows == 4);
  CHECK(results->failures.size() == 1);
  CHECK(results_json(*results)["curves"][0]["rows"].size() == 2);
}

TEST_CASE("repetitions: the median, and its neighbours") {
  std::vector<Point> points;
  for (uint32_t r = 1; r <= 3; ++r) {
    Point p = point_of(statistics(2), 2);
    p.repeat = r;
    p.mips = 10 * r * r;
    points.push_back(p);
  }
  points[2].output_sha256 = "same";
  const auto results = results_of(points, {2}, "");
  REQUIRE(results->curves.size() == 1);
  const Row& row = results->curves[0].rows[0];
  CHECK(row.repetitions == 3);
  CHECK(row.mips == 40);
  CHECK(row.mips_low == 10);
  CHECK(row.mips_high == 90);
}

TEST_CASE("speed-ups are counted in cycles only where every point has them") {
  Json with = statistics(2);
  with["simulated_time"] = {{"target", "x"}, {"cycles", 99}, {"seconds", 1}};
  auto results = results_of({point_of(statistics(1), 1), point_of(with, 2)}, {1, 2}, "");
  CHECK_FALSE(results->curves[0].has_cycles);
  CHECK(results->curves[0].speed_ups[1].speed_up == doctest::Approx(11.0 / 12));
}

TEST_CASE("a page of 17 sizes up to 65,536 cores stays small") {
  std::vector<Point> points;
  std::vector<uint32_t> cores;
  for (uint32_t n = 1; n <= 65536; n *= 2) {
    cores.push_back(n);
    points.push_back(point_of(statistics(n), n));
  }
  const auto results = results_of(points, cores, "fermi,et-soc1");
  const std::string html = study_page(*results).html();
  CHECK(html.size() < 160000);
  const std::string both = compare_page(*results, "a", *results, "<i>").html();
  CHECK(both.find("<i>") == std::string::npos);
  CHECK(compare_csv(*results, *results).find("p,65536,12.5,12.5,") != std::string::npos);
}

TEST_CASE("a study without a single good point still has a page") {
  Point failed;
  failed.label = "p";
  failed.backend_asked = "simd";
  failed.cores = 1;
  failed.message = "<i>no</i>";
  const std::string html = study_page(*results_of({failed}, {1}, "fermi")).html();
  CHECK(html.find("No point ran to its end") != std::string::npos);
  CHECK(html.find("<i>no</i>") == std::string::npos);
}

}  // namespace
}  // namespace gpusim::sweep
