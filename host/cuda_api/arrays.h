// CUDA arrays and mipmapped arrays: device memory that programs name by handles. Rows lie behind
// each other, then slices or layers.
#pragma once
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "host/cuda_api/copies.h"
#include "host/ptx/texture.h"

namespace gpusim::cuda_api {

// cudaArray flags that matter here.
inline constexpr unsigned kArrayLayered = 1, kArraySurface = 2, kArrayCubemap = 4, kArrayGather = 8;

// What a channel descriptor means: 1, 2 or 4 channels of equal size.
struct TexelFormat {
  uint8_t channels = 1, channel_bits = 8;
  ptx::ChannelKind kind = ptx::ChannelKind::kUnsigned;
  bool is_normalized = false;  // integers that are always read as floats up to 1
  uint32_t bytes() const { return channels * channel_bits / 8u; }
};
// Throws Refusal: there is no such format here.
TexelFormat format_of(const ChannelFormatDesc& desc);
// Of the driver's CUarray_format.
ChannelFormatDesc desc_of(int driver_format, unsigned channels);
int driver_format_of(const ChannelFormatDesc& desc);

struct Array {
  ChannelFormatDesc desc{};
  TexelFormat format{};
  Extent extent{};  // as it was made: 0 where there is no such dimension
  unsigned flags = 0;
  char* data = nullptr;
  void* block = nullptr;  // where the device memory begins; of a level: that of all levels
  bool is_level = false;

  bool is_layered() const { return (flags & (kArrayLayered | kArrayCubemap)) != 0; }
  size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  size_t slices() const { return extent.depth == 0 ? 1 : extent.depth; }
  size_t row_bytes() const { return extent.width * format.bytes(); }
  size_t slice_bytes() const { return row_bytes() * rows(); }
  size_t size_bytes() const { return slice_bytes() * slices(); }
  // Throws Refusal unless that box, in bytes, rows and slices, is within.
  char* at(const Pos& from, const Extent& size) const;
  ptx::TextureLevel level() const;
};

struct MipmappedArray {
  std::vector<std::unique_ptr<Array>> levels;
};

class Arrays {
 public:
  static Arrays& instance();
  // Throw Refusal.
  Array* make(const ChannelFormatDesc& desc, const Extent& extent, unsigned flags);
  MipmappedArray* make_levels(const ChannelFormatDesc& desc, const Extent& extent,
                              unsigned level_count, unsigned flags);
  Array& array(const void* handle);
  MipmappedArray& mipmapped(const void* handle);
  void free(void* array);
  void free_levels(void* mipmapped);
  void forget_all();  // with all of the device's memory

 private:
  std::mutex mutex_;
  std::set<const void*> arrays_, mipmapped_;  // levels are arrays, too
};

}  // namespace gpusim::cuda_api
