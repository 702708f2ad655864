// SPDX-License-Identifier: MIT
// What only the native library has: the simulator's own names, several simulators in one process,
// memory that comes back.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <dirent.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "device_sim/uir/insn_class.h"
#include "libgpusim/offload/gpusim.h"

namespace {

int open_files() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

int threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  return -1;
}

int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

struct Device {
  explicit Device(const char* options) {
    REQUIRE(gpusim_open(options, &device) == GPUSIM_OK);
    REQUIRE(gpusim_program_from_file(device, KERNELS_FILE, &program) == GPUSIM_OK);
    REQUIRE(gpusim_queue_create(device, &queue) == GPUSIM_OK);
    REQUIRE(gpusim_kernel_from_name(program, "count_up", &count) == GPUSIM_OK);
    REQUIRE(gpusim_kernel_from_name(program, "read_globals", &read) == GPUSIM_OK);
    REQUIRE(gpusim_buffer_create(device, 0, 8, nullptr, &out) == GPUSIM_OK);
    gpusim_kernel_set_core_id(read, 0);
    gpusim_kernel_set_buffer(read, 1, out, 0);
  }
  ~Device() {
    gpusim_buffer_release(out);
    gpusim_kernel_release(read);
    gpusim_kernel_release(count);
    gpusim_queue_release(queue);
    gpusim_program_release(program);
    gpusim_close(device);
  }
  uint64_t add(uint32_t cores) {
    REQUIRE(gpusim_enqueue_kernel(queue, count, cores, 0, nullptr, nullptr) == GPUSIM_OK);
    REQUIRE(gpusim_enqueue_kernel(queue, read, 1, 0, nullptr, nullptr) == GPUSIM_OK);
    REQUIRE(gpusim_queue_finish(queue) == GPUSIM_OK);
    return *static_cast<uint64_t*>(gpusim_buffer_pointer(out)) - 10;
  }
  gpusim_device* device = nullptr;
  gpusim_program* program = nullptr;
  gpusim_queue* queue = nullptr;
  gpusim_kernel *count = nullptr, *read = nullptr;
  gpusim_buffer* out = nullptr;
};

}  // namespace

TEST_CASE("classes have the simulator's names") {
  REQUIRE(GPUSIM_CLASS_COUNT == gpusim::kInsnClassCount);
  for (unsigned i = 0; i < GPUSIM_CLASS_COUNT; ++i)
    CHECK(std::string(gpusim_class_name(i)) == gpusim::kInsnClassNames[i]);
}

TEST_CASE("simulators of several kinds in one process") {
  Device a("backend=scalar"), b("backend=simd,threads=1"), c("backend=simd,threads=1"), d(nullptr);
  uint64_t total = 0;
  for (uint32_t n = 1; n < 100; n += 13) {
    total += n;
    for (Device* device : {&a, &b, &c, &d}) CHECK(device->add(n) == total);
  }
}

TEST_CASE("devices of several threads at once") {
  std::vector<std::thread> all;
  std::vector<uint64_t> sums(6);
  for (size_t i = 0; i < sums.size(); ++i)
    all.emplace_back([&sums, i] {
      for (int round = 0; round < 5; ++round) {
        Device device(i % 2 ? "backend=scalar" : "backend=simd,threads=1");
        for (int k = 0; k < 20; ++k) sums[i] = device.add(static_cast<uint32_t>(i) + 1);
      }
    });
  for (std::thread& thread : all) thread.join();
  for (size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == 20 * (i + 1));
}

TEST_CASE("nothing is left after closing") {
  { const Device warm_up(nullptr); }
  const int files = open_files(), maps = mappings();
  for (int i = 0; i < 50; ++i) {
    Device device(nullptr);
    CHECK(device.add(3) == 3);
  }
  CHECK(open_files() == files);
  // The allocator may keep a few of its own.
  CHECK(mappings() <= maps + 8);
  CHECK(threads() <= 8);
}
