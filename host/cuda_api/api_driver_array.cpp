// Driver API: arrays, and copies of boxes between arrays and memory.
#include "host/cuda_api/arrays.h"
#include "host/cuda_api/driver.h"

using namespace gpusim::cuda_api;

namespace {

using Address = uint64_t;
void* pointer(Address address) { return reinterpret_cast<void*>(address); }

Arrays& arrays() { return Arrays::instance(); }

Array* make(const DriverArray3D* d) {
  require(d != nullptr);
  return arrays().make(desc_of(d->format, d->channels), {d->width, d->height, d->depth}, d->flags);
}

// One side of a copy: CUmemorytype 1 host, 2 device, 3 array, 4 by its address.
struct Side {
  size_t x, y, z;
  int type;
  const void* host;
  Address device;
  void* array;
  size_t pitch, height;
};
struct Rows {
  char* first;
  size_t pitch, slice;
};

Rows rows_of(const Side& s, const Extent& size) {
  if (s.type == 3) {
    const Array& a = arrays().array(s.array);
    return {a.at({s.x, s.y, s.z}, size), a.row_bytes(), a.slice_bytes()};
  }
  require(s.type == 1 || s.type == 2 || s.type == 4);
  char* const base = s.type == 1 ? static_cast<char*>(const_cast<void*>(s.host))
                                 : static_cast<char*>(pointer(s.device));
  size_t pitch = s.pitch, height = s.height, slice = 0;
  require(pitch != 0 || !__builtin_add_overflow(s.x, size.width, &pitch));
  require(height != 0 || !__builtin_add_overflow(s.y, size.height, &height));
  require(!__builtin_mul_overflow(pitch, height, &slice));
  return {base + offset_of({s.x, s.y, s.z}, pitch, slice), pitch, slice};
}

CopyKind kind_of(const Side& from, const Side& to) {
  if (from.type == 4 || to.type == 4) return kCopyDefault;
  if (from.type == 1) return to.type == 1 ? kHostToHost : kHostToDevice;
  return to.type == 1 ? kDeviceToHost : kDeviceToDevice;
}

void copy_box(const Side& from, const Side& to, const Extent& size, void* stream, bool is_waiting) {
  const Rows source = rows_of(from, size), target = rows_of(to, size);
  copy({.to = target.first,
        .to_pitch = target.pitch,
        .to_slice = target.slice,
        .from = source.first,
        .from_pitch = source.pitch,
        .from_slice = source.slice,
        .width = size.width,
        .height = size.height,
        .depth = size.depth},
       kind_of(from, to), stream, is_waiting);
}

void copy_2d(const DriverCopy2D* c, void* stream, bool is_waiting) {
  require(c != nullptr);
  const DriverSide2D &f = c->from, &t = c->to;
  copy_box({f.x, f.y, 0, f.type, f.host, f.device, f.array, f.pitch, 0},
           {t.x, t.y, 0, t.type, t.host, t.device, t.array, t.pitch, 0}, {c->width, c->height, 1},
           stream, is_waiting);
}

void copy_3d(const DriverCopy3D* c, void* stream, bool is_waiting) {
  require(c != nullptr);
  const DriverSide3D &f = c->from, &t = c->to;
  require(f.level == 0 && t.level == 0);
  copy_box({f.x, f.y, f.z, f.type, f.host, f.device, f.array, f.pitch, f.height},
           {t.x, t.y, t.z, t.type, t.host, t.device, t.array, t.pitch, t.height},
           {c->width, c->height, c->depth}, stream, is_waiting);
}

// Bytes of an array of one dimension.
char* run_of(void* array, size_t offset, size_t count) {
  const Array& a = arrays().array(array);
  require(offset <= a.row_bytes() && count <= a.row_bytes() - offset);
  return a.data + offset;
}

}  // namespace

GPUSIM_CUDA_API int cuArrayCreate_v2(void** array, const DriverArray* d) {
  return driver_call("cuArrayCreate", [&] {
    require(array != nullptr && d != nullptr);
    *array = arrays().make(desc_of(d->format, d->channels), {d->width, d->height, 0}, 0);
  });
}
GPUSIM_CUDA_API int cuArray3DCreate_v2(void** array, const DriverArray3D* d) {
  return driver_call("cuArray3DCreate", [&] {
    require(array != nullptr);
    *array = make(d);
  });
}
GPUSIM_CUDA_API int cuArrayGetDescriptor_v2(DriverArray* d, void* array) {
  return driver_call("cuArrayGetDescriptor", [&] {
    require(d != nullptr);
    const Array& a = arrays().array(array);
    *d = {a.extent.width, a.extent.height, driver_format_of(a.desc), a.format.channels};
  });
}
GPUSIM_CUDA_API int cuArray3DGetDescriptor_v2(DriverArray3D* d, void* array) {
  return driver_call("cuArray3DGetDescriptor", [&] {
    require(d != nullptr);
    const Array& a = arrays().array(array);
    *d = {a.extent.width,           a.extent.height,   a.extent.depth,
          driver_format_of(a.desc), a.format.channels, a.flags};
  });
}
GPUSIM_CUDA_API int cuArrayDestroy(void* array) {
  return driver_call("cuArrayDestroy", [&] {
    require(array != nullptr, kInvalidResourceHandle);
    arrays().free(array);
  });
}
GPUSIM_CUDA_API int cuMipmappedArrayCreate(void** array, const DriverArray3D* d, unsigned levels) {
  return driver_call("cuMipmappedArrayCreate", [&] {
    require(array != nullptr && d != nullptr);
    *array = arrays().make_levels(desc_of(d->format, d->channels), {d->width, d->height, d->depth},
                                  levels, d->flags);
  });
}
GPUSIM_CUDA_API int cuMipmappedArrayGetLevel(void** array, void* mipmapped, unsigned level) {
  return driver_call("cuMipmappedArrayGetLevel", [&] {
    require(array != nullptr);
    const MipmappedArray& m = arrays().mipmapped(mipmapped);
    require(level < m.levels.size());
    *array = m.levels[level].get();
  });
}
GPUSIM_CUDA_API int cuMipmappedArrayDestroy(void* array) {
  return driver_call("cuMipmappedArrayDestroy", [&] {
    require(array != nullptr, kInvalidResourceHandle);
    arrays().free_levels(array);
  });
}

GPUSIM_CUDA_API int cuMemcpy2D_v2(const DriverCopy2D* c) {
  return driver_call("cuMemcpy2D", [&] { copy_2d(c, nullptr, true); });
}
GPUSIM_CUDA_API int cuMemcpy2DUnaligned_v2(const DriverCopy2D* c) {
  return driver_call("cuMemcpy2DUnaligned", [&] { copy_2d(c, nullptr, true); });
}
GPUSIM_CUDA_API int cuMemcpy2DAsync_v2(const DriverCopy2D* c, void* stream) {
  return driver_call("cuMemcpy2DAsync", [&] { copy_2d(c, stream, false); });
}
GPUSIM_CUDA_API int cuMemcpy3D_v2(const DriverCopy3D* c) {
  return driver_call("cuMemcpy3D", [&] { copy_3d(c, nullptr, true); });
}
GPUSIM_CUDA_API int cuMemcpy3DAsync_v2(const DriverCopy3D* c, void* stream) {
  return driver_call("cuMemcpy3DAsync", [&] { copy_3d(c, stream, false); });
}
GPUSIM_CUDA_API int cuMemcpyHtoA_v2(void* array, size_t offset, const void* from, size_t size) {
  return driver_call("cuMemcpyHtoA", [&] {
    copy(run_of(array, offset, size), from, size, kHostToDevice, nullptr, true);
  });
}
GPUSIM_CUDA_API int cuMemcpyHtoAAsync_v2(void* array, size_t offset, const void* from, size_t size,
                                         void* stream) {
  return driver_call("cuMemcpyHtoAAsync", [&] {
    copy(run_of(array, offset, size), from, size, kHostToDevice, stream, false);
  });
}
GPUSIM_CUDA_API int cuMemcpyAtoH_v2(void* to, void* array, size_t offset, size_t size) {
  return driver_call("cuMemcpyAtoH", [&] {
    copy(to, run_of(array, offset, size), size, kDeviceToHost, nullptr, true);
  });
}
GPUSIM_CUDA_API int cuMemcpyAtoHAsync_v2(void* to, void* array, size_t offset, size_t size,
                                         void* stream) {
  return driver_call("cuMemcpyAtoHAsync", [&] {
    copy(to, run_of(array, offset, size), size, kDeviceToHost, stream, false);
  });
}
GPUSIM_CUDA_API int cuMemcpyDtoA_v2(void* array, size_t offset, Address from, size_t size) {
  return driver_call("cuMemcpyDtoA", [&] {
    copy(run_of(array, offset, size), pointer(from), size, kDeviceToDevice, nullptr, true);
  });
}
GPUSIM_CUDA_API int cuMemcpyAtoD_v2(Address to, void* array, size_t offset, size_t size) {
  return driver_call("cuMemcpyAtoD", [&] {
    copy(pointer(to), run_of(array, offset, size), size, kDeviceToDevice, nullptr, true);
  });
}
GPUSIM_CUDA_API int cuMemcpyAtoA_v2(void* to, size_t to_offset, void* from, size_t offset,
                                    size_t size) {
  return driver_call("cuMemcpyAtoA", [&] {
    copy(run_of(to, to_offset, size), run_of(from, offset, size), size, kDeviceToDevice, nullptr,
         true);
  });
}
