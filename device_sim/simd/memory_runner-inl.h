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

HWY_INLINE bool lanes_allow(const uint8_t* flags, uint64_t active, uint32_t width, uint8_t need) {
  if (width % 8 == 0 && active + 1 == uint64_t{1} << (width & 63)) {
    uint64_t common = ~uint64_t{0};
    for (uint32_t i = 0; i < width; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, flags + i, 8);
      common &= eight;
    }
    return (common & (0x0101010101010101 * need)) == 0x0101010101010101 * need;
  }
  bool allowed = true;
  simd::for_each_lane(active, [&](uint32_t lane) { allowed &= (flags[lane] & need) == need; });
  return allowed;
}

// The row of `offset` in the windows of the group's own cores.
HWY_INLINE WindowRow window_row(const Group& g, uint64_t offset, uint32_t size, uint8_t need) {
  const MemoryView& m = g.machine->memory;
  if ((offset & 7) + size > 8) return {};
  const uint8_t* flags = m.window_pages + m.window_page_index(g.first_core, offset);
  if (!lanes_allow(flags, g.active, g.width, need)) return {};
  return {reinterpret_cast<uint64_t*>(m.windows + m.window_index(g.first_core, offset & ~uint64_t{7})),
          static_cast<int>(8 * (offset & 7))};
}

// Where the group's own windows start, as addresses of lane 0, and how far apart they are.
HWY_INLINE uint64_t own_windows(const Group& g) {
  const MemoryView& m = g.machine->memory;
  return m.window_base + (uint64_t{g.first_core} << m.window_shift);
}

// A run of `bytes` bytes in the linear zone whose pages all have `need`, or null.
HWY_INLINE uint8_t* linear_run(const Group& g, uint64_t address, uint64_t bytes, uint8_t need) {
  const MemoryView& m = g.machine->memory;
  const uint64_t first = address - m.linear_base;
  if (first >= m.linear_size || bytes > m.linear_size - first) return nullptr;
  for (uint64_t page = first >> kPageShift; page <= (first + bytes - 1) >> kPageShift; ++page)
    if ((m.linear_pages[page] & need) != need) return nullptr;
  return m.linear + first;
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

enum class Pattern { kScattered, kUniform, kWindowRow, kConsecutive };

struct Addresses {
  HWY_ALIGN uint64_t at[kMaxLanes];
  Pattern pattern = Pattern::kScattered;
};

template <bool kFull, AddressMode mode>
HWY_INLINE void find_addresses(const Group& g, const Uop* u, uint32_t size, Addresses& out) {
  const Source a(g, u->a), b(g, mode == AddressMode::kImmediate ? u->a : u->b);
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
  const auto has_stride = [&](uint64_t lane0, uint64_t stride) HWY_ATTR {
    const V iota = hn::Iota(VD::Tag(), 0);
    V expected = VD::add(VD::konst(lane0), VD::mul(iota, VD::konst(stride)));
    const V next = VD::konst(kN * stride);
    for (size_t v = 0; v < g.chunks; ++v, expected = VD::add(expected, next)) {
      const uint64_t differ =
          VD::mask_bits(VD::m_not(VD::eq(load_vec(out.at + v * kN), expected))) << (v * kN);
      if (differ & g.active) return false;
    }
    return true;
  };
  const MemoryView& m = g.machine->memory;
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(g.active));
  const uint64_t address = out.at[first];
  if (!m.is_private && address - own_windows(g) < (uint64_t{g.width} << m.window_shift)) {
    if (has_stride(address - (uint64_t{first} << m.window_shift), uint64_t{1} << m.window_shift))
      out.pattern = Pattern::kWindowRow;
  } else if constexpr (kFull) {
    if (g.width < 2) return;
    const uint64_t stride = out.at[1] - address;
    if (stride == 0 ? has_stride(address, 0) : stride == size && has_stride(address, size))
      out.pattern = stride == 0 ? Pattern::kUniform : Pattern::kConsecutive;
  }
}

template <bool kFull, Op op>
HWY_INLINE const Uop* load_row(Group& g, const Uop* u, const WindowRow& from) {
  using A = Access<op>;
  if constexpr (kFull) {
    // Spilled uniform values become uniform again.
    const V first = VD::konst(from.words[0]);
    size_t v = 0;
    while (v < g.chunks && VD::all(VD::eq(hn::LoadU(VD::Tag(), from.words + v * kN), first))) ++v;
    if (v == g.chunks) {
      const auto value = static_cast<typename A::Type>(from.words[0] >> from.bit);
      write_uniform<true>(g, u->d, extend_loaded<A::kExtend>(value));
      return u + 1;
    }
  } else {
    spread(g, u->d);
  }
  uint64_t* d = row(g, u->d);
  for_chunks<kFull>(g, [&](size_t v) HWY_ATTR {
    const V x = hn::LoadU(VD::Tag(), from.words + v * kN);
    write_chunk<kFull>(g, d, v, extend_vector<A::kExtend, typename A::Type>(x, from.bit));
  });
  g.step[u->d] = kN;
  return u + 1;
}

template <class T>
HWY_INLINE const Uop* store_row(Group& g, const Uop* u, const WindowRow& to) {
  const Source value(g, u->d);
  const V field = VD::shl(VD::konst(~uint64_t{0} >> (64 - 8 * sizeof(T))), to.bit);
  for_chunks<false>(g, [&](size_t v) HWY_ATTR {
    uint64_t* p = to.words + v * kN;
    V x = value.at(v);
    if constexpr (sizeof(T) < 8) {
      const V old = hn::LoadU(VD::Tag(), p);
      x = VD::or_(VD::andnot(old, field), VD::and_(VD::shl(x, to.bit), field));
    }
    const uint64_t bits = (g.active >> (v * kN)) & ((1u << kN) - 1);
    if (bits == (1u << kN) - 1) hn::StoreU(x, VD::Tag(), p);
    else simd::for_each_lane(bits, [&, words = x](uint32_t i) HWY_ATTR {
      HWY_ALIGN uint64_t lanes[kN];
      store_vec(words, lanes);
      p[i] = lanes[i];
    });
  });
  return u + 1;
}

template <bool kFull, Op op>
HWY_NOINLINE const Uop* load_scattered(Group& g, const Uop* u, const Addresses& addresses) {
  using A = Access<op>;
  const MemoryView& m = g.machine->memory;
  HWY_ALIGN uint64_t loaded[kMaxLanes];
  bool ok = true;
  const auto one = [&](uint32_t lane) HWY_ATTR {
    typename A::Type value = 0;
    ok &= m.load(g.first_core + lane, addresses.at[lane], &value);
    loaded[lane] = extend_loaded<A::kExtend>(value);
  };
  if constexpr (kFull) {
    for (uint32_t lane = 0; lane < g.width; ++lane) one(lane);
  } else {
    simd::for_each_lane(g.active, one);
  }
  if (HWY_UNLIKELY(!ok)) return run_lanes(g, u, execute_load<op, LaneContext>);
  if (g.width == 1) {
    write_uniform<kFull>(g, u->d, loaded[0]);
    return u + 1;
  }
  if (!kFull) spread(g, u->d);
  uint64_t* d = row(g, u->d);
  for_chunks<kFull>(g, [&](size_t v) HWY_ATTR {
    write_chunk<kFull>(g, d, v, load_vec(loaded + v * kN));
  });
  g.step[u->d] = kN;
  return u + 1;
}

template <bool kFull, Op op>
HWY_INLINE const Uop* run_load(Group& g, const Uop* u) {
  using A = Access<op>;
  using T = typename A::Type;
  const MemoryView& m = g.machine->memory;
  const bool uniform =
      g.step[u->a] == 0 && (A::kMode == AddressMode::kImmediate || g.step[u->b] == 0);
  if (uniform) {
    const uint64_t index = A::kMode == AddressMode::kImmediate ? 0 : row(g, u->b)[0];
    const uint64_t address = access_address<A::kMode>(row(g, u->a)[0], index, u->imm);
    const uint64_t offset = address - m.window_base;
    if (m.is_private && offset < m.windows_size) {
      const WindowRow from = window_row(g, offset, sizeof(T), kRead);
      if (HWY_LIKELY(from.words != nullptr)) return load_row<kFull, op>(g, u, from);
    } else {
      T value;
      if (HWY_LIKELY(m.load(g.first_core, address, &value))) {
        write_uniform<kFull>(g, u->d, extend_loaded<A::kExtend>(value));
        return u + 1;
      }
    }
    return run_lanes(g, u, execute_load<op, LaneContext>);
  }
  Addresses addresses;
  find_addresses<kFull, A::kMode>(g, u, sizeof(T), addresses);
  switch (addresses.pattern) {
    case Pattern::kWindowRow: {
      const uint32_t first = static_cast<uint32_t>(std::countr_zero(g.active));
      const uint64_t offset = (addresses.at[first] - m.window_base) &
                              ((uint64_t{1} << m.window_shift) - 1);
      const WindowRow from = window_row(g, offset, sizeof(T), kRead);
      if (HWY_LIKELY(from.words != nullptr)) return load_row<kFull, op>(g, u, from);
      break;
    }
    case Pattern::kUniform: {
      T value;
      if (!m.is_private && m.load(g.first_core, addresses.at[0], &value)) {
        write_uniform<kFull>(g, u->d, extend_loaded<A::kExtend>(value));
        return u + 1;
      }
      break;
    }
    case Pattern::kConsecutive: {
      const uint8_t* p = linear_run(g, addresses.at[0], sizeof(T) * g.width, kRead);
      if (p == nullptr) break;
      uint64_t* d = row(g, u->d);
      for (uint32_t i = 0; i < g.width; ++i) {
        T value;
        std::memcpy(&value, p + i * sizeof(T), sizeof(T));
        d[i] = extend_loaded<A::kExtend>(value);
      }
      g.step[u->d] = kN;
      return u + 1;
    }
    case Pattern::kScattered: break;
  }
  return load_scattered<kFull, op>(g, u, addresses);
}

template <bool kFull, Op op>
HWY_NOINLINE const Uop* store_scattered(Group& g, const Uop* u, const Addresses& addresses) {
  using T = typename Access<op>::Type;
  const MemoryView& m = g.machine->memory;
  const uint64_t* values = row(g, u->d);
  const uint32_t step = g.step[u->d] ? 1 : 0;
  uint64_t failed = 0;
  simd::for_each_lane(g.active, [&](uint32_t lane) HWY_ATTR {
    if (!m.store(g.first_core + lane, addresses.at[lane], static_cast<T>(values[lane * step])))
      failed |= uint64_t{1} << lane;
  });
  if (HWY_LIKELY(failed == 0)) return u + 1;
  simd::for_each_lane(failed, [&](uint32_t lane) {
    simd::stop_lane(g, lane, fault_event(g.first_core + lane, index_of(g, u),
                                         {Fault::kStoreAccess, addresses.at[lane]}));
  });
  return after_stops(g, u + 1);
}

template <bool kFull, Op op>
HWY_INLINE const Uop* run_store(Group& g, const Uop* u) {
  using A = Access<op>;
  using T = typename A::Type;
  const MemoryView& m = g.machine->memory;
  const bool uniform =
      g.step[u->a] == 0 && (A::kMode == AddressMode::kImmediate || g.step[u->b] == 0);
  if (uniform) {
    const uint64_t index = A::kMode == AddressMode::kImmediate ? 0 : row(g, u->b)[0];
    const uint64_t address = access_address<A::kMode>(row(g, u->a)[0], index, u->imm);
    const uint64_t offset = address - m.window_base;
    if (m.is_private && offset < m.windows_size) {
      const WindowRow to = window_row(g, offset, sizeof(T), kWrite);
      if (HWY_LIKELY(to.words != nullptr)) return store_row<T>(g, u, to);
    } else {
      // The last lane's value stays, as if the cores had stored one after the other.
      const uint32_t last = 63 - static_cast<uint32_t>(std::countl_zero(g.active));
      if (HWY_LIKELY(m.store(g.first_core, address, static_cast<T>(g.get_lane(u->d, last)))))
        return u + 1;
    }
    return run_lanes(g, u, execute_store<op, LaneContext>);
  }
  Addresses addresses;
  find_addresses<kFull, A::kMode>(g, u, sizeof(T), addresses);
  if (addresses.pattern == Pattern::kWindowRow) {
    const uint32_t first = static_cast<uint32_t>(std::countr_zero(g.active));
    const uint64_t offset =
        (addresses.at[first] - m.window_base) & ((uint64_t{1} << m.window_shift) - 1);
    const WindowRow to = window_row(g, offset, sizeof(T), kWrite);
    if (HWY_LIKELY(to.words != nullptr)) return store_row<T>(g, u, to);
  } else if (addresses.pattern == Pattern::kConsecutive) {
    uint8_t* p = linear_run(g, addresses.at[0], sizeof(T) * g.width, kWrite);
    if (p != nullptr) {
      spread(g, u->d);
      const uint64_t* values = row(g, u->d);
      for (uint32_t i = 0; i < g.width; ++i) {
        const T value = static_cast<T>(values[i]);
        std::memcpy(p + i * sizeof(T), &value, sizeof(T));
      }
      return u + 1;
    }
  }
  return store_scattered<kFull, op>(g, u, addresses);
}

HWY_INLINE const Uop* run_check_align(Group& g, const Uop* u) {
  if (g.step[u->a] == 0 && ((row(g, u->a)[0] + u->imm) & (u->imm16 - 1u)) == 0) return u + 1;
  return run_lanes(g, u, [](const Uop& x, LaneContext& c, const MemoryView&, uint32_t, StopInfo& stop) {
    const uint64_t address = c.get(x.a) + x.imm;
    if ((address & (x.imm16 - 1u)) == 0) return true;
    stop = {Fault::kAlignment, address};
    return false;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();
#endif
