#include "host/cuda_api/arrays.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace gpusim::cuda_api {
namespace {

constexpr size_t kMostWidth = 131072, kMostRows = 65536, kMostSlices = 16384;
constexpr unsigned kKnownFlags = kArrayLayered | kArraySurface | kArrayCubemap | kArrayGather;
// enum cudaChannelFormatKind: plain kinds; from kNormalized on by kind, size and channels.
constexpr int kSigned = 0, kUnsigned = 1, kFloat = 2, kFirstNormalized = 5, kLastNormalized = 16;

// By the number among the normalized kinds: 8 and 16 bits of 1, 2 and 4 channels, twice.
int normalized_bits(int number) { return number / 3 % 2 == 0 ? 8 : 16; }
unsigned normalized_channels(int number) { return 1u << number % 3; }

void check_shape(const Extent& e, unsigned flags) {
  require(e.width != 0 && (flags & ~kKnownFlags) == 0);
  require(e.width <= kMostWidth && e.height <= kMostRows && e.depth <= kMostSlices);
  const bool is_layered = (flags & kArrayLayered) != 0;
  if ((flags & kArrayCubemap) != 0)
    require(e.width == e.height && (is_layered ? e.depth % 6 == 0 && e.depth != 0 : e.depth == 6));
  // Three dimensions are all there; layers are of one or two.
  require(e.height != 0 || e.depth == 0 || is_layered);
  require(!is_layered || e.depth != 0);
}

size_t halved(size_t size, unsigned times) {
  return size == 0 ? 0 : std::max<size_t>(1, size >> times);
}

std::unique_ptr<Array> shape(const ChannelFormatDesc& desc, const Extent& extent, unsigned flags) {
  check_shape(extent, flags);
  auto made = std::make_unique<Array>();
  made->desc = desc;
  made->format = format_of(desc);
  made->extent = extent;
  made->flags = flags;
  return made;
}

}  // namespace

TexelFormat format_of(const ChannelFormatDesc& desc) {
  TexelFormat f;
  int kind = desc.f;
  if (kind >= kFirstNormalized && kind <= kLastNormalized) {
    f.is_normalized = true;
    kind = kind < 11 ? kUnsigned : kSigned;
  }
  require(kind == kSigned || kind == kUnsigned || kind == kFloat, kInvalidChannelDescriptor);
  f.kind = static_cast<ptx::ChannelKind>(kind);
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  const auto count = static_cast<size_t>(
      std::count_if(std::begin(bits), std::end(bits), [](int b) { return b != 0; }));
  require(count == 1 || count == 2 || count == 4, kInvalidChannelDescriptor);
  for (size_t k = 0; k < 4; ++k)
    require(bits[k] == (k < count ? bits[0] : 0), kInvalidChannelDescriptor);
  require(bits[0] == 8 || bits[0] == 16 || bits[0] == 32, kInvalidChannelDescriptor);
  require(kind != kFloat || bits[0] != 8, kInvalidChannelDescriptor);
  if (f.is_normalized) {
    const int number = desc.f - kFirstNormalized;
    require(bits[0] == normalized_bits(number) && count == normalized_channels(number),
            kInvalidChannelDescriptor);
  }
  f.channels = static_cast<uint8_t>(count);
  f.channel_bits = static_cast<uint8_t>(bits[0]);
  return f;
}

ChannelFormatDesc desc_of(int driver_format, unsigned channels) {
  int bits = 0, kind = 0;
  if (driver_format >= 1 && driver_format <= 3) {
    bits = 4 << driver_format;
    kind = kUnsigned;
  } else if (driver_format >= 8 && driver_format <= 10) {
    bits = 8 << (driver_format - 8);
    kind = kSigned;
  } else if (driver_format == 0x10 || driver_format == 0x20) {
    bits = driver_format;
    kind = kFloat;
  } else if (driver_format >= 0xc0 && driver_format <= 0xcb) {
    // CU_AD_FORMAT_UNORM_INT8X1 and on, in the order of the runtime's kinds.
    kind = driver_format - 0xc0 + kFirstNormalized;
    bits = normalized_bits(driver_format - 0xc0);
    channels = normalized_channels(driver_format - 0xc0);
  } else {
    say("an array's format is not one of integers or floats of 8 to 32 bits: not supported");
    refuse(kNotSupported);
  }
  require(channels == 1 || channels == 2 || channels == 4);
  return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 2 ? bits : 0, kind};
}

int driver_format_of(const ChannelFormatDesc& desc) {
  if (desc.f >= kFirstNormalized && desc.f <= kLastNormalized)
    return 0xc0 + desc.f - kFirstNormalized;
  if (desc.f == kFloat) return desc.x;
  const int size = std::bit_width(static_cast<unsigned>(desc.x)) - 4;  // 0, 1, 2
  return desc.f == kUnsigned ? 1 + size : 8 + size;
}

char* Array::at(const Pos& from, const Extent& size) const {
  const auto fits = [](size_t begin, size_t count, size_t most) {
    return begin <= most && count <= most - begin;
  };
  require(fits(from.x, size.width, row_bytes()) && fits(from.y, size.height, rows()) &&
          fits(from.z, size.depth, slices()));
  return data + from.z * slice_bytes() + from.y * row_bytes() + from.x;
}

ptx::TextureLevel Array::level() const {
  return {.data = reinterpret_cast<uint8_t*>(data),
          .width = static_cast<uint32_t>(extent.width),
          .height = static_cast<uint32_t>(rows()),
          .depth = is_layered() ? 1 : static_cast<uint32_t>(slices()),
          .row_bytes = row_bytes(),
          .slice_bytes = slice_bytes()};
}

Arrays& Arrays::instance() {
  static Arrays* const only = new Arrays;
  return *only;
}

Array* Arrays::make(const ChannelFormatDesc& desc, const Extent& extent, unsigned flags) {
  std::unique_ptr<Array> made = shape(desc, extent, flags);
  made->block = allocate(made->size_bytes(), kDeviceMemory);
  made->data = static_cast<char*>(made->block);
  const std::lock_guard lock(mutex_);
  arrays_.insert(made.get());
  return made.release();
}

MipmappedArray* Arrays::make_levels(const ChannelFormatDesc& desc, const Extent& extent,
                                    unsigned level_count, unsigned flags) {
  const bool is_layered = (flags & (kArrayLayered | kArrayCubemap)) != 0;
  const size_t longest =
      std::max({extent.width, extent.height, is_layered ? size_t{0} : extent.depth});
  require(level_count != 0 && longest != 0);
  level_count = std::min({level_count, static_cast<unsigned>(std::bit_width(longest)),
                          unsigned{ptx::TextureObject::kMostLevels}});
  auto made = std::make_unique<MipmappedArray>();
  size_t size = 0;
  for (unsigned k = 0; k < level_count; ++k) {
    const Extent e{halved(extent.width, k), halved(extent.height, k),
                   is_layered ? extent.depth : halved(extent.depth, k)};
    made->levels.push_back(shape(desc, e, flags));
    made->levels.back()->is_level = true;
    size += made->levels.back()->size_bytes();
  }
  char* at = static_cast<char*>(allocate(size, kDeviceMemory));
  const std::lock_guard lock(mutex_);
  void* const block = at;
  for (const auto& level : made->levels) {
    level->block = block;
    level->data = at;
    at += level->size_bytes();
    arrays_.insert(level.get());
  }
  mipmapped_.insert(made.get());
  return made.release();
}

Array& Arrays::array(const void* handle) {
  const std::lock_guard lock(mutex_);
  require(arrays_.contains(handle), kInvalidResourceHandle);
  return *const_cast<Array*>(static_cast<const Array*>(handle));
}

MipmappedArray& Arrays::mipmapped(const void* handle) {
  const std::lock_guard lock(mutex_);
  require(mipmapped_.contains(handle), kInvalidResourceHandle);
  return *const_cast<MipmappedArray*>(static_cast<const MipmappedArray*>(handle));
}

void Arrays::free(void* handle) {
  if (handle == nullptr) return;
  Array& a = array(handle);
  require(!a.is_level);
  release(a.block, false);
  const std::lock_guard lock(mutex_);
  arrays_.erase(handle);
  delete &a;
}

void Arrays::free_levels(void* handle) {
  if (handle == nullptr) return;
  MipmappedArray& m = mipmapped(handle);
  release(m.levels.front()->block, false);
  const std::lock_guard lock(mutex_);
  for (const auto& level : m.levels) arrays_.erase(level.get());
  mipmapped_.erase(handle);
  delete &m;
}

// What the handles mean stays in memory: programs may still have them, and get an error.
void Arrays::forget_all() {
  const std::lock_guard lock(mutex_);
  arrays_.clear();
  mipmapped_.clear();
}

}  // namespace gpusim::cuda_api
