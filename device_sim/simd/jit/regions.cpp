#include "device_sim/simd/jit/regions.h"

#include <algorithm>

#include "device_sim/simd/jit/code_cache.h"
#include "device_sim/simd/jit/lower_kinds.h"
#include "device_sim/simd/jit/step_info.h"

namespace gpusim::simd {

namespace {

constexpr size_t kMostBlocks = 4, kMostSteps = 16;

// Values whose computation for lanes that do not come there does no harm.
bool may_be_inside(const Uop& u) {
  const ShapeInfo info = info_of(u);
  return info.pure && info.d.writes == 1 && !info.fp_state && is_straight(u.op);
}

Words known_words(const Group& g, Slot s) {
  return g.is_compact(s) ? words_of(g.compact(s), g.width - 1) : Words{0};
}

}  // namespace

Region region_behind(const Machine& machine, uint32_t branch) {
  const CodeCache& code = *machine.native;
  const auto uop_at = [&](uint32_t i) {
    Uop u = code.uops()[i];
    u.op = code.original_op(i);
    return u;
  };
  Region region;
  std::vector<uint32_t> open;  // blocks that lanes come to
  const auto go_to = [&](uint32_t start) {
    // Code that was translated apart is joined by links.
    for (size_t n = 0; n < kMostBlocks && uop_at(start).op == Op::link; ++n)
      start = uop_at(start).target();
    if (std::find(open.begin(), open.end(), start) == open.end()) open.push_back(start);
    return start;
  };
  region.taken = go_to(uop_at(branch).target());
  region.other = go_to(branch + 1);
  uint32_t last_rank = 0;
  for (size_t blocks = 0; open.size() > 1; ++blocks) {
    const auto first = std::min_element(open.begin(), open.end(), [&](uint32_t x, uint32_t y) {
      return machine.rank[x] < machine.rank[y];
    });
    const uint32_t start = *first;
    open.erase(first);
    if (blocks == kMostBlocks || machine.rank[start] <= last_rank) return {};
    last_rank = machine.rank[start];
    for (uint32_t i = start;; ++i) {
      if (region.steps.size() == kMostSteps) return {};
      Step s;
      s.uop = uop_at(i);
      s.index = i;
      s.block_start = start;
      s.side = may_be_inside(s.uop) ? Side::kInside : Side::kEnd;
      if (s.side == Side::kEnd) {
        const Shape shape = shape_of(s.uop);
        const bool jumps = shape == Shape::kJmp && s.uop.aux == 0;
        if (!jumps && !is_branch(shape)) return {};
        s.taken = go_to(s.uop.target());
        s.other = jumps ? s.taken : go_to(i + 1);
      }
      region.steps.push_back(s);
      if (s.side == Side::kEnd) break;
    }
  }
  region.join = open.front();
  for (Step& s : region.steps) s.next = region.join;
  return region;
}

void note_forms(const Group& g, Region& region) {
  for (Step& s : region.steps) {
    const Sources sources = sources_of(s.uop);
    for (int k = 0; k < sources.count; ++k) {
      s.before[k] = s.after[k] = g.kind[sources.slot[k]];
      s.words[k] = known_words(g, sources.slot[k]);
    }
    s.d_before = s.d_after = g.kind[s.uop.d];
    s.d_words = known_words(g, s.uop.d);
  }
}

}  // namespace gpusim::simd
