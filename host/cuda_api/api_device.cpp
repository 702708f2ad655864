// Runtime API: devices, errors, limits, versions.
#include <algorithm>
#include <cstring>

#include "host/cuda_api/runtime.h"
#include "host/ptx/error_texts.h"

using namespace gpusim::cuda_api;

namespace {

using gpusim::ptx::ErrorText, gpusim::ptx::find_error;

constexpr int kVersion = 13000;

void require_device(int device) { require(device == 0, kInvalidDevice); }

}  // namespace

namespace gpusim::cuda_api {

const char* error_name(int number, bool is_driver) {
  const ErrorText* e = find_error(number);
  if (e == nullptr) return nullptr;
  return is_driver ? (e->driver[0] != 0 ? e->driver : nullptr) : e->runtime;
}

const char* error_text(int number) {
  const ErrorText* e = find_error(number);
  return e != nullptr ? e->text : nullptr;
}

}  // namespace gpusim::cuda_api

GPUSIM_CUDA_API const char* cudaGetErrorName(int error) {
  const char* name = error_name(error, false);
  return name != nullptr ? name : "unrecognized error code";
}
GPUSIM_CUDA_API const char* cudaGetErrorString(int error) {
  const char* text = error_text(error);
  return text != nullptr ? text : "unrecognized error code";
}
GPUSIM_CUDA_API int cudaPeekAtLastError() {
  const int sticky = runtime().sticky;
  return sticky != 0 ? sticky : last_error();
}
GPUSIM_CUDA_API int cudaGetLastError() {
  const int error = cudaPeekAtLastError();
  last_error() = 0;
  return error;
}
GPUSIM_CUDA_API int cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] {
    require(count != nullptr);
    *count = 1;
  });
}
GPUSIM_CUDA_API int cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] {
    require(device != nullptr);
    *device = 0;
  });
}
GPUSIM_CUDA_API int cudaSetDevice(int device) {
  return call("cudaSetDevice", [&] { require_device(device); });
}
GPUSIM_CUDA_API int cudaInitDevice(int device, unsigned, unsigned) {
  return call("cudaInitDevice", [&] { require_device(device); });
}
GPUSIM_CUDA_API int cudaSetValidDevices(int* devices, int count) {
  return call("cudaSetValidDevices", [&] {
    for (int i = 0; i < count; ++i) require_device(devices[i]);
  });
}
GPUSIM_CUDA_API int cudaChooseDevice(int* device, const DeviceProp*) {
  return cudaGetDevice(device);
}
GPUSIM_CUDA_API int cudaSetDeviceFlags(unsigned) {
  return call("cudaSetDeviceFlags", [] {});
}
GPUSIM_CUDA_API int cudaGetDeviceFlags(unsigned* flags) {
  return call("cudaGetDeviceFlags", [&] {
    require(flags != nullptr);
    *flags = 8;  // cudaDeviceMapHost
  });
}
GPUSIM_CUDA_API int cudaGetDeviceProperties(DeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&] {
    require(properties != nullptr);
    require_device(device);
    *properties = properties_of(runtime().chip());
  });
}
GPUSIM_CUDA_API int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return call("cudaDeviceGetAttribute", [&] {
    require(value != nullptr);
    require_device(device);
    require(attribute_of(runtime().chip(), attribute, *value));
  });
}
GPUSIM_CUDA_API int cudaDeviceGetPCIBusId(char* text, int size, int device) {
  return call("cudaDeviceGetPCIBusId", [&] {
    require(text != nullptr && size >= 13);
    require_device(device);
    std::memcpy(text, "0000:00:00.0", 13);
  });
}
GPUSIM_CUDA_API int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return call("cudaDeviceGetByPCIBusId", [&] {
    require(device != nullptr && text != nullptr);
    require(std::strcmp(text, "0000:00:00.0") == 0, kInvalidDevice);
    *device = 0;
  });
}
GPUSIM_CUDA_API int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", [&] {
    require(can != nullptr);
    require_device(device);
    require_device(peer);
    *can = 0;
  });
}
GPUSIM_CUDA_API int cudaDeviceEnablePeerAccess(int, unsigned) {
  return call("cudaDeviceEnablePeerAccess", [] { refuse(kInvalidDevice); });
}
GPUSIM_CUDA_API int cudaDeviceDisablePeerAccess(int) {
  return call("cudaDeviceDisablePeerAccess", [] { refuse(kPeerAccessNotEnabled); });
}
GPUSIM_CUDA_API int cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [] { runtime().synchronize_device(); });
}
GPUSIM_CUDA_API int cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
GPUSIM_CUDA_API int cudaDeviceReset() {
  RecordedCall recorded("cudaDeviceReset");
  try {
    runtime().reset();
    return recorded.end(kSuccess);
  } catch (...) {
    return recorded.end(keep_error(status_of_exception("cudaDeviceReset")));
  }
}
GPUSIM_CUDA_API int cudaThreadExit() { return cudaDeviceReset(); }
GPUSIM_CUDA_API int cudaDeviceSetCacheConfig(int) {
  return call("cudaDeviceSetCacheConfig", [] {});
}
GPUSIM_CUDA_API int cudaDeviceGetCacheConfig(int* config) {
  return call("cudaDeviceGetCacheConfig", [&] {
    require(config != nullptr);
    *config = 0;
  });
}
GPUSIM_CUDA_API int cudaDeviceSetSharedMemConfig(int) {
  return call("cudaDeviceSetSharedMemConfig", [] {});
}
GPUSIM_CUDA_API int cudaDeviceGetSharedMemConfig(int* config) {
  return call("cudaDeviceGetSharedMemConfig", [&] {
    require(config != nullptr);
    *config = 1;  // banks of four bytes
  });
}
GPUSIM_CUDA_API int cudaDeviceSetLimit(int limit, size_t value) {
  return call("cudaDeviceSetLimit", [&] {
    const std::lock_guard lock(runtime().mutex);
    require(runtime().limits.contains(limit), kUnsupportedLimit);
    runtime().limits[limit] = value;
  });
}
GPUSIM_CUDA_API int cudaDeviceGetLimit(size_t* value, int limit) {
  return call("cudaDeviceGetLimit", [&] {
    require(value != nullptr);
    const std::lock_guard lock(runtime().mutex);
    require(runtime().limits.contains(limit), kUnsupportedLimit);
    *value = runtime().limits[limit];
  });
}
GPUSIM_CUDA_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&] {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
  });
}
GPUSIM_CUDA_API int cudaCtxResetPersistingL2Cache() {
  return call("cudaCtxResetPersistingL2Cache", [] {});
}
GPUSIM_CUDA_API int cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&] {
    require(version != nullptr);
    *version = kVersion;
  });
}
GPUSIM_CUDA_API int cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [&] {
    require(version != nullptr);
    *version = kVersion;
  });
}
GPUSIM_CUDA_API int cudaProfilerStart() {
  return call("cudaProfilerStart", [] {});
}
GPUSIM_CUDA_API int cudaProfilerStop() {
  return call("cudaProfilerStop", [] {});
}
