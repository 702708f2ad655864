// Calls about the device, kernels' attributes and launches.
#include <cstdio>
#include <map>

#include "emulated/launch.h"
#include "standin/chip.h"
#include "standin/host_memory.h"
#include "standin/lanes.h"
#include "standin/memory.h"
#include "standin/places.h"
#include "standin/queue.h"
#include "standin/random.h"
#include "standin/report.h"
#include "standin/shared_memory.h"

namespace cuda_emulated {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

cudaError_t last_error = cudaSuccess;
// By cudaFuncSetAttribute, of kernels on a device.
std::map<std::pair<int, const void*>, size_t> allowed_shared_bytes;

cudaError_t refused(cudaError_t error) {
  last_error = error;
  return error;
}

// Machine code runs on chips of its major number, from its minor one on (CUDA C++ Programming
// Guide, "Binary compatibility").
bool has_code() {
  return compiled_for / 100 == chip().major && compiled_for / 10 % 10 <= chip().minor;
}

size_t shared_limit(const void* kernel) {
  const auto it = allowed_shared_bytes.find({current_device(), kernel});
  return it == allowed_shared_bytes.end() ? chip().shared_per_block : it->second;
}

cudaError_t judge(const Launch& launch) {
  if (!has_code()) return cudaErrorNoKernelImageForDevice;
  if (launch.grid.x == 0 || launch.block.x == 0 || launch.block.x > kThreadsPerBlock)
    return cudaErrorInvalidConfiguration;
  if (launch.grid.y * launch.grid.z * launch.block.y * launch.block.z != 1) {
    report(cudaErrorInvalidConfiguration, "launches in two dimensions are not emulated");
    return cudaErrorInvalidConfiguration;
  }
  if (launch.shared_bytes > shared_limit(launch.kernel)) return cudaErrorInvalidValue;
  if (launch.block.x > static_cast<unsigned>(launch_bound(launch.kernel)))
    return cudaErrorLaunchOutOfResources;
  return cudaSuccess;
}

}  // namespace

cudaError_t enqueue(Launch launch, cudaStream_t stream) {
  const Lock lock(interface_lock());
  if (const int error = sticky_error()) return static_cast<cudaError_t>(error);
  if (const cudaError_t error = judge(launch)) return refused(error);
  if (const int code = failure("refuse")) return refused(static_cast<cudaError_t>(code));
  return submit(stream, [launch = std::move(launch)] {
    watch_faults();
    if (const int code = failure("launch")) return lose_device(code);
    if (!run(launch)) return;
    if (const std::string where = overrun(); !where.empty())
      report(cudaErrorIllegalAddress,
             "kernel " + function_name(launch.kernel) + " wrote at " + where);
  });
}

cudaError_t enqueue_algorithm(const char*, std::function<void()> run, cudaStream_t stream) {
  const Lock lock(interface_lock());
  if (const int error = sticky_error()) return static_cast<cudaError_t>(error);
  return submit(stream, [run = std::move(run)] {
    watch_faults();
    const InAlgorithm in_algorithm;
    run();
  });
}

bool has_scratch(const void* scratch, size_t& bytes, size_t items, cudaError_t& status) {
  const size_t needed = 1 + items;
  if (!scratch) {
    bytes = needed;
    status = static_cast<cudaError_t>(sticky_error());
    return false;
  }
  if (bytes >= needed && range_fault(scratch, bytes).empty()) return true;
  report(cudaErrorInvalidValue, "an algorithm's scratch memory is too small or not the device's");
  status = cudaErrorInvalidValue;
  return false;
}

}  // namespace cuda_emulated

using namespace cuda_emulated;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorNoKernelImageForDevice: return "cudaErrorNoKernelImageForDevice";
    case cudaErrorLaunchOutOfResources: return "cudaErrorLaunchOutOfResources";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "another CUDA error";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error != cudaSuccess && error == sticky_error() ? sticky_text() : cudaGetErrorName(error);
}
cudaError_t cudaPeekAtLastError() {
  const Lock lock(interface_lock());
  return sticky_error() ? static_cast<cudaError_t>(sticky_error()) : last_error;
}
cudaError_t cudaGetLastError() {
  const Lock lock(interface_lock());
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(chips().size());
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return chips().empty() ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || static_cast<size_t>(device) >= chips().size()) return cudaErrorInvalidDevice;
  set_current_device(device);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaDeviceReset() {
  const Lock lock(interface_lock());
  if (!is_lost()) return finish_all();
  if (const int code = failure("reset")) return static_cast<cudaError_t>(code);
  drop_work();
  free_all_memory();
  forget_registrations();
  forget_reports();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock(interface_lock());
  return finish_all();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device < 0 || static_cast<size_t>(device) >= chips().size()) return cudaErrorInvalidDevice;
  const Chip& c = chips()[static_cast<size_t>(device)];
  *p = {};
  std::snprintf(p->name, sizeof p->name, "emulated %s, code for %d, seed %llu", c.name,
                compiled_for, static_cast<unsigned long long>(seed()));
  p->uuid.bytes[0] = static_cast<char>(device + 1);
  p->major = c.major;
  p->minor = c.minor;
  p->totalGlobalMem = c.memory_bytes;
  p->multiProcessorCount = c.multiprocessors;
  p->warpSize = kLanes;
  p->sharedMemPerBlock = c.shared_per_block;
  p->sharedMemPerBlockOptin = c.shared_per_block_optin;
  p->sharedMemPerMultiprocessor = c.shared_per_multiprocessor;
  p->reservedSharedMemPerBlock = c.shared_reserved;
  p->maxThreadsPerBlock = kThreadsPerBlock;
  p->maxThreadsPerMultiProcessor = c.threads_per_multiprocessor;
  p->maxBlocksPerMultiProcessor = c.blocks_per_multiprocessor;
  p->regsPerBlock = p->regsPerMultiprocessor = kRegisters;
  p->l2CacheSize = 1 << 22;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(p.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p.regsPerMultiprocessor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(p.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      *value = static_cast<int>(p.reservedSharedMemPerBlock);
      break;
    case cudaDevAttrHostNativeAtomicSupported: *value = has_host_atomics(); break;
    case cudaDevAttrPageableMemoryAccess: *value = offers("pageable"); break;
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrHostRegisterSupported: *value = offers("register"); break;
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
      *value = offers("pageable") && offers("host-tables");
      break;
    case cudaDevAttrHostRegisterReadOnlySupported: *value = offers("read-only"); break;
    default: return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const Lock lock(interface_lock());
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > chip().shared_per_block_optin)
    return refused(cudaErrorInvalidValue);
  allowed_shared_bytes[{current_device(), kernel}] = static_cast<size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const Lock lock(interface_lock());
  if (!has_code()) return refused(cudaErrorNoKernelImageForDevice);
  *attributes = {};
  attributes->maxThreadsPerBlock = launch_bound(kernel);
  attributes->numRegs = registers_per_thread(kernel);
  attributes->binaryVersion = attributes->ptxVersion = compiled_for / 10;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(shared_limit(kernel));
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int threads, size_t shared_bytes) {
  const bool fits =
      threads <= launch_bound(kernel) && shared_bytes <= chip().shared_per_block_optin;
  *blocks = fits ? blocks_per_multiprocessor(kernel, threads, shared_bytes) : 0;
  return cudaSuccess;
}
