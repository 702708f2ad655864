// Runs native code where there is some, and records traces where there could be. Included by
// run_group.cpp, once per SIMD target.
#if defined(GPUSIM_SIMD_RECORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SIMD_RECORDER_INL_H_
#undef GPUSIM_SIMD_RECORDER_INL_H_
#else
#define GPUSIM_SIMD_RECORDER_INL_H_
#endif

#include "device_sim/simd/jit/code_cache.h"
#include "device_sim/simd/jit/regions.h"
#include "device_sim/simd/jit/step_info.h"
#include "device_sim/simd/run_alone.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {

inline const Uop* native_branch(Group& g, const Uop* u, uint64_t taken) { return branch(g, u, taken); }
inline void native_spread(Group& g, uint32_t slot) { spread(g, static_cast<Slot>(slot)); }
inline uint8_t* native_run(Group& g, uint64_t address, uint64_t bytes, uint64_t need) {
  return linear_run(g, address, bytes, static_cast<uint8_t>(need));
}

// The first lane's element.
inline uint8_t* native_row(Group& g, uint64_t address, uint64_t stride, uint64_t size, uint64_t need) {
  const auto bytes = static_cast<uint32_t>(size);
  if (address % bytes != 0 || classify(g, {address, stride}, bytes) != Pattern::kRow) return nullptr;
  uint64_t* const words =
      window_row(g, row_offset(g, address), bytes, static_cast<uint8_t>(need)).words;
  return words == nullptr ? nullptr : reinterpret_cast<uint8_t*>(words) + (address & 7);
}

// The number of lanes, 16 or 8, each so many of which have elements `step` bytes apart; or 0.
template <class Address>
uint8_t lanes_apart(Address address_in, uint64_t step) {
  uint32_t lanes = 16;
  for (uint32_t l = 1; l < kMaxLanes && lanes >= 8; ++l)
    while (lanes >= 8 && l % lanes != 0 && address_in(l) != address_in(l - 1) + step) lanes /= 2;
  return lanes >= 8 ? static_cast<uint8_t>(lanes) : uint8_t{0};
}

// Notes what a load or store's addresses are like; `together`: also whether lanes are.
inline void note_access(Group& g, simd::Step& s, bool together) {
  const AccessInfo access = access_info(s.uop.op);
  const auto size = static_cast<uint32_t>(access.size);
  simd::Compact x;
  bool compact = false;
  switch (access.mode) {
    case AddressMode::kImmediate:
      compact = compact_address<AddressMode::kImmediate>(g, &s.uop, x);
      break;
    case AddressMode::kIndex: compact = compact_address<AddressMode::kIndex>(g, &s.uop, x); break;
    case AddressMode::kIndex32: compact = compact_address<AddressMode::kIndex32>(g, &s.uop, x);
  }
  if (compact) {
    const Pattern pattern = classify(g, x, size);
    s.consecutive = pattern == Pattern::kConsecutive;
    s.in_row = pattern == Pattern::kRow && x.base % size == 0;  // then it lies in one word
    s.uniform_linear = pattern == Pattern::kUniform && linear_run(g, x.base, size, kRead) != nullptr;
    if (pattern != Pattern::kScattered) return;
  }
  const auto address_in = [&](uint32_t lane) {
    const uint64_t index = access.mode == AddressMode::kImmediate ? 0 : g.get_lane(s.uop.b, lane);
    return simd::address_of(access.mode, g.get_lane(s.uop.a, lane), index, s.uop.imm);
  };
  // Addresses that lie in a pattern are left to the handler, which makes them compact.
  const auto lane = static_cast<uint32_t>(std::countr_zero(g.active));
  const uint64_t first = address_in(lane), stride = lane + 1 < g.width ? address_in(lane + 1) - first : 0;
  const simd::Compact even{first - lane * stride, stride};
  bool in_pattern = classify(g, even, size) != Pattern::kScattered;
  uint64_t begin = ~uint64_t{0}, last = 0, former = 0;
  uint32_t alike = 0;  // lanes so far, of eight
  simd::for_each_lane(g.active, [&](uint32_t l) {
    const uint64_t address = address_in(l);
    alike = l % 8 == 0 ? 1 : address == former ? alike + 1 : 0;
    former = address;
    s.repeats |= alike == 8;
    in_pattern &= address == even.at(l);
    begin = std::min(begin, address);
    last = std::max(last, address);
  });
  if (in_pattern) return;
  const uint8_t need = simd::is_load(simd::shape_of(s.uop)) ? kRead : kWrite;
  s.scattered = last >= begin && linear_run(g, begin, last - begin + simd::touched_bytes(size), need);
  if (!together || size < 4 || g.active != ~uint64_t{0}) return;
  s.alike = need == kRead ? lanes_apart(address_in, 0) : uint8_t{0};
  s.neighbours = lanes_apart(address_in, size);
}

// Micro-ops that write slots besides d, or whose forms cannot be followed.
inline bool ends_trace(Shape s) {
  return s == Shape::kCas128 || s == Shape::kStx || s == Shape::kStx128 || s == Shape::kService ||
         s == Shape::kTrap || s == Shape::kGiveWay || s == Shape::kVector;
}

// After branch `s`: if a region lies behind it, runs until all lanes are together at its end, and
// writes its steps down.
enum class Met : uint8_t { kNoRegion, kTogether, kElsewhere };
inline Met record_region(Group& g, const Uop*& u, simd::Step& s, simd::Trace& trace) {
  const simd::Sources sources = simd::sources_of(s.uop);
  bool compact = true;
  for (int k = 0; k < sources.count; ++k) compact &= simd::is_compact(s.after[k]);
  if (u == nullptr || compact || g.machine->counts_lanes) return Met::kNoRegion;
  simd::Region region = simd::region_behind(*g.machine, s.index);
  if (region.steps.empty()) return Met::kNoRegion;
  simd::note_forms(g, region);
  const auto together = [&] {
    return u != nullptr && g.active == g.exists && index_of(g, u) == region.join;
  };
  for (size_t left = 4 * region.steps.size(); left > 0 && u != nullptr && !together(); --left) {
    const HandlerTable& table = g.active == g.exists ? kFullTable : kPartTable;
    u = table.handlers[static_cast<int>(g.machine->native->original_op(index_of(g, u)))](g, u);
  }
  if (!together()) return Met::kElsewhere;
  s.side = simd::Side::kRoot;
  s.taken = region.taken;
  s.other = region.other;
  s.next = region.join;
  trace.steps.push_back(s);
  trace.steps.insert(trace.steps.end(), region.steps.begin(), region.steps.end());
  return Met::kTogether;
}

// Whether another loop begins at `index`, to which the trace has come by a jump back: its own entry
// will do. What the trace has not met lies out of the way of this loop.
inline bool begins_loop(const simd::Trace& trace, uint32_t index) {
  const auto is_there = [index](const simd::Step& s) { return s.index == index; };
  return index < trace.steps.front().index ||
         std::any_of(trace.steps.begin(), trace.steps.end(), is_there);
}

// Runs on from `u` under the interpreter, writes down what happens, and has it compiled.
template <bool kFull>
const Uop* record(Group& g, const Uop* u, simd::NativeVariants& variants) {
  constexpr size_t kMaxSteps = 400;
  // Code for lanes that are together is left where they are not: values may change too often.
  constexpr int kAttemptsTogether = 4;
  simd::CodeCache& cache = *g.machine->native;
  constexpr const HandlerTable& table = kFull ? kFullTable : kPartTable;
  simd::Trace trace;
  trace.partial = !kFull;
  trace.width = g.width;
  const uint64_t active = g.active;
  const Uop* const first = u;
  bool started = false, whole = true;
  for (;;) {
    const uint32_t index = index_of(g, u);
    simd::Step s;
    s.uop = *u;
    s.uop.op = cache.original_op(index);
    s.index = index;
    const Shape shape = simd::shape_of(s.uop);
    if (shape == Shape::kLink) {  // is no step: code goes on as if it were not there
      u = uop_at(g, u->target());
      started = true;
      trace.closed = u == first && !trace.steps.empty();
      if (u == first || (index_of(g, u) < index && !trace.steps.empty() &&
                         begins_loop(trace, index_of(g, u))))
        break;
      continue;
    }
    if (ends_trace(shape) || trace.steps.size() == kMaxSteps) break;
    const ShapeInfo info = shape_info(shape);
    const simd::Sources sources = simd::sources_of(s.uop);
    for (int k = 0; k < sources.count; ++k) {
      const Slot slot = sources.slot[k];
      s.before[k] = g.kind[slot];
      if (g.is_compact(slot)) s.words[k] = known_words(g, slot);
    }
    s.d_before = g.kind[u->d];
    if (simd::is_load(shape) || simd::is_store(shape))
      note_access(g, s, variants.attempts < kAttemptsTogether);
    if (shape == Shape::kJmpReg) {
      const CodeView& code = g.machine->code;
      s.jump = g.base[u->a];
      s.jump_unit = (s.jump - code.text_base) >> code.pc_shift;
    }
    if (info.fp_state && g.kind[u->e] == simd::kUniform) {
      s.fp_state = g.base[u->e];
      s.fp_settled = softfloat::is_default_mode(s.fp_state) && (s.fp_state & softfloat::kFpsrIxc) != 0;
    }
    u = table.handlers[static_cast<int>(s.uop.op)](g, u);
    started = true;
    for (int k = 0; k < sources.count; ++k) {
      s.after[k] = g.kind[sources.slot[k]];
      s.compacted |= !simd::is_compact(s.before[k]) && simd::is_compact(s.after[k]);
    }
    s.d_after = g.kind[s.uop.d];
    if (info.fp_state) s.state_after = g.kind[s.uop.e];
    if (!trace.is_masked() && simd::is_branch(shape)) {
      const Met met = record_region(g, u, s, trace);
      if (met == Met::kElsewhere) {
        s.parted = true;
        trace.steps.push_back(s);
        break;
      }
      if (met == Met::kTogether) {
        trace.closed = u == first;
        if (u == first || (s.next < s.index && begins_loop(trace, s.next))) break;
        continue;
      }
    }
    if (u == nullptr || g.active != active) {
      if (info.ends_block) {
        s.parted = true;
        trace.steps.push_back(s);
      } else if (!is_of_warps(shape)) {  // these wait for others, and the trace ends before them
        whole = false;                   // a lane stopped
      }
      break;
    }
    s.next = index_of(g, u);
    trace.steps.push_back(s);
    if (u == first) {
      trace.closed = true;
      break;
    }
    if (info.ends_block && s.next < s.index && begins_loop(trace, s.next)) break;
  }
  // Nothing to compile counts as an attempt, too.
  if (!whole) trace.steps.clear();
  cache.add(variants, trace,
            {table.handlers, native_branch, native_run, native_row, native_spread, g.machine->block_tallies,
             &g.machine->memory});
  if (!started)
    u = table.handlers[static_cast<int>(cache.original_op(index_of(g, u)))](g, u);
  return u;
}

inline void note_misfit(Group& g, const Uop* at) {
  const uint32_t index = index_of(g, at);
  if (at->op != simd::kEntryOp) g.machine->native->note_misfit(index);
}

// Handlers of marked micro-ops.
template <bool kFull>
const Uop* run_marked(Group& g, const Uop* u) {
  simd::NativeEntry& entry = g.machine->native->entry(index_of(g, u));
  if (g.width == 1) {
    const uint32_t at = index_of(g, u);
    const uint32_t next = simd::run_alone(g, at);
    if (HWY_LIKELY(next != kNoUop && (next != at || g.budget <= 0))) return go_to(g, next);
  }
  if (HWY_LIKELY(g.width > 1)) {
    simd::NativeVariants& variants = entry.variants[g.width == kMaxLanes][kFull];
    if (HWY_UNLIKELY(variants.want_another())) return record<kFull>(g, u, variants);
    const int count = variants.count.load(std::memory_order_acquire);
    const int first = variants.first.load(std::memory_order_relaxed);
    const int64_t budget = g.budget;
    for (int k = 0; k < count; ++k) {
      const int v = first + k < count ? first + k : first + k - count;
      const simd::NativeCode code = variants.code[v].load(std::memory_order_relaxed);
      const Uop* next = code(g, g.machine->code.uops);
      if (HWY_UNLIKELY(g.misfit != simd::Misfit::kNone)) {
        const simd::Misfit misfit = std::exchange(g.misfit, simd::Misfit::kNone);
        if (misfit == simd::Misfit::kTogether) {
          if (k == 0) variants.note_together();
        } else if (next != nullptr && next != simd::kMissed) {
          note_misfit(g, next);
          if (k == 0 && g.budget == budget) variants.note_misfit();
        }
      }
      if (HWY_UNLIKELY(next == simd::kEarly))
        return kFullTable.handlers[static_cast<int>(entry.op)](g, u);
      if (HWY_LIKELY(next != simd::kMissed)) return next;
    }
    if (variants.want_trace(g.machine->native->patience().misses))
      return record<kFull>(g, u, variants);
  }
  constexpr const HandlerTable& table = kFull ? kFullTable : kPartTable;
  return table.handlers[static_cast<int>(entry.op)](g, u);
}
const Uop* run_marked_full(Group& g, const Uop* u) { return run_marked<true>(g, u); }
const Uop* run_marked_part(Group& g, const Uop* u) { return run_marked<false>(g, u); }

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();
#endif
