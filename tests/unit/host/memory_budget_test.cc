#include "host/memory_budget.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "device_sim/base/error.h"
#include "tests/unit/host/toy_module.h"

namespace gpusim::host {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMiB = 1 << 20;

// A machine of files: /proc and /sys/fs/cgroup.
struct Machine {
  Machine() {
    char name[] = "/tmp/gpusim-memory-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    folder = name;
    write("proc/meminfo", "MemTotal: 9999 kB\nMemFree: 1 kB\nMemAvailable:    1048576 kB\n");
  }
  ~Machine() { fs::remove_all(folder); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder + "/" + path).parent_path());
    std::ofstream(folder + "/" + path) << text;
  }
  uint64_t available() const { return available_memory(folder + "/proc", folder + "/cgroup"); }
  std::string folder;
};

TEST_CASE("available memory: the machine's, or what control groups leave") {
  const Machine m;
  CHECK(m.available() == 1024 * kMiB);
  SUBCASE("version 2, an outer group has less") {
    m.write("proc/self/cgroup", "0::/batch/job\n");
    m.write("cgroup/memory.max", "max\n");
    m.write("cgroup/batch/memory.max", "524288000\n");  // 500 MiB
    m.write("cgroup/batch/memory.current", "104857600\n");
    m.write("cgroup/batch/memory.stat", "anon 1\ninactive_file 52428800\nactive_file 7\n");
    m.write("cgroup/batch/job/memory.max", "max\n");
    m.write("cgroup/batch/job/memory.current", "1\n");
    CHECK(m.available() == 450 * kMiB);
    m.write("cgroup/batch/job/memory.max", "1048577\n");
    CHECK(m.available() == kMiB);
    m.write("cgroup/batch/job/memory.current", "99999999\n");
    CHECK(m.available() == 0);
  }
  SUBCASE("version 1, in a container that sees another path") {
    m.write("proc/self/cgroup", "12:cpu,cpuacct:/x\n7:memory:/docker/abc\n0::/docker/abc\n");
    m.write("cgroup/memory/memory.limit_in_bytes", "209715200\n");
    m.write("cgroup/memory/memory.usage_in_bytes", "104857600\n");
    CHECK(m.available() == 100 * kMiB);
  }
  SUBCASE("nonsense is no limit") {
    m.write("proc/self/cgroup", "nonsense\n0:\n::\n0::relative\n");
    CHECK(m.available() == 1024 * kMiB);
  }
}

TEST_CASE("what is known in advance is judged") {
  const Module module = toy_module();
  const auto needs = [&](const PlanRequest& request, RunShape shape) {
    const MemoryPlan plan = plan_memory(module, request);
    shape.plan = &plan;
    uint64_t sum = 0;
    for (const MemoryNeed& n : known_needs(module, shape)) sum += n.bytes;
    return sum;
  };
  const uint64_t one = needs({.cores = 1}, {.backend = "simd"});
  CHECK(one < kMiB);
  const uint64_t many = needs({.cores = 1u << 24}, {.backend = "simd"});
  CHECK(many > uint64_t{2} << 30);
  CHECK(many < uint64_t{64} << 30);
  // A byte per page of 64 stacks that are interleaved; of one where they are not.
  const PlanRequest huge{.cores = 1, .stack_size_bytes = uint64_t{1} << 40};
  CHECK(needs(huge, {.backend = "simd"}) > uint64_t{16} << 30);
  CHECK(needs(huge, {.backend = "scalar"}) < uint64_t{1} << 30);
  CHECK(needs({.cores = 4096}, {.backend = "simd", .per_core_statistics = true}) >
        needs({.cores = 4096}, {.backend = "simd"}));
  const std::vector<MemoryNeed> list{{"this", 3 * kMiB}, {"that", 5 * kMiB}, {"dust", 17}};
  judge_needs(list, {9 * kMiB, true}, 7);
  judge_needs(list, {8 * kMiB + 17, true}, 7);
  CHECK_THROWS_WITH_AS(
      judge_needs(list, {8 * kMiB, true}, 7),
      "7 cores take 8.0 MiB of memory before they begin (this 3.0 MiB, that 5.0 MiB), more than "
      "--host-memory 8.0 MiB: use fewer cores or a smaller --stack-size, or allow more",
      Error);
}

}  // namespace
}  // namespace gpusim::host
