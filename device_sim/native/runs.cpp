#include "device_sim/native/runs.h"

#include <algorithm>

#include "device_sim/core/memory_view.h"

namespace gpusim::native {

AccessRuns::AccessRuns(const Uop* uops, uint32_t begin, uint32_t end) {
  // What a slot holds: an unknown number, plus a constant.
  struct Known {
    uint32_t origin = 0;
    int64_t offset = 0;
  };
  std::array<Known, 256> slots;
  uint32_t origins = 0;
  for (Known& k : slots) k.origin = origins++;
  struct Open {
    uint32_t run;
    int64_t first;  // the first access's offset from the origin
  };
  std::unordered_map<uint32_t, Open> open;  // by origin

  for (uint32_t i = begin; i < end; ++i) {
    const Uop& u = uops[i];
    const ShapeInfo info = shape_info(op_info(u.op).shape);
    const AccessInfo access = access_info(u.op);
    if (access.size != 0 && access.mode == AddressMode::kImmediate) {
      const Known& base = slots[u.a];
      const int64_t at = base.offset + static_cast<int64_t>(u.imm);
      const auto found = open.find(base.origin);
      const int64_t offset = found == open.end() ? 0 : at - found->second.first;
      AccessRun* run = found == open.end() ? nullptr : &runs_[found->second.run];
      const auto extends = [&] {
        const int64_t low = std::min(run->low, offset);
        const int64_t high = std::max(run->high, offset + access.size);
        return high - low <= static_cast<int64_t>(kPageSize);
      };
      if (run != nullptr && extends()) {
        run->low = std::min(run->low, offset);
        run->high = std::max(run->high, offset + access.size);
        run->writes |= info.d.reads != 0;
        ++run->count;
        places_[i] = {found->second.run, offset};
      } else {
        open[base.origin] = {static_cast<uint32_t>(runs_.size()), at};
        places_[i] = {static_cast<uint32_t>(runs_.size()), 0};
        runs_.push_back({.first = i, .count = 1, .high = access.size, .writes = info.d.reads != 0});
      }
    }
    if (u.op == Op::mov) {
      slots[u.d] = slots[u.a];
      continue;
    }
    if (u.op == Op::addi64) {
      slots[u.d] = {slots[u.a].origin, slots[u.a].offset + static_cast<int64_t>(u.imm)};
      continue;
    }
    const auto forget = [&](Slot s, int count) {
      for (int k = 0; k < count; ++k) slots[static_cast<Slot>(s + k)] = {origins++, 0};
    };
    forget(u.d, info.d.writes);
    forget(u.c, info.c.writes);
    forget(u.e, info.fp_state ? 1 : info.e.writes);
  }
}

const AccessPlace* AccessRuns::find(uint32_t uop) const {
  const auto found = places_.find(uop);
  if (found == places_.end() || runs_[found->second.run].count < 2) return nullptr;
  return &found->second;
}

}  // namespace gpusim::native
