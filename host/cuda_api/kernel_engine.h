// What executes kernels, as the runtime sees it: ptx_engine.cpp puts the PTX engine behind it, a
// test something smaller.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/cuda_api/cuda_types.h"

namespace gpusim::cuda_api {

struct Chip;

struct KernelParam {
  uint32_t offset_bytes = 0, size_bytes = 0;
};

struct KernelFacts {
  std::string name;  // mangled, as in the text
  std::vector<KernelParam> params;
  uint32_t param_bytes = 0, static_shared_bytes = 0, local_bytes = 0, const_bytes = 0;
  uint32_t registers = 0, max_threads = 1024;
  const void* handle = nullptr;  // the engine's own
};

struct Variable {
  void* address = nullptr;
  size_t size_bytes = 0;
};

struct Launch {
  const KernelFacts* kernel = nullptr;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> params;
  bool is_cooperative = false;
  size_t stack_bytes = 1024, heap_bytes = 8 << 20;  // limits of the device
};

struct LaunchOutcome {
  uint64_t threads = 0, instructions = 0;
  std::vector<std::pair<std::string, uint64_t>> opcodes;  // spelling, executions
  // What stopped the kernel: the runtime's result for it, and lines to print.
  struct Fault {
    Status status = kLaunchFailure;
    std::string text;
  };
  std::optional<Fault> fault;
};

struct NamedText {
  std::string name, text;
};

struct EngineSettings {
  std::string backend;   // empty: the engine's choice
  unsigned threads = 0;  // of the host; 0: the engine's choice
  const Chip* chip = nullptr;
};

// One call at a time, but for add_memory and remove_memory, which may come during a launch and
// count for the next one. Device memory is this process's memory.
class KernelEngine {
 public:
  using Module = void*;
  virtual ~KernelEngine() = default;
  virtual std::string backend() const = 0;
  // One unit, or several that are linked. Throws gpusim::Error: what, where, what to do.
  virtual Module load(std::vector<NamedText> units) = 0;
  virtual void unload(Module module) = 0;
  // Null: there is none of that name.
  virtual std::unique_ptr<KernelFacts> find_kernel(Module module, std::string_view name) = 0;
  virtual std::optional<Variable> find_variable(Module module, std::string_view name) = 0;
  virtual LaunchOutcome launch(const Launch& launch) = 0;
  virtual void add_memory(const void* address, size_t size_bytes, std::string_view tag) = 0;
  virtual void remove_memory(const void* address) = 0;
};

// Throws gpusim::Error.
std::unique_ptr<KernelEngine> make_engine(const EngineSettings& settings);

}  // namespace gpusim::cuda_api
