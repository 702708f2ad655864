// Emits what happens to a group's rows inside a segment's loop: the values that a chunk of lanes
// holds in registers, how they come from rows of each form, and how they go back.
#pragma once
#include <optional>

#include "device_sim/simd/jit/cold_path.h"
#include "device_sim/simd/jit/domain.h"

namespace gpusim::simd {

// Lanes of a chunk: as many as a register has words of 32 bits.
template <class Isa>
inline constexpr int kChunkLanes = Isa::kRegBytes / 4;

inline constexpr int kRowBytes = 8 * static_cast<int>(kMaxLanes);

// Where a group's state is, as operands.
struct GroupOperands {
  x86::Gp group, lanes;

  x86::Mem field(size_t offset, uint32_t size) const {
    return x86::ptr(group, static_cast<int32_t>(offset), size);
  }
  x86::Mem kind(Slot s) const { return field(offsetof(Group, kind) + s, 1); }
  x86::Mem filled(Slot s) const { return field(offsetof(Group, filled) + s, 1); }
  x86::Mem stride(Slot s, uint32_t size = 8) const {
    return field(offsetof(Group, stride) + 8 * size_t{s}, size);
  }
  // Of a compact slot; all of a uniform one.
  x86::Mem base(Slot s, uint32_t size = 8, size_t offset = 0) const {
    return field(offsetof(Group, base) + 8 * size_t{s} + offset, size);
  }
};

template <class Isa>
class Chunk {
 public:
  using Reg = typename Isa::Reg;
  using Narrow32 = JitDomain<Isa, 32>;
  using Wide64 = JitDomain<Isa, 64>;
  using Value32 = typename Narrow32::V;
  using Value64 = typename Wide64::V;

  Chunk(Isa& isa, const GroupOperands& operands) : isa_(isa), cc_(isa.cc), at_(operands) {}

  // A slot that the segment writes: in which form it was found, if read first, and is left.
  struct Row {
    bool written = false;
    bool read_first = false;
    uint8_t entry_kind = kLanes;
    uint8_t kind = kLanes;  // written as: kLanes, or what words it has
    bool packed_later = false;  // written as 64-bit words, and made 32-bit ones after the loop
    bool spread = false;  // made kLanes before the loop, under a mask
    bool has_words() const { return kind != kLanes && !packed_later; }
  };
  std::array<Row, 256> rows{};
  x86::Gp lane;  // the chunk's first

  // Chooses the order of chunks: true for last to first. A row may be read in one form and written in
  // the other; as 64-bit words occupy twice the room, the writer must not run ahead of the reader. Where
  // rows want different orders, those that shrink do so later: what follows the segment counts on it.
  bool plan_rows() {
    bool grows = false;
    for (const Row& r : rows)
      grows |= r.written && r.read_first && has_words(r.entry_kind) && !has_words(r.kind);
    for (Row& r : rows)
      if (grows && r.written && r.read_first && r.entry_kind == kLanes && has_words(r.kind))
        r.packed_later = true;
    return grows;
  }

  template <class D>
  typename D::V get(Slot s, uint8_t kind) {
    if constexpr (D::kWide) return get_wide(s, kind);
    else return get_narrow(s, kind);
  }

  // `kind`: of the words, if they have 32 bits.
  template <class D>
  void put(Slot s, const typename D::V& value, uint8_t kind) {
    Held h;
    h.dirty = true;
    h.kind = kind;
    if constexpr (D::kWide) h.wide = D::in_registers(value);
    else h.narrow = D::in_registers(value);
    held_[s] = h;
  }

  // Words of 32 bits, of that kind, as words of 64.
  Value64 widened(const Value32& value, uint8_t kind) {
    Value64 v;
    for (auto& r : v.r) r = isa_.fresh();
    unpack(v.r, value.r[0], kind);
    return v;
  }

  // At the end of a chunk.
  void store_rows() {
    for (size_t i = 0; i < 256; ++i) {
      const Slot s = static_cast<Slot>(i);
      if (!held_[i].dirty) continue;
      if (rows[i].has_words()) {
        isa_.store_row32(part(s, 2), get_narrow(s, kNarrow).r[0]);
      } else {
        const Value64 v = get_wide(s, kLanes);
        for (int h = 0; h < 2; ++h)
          isa_.store_row64(part(s, 3, h * Isa::kRegBytes), v.r[static_cast<size_t>(h)], h);
      }
    }
  }
  // After the loop.
  void store_kinds() {
    for (size_t i = 0; i < 256; ++i) {
      if (!rows[i].written) continue;
      const Slot s = static_cast<Slot>(i);
      if (rows[i].packed_later) pack_row(s);
      cc_.mov(at_.kind(s), static_cast<int>(rows[i].kind));
    }
  }

 private:
  struct Held {
    std::optional<Value32> narrow;
    std::optional<Value64> wide;
    bool dirty = false;  // not in the row yet
    uint8_t kind = kNarrow;  // of `narrow`, if dirty
  };
  static bool has_words(uint8_t kind) { return kind == kNarrow || kind == kSigned; }

  // This chunk's part of a row of elements of 1 << shift bytes.
  x86::Mem part(Slot s, uint32_t shift, int32_t offset = 0) const {
    return x86::ptr(at_.lanes, lane, shift, s * kRowBytes + offset, 0);
  }

  Value32 get_narrow(Slot s, uint8_t kind) {
    Held& h = held_[s];
    if (rows[s].spread) kind = kLanes;
    if (!h.narrow) {
      Value32 v;
      v.r[0] = isa_.fresh();
      if (h.wide) isa_.pack(v.r[0], h.wide->r);
      else load_narrow(v.r[0], s, kind);
      h.narrow = v;
    }
    return *h.narrow;
  }
  Value64 get_wide(Slot s, uint8_t kind) {
    Held& h = held_[s];
    if (rows[s].spread) kind = kLanes;
    if (!h.wide) {
      Value64 v;
      for (auto& r : v.r) r = isa_.fresh();
      if (h.dirty) unpack(v.r, h.narrow->r[0], h.kind);
      else load_wide(v.r, s, kind);
      h.wide = v;
    }
    return *h.wide;
  }

  // Words of 32 bits to words of 64.
  void unpack(const std::array<Reg, 2>& out, const Reg& in, uint8_t kind) {
    const Reg high = isa_.fresh();
    cc_.emit(extension(kind), out[0], Isa::half(in));
    isa_.high_half(high, in);
    cc_.emit(extension(kind), out[1], Isa::half(high));
  }
  static asmjit::InstId extension(uint8_t kind) {
    return kind == kSigned ? x86::Inst::kIdVpmovsxdq : x86::Inst::kIdVpmovzxdq;
  }

  // A whole row of 64-bit words to 32-bit ones, in place.
  void pack_row(Slot s) {
    for (int32_t bytes = 0; bytes < kRowBytes; bytes += 2 * Isa::kRegBytes) {
      const std::array<Reg, 2> words = {isa_.fresh(), isa_.fresh()};
      const Reg packed = isa_.fresh();
      isa_.load(words[0], x86::ptr(at_.lanes, s * kRowBytes + bytes));
      isa_.load(words[1], x86::ptr(at_.lanes, s * kRowBytes + bytes + Isa::kRegBytes));
      isa_.pack(packed, words);
      isa_.store(x86::ptr(at_.lanes, s * kRowBytes + bytes / 2), packed);
    }
  }

  template <class Word>
  x86::Mem iota(size_t first) {
    std::array<Word, Isa::kRegBytes / sizeof(Word)> words;
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<Word>(first + i);
    return isa_.constant(words.data(), sizeof words);
  }
  // The value of an affine slot in the chunk's first lane.
  x86::Gp first_value(Slot s) {
    const x86::Gp t = cc_.newUInt64();
    cc_.mov(t, at_.stride(s));
    cc_.imul(t, lane);
    cc_.add(t, at_.base(s));
    return t;
  }

  void load_narrow(const Reg& out, Slot s, uint8_t kind) {
    switch (kind) {
      case kUniform: isa_.broadcast32(out, at_.base(s, 4)); break;
      case kAffine: {
        const Reg first = isa_.fresh();
        isa_.broadcast32(first, first_value(s).r32());
        isa_.broadcast32(out, at_.stride(s, 4));
        cc_.vpmulld(out, out, iota<uint32_t>(0));
        cc_.vpaddd(out, out, first);
        break;
      }
      case kNarrow:
      case kSigned: isa_.load(out, part(s, 2)); break;
      default: {
        const std::array<Reg, 2> words = {isa_.fresh(), isa_.fresh()};
        load_wide(words, s, kind);
        isa_.pack(out, words);
      }
    }
  }
  void load_wide(const std::array<Reg, 2>& out, Slot s, uint8_t kind) {
    switch (kind) {
      case kUniform:
        isa_.broadcast64(out[0], at_.base(s));
        isa_.move(out[1], out[0]);
        break;
      case kAffine: {
        const Reg first = isa_.fresh(), step = isa_.fresh();
        isa_.broadcast64(first, first_value(s));
        isa_.broadcast64(step, at_.stride(s));
        for (size_t h = 0; h < 2; ++h) {
          isa_.mul64(out[h], step, iota<uint64_t>(h * kChunkLanes<Isa> / 2));
          cc_.vpaddq(out[h], out[h], first);
        }
        break;
      }
      case kNarrow:
      case kSigned:
        cc_.emit(extension(kind), out[0], part(s, 2));
        cc_.emit(extension(kind), out[1], part(s, 2, Isa::kRegBytes / 2));
        break;
      default:
        isa_.load(out[0], part(s, 3));
        isa_.load(out[1], part(s, 3, Isa::kRegBytes));
    }
  }

  Isa& isa_;
  x86::Compiler& cc_;
  const GroupOperands& at_;
  std::array<Held, 256> held_{};
};

}  // namespace gpusim::simd
