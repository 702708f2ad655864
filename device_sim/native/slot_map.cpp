#include "device_sim/native/slot_map.h"

#include <algorithm>
#include <vector>

namespace gpusim::native {

namespace {

// Whether a value micro-op works on floating-point or vector values.
bool is_vector_value(const Uop& u) {
  switch (op_info(u.op).shape) {
    case Shape::kFA:
    case Shape::kFAB:
    case Shape::kFABC:
    case Shape::kGA:
    case Shape::kGAB:
    case Shape::kGABC:
      return true;
    default:
      return u.op >= Op::vadd && u.op <= Op::vcnt;
  }
}

// A longer run is a function's state, of which it takes what it needs from the frame.
constexpr int kLongestRun = 3;

bool moves_only(const Uop& u) {
  const Shape s = op_info(u.op).shape;
  return u.op == Op::mov || s == Shape::kLdI || s == Shape::kLdX || s == Shape::kLdW ||
         s == Shape::kStI || s == Shape::kStX || s == Shape::kStW;
}

}  // namespace

void SlotMap::Uses::add(const Uop& u, uint64_t times) {
  const ShapeInfo info = shape_info(op_info(u.op).shape);
  const bool is_vector = is_vector_value(u);
  const auto use = [&](Slot s, const OperandUse& how, bool vector) {
    const int count = std::max(how.reads, how.writes);
    if (count > kLongestRun) return;
    for (int i = 0; i < count; ++i) (vector ? xmm : gp)[static_cast<Slot>(s + i)] += times;
  };
  // What is only moved may be of either kind.
  const bool d_may_be_vector =
      is_vector && u.op != Op::fcmp && u.op != Op::vumov && u.op != Op::vsmov && u.op != Op::f2i;
  if (moves_only(u)) {
    if (info.d.reads + info.d.writes != 0) {
      gp[u.d] += times / 2;
      xmm[u.d] += times / 2;
    }
  } else {
    use(u.d, info.d, d_may_be_vector);
  }
  use(u.a, info.a, is_vector && u.op != Op::i2f);
  use(u.b, info.b, is_vector);
  use(u.c, info.c, is_vector);
  use(u.e, info.e, false);
}

SlotMap SlotMap::best(const Uses& uses, int kept_in_frame) {
  std::vector<Slot> gp, xmm;
  for (int s = 0; s < 256; ++s) {
    const auto slot = static_cast<Slot>(s);
    if (s == kept_in_frame || uses.gp[slot] + uses.xmm[slot] == 0) continue;
    (uses.xmm[slot] > uses.gp[slot] ? xmm : gp).push_back(slot);
  }
  const auto rank = [&](std::vector<Slot>& slots) {
    std::stable_sort(slots.begin(), slots.end(), [&](Slot a, Slot b) {
      return uses.gp[a] + uses.xmm[a] > uses.gp[b] + uses.xmm[b];
    });
  };
  rank(gp);
  rank(xmm);
  SlotMap map;
  for (size_t i = 0; i < std::min(gp.size(), kGpRegisters.size()); ++i)
    map.places_[gp[i]] = {SlotPlace::kGp, kGpRegisters[i]};
  for (size_t i = 0; i < std::min(xmm.size(), kXmmRegisters.size()); ++i)
    map.places_[xmm[i]] = {SlotPlace::kXmm, kXmmRegisters[i]};
  return map;
}

uint64_t SlotMap::served(const Uses& uses) const {
  uint64_t sum = 0;
  for (int s = 0; s < 256; ++s) {
    const auto slot = static_cast<Slot>(s);
    if (places_[slot].kind != SlotPlace::kFrame) sum += std::max(uses.gp[slot], uses.xmm[slot]);
  }
  return sum;
}

void SlotMap::load_all(x86::Assembler& a) const {
  for (int s = 0; s < 256; ++s) {
    const auto slot = static_cast<Slot>(s);
    if (places_[slot].kind == SlotPlace::kGp)
      a.mov(x86::gpq(places_[slot].id), slot_in_frame(slot));
    if (places_[slot].kind == SlotPlace::kXmm)
      a.vmovq(x86::xmm(places_[slot].id), slot_in_frame(slot));
  }
}
void SlotMap::store_all(x86::Assembler& a) const {
  for (int s = 0; s < 256; ++s) {
    const auto slot = static_cast<Slot>(s);
    if (places_[slot].kind == SlotPlace::kGp)
      a.mov(slot_in_frame(slot), x86::gpq(places_[slot].id));
    if (places_[slot].kind == SlotPlace::kXmm)
      a.vmovq(slot_in_frame(slot), x86::xmm(places_[slot].id));
  }
}

}  // namespace gpusim::native
