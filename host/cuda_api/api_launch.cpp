// Runtime API: registration, launches, attributes of kernels, occupancy.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "host/cuda_api/alias.h"
#include "host/cuda_api/launches.h"
#include "host/cuda_api/runtime.h"

using namespace gpusim::cuda_api;

namespace {

struct Configuration {
  Dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local std::vector<Configuration> configurations;

LoadedImage& image_of(void** handle) { return *reinterpret_cast<LoadedImage*>(handle); }

int max_blocks(const void* function, int block_threads, size_t dynamic_shared_bytes) {
  require(block_threads > 0);
  Runtime& r = runtime();
  const KernelFacts& facts = r.facts_of(r.function(function));
  if (static_cast<uint32_t>(block_threads) > facts.max_threads) return 0;
  return resident_blocks(r.chip(), static_cast<uint32_t>(block_threads), facts.registers,
                         facts.static_shared_bytes + dynamic_shared_bytes);
}

void launch_config(const LaunchConfig* config, const void* function, void** arguments) {
  require(config != nullptr);
  launch(function, config->grid, config->block, arguments, config->dynamic_shared_bytes,
         config->stream, modes_of({config->attributes, config->attribute_count}));
}

}  // namespace

namespace gpusim::cuda_api {

KernelCall make_call(const void* function, Dim3 grid, Dim3 block, void** arguments,
                     size_t shared_bytes, const LaunchModes& modes) {
  Runtime& r = runtime();
  Function& f = r.function(function);
  const KernelFacts& facts = r.facts_of(f);
  require(shared_bytes <= UINT32_MAX);
  KernelCall call{.function = &f,
                  .grid = grid,
                  .block = block,
                  .shared_bytes = static_cast<uint32_t>(shared_bytes),
                  .modes = modes,
                  .arguments = {}};
  if (!call.modes.cluster) call.modes.cluster = required_cluster(f);
  r.check_launch(call);
  {
    const std::lock_guard lock(r.mutex);
    call.stack_bytes = r.limits[kLimitStackBytes];
    call.heap_bytes = r.limits[kLimitHeapBytes];
  }
  call.arguments.resize(facts.param_bytes);
  require(facts.params.empty() || arguments != nullptr);
  for (size_t i = 0; i < facts.params.size(); ++i)
    std::memcpy(call.arguments.data() + facts.params[i].offset_bytes, arguments[i],
                facts.params[i].size_bytes);
  return call;
}

void launch(const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
            void* stream, const LaunchModes& modes) {
  runtime().submit(stream,
                   {.type = NodeType::kKernel,
                    .call = make_call(function, grid, block, arguments, shared_bytes, modes)});
}

LaunchModes modes_of(std::span<const LaunchAttribute> attributes) {
  LaunchModes modes;
  for (const LaunchAttribute& a : attributes) {
    if (a.id == kAttributeCooperative) modes.is_cooperative = a.value.cooperative != 0;
    if (a.id != kAttributeClusterDimension) continue;
    const Dim3& c = a.value.cluster_dim;
    require(c.x != 0 && c.y != 0 && c.z != 0, kInvalidClusterSize);
    modes.cluster = c;
  }
  return modes;
}

std::optional<Dim3> required_cluster(const Function& f) {
  if (const auto& c = f.facts->cluster) return Dim3{c->x, c->y, c->z};
  if (f.cluster[0] == 0 && f.cluster[1] == 0 && f.cluster[2] == 0) return std::nullopt;
  require(f.cluster[0] > 0 && f.cluster[1] > 0 && f.cluster[2] > 0, kInvalidClusterSize);
  return Dim3{static_cast<unsigned>(f.cluster[0]), static_cast<unsigned>(f.cluster[1]),
              static_cast<unsigned>(f.cluster[2])};
}

namespace {

constexpr int kGroupSms = 16;

int threads_of(Dim3 block) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  require(threads >= 1 && threads <= 1024, kInvalidConfiguration);
  return static_cast<int>(threads);
}

}  // namespace

int largest_cluster(const void* function, Dim3 block, size_t dynamic_shared_bytes) {
  Runtime& r = runtime();
  const Function& f = r.function(function);
  const int resident = max_blocks(function, threads_of(block), dynamic_shared_bytes);
  if (r.chip().compute_capability < 90) return resident > 0 ? 1 : 0;
  return static_cast<int>(
      std::min<uint64_t>(largest_cluster_of(f), static_cast<uint64_t>(resident) * kGroupSms));
}

int active_clusters(const void* function, Dim3 block, size_t dynamic_shared_bytes,
                    const LaunchModes& modes) {
  Runtime& r = runtime();
  const Function& f = r.function(function);
  const int resident = max_blocks(function, threads_of(block), dynamic_shared_bytes);
  const Dim3 c = modes.cluster ? *modes.cluster : required_cluster(f).value_or(Dim3{1, 1, 1});
  const uint64_t size = uint64_t{c.x} * c.y * c.z;
  require(size >= 1 && size <= largest_cluster_of(f), kInvalidClusterSize);
  require(size == 1 || r.chip().compute_capability >= 90, kNotSupported);
  const auto sms = static_cast<int>(r.chip().sms);
  if (size == 1) return resident * sms;
  const int of_group = std::min(sms, kGroupSms);
  return std::max(1, sms / kGroupSms) * (resident * of_group / static_cast<int>(size));
}

void set_attribute(Function& f, int attribute, int value) {
  Runtime& r = runtime();
  const KernelFacts& facts = r.facts_of(f);
  switch (attribute) {
    case 8: {
      const auto most = static_cast<int>(r.chip().shared_kib_per_block << 10);
      require(value >= 0 && value <= most - static_cast<int>(facts.static_shared_bytes));
      f.most_dynamic_shared_bytes = static_cast<uint32_t>(value);
      return;
    }
    case 9:
      require(value >= -1 && value <= 100);
      f.carveout = value;
      return;
    case 11:
    case 12:
    case 13:
      require(value >= 0 && !facts.cluster);
      f.cluster[static_cast<size_t>(attribute - 11)] = value;
      return;
    case 14:
      require(value == 0 || value == 1);
      f.allows_large_clusters = value != 0;
      return;
    case 15:
      require(value >= 0 && value <= 2);
      f.cluster_policy = value;
      return;
    default:
      refuse(kInvalidValue);
  }
}

}  // namespace gpusim::cuda_api

GPUSIM_CUDA_API void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(runtime().add_image(wrapper));
}
GPUSIM_CUDA_API void __cudaRegisterFatBinaryEnd(void**) {}
GPUSIM_CUDA_API void __cudaUnregisterFatBinary(void** handle) {
  call("__cudaUnregisterFatBinary", [&] { runtime().remove_image(&image_of(handle)); });
}
GPUSIM_CUDA_API void __cudaRegisterFunction(void** handle, const char* host, char*,
                                            const char* name, int, void*, void*, void*, void*,
                                            int*) {
  runtime().add_function(image_of(handle), host, name);
}
GPUSIM_CUDA_API void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int,
                                       size_t size, int, int) {
  const std::lock_guard lock(runtime().mutex);
  image_of(handle).variables[host] = {.name = name, .size_bytes = size};
}
GPUSIM_CUDA_API void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name,
                                              int, size_t size, int, int) {
  const std::lock_guard lock(runtime().mutex);
  image_of(handle).variables[host] = {.name = name, .size_bytes = size, .managed_pointer = host};
}
GPUSIM_CUDA_API char __cudaInitModule(void** handle) {
  call("__cudaInitModule", [&] { runtime().load_managed(image_of(handle)); });
  return 1;
}

GPUSIM_CUDA_API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes,
                                                     void* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
GPUSIM_CUDA_API int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_bytes,
                                               void* stream) {
  if (configurations.empty()) return keep_error(kMissingConfiguration);
  const Configuration& c = configurations.back();
  *grid = c.grid;
  *block = c.block;
  *shared_bytes = c.shared_bytes;
  *static_cast<void**>(stream) = c.stream;
  configurations.pop_back();
  return kSuccess;
}
GPUSIM_CUDA_API int __cudaGetKernel(void** kernel, const void* function) {
  return call("__cudaGetKernel", [&] { *kernel = &runtime().function(function); });
}
GPUSIM_CUDA_API int __cudaLaunchKernel(void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                       size_t shared_bytes, void* stream) {
  return call("__cudaLaunchKernel",
              [&] { launch(kernel, grid, block, arguments, shared_bytes, stream, {}); });
}
GPUSIM_CUDA_API int cudaLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** arguments,
                                     size_t shared_bytes, void* stream) {
  return call("cudaLaunchKernel",
              [&] { launch(function, grid, block, arguments, shared_bytes, stream, {}); });
}
GPUSIM_CUDA_API int cudaLaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block,
                                                void** arguments, size_t shared_bytes,
                                                void* stream) {
  return call("cudaLaunchCooperativeKernel", [&] {
    launch(function, grid, block, arguments, shared_bytes, stream, {.is_cooperative = true});
  });
}
GPUSIM_CUDA_API int cudaLaunchKernelExC(const LaunchConfig* config, const void* function,
                                        void** arguments) {
  return call("cudaLaunchKernelExC", [&] { launch_config(config, function, arguments); });
}

GPUSIM_CUDA_API int cudaGetKernel(void** kernel, const void* function) {
  return call("cudaGetKernel", [&] {
    require(kernel != nullptr);
    *kernel = &runtime().function(function);
  });
}
GPUSIM_CUDA_API int cudaGetFuncBySymbol(void** kernel, const void* function) {
  return cudaGetKernel(kernel, function);
}
GPUSIM_CUDA_API int cudaFuncGetName(const char** name, const void* function) {
  return call("cudaFuncGetName", [&] {
    require(name != nullptr);
    *name = runtime().function(function).name.c_str();
  });
}
GPUSIM_CUDA_API int cudaFuncGetAttributes(FuncAttributes* attributes, const void* function) {
  return call("cudaFuncGetAttributes", [&] {
    require(attributes != nullptr);
    Runtime& r = runtime();
    Function& f = r.function(function);
    const KernelFacts& facts = r.facts_of(f);
    *attributes = {};
    attributes->shared_bytes = facts.static_shared_bytes;
    attributes->const_bytes = facts.const_bytes;
    attributes->local_bytes = facts.local_bytes;
    attributes->max_threads_per_block = static_cast<int>(facts.max_threads);
    attributes->registers = static_cast<int>(facts.registers);
    attributes->ptx_version = static_cast<int>(f.image->architecture);
    attributes->binary_version = static_cast<int>(r.chip().compute_capability);
    attributes->max_dynamic_shared_bytes = static_cast<int>(f.most_dynamic_shared_bytes);
    attributes->preferred_carveout = f.carveout;
    const auto cluster = required_cluster(f).value_or(Dim3{0, 0, 0});
    attributes->cluster_dim_must_be_set = facts.cluster || facts.needs_cluster;
    attributes->cluster_width = static_cast<int>(cluster.x);
    attributes->cluster_height = static_cast<int>(cluster.y);
    attributes->cluster_depth = static_cast<int>(cluster.z);
    attributes->cluster_scheduling_policy = f.cluster_policy;
    attributes->non_portable_cluster_size_allowed = f.allows_large_clusters;
  });
}
GPUSIM_CUDA_API int cudaFuncSetAttribute(const void* function, int attribute, int value) {
  return call("cudaFuncSetAttribute",
              [&] { set_attribute(runtime().function(function), attribute, value); });
}
GPUSIM_CUDA_API int cudaFuncSetCacheConfig(const void* function, int) {
  return call("cudaFuncSetCacheConfig", [&] { runtime().function(function); });
}
GPUSIM_CUDA_API int cudaFuncSetSharedMemConfig(const void* function, int) {
  return call("cudaFuncSetSharedMemConfig", [&] { runtime().function(function); });
}

GPUSIM_CUDA_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                                  int block_threads,
                                                                  size_t dynamic_shared_bytes) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
    require(blocks != nullptr);
    *blocks = max_blocks(function, block_threads, dynamic_shared_bytes);
  });
}
GPUSIM_CUDA_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_threads, size_t dynamic_shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_threads,
                                                       dynamic_shared_bytes);
}
GPUSIM_CUDA_API int cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                              int blocks, int block_threads) {
  return call("cudaOccupancyAvailableDynamicSMemPerBlock", [&] {
    require(bytes != nullptr && blocks > 0 && block_threads > 0);
    Runtime& r = runtime();
    Function& f = r.function(function);
    const size_t fixed = r.facts_of(f).static_shared_bytes;
    size_t low = 0, high = f.most_dynamic_shared_bytes;
    if (max_blocks(function, block_threads, 0) < blocks) refuse(kInvalidValue);
    while (low < high) {
      const size_t middle = (low + high + 1) / 2;
      const bool fits = max_blocks(function, block_threads, middle) >= blocks &&
                        fixed + middle <= static_cast<size_t>(r.chip().shared_kib_per_block) << 10;
      (fits ? low : high) = fits ? middle : middle - 1;
    }
    *bytes = low;
  });
}

GPUSIM_CUDA_API int cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                         const LaunchConfig* config) {
  return call("cudaOccupancyMaxPotentialClusterSize", [&] {
    require(size != nullptr && config != nullptr);
    *size = largest_cluster(function, config->block, config->dynamic_shared_bytes);
  });
}
GPUSIM_CUDA_API int cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                                   const LaunchConfig* config) {
  return call("cudaOccupancyMaxActiveClusters", [&] {
    require(clusters != nullptr && config != nullptr);
    *clusters = active_clusters(function, config->block, config->dynamic_shared_bytes,
                                modes_of({config->attributes, config->attribute_count}));
  });
}

GPUSIM_ALIAS(__cudaLaunchKernel, _ptsz)
GPUSIM_ALIAS(cudaLaunchKernel, _ptsz)
GPUSIM_ALIAS(cudaLaunchCooperativeKernel, _ptsz)
GPUSIM_ALIAS(cudaLaunchKernelExC, _ptsz)
