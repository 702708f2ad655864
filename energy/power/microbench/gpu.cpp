#include "energy/power/microbench/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "device_sim/base/error.h"

namespace gpusim::power {

using namespace cuda;

struct Gpu::Calls {
  void* library = nullptr;
  ~Calls() {
    if (library != nullptr) ::dlclose(library);
  }

  Result (*init)(unsigned) = nullptr;
  Result (*driver_version)(int*) = nullptr;
  Result (*device_count)(int*) = nullptr;
  Result (*device_get)(Device*, int) = nullptr;
  Result (*device_name)(char*, int, Device) = nullptr;
  Result (*device_attribute)(int*, int, Device) = nullptr;
  Result (*device_pci_bus)(char*, int, Device) = nullptr;
  Result (*context_retain)(Context*, Device) = nullptr;
  Result (*context_release)(Device) = nullptr;
  Result (*context_set)(Context) = nullptr;
  Result (*module_load)(Module*, const void*, unsigned, int*, void**) = nullptr;
  Result (*module_unload)(Module) = nullptr;
  Result (*module_function)(Function*, Module, const char*) = nullptr;
  Result (*allocate)(DevicePointer*, size_t) = nullptr;
  Result (*release)(DevicePointer) = nullptr;
  Result (*set_words)(DevicePointer, unsigned, size_t) = nullptr;
  Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Stream, void**, void**) = nullptr;
  Result (*stream_query)(Stream) = nullptr;
  Result (*synchronize)() = nullptr;
  Result (*event_create)(Event*, unsigned) = nullptr;
  Result (*event_record)(Event, Stream) = nullptr;
  Result (*event_wait)(Event) = nullptr;
  Result (*event_query)(Event) = nullptr;
  Result (*event_elapsed)(float*, Event, Event) = nullptr;
  Result (*event_destroy)(Event) = nullptr;
  Result (*error_name)(Result, const char**) = nullptr;
};

namespace {

template <class F>
void find(void* library, const std::string& path, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  if (function == nullptr)
    throw Error(
        fmt::format("{} has no {}: a CUDA driver of version 10 or later is needed", path, name));
}

}  // namespace

void Gpu::check(Result result, const std::string& what) const {
  if (result == kSuccess) return;
  const char* name = nullptr;
  if (calls_->error_name == nullptr || calls_->error_name(result, &name) != kSuccess || !name)
    name = "an error that the driver does not name";
  throw Error(fmt::format("CUDA: {}: {} ({})", what, name, result));
}

Gpu::Gpu(const std::string& library, int index) : calls_(std::make_unique<Calls>()) {
  const std::string path = library.empty() ? "libcuda.so.1" : library;
  Calls& c = *calls_;
  c.library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (c.library == nullptr)
    throw Error(fmt::format(
        "there is no CUDA driver here: {} (NVIDIA's driver brings libcuda.so.1)", ::dlerror()));
  const auto get = [&](const char* name, auto& function) { find(c.library, path, name, function); };
  get("cuInit", c.init);
  get("cuDriverGetVersion", c.driver_version);
  get("cuDeviceGetCount", c.device_count);
  get("cuDeviceGet", c.device_get);
  get("cuDeviceGetName", c.device_name);
  get("cuDeviceGetAttribute", c.device_attribute);
  get("cuDeviceGetPCIBusId", c.device_pci_bus);
  get("cuDevicePrimaryCtxRetain", c.context_retain);
  get("cuDevicePrimaryCtxRelease_v2", c.context_release);
  get("cuCtxSetCurrent", c.context_set);
  get("cuModuleLoadDataEx", c.module_load);
  get("cuModuleUnload", c.module_unload);
  get("cuModuleGetFunction", c.module_function);
  get("cuMemAlloc_v2", c.allocate);
  get("cuMemFree_v2", c.release);
  get("cuMemsetD32_v2", c.set_words);
  get("cuLaunchKernel", c.launch);
  get("cuStreamQuery", c.stream_query);
  get("cuCtxSynchronize", c.synchronize);
  get("cuEventCreate", c.event_create);
  get("cuEventRecord", c.event_record);
  get("cuEventSynchronize", c.event_wait);
  get("cuEventQuery", c.event_query);
  get("cuEventElapsedTime", c.event_elapsed);
  get("cuEventDestroy_v2", c.event_destroy);
  get("cuGetErrorName", c.error_name);

  // NVML counts devices in this order; without it device 0 may be another card there than here.
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  check(c.init(0), "cuInit");
  check(c.driver_version(&info_.driver_version), "cuDriverGetVersion");
  int count = 0;
  check(c.device_count(&count), "cuDeviceGetCount");
  if (index < 0 || index >= count)
    throw Error(fmt::format("--device {}: there are {} GPUs, counted from 0", index, count));
  check(c.device_get(&device_, index), "cuDeviceGet");
  std::array<char, 256> text{};
  check(c.device_name(text.data(), static_cast<int>(text.size()), device_), "cuDeviceGetName");
  info_.name = text.data();
  text.fill(0);
  check(c.device_pci_bus(text.data(), static_cast<int>(text.size()), device_),
        "cuDeviceGetPCIBusId");
  info_.pci_bus = text.data();
  const auto attribute = [&](int which) {
    int value = 0;
    check(c.device_attribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
  };
  info_.capability_major = attribute(kCapabilityMajor);
  info_.capability_minor = attribute(kCapabilityMinor);
  info_.multiprocessors = static_cast<unsigned>(attribute(kMultiprocessors));
  info_.threads_per_multiprocessor = static_cast<unsigned>(attribute(kThreadsPerMultiprocessor));
  info_.l2_bytes = static_cast<uint64_t>(attribute(kL2Bytes));
  info_.clock = energy::Hertz(attribute(kClockKilohertz) * 1e3);
  if (info_.capability_major * 10 + info_.capability_minor < 75)
    throw Error(
        fmt::format("{}: compute capability {}.{}; the kernels are for 7.5 (Turing) and later",
                    info_.name, info_.capability_major, info_.capability_minor));
  if (info_.multiprocessors == 0 || info_.threads_per_multiprocessor == 0)
    throw Error(info_.name + ": the driver names no multiprocessors");
  Context context = nullptr;
  check(c.context_retain(&context, device_), "cuDevicePrimaryCtxRetain");
  check(c.context_set(context), "cuCtxSetCurrent");
}

Gpu::~Gpu() {
  for (auto& [function, module] : modules_) calls_->module_unload(module);
  calls_->context_release(device_);
}

Function Gpu::load(const std::string& ptx, const char* kernel, unsigned optimization,
                   const std::string& what) {
  std::array<char, 4096> log{};
  // The driver reads each option's value from the pointer's own bits.
  std::array<int, 3> options = {kJitErrorLog, kJitErrorLogBytes, kJitOptimization};
  std::array<void*, 3> values = {log.data(), reinterpret_cast<void*>(log.size()),
                                 reinterpret_cast<void*>(static_cast<uintptr_t>(optimization))};
  Module module = nullptr;
  const Result result = calls_->module_load(&module, ptx.c_str(), 3, options.data(), values.data());
  if (result != kSuccess && log[0] != 0)
    check(result, fmt::format("the kernel for {}: {}", what, log.data()));
  check(result, fmt::format("the kernel for {}", what));
  Function function = nullptr;
  check(calls_->module_function(&function, module, kernel), fmt::format("{} of {}", kernel, what));
  modules_.emplace_back(function, module);
  return function;
}

void Gpu::unload(Function function) {
  const auto at = std::find_if(modules_.begin(), modules_.end(),
                               [&](const auto& m) { return m.first == function; });
  if (at == modules_.end()) return;
  check(calls_->module_unload(at->second), "cuModuleUnload");
  modules_.erase(at);
}

DevicePointer Gpu::allocate(uint64_t bytes) {
  DevicePointer memory = 0;
  check(calls_->allocate(&memory, bytes), fmt::format("cuMemAlloc of {} bytes", bytes));
  check(calls_->set_words(memory, 0x55AA1234u, bytes / 4), "cuMemsetD32");
  return memory;
}

void Gpu::release(DevicePointer memory) {
  if (memory != 0) check(calls_->release(memory), "cuMemFree");
}

void Gpu::launch(Function function, LaunchShape shape, const std::vector<void*>& parameters) {
  std::vector<void*> list = parameters;
  check(calls_->launch(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, nullptr, list.data(),
                       nullptr),
        fmt::format("cuLaunchKernel of {} blocks with {} threads", shape.blocks, shape.threads));
}

bool Gpu::is_busy() {
  const Result result = calls_->stream_query(nullptr);
  if (result == kNotReady) return true;
  check(result, "a kernel");
  return false;
}

void Gpu::synchronize() { check(calls_->synchronize(), "a kernel"); }

OwnedEvent::~OwnedEvent() {
  if (event_ != nullptr) gpu_->calls_->event_destroy(event_);
}

OwnedEvent Gpu::make_event() {
  Event event = nullptr;
  check(calls_->event_create(&event, kEventDefault), "cuEventCreate");
  return {*this, event};
}
void Gpu::record(Event event) { check(calls_->event_record(event, nullptr), "cuEventRecord"); }
void Gpu::wait(Event event) { check(calls_->event_wait(event), "cuEventSynchronize"); }
bool Gpu::has_passed(Event event) {
  const Result result = calls_->event_query(event);
  if (result == kNotReady) return false;
  check(result, "cuEventQuery");
  return true;
}
energy::Seconds Gpu::elapsed(Event begin, Event end) {
  float ms = 0;
  check(calls_->event_elapsed(&ms, begin, end), "cuEventElapsedTime");
  return energy::Seconds(ms * 1e-3);
}

}  // namespace gpusim::power
