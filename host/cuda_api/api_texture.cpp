// Texture and surface objects, of the runtime and of the driver.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "device_sim/base/error.h"
#include "host/cuda_api/arrays.h"
#include "host/cuda_api/driver.h"

using namespace gpusim::cuda_api;
namespace ptx = gpusim::ptx;

namespace {

using Handle = uint64_t;
using ptx::ObjectKind;

constexpr int kArrayResource = 0, kMipmappedResource = 1, kLinearResource = 2, kPitchedResource = 3;

// What objects were made of, for those who ask.
struct Description {
  ResourceDesc resource{};
  TextureDesc texture{};
  ResourceViewDesc view{};
  bool has_view = false;
};
struct Descriptions {
  std::mutex mutex;
  std::map<Handle, Description> all;
};
Descriptions& descriptions() {
  static Descriptions* const only = new Descriptions;
  return *only;
}

// The texels of a block of the device's memory, which holds all of them.
const void* block_of(const void* address, size_t size_bytes, const char* what) {
  Runtime& r = runtime();
  const std::optional<Block> block = r.memory.find(address);
  if (block && r.memory.has(address, size_bytes)) return block->address;
  if (r.checks.memory) {
    const std::optional<Block> freed = r.memory.find_freed(address);
    r.report.add_misuse(
        block || !freed ? "out of bounds" : "use after free", address,
        fmt::format("{}: {} of {} bytes at {}: {}", called_function(), what, size_bytes, address,
                    block   ? fmt::format("the memory ends before, {}", text_of(*block))
                    : freed ? "there was " + text_of(*freed)
                            : "no memory of the device is there"));
  }
  refuse(kInvalidValue);
}

void set_format(ptx::TextureObject& t, const TexelFormat& format) {
  t.channels = format.channels;
  t.channel_bits = format.channel_bits;
  t.kind = format.kind;
  t.reads_normalized = format.is_normalized;
}

void set_array(ptx::TextureObject& t, const Array& a) {
  set_format(t, a.format);
  t.layers = a.is_layered() ? static_cast<uint32_t>(a.slices()) : 0;
  t.memory = a.block;
}

void set_resource(ptx::TextureObject& t, const ResourceDesc& r) {
  require(r.flags == 0);
  switch (r.type) {
    case kArrayResource: {
      const Array& a = Arrays::instance().array(r.resource.array);
      set_array(t, a);
      t.levels[0] = a.level();
      return;
    }
    case kMipmappedResource: {
      const MipmappedArray& m = Arrays::instance().mipmapped(r.resource.array);
      set_array(t, *m.levels.front());
      t.level_count = static_cast<uint32_t>(m.levels.size());
      for (size_t k = 0; k < m.levels.size(); ++k) t.levels[k] = m.levels[k]->level();
      return;
    }
    case kLinearResource: {
      const auto& linear = r.resource.linear;
      set_format(t, format_of(linear.desc));
      const size_t texels = linear.size_bytes / t.texel_bytes();
      constexpr size_t kMostTexels = size_t{1} << 28;
      require(texels != 0 && texels <= kMostTexels);
      t.memory = block_of(linear.pointer, linear.size_bytes, "a texture");
      t.is_linear_memory = true;
      t.levels[0] = {.data = static_cast<uint8_t*>(linear.pointer),
                     .width = static_cast<uint32_t>(texels),
                     .row_bytes = linear.size_bytes,
                     .slice_bytes = linear.size_bytes};
      return;
    }
    case kPitchedResource: {
      const auto& rows = r.resource.pitched;
      set_format(t, format_of(rows.desc));
      const size_t row = rows.width * t.texel_bytes();
      constexpr size_t kMostSide = 131072;
      require(rows.width != 0 && rows.height != 0 && rows.width <= kMostSide &&
              rows.height <= kMostSide && row <= rows.pitch_bytes && rows.pitch_bytes % 32 == 0 &&
              rows.pitch_bytes <= size_t{1} << 31);
      const size_t size = rows.pitch_bytes * (rows.height - 1) + row;
      t.memory = block_of(rows.pointer, size, "a texture");
      t.levels[0] = {.data = static_cast<uint8_t*>(rows.pointer),
                     .width = static_cast<uint32_t>(rows.width),
                     .height = static_cast<uint32_t>(rows.height),
                     .row_bytes = rows.pitch_bytes,
                     .slice_bytes = rows.pitch_bytes * rows.height};
      return;
    }
    default:
      refuse(kInvalidValue);
  }
}

void set_sampling(ptx::TextureObject& t, const TextureDesc& d) {
  const auto is_flag = [](int x) { return x == 0 || x == 1; };
  require(is_flag(d.filter_mode) && is_flag(d.read_mode) && is_flag(d.mipmap_filter_mode));
  for (size_t k = 0; k < 3; ++k) {
    require(d.address_mode[k] >= 0 && d.address_mode[k] <= 3);
    t.modes[k] = static_cast<ptx::AddressMode>(d.address_mode[k]);
  }
  t.is_normalized = d.normalized_coords != 0;
  t.filters = d.filter_mode == 1;
  t.filters_levels = d.mipmap_filter_mode == 1;
  // Integers of 32 bits stay what they are.
  const bool is_integer = t.kind != ptx::ChannelKind::kFloat;
  t.reads_normalized =
      is_integer && (t.reads_normalized || d.read_mode == 1) && t.channel_bits < 32;
  require(!t.filters || !is_integer || t.reads_normalized, kInvalidFilterSetting);
  require(t.level_count == 1 || t.is_normalized);
  t.is_srgb = d.srgb != 0 && t.reads_normalized && t.channel_bits == 8 &&
              t.kind == ptx::ChannelKind::kUnsigned;
  t.level_bias = std::isfinite(d.mipmap_level_bias) ? d.mipmap_level_bias : 0;
  t.least_level = std::max(0.0f, d.min_mipmap_level);
  t.most_level = std::max(0.0f, d.max_mipmap_level);
  if (!t.is_linear_memory)
    for (size_t k = 0; k < 4; ++k) t.border[k] = std::bit_cast<uint32_t>(d.border_color[k]);
  if (d.seamless_cubemap != 0 && t.filters) {
    say("a cube map that is filtered over the edges of its faces (seamlessCubemap) is not "
        "supported");
    refuse(kNotSupported);
  }
}

// A part of the levels and layers, and other channels of the same size.
void set_view(ptx::TextureObject& t, const ResourceViewDesc& v) {
  if (v.format != 0) {
    // enum cudaResourceViewFormat: channels 1, 2, 4 of unsigned and signed 8, 16, 32 bits, halves
    // and floats.
    if (v.format > 0x18) {
      say("a view of a texture as blocks that are compressed is not supported");
      refuse(kNotSupported);
    }
    require(v.format > 0);
    const int number = v.format - 1, type = number / 3;
    ptx::TextureObject as = t;
    as.channels = static_cast<uint8_t>(1 << number % 3);
    as.channel_bits = static_cast<uint8_t>(type < 6 ? 8 << type / 2 : type == 6 ? 16 : 32);
    as.kind = type >= 6       ? ptx::ChannelKind::kFloat
              : type % 2 == 0 ? ptx::ChannelKind::kUnsigned
                              : ptx::ChannelKind::kSigned;
    as.reads_normalized = false;
    require(as.texel_bytes() == t.texel_bytes());
    t = as;
  }
  require(v.first_level <= v.last_level && v.last_level < t.level_count);
  for (uint32_t k = v.first_level; k <= v.last_level; ++k)
    t.levels[k - v.first_level] = t.levels[k];
  t.level_count = v.last_level - v.first_level + 1;
  if (t.layers == 0) return;
  require(v.first_layer <= v.last_layer && v.last_layer < t.layers);
  for (uint32_t k = 0; k < t.level_count; ++k)
    t.levels[k].data += v.first_layer * t.levels[k].slice_bytes;
  t.layers = v.last_layer - v.first_layer + 1;
}

// Throws Refusal: there are too many.
Handle add_object(ObjectKind kind, const ptx::TextureObject& object) {
  runtime().engine_for_memory();  // which has the memory of objects
  try {
    return ptx::TextureObjects::instance().add(kind, object, "made by " + numbered_call());
  } catch (const gpusim::Error& error) {
    say(fmt::format("{}: {}", called_function(), error.what()));
    refuse(kMemoryAllocation);
  }
}

void make_texture(Handle* handle, const ResourceDesc* resource, const TextureDesc* texture,
                  const ResourceViewDesc* view) {
  require(handle != nullptr && resource != nullptr && texture != nullptr);
  ptx::TextureObject t;
  set_resource(t, *resource);
  if (view != nullptr) {
    require(resource->type == kArrayResource || resource->type == kMipmappedResource);
    set_view(t, *view);
  }
  set_sampling(t, *texture);
  *handle = add_object(ObjectKind::kTexture, t);
  const std::lock_guard lock(descriptions().mutex);
  descriptions().all[*handle] = {*resource, *texture, view != nullptr ? *view : ResourceViewDesc{},
                                 view != nullptr};
}

void make_surface(Handle* handle, const ResourceDesc* resource) {
  require(handle != nullptr && resource != nullptr && resource->type == kArrayResource);
  require((Arrays::instance().array(resource->resource.array).flags & kArraySurface) != 0);
  ptx::TextureObject s;
  set_resource(s, *resource);
  *handle = add_object(ObjectKind::kSurface, s);
  const std::lock_guard lock(descriptions().mutex);
  descriptions().all[*handle] = {.resource = *resource};
}

// Kernels that were launched before may still use it.
void destroy(ObjectKind kind, Handle handle) {
  const std::string by = "destroyed by " + numbered_call();
  if (handle == 0) return;
  runtime().synchronize_device();
  const bool was_there = ptx::TextureObjects::instance().remove(kind, handle, by);
  Runtime& r = runtime();
  if (!was_there && r.checks.memory)
    r.report.add_misuse("invalid free", reinterpret_cast<const void*>(handle),
                        fmt::format("{}: {:#x} is the handle of no {}", called_function(), handle,
                                    kind == ObjectKind::kTexture ? "texture" : "surface"));
  require(was_there);
  const std::lock_guard lock(descriptions().mutex);
  descriptions().all.erase(handle);
}

Description description_of(ObjectKind kind, Handle handle) {
  require(ptx::TextureObjects::instance().find(kind, handle) != nullptr);
  const std::lock_guard lock(descriptions().mutex);
  const auto at = descriptions().all.find(handle);
  require(at != descriptions().all.end());
  return at->second;
}

// --- the driver's forms

ResourceDesc of_driver(const DriverResourceDesc& d) {
  ResourceDesc r{};
  r.type = d.type;
  r.flags = d.flags;
  if (d.type == kLinearResource) {
    const auto& linear = d.resource.linear;
    r.resource.linear = {reinterpret_cast<void*>(linear.address),
                         desc_of(linear.format, linear.channels), linear.size_bytes};
  } else if (d.type == kPitchedResource) {
    const auto& rows = d.resource.pitched;
    r.resource.pitched = {reinterpret_cast<void*>(rows.address),
                          desc_of(rows.format, rows.channels), rows.width, rows.height,
                          rows.pitch_bytes};
  } else {
    r.resource.array = d.resource.array;
  }
  return r;
}

DriverResourceDesc to_driver(const ResourceDesc& r) {
  DriverResourceDesc d{};
  d.type = r.type;
  if (r.type == kLinearResource) {
    const auto& linear = r.resource.linear;
    d.resource.linear = {reinterpret_cast<uintptr_t>(linear.pointer), driver_format_of(linear.desc),
                         format_of(linear.desc).channels, linear.size_bytes};
  } else if (r.type == kPitchedResource) {
    const auto& rows = r.resource.pitched;
    d.resource.pitched = {reinterpret_cast<uintptr_t>(rows.pointer),
                          driver_format_of(rows.desc),
                          format_of(rows.desc).channels,
                          rows.width,
                          rows.height,
                          rows.pitch_bytes};
  } else {
    d.resource.array = r.resource.array;
  }
  return d;
}

// CU_TRSF_ flags
constexpr unsigned kReadAsInteger = 1, kNormalizedCoordinates = 2, kSrgb = 0x10,
                   kNoTrilinearOptimization = 0x20, kSeamless = 0x40;

TextureDesc of_driver(const DriverTextureDesc& d) {
  TextureDesc t{};
  std::copy_n(d.address_mode, 3, t.address_mode);
  std::copy_n(d.border_color, 4, t.border_color);
  t.filter_mode = d.filter_mode;
  t.read_mode = (d.flags & kReadAsInteger) != 0 ? 0 : 1;
  t.srgb = (d.flags & kSrgb) != 0 ? 1 : 0;
  t.normalized_coords = (d.flags & kNormalizedCoordinates) != 0 ? 1 : 0;
  t.seamless_cubemap = (d.flags & kSeamless) != 0 ? 1 : 0;
  t.disable_trilinear_optimization = (d.flags & kNoTrilinearOptimization) != 0 ? 1 : 0;
  t.max_anisotropy = d.max_anisotropy;
  t.mipmap_filter_mode = d.mipmap_filter_mode;
  t.mipmap_level_bias = d.mipmap_level_bias;
  t.min_mipmap_level = d.min_mipmap_level;
  t.max_mipmap_level = d.max_mipmap_level;
  return t;
}

DriverTextureDesc to_driver(const TextureDesc& t) {
  DriverTextureDesc d{};
  std::copy_n(t.address_mode, 3, d.address_mode);
  std::copy_n(t.border_color, 4, d.border_color);
  d.filter_mode = t.filter_mode;
  d.flags = (t.read_mode == 0 ? kReadAsInteger : 0) |
            (t.normalized_coords != 0 ? kNormalizedCoordinates : 0) | (t.srgb != 0 ? kSrgb : 0) |
            (t.seamless_cubemap != 0 ? kSeamless : 0) |
            (t.disable_trilinear_optimization != 0 ? kNoTrilinearOptimization : 0);
  d.max_anisotropy = t.max_anisotropy;
  d.mipmap_filter_mode = t.mipmap_filter_mode;
  d.mipmap_level_bias = t.mipmap_level_bias;
  d.min_mipmap_level = t.min_mipmap_level;
  d.max_mipmap_level = t.max_mipmap_level;
  return d;
}

}  // namespace

GPUSIM_CUDA_API int cudaCreateTextureObject(Handle* handle, const ResourceDesc* resource,
                                            const TextureDesc* texture,
                                            const ResourceViewDesc* view) {
  return call("cudaCreateTextureObject", [&] { make_texture(handle, resource, texture, view); });
}
GPUSIM_CUDA_API int cudaDestroyTextureObject(Handle handle) {
  return call("cudaDestroyTextureObject", [&] { destroy(ObjectKind::kTexture, handle); });
}
GPUSIM_CUDA_API int cudaGetTextureObjectResourceDesc(ResourceDesc* resource, Handle handle) {
  return call("cudaGetTextureObjectResourceDesc", [&] {
    require(resource != nullptr);
    *resource = description_of(ObjectKind::kTexture, handle).resource;
  });
}
GPUSIM_CUDA_API int cudaGetTextureObjectTextureDesc(TextureDesc* texture, Handle handle) {
  return call("cudaGetTextureObjectTextureDesc", [&] {
    require(texture != nullptr);
    *texture = description_of(ObjectKind::kTexture, handle).texture;
  });
}
GPUSIM_CUDA_API int cudaGetTextureObjectResourceViewDesc(ResourceViewDesc* view, Handle handle) {
  return call("cudaGetTextureObjectResourceViewDesc", [&] {
    require(view != nullptr);
    const Description d = description_of(ObjectKind::kTexture, handle);
    require(d.has_view);
    *view = d.view;
  });
}
GPUSIM_CUDA_API int cudaCreateSurfaceObject(Handle* handle, const ResourceDesc* resource) {
  return call("cudaCreateSurfaceObject", [&] { make_surface(handle, resource); });
}
GPUSIM_CUDA_API int cudaDestroySurfaceObject(Handle handle) {
  return call("cudaDestroySurfaceObject", [&] { destroy(ObjectKind::kSurface, handle); });
}
GPUSIM_CUDA_API int cudaGetSurfaceObjectResourceDesc(ResourceDesc* resource, Handle handle) {
  return call("cudaGetSurfaceObjectResourceDesc", [&] {
    require(resource != nullptr);
    *resource = description_of(ObjectKind::kSurface, handle).resource;
  });
}
GPUSIM_CUDA_API int cudaDeviceGetTexture1DLinearMaxWidth(size_t* width,
                                                         const ChannelFormatDesc* desc, int) {
  return call("cudaDeviceGetTexture1DLinearMaxWidth", [&] {
    require(width != nullptr && desc != nullptr);
    format_of(*desc);
    *width = size_t{1} << 28;
  });
}

GPUSIM_CUDA_API int cuTexObjectCreate(Handle* handle, const DriverResourceDesc* resource,
                                      const DriverTextureDesc* texture,
                                      const ResourceViewDesc* view) {
  return driver_call("cuTexObjectCreate", [&] {
    require(resource != nullptr && texture != nullptr);
    const ResourceDesc r = of_driver(*resource);
    const TextureDesc t = of_driver(*texture);
    make_texture(handle, &r, &t, view);
  });
}
GPUSIM_CUDA_API int cuTexObjectDestroy(Handle handle) {
  return driver_call("cuTexObjectDestroy", [&] { destroy(ObjectKind::kTexture, handle); });
}
GPUSIM_CUDA_API int cuTexObjectGetResourceDesc(DriverResourceDesc* resource, Handle handle) {
  return driver_call("cuTexObjectGetResourceDesc", [&] {
    require(resource != nullptr);
    *resource = to_driver(description_of(ObjectKind::kTexture, handle).resource);
  });
}
GPUSIM_CUDA_API int cuTexObjectGetTextureDesc(DriverTextureDesc* texture, Handle handle) {
  return driver_call("cuTexObjectGetTextureDesc", [&] {
    require(texture != nullptr);
    *texture = to_driver(description_of(ObjectKind::kTexture, handle).texture);
  });
}
GPUSIM_CUDA_API int cuSurfObjectCreate(Handle* handle, const DriverResourceDesc* resource) {
  return driver_call("cuSurfObjectCreate", [&] {
    require(resource != nullptr);
    const ResourceDesc r = of_driver(*resource);
    make_surface(handle, &r);
  });
}
GPUSIM_CUDA_API int cuSurfObjectDestroy(Handle handle) {
  return driver_call("cuSurfObjectDestroy", [&] { destroy(ObjectKind::kSurface, handle); });
}
GPUSIM_CUDA_API int cuSurfObjectGetResourceDesc(DriverResourceDesc* resource, Handle handle) {
  return driver_call("cuSurfObjectGetResourceDesc", [&] {
    require(resource != nullptr);
    *resource = to_driver(description_of(ObjectKind::kSurface, handle).resource);
  });
}
