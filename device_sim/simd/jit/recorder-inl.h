// Runs native code where there is some, and records traces where there could be. Included by
// run_group.cpp, once per SIMD target.
#if defined(GPUSIM_SIMD_RECORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SIMD_RECORDER_INL_H_
#undef GPUSIM_SIMD_RECORDER_INL_H_
#else
#define GPUSIM_SIMD_RECORDER_INL_H_
#endif

#include "device_sim/simd/jit/code_cache.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {

inline const Uop* native_branch(Group& g, const Uop* u, uint64_t taken) { return branch(g, u, taken); }
inline void native_spread(Group& g, uint32_t slot) { spread(g, static_cast<Slot>(slot)); }
inline uint8_t* native_run(const Group& g, uint64_t address, uint64_t bytes, uint64_t need) {
  return linear_run(g, address, bytes, static_cast<uint8_t>(need));
}

// Notes what a load or store's addresses are like.
template <Op op>
void note_access(const Group& g, simd::Step& s) {
  using A = Access<op>;
  constexpr uint32_t size = sizeof(typename A::Type);
  simd::Compact x;
  if (!compact_address<A::kMode>(g, &s.uop, x)) return;
  const Pattern pattern = classify(g, x, size);
  s.consecutive = pattern == Pattern::kConsecutive;
  s.uniform_linear = pattern == Pattern::kUniform && linear_run(g, x.base, size, kRead) != nullptr;
}
inline void note_access(const Group& g, simd::Step& s) {
  switch (s.uop.op) {
#define GPUSIM_ACCESS_OF(name) \
  case Op::name: return note_access<Op::name>(g, s);
#define GPUSIM_ACCESSES_OF(name) \
  GPUSIM_ACCESS_OF(name) GPUSIM_ACCESS_OF(name##_x) GPUSIM_ACCESS_OF(name##_w)
    GPUSIM_ACCESSES_OF(ldu8) GPUSIM_ACCESSES_OF(ldu16) GPUSIM_ACCESSES_OF(ldu32)
    GPUSIM_ACCESSES_OF(ld64) GPUSIM_ACCESSES_OF(lds8x) GPUSIM_ACCESSES_OF(lds16x)
    GPUSIM_ACCESSES_OF(lds32x) GPUSIM_ACCESSES_OF(lds8w) GPUSIM_ACCESSES_OF(lds16w)
    GPUSIM_ACCESSES_OF(st8) GPUSIM_ACCESSES_OF(st16) GPUSIM_ACCESSES_OF(st32)
    GPUSIM_ACCESSES_OF(st64)
#undef GPUSIM_ACCESSES_OF
#undef GPUSIM_ACCESS_OF
    default: return;
  }
}

// Micro-ops that write slots besides d, or whose forms cannot be followed.
inline bool ends_trace(Shape s) {
  return s == Shape::kCas128 || s == Shape::kStx || s == Shape::kStx128 || s == Shape::kService ||
         s == Shape::kTrap || s == Shape::kGiveWay;
}

inline void note_sources(const Group& g, const Uop& u, uint8_t* kinds) {
  const ShapeInfo info = shape_info(op_info(u.op).shape);
  int k = 0;
  if (info.a.reads) kinds[k++] = g.kind[u.a];
  if (info.b.reads) kinds[k++] = g.kind[u.b];
  if (info.c.reads) kinds[k++] = g.kind[u.c];
  if (info.aux.reads) kinds[k++] = g.kind[u.aux];
}
inline uint8_t note_fits(const Group& g, const Uop& u) {
  const ShapeInfo info = shape_info(op_info(u.op).shape);
  uint8_t bits = 0, bit = 1;
  const auto note = [&](bool reads, Slot s) {
    if (!reads) return;
    if (g.is_compact(s) && fits_32_bits(g, s)) bits |= bit;
    bit = static_cast<uint8_t>(bit << 1);
  };
  note(info.a.reads, u.a);
  note(info.b.reads, u.b);
  note(info.c.reads, u.c);
  note(info.aux.reads, u.aux);
  return bits;
}

// Runs on from `u` under the interpreter, writes down what happens, and has it compiled.
template <bool kFull>
const Uop* record(Group& g, const Uop* u, simd::NativeVariants& variants) {
  constexpr size_t kMaxSteps = 400;
  simd::CodeCache& cache = *g.machine->native;
  constexpr const HandlerTable& table = kFull ? kFullTable : kPartTable;
  simd::Trace trace;
  trace.partial = !kFull;
  const uint64_t active = g.active;
  const Uop* const first = u;
  bool started = false, whole = true;
  for (;;) {
    const uint32_t index = index_of(g, u);
    simd::Step s;
    s.uop = *u;
    s.uop.op = cache.original_op(index);
    s.index = index;
    const Shape shape = op_info(s.uop.op).shape;
    if (ends_trace(shape) || trace.steps.size() == kMaxSteps) break;
    const ShapeInfo info = shape_info(shape);
    note_sources(g, s.uop, s.before);
    s.fits_32_bits = note_fits(g, s.uop);
    s.d_before = g.kind[u->d];
    note_access(g, s);
    if (shape == Shape::kJmpReg) {
      const CodeView& code = g.machine->code;
      s.jump = row(g, u->a)[0];
      s.jump_unit = (s.jump - code.text_base) >> code.pc_shift;
    }
    if (info.fp_state && g.kind[u->imm16] == simd::kUniform) {
      s.fp_state = row(g, static_cast<Slot>(u->imm16))[0];
      s.fp_settled = s.fp_state >> 32 == 0 && (s.fp_state & softfloat::kFpsrIxc) != 0;
    }
    u = table.handlers[static_cast<int>(s.uop.op)](g, u);
    started = true;
    note_sources(g, s.uop, s.after);
    s.d_after = g.kind[s.uop.d];
    for (int k = 0; k < 4; ++k)
      s.compacted |= s.before[k] > simd::kAffine && s.after[k] <= simd::kAffine;
    const bool ends = info.ends_block;
    if (u == nullptr || g.active != active) {
      if (ends) {
        s.parted = true;
        trace.steps.push_back(s);
      } else {
        whole = false;  // a lane stopped
      }
      break;
    }
    s.next = index_of(g, u);
    trace.steps.push_back(s);
    if (u == first) {
      trace.closed = true;
      break;
    }
    // Another loop: its own entry will do.
    if (ends && s.next < s.index && s.next != index_of(g, first)) break;
  }
  // Nothing to compile counts as an attempt, too.
  if (!whole) trace.steps.clear();
  cache.add(variants, trace,
            {table.handlers, native_branch, native_run, native_spread, g.machine->block_tallies});
  if (!started)
    u = table.handlers[static_cast<int>(cache.original_op(index_of(g, u)))](g, u);
  return u;
}

// Handlers of marked micro-ops.
template <bool kFull>
const Uop* run_marked(Group& g, const Uop* u) {
  simd::NativeEntry& entry = g.machine->native->entry(index_of(g, u));
  if (HWY_LIKELY(g.width == kMaxLanes)) {
    simd::NativeVariants& variants = kFull ? entry.full : entry.partial;
    const int count = variants.count.load(std::memory_order_acquire);
    for (int v = 0; v < count; ++v) {
      const simd::NativeCode code = variants.code[v].load(std::memory_order_relaxed);
      const Uop* next = code(g, g.machine->code.uops);
      if (HWY_LIKELY(next != simd::kMissed)) return next;
    }
    if (variants.want_trace()) return record<kFull>(g, u, variants);
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
