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
#include <vector>

#include "host/cuda_api/cuda_types.h"
#include "host/ptx/engine.h"

namespace gpusim::cuda_api {

struct Chip;

struct KernelFacts : ptx::KernelInfo {
  const void* handle = nullptr;  // the engine's own
};

using Variable = ptx::DeviceVariable;

struct Launch {
  const KernelFacts* kernel = nullptr;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> params;
  bool is_cooperative = false;
  std::optional<Dim3> cluster{};
  size_t stack_bytes = 1024, heap_bytes = 8 << 20;  // limits of the device
};

using LaunchOutcome = ptx::LaunchResult;
using NamedText = ptx::NamedText;

struct EngineSettings {
  std::string backend;            // empty: the engine's choice
  unsigned threads = 0;           // of the host; 0: the engine's choice
  std::vector<uint32_t> devices;  // of the backend; none: the first that can be used
  const Chip* chip = nullptr;
  ptx::Checks checks;
  bool has_profile = false;
  std::string caches;  // a file that describes them; empty: none are simulated
};

// One call at a time, but for add_memory and remove_memory, which may come during a launch and
// count for the next one. Device memory is this process's memory.
class KernelEngine {
 public:
  using Module = void*;
  virtual ~KernelEngine() = default;
  virtual std::string backend() const = 0;
  // Whether kernels run on a device, whose driver goes before the program's last destructors.
  virtual bool is_on_device() const { return false; }
  // Before that. Launches are refused afterwards.
  virtual void leave_device() {}
  // One unit, or several that are linked. Throws gpusim::Error: what, where, what to do.
  virtual Module load(std::vector<NamedText> units) = 0;
  virtual void unload(Module module) = 0;
  virtual std::vector<std::string> kernel_names(Module module) = 0;
  // Null: there is none of that name.
  virtual std::unique_ptr<KernelFacts> find_kernel(Module module, std::string_view name) = 0;
  virtual std::optional<Variable> find_variable(Module module, std::string_view name) = 0;
  virtual LaunchOutcome launch(const Launch& launch) = 0;
  // `name` and `origin` are for reports: "device memory", "allocated by cudaMalloc number 3".
  // `is_blank`: a kernel that reads there before somebody wrote makes a mistake.
  virtual void add_memory(const void* address, size_t size_bytes, std::string_view name,
                          std::string_view origin, bool is_blank) = 0;
  // `by`: "freed by cudaFree number 2".
  virtual void remove_memory(const void* address, std::string_view by) = 0;
  // The host wrote there, or copied there from elsewhere. Not during a launch.
  virtual void mark_written(const void* address, size_t size_bytes) = 0;
  virtual void copy_written(const void* to, const void* from, size_t size_bytes) = 0;
};

// Throws gpusim::Error.
std::unique_ptr<KernelEngine> make_engine(const EngineSettings& settings);

}  // namespace gpusim::cuda_api
