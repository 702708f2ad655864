// What a micro-op reads and accesses, in the words of recording and planning.
#pragma once
#include "device_sim/uir/access.h"
#include "device_sim/simd/group.h"

namespace gpusim::simd {

constexpr Shape shape_of(const Uop& u) { return op_info(u.op).shape; }
constexpr ShapeInfo info_of(const Uop& u) { return shape_info(shape_of(u)); }
constexpr bool is_load(Shape s) {
  return s == Shape::kLdI || s == Shape::kLdX || s == Shape::kLdW;
}
constexpr bool is_store(Shape s) {
  return s == Shape::kStI || s == Shape::kStX || s == Shape::kStW;
}
constexpr bool is_branch(Shape s) { return s == Shape::kBrAB || s == Shape::kBrAI; }
constexpr bool is_compact(uint8_t kind) { return kind == kUniform || kind == kAffine; }
// Handlers of these may find their operands to be compact, or spread them.
constexpr bool changes_sources(Shape s) { return is_load(s) || is_store(s) || is_branch(s); }

// Whether its field d names a slot, which it writes or, to store it, reads.
inline bool has_d(const Uop& u) { return info_of(u).d.writes || is_store(shape_of(u)); }

// The slots that a micro-op reads, in the order of its fields a, b, c, aux.
struct Sources {
  Slot slot[4] = {};
  int count = 0;
};
inline Sources sources_of(const Uop& u) {
  const ShapeInfo info = info_of(u);
  Sources s;
  if (info.a.reads) s.slot[s.count++] = u.a;
  if (info.b.reads) s.slot[s.count++] = u.b;
  if (info.c.reads) s.slot[s.count++] = u.c;
  if (info.e.reads) s.slot[s.count++] = u.e;
  return s;
}

inline uint64_t address_of(AddressMode mode, uint64_t a, uint64_t b, uint64_t imm) {
  switch (mode) {
    case AddressMode::kImmediate: return access_address<AddressMode::kImmediate>(a, b, imm);
    case AddressMode::kIndex: return access_address<AddressMode::kIndex>(a, b, imm);
    case AddressMode::kIndex32: break;
  }
  return access_address<AddressMode::kIndex32>(a, b, imm);
}
// Scattered elements are fetched by 4 bytes at least.
constexpr uint64_t touched_bytes(uint64_t size) { return size < 4 ? 4 : size; }

}  // namespace gpusim::simd
