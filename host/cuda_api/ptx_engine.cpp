// The PTX engine behind the runtime.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "device_sim/base/error.h"
#include "device_sim/core/backend_traits.h"
#include "host/cuda_api/chips.h"
#include "host/cuda_api/kernel_engine.h"
#include "host/ptx/engine.h"
#include "host/ptx/texture.h"

namespace gpusim::cuda_api {
namespace {

class PtxEngine final : public KernelEngine {
 public:
  explicit PtxEngine(const EngineSettings& settings)
      : engine_({.backend = settings.backend.empty() ? "simd" : settings.backend,
                 .threads = settings.threads,
                 .devices = settings.devices,
                 .checks = settings.checks,
                 .has_profile = settings.has_profile,
                 .caches = settings.caches.empty()
                               ? std::nullopt
                               : std::optional(host::load_hierarchy(settings.caches)),
                 .compute_capability = settings.chip->compute_capability}),
        is_on_device_(traits_of(engine_.backend()).is_on_device) {}

  std::string backend() const override { return engine_.backend(); }
  bool is_on_device() const override { return is_on_device_; }
  void leave_device() override { engine_.leave_device(); }

  Module load(std::vector<NamedText> units) override {
    if (units.size() == 1) return &engine_.load(units.front().text, units.front().name);
    return &engine_.link(std::move(units));
  }
  void unload(Module module) override { engine_.unload(*loaded(module)); }

  std::vector<std::string> kernel_names(Module module) override {
    return engine_.kernel_names(*loaded(module));
  }
  std::unique_ptr<KernelFacts> find_kernel(Module module, std::string_view name) override {
    const ptx::Kernel* const kernel = engine_.find_kernel(*loaded(module), name);
    if (kernel == nullptr) return nullptr;
    auto facts = std::make_unique<KernelFacts>();
    static_cast<ptx::KernelInfo&>(*facts) = ptx::info(*kernel);
    facts->handle = kernel;
    return facts;
  }

  std::optional<Variable> find_variable(Module module, std::string_view name) override {
    const ptx::DeviceVariable found = engine_.find_variable(*loaded(module), name);
    if (found.address == nullptr) return std::nullopt;
    return found;
  }

  LaunchOutcome launch(const Launch& l) override {
    apply_changes();
    return engine_.launch({.kernel = static_cast<const ptx::Kernel*>(l.kernel->handle),
                           .grid = {l.grid.x, l.grid.y, l.grid.z},
                           .block = {l.block.x, l.block.y, l.block.z},
                           .dynamic_shared_bytes = l.dynamic_shared_bytes,
                           .params = l.params,
                           .cooperative = l.is_cooperative,
                           .cluster = cluster_of(l),
                           .stack_bytes = l.stack_bytes,
                           .heap_bytes = l.heap_bytes});
  }

  // The engine's own functions wait for a running launch, and a program that allocates must not.
  // One that frees does where a device has pages in use: they must not go first.
  void add_memory(const void* address, size_t size_bytes, std::string_view name,
                  std::string_view origin, bool is_blank) override {
    const std::lock_guard lock(mutex_);
    changes_.push_back({address, size_bytes, std::string(name), std::string(origin), is_blank});
  }
  void remove_memory(const void* address, std::string_view by) override {
    // At once, for the address may be used again before the next launch.
    ptx::TextureObjects::instance().memory_freed(address, std::string(by));
    {
      const std::lock_guard lock(mutex_);
      changes_.push_back({address, 0, {}, std::string(by), false});
    }
    if (is_on_device_) apply_changes();
  }
  void mark_written(const void* address, size_t size_bytes) override {
    apply_changes();
    engine_.mark_written(address, size_bytes);
  }
  void copy_written(const void* to, const void* from, size_t size_bytes) override {
    apply_changes();
    engine_.copy_written(to, from, size_bytes);
  }

 private:
  static std::optional<ptx::Dim3> cluster_of(const Launch& l) {
    if (!l.cluster) return std::nullopt;
    return ptx::Dim3{l.cluster->x, l.cluster->y, l.cluster->z};
  }
  struct Change {
    const void* address;
    size_t size_bytes;         // 0: goes
    std::string name, origin;  // origin: or what freed it
    bool is_blank;
  };
  static ptx::LoadedModule* loaded(Module module) {
    return static_cast<ptx::LoadedModule*>(module);
  }
  // In the order in which they were made.
  void apply_changes() {
    const std::lock_guard order(order_);
    std::vector<Change> changes;
    {
      const std::lock_guard lock(mutex_);
      changes.swap(changes_);
    }
    for (Change& c : changes) {
      if (c.size_bytes == 0)
        engine_.remove_memory(c.address, c.origin);
      else
        engine_.add_memory(c.address, c.size_bytes, std::move(c.name), std::move(c.origin),
                           c.is_blank);
    }
  }
  ptx::Engine engine_;
  const bool is_on_device_;
  std::mutex order_;  // of calls that apply changes
  std::mutex mutex_;  // of changes_
  std::vector<Change> changes_;
};

}  // namespace

std::unique_ptr<KernelEngine> make_engine(const EngineSettings& settings) {
  return std::make_unique<PtxEngine>(settings);
}

}  // namespace gpusim::cuda_api
