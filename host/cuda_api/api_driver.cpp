// Driver API: devices, contexts, modules, launches. Public functions only.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "host/cuda_api/alias.h"
#include "host/cuda_api/driver.h"
#include "host/cuda_api/launches.h"

using namespace gpusim::cuda_api;

namespace {

constexpr int kVersion = 13000;

// One device, and one context that all others are names of.
struct Contexts {
  std::mutex mutex;
  std::set<void*> made;
  int primary_uses = 0;
};
Contexts& contexts() {
  static Contexts* const only = new Contexts;
  return *only;
}
char primary_context;
thread_local std::vector<void*> current_contexts;

void require_device(int device) { require(device == 0, kInvalidDevice); }

struct DriverLaunch {
  Dim3 grid, block;
  unsigned shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// Arguments as one buffer: the list `extra` of cuLaunchKernel.
std::vector<void*> arguments_in(const KernelFacts& facts, void** extra) {
  char* buffer = nullptr;
  size_t size = 0;
  for (; *extra != nullptr; extra += 2) {
    if (*extra == reinterpret_cast<void*>(1))
      buffer = static_cast<char*>(extra[1]);
    else if (*extra == reinterpret_cast<void*>(2))
      size = *static_cast<size_t*>(extra[1]);
    else
      refuse(kInvalidValue);
  }
  require(facts.params.empty() || (buffer != nullptr && size >= facts.param_bytes));
  std::vector<void*> pointers;
  for (const auto& p : facts.params) pointers.push_back(buffer + p.offset_bytes);
  return pointers;
}

void launch_driver(void* function, Dim3 grid, Dim3 block, unsigned shared_bytes, void* stream,
                   void** arguments, void** extra, const LaunchModes& modes) {
  std::vector<void*> pointers;
  if (extra != nullptr) {
    require(arguments == nullptr);
    Runtime& r = runtime();
    pointers = arguments_in(r.facts_of(r.function(function)), extra);
    arguments = pointers.data();
  }
  launch(function, grid, block, arguments, shared_bytes, stream, modes);
}

std::string read_file(const char* path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file.good() || std::filesystem::is_directory(path, ignored)) {
    say(fmt::format("{}: {} is no file that can be read", called_function(), path));
    refuse(kFileNotFound);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

namespace gpusim::cuda_api {

LoadedImage& module_of(void* handle) {
  const std::lock_guard lock(runtime().mutex);
  const auto at = runtime().images.find(static_cast<LoadedImage*>(handle));
  require(at != runtime().images.end(), kInvalidResourceHandle);
  return **at;
}

LoadedImage* load_module(const void* image) {
  require(image != nullptr);
  LinkedTexts texts;
  return find_linked(image, texts) ? runtime().add_units(std::move(texts))
                                   : runtime().add_module(image);
}

LoadedImage* load_module_file(const char* path) {
  require(path != nullptr);
  const std::string bytes = read_file(path);
  return runtime().add_module(bytes.c_str());
}

Function* kernel_of(LoadedImage& image, const char* name) {
  require(name != nullptr);
  Runtime& r = runtime();
  {
    const std::lock_guard lock(r.mutex);
    const auto at = image.by_name.find(name);
    if (at != image.by_name.end()) return at->second;
  }
  require(r.has_kernel(image, name), kSymbolNotFound);
  return r.add_function(image, nullptr, name);
}

}  // namespace gpusim::cuda_api

GPUSIM_CUDA_API int cuInit(unsigned flags) {
  return driver_call("cuInit", [&] { require(flags == 0); });
}
GPUSIM_CUDA_API int cuDriverGetVersion(int* version) {
  return driver_call("cuDriverGetVersion", [&] {
    require(version != nullptr);
    *version = kVersion;
  });
}
GPUSIM_CUDA_API int cuGetErrorName(int error, const char** name) {
  if (name == nullptr) return kInvalidValue;
  *name = error_name(error, true);
  return *name != nullptr ? kSuccess : kInvalidValue;
}
GPUSIM_CUDA_API int cuGetErrorString(int error, const char** text) {
  if (text == nullptr) return kInvalidValue;
  *text = error_name(error, true) != nullptr ? error_text(error) : nullptr;
  return *text != nullptr ? kSuccess : kInvalidValue;
}
GPUSIM_CUDA_API int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t,
                                        int* status) {
  return driver_call("cuGetProcAddress", [&] {
    require(name != nullptr && function != nullptr);
    // The newest version of it.
    *function = nullptr;
    for (const char* suffix : {"_v4", "_v3", "_v2", ""})
      if (*function == nullptr)
        *function = ::dlsym(own_library(), fmt::format("{}{}", name, suffix).c_str());
    if (status != nullptr) *status = *function != nullptr ? 0 : 1;
    require(*function != nullptr, kSymbolNotFound);
  });
}

// cudaDriverEntryPointQueryResult: found, or not.
GPUSIM_CUDA_API int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                     unsigned long long, int* found) {
  return call("cudaGetDriverEntryPointByVersion", [&] {
    require(name != nullptr && function != nullptr);
    int status = 0;
    if (cuGetProcAddress_v2(name, function, kVersion, 0, &status) != kSuccess) *function = nullptr;
    if (found != nullptr) *found = status;
    require(found != nullptr || *function != nullptr, kSymbolNotFound);
  });
}
GPUSIM_CUDA_API int cudaGetDriverEntryPoint(const char* name, void** function,
                                            unsigned long long flags, int* found) {
  return cudaGetDriverEntryPointByVersion(name, function, kVersion, flags, found);
}
GPUSIM_ALIAS(cudaGetDriverEntryPointByVersion, _ptsz)
GPUSIM_ALIAS(cudaGetDriverEntryPoint, _ptsz)

GPUSIM_CUDA_API int cuDeviceGet(int* device, int ordinal) {
  return driver_call("cuDeviceGet", [&] {
    require(device != nullptr);
    require_device(ordinal);
    *device = 0;
  });
}
GPUSIM_CUDA_API int cuDeviceGetCount(int* count) {
  return driver_call("cuDeviceGetCount", [&] {
    require(count != nullptr);
    *count = 1;
  });
}
GPUSIM_CUDA_API int cuDeviceGetName(char* name, int size, int device) {
  return driver_call("cuDeviceGetName", [&] {
    require(name != nullptr && size > 0);
    require_device(device);
    const std::string_view text = runtime().chip().name;
    const size_t count = std::min(text.size(), static_cast<size_t>(size) - 1);
    std::memcpy(name, text.data(), count);
    name[count] = 0;
  });
}
GPUSIM_CUDA_API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return driver_call("cuDeviceTotalMem", [&] {
    require(bytes != nullptr);
    require_device(device);
    *bytes = size_t{runtime().chip().memory_mib} << 20;
  });
}
GPUSIM_CUDA_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return driver_call("cuDeviceGetAttribute", [&] {
    require(value != nullptr);
    require_device(device);
    require(attribute_of(runtime().chip(), attribute, *value));
  });
}
GPUSIM_CUDA_API int cuDeviceComputeCapability(int* major, int* minor, int device) {
  return driver_call("cuDeviceComputeCapability", [&] {
    require(major != nullptr && minor != nullptr);
    require_device(device);
    *major = static_cast<int>(runtime().chip().compute_capability / 10);
    *minor = static_cast<int>(runtime().chip().compute_capability % 10);
  });
}
GPUSIM_CUDA_API int cuDeviceGetUuid_v2(void* uuid, int device) {
  return driver_call("cuDeviceGetUuid", [&] {
    require(uuid != nullptr);
    require_device(device);
    std::memcpy(uuid, properties_of(runtime().chip()).uuid, 16);
  });
}
GPUSIM_CUDA_API int cuDeviceCanAccessPeer(int* can, int, int) {
  return driver_call("cuDeviceCanAccessPeer", [&] {
    require(can != nullptr);
    *can = 0;
  });
}

GPUSIM_CUDA_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  return driver_call("cuDevicePrimaryCtxRetain", [&] {
    require(context != nullptr);
    require_device(device);
    const std::lock_guard lock(contexts().mutex);
    ++contexts().primary_uses;
    *context = &primary_context;
  });
}
GPUSIM_CUDA_API int cuDevicePrimaryCtxRelease_v2(int device) {
  return driver_call("cuDevicePrimaryCtxRelease", [&] {
    require_device(device);
    const std::lock_guard lock(contexts().mutex);
    require(contexts().primary_uses > 0, static_cast<Status>(201));
    --contexts().primary_uses;
  });
}
GPUSIM_CUDA_API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  return driver_call("cuDevicePrimaryCtxSetFlags", [&] { require_device(device); });
}
GPUSIM_CUDA_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* is_active) {
  return driver_call("cuDevicePrimaryCtxGetState", [&] {
    require(flags != nullptr && is_active != nullptr);
    require_device(device);
    const std::lock_guard lock(contexts().mutex);
    *flags = 0;
    *is_active = contexts().primary_uses > 0 ? 1 : 0;
  });
}
GPUSIM_CUDA_API int cuCtxCreate_v4(void** context, void*, unsigned, int device) {
  return driver_call("cuCtxCreate", [&] {
    require(context != nullptr);
    require_device(device);
    const std::lock_guard lock(contexts().mutex);
    *context = *contexts().made.insert(new char).first;
    current_contexts.push_back(*context);
  });
}
GPUSIM_CUDA_API int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  return cuCtxCreate_v4(context, nullptr, flags, device);
}
GPUSIM_CUDA_API int cuCtxDestroy_v2(void* context) {
  return driver_call("cuCtxDestroy", [&] {
    runtime().synchronize_device();
    const std::lock_guard lock(contexts().mutex);
    require(contexts().made.erase(context) == 1, static_cast<Status>(201));
    delete static_cast<char*>(context);
    std::erase(current_contexts, context);
  });
}
GPUSIM_CUDA_API int cuCtxSetCurrent(void* context) {
  return driver_call("cuCtxSetCurrent", [&] {
    if (!current_contexts.empty()) current_contexts.pop_back();
    if (context != nullptr) current_contexts.push_back(context);
  });
}
GPUSIM_CUDA_API int cuCtxGetCurrent(void** context) {
  return driver_call("cuCtxGetCurrent", [&] {
    require(context != nullptr);
    *context = current_contexts.empty() ? nullptr : current_contexts.back();
  });
}
GPUSIM_CUDA_API int cuCtxPushCurrent_v2(void* context) {
  return driver_call("cuCtxPushCurrent", [&] {
    require(context != nullptr, static_cast<Status>(201));
    current_contexts.push_back(context);
  });
}
GPUSIM_CUDA_API int cuCtxPopCurrent_v2(void** context) {
  return driver_call("cuCtxPopCurrent", [&] {
    require(!current_contexts.empty(), static_cast<Status>(201));
    if (context != nullptr) *context = current_contexts.back();
    current_contexts.pop_back();
  });
}
GPUSIM_CUDA_API int cuCtxGetDevice(int* device) {
  return driver_call("cuCtxGetDevice", [&] {
    require(device != nullptr);
    *device = 0;
  });
}
GPUSIM_CUDA_API int cuCtxGetApiVersion(void*, unsigned* version) {
  return driver_call("cuCtxGetApiVersion", [&] {
    require(version != nullptr);
    *version = kVersion;
  });
}
GPUSIM_CUDA_API int cuCtxSynchronize() {
  return driver_call("cuCtxSynchronize", [] { runtime().synchronize_device(); });
}

GPUSIM_CUDA_API int cuModuleLoadData(void** module, const void* image) {
  return driver_call("cuModuleLoadData", [&] {
    require(module != nullptr);
    *module = load_module(image);
  });
}
GPUSIM_CUDA_API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}
GPUSIM_CUDA_API int cuModuleLoadFatBinary(void** module, const void* image) {
  return cuModuleLoadData(module, image);
}
GPUSIM_CUDA_API int cuModuleLoad(void** module, const char* path) {
  return driver_call("cuModuleLoad", [&] {
    require(module != nullptr);
    *module = load_module_file(path);
  });
}
GPUSIM_CUDA_API int cuModuleUnload(void* module) {
  return driver_call("cuModuleUnload", [&] { runtime().remove_image(&module_of(module)); });
}
GPUSIM_CUDA_API int cuModuleGetFunction(void** function, void* module, const char* name) {
  return driver_call("cuModuleGetFunction", [&] {
    require(function != nullptr);
    *function = kernel_of(module_of(module), name);
  });
}
GPUSIM_CUDA_API int cuModuleGetGlobal_v2(uint64_t* address, size_t* size, void* module,
                                         const char* name) {
  return driver_call("cuModuleGetGlobal", [&] {
    require(name != nullptr);
    const std::optional<Variable> found = runtime().find_global(module_of(module), name);
    require(found.has_value(), kSymbolNotFound);
    if (address != nullptr) *address = reinterpret_cast<uintptr_t>(found->address);
    if (size != nullptr) *size = found->size_bytes;
  });
}

GPUSIM_CUDA_API int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, void* stream,
                                   void** arguments, void** extra) {
  return driver_call("cuLaunchKernel", [&] {
    launch_driver(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                  stream, arguments, extra, {});
  });
}
GPUSIM_CUDA_API int cuLaunchCooperativeKernel(void* function, unsigned grid_x, unsigned grid_y,
                                              unsigned grid_z, unsigned block_x, unsigned block_y,
                                              unsigned block_z, unsigned shared_bytes, void* stream,
                                              void** arguments) {
  return driver_call("cuLaunchCooperativeKernel", [&] {
    launch_driver(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                  stream, arguments, nullptr, {.is_cooperative = true});
  });
}
GPUSIM_CUDA_API int cuLaunchKernelEx(const DriverLaunch* config, void* function, void** arguments,
                                     void** extra) {
  return driver_call("cuLaunchKernelEx", [&] {
    require(config != nullptr);
    launch_driver(function, config->grid, config->block, config->shared_bytes, config->stream,
                  arguments, extra, modes_of({config->attributes, config->attribute_count}));
  });
}
GPUSIM_CUDA_API int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return driver_call("cuFuncGetAttribute", [&] {
    require(value != nullptr);
    Runtime& r = runtime();
    Function& f = r.function(function);
    const KernelFacts& facts = r.facts_of(f);
    switch (attribute) {
      case 0:
        *value = static_cast<int>(facts.max_threads);
        return;
      case 1:
        *value = static_cast<int>(facts.static_shared_bytes);
        return;
      case 2:
        *value = static_cast<int>(facts.const_bytes);
        return;
      case 3:
        *value = static_cast<int>(facts.local_bytes);
        return;
      case 4:
        *value = static_cast<int>(facts.registers);
        return;
      case 5:
        *value = static_cast<int>(f.image->architecture);
        return;
      case 6:
        *value = static_cast<int>(r.chip().compute_capability);
        return;
      case 8:
        *value = static_cast<int>(f.most_dynamic_shared_bytes);
        return;
      case 9:
        *value = f.carveout;
        return;
      case 10:
        *value = facts.cluster || facts.needs_cluster;
        return;
      case 11:
      case 12:
      case 13: {
        const auto c = required_cluster(f).value_or(Dim3{0, 0, 0});
        *value = static_cast<int>(attribute == 11 ? c.x : attribute == 12 ? c.y : c.z);
        return;
      }
      case 14:
        *value = f.allows_large_clusters;
        return;
      case 15:
        *value = f.cluster_policy;
        return;
      default:
        require(attribute == 7);
        *value = 0;
    }
  });
}
GPUSIM_CUDA_API int cuFuncSetAttribute(void* function, int attribute, int value) {
  return driver_call("cuFuncSetAttribute",
                     [&] { set_attribute(runtime().function(function), attribute, value); });
}
GPUSIM_CUDA_API int cuFuncSetCacheConfig(void* function, int) {
  return driver_call("cuFuncSetCacheConfig", [&] { runtime().function(function); });
}
GPUSIM_CUDA_API int cuFuncGetName(const char** name, void* function) {
  return driver_call("cuFuncGetName", [&] {
    require(name != nullptr);
    *name = runtime().function(function).name.c_str();
  });
}
GPUSIM_CUDA_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function,
                                                                int threads, size_t shared_bytes) {
  return driver_call("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
    require(blocks != nullptr && threads > 0);
    Runtime& r = runtime();
    const KernelFacts& facts = r.facts_of(r.function(function));
    *blocks = resident_blocks(r.chip(), static_cast<unsigned>(threads), facts.registers,
                              facts.static_shared_bytes + shared_bytes);
  });
}
GPUSIM_CUDA_API int cuOccupancyMaxPotentialClusterSize(int* size, void* function,
                                                       const DriverLaunch* config) {
  return driver_call("cuOccupancyMaxPotentialClusterSize", [&] {
    require(size != nullptr && config != nullptr);
    *size = largest_cluster(function, config->block, config->shared_bytes);
  });
}
GPUSIM_CUDA_API int cuOccupancyMaxActiveClusters(int* clusters, void* function,
                                                 const DriverLaunch* config) {
  return driver_call("cuOccupancyMaxActiveClusters", [&] {
    require(clusters != nullptr && config != nullptr);
    *clusters = active_clusters(function, config->block, config->shared_bytes,
                                modes_of({config->attributes, config->attribute_count}));
  });
}
