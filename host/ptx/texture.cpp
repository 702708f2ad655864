#include "host/ptx/texture.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "device_sim/base/error.h"
#include "device_sim/uir/helpers_texture.h"

namespace gpusim::ptx {

struct alignas(1024) TextureObjects::Slot {
  std::atomic<State> state{State::kNone};
  TextureObject object;
};

namespace {

constexpr uint32_t kMostObjects = 1 << 16;
constexpr uint64_t kPage = 4096;
// Before the objects: a page of zeros, and one that takes what is stored.
constexpr uint64_t kZeros = 0, kSink = kPage, kObjects = 2 * kPage;

std::array<uint32_t, 3> three(uint64_t xy, uint64_t z) {
  return {static_cast<uint32_t>(xy), static_cast<uint32_t>(xy >> 32), static_cast<uint32_t>(z)};
}

}  // namespace

TextureObjects& TextureObjects::instance() {
  // Never destroyed: calls come from destructors of programs.
  static TextureObjects* const only = new TextureObjects;
  return *only;
}

TextureObjects::TextureObjects() : pages_(kObjects + kMostObjects * sizeof(Slot)) {
  static const TextureUnit unit{object_of, query_of, level_of, fetch, surface_address};
  texture_unit = &unit;
}

TextureObjects::Slot* TextureObjects::slot_of(uint64_t handle) const {
  const uint64_t offset = handle - pages_.address() - kObjects;
  if (offset >= kMostObjects * sizeof(Slot) || offset % sizeof(Slot) != 0) return nullptr;
  return reinterpret_cast<Slot*>(pages_.data() + kObjects + offset);
}

uint64_t TextureObjects::add(ObjectKind kind, const TextureObject& object, std::string origin) {
  const std::lock_guard lock(mutex_);
  for (uint32_t tries = 0; tries < kMostObjects; ++tries) {
    const uint64_t handle = pages_.address() + kObjects + next_ * sizeof(Slot);
    next_ = (next_ + 1) % kMostObjects;
    Slot* const slot = slot_of(handle);
    const State state = slot->state.load();
    if (state == State::kTexture || state == State::kSurface) continue;
    slot->object = object;
    slot->state = state_of(kind);
    origins_[handle] = std::move(origin);
    on_memory_.emplace(object.memory, handle);
    return handle;
  }
  throw Error(fmt::format("more than {} textures and surfaces at once", kMostObjects));
}

bool TextureObjects::remove(ObjectKind kind, uint64_t handle, const std::string& by) {
  const std::lock_guard lock(mutex_);
  Slot* const slot = slot_of(handle);
  if (slot == nullptr) return false;
  const State state = slot->state.load();
  if (state != state_of(kind) && state != State::kMemoryFreed) return false;
  slot->state = State::kDestroyed;
  on_memory_.erase({slot->object.memory, handle});
  origins_[handle] += ", " + by;
  return true;
}

void TextureObjects::memory_freed(const void* block, const std::string& by) {
  const std::lock_guard lock(mutex_);
  auto at = on_memory_.lower_bound({block, 0});
  while (at != on_memory_.end() && at->first == block) {
    slot_of(at->second)->state = State::kMemoryFreed;
    origins_[at->second] += ", whose memory was " + by;
    at = on_memory_.erase(at);
  }
}

const TextureObject* TextureObjects::find(ObjectKind kind, uint64_t handle) const {
  const Slot* const slot = slot_of(handle);
  return slot != nullptr && slot->state.load(std::memory_order_relaxed) == state_of(kind)
             ? &slot->object
             : nullptr;
}

void TextureObjects::add_to(ProcessMemory& memory) const {
  const uint64_t begin = pages_.address();
  memory.add(begin + kZeros, kPage, kRead, {"what lies outside of surfaces"});
  memory.add(begin + kSink, kPage, kRead | kWrite, {"what lies outside of surfaces"});
  memory.add(begin + kObjects, kMostObjects * sizeof(Slot), kRead, {"textures and surfaces"});
}

std::string TextureObjects::describe(uint64_t complaint) const {
  const uint64_t handle = complaint & kHandleMask;
  const Slot* const slot = slot_of(handle);
  const State state = slot == nullptr ? State::kNone : slot->state.load();
  std::string origin;
  if (state != State::kNone) {
    const std::lock_guard lock(mutex_);
    const auto found = origins_.find(handle);
    if (found != origins_.end()) origin = " (" + found->second + ")";
  }
  if (what_of(complaint) == Complaint::kOutside && slot != nullptr) {
    const TextureLevel& l = slot->object.levels[0];
    return fmt::format("outside of a surface of {} x {} x {} elements of {} bytes{}", l.width,
                       l.height, std::max(l.depth, slot->object.layers), slot->object.texel_bytes(),
                       origin);
  }
  if (what_of(complaint) == Complaint::kNoHandle)
    return fmt::format("a value whose low 48 bits are {:#x} is the handle of no texture or surface",
                       handle);
  switch (state) {
    case State::kNone:
      return fmt::format("{:#x} is the handle of no texture or surface", handle);
    case State::kTexture:
      return fmt::format("{:#x} is a texture, not a surface{}", handle, origin);
    case State::kSurface:
      return fmt::format("{:#x} is a surface, not a texture{}", handle, origin);
    default:
      return fmt::format("{:#x} was the handle of an object{}", handle, origin);
  }
}

bool TextureObjects::is_freed(uint64_t complaint) const {
  const Slot* const slot = slot_of(complaint & kHandleMask);
  if (slot == nullptr || what_of(complaint) == Complaint::kNoHandle) return false;
  const State state = slot->state.load();
  return state == State::kDestroyed || state == State::kMemoryFreed;
}

// --- what micro-ops call

uint64_t TextureObjects::object_of(uint64_t handle, uint64_t what) {
  const auto kind = static_cast<ObjectKind>(what & 1);
  const bool is_there = instance().find(kind, handle) != nullptr;
  if (what >= kAsks) return is_there ? 1 : 0;
  return is_there ? handle : no_object(handle);
}

uint64_t TextureObjects::query_of(uint64_t handle, uint64_t level, uint64_t what) {
  const TextureObject* t = instance().find(ObjectKind::kTexture, handle);
  if (t == nullptr) t = instance().find(ObjectKind::kSurface, handle);
  if (t == nullptr) return 0;
  const TextureLevel& l =
      t->levels[std::min<uint64_t>(static_cast<uint32_t>(level), t->level_count - 1)];
  switch (static_cast<TextureQuery>(what)) {
    case TextureQuery::kWidth:
      return l.width;
    case TextureQuery::kHeight:
      return l.height;
    case TextureQuery::kDepth:
      return l.depth;
    case TextureQuery::kChannelType: {
      // OpenCL's numbers, which PTX names: SNORM_INT8 0x10D0, UNORM_INT8 0x10D2, SIGNED_INT8
      // 0x10D7, UNSIGNED_INT8 0x10DA, HALF_FLOAT 0x10DD, FLOAT 0x10DE.
      const auto size = static_cast<uint64_t>(std::bit_width(uint32_t{t->channel_bits}) - 4);
      if (t->kind == ChannelKind::kFloat) return 0x10DD + (size == 1 ? 0 : 1);
      if (t->reads_normalized) return (t->kind == ChannelKind::kSigned ? 0x10D0 : 0x10D2) + size;
      return (t->kind == ChannelKind::kSigned ? 0x10D7 : 0x10DA) + size;
    }
    case TextureQuery::kChannelOrder:  // R 0x10B0, RG 0x10B2, RGBA 0x10B5
      return t->channels == 1 ? 0x10B0 : t->channels == 2 ? 0x10B2 : 0x10B5;
    case TextureQuery::kNormalized:
      return t->is_normalized ? 1 : 0;
    case TextureQuery::kLayers:
      return t->layers;
    case TextureQuery::kLevels:
      return t->level_count;
    case TextureQuery::kSamples:
      return 1;
    default:
      return 0;
  }
}

uint64_t TextureObjects::level_of(uint64_t xy, uint64_t z, uint64_t handle) {
  const TextureObject* const t = instance().find(ObjectKind::kTexture, handle & kHandleMask);
  if (t == nullptr) return 0;
  const std::array<uint32_t, 3> bits = three(xy, z);
  return std::bit_cast<uint32_t>(
      level_for(*t, {std::bit_cast<float>(bits[0]), std::bit_cast<float>(bits[1]),
                     std::bit_cast<float>(bits[2])}));
}

uint64_t TextureObjects::fetch(uint64_t xy, uint64_t z, uint64_t handle, uint64_t op) {
  const TextureObject* const t = instance().find(ObjectKind::kTexture, handle & kHandleMask);
  if (t == nullptr) return 0;
  return sample(*t, TextureOp::unpack(op), three(xy, z),
                std::bit_cast<float>(static_cast<uint32_t>(z >> 32)),
                static_cast<uint32_t>(handle >> kLayerShift));
}

uint64_t TextureObjects::surface_address(uint64_t xy, uint64_t z, uint64_t handle, uint64_t word) {
  const TextureObjects& all = instance();
  const TextureObject* const s = all.find(ObjectKind::kSurface, handle);
  if (s == nullptr) return no_object(handle);
  const SurfaceOp op = SurfaceOp::unpack(word);
  const TextureLevel& l = s->levels[0];
  const std::array<uint32_t, 3> bits = three(xy, z);
  std::array<int64_t, 3> at{static_cast<int32_t>(bits[0]), 0, 0};
  if (dimensions_of(op.geometry) > 1) at[1] = static_cast<int32_t>(bits[1]);
  if (op.geometry == Geometry::k3d || has_layers(op.geometry))
    at[2] = static_cast<int32_t>(bits[2]);
  const std::array<int64_t, 3> last{int64_t{l.width} * s->texel_bytes() - op.bytes,
                                    int64_t{l.height} - 1,
                                    int64_t{std::max(l.depth, s->layers)} - 1};
  for (size_t d = 0; d < 3; ++d) {
    if (at[d] >= 0 && at[d] <= last[d]) continue;
    if (op.outside == Outside::kTrap) return complaint(Complaint::kOutside, handle);
    if (op.outside == Outside::kZero || last[d] < 0)
      return all.pages_.address() + (op.is_store ? kSink : kZeros);
    at[d] = std::clamp<int64_t>(at[d], 0, last[d]);
  }
  return reinterpret_cast<uintptr_t>(l.data) + static_cast<uint64_t>(at[2]) * l.slice_bytes +
         static_cast<uint64_t>(at[1]) * l.row_bytes + static_cast<uint64_t>(at[0]);
}

}  // namespace gpusim::ptx
