// Kernels as text, on all backends that run them.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "host/ptx/engine.h"

namespace gpusim::ptx::test {

inline const std::string kHead = ".version 9.0\n.target sm_80\n.address_size 64\n";
inline constexpr const char* kBackends[] = {"scalar", "simd"};

template <class... A>
std::vector<std::byte> pack(const A&... arguments) {
  std::vector<std::byte> out;
  const auto add = [&](const auto& a) {
    const size_t align = alignof(std::remove_cvref_t<decltype(a)>);
    out.resize((out.size() + align - 1) / align * align);
    const auto bytes = std::as_bytes(std::span(&a, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  (add(arguments), ...);
  return out;
}

struct Run {
  std::string backend = "scalar";
  uint32_t threads = 1;
  Dim3 grid, block;
  uint32_t shared = 0;
};

// Runs kernel `name` of a text whose arguments are `arguments`; `memory` is what it may access.
template <class T>
LaunchResult run_text(const std::string& text, const std::string& name, const Run& run,
                      const std::vector<std::byte>& arguments, std::vector<T>& memory) {
  Engine engine({.backend = run.backend, .threads = run.threads});
  LoadedModule& module = engine.load(text, "test.ptx");
  const Kernel* kernel = engine.find_kernel(module, name);
  REQUIRE(kernel != nullptr);
  engine.add_memory(memory.data(), memory.size() * sizeof(T), "the test's memory");
  return engine.launch({.kernel = kernel,
                        .grid = run.grid,
                        .block = run.block,
                        .dynamic_shared_bytes = run.shared,
                        .params = arguments});
}

inline std::map<std::string, uint64_t> counts_of(const LaunchResult& r) {
  std::map<std::string, uint64_t> out;
  for (const OpcodeCount& o : r.opcodes) out[std::string(o.opcode)] = o.count;
  return out;
}

}  // namespace gpusim::ptx::test
