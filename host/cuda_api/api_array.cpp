// Runtime API: arrays, and copies with them.
#include "host/cuda_api/alias.h"
#include "host/cuda_api/arrays.h"

using namespace gpusim::cuda_api;

namespace {

Arrays& arrays() { return Arrays::instance(); }

// Offsets and widths in bytes and rows.
Box to_array(void* array, size_t x, size_t y, const void* from, size_t pitch, size_t width,
             size_t height) {
  const Array& a = arrays().array(array);
  return {.to = a.at({x, y, 0}, {width, height, 1}),
          .to_pitch = a.row_bytes(),
          .to_slice = 0,
          .from = static_cast<const char*>(from),
          .from_pitch = pitch,
          .from_slice = 0,
          .width = width,
          .height = height};
}
Box from_array(void* to, size_t pitch, const void* array, size_t x, size_t y, size_t width,
               size_t height) {
  const Array& a = arrays().array(array);
  return {.to = static_cast<char*>(to),
          .to_pitch = pitch,
          .to_slice = 0,
          .from = a.at({x, y, 0}, {width, height, 1}),
          .from_pitch = a.row_bytes(),
          .from_slice = 0,
          .width = width,
          .height = height};
}
Box between_arrays(void* to, size_t to_x, size_t to_y, const void* from, size_t x, size_t y,
                   size_t width, size_t height) {
  const Array& a = arrays().array(from);
  return to_array(to, to_x, to_y, a.at({x, y, 0}, {width, height, 1}), a.row_bytes(), width,
                  height);
}

// Bytes from a place on, over the ends of rows.
char* run_of(const void* array, size_t x, size_t y, size_t count) {
  const Array& a = arrays().array(array);
  char* const at = a.at({x, y, 0}, {0, 0, 0});
  require(count <= a.slice_bytes() - static_cast<size_t>(at - a.data));
  return at;
}

}  // namespace

GPUSIM_CUDA_API ChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int f) {
  return {x, y, z, w, f};
}
GPUSIM_CUDA_API int cudaGetChannelDesc(ChannelFormatDesc* desc, const void* array) {
  return call("cudaGetChannelDesc", [&] {
    require(desc != nullptr);
    *desc = arrays().array(array).desc;
  });
}
GPUSIM_CUDA_API int cudaMallocArray(void** array, const ChannelFormatDesc* desc, size_t width,
                                    size_t height, unsigned flags) {
  return call("cudaMallocArray", [&] {
    require(array != nullptr && desc != nullptr);
    require((flags & (kArrayLayered | kArrayCubemap)) == 0);
    *array = arrays().make(*desc, {width, height, 0}, flags);
  });
}
GPUSIM_CUDA_API int cudaMalloc3DArray(void** array, const ChannelFormatDesc* desc, Extent extent,
                                      unsigned flags) {
  return call("cudaMalloc3DArray", [&] {
    require(array != nullptr && desc != nullptr);
    *array = arrays().make(*desc, extent, flags);
  });
}
GPUSIM_CUDA_API int cudaMallocMipmappedArray(void** array, const ChannelFormatDesc* desc,
                                             Extent extent, unsigned levels, unsigned flags) {
  return call("cudaMallocMipmappedArray", [&] {
    require(array != nullptr && desc != nullptr);
    *array = arrays().make_levels(*desc, extent, levels, flags);
  });
}
GPUSIM_CUDA_API int cudaGetMipmappedArrayLevel(void** array, const void* mipmapped,
                                               unsigned level) {
  return call("cudaGetMipmappedArrayLevel", [&] {
    require(array != nullptr);
    const MipmappedArray& m = arrays().mipmapped(mipmapped);
    require(level < m.levels.size());
    *array = m.levels[level].get();
  });
}
GPUSIM_CUDA_API int cudaFreeArray(void* array) {
  return call("cudaFreeArray", [&] { arrays().free(array); });
}
GPUSIM_CUDA_API int cudaFreeMipmappedArray(void* array) {
  return call("cudaFreeMipmappedArray", [&] { arrays().free_levels(array); });
}
GPUSIM_CUDA_API int cudaArrayGetInfo(ChannelFormatDesc* desc, Extent* extent, unsigned* flags,
                                     void* array) {
  return call("cudaArrayGetInfo", [&] {
    const Array& a = arrays().array(array);
    if (desc != nullptr) *desc = a.desc;
    if (extent != nullptr) *extent = a.extent;
    if (flags != nullptr) *flags = a.flags;
  });
}

GPUSIM_CUDA_API int cudaMemcpy2DToArray(void* to, size_t x, size_t y, const void* from,
                                        size_t pitch, size_t width, size_t height, CopyKind kind) {
  return call("cudaMemcpy2DToArray",
              [&] { copy(to_array(to, x, y, from, pitch, width, height), kind, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemcpy2DToArrayAsync(void* to, size_t x, size_t y, const void* from,
                                             size_t pitch, size_t width, size_t height,
                                             CopyKind kind, void* stream) {
  return call("cudaMemcpy2DToArrayAsync",
              [&] { copy(to_array(to, x, y, from, pitch, width, height), kind, stream, false); });
}
GPUSIM_CUDA_API int cudaMemcpy2DFromArray(void* to, size_t pitch, const void* from, size_t x,
                                          size_t y, size_t width, size_t height, CopyKind kind) {
  return call("cudaMemcpy2DFromArray",
              [&] { copy(from_array(to, pitch, from, x, y, width, height), kind, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, const void* from, size_t x,
                                               size_t y, size_t width, size_t height, CopyKind kind,
                                               void* stream) {
  return call("cudaMemcpy2DFromArrayAsync",
              [&] { copy(from_array(to, pitch, from, x, y, width, height), kind, stream, false); });
}
GPUSIM_CUDA_API int cudaMemcpy2DArrayToArray(void* to, size_t to_x, size_t to_y, const void* from,
                                             size_t x, size_t y, size_t width, size_t height,
                                             CopyKind kind) {
  return call("cudaMemcpy2DArrayToArray", [&] {
    copy(between_arrays(to, to_x, to_y, from, x, y, width, height), kind, nullptr, true);
  });
}
GPUSIM_CUDA_API int cudaMemcpyToArray(void* to, size_t x, size_t y, const void* from, size_t count,
                                      CopyKind kind) {
  return call("cudaMemcpyToArray",
              [&] { copy(run_of(to, x, y, count), from, count, kind, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemcpyToArrayAsync(void* to, size_t x, size_t y, const void* from,
                                           size_t count, CopyKind kind, void* stream) {
  return call("cudaMemcpyToArrayAsync",
              [&] { copy(run_of(to, x, y, count), from, count, kind, stream, false); });
}
GPUSIM_CUDA_API int cudaMemcpyFromArray(void* to, const void* from, size_t x, size_t y,
                                        size_t count, CopyKind kind) {
  return call("cudaMemcpyFromArray",
              [&] { copy(to, run_of(from, x, y, count), count, kind, nullptr, true); });
}
GPUSIM_CUDA_API int cudaMemcpyFromArrayAsync(void* to, const void* from, size_t x, size_t y,
                                             size_t count, CopyKind kind, void* stream) {
  return call("cudaMemcpyFromArrayAsync",
              [&] { copy(to, run_of(from, x, y, count), count, kind, stream, false); });
}
GPUSIM_CUDA_API int cudaMemcpyArrayToArray(void* to, size_t to_x, size_t to_y, const void* from,
                                           size_t x, size_t y, size_t count, CopyKind kind) {
  return call("cudaMemcpyArrayToArray", [&] {
    copy(run_of(to, to_x, to_y, count), run_of(from, x, y, count), count, kind, nullptr, true);
  });
}

GPUSIM_ALIAS(cudaMemcpy2DToArray, _ptds)
GPUSIM_ALIAS(cudaMemcpy2DFromArray, _ptds)
GPUSIM_ALIAS(cudaMemcpy2DArrayToArray, _ptds)
GPUSIM_ALIAS(cudaMemcpyToArray, _ptds)
GPUSIM_ALIAS(cudaMemcpyFromArray, _ptds)
GPUSIM_ALIAS(cudaMemcpyArrayToArray, _ptds)
GPUSIM_ALIAS(cudaMemcpy2DToArrayAsync, _ptsz)
GPUSIM_ALIAS(cudaMemcpy2DFromArrayAsync, _ptsz)
GPUSIM_ALIAS(cudaMemcpyToArrayAsync, _ptsz)
GPUSIM_ALIAS(cudaMemcpyFromArrayAsync, _ptsz)
