// The PTX engine behind the runtime.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "device_sim/base/error.h"
#include "host/cuda_api/chips.h"
#include "host/cuda_api/kernel_engine.h"
#include "host/ptx/engine.h"

namespace gpusim::cuda_api {
namespace {

Status status_of(const ptx::Fault& fault) {
  switch (fault.reason) {
    case ptx::Fault::Reason::kAddress:
      return kIllegalAddress;
    case ptx::Fault::Reason::kMisaligned:
      return kMisalignedAddress;
    case ptx::Fault::Reason::kAssert:
      return kAssert;
    default:
      return kLaunchFailure;
  }
}

class PtxEngine final : public KernelEngine {
 public:
  explicit PtxEngine(const EngineSettings& settings)
      : engine_({.backend = settings.backend.empty() ? "simd" : settings.backend,
                 .threads = settings.threads}) {}

  std::string backend() const override { return engine_.backend(); }

  Module load(std::vector<NamedText> units) override {
    if (units.size() == 1) return &engine_.load(units.front().text, units.front().name);
    std::vector<ptx::NamedText> texts;
    for (NamedText& unit : units) texts.push_back({std::move(unit.name), std::move(unit.text)});
    return &engine_.link(std::move(texts));
  }
  void unload(Module module) override { engine_.unload(*loaded(module)); }

  std::unique_ptr<KernelFacts> find_kernel(Module module, std::string_view name) override {
    const ptx::Kernel* const kernel = engine_.find_kernel(*loaded(module), name);
    if (kernel == nullptr) return nullptr;
    const ptx::KernelInfo& info = ptx::info(*kernel);
    auto facts = std::make_unique<KernelFacts>();
    facts->name = info.name;
    for (const ptx::ParamInfo& p : info.params)
      facts->params.push_back({p.offset_bytes, p.size_bytes});
    facts->param_bytes = info.param_bytes;
    facts->static_shared_bytes = info.static_shared_bytes;
    facts->local_bytes = info.local_bytes;
    facts->const_bytes = info.const_bytes;
    facts->registers = info.registers;
    facts->max_threads = info.max_threads;
    facts->handle = kernel;
    return facts;
  }

  std::optional<Variable> find_variable(Module module, std::string_view name) override {
    const ptx::DeviceVariable found = engine_.find_variable(*loaded(module), name);
    if (found.address == nullptr) return std::nullopt;
    return Variable{found.address, found.size_bytes};
  }

  LaunchOutcome launch(const Launch& l) override {
    apply_changes();
    ptx::LaunchResult result =
        engine_.launch({.kernel = static_cast<const ptx::Kernel*>(l.kernel->handle),
                        .grid = {l.grid.x, l.grid.y, l.grid.z},
                        .block = {l.block.x, l.block.y, l.block.z},
                        .dynamic_shared_bytes = l.dynamic_shared_bytes,
                        .params = l.params,
                        .cooperative = l.is_cooperative,
                        .stack_bytes = l.stack_bytes,
                        .heap_bytes = l.heap_bytes});
    LaunchOutcome outcome{.threads = result.threads, .instructions = result.thread_instructions};
    for (ptx::OpcodeCount& o : result.opcodes)
      outcome.opcodes.emplace_back(std::move(o.opcode), o.count);
    if (result.fault) outcome.fault = {status_of(*result.fault), result.fault->text};
    return outcome;
  }

  // The engine's own functions wait for a running launch, and a program that allocates must not.
  void add_memory(const void* address, size_t size_bytes, std::string_view tag) override {
    const std::lock_guard lock(mutex_);
    changes_.push_back({address, size_bytes, std::string(tag)});
  }
  void remove_memory(const void* address) override {
    const std::lock_guard lock(mutex_);
    changes_.push_back({address, 0, {}});
  }

 private:
  struct Change {
    const void* address;
    size_t size_bytes;  // 0: goes
    std::string tag;
  };
  static ptx::LoadedModule* loaded(Module module) {
    return static_cast<ptx::LoadedModule*>(module);
  }
  void apply_changes() {
    std::vector<Change> changes;
    {
      const std::lock_guard lock(mutex_);
      changes.swap(changes_);
    }
    for (Change& c : changes) {
      if (c.size_bytes == 0)
        engine_.remove_memory(c.address);
      else
        engine_.add_memory(c.address, c.size_bytes, std::move(c.tag));
    }
  }
  ptx::Engine engine_;
  std::mutex mutex_;
  std::vector<Change> changes_;
};

}  // namespace

std::unique_ptr<KernelEngine> make_engine(const EngineSettings& settings) {
  return std::make_unique<PtxEngine>(settings);
}

}  // namespace gpusim::cuda_api
