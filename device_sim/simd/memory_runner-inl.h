// Loads, stores and atomics of a group. Addresses are looked at once for all lanes:
//  - the same address in every lane: one access (shared memory) or one row (own windows);
//  - the same offset in every lane's own window (stacks): one row of storage;
//  - consecutive addresses: one run of memory;
//  - else lane by lane.
// Whatever would fault goes lane by lane too, where faults are precise. Included by runner-inl.h.
#if defined(GPUSIM_SIMD_MEMORY_RUNNER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUSIM_SIMD_MEMORY_RUNNER_INL_H_
#undef GPUSIM_SIMD_MEMORY_RUNNER_INL_H_
#else
#define GPUSIM_SIMD_MEMORY_RUNNER_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {

// Words of one storage row: neighbouring cores' words at the same offset of their windows.
struct WindowRow {
  uint64_t* words = nullptr;  // [lane]; null: no such row, or some lane may not access it
  int bit = 0;                // where in the word the operand starts
};

// Whether lanes_allow() looks at lanes that wait, too.
HWY_INLINE bool looks_at_all(const Group& g) { return g.active == g.exists; }
HWY_INLINE bool lanes_allow(const Group& g, const uint8_t* flags, uint8_t need) {
  if (looks_at_all(g)) {
    uint64_t common = ~uint64_t{0};
    for (uint32_t i = 0; i < g.width; i += 8) {
      uint64_t eight = ~uint64_t{0};
      std::memcpy(&eight, flags + i, HWY_LIKELY(i + 8 <= g.width) ? 8 : g.width - i);
      common &= eight;
    }
    return (common & (0x0101010101010101 * need)) == 0x0101010101010101 * need;
  }
  bool allowed = true;
  simd::for_each_lane(g.active, [&](uint32_t lane) { allowed &= (flags[lane] & need) == need; });
  return allowed;
}

// Where the group's own windows start, as addresses of lane 0, and how far apart they are.
HWY_INLINE uint64_t own_windows(const Group& g) {
  const MemoryView& m = g.machine->memory;
  return m.window_base + (uint64_t{g.first_core} << m.window_shift);
}

// The row of `offset` in the windows of the group's own cores.
HWY_INLINE WindowRow window_row(Group& g, uint64_t offset, uint32_t size, uint8_t need) {
  const MemoryView& m = g.machine->memory;
  if ((offset & 7) + size > 8) return {};
  const uint8_t* flags = m.window_pages + m.window_page_index(g.first_core, offset);
  simd::KnownPage& known = g.known_page[need == kWrite];
  if (HWY_UNLIKELY(flags != known.flags || known.changes != g.machine->permission_changes)) {
    if (!lanes_allow(g, flags, need)) return {};
    if (looks_at_all(g)) {
      known = {.flags = flags, .changes = g.machine->permission_changes};
      if (!m.is_private && m.lanes_shift == simd::kLanesShift) {
        known.number = (own_windows(g) + offset) >> kPageShift;
        known.words = m.windows + m.window_index(g.first_core, offset & ~(kPageSize - 1));
      }
    }
  }
  return {reinterpret_cast<uint64_t*>(m.windows + m.window_index(g.first_core, offset & ~uint64_t{7})),
          static_cast<int>(8 * (offset & 7))};
}

// Where a run in the memory of the group's CTA, or of one of its cluster, lies, or null: of groups
// of one CTA.
HWY_INLINE uint8_t* cta_run(const Group& g, uint64_t address, uint64_t bytes) {
  const MemoryView& m = g.machine->memory;
  const MemoryView::CtaPlace at = m.cta_place(g.first_core, address);
  if (at.place == MemoryView::kNoPlace || bytes > m.cta_size - at.offset ||
      1u << m.cta_shift < g.width)
    return nullptr;
  return m.cta_memory + at.place * m.cta_pitch + at.offset;
}

// Looks through the permissions of pages, and notes how far around the run they reach. Short runs
// seldom take the place of an array's surroundings: they are as quickly looked at again. Where
// arrays lie apart, a program goes to and fro between them: what was known of each is kept.
HWY_NOINLINE inline uint8_t* find_linear_run(Group& g, uint64_t address, uint64_t bytes, uint8_t need) {
  constexpr uint64_t kFarthest = uint64_t{1} << 14;  // pages
  constexpr uint32_t kSeldom = 64;
  const MemoryView& m = g.machine->memory;
  const uint64_t first = address - m.linear_base;
  if (bytes == 0 || first >= m.linear_size || bytes > m.linear_size - first)
    return bytes == 0 ? nullptr : cta_run(g, address, bytes);
  simd::Reach& reach = g.reach[need == kWrite];
  const bool only_looks = bytes <= kPageSize && reach.end != 0 && ++g.reach_misses % kSeldom != 0;
  if (!only_looks) {
    for (simd::Reach& former : g.former_reach[need == kWrite]) {
      if (address < former.begin || address >= former.end || bytes > former.end - address) continue;
      std::swap(reach, former);
      return m.linear + first;
    }
  }
  const auto allows = [&](uint64_t page) { return (m.linear_pages[page] & need) == need; };
  uint64_t begin = first >> kPageShift, end = begin;
  for (const uint64_t last = (first + bytes - 1) >> kPageShift; end <= last; ++end)
    if (!allows(end)) return nullptr;
  if (only_looks) return m.linear + first;
  const uint64_t most = std::min(end + kFarthest, m.linear_size >> kPageShift);
  const uint64_t least = begin - std::min(begin, kFarthest);
  const auto eight_allow = [&](uint64_t page) {
    const uint64_t mask = uint64_t{0x0101010101010101} * need;
    uint64_t flags;
    std::memcpy(&flags, m.linear_pages + page, 8);
    return (flags & mask) == mask;
  };
  while (end + 8 <= most && eight_allow(end)) end += 8;
  while (end < most && allows(end)) ++end;
  while (begin >= least + 8 && eight_allow(begin - 8)) begin -= 8;
  while (begin > least && allows(begin - 1)) --begin;
  if (reach.end != 0)
    g.former_reach[need == kWrite][g.reach_changes++ % simd::Group::kFormer] = reach;
  reach = {m.linear_base + (begin << kPageShift), m.linear_base + (end << kPageShift)};
  return m.linear + first;
}

// Where `bytes` bytes in the linear zone lie, if they are within the reach that the group knows; or null.
HWY_INLINE uint8_t* known_run(const Group& g, uint64_t address, uint64_t bytes, uint8_t need) {
  const simd::Reach& known = g.reach[need == kWrite];
  if (HWY_LIKELY(address >= known.begin && address < known.end && bytes <= known.end - address))
    return g.machine->memory.linear + (address - g.machine->memory.linear_base);
  return nullptr;
}

// A run of `bytes` bytes in the linear zone whose pages all have `need`, kRead or kWrite, or null.
HWY_INLINE uint8_t* linear_run(Group& g, uint64_t address, uint64_t bytes, uint8_t need) {
  uint8_t* const known = known_run(g, address, bytes, need);
  return HWY_LIKELY(known != nullptr) ? known : find_linear_run(g, address, bytes, need);
}

// The addresses of the active lanes.
struct Span {
  uint64_t least = ~uint64_t{0}, most = 0;
  uint64_t bits = 0;  // that are set in any
};
template <bool kFull>
HWY_INLINE Span span_of(const Group& g, const uint64_t* at) {
  Span span;
  if (kFull && HWY_LIKELY(g.width == g.chunks * kN)) {
    V least = load_vec(at), most = least, bits = least;
    for (size_t v = 1; v < g.chunks; ++v) {
      const V x = load_vec(at + v * kN);
      least = hn::Min(least, x);
      most = hn::Max(most, x);
      bits = hn::Or(bits, x);
    }
    span.least = hn::GetLane(hn::MinOfLanes(VD::Tag(), least));
    span.most = hn::GetLane(hn::MaxOfLanes(VD::Tag(), most));
    HWY_ALIGN uint64_t words[kN];
    store_vec(bits, words);
    for (const uint64_t word : words) span.bits |= word;
    return span;
  }
  for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
    span.least = std::min(span.least, at[lane]);
    span.most = std::max(span.most, at[lane]);
    span.bits |= at[lane];
  });
  return span;
}
// Where span.least lies if all of the span's accesses of `bytes` bytes are in one run of linear memory;
// null if not, or if that would take long to find out.
HWY_INLINE uint8_t* linear_span(Group& g, const Span& span, uint64_t bytes, uint8_t need) {
  constexpr uint64_t kWide = uint64_t{1} << 26;
  const uint64_t whole = span.most - span.least + bytes;
  if (HWY_UNLIKELY(whole < bytes)) return nullptr;  // round the end of the address space
  uint8_t* const known = known_run(g, span.least, whole, need);
  if (HWY_LIKELY(known != nullptr)) return known;
  return whole <= kWide ? find_linear_run(g, span.least, whole, need) : nullptr;
}

template <Extend extend, class T>
HWY_INLINE V extend_vector(V x, int bit) {
  constexpr int kShift = 64 - 8 * static_cast<int>(sizeof(T));
  if constexpr (kShift == 0) return x;
  const V up = VD::shl(VD::shr(x, bit), kShift);
  if constexpr (extend == Extend::kZero) return VD::shr(up, kShift);
  const V wide = VD::sar(up, kShift);
  return extend == Extend::kSign64 ? wide : VD::and_(wide, VD::konst(0xffffffffu));
}

// Where the active lanes access memory.
enum class Pattern {
  kUniform,      // all at `first.base`
  kRow,          // each in its own window, at the offset that lane 0's address has
  kConsecutive,  // one after the other from `first.base`
  kScattered,    // at `at`
};
struct Addresses {
  Pattern pattern = Pattern::kScattered;
  simd::Compact first;  // base: lane 0's address
  HWY_ALIGN uint64_t at[kMaxLanes];
};

// What a compact address means.
HWY_INLINE Pattern classify(const Group& g, simd::Compact x, uint32_t size) {
  const MemoryView& m = g.machine->memory;
  if (x.stride == 0) {
    const bool own = m.is_private && m.windows_offset(x.base) != MemoryView::kNoOffset;
    if (!own) {
      // Lanes of several CTAs see memories of their own.
      const bool is_shared = 1u << m.cta_shift >= g.width ||
                             m.cta_place(g.first_core, x.base).place == MemoryView::kNoPlace;
      return is_shared ? Pattern::kUniform : Pattern::kScattered;
    }
    return g.cores ? Pattern::kScattered : Pattern::kRow;
  }
  if (x.stride == size) return Pattern::kConsecutive;
  if (x.stride == uint64_t{1} << m.window_shift && !m.is_private &&
      x.base - own_windows(g) < uint64_t{1} << m.window_shift)
    return Pattern::kRow;
  return Pattern::kScattered;
}

// The address as a compact value, if its operands are.
template <AddressMode mode>
HWY_INLINE bool compact_address(const Group& g, const Uop* u, simd::Compact& x) {
  if (!g.is_compact(u->a)) return false;
  x = g.compact(u->a);
  if constexpr (mode == AddressMode::kImmediate) {
    x.base += u->imm;
  } else {
    if (!g.is_compact(u->b)) return false;
    simd::Compact index = g.compact(u->b);
    if (mode == AddressMode::kIndex32 && !simd::sext32(index, g.width - 1, index)) return false;
    x = simd::plus(x, simd::shifted(index, u->imm));
  }
  return true;
}

template <bool kFull, AddressMode mode>
HWY_INLINE void find_addresses(Group& g, const Uop* u, uint32_t size, Addresses& out) {
  if (compact_address<mode>(g, u, out.first)) {
    out.pattern = classify(g, out.first, size);
    if (out.pattern == Pattern::kScattered)
      for (uint32_t lane = 0; lane < g.width; ++lane) out.at[lane] = out.first.at(lane);
    return;
  }
  const Source a(g, u->a, 0), b(g, mode == AddressMode::kImmediate ? u->a : u->b, 1);
  const int shift = static_cast<int>(u->imm & 63);
  for_chunks<kFull>(g, [&](size_t v) HWY_ATTR {
    V x = a.at(v);
    if constexpr (mode == AddressMode::kImmediate) {
      x = VD::add(x, VD::konst(u->imm));
    } else {
      const V index = b.at(v);
      if constexpr (mode == AddressMode::kIndex) x = VD::add(x, VD::shl(index, shift));
      else x = VD::add(x, VD::shl(sem::sext32<VD>(index), shift));
    }
    store_vec(x, out.at + v * kN);
  });
  // Compact after all? Guess the stride from two neighbours and see whether the others agree.
  const uint64_t pairs = g.active & (g.active >> 1);
  if (pairs == 0) return;
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(pairs));
  const uint64_t stride = out.at[first + 1] - out.at[first];
  const simd::Compact guess{out.at[first] - first * stride, stride};
  const Pattern pattern = classify(g, guess, size);
  if (pattern == Pattern::kScattered) return;
  const V next = VD::konst(kN * stride);
  V expected = VD::add(VD::konst(guess.base), VD::mul(hn::Iota(VD::Tag(), 0), VD::konst(stride)));
  for (size_t v = 0; v < g.chunks; ++v, expected = VD::add(expected, next)) {
    const uint64_t differ = VD::mask_bits(VD::m_not(VD::eq(load_vec(out.at + v * kN), expected)));
    if ((differ << (v * kN)) & g.active) return;
  }
  out.pattern = pattern;
  out.first = guess;
  // The operands are likely compact too; then the next time costs less.
  if (kFull) {
    try_compact(g, u->a);
    if (mode != AddressMode::kImmediate) try_compact(g, u->b);
  }
}

// The offset in its window of an address with pattern kRow.
HWY_INLINE uint64_t row_offset(const Group& g, uint64_t address) {
  const MemoryView& m = g.machine->memory;
  return m.windows_offset(address) & ((uint64_t{1} << m.window_shift) - 1);
}

// The kind of row for a load's values.
template <Extend extend, class T>
inline constexpr simd::Kind kLoadsInto =
    sizeof(T) > 4 ? simd::kLanes : extend == Extend::kSign64 ? simd::kSigned : simd::kNarrow;
constexpr bool is_narrow(simd::Kind kind) { return kind >= simd::kNarrow; }

// Writes the active lanes of a narrow row.
HWY_INLINE void write_narrow_part(const Group& g, Slot d, const uint32_t* from) {
  for (size_t v = 0; v * ND::kLanes < kMaxLanes; ++v)
    if (!narrow_chunk_empty(g.active, v))
      blend_narrow(g, load_narrow(from + v * ND::kLanes), narrow_row(g, d), v);
}

template <bool kFull, Op op>
HWY_INLINE const Uop* load_row(Group& g, const Uop* u, const WindowRow& from) {
  using A = Access<op>;
  if (!kFull) spread(g, u->d);
  uint64_t* d = row(g, u->d);
  constexpr simd::Kind kKind =
      kFull ? kLoadsInto<A::kExtend, typename A::Type> : simd::kLanes;
  constexpr bool kNarrowed = is_narrow(kKind);
  for_chunks<kFull, !kNarrowed>(g, [&](size_t v) HWY_ATTR {
    const V word = hn::LoadU(VD::Tag(), from.words + v * kN);
    const V x = extend_vector<A::kExtend, typename A::Type>(word, from.bit);
    if constexpr (kNarrowed) narrow(x, narrow_row(g, u->d) + v * kN);
    else write_chunk<kFull>(g, d, v, x);
  });
  g.kind[u->d] = kKind;
  if (kFull) try_compact(g, u->d);  // spilled counters and pointers
  return u + 1;
}

template <class T>
HWY_INLINE const Uop* store_row(Group& g, const Uop* u, const WindowRow& to) {
  const Source value(g, u->d, 0);
  const V field = VD::shl(VD::konst(~uint64_t{0} >> (64 - 8 * sizeof(T))), to.bit);
  for_chunks<false>(g, [&](size_t v) HWY_ATTR {
    uint64_t* p = to.words + v * kN;
    const V x = value.at(v);
    const uint64_t bits = (g.active >> (v * kN)) & ((1u << kN) - 1);
    // Only the operand's bytes are written: cores that another host thread runs may store others of
    // the same words. Highway masks bytes in one store only where the target can.
    constexpr bool kMasksBytes = HWY_TARGET <= HWY_AVX3;
    if ((sizeof(T) == 8 || kMasksBytes) && bits == (1u << kN) - 1) {
      if constexpr (sizeof(T) == 8) {
        hn::StoreU(x, VD::Tag(), p);
      } else if constexpr (kMasksBytes) {
        const hn::Repartition<uint8_t, VD::Tag> bytes;
        const auto mask = hn::Ne(hn::BitCast(bytes, field), hn::Zero(bytes));
        hn::BlendedStore(hn::BitCast(bytes, VD::shl(x, to.bit)), mask, bytes,
                         reinterpret_cast<uint8_t*>(p));
      }
      return;
    }
    HWY_ALIGN uint64_t lanes[kN];
    store_vec(x, lanes);
    simd::for_each_lane(bits, [&](uint32_t i) HWY_ATTR {
      const T one = static_cast<T>(lanes[i]);
      std::memcpy(reinterpret_cast<uint8_t*>(p + i) + to.bit / 8, &one, sizeof(T));
    });
  });
  return u + 1;
}

// Runs of memory to and from rows. The vector forms may only be used on full rows.
template <Extend extend, class T>
HWY_INLINE void load_run(const uint8_t* p, uint32_t* out) {
  using Signed = hwy::MakeSigned<T>;
  const hn::ScalableTag<int32_t> di32;
  for (size_t i = 0; i < kMaxLanes; i += ND::kLanes) {
    if constexpr (sizeof(T) == 4) {
      store_narrow(hn::LoadU(ND::Tag(), reinterpret_cast<const uint32_t*>(p) + i), out + i);
    } else if constexpr (extend == Extend::kZero) {
      const hn::Rebind<T, ND::Tag> d;
      store_narrow(hn::PromoteTo(ND::Tag(), hn::LoadU(d, reinterpret_cast<const T*>(p) + i)), out + i);
    } else {
      const hn::Rebind<Signed, decltype(di32)> d;
      const auto x = hn::PromoteTo(di32, hn::LoadU(d, reinterpret_cast<const Signed*>(p) + i));
      store_narrow(hn::BitCast(ND::Tag(), x), out + i);
    }
  }
}
template <Extend extend, class T>
HWY_INLINE void load_run(const uint8_t* p, uint64_t* out) {
  if constexpr (sizeof(T) == 8) {
    for (size_t i = 0; i < kMaxLanes; i += kN)
      store_vec(hn::LoadU(VD::Tag(), reinterpret_cast<const uint64_t*>(p) + i), out + i);
  } else if constexpr (sizeof(T) == 4 && extend == Extend::kSign64) {
    const hn::ScalableTag<int64_t> di64;
    const hn::Rebind<int32_t, decltype(di64)> d;
    for (size_t i = 0; i < kMaxLanes; i += kN) {
      const auto x = hn::PromoteTo(di64, hn::LoadU(d, reinterpret_cast<const int32_t*>(p) + i));
      store_vec(hn::BitCast(VD::Tag(), x), out + i);
    }
  } else {
    for (size_t i = 0; i < kMaxLanes; ++i) {
      T value;  // maybe misaligned
      std::memcpy(&value, p + i * sizeof(T), sizeof(T));
      out[i] = extend_loaded<extend>(value);
    }
  }
}
template <Extend extend, class T, class Out>
HWY_INLINE void load_consecutive(const uint8_t* p, uint32_t width, Out* out) {
  if (HWY_LIKELY(width == kMaxLanes)) return load_run<extend, T>(p, out);
  for (uint32_t i = 0; i < width; ++i) {
    T value;
    std::memcpy(&value, p + i * sizeof(T), sizeof(T));
    out[i] = static_cast<Out>(extend_loaded<extend>(value));
  }
}

template <class T>
HWY_INLINE void store_run(uint8_t* p, const uint32_t* in) {
  const hn::Rebind<T, ND::Tag> d;
  for (size_t i = 0; i < kMaxLanes; i += ND::kLanes) {
    const ND::V x = load_narrow(in + i);
    auto* to = reinterpret_cast<T*>(p) + i;
    if constexpr (sizeof(T) == 4) hn::StoreU(x, d, to);
    else hn::StoreU(hn::TruncateTo(d, x), d, to);
  }
}
template <class T>
HWY_INLINE void store_run(uint8_t* p, const uint64_t* in) {
  const hn::Rebind<T, VD::Tag> d;
  for (size_t i = 0; i < kMaxLanes; i += kN) {
    const V x = load_vec(in + i);
    auto* to = reinterpret_cast<T*>(p) + i;
    if constexpr (sizeof(T) == 8) hn::StoreU(x, d, to);
    else hn::StoreU(hn::TruncateTo(d, x), d, to);
  }
}
template <class T, class In>
HWY_INLINE void store_consecutive(uint8_t* p, uint32_t width, const In* in) {
  if (HWY_LIKELY(width == kMaxLanes)) return store_run<T>(p, in);
  for (uint32_t i = 0; i < width; ++i) {
    const T value = static_cast<T>(in[i]);
    std::memcpy(p + i * sizeof(T), &value, sizeof(T));
  }
}

// Writes values given lane by lane to the active lanes of a slot. kKind: of row that they fit.
template <bool kFull, simd::Kind kKind>
HWY_INLINE void write_lanes(Group& g, Slot s, const uint64_t* values) {
  constexpr bool kNarrowed = is_narrow(kKind);
  if (g.width == 1) return write_uniform<kFull>(g, s, values[0]);
  if constexpr (!kFull) {
    if constexpr (kNarrowed) {
      if (spread_narrow(g, s, kKind)) {
        uint32_t* d = narrow_row(g, s);
        for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR { d[lane] = static_cast<uint32_t>(values[lane]); });
        return;
      }
    }
    spread(g, s);
  }
  for_chunks<kFull>(g, [&](size_t v) HWY_ATTR {
    const V x = load_vec(values + v * kN);
    if constexpr (kFull && kNarrowed) narrow(x, narrow_row(g, s) + v * kN);
    else write_chunk<kFull>(g, row(g, s), v, x);
  });
  g.kind[s] = kFull ? kKind : simd::kLanes;
}

template <bool kFull, Op op>
HWY_NOINLINE const Uop* load_scattered(Group& g, const Uop* u, const Addresses& addresses) {
  using A = Access<op>;
  using T = typename A::Type;
  const MemoryView& m = g.machine->memory;
  HWY_ALIGN uint64_t loaded[kMaxLanes];
  const Span span = span_of<kFull>(g, addresses.at);
  if (const uint8_t* const p = linear_span(g, span, sizeof(T), kRead)) {
    for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
      T value;
      std::memcpy(&value, p + (addresses.at[lane] - span.least), sizeof(T));
      loaded[lane] = extend_loaded<A::kExtend>(value);
    });
  } else {
    bool ok = true;
    for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
      T value = 0;
      ok &= m.load(g.core(lane), addresses.at[lane], &value);
      loaded[lane] = extend_loaded<A::kExtend>(value);
    });
    if (HWY_UNLIKELY(!ok)) return run_lanes(g, u, execute_load<op, LaneContext, MemoryView>);
  }
  write_lanes<kFull, kLoadsInto<A::kExtend, T>>(g, u->d, loaded);
  return u + 1;
}

template <bool kFull, Op op>
HWY_INLINE const Uop* run_load(Group& g, const Uop* u) {
  using A = Access<op>;
  using T = typename A::Type;
  const MemoryView& m = g.machine->memory;
  Addresses addresses;
  find_addresses<kFull, A::kMode>(g, u, sizeof(T), addresses);
  const uint64_t address = addresses.first.base;
  switch (addresses.pattern) {
    case Pattern::kUniform: {
      T value;
      if (HWY_UNLIKELY(!m.load(g.first_core, address, &value))) break;
      write_uniform<kFull>(g, u->d, extend_loaded<A::kExtend>(value));
      return u + 1;
    }
    case Pattern::kRow: {
      const WindowRow from = window_row(g, row_offset(g, address), sizeof(T), kRead);
      if (HWY_UNLIKELY(from.words == nullptr)) break;
      return load_row<kFull, op>(g, u, from);
    }
    case Pattern::kConsecutive: {
      // Reading for lanes that wait is harmless where they could.
      const uint8_t* p = linear_run(g, address, sizeof(T) * g.width, kRead);
      if (HWY_UNLIKELY(p == nullptr)) break;
      constexpr simd::Kind kKind = kLoadsInto<A::kExtend, T>;
      if constexpr (kFull) {
        if constexpr (is_narrow(kKind)) {
          load_consecutive<A::kExtend, T>(p, g.width, narrow_row(g, u->d));
          g.kind[u->d] = kKind;
          return u + 1;
        }
        load_consecutive<A::kExtend, T>(p, g.width, row(g, u->d));
      } else {
        if constexpr (is_narrow(kKind)) {
          if (spread_narrow(g, u->d, kKind)) {
            auto* loaded = reinterpret_cast<uint32_t*>(addresses.at);
            load_consecutive<A::kExtend, T>(p, g.width, loaded);
            write_narrow_part(g, u->d, loaded);
            return u + 1;
          }
        }
        load_consecutive<A::kExtend, T>(p, g.width, addresses.at);
        spread(g, u->d);
        uint64_t* d = row(g, u->d);
        for_chunks<false>(g, [&](size_t v) HWY_ATTR {
          write_chunk<false>(g, d, v, load_vec(addresses.at + v * kN));
        });
      }
      g.kind[u->d] = simd::kLanes;
      return u + 1;
    }
    case Pattern::kScattered: return load_scattered<kFull, op>(g, u, addresses);
  }
  return run_lanes(g, u, execute_load<op, LaneContext, MemoryView>);
}

template <bool kFull, Op op>
HWY_NOINLINE const Uop* store_scattered(Group& g, const Uop* u, const Addresses& addresses) {
  using T = typename Access<op>::Type;
  const MemoryView& m = g.machine->memory;
  if (g.kind[u->d] == simd::kAffine) fill(g, u->d);
  else if (g.has_words(u->d)) spread(g, u->d);
  const bool uniform = g.kind[u->d] == simd::kUniform;
  const uint64_t* values = uniform ? &g.base[u->d] : row(g, u->d);
  const uint32_t step = uniform ? 0 : 1;
  const Span span = span_of<kFull>(g, addresses.at);
  if (uint8_t* const p = linear_span(g, span, sizeof(T), kWrite)) {
    for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
      const auto value = static_cast<T>(values[lane * step]);
      std::memcpy(p + (addresses.at[lane] - span.least), &value, sizeof(T));
    });
    return u + 1;
  }
  uint64_t failed = 0;
  for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
    if (!m.store(g.core(lane), addresses.at[lane], static_cast<T>(values[lane * step])))
      failed |= uint64_t{1} << lane;
  });
  if (HWY_LIKELY(failed == 0)) return u + 1;
  simd::for_each_lane(failed, [&](uint32_t lane) {
    simd::stop_lane(g, lane, fault_event(g.core(lane), index_of(g, u),
                                         {Fault::kStoreAccess, addresses.at[lane]}));
  });
  return after_stops(g, u + 1);
}

template <bool kFull, Op op>
HWY_INLINE const Uop* run_store(Group& g, const Uop* u) {
  using A = Access<op>;
  using T = typename A::Type;
  const MemoryView& m = g.machine->memory;
  Addresses addresses;
  find_addresses<kFull, A::kMode>(g, u, sizeof(T), addresses);
  const uint64_t address = addresses.first.base;
  switch (addresses.pattern) {
    case Pattern::kUniform: {
      // The last lane's value stays, as if the cores had stored one after the other.
      const uint32_t last = 63 - static_cast<uint32_t>(std::countl_zero(g.active));
      if (HWY_UNLIKELY(!m.store(g.first_core, address, static_cast<T>(g.get_lane(u->d, last)))))
        break;
      return u + 1;
    }
    case Pattern::kRow: {
      const WindowRow to = window_row(g, row_offset(g, address), sizeof(T), kWrite);
      if (HWY_UNLIKELY(to.words == nullptr)) break;
      return store_row<T>(g, u, to);
    }
    case Pattern::kConsecutive: {
      uint8_t* p = linear_run(g, address, sizeof(T) * g.width, kWrite);
      if (HWY_UNLIKELY(p == nullptr)) break;
      if constexpr (!kFull) {
        for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
          const T value = static_cast<T>(g.get_lane(u->d, lane));
          std::memcpy(p + lane * sizeof(T), &value, sizeof(T));
        });
        return u + 1;
      }
      if constexpr (sizeof(T) <= 4) {
        if (g.has_words(u->d)) {
          store_consecutive<T>(p, g.width, narrow_row(g, u->d));
          return u + 1;
        }
      }
      if (g.kind[u->d] == simd::kAffine) fill(g, u->d);
      else spread(g, u->d);
      store_consecutive<T>(p, g.width, row(g, u->d));
      return u + 1;
    }
    case Pattern::kScattered: return store_scattered<kFull, op>(g, u, addresses);
  }
  return run_lanes(g, u, execute_store<op, LaneContext, MemoryView>);
}

// Replaces what is at `word` by update(that), at once for all that may see it. Returns what was there.
template <class T, class F>
HWY_INLINE T exchange(const Group& g, T* word, F update) {
  T before = atomic_load(word);
  if (g.machine->is_alone) {
    *word = update(before);
    return before;
  }
  while (!compare_swap(word, &before, update(before))) {
  }
  return before;
}

// All active lanes' operations on one place, as if done one after the other, with a single atomic
// access of the host.
template <bool kFull, Op op, class T>
HWY_INLINE void amo_combined(Group& g, const Uop* u, uint8_t* p) {
  const uint32_t log2_size = kHasFloatWord<op> ? u->aux : std::countr_zero(sizeof(T));
  auto* const word = reinterpret_cast<T*>(p);
  if (kFull && op == Op::amo_add && g.kind[u->b] == simd::kUniform) {
    const auto step = static_cast<T>(g.base[u->b]);
    const T first = exchange(g, word, [&](T before) HWY_ATTR { return static_cast<T>(before + step * g.width); });
    const auto stride = static_cast<uint64_t>(int64_t{hwy::MakeSigned<T>(step)});
    const simd::Compact found{first, g.width > 1 ? stride : 0};
    if (sizeof(T) == 8 || (sizeof(T) == 4 && simd::runs_in_32_bits(found, g.width - 1)))
      return write_compact(g, u->d, found);
    HWY_ALIGN uint64_t lanes[kMaxLanes];
    for (uint32_t lane = 0; lane < g.width; ++lane) lanes[lane] = static_cast<T>(found.at(lane));
    return write_lanes<kFull, kLoadsInto<Extend::kZero, T>>(g, u->d, lanes);
  }
  const Source operand(g, u->b, 0);
  const uint32_t step = operand.step == 0 ? 0 : 1;
  HWY_ALIGN uint64_t found[kMaxLanes];
  exchange(g, word, [&](T before) HWY_ATTR {
    for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
      found[lane] = before;
      before = static_cast<T>(
          amo_result<op>(before, static_cast<T>(operand.p[lane * step]), log2_size));
    });
    return before;
  });
  write_lanes<kFull, kLoadsInto<Extend::kZero, T>>(g, u->d, found);
  if constexpr (kFull) try_compact(g, u->d);
}

// Each active lane's operation on a place of its own. False: nothing was done, since some lane may not.
template <bool kFull, Op op, class T>
HWY_INLINE bool amo_scattered(Group& g, const Uop* u, uint64_t* found) {
  const uint32_t log2_size = kHasFloatWord<op> ? u->aux : std::countr_zero(sizeof(T));
  const Source address(g, u->a, 0), operand(g, u->b, 1);
  const uint32_t step = operand.step == 0 ? 0 : 1;
  const Span span = span_of<kFull>(g, address.p);
  if (span.bits % sizeof(T) != 0 || !linear_span(g, span, sizeof(T), kRead)) return false;
  uint8_t* const p = linear_span(g, span, sizeof(T), kWrite);
  if (p == nullptr) return false;
  ++g.workspace->atomics;
  const auto in_turn = [&](auto update) HWY_ATTR {
    for_lanes<kFull>(g, [&](uint32_t lane) HWY_ATTR {
      uint8_t* const place = p + (address.p[lane] - span.least);
      found[lane] = update(place, static_cast<T>(operand.p[lane * step]));
    });
  };
  if (g.machine->is_alone) {
    in_turn([log2_size](uint8_t* place, T value) HWY_ATTR {
      auto* const word = reinterpret_cast<T*>(place);
      const T before = *word;
      *word = static_cast<T>(amo_result<op>(before, value, log2_size));
      return before;
    });
  } else {
    in_turn([log2_size](uint8_t* place, T value)
                HWY_ATTR { return amo_sized<op, T>(place, value, log2_size); });
  }
  return true;
}

template <bool kFull, Op op>
HWY_NOINLINE const Uop* run_amo(Group& g, const Uop* u) {
  const auto one_by_one = [&]() HWY_ATTR { return run_lanes(g, u, execute_amo<op, LaneContext, MemoryView>); };
  const uint32_t log2_size = kHasFloatWord<op> ? u->aux & 3u : u->aux;
  if (g.kind[u->a] != simd::kUniform) {
    if (log2_size < 2) return one_by_one();
    HWY_ALIGN uint64_t found[kMaxLanes];
    const bool done = log2_size == 2 ? amo_scattered<kFull, op, uint32_t>(g, u, found)
                                  : amo_scattered<kFull, op, uint64_t>(g, u, found);
    if (!done) return one_by_one();
    if (log2_size == 3) write_lanes<kFull, simd::kLanes>(g, u->d, found);
    else write_lanes<kFull, simd::kNarrow>(g, u->d, found);
    return u + 1;
  }
  const MemoryView& m = g.machine->memory;
  const simd::Compact address = g.compact(u->a);
  if (classify(g, address, 0) != Pattern::kUniform) return one_by_one();
  StopInfo stop;
  uint8_t* const p = atomic_target(m, g.first_core, address.base, 1u << log2_size, stop);
  if (p == nullptr) return one_by_one();
  switch (log2_size) {
    case 0: amo_combined<kFull, op, uint8_t>(g, u, p); break;
    case 1: amo_combined<kFull, op, uint16_t>(g, u, p); break;
    case 2: amo_combined<kFull, op, uint32_t>(g, u, p); break;
    default: amo_combined<kFull, op, uint64_t>(g, u, p);
  }
  return u + 1;
}

HWY_INLINE const Uop* run_check_align(Group& g, const Uop* u) {
  if (g.kind[u->a] == simd::kUniform && ((g.base[u->a] + u->imm) & (u->imm16() - 1u)) == 0) return u + 1;
  return run_lanes(g, u, [](const Uop& x, LaneContext& c, const MemoryView&, uint32_t, StopInfo& stop) {
    const uint64_t address = c.get(x.a) + x.imm;
    if ((address & (x.imm16() - 1u)) == 0) return true;
    stop = {Fault::kAlignment, address};
    return false;
  });
}

// A word of each lane, of cores one after the other, as MemoryView::note() writes one of a core.
template <class Words>
HWY_INLINE void note_vectors(Group& g, Words words_of) {
  const MemoryView& m = g.machine->memory;
  const VD::Tag d;
  const VD::Signed places;
  const hn::Rebind<uint32_t, VD::Tag> narrow;
  uint32_t* const sizes = m.journal_sizes + g.first_core;
  uint64_t* const first = m.journals + uint64_t{g.first_core} * m.journal_words;
  const uint32_t room = m.journal_words;
  const auto end = hn::Set(narrow, room), one = hn::Set(narrow, 1);
  alignas(64) uint64_t begins[kN];
  for (size_t i = 0; i < kN; ++i) begins[i] = i * room;
  const auto begin = hn::Load(d, begins);
  for (size_t v = 0; v < g.chunks; ++v) {
    const auto at = hn::LoadU(narrow, sizes + v * kN);
    const auto words = words_of(v);
    if (HWY_LIKELY(hn::AllTrue(narrow, hn::Lt(at, end)))) {
      const auto offsets = hn::BitCast(places, hn::Add(begin, hn::PromoteTo(d, at)));
      hn::ScatterIndex(words, d, first + v * kN * room, offsets);
    } else {
      alignas(64) uint64_t each[kN];
      hn::Store(words, d, each);
      for (size_t i = 0; i < kN; ++i)
        if (sizes[v * kN + i] < room) first[(v * kN + i) * room + sizes[v * kN + i]] = each[i];
    }
    hn::StoreU(hn::Add(at, one), narrow, sizes + v * kN);
  }
}

HWY_INLINE void note_all(Group& g, const Uop& u) {
  const VD::Tag d;
  const auto imm = hn::Set(d, u.imm);
  const auto mask = hn::Set(d, ~kBlockMark);
  switch (NoteField::mode(u)) {
    case static_cast<uint8_t>(AddressMode::kImmediate): {
      const Source a(g, u.a, 0);
      return note_vectors(
          g, [&](size_t v) HWY_ATTR { return hn::And(hn::Add(a.at(v), imm), mask); });
    }
    case static_cast<uint8_t>(AddressMode::kIndex): {
      const Source a(g, u.a, 0), b(g, u.b, 1);
      const int shift = static_cast<int>(u.imm & 63);
      return note_vectors(g, [&](size_t v) HWY_ATTR {
        return hn::And(hn::Add(a.at(v), hn::ShiftLeftSame(b.at(v), shift)), mask);
      });
    }
    case static_cast<uint8_t>(AddressMode::kIndex32): {
      const Source a(g, u.a, 0), b(g, u.b, 1);
      const int shift = static_cast<int>(u.imm & 63);
      return note_vectors(g, [&](size_t v) HWY_ATTR {
        const auto low = hn::BitCast(VD::Signed(), hn::ShiftLeft<32>(b.at(v)));
        const auto index = hn::BitCast(d, hn::ShiftRight<32>(low));
        return hn::And(hn::Add(a.at(v), hn::ShiftLeftSame(index, shift)), mask);
      });
    }
    default: return note_vectors(g, [&](size_t) HWY_ATTR { return imm; });
  }
}

HWY_NOINLINE inline const Uop* run_note(Group& g, const Uop* u) {
  const MemoryView& m = g.machine->memory;
  if (u->aux == kNoteStamp) {
    simd::for_each_lane(g.active, [&](uint32_t lane) { m.note(g.core(lane), m.next_stamp()); });
    return u + 1;
  }
  if (u->aux == kNoteClock) {
    simd::note_clocks(g);
    return u + 1;
  }
  if (g.cores == nullptr && looks_at_all(g) && g.width % kN == 0) {
    note_all(g, *u);
    return u + 1;
  }
  const Source a(g, u->a, 0), b(g, u->b, 1);
  const uint32_t a_step = a.step == 0 ? 0 : 1, b_step = b.step == 0 ? 0 : 1;
  simd::for_each_lane(g.active, [&](uint32_t lane) HWY_ATTR {
    m.note(g.core(lane), note_word(*u, a.p[lane * a_step], b.p[lane * b_step]));
  });
  return u + 1;
}

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();
#endif
