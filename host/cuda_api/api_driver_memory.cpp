// Driver API: memory, streams, events, linking. Streams and events are the runtime's.
#include <dlfcn.h>

#include <cstring>
#include <map>
#include <string_view>

#include "host/cuda_api/copies.h"
#include "host/cuda_api/driver.h"

using namespace gpusim::cuda_api;

extern "C" {
int cudaStreamCreateWithPriority(void**, unsigned, int);
int cudaStreamDestroy(void*);
int cudaStreamSynchronize(void*);
int cudaStreamQuery(void*);
int cudaStreamWaitEvent(void*, void*, unsigned);
int cudaStreamAddCallback(void*, void (*)(void*, int, void*), void*, unsigned);
int cudaLaunchHostFunc(void*, HostFunction, void*);
int cudaEventCreateWithFlags(void**, unsigned);
int cudaEventDestroy(void*);
int cudaEventRecord(void*, void*);
int cudaEventQuery(void*);
int cudaEventSynchronize(void*);
int cudaEventElapsedTime(float*, void*, void*);
}

namespace {

using Address = uint64_t;
void* pointer(Address address) { return reinterpret_cast<void*>(address); }

struct Link {
  LinkedTexts texts;
};
struct Links {
  std::mutex mutex;
  std::set<Link*> open;
  std::map<const void*, LinkedTexts> images;
};
Links& links() {
  static Links* const only = new Links;
  return *only;
}

bool is_ptx_text(const void* data, size_t size) {
  const std::string_view text(static_cast<const char*>(data), size);
  return text.substr(0, text.find('\0')).find(".address_size") != std::string_view::npos;
}

Link& link_of(void* handle) {
  const auto at = links().open.find(static_cast<Link*>(handle));
  require(at != links().open.end(), kInvalidResourceHandle);
  return **at;
}

}  // namespace

namespace gpusim::cuda_api {

bool find_linked(const void* image, LinkedTexts& texts) {
  const std::lock_guard lock(links().mutex);
  const auto at = links().images.find(image);
  if (at == links().images.end()) return false;
  texts = at->second;
  return true;
}

void* own_library() {
  static void* const handle = [] {
    Dl_info self{};
    return ::dladdr(reinterpret_cast<void*>(&own_library), &self) != 0
               ? ::dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
               : nullptr;
  }();
  return handle;
}

int driver_status(int status) {
  switch (status) {
    case kInvalidConfiguration:
    case kInvalidPitchValue:
    case kInvalidMemcpyDirection:
    case kInvalidChannelDescriptor:
    case kInvalidFilterSetting:
    case kInvalidNormSetting:
      return kInvalidValue;
    case kInvalidDeviceFunction:
      return kInvalidResourceHandle;
    case kInvalidSymbol:
      return kSymbolNotFound;
    default:
      return status;
  }
}

}  // namespace gpusim::cuda_api

GPUSIM_CUDA_API int cuMemAlloc_v2(Address* address, size_t size) {
  return driver_call("cuMemAlloc", [&] {
    require(address != nullptr && size != 0);
    *address = reinterpret_cast<Address>(allocate(size, kDeviceMemory));
  });
}
GPUSIM_CUDA_API int cuMemAllocManaged(Address* address, size_t size, unsigned flags) {
  return driver_call("cuMemAllocManaged", [&] {
    require(address != nullptr && size != 0);
    *address = reinterpret_cast<Address>(allocate(size, kManagedMemory, flags));
  });
}
GPUSIM_CUDA_API int cuMemAllocPitch_v2(Address* address, size_t* pitch, size_t width, size_t height,
                                       unsigned element_bytes) {
  return driver_call("cuMemAllocPitch", [&] {
    require(address != nullptr && pitch != nullptr && width != 0 && height != 0 &&
            (element_bytes == 4 || element_bytes == 8 || element_bytes == 16));
    *pitch = (width + 511) / 512 * 512;
    size_t size = 0;
    require(!__builtin_mul_overflow(*pitch, height, &size));
    *address = reinterpret_cast<Address>(allocate(size, kDeviceMemory));
  });
}
GPUSIM_CUDA_API int cuMemFree_v2(Address address) {
  return driver_call("cuMemFree", [&] { release(pointer(address), false); });
}
GPUSIM_CUDA_API int cuMemAllocHost_v2(void** host, size_t size) {
  return driver_call("cuMemAllocHost", [&] {
    require(host != nullptr);
    *host = allocate(size, kHostMemory);
  });
}
GPUSIM_CUDA_API int cuMemHostAlloc(void** host, size_t size, unsigned flags) {
  return driver_call("cuMemHostAlloc", [&] {
    require(host != nullptr);
    *host = allocate(size, kHostMemory, flags);
  });
}
GPUSIM_CUDA_API int cuMemFreeHost(void* host) {
  return driver_call("cuMemFreeHost", [&] { release(host, true); });
}
GPUSIM_CUDA_API int cuMemHostGetDevicePointer_v2(Address* address, void* host, unsigned) {
  return driver_call("cuMemHostGetDevicePointer", [&] {
    require(address != nullptr);
    runtime().check_device(host, 1);
    *address = reinterpret_cast<Address>(host);
  });
}
GPUSIM_CUDA_API int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return driver_call("cuMemGetInfo", [&] {
    require(free_bytes != nullptr && total != nullptr);
    *total = size_t{runtime().chip().memory_mib} << 20;
    *free_bytes = runtime().memory.free_bytes();
  });
}
GPUSIM_CUDA_API int cuMemGetAddressRange_v2(Address* base, size_t* size, Address address) {
  return driver_call("cuMemGetAddressRange", [&] {
    const auto block = runtime().memory.find(pointer(address));
    require(block.has_value(), kSymbolNotFound);
    if (base != nullptr) *base = reinterpret_cast<Address>(block->address);
    if (size != nullptr) *size = block->size_bytes;
  });
}
GPUSIM_CUDA_API int cuMemcpy(Address to, Address from, size_t size) {
  return driver_call("cuMemcpy",
                     [&] { copy(pointer(to), pointer(from), size, kCopyDefault, nullptr, true); });
}
GPUSIM_CUDA_API int cuMemcpyAsync(Address to, Address from, size_t size, void* stream) {
  return driver_call("cuMemcpyAsync",
                     [&] { copy(pointer(to), pointer(from), size, kCopyDefault, stream, false); });
}
GPUSIM_CUDA_API int cuMemcpyHtoD_v2(Address to, const void* from, size_t size) {
  return driver_call("cuMemcpyHtoD",
                     [&] { copy(pointer(to), from, size, kHostToDevice, nullptr, true); });
}
GPUSIM_CUDA_API int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t size, void* stream) {
  return driver_call("cuMemcpyHtoDAsync",
                     [&] { copy(pointer(to), from, size, kHostToDevice, stream, false); });
}
GPUSIM_CUDA_API int cuMemcpyDtoH_v2(void* to, Address from, size_t size) {
  return driver_call("cuMemcpyDtoH",
                     [&] { copy(to, pointer(from), size, kDeviceToHost, nullptr, true); });
}
GPUSIM_CUDA_API int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t size, void* stream) {
  return driver_call("cuMemcpyDtoHAsync",
                     [&] { copy(to, pointer(from), size, kDeviceToHost, stream, false); });
}
GPUSIM_CUDA_API int cuMemcpyDtoD_v2(Address to, Address from, size_t size) {
  return driver_call("cuMemcpyDtoD", [&] {
    copy(pointer(to), pointer(from), size, kDeviceToDevice, nullptr, true);
  });
}
GPUSIM_CUDA_API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t size, void* stream) {
  return driver_call("cuMemcpyDtoDAsync", [&] {
    copy(pointer(to), pointer(from), size, kDeviceToDevice, stream, false);
  });
}

#define SET(bits, type)                                                                            \
  GPUSIM_CUDA_API int cuMemsetD##bits##_v2(Address to, type value, size_t count) {                 \
    return driver_call("cuMemsetD" #bits, [&] {                                                    \
      set(pointer(to), 0, value, sizeof(type), count, 1, nullptr, true);                           \
    });                                                                                            \
  }                                                                                                \
  GPUSIM_CUDA_API int cuMemsetD##bits##Async(Address to, type value, size_t count, void* stream) { \
    return driver_call("cuMemsetD" #bits "Async", [&] {                                            \
      set(pointer(to), 0, value, sizeof(type), count, 1, stream, false);                           \
    });                                                                                            \
  }
SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)
#undef SET

GPUSIM_CUDA_API int cuStreamCreate(void** stream, unsigned flags) {
  return borrowed("cuStreamCreate", [&] { return cudaStreamCreateWithPriority(stream, flags, 0); });
}
GPUSIM_CUDA_API int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return borrowed("cuStreamCreateWithPriority",
                  [&] { return cudaStreamCreateWithPriority(stream, flags, priority); });
}
GPUSIM_CUDA_API int cuStreamDestroy_v2(void* stream) {
  return borrowed("cuStreamDestroy", [&] { return cudaStreamDestroy(stream); });
}
GPUSIM_CUDA_API int cuStreamSynchronize(void* stream) {
  return borrowed("cuStreamSynchronize", [&] { return cudaStreamSynchronize(stream); });
}
GPUSIM_CUDA_API int cuStreamQuery(void* stream) {
  return borrowed("cuStreamQuery", [&] { return cudaStreamQuery(stream); });
}
GPUSIM_CUDA_API int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return borrowed("cuStreamWaitEvent", [&] { return cudaStreamWaitEvent(stream, event, flags); });
}
GPUSIM_CUDA_API int cuStreamAddCallback(void* stream, void (*function)(void*, int, void*),
                                        void* argument, unsigned flags) {
  return borrowed("cuStreamAddCallback",
                  [&] { return cudaStreamAddCallback(stream, function, argument, flags); });
}
GPUSIM_CUDA_API int cuLaunchHostFunc(void* stream, HostFunction function, void* argument) {
  return borrowed("cuLaunchHostFunc",
                  [&] { return cudaLaunchHostFunc(stream, function, argument); });
}
GPUSIM_CUDA_API int cuEventCreate(void** event, unsigned flags) {
  return borrowed("cuEventCreate", [&] { return cudaEventCreateWithFlags(event, flags); });
}
GPUSIM_CUDA_API int cuEventDestroy_v2(void* event) {
  return borrowed("cuEventDestroy", [&] { return cudaEventDestroy(event); });
}
GPUSIM_CUDA_API int cuEventRecord(void* event, void* stream) {
  return borrowed("cuEventRecord", [&] { return cudaEventRecord(event, stream); });
}
GPUSIM_CUDA_API int cuEventQuery(void* event) {
  return borrowed("cuEventQuery", [&] { return cudaEventQuery(event); });
}
GPUSIM_CUDA_API int cuEventSynchronize(void* event) {
  return borrowed("cuEventSynchronize", [&] { return cudaEventSynchronize(event); });
}
GPUSIM_CUDA_API int cuEventElapsedTime_v2(float* milliseconds, void* begin, void* end) {
  return borrowed("cuEventElapsedTime",
                  [&] { return cudaEventElapsedTime(milliseconds, begin, end); });
}

// Linking PTX: the texts are kept, and linked when the image is loaded.
GPUSIM_CUDA_API int cuLinkCreate_v2(unsigned, int*, void**, void** state) {
  return driver_call("cuLinkCreate", [&] {
    require(state != nullptr);
    const std::lock_guard lock(links().mutex);
    *state = *links().open.insert(new Link).first;
  });
}
GPUSIM_CUDA_API int cuLinkAddData_v2(void* state, int type, void* data, size_t size,
                                     const char* name, unsigned, int*, void**) {
  return driver_call("cuLinkAddData", [&] {
    require(data != nullptr);
    // CU_JIT_INPUT_PTX; or CU_JIT_INPUT_CUBIN, of NVRTC, which gives PTX here (nvrtc.cpp)
    const bool is_text = type == 1 || (type == 0 && size != 0 && is_ptx_text(data, size));
    if (!is_text) {
      say("cuLinkAddData: only PTX can be linked, and this is machine code or a library");
      refuse(kNotSupported);
    }
    const std::lock_guard lock(links().mutex);
    const auto* text = static_cast<const char*>(data);
    link_of(state).texts.push_back(
        {name != nullptr ? name : "", std::string(text, ::strnlen(text, size))});
  });
}
GPUSIM_CUDA_API int cuLinkComplete(void* state, void** image, size_t* size) {
  return driver_call("cuLinkComplete", [&] {
    require(image != nullptr);
    const std::lock_guard lock(links().mutex);
    Link& link = link_of(state);
    require(!link.texts.empty());
    // The image's address stands for the texts. It is valid until the state is destroyed.
    links().images[&link] = link.texts;
    *image = &link;
    if (size != nullptr) *size = sizeof link;
  });
}
GPUSIM_CUDA_API int cuLinkDestroy(void* state) {
  return driver_call("cuLinkDestroy", [&] {
    const std::lock_guard lock(links().mutex);
    Link* const link = &link_of(state);
    links().images.erase(link);
    links().open.erase(link);
    delete link;
  });
}
