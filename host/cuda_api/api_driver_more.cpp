// Driver API: what few programs call. Launches in steps, as before CUDA 4; block sizes by
// occupancy; host memory that is registered; other devices, of which there are none.
#include <algorithm>
#include <cstring>
#include <map>

#include "host/cuda_api/driver.h"
#include "host/cuda_api/launches.h"

using namespace gpusim::cuda_api;

extern "C" {
int cudaHostRegister(void*, size_t, unsigned);
int cudaHostUnregister(void*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
}

namespace {

// What is said of a function before it is launched.
struct Prepared {
  Dim3 block{1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<std::byte> arguments;
};
struct AllPrepared {
  std::mutex mutex;
  std::map<void*, Prepared> by_function;
};
AllPrepared& prepared() {
  static AllPrepared* const only = new AllPrepared;
  return *only;
}

// `change` gets what is prepared of the function. Throws Refusal.
template <typename F>
int prepare(const char* name, void* function, F&& change) {
  return driver_call(name, [&] {
    runtime().function(function);
    const std::lock_guard lock(prepared().mutex);
    change(prepared().by_function[function]);
  });
}

constexpr int kMostArgumentBytes = 32764;

void put(Prepared& p, int offset, const void* bytes, unsigned size) {
  require(offset >= 0 && bytes != nullptr && size <= kMostArgumentBytes &&
          offset <= kMostArgumentBytes - static_cast<int>(size));
  const size_t end = static_cast<size_t>(offset) + size;
  if (p.arguments.size() < end) p.arguments.resize(end);
  std::memcpy(p.arguments.data() + offset, bytes, size);
}

int launch_prepared(void* function, int width, int height, void* stream) {
  Prepared p;
  {
    const std::lock_guard lock(prepared().mutex);
    const auto at = prepared().by_function.find(function);
    if (at != prepared().by_function.end()) p = at->second;
  }
  if (width < 1 || height < 1) return kInvalidValue;
  size_t size = p.arguments.size();
  void* extra[] = {reinterpret_cast<void*>(1), p.arguments.data(),  // CU_LAUNCH_PARAM_BUFFER_*
                   reinterpret_cast<void*>(2), &size, nullptr};
  return cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                        p.block.x, p.block.y, p.block.z, p.shared_bytes, stream, nullptr, extra);
}

}  // namespace

GPUSIM_CUDA_API int cuFuncSetBlockShape(void* function, int x, int y, int z) {
  return prepare("cuFuncSetBlockShape", function, [&](Prepared& p) {
    require(x > 0 && y > 0 && z > 0);
    p.block = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
  });
}
GPUSIM_CUDA_API int cuFuncSetSharedSize(void* function, unsigned bytes) {
  return prepare("cuFuncSetSharedSize", function, [&](Prepared& p) { p.shared_bytes = bytes; });
}
GPUSIM_CUDA_API int cuParamSetSize(void* function, unsigned bytes) {
  return prepare("cuParamSetSize", function, [&](Prepared& p) {
    require(bytes <= kMostArgumentBytes);
    p.arguments.resize(bytes);
  });
}
GPUSIM_CUDA_API int cuParamSeti(void* function, int offset, unsigned value) {
  return prepare("cuParamSeti", function,
                 [&](Prepared& p) { put(p, offset, &value, sizeof value); });
}
GPUSIM_CUDA_API int cuParamSetf(void* function, int offset, float value) {
  return prepare("cuParamSetf", function,
                 [&](Prepared& p) { put(p, offset, &value, sizeof value); });
}
GPUSIM_CUDA_API int cuParamSetv(void* function, int offset, const void* bytes, unsigned size) {
  return prepare("cuParamSetv", function, [&](Prepared& p) { put(p, offset, bytes, size); });
}
GPUSIM_CUDA_API int cuLaunch(void* function) { return launch_prepared(function, 1, 1, nullptr); }
GPUSIM_CUDA_API int cuLaunchGrid(void* function, int width, int height) {
  return launch_prepared(function, width, height, nullptr);
}
GPUSIM_CUDA_API int cuLaunchGridAsync(void* function, int width, int height, void* stream) {
  return launch_prepared(function, width, height, stream);
}

// The largest block among those with which most threads are resident.
GPUSIM_CUDA_API int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function,
                                                     size_t (*shared_of)(int), size_t shared_bytes,
                                                     int most) {
  return driver_call("cuOccupancyMaxPotentialBlockSize", [&] {
    require(grid != nullptr && block != nullptr);
    Runtime& r = runtime();
    const KernelFacts& facts = r.facts_of(r.function(function));
    const Chip& chip = r.chip();
    int largest = static_cast<int>(facts.max_threads);
    if (most > 0) largest = std::min(largest, most);
    int best = 0, resident = 0;
    for (int size = (largest + kWarp - 1) / kWarp * kWarp; size > 0; size -= kWarp) {
      const int threads = std::min(size, largest);
      const size_t dynamic = shared_of != nullptr ? shared_of(threads) : shared_bytes;
      const int blocks = resident_blocks(chip, static_cast<unsigned>(threads), facts.registers,
                                         facts.static_shared_bytes + dynamic);
      if (blocks * threads > resident) {
        resident = blocks * threads;
        best = threads;
        *grid = blocks * static_cast<int>(chip.sms);
      }
      if (resident == chip.threads_per_sm) break;
    }
    require(best != 0);
    *block = best;
  });
}
GPUSIM_CUDA_API int cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, void* function,
                                                              size_t (*shared_of)(int),
                                                              size_t shared_bytes, int most,
                                                              unsigned) {
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of, shared_bytes, most);
}

GPUSIM_CUDA_API int cuMemHostRegister_v2(void* host, size_t size, unsigned flags) {
  return borrowed("cuMemHostRegister", [&] { return cudaHostRegister(host, size, flags); });
}
GPUSIM_CUDA_API int cuMemHostUnregister(void* host) {
  return borrowed("cuMemHostUnregister", [&] { return cudaHostUnregister(host); });
}

GPUSIM_CUDA_API int cuProfilerStart() {
  return driver_call("cuProfilerStart", [] {});
}
GPUSIM_CUDA_API int cuProfilerStop() {
  return driver_call("cuProfilerStop", [] {});
}

// There is one device, and a device is no peer of itself.
GPUSIM_CUDA_API int cudaDeviceGetP2PAttribute(int* value, int, int, int) {
  return call("cudaDeviceGetP2PAttribute", [&] {
    require(value != nullptr);
    refuse(kInvalidDevice);
  });
}
GPUSIM_CUDA_API int cuDeviceGetP2PAttribute(int* value, int, int, int) {
  return driver_call("cuDeviceGetP2PAttribute", [&] {
    require(value != nullptr);
    refuse(kInvalidDevice);
  });
}
GPUSIM_CUDA_API int cuCtxEnablePeerAccess(void*, unsigned) {
  return driver_call("cuCtxEnablePeerAccess", [] { refuse(kPeerAccessUnsupported); });
}
GPUSIM_CUDA_API int cuCtxDisablePeerAccess(void*) {
  return driver_call("cuCtxDisablePeerAccess", [] { refuse(kPeerAccessNotEnabled); });
}
