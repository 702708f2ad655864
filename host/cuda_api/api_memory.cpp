// Runtime API: memory, copies, symbols.
#include <algorithm>
#include <cstring>

#include "host/cuda_api/alias.h"
#include "host/cuda_api/copies.h"
#include "host/cuda_api/runtime.h"

using namespace gpusim::cuda_api;

namespace {

constexpr size_t kPitch = 512;

void* given(void* pointer) { return pointer; }

Box box_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
           size_t height) {
  return {.to = static_cast<char*>(to),
          .to_pitch = to_pitch,
          .to_slice = 0,
          .from = static_cast<const char*>(from),
          .from_pitch = from_pitch,
          .from_slice = 0,
          .width = width,
          .height = height};
}

void allocate_pitched(PitchedPtr* pointer, size_t width, size_t height, size_t depth) {
  require(pointer != nullptr);
  const size_t pitch = (width + kPitch - 1) / kPitch * kPitch;
  size_t size = 0;
  require(pitch >= width && !__builtin_mul_overflow(pitch, height, &size) &&
          !__builtin_mul_overflow(size, depth, &size));
  *pointer = {allocate(size, kDeviceMemory), pitch, width, height};
}

char* symbol_bytes(const void* symbol, size_t offset, size_t count) {
  const DeviceVariable& v = runtime().variable(symbol);
  require(offset <= v.size_bytes && count <= v.size_bytes - offset);
  return static_cast<char*>(v.address) + offset;
}

void set_3d(PitchedPtr p, int value, Extent extent, void* stream, bool is_waiting) {
  for (size_t z = 0; z < extent.depth; ++z)
    set(static_cast<char*>(p.ptr) + z * p.pitch * p.ysize, p.pitch, static_cast<uint32_t>(value), 1,
        extent.width, extent.height, stream, is_waiting);
}

}  // namespace

GPUSIM_CUDA_API int cudaMalloc(void** pointer, size_t size) {
  return call("cudaMalloc", [&] {
    require(pointer != nullptr);
    *pointer = allocate(size, kDeviceMemory);
  });
}
GPUSIM_CUDA_API int cudaFree(void* pointer) {
  return call("cudaFree", [&] { release(pointer, false); });
}
GPUSIM_CUDA_API int cudaMallocManaged(void** pointer, size_t size, unsigned flags) {
  return call("cudaMallocManaged", [&] {
    require(pointer != nullptr && size != 0 && (flags == 1 || flags == 2));
    *pointer = allocate(size, kManagedMemory, flags);
  });
}
GPUSIM_CUDA_API int cudaMallocHost(void** pointer, size_t size) {
  return call("cudaMallocHost", [&] {
    require(pointer != nullptr);
    *pointer = allocate(size, kHostMemory);
  });
}
GPUSIM_CUDA_API int cudaHostAlloc(void** pointer, size_t size, unsigned flags) {
  return call("cudaHostAlloc", [&] {
    require(pointer != nullptr && flags <= 7);
    *pointer = allocate(size, kHostMemory, flags);
  });
}
GPUSIM_CUDA_API int cudaFreeHost(void* pointer) {
  return call("cudaFreeHost", [&] { release(pointer, true); });
}
GPUSIM_CUDA_API int cudaHostRegister(void* pointer, size_t size, unsigned flags) {
  return call("cudaHostRegister", [&] {
    require(pointer != nullptr && size != 0);
    Runtime& r = runtime();
    const std::string origin = "registered by " + numbered_call();
    require(r.memory.add(pointer, size, kHostMemory, origin, flags), kHostMemoryAlreadyRegistered);
    r.engine_for_memory().add_memory(pointer, size, "host memory", origin, false);
  });
}
GPUSIM_CUDA_API int cudaHostUnregister(void* pointer) {
  return call("cudaHostUnregister", [&] {
    Runtime& r = runtime();
    const auto block = r.memory.find(pointer);
    require(
        block && block->is_registered && block->type == kHostMemory && block->address == pointer,
        kHostMemoryNotRegistered);
    r.synchronize_device();
    const std::string by = "unregistered by " + numbered_call();
    r.engine_for_memory().remove_memory(pointer, by);
    r.memory.remove(pointer, by);
  });
}
GPUSIM_CUDA_API int cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return call("cudaHostGetDevicePointer", [&] {
    require(device != nullptr && flags == 0);
    runtime().check_device(host, 1);
    *device = host;
  });
}
GPUSIM_CUDA_API int cudaHostGetFlags(unsigned* flags, void* host) {
  return call("cudaHostGetFlags", [&] {
    require(flags != nullptr);
    const auto block = runtime().memory.find(host);
    require(block && block->type == kHostMemory);
    *flags = block->flags | 2;  // always mapped
  });
}
GPUSIM_CUDA_API int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call("cudaMallocPitch", [&] {
    require(pointer != nullptr && pitch != nullptr);
    PitchedPtr made{};
    allocate_pitched(&made, width, height, 1);
    *pointer = made.ptr;
    *pitch = made.pitch;
  });
}
GPUSIM_CUDA_API int cudaMalloc3D(PitchedPtr* pointer, Extent extent) {
  return call("cudaMalloc3D",
              [&] { allocate_pitched(pointer, extent.width, extent.height, extent.depth); });
}
GPUSIM_CUDA_API int cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return call("cudaMemGetInfo", [&] {
    require(free_bytes != nullptr && total != nullptr);
    Runtime& r = runtime();
    *total = size_t{r.chip().memory_mib} << 20;
    *free_bytes = r.memory.free_bytes();
  });
}
GPUSIM_CUDA_API int cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  return call("cudaPointerGetAttributes", [&] {
    require(attributes != nullptr);
    *attributes = {};
    attributes->device = -2;  // cudaInvalidDeviceId
    const auto block = runtime().memory.find(pointer);
    if (!block) {
      attributes->host_pointer = const_cast<void*>(pointer);
      return;
    }
    attributes->type = block->type;
    attributes->device = 0;
    attributes->device_pointer = const_cast<void*>(pointer);
    if (block->type != kDeviceMemory) attributes->host_pointer = const_cast<void*>(pointer);
  });
}

GPUSIM_CUDA_API int cudaMemcpy(void* to, const void* from, size_t size, CopyKind kind) {
  return call("cudaMemcpy", [&] { copy(to, from, size, kind, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemcpyAsync(void* to, const void* from, size_t size, CopyKind kind,
                                    void* stream) {
  return call("cudaMemcpyAsync", [&] { copy(to, from, size, kind, stream, false); });
}
GPUSIM_CUDA_API int cudaMemcpyPeer(void* to, int, const void* from, int, size_t size) {
  return call("cudaMemcpyPeer", [&] { copy(to, from, size, kDeviceToDevice, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size,
                                        void* stream) {
  return call("cudaMemcpyPeerAsync", [&] { copy(to, from, size, kDeviceToDevice, stream, false); });
}
GPUSIM_CUDA_API int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                 size_t width, size_t height, CopyKind kind) {
  return call("cudaMemcpy2D", [&] {
    copy(box_2d(to, to_pitch, from, from_pitch, width, height), kind, nullptr, true);
  });
}
GPUSIM_CUDA_API int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                      size_t from_pitch, size_t width, size_t height, CopyKind kind,
                                      void* stream) {
  return call("cudaMemcpy2DAsync", [&] {
    copy(box_2d(to, to_pitch, from, from_pitch, width, height), kind, stream, false);
  });
}
GPUSIM_CUDA_API int cudaMemcpy3D(const Memcpy3DParms* p) {
  return call("cudaMemcpy3D", [&] {
    require(p != nullptr);
    copy(box_of(*p), p->kind, nullptr, true);
  });
}
GPUSIM_CUDA_API int cudaMemcpy3DAsync(const Memcpy3DParms* p, void* stream) {
  return call("cudaMemcpy3DAsync", [&] {
    require(p != nullptr);
    copy(box_of(*p), p->kind, stream, false);
  });
}
GPUSIM_CUDA_API int cudaMemset(void* to, int value, size_t count) {
  return call("cudaMemset",
              [&] { set(to, 0, static_cast<uint32_t>(value), 1, count, 1, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemsetAsync(void* to, int value, size_t count, void* stream) {
  return call("cudaMemsetAsync",
              [&] { set(to, 0, static_cast<uint32_t>(value), 1, count, 1, stream, false); });
}
GPUSIM_CUDA_API int cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call("cudaMemset2D", [&] {
    set(to, pitch, static_cast<uint32_t>(value), 1, width, height, nullptr, true);
  });
}
GPUSIM_CUDA_API int cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width,
                                      size_t height, void* stream) {
  return call("cudaMemset2DAsync", [&] {
    set(to, pitch, static_cast<uint32_t>(value), 1, width, height, stream, false);
  });
}
GPUSIM_CUDA_API int cudaMemset3D(PitchedPtr p, int value, Extent extent) {
  return call("cudaMemset3D", [&] { set_3d(p, value, extent, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemset3DAsync(PitchedPtr p, int value, Extent extent, void* stream) {
  return call("cudaMemset3DAsync", [&] { set_3d(p, value, extent, stream, false); });
}

GPUSIM_CUDA_API int cudaGetSymbolAddress(void** address, const void* symbol) {
  return call("cudaGetSymbolAddress", [&] {
    require(address != nullptr);
    *address = given(runtime().variable(symbol).address);
  });
}
GPUSIM_CUDA_API int cudaGetSymbolSize(size_t* size, const void* symbol) {
  return call("cudaGetSymbolSize", [&] {
    require(size != nullptr);
    *size = runtime().variable(symbol).size_bytes;
  });
}
GPUSIM_CUDA_API int cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count,
                                       size_t offset, CopyKind kind) {
  return call("cudaMemcpyToSymbol", [&] {
    require(kind != kDeviceToHost && kind != kHostToHost, kInvalidMemcpyDirection);
    copy(symbol_bytes(symbol, offset, count), from, count, kind, nullptr, true);
  });
}
GPUSIM_CUDA_API int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count,
                                            size_t offset, CopyKind kind, void* stream) {
  return call("cudaMemcpyToSymbolAsync", [&] {
    require(kind != kDeviceToHost && kind != kHostToHost, kInvalidMemcpyDirection);
    copy(symbol_bytes(symbol, offset, count), from, count, kind, stream, false);
  });
}
GPUSIM_CUDA_API int cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset,
                                         CopyKind kind) {
  return call("cudaMemcpyFromSymbol", [&] {
    require(kind != kHostToDevice && kind != kHostToHost, kInvalidMemcpyDirection);
    copy(to, symbol_bytes(symbol, offset, count), count, kind, nullptr, true);
  });
}
GPUSIM_CUDA_API int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t count,
                                              size_t offset, CopyKind kind, void* stream) {
  return call("cudaMemcpyFromSymbolAsync", [&] {
    require(kind != kHostToDevice && kind != kHostToHost, kInvalidMemcpyDirection);
    copy(to, symbol_bytes(symbol, offset, count), count, kind, stream, false);
  });
}

// Managed memory is where everybody sees it: hints change nothing.
GPUSIM_CUDA_API int cudaMemPrefetchAsync(const void* pointer, size_t size, MemLocation, unsigned,
                                         void*) {
  return call("cudaMemPrefetchAsync", [&] { runtime().check_device(pointer, size); });
}
GPUSIM_CUDA_API int cudaMemAdvise(const void* pointer, size_t size, int, MemLocation) {
  return call("cudaMemAdvise", [&] { runtime().check_device(pointer, size); });
}

GPUSIM_ALIAS(cudaMemcpy, _ptds)
GPUSIM_ALIAS(cudaMemcpy2D, _ptds)
GPUSIM_ALIAS(cudaMemcpy3D, _ptds)
GPUSIM_ALIAS(cudaMemset, _ptds)
GPUSIM_ALIAS(cudaMemset2D, _ptds)
GPUSIM_ALIAS(cudaMemset3D, _ptds)
GPUSIM_ALIAS(cudaMemcpyToSymbol, _ptds)
GPUSIM_ALIAS(cudaMemcpyFromSymbol, _ptds)
GPUSIM_ALIAS(cudaMemcpyAsync, _ptsz)
GPUSIM_ALIAS(cudaMemcpy2DAsync, _ptsz)
GPUSIM_ALIAS(cudaMemcpy3DAsync, _ptsz)
GPUSIM_ALIAS(cudaMemsetAsync, _ptsz)
GPUSIM_ALIAS(cudaMemset2DAsync, _ptsz)
GPUSIM_ALIAS(cudaMemset3DAsync, _ptsz)
GPUSIM_ALIAS(cudaMemcpyToSymbolAsync, _ptsz)
GPUSIM_ALIAS(cudaMemcpyFromSymbolAsync, _ptsz)
GPUSIM_ALIAS(cudaMemPrefetchAsync, _ptsz)
