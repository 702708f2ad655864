#include "host/ptx/texture.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "device_sim/base/error.h"
#include "device_sim/uir/helpers_texture.h"
#include "device_sim/uir/textures/calls.h"

namespace gpusim::ptx {

using textures::Complaint;
using textures::kHandleMask;
using textures::Room;
using textures::Slot;
using textures::State;

namespace {

// Kernels that run read it.
std::atomic_ref<State> state_in(Slot& slot) { return std::atomic_ref(slot.state); }

Complaint what_of(uint64_t complaint) { return static_cast<Complaint>(complaint >> 48 & 0xff); }

Room room() { return {TextureObjects::instance().address()}; }

// IEC 61966-2-1
double linear_of_srgb(double x) {
  return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
}

constexpr TextureUnit kUnit{
    [](uint64_t a, uint64_t what) { return textures::object(room(), a, what); },
    [](uint64_t a, uint64_t b, uint64_t what) { return textures::query(room(), a, b, what); },
    [](uint64_t a, uint64_t b, uint64_t c) { return textures::level(room(), a, b, c); },
    [](uint64_t a, uint64_t b, uint64_t c, uint64_t op) {
      return textures::fetch(room(), a, b, c, op);
    },
    [](uint64_t a, uint64_t b, uint64_t c, uint64_t op) {
      return textures::surface(room(), a, b, c, op);
    }};

}  // namespace

TextureObjects& TextureObjects::instance() {
  // Never destroyed: calls come from destructors of programs.
  static TextureObjects* const only = new TextureObjects;
  return *only;
}

TextureObjects::TextureObjects() : pages_(Room::kBytes), room_{pages_.address()} {
  auto* const linear = reinterpret_cast<double*>(pages_.data() + Room::kLinear);
  for (int step = 0; step < 256; ++step) linear[step] = linear_of_srgb(step / 255.0);
  texture_unit = &kUnit;
}

uint64_t TextureObjects::add(ObjectKind kind, const TextureObject& object, std::string origin) {
  const std::lock_guard lock(mutex_);
  for (uint32_t tries = 0; tries < Room::kMostObjects; ++tries) {
    const uint64_t handle = room_.base + Room::kObjects + next_ * sizeof(Slot);
    next_ = (next_ + 1) % Room::kMostObjects;
    Slot* const slot = room_.slot_of(handle);
    const State state = state_in(*slot).load();
    if (state == State::kTexture || state == State::kSurface) continue;
    slot->object = object;
    state_in(*slot) = textures::state_of(kind);
    origins_[handle] = std::move(origin);
    on_memory_.emplace(object.memory, handle);
    return handle;
  }
  throw Error(fmt::format("more than {} textures and surfaces at once", Room::kMostObjects));
}

bool TextureObjects::remove(ObjectKind kind, uint64_t handle, const std::string& by) {
  const std::lock_guard lock(mutex_);
  Slot* const slot = room_.slot_of(handle);
  if (slot == nullptr) return false;
  const State state = state_in(*slot).load();
  if (state != textures::state_of(kind) && state != State::kMemoryFreed) return false;
  state_in(*slot) = State::kDestroyed;
  on_memory_.erase({slot->object.memory, handle});
  origins_[handle] += ", " + by;
  return true;
}

void TextureObjects::memory_freed(const void* block, const std::string& by) {
  const std::lock_guard lock(mutex_);
  auto at = on_memory_.lower_bound({block, 0});
  while (at != on_memory_.end() && at->first == block) {
    state_in(*room_.slot_of(at->second)) = State::kMemoryFreed;
    origins_[at->second] += ", whose memory was " + by;
    at = on_memory_.erase(at);
  }
}

const TextureObject* TextureObjects::find(ObjectKind kind, uint64_t handle) const {
  return room_.find(kind, handle);
}

void TextureObjects::add_to(ProcessMemory& memory) const {
  const uint64_t begin = room_.base;
  memory.add(begin + Room::kZeros, Room::kPage, kRead, {"what lies outside of surfaces"});
  memory.add(begin + Room::kSink, Room::kPage, kRead | kWrite, {"what lies outside of surfaces"});
  memory.add(begin + Room::kLinear, Room::kBytes - Room::kLinear, kRead, {"textures and surfaces"});
}

std::string TextureObjects::describe(uint64_t complaint) const {
  const uint64_t handle = complaint & kHandleMask;
  Slot* const slot = room_.slot_of(handle);
  const State state = slot == nullptr ? State::kNone : state_in(*slot).load();
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
  Slot* const slot = room_.slot_of(complaint & kHandleMask);
  if (slot == nullptr || what_of(complaint) == Complaint::kNoHandle) return false;
  const State state = state_in(*slot).load();
  return state == State::kDestroyed || state == State::kMemoryFreed;
}

}  // namespace gpusim::ptx
