// Runs a group's micro-ops on SIMD lanes; included once per SIMD target. One handler per micro-op
// and kind of mask: kFull when every lane of the group runs, else results are blended into the
// active lanes.
#if defined(GPUSIM_SIMD_RUNNER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SIMD_RUNNER_INL_H_
#undef GPUSIM_SIMD_RUNNER_INL_H_
#else
#define GPUSIM_SIMD_RUNNER_INL_H_
#endif

#include "device_sim/simd/group.h"
#include "device_sim/simd/narrow.h"
#include "device_sim/simd/simd_domain-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {

using simd::Group;
using simd::kMaxLanes;
using SD = sem::ScalarDomain;
using VD = SimdDomain;
using ND = NarrowDomain;
using V = VD::V;
inline constexpr size_t kN = VD::kLanes;

// A handler runs one micro-op and returns the next, or null when the group has to stop or to be
// rescheduled by its caller.
using Handler = const Uop* (*)(Group&, const Uop*);
struct HandlerTable {
  Handler handlers[kOpCount + 1];
};
extern const HandlerTable kFullTable, kPartTable;
// Of micro-ops where native code may start (jit/).
const Uop* run_marked_full(Group& g, const Uop* u);
const Uop* run_marked_part(Group& g, const Uop* u);

HWY_INLINE uint64_t* row(const Group& g, Slot s) { return g.lanes + size_t{s} * kMaxLanes; }
HWY_INLINE V load_vec(const uint64_t* p) { return hn::Load(VD::Tag(), p); }
HWY_INLINE void store_vec(V v, uint64_t* p) { hn::Store(v, VD::Tag(), p); }
// The active lanes of vector `v` as a mask, from their bits.
HWY_INLINE VD::M chunk_mask(uint64_t active, size_t v) {
  const uint8_t bits[8] = {static_cast<uint8_t>((active >> (v * kN)) & ((1u << kN) - 1))};
  return hn::LoadMaskBits(VD::Tag(), bits);
}
HWY_INLINE bool chunk_empty(uint64_t active, size_t v) {
  return ((active >> (v * kN)) & ((1u << kN) - 1)) == 0;
}

// Writes an affine slot's values into its row, as an operand of vector operations.
HWY_INLINE void fill(Group& g, Slot s) {
  if (g.filled[s]) return;
  uint64_t* p = row(g, s);
  const V stride = VD::konst(g.stride[s]), next = VD::konst(kN * g.stride[s]);
  V x = VD::add(VD::konst(g.base[s]), VD::mul(hn::Iota(VD::Tag(), 0), stride));
  for (size_t v = 0; v < g.chunks; ++v, x = VD::add(x, next)) store_vec(x, p + v * kN);
  g.filled[s] = true;
}

HWY_INLINE uint32_t* narrow_row(const Group& g, Slot s) {
  return reinterpret_cast<uint32_t*>(row(g, s));
}
HWY_INLINE ND::V load_narrow(const uint32_t* p) { return hn::Load(ND::Tag(), p); }
HWY_INLINE void store_narrow(ND::V v, uint32_t* p) { hn::Store(v, ND::Tag(), p); }
// Words of a row as the 64-bit values that they stand for. `kind`: kNarrow or kSigned.
HWY_INLINE V widen(const uint32_t* p, uint8_t kind) {
  if (kind == simd::kNarrow)
    return hn::PromoteTo(VD::Tag(), hn::Load(hn::Rebind<uint32_t, VD::Tag>(), p));
  const hn::Rebind<int32_t, VD::Tag> d;
  const auto words = hn::BitCast(d, hn::Load(hn::Rebind<uint32_t, VD::Tag>(), p));
  return hn::BitCast(VD::Tag(), hn::PromoteTo(VD::Signed(), words));
}
static_assert(simd::kNarrow == simd::kZeroAbove && simd::kSigned == simd::kSignAbove);
// The kind of row for words of which that is known.
constexpr simd::Kind row_of(simd::Words words) {
  return words & simd::kZeroAbove ? simd::kNarrow : simd::kSigned;
}
HWY_INLINE void narrow(V x, uint32_t* p) {
  const hn::Rebind<uint32_t, VD::Tag> d;
  hn::Store(hn::TruncateTo(d, x), d, p);
}

// A slot is about to have single lanes written.
HWY_INLINE void lose_compact(Group& g, Slot s) {
  g.lost[s / 64] |= uint64_t{1} << (s % 64);
  g.any_lost = true;
}

// Gives every lane its own 64-bit word.
HWY_INLINE void spread(Group& g, Slot s) {
  if (g.kind[s] == simd::kLanes) return;
  uint64_t* p = row(g, s);
  if (g.has_words(s)) {  // in place, so from the end
    const uint32_t* from = narrow_row(g, s);
    const uint8_t kind = g.kind[s];
    for (size_t v = g.chunks; v-- > 0;) store_vec(widen(from + v * kN, kind), p + v * kN);
    g.kind[s] = simd::kLanes;
    return;
  }
  lose_compact(g, s);
  if (g.kind[s] == simd::kUniform) {
    const V x = VD::konst(g.base[s]);
    for (size_t v = 0; v < g.chunks; ++v) store_vec(x, p + v * kN);
  } else {
    fill(g, s);
  }
  g.kind[s] = simd::kLanes;
}

// What is known of the values of a slot.
HWY_INLINE simd::Words known_words(const Group& g, Slot s) {
  if (g.has_words(s)) return g.kind[s];
  return g.is_compact(s) ? simd::words_of(g.compact(s), g.width - 1) : simd::Words{0};
}

HWY_INLINE void store_narrow_affine(simd::Compact x, uint32_t* to) {
  const ND::V next = ND::konst(ND::kLanes * x.stride);
  ND::V at = ND::add(ND::konst(x.base), ND::mul(hn::Iota(ND::Tag(), 0), ND::konst(x.stride)));
  for (size_t v = 0; v * ND::kLanes < kMaxLanes; ++v, at = ND::add(at, next))
    store_narrow(at, to + v * ND::kLanes);
}

// Gives every lane its own 32-bit word, if that is enough and the lanes have no 64-bit ones, for
// some of them to become `words`.
HWY_INLINE bool spread_narrow(Group& g, Slot s, simd::Words words) {
  if (g.has_words(s)) return (g.kind[s] & words) != 0;
  const auto common = static_cast<simd::Words>(known_words(g, s) & words);
  if (common == 0) return false;
  lose_compact(g, s);
  store_narrow_affine(g.compact(s), narrow_row(g, s));
  g.kind[s] = row_of(common);
  return true;
}

// Stores vector `v` of the active lanes' results into a narrow row.
HWY_INLINE void blend_narrow(const Group& g, ND::V x, uint32_t* p, size_t v) {
  const uint64_t bits = g.active >> (v * ND::kLanes);
  hn::BlendedStore(x, hn::LoadMaskBits(ND::Tag(), reinterpret_cast<const uint8_t*>(&bits)), ND::Tag(),
                   p + v * ND::kLanes);
}
HWY_INLINE bool narrow_chunk_empty(uint64_t active, size_t v) {
  return ((active >> (v * ND::kLanes)) & ((uint64_t{1} << ND::kLanes) - 1)) == 0;
}

template <bool kFull>
HWY_INLINE void write_uniform(Group& g, Slot s, uint64_t value) {
  if constexpr (kFull) {
    g.base[s] = value;
    g.kind[s] = simd::kUniform;
  } else {
    if (g.kind[s] == simd::kUniform && g.base[s] == value) return;
    if (g.has_words(s) && (g.kind[s] & simd::words_of(value)) != 0) {
      for (size_t v = 0; v * ND::kLanes < kMaxLanes; ++v)
        if (!narrow_chunk_empty(g.active, v)) blend_narrow(g, ND::konst(value), narrow_row(g, s), v);
      return;
    }
    spread(g, s);
    uint64_t* p = row(g, s);
    for (size_t v = 0; v < g.chunks; ++v)
      hn::BlendedStore(VD::konst(value), chunk_mask(g.active, v), VD::Tag(), p + v * kN);
  }
}

HWY_INLINE void write_compact(Group& g, Slot s, simd::Compact x) {
  if (x.stride == 0) return write_uniform<true>(g, s, x.base);
  g.base[s] = x.base;
  g.stride[s] = x.stride;
  g.kind[s] = simd::kAffine;
  g.filled[s] = false;
}

// Makes a slot compact if its lanes allow it. Gives up at the first vector that does not.
HWY_INLINE bool try_compact(Group& g, Slot s) {
  if (g.is_compact(s)) return true;
  if (g.width < 2) return false;
  if (g.has_words(s)) {
    const uint32_t* p = narrow_row(g, s);
    const uint64_t first = g.get_lane(s, 0);
    const simd::Compact x{first, g.get_lane(s, 1) - first};
    if ((simd::words_of(x, g.width - 1) & g.kind[s]) == 0) return false;
    const ND::V next = ND::konst(ND::kLanes * x.stride);
    ND::V expected = ND::add(ND::konst(x.base), ND::mul(hn::Iota(ND::Tag(), 0), ND::konst(x.stride)));
    for (size_t v = 0; v * ND::kLanes < g.width; ++v, expected = ND::add(expected, next)) {
      const uint64_t differ =
          ND::mask_bits(ND::m_not(ND::eq(load_narrow(p + v * ND::kLanes), expected)));
      if ((differ << (v * ND::kLanes)) & g.exists) return false;
    }
    write_compact(g, s, x);
    return true;
  }
  const uint64_t* p = row(g, s);
  const simd::Compact x{p[0], p[1] - p[0]};
  const V next = VD::konst(kN * x.stride);
  V expected = VD::add(VD::konst(x.base), VD::mul(hn::Iota(VD::Tag(), 0), VD::konst(x.stride)));
  for (size_t v = 0; v < g.chunks; ++v, expected = VD::add(expected, next)) {
    const uint64_t differ = VD::mask_bits(VD::m_not(VD::eq(load_vec(p + v * kN), expected)));
    if ((differ << (v * kN)) & g.exists) return false;
  }
  write_compact(g, s, x);
  g.filled[s] = true;
  return true;
}

// Calls f for each active lane.
template <bool kFull, class F>
HWY_INLINE void for_lanes(const Group& g, F f) {
  if constexpr (kFull) {
    for (uint32_t lane = 0; lane < g.width; ++lane) f(lane);
  } else {
    for (uint64_t left = g.active; left != 0; left &= left - 1) f(static_cast<uint32_t>(std::countr_zero(left)));
  }
}

// Stores vector `v` of a result row.
template <bool kFull>
HWY_INLINE void write_chunk(Group& g, uint64_t* p, size_t v, V x) {
  if constexpr (kFull) store_vec(x, p + v * kN);
  else hn::BlendedStore(x, chunk_mask(g.active, v), VD::Tag(), p + v * kN);
}

template <class F, size_t... v>
HWY_INLINE void unrolled(F& f, std::index_sequence<v...>) {
  (f(sizeof...(v) - 1 - v), ...);
}

// Calls f for each vector of a row. A full row is unrolled for the micro-ops that loops are made of:
// no loop branches, which would also crowd the branch history that predicts the next handler.
template <bool kFull, bool kUnroll = false, class F>
HWY_INLINE void for_chunks(const Group& g, F f) {
  constexpr size_t kRow = kMaxLanes / kN;
  if (kFull && kUnroll && HWY_LIKELY(g.chunks == kRow)) {
    unrolled(f, std::make_index_sequence<kRow>());
    return;
  }
  for (size_t v = g.chunks; v-- > 0;) {
    if (!kFull && chunk_empty(g.active, v)) continue;
    f(v);
  }
}

template <class F>
HWY_INLINE void for_narrow_chunks(F f) {
  unrolled(f, std::make_index_sequence<kMaxLanes / ND::kLanes>());
}

// --- values

// An operand of a vector operation, number `k` of them. Uniform values are read with a step of 0.
struct Source {
  const uint64_t* p;
  size_t step = kN;
  HWY_INLINE Source(Group& g, Slot s, int k) : p(row(g, s)) {
    switch (g.kind[s]) {
      case simd::kUniform:
        store_vec(VD::konst(g.base[s]), g.workspace->operands[k]);
        p = g.workspace->operands[k];
        step = 0;
        break;
      case simd::kAffine: fill(g, s); break;
      case simd::kNarrow:
      case simd::kSigned: {
        uint64_t* to = g.workspace->operands[k];
        const uint32_t* from = narrow_row(g, s);
        const uint8_t kind = g.kind[s];
        for (size_t v = 0; v < g.chunks; ++v) store_vec(widen(from + v * kN, kind), to + v * kN);
        p = to;
        break;
      }
      default: break;
    }
  }
  HWY_INLINE V at(size_t v) const { return load_vec(p + v * step); }
};

// The low 32 bits of an operand.
struct NarrowSource {
  const uint32_t* p;
  size_t step = ND::kLanes;
  HWY_INLINE NarrowSource(Group& g, Slot s, int k) : p(narrow_row(g, s)) {
    if (HWY_LIKELY(g.has_words(s))) return;
    auto* to = reinterpret_cast<uint32_t*>(g.workspace->operands[k]);
    const uint64_t* from = row(g, s);
    if (g.kind[s] == simd::kUniform) {
      store_narrow(ND::konst(g.base[s]), to);
      step = 0;
    } else if (g.kind[s] == simd::kAffine) {
      store_narrow_affine(g.compact(s), to);
    } else {
      for (size_t v = 0; v < g.chunks; ++v) narrow(load_vec(from + v * kN), to + v * kN);
    }
    p = to;
  }
  HWY_INLINE ND::V at(size_t v) const { return load_narrow(p + v * step); }
};

// Operands in order, each with its number.
template <class Operand, class F, size_t... k, class... S>
HWY_INLINE void with_operands(Group& g, F f, std::index_sequence<k...>, S... slots) {
  f(Operand(g, slots, static_cast<int>(k))...);
}
template <class Operand, class F, class... S>
HWY_INLINE void with_operands(Group& g, F f, S... slots) {
  with_operands<Operand>(g, f, std::make_index_sequence<sizeof...(S)>(), slots...);
}

// What 32-bit lanes would give; 0: they do not serve.
template <Op op, class... S>
HWY_INLINE simd::Words narrow_words(const Group& g, const Uop* u, S... slots) {
  simd::Words known[4] = {};
  if constexpr (!simd::asks_fields(op)) {
    constexpr simd::Words kNothing[4] = {};
    constexpr simd::Words kResult = simd::narrow_form(Uop{.op = op}, kNothing).result;
    return kResult;
  }
  if constexpr (simd::asks_sources(op)) {
    int k = 0;
    ((known[k++] = known_words(g, slots)), ...);
  }
  Uop mine = *u;
  mine.op = op;  // in the code it may be the mark of an entry
  return simd::narrow_form(mine, known).result;
}

// `apply` is the micro-op's semantic function for any domain: apply(Domain(), operands...).
template <bool kFull, Op op, class F, class... S>
HWY_INLINE const Uop* run_value(Group& g, const Uop* u, F apply, S... slots) {
  const unsigned kinds = (0u | ... | g.kind[slots]);
  if (kinds == simd::kUniform) {
    write_uniform<kFull>(g, u->d, apply(SD(), g.base[slots]...));
    return u + 1;
  }
  if constexpr (kFull && has_trait(op, traits::kAffine)) {
    if (kinds == simd::kAffine) {
      const simd::Compact sources[3] = {g.compact(slots)...};
      simd::Compact d;
      if (simd::affine_rule<op>(*u, g.width - 1, sources[0], sources[1], sources[2], d)) {
        write_compact(g, u->d, d);
        return u + 1;
      }
    }
  }
  if constexpr (simd::may_run_narrow(op)) {
    const simd::Words words = narrow_words<op>(g, u, slots...);
    if (words != 0 && (kFull || spread_narrow(g, u->d, words))) {
      uint32_t* d = narrow_row(g, u->d);
      with_operands<NarrowSource>(
          g,
          [&](const auto... source) HWY_ATTR {
            if constexpr (kFull) {
              for_narrow_chunks([&](size_t v) HWY_ATTR {
                store_narrow(apply(ND(), source.at(v)...), d + v * ND::kLanes);
              });
            } else {
              for (size_t v = 0; v * ND::kLanes < kMaxLanes; ++v)
                if (!narrow_chunk_empty(g.active, v)) blend_narrow(g, apply(ND(), source.at(v)...), d, v);
            }
          },
          slots...);
      if (kFull) g.kind[u->d] = row_of(words);
      return u + 1;
    }
  }
  if (!kFull) spread(g, u->d);
  uint64_t* d = row(g, u->d);
  with_operands<Source>(
      g,
      [&](const auto... source) HWY_ATTR {
        for_chunks<kFull, has_trait(op, traits::kHot)>(g, [&](size_t v) HWY_ATTR {
          write_chunk<kFull>(g, d, v, apply(VD(), source.at(v)...));
        });
      },
      slots...);
  g.kind[u->d] = simd::kLanes;
  return u + 1;
}

// Values with a state word. The state changes rarely (flags stick), so it stays uniform until a
// vector of lanes disagrees.
template <bool kFull, class Vector, class Scalar, class... S>
HWY_INLINE const Uop* run_fp(Group& g, const Uop* u, Vector vector, Scalar scalar, S... slots) {
  const Slot fs = u->e;
  if ((g.kind[fs] | ... | g.kind[slots]) == simd::kUniform) {
    uint64_t fp = g.base[fs];
    const uint64_t r = scalar(g.base[slots]..., fp);
    if (fp != g.base[fs]) write_uniform<kFull>(g, fs, fp);
    write_uniform<kFull>(g, u->d, r);
    return u + 1;
  }
  if (!kFull) spread(g, u->d);
  if (g.kind[fs] != simd::kUniform) spread(g, fs);  // not read through a Source
  uint64_t* d = row(g, u->d);
  uint64_t* state = row(g, fs);
  bool settled = g.kind[fs] == simd::kUniform;
  const V settled_state = VD::konst(g.base[fs]);
  bool changed = false;
  with_operands<Source>(g, [&](const auto... source) HWY_ATTR {
    for_chunks<kFull>(g, [&](size_t v) HWY_ATTR {
      const V before = settled ? settled_state : load_vec(state + v * kN);
      V fp = before;
      const V r = vector(source.at(v)..., fp);
      if (HWY_UNLIKELY(!VD::all(VD::eq(fp, before)))) {
        spread(g, fs);
        settled = false;
        write_chunk<kFull>(g, state, v, fp);
        changed = true;
      }
      write_chunk<kFull>(g, d, v, r);
    });
  }, slots...);
  g.kind[u->d] = simd::kLanes;
  if (HWY_UNLIKELY(changed && kFull)) try_compact(g, fs);
  return u + 1;
}

// --- scheduling

HWY_INLINE const Uop* uop_at(const Group& g, uint32_t pc) { return g.machine->code.uops + pc; }
HWY_INLINE uint32_t index_of(const Group& g, const Uop* u) {
  return static_cast<uint32_t>(u - g.machine->code.uops);
}
// Slots that lanes wrote apart may be compact after all: steps that each side of a condition takes.
HWY_NOINLINE void find_compact_again(Group& g);

// Continues with the active set at `pc` (kNoUop: nobody is left), under the handlers that suit it.
HWY_INLINE const Uop* resume(Group& g, uint32_t pc) {
  if (pc == kNoUop) return nullptr;
  const bool full = g.active == g.exists;
  g.table = full ? &kFullTable : &kPartTable;
  if (full && g.any_lost) find_compact_again(g);
  return uop_at(g, pc);
}

// Where several sets of lanes wait for each other: the active one arrives at `pc`.
const Uop* next_of_many(Group& g, uint32_t pc);

HWY_INLINE const Uop* go_to(Group& g, uint32_t pc) {
  if (HWY_UNLIKELY(g.budget <= 0)) {
    simd::park(g, pc);
    return nullptr;
  }
  if (HWY_UNLIKELY(g.active != g.runnable)) return next_of_many(g, pc);
  return uop_at(g, pc);
}

// Counts the block that `u` ends for the active lanes.
HWY_INLINE void complete_block(Group& g, const Uop* u) {
  const uint32_t block = u->block();
  g.block_counts[block] += g.weight;
  const simd::BlockTally& tally = g.machine->block_tallies[block];
  const hn::ScalableTag<uint32_t> d32;
  uint32_t* sum = g.epoch->counts;
  for (size_t i = 0; i < 16; i += hn::Lanes(d32))
    hn::Store(hn::Add(hn::Load(d32, sum + i), hn::Load(d32, tally.counts + i)), d32, sum + i);
  const int64_t count = tally.counts[simd::kInsnCount];
  g.budget -= count;
  g.turns.patience -= count;
}

// The active lanes go different ways: those in `taken` to `there`, the others to `here`.
const Uop* split(Group& g, uint64_t taken, uint32_t there, uint32_t here);

HWY_INLINE const Uop* branch(Group& g, const Uop* u, uint64_t taken) {
  complete_block(g, u);
  taken &= g.active;
  if (taken == g.active) return go_to(g, u->target());
  if (taken == 0) return go_to(g, index_of(g, u + 1));
  return split(g, taken, u->target(), index_of(g, u + 1));
}

template <Op op, class F, class... S>
HWY_INLINE const Uop* run_branch(Group& g, const Uop* u, F apply, S... slots) {
  const unsigned kinds = (0u | ... | g.kind[slots]);
  if (kinds == simd::kUniform) {
    const bool taken = apply(SD(), g.base[slots]...);
    complete_block(g, u);
    return go_to(g, taken ? u->target() : index_of(g, u + 1));
  }
  // A loop's bound is often compact without having been computed so.
  bool compact = kinds == simd::kAffine;
  if (!compact && simd::comparison_of(op).relation != simd::Relation::kNone)
    compact = g.active == g.exists && (try_compact(g, slots) && ...);
  if (compact) {
    const simd::Compact sources[2] = {g.compact(slots)...};
    bool taken = false;
    if (simd::affine_branch<op>(*u, g.width - 1, sources[0], sources[1], taken)) {
      complete_block(g, u);
      return go_to(g, taken ? u->target() : index_of(g, u + 1));
    }
  }
  uint64_t bits = 0;
  bool is_narrow = simd::is_narrow_branch(op);
  constexpr bool kCompares = simd::comparison_of(op).relation != simd::Relation::kNone;
  if constexpr (kCompares && !simd::is_narrow_branch(op)) {
    if ((g.has_words(slots) || ...)) {
      simd::Words known[2] = {};
      int k = 0;
      ((known[k++] = known_words(g, slots)), ...);
      Uop mine = *u;
      mine.op = op;
      is_narrow = simd::narrow_branch_need(mine, known) != 0;
    }
  }
  if (is_narrow) {
    with_operands<NarrowSource>(g, [&](const auto... source) HWY_ATTR {
      for_narrow_chunks([&](size_t v) HWY_ATTR {
        bits |= ND::mask_bits(apply(ND(), source.at(v)...)) << (v * ND::kLanes);
      });
    }, slots...);
  } else {
    with_operands<Source>(g, [&](const auto... source) HWY_ATTR {
      for_chunks<true, true>(g, [&](size_t v) HWY_ATTR {
        bits |= VD::mask_bits(apply(VD(), source.at(v)...)) << (v * kN);
      });
    }, slots...);
  }
  return branch(g, u, bits);
}

// Lanes that stopped leave the active set; the rest goes on at `u`.
HWY_INLINE const Uop* after_stops(Group& g, const Uop* u) {
  simd::set_active(g, g.active & g.runnable);
  if (g.active == 0) return resume(g, simd::schedule(g));
  return resume(g, index_of(g, u));
}

const Uop* run_jmp_reg(Group& g, const Uop* u);
const Uop* run_give_way(Group& g, const Uop* u);
const Uop* run_service(Group& g, const Uop* u);
// Rows of warps (warps_runner-inl.h).
const Uop* run_warp(Group& g, const Uop* u);
const Uop* run_warp_sync(Group& g, const Uop* u);
const Uop* run_cta_sync(Group& g, const Uop* u);
const Uop* run_cta_reduce(Group& g, const Uop* u);
const Uop* run_end_thread(Group& g, const Uop* u);
const Uop* run_trap(Group& g, const Uop* u);

HWY_INLINE const Uop* run_jmp(Group& g, const Uop* u) {
  complete_block(g, u);
  if (u->aux == static_cast<uint8_t>(JumpHint::kCall)) ++g.depth;
  return go_to(g, u->target());
}

// --- effects, lane by lane

struct LaneContext {
  Group& g;
  uint32_t lane;
  uint64_t get(Slot s) const { return g.get_lane(s, lane); }
  void set(Slot s, uint64_t value) const {
    if (g.width == 1) return write_uniform<true>(g, s, value);
    spread(g, s);
    row(g, s)[lane] = value;
  }
};

// Of lanes that exchange the same word the first wins: another one each time, or the others' loops
// about a store-exclusive might never end. Which one follows from the instructions that the group
// has executed, and not from how: native code does more at once than lane by lane.
HWY_INLINE uint32_t first_lane(const Group& g) {
  if (g.machine->ctas != nullptr) return 0;
  const uint64_t executed = g.steps - static_cast<uint64_t>(g.budget);
  static_assert(kMaxLanes == 64);
  return static_cast<uint32_t>(executed * 0x9e3779b97f4a7c15 >> 58);  // in turn, nearly
}

// Runs `f(u, context, memory, core, stop)` for each active lane, from first_lane() on; those for which
// it fails stop.
template <class F>
HWY_INLINE const Uop* run_lanes(Group& g, const Uop* u, F f) {
  bool stopped = false;
  const uint64_t before = (uint64_t{1} << first_lane(g)) - 1, active = g.active;
  const auto run = [&](uint32_t lane) HWY_ATTR {
    LaneContext context{g, lane};
    StopInfo stop;
    const uint32_t core = g.core(lane);
    if (f(*u, context, g.machine->memory, core, stop)) return;
    simd::stop_lane(g, lane, fault_event(core, index_of(g, u), stop));
    stopped = true;
  };
  simd::for_each_lane(active & ~before, run);
  simd::for_each_lane(active & before, run);
  return HWY_UNLIKELY(stopped) ? after_stops(g, u + 1) : u + 1;
}

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();

#include "device_sim/simd/memory_runner-inl.h"

#endif
