// What tests of the device behind libGPUSim have in common. They run on the backends of the host,
// or, with GPUSIM_BACKEND, on that one; GPUSIM_GUEST_MEMORY says how a GPU reaches the caller's
// memory.
#pragma once
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/base/file.h"
#include "host/offload/simulator.h"
#include "translator/common/translator.h"

using namespace gpusim::offload;

namespace {

inline std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "auto";
}
inline bool sees_copies() { return setting("GPUSIM_GUEST_MEMORY") == "copied"; }
inline std::vector<std::string> backends() {
  if (setting("GPUSIM_BACKEND") != "auto") return {setting("GPUSIM_BACKEND")};
  return {"simd", "scalar"};
}

constexpr uint64_t kPage = 4096;
constexpr uint8_t kBoth = GPUSIM_READ | GPUSIM_WRITE;

[[maybe_unused]] inline std::vector<uint8_t> kernels(const std::string& name = "kernels") {
  const char* const folder = std::getenv("GPUSIM_KERNELS_FOLDER");
  return gpusim::read_file(std::string(folder ? folder : GPUSIM_KERNELS) + "/" + name + ".elf");
}

// Shared memory as a virtual machine has it.
struct Ram {
  explicit Ram(uint64_t pages) : size(pages * kPage) {
    fd = memfd_create("ram", 0);
    REQUIRE(ftruncate(fd, static_cast<off_t>(size)) == 0);
    bytes = static_cast<uint8_t*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  }
  ~Ram() {
    munmap(bytes, size);
    close(fd);
  }
  // Pages in any order.
  std::vector<FilePiece> pieces(std::initializer_list<uint64_t> pages) const {
    std::vector<FilePiece> out;
    for (const uint64_t page : pages) out.push_back({fd, page * kPage, kPage});
    return out;
  }
  template <class T>
  T* at(uint64_t page) {
    return reinterpret_cast<T*>(bytes + page * kPage);
  }
  uint64_t size;
  int fd;
  uint8_t* bytes;
};

struct Device {
  explicit Device(bool identity = false, const std::string& backend = setting("GPUSIM_BACKEND"),
                  const std::string& memory = setting("GPUSIM_GUEST_MEMORY"))
      : service({.backend = backend, .guest_memory = memory, .threads = 2, .identity = identity}),
        context(service.open()) {}

  void drain() {
    while (service.step()) {
    }
  }
  // Steps, for so long as a slow device may take, until it is so.
  template <class Condition>
  bool comes(const Condition& is_so) {
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_so() && std::chrono::steady_clock::now() < late) service.step();
    return is_so();
  }
  LoadOutcome load(const std::vector<uint8_t>& bytes, uint32_t flags = 0) {
    std::optional<LoadOutcome> result;
    service.load(context, ++ticket, bytes, "kernels.elf", flags,
                 [&](const LoadOutcome& o) { result = o; });
    while (!result) service.step();
    return *result;
  }
  // As the library does in a guest: what can be written lies in the caller's memory, here.
  uint64_t map_data(const std::vector<uint8_t>& elf, Ram& ram) {
    const gpusim::Module module = gpusim::translate_elf(elf, "program");
    for (const gpusim::Segment& s : module.segments) {
      if (!(s.flags & gpusim::kWrite)) continue;
      const uint64_t data = s.address & ~(kPage - 1);
      std::memcpy(ram.bytes + (s.address - data), s.bytes.data(), s.bytes.size());
      const uint64_t size = (s.address + s.size_bytes - data + kPage - 1) / kPage * kPage;
      service.map(context, data, std::vector<FilePiece>{{ram.fd, 0, size}}, kBoth);
      return data;
    }
    FAIL("no data");
    return 0;
  }
  uint64_t function(uint32_t program, const std::string& name) {
    return service.symbol(context, program, name).address;
  }
  gpusim_launch call(uint32_t program, const std::string& name, uint32_t cores,
                     std::vector<gpusim_argument> arguments = {}) {
    gpusim_launch l{};
    l.program = program;
    l.cores = cores;
    l.function = function(program, name);
    l.argument_count = static_cast<uint32_t>(arguments.size());
    std::copy(arguments.begin(), arguments.end(), l.arguments);
    return l;
  }
  LaunchOutcome run(const gpusim_launch& l) {
    std::optional<LaunchOutcome> result;
    service.launch(context, ++ticket, l, [&](const LaunchOutcome& o) { result = o; });
    while (!result) REQUIRE(service.step());
    return *result;
  }

  Simulator service;
  uint32_t context;
  uint64_t ticket = 0;
};

[[maybe_unused]] inline gpusim_argument value(uint64_t v) {
  return {GPUSIM_ARGUMENT_VALUE, 0, {}, v, 0};
}
[[maybe_unused]] inline gpusim_argument floating(uint64_t bits) {
  return {GPUSIM_ARGUMENT_VALUE, 1, {}, bits, 0};
}
[[maybe_unused]] inline gpusim_argument core_number() {
  return {GPUSIM_ARGUMENT_AFFINE, 0, {}, 0, 1};
}
[[maybe_unused]] inline gpusim_argument core_count() {
  return {GPUSIM_ARGUMENT_CORES, 0, {}, 0, 0};
}
[[maybe_unused]] inline gpusim_argument affine(uint64_t base, uint64_t step) {
  return {GPUSIM_ARGUMENT_AFFINE, 0, {}, base, step};
}
[[maybe_unused]] inline gpusim_argument table(uint64_t address) {
  return {GPUSIM_ARGUMENT_PER_CORE, 0, {}, address, 0};
}

[[maybe_unused]] inline int error_of(const auto& f) {
  try {
    f();
  } catch (const OffloadError& e) {
    CHECK(std::string(e.what()).size() > 10);
    return e.number();
  }
  return 0;
}

[[maybe_unused]] inline size_t open_descriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n;
}

}  // namespace
