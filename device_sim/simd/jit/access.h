// Emits loads and stores of linear memory in native code: checks before a segment's loop, accesses
// of a chunk of lanes inside it.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "device_sim/simd/jit/affine_emitter.h"
#include "device_sim/simd/jit/places.h"

namespace gpusim::simd {

template <class Isa>
class AccessEmitter : protected AffineEmitter {
 protected:
  using Reg = typename Isa::Reg;
  using Narrow32 = JitDomain<Isa, 32>;
  using Wide64 = JitDomain<Isa, 64>;
  using Value32 = typename Narrow32::V;
  using Value64 = typename Wide64::V;
  using Row = typename Isa::InRow;
  static constexpr int kLanesOfChunk = kChunkLanes<Isa>;
  static constexpr int kLanesOfHalf = kLanesOfChunk / 2;

  AccessEmitter(const Trace& trace, const NativeCalls& calls, Isa& isa)
      : AffineEmitter(trace, calls, isa), isa_(isa) {}

  // --- addresses

  // Of a uniform load, or of lane 0; in a register of its own.
  x86::Gp emit_address(size_t i) {
    const Uop& u = uop(i);
    const x86::Gp address = emit_address_base(i);
    if (access_info(u.op).mode != AddressMode::kImmediate || u.imm == 0) return address;
    const x86::Gp offset = cc_.newUInt64();
    cc_.mov(offset, u.imm);
    cc_.add(address, offset);
    return address;
  }
  // The same but for the immediate of AddressMode::kImmediate.
  x86::Gp emit_address_base(size_t i) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const x86::Gp address = cc_.newUInt64();
    cc_.mov(address, residents_.get(u.a, plan(i).source_kind[0]).base);
    if (access.mode == AddressMode::kImmediate) return address;
    const x86::Gp offset = cc_.newUInt64();
    const x86::Gp& index = residents_.get(u.b, plan(i).source_kind[1]).base;
    if (access.mode == AddressMode::kIndex)
      cc_.mov(offset, index);
    else
      cc_.movsxd(offset, index.r32());
    if (u.imm & 63) cc_.shl(offset, static_cast<int>(u.imm & 63));
    cc_.add(address, offset);
    return address;
  }
  // Where guest memory from `address` on lies; leaves unless it is `bytes` long and may be
  // accessed. `bytes`: an immediate or a register.
  template <class Bytes>
  x86::Gp find_linear_run(const x86::Gp& address, const Bytes& bytes, uint8_t permissions,
                          const Label& exit) {
    const x86::Gp pointer = cc_.newUIntPtr();
    auto* call = invoke(address_of(calls_.linear_run),
                        asmjit::FuncSignatureT<void*, void*, uint64_t, uint64_t, uint64_t>());
    call->setArg(0, at_.group);
    call->setArg(1, address);
    call->setArg(2, bytes);
    call->setArg(3, imm(permissions));
    call->setRet(0, pointer);
    cc_.test(pointer, pointer);
    cc_.jz(exit);
    return pointer;
  }
  // Likewise; what is within known reach needs no call.
  x86::Gp emit_linear_run(const x86::Gp& address, int bytes, uint8_t permissions,
                          const Label& exit) {
    const x86::Gp pointer = cc_.newUIntPtr(), rest = cc_.newUInt64();
    const Label unknown = cc_.newLabel(), known = cc_.newLabel();
    cc_.mov(rest, reach(permissions, offsetof(Reach, end)));
    cc_.sub(rest, address);
    cc_.jb(unknown);
    cc_.cmp(rest, bytes);
    cc_.jb(unknown);
    cc_.cmp(address, reach(permissions, offsetof(Reach, begin)));
    cc_.jb(unknown);
    cc_.mov(pointer, linear_delta());
    cc_.add(pointer, address);
    cc_.bind(known);
    deferred_.push_back([this, unknown, known, address, bytes, permissions, exit, pointer] {
      cc_.bind(unknown);
      cc_.mov(pointer, find_linear_run(address, imm(bytes), permissions, exit));
      cc_.jmp(known);
    });
    return pointer;
  }
  x86::Mem reach(uint8_t permissions, size_t field) const {
    return at_.field(offsetof(Group, reach) + (permissions == kWrite ? sizeof(Reach) : 0) + field,
                     8);
  }
  // From one lane's address to the next one's.
  x86::Gp emit_address_stride(size_t i, const Label& exit) {
    const Uop& u = uop(i);
    const Plan& p = plan(i);
    const AccessInfo access = access_info(u.op);
    const x86::Gp stride = cc_.newUInt64();
    if (p.source_kind[0] == kAffine)
      cc_.mov(stride, *residents_.get(u.a, kAffine).stride);
    else
      cc_.xor_(stride, stride);
    if (access.mode != AddressMode::kImmediate && p.source_kind[1] == kAffine) {
      Run index = load_run(u.b, kAffine);
      if (access.mode == AddressMode::kIndex32) {  // no lane's index may wrap
        cc_.movsxd(index.base, index.base.r32());
        const x86::Gp last = last_of(index, exit), low = cc_.newUInt64();
        cc_.movsxd(low, last.r32());
        cc_.cmp(low, last);
        cc_.jne(exit);
      }
      const x86::Gp of_index = cc_.newUInt64();
      cc_.mov(of_index, *index.stride);
      if (u.imm & 63) cc_.shl(of_index, static_cast<int>(u.imm & 63));
      cc_.add(stride, of_index);
    }
    return stride;
  }
  // The lanes of all chunks: some behind the group's width may be computed with the others.
  int lanes_of_chunks() const {
    return (static_cast<int>(trace_.width) + kLanesOfChunk - 1) / kLanesOfChunk * kLanesOfChunk;
  }
  // A pointer to lane 0's element of a consecutive access, if it is one and all of it is there.
  void emit_pointer(size_t i, const Label& exit) {
    const AccessInfo access = access_info(uop(i).op);
    const x86::Gp stride = emit_address_stride(i, exit);
    const uint8_t permissions = need_of(i);
    if (plan(i).in_row) {
      rows_.emplace(i, emit_window_row(i, stride, permissions, exit));
      return;
    }
    cc_.cmp(stride, access.size);
    cc_.jne(exit);
    const x86::Gp pointer =
        emit_linear_run(emit_address(i), access.size * lanes_of_chunks(), permissions, exit);
    if (plan_.loops && permissions == kRead) emit_prefetch(pointer, access.size);
    pointers_.emplace(i, pointer);
  }
  // Fetches what a loop will load if it goes on as since its last pass. Cores that share a loop
  // step over each other's elements, further than processors look ahead by themselves: often into
  // another page.
  void emit_prefetch(const x86::Gp& pointer, int lines) {
    const x86::Mem last = cc_.newStack(8, 8);  // whatever is there in the first pass does no harm
    const x86::Gp step = cc_.newUInt64();
    cc_.mov(step, pointer);
    cc_.sub(step, last);
    cc_.mov(last, pointer);
    for (int k = 0; k < lines; ++k) cc_.prefetcht0(x86::ptr(pointer, step, 2, 64 * k));
  }

  // The same for the elements of a chunk that most often turn out to be neighbours (emit_half).
  void emit_prefetch(size_t i, const x86::Gp& delta, const Value64& at) {
    constexpr uint32_t shift = std::countr_zero(8u / kLanesOfHalf);
    const x86::Mem last = cc_.newStack(kMaxLanes << shift, 16);  // of each chunk's halves
    for (size_t h = 0; h < 2; ++h) {
      x86::Mem mine = last.cloneAdjusted(static_cast<int64_t>(8 * h)).cloneResized(8);
      mine.setIndex(chunk_->lane, shift);
      const x86::Gp first = cc_.newUInt64(), next = cc_.newUInt64();
      cc_.vmovq(first, at.r[h].xmm());
      cc_.mov(next, first);
      cc_.sub(next, mine);
      cc_.mov(mine, first);
      cc_.lea(next, x86::ptr(first, next, 2));
      cc_.prefetcht0(x86::ptr(delta, next, 0, static_cast<int32_t>(displacement(i))));
    }
  }

  // Where lane 0's element of a row of windows is; leaves unless all lanes may access theirs.
  x86::Gp emit_window_element(size_t i, const x86::Gp& stride, uint8_t permissions,
                              const Label& exit) {
    const auto size = static_cast<uint32_t>(access_info(uop(i).op).size);
    const MemoryView& m = *calls_.memory;
    const x86::Gp address = emit_address(i), place = cc_.newUIntPtr();
    const auto find = [this, address, stride, place, size, permissions, exit] {
      auto* call =
          invoke(address_of(calls_.window_row),
                 asmjit::FuncSignatureT<void*, void*, uint64_t, uint64_t, uint64_t, uint64_t>());
      call->setArg(0, at_.group);
      call->setArg(1, address);
      call->setArg(2, stride);
      call->setArg(3, imm(size));
      call->setArg(4, imm(permissions));
      call->setRet(0, place);
      cc_.test(place, place);
      cc_.jz(exit);
    };
    const uint64_t between_pieces = uint64_t{m.window_groups} << kPageShift;
    if (m.is_private || m.window_shift > 30 || between_pieces > INT32_MAX) {
      find();
      return place;
    }
    // A page that the group knows.
    constexpr uint32_t kPieceShift = kPageShift - kLanesShift;
    const auto known = [&](size_t field, uint32_t bytes) {
      return at_.field(offsetof(Group, known_page) +
                           (permissions == kWrite ? sizeof(KnownPage) : 0) + field, bytes);
    };
    const Label unknown = cc_.newLabel(), done = cc_.newLabel();
    const x86::Gp piece = cc_.newUInt64(), machine = cc_.newUIntPtr();
    cc_.mov(piece, address);
    cc_.shr(piece, kPageShift);
    cc_.cmp(piece, known(offsetof(KnownPage, number), 8));
    cc_.jne(unknown);
    cc_.mov(machine, at_.field(offsetof(Group, machine), 8));
    cc_.mov(machine.r32(), x86::ptr(machine, offsetof(Machine, permission_changes), 4));
    cc_.cmp(machine.r32(), known(offsetof(KnownPage, changes), 4));
    cc_.jne(unknown);
    cc_.cmp(stride, 1 << m.window_shift);
    cc_.jne(unknown);
    if (size > 1) {
      cc_.test(address.r32(), static_cast<int>(size - 1));
      cc_.jnz(unknown);
    }
    cc_.mov(piece, address);
    cc_.shr(piece, kPieceShift);
    cc_.and_(piece, (1 << (kPageShift - kPieceShift)) - 1);
    cc_.imul(piece, piece, static_cast<int>(between_pieces));
    cc_.add(piece, known(offsetof(KnownPage, words), 8));
    cc_.mov(place, address);
    cc_.and_(place, ((1 << kPieceShift) - 1) & ~7);
    cc_.shl(place, kLanesShift);
    cc_.add(place, piece);
    if (size < 8) {
      cc_.mov(piece, address);
      cc_.and_(piece, 7);
      cc_.add(place, piece);
    }
    cc_.bind(done);
    deferred_.push_back([this, unknown, done, find] {
      cc_.bind(unknown);
      find();
      cc_.jmp(done);
    });
    return place;
  }
  // Loads a row of windows whose values are as compact as when they were recorded, or leaves. All
  // comparisons are of elements at the top of their words.
  void emit_compact_row(size_t i) {
    const AccessInfo access = access_info(uop(i).op);
    const bool is_affine = step(i).d_after == kAffine;
    const auto bits = static_cast<uint32_t>(8 * access.size);
    const int above = 64 - 8 * access.size;
    const Label exit = exit_of(i);
    Row row;
    row.words = emit_window_element(i, emit_address_stride(i, exit), kRead, exit);
    if (above != 0) isa_.place_load_in_row(row, access.size, /*narrow=*/false);
    const auto top_of = [&](int lane) {
      const x86::Gp top = cc_.newUInt64();
      if (above == 0) {
        cc_.mov(top, x86::ptr(row.words, 8 * lane, 8));
        return top;
      }
      const x86::Xmm word = cc_.newXmm();
      cc_.vmovq(word, x86::ptr(row.words, 8 * lane, 8));
      cc_.vpsllq(word, word, row.shift);
      cc_.vmovq(top, word);
      return top;
    };
    const auto value_of = [&](const x86::Gp& top) {
      const x86::Gp value = cc_.newUInt64();
      cc_.mov(value, top);
      if (above == 0) return value;
      if (access.extend == Extend::kZero) cc_.shr(value, above);
      else cc_.sar(value, above);
      if (access.extend == Extend::kSign32) cc_.mov(value.r32(), value.r32());
      return value;
    };
    const x86::Gp first = top_of(0);
    Run loaded{.base = value_of(first)};
    const Reg expected = isa_.fresh(), next = isa_.fresh(), differ = isa_.fresh();
    isa_.broadcast64(expected, first);
    if (is_affine) {
      loaded.stride = value_of(top_of(1));
      cc_.sub(*loaded.stride, loaded.base);
      cc_.jz(exit);
      if (above != 0) {  // no lane's element may have wrapped
        if (access.extend == Extend::kZero) cut(loaded, bits, exit);
        else extend(loaded, bits, exit);
      }
      constexpr int kWords = Isa::kRegBytes / 8;
      std::array<uint64_t, kWords> lanes;
      for (size_t k = 0; k < lanes.size(); ++k) lanes[k] = k;
      const x86::Gp top_step = cc_.newUInt64();
      const Reg offsets = isa_.fresh(), steps = isa_.fresh(), numbers = isa_.fresh();
      cc_.mov(top_step, *loaded.stride);
      if (above != 0) cc_.shl(top_step, above);
      isa_.broadcast64(steps, top_step);
      isa_.load(numbers, isa_.constant(lanes.data(), sizeof lanes));
      isa_.mul64(offsets, steps, numbers);
      cc_.vpaddq(expected, expected, offsets);
      cc_.imul(top_step, top_step, kWords);
      isa_.broadcast64(next, top_step);
    }
    const int row_bytes = static_cast<int>(8 * trace_.width);
    for (int at = 0; at < row_bytes; at += Isa::kRegBytes) {
      const Reg z = isa_.fresh();
      isa_.load(z, x86::ptr(row.words, at));
      if (above != 0) cc_.vpsllq(z, z, row.shift);
      const Reg& sum = at == 0 ? differ : z;
      cc_.emit(Isa::kXor[1], sum, z, expected);
      if (row_bytes - at < Isa::kRegBytes) {
        std::array<uint64_t, Isa::kRegBytes / 8> lanes{};
        std::fill_n(lanes.begin(), (row_bytes - at) / 8, ~uint64_t{0});
        cc_.emit(Isa::kAnd[1], sum, sum, isa_.constant(lanes.data(), sizeof lanes));
      }
      if (at != 0) cc_.emit(Isa::kOr[1], differ, differ, z);
      if (is_affine) cc_.vpaddq(expected, expected, next);
    }
    const Reg none = isa_.fresh();
    isa_.clear(none);
    isa_.jump_if_differ64(differ, none, exit);
    store_run(uop(i).d, loaded);
  }

  // Where the chunks' words are in a row of windows, and where in a word the elements begin:
  // programs that step through arrays on their stacks come to each part of a word in turn.
  Row emit_window_row(size_t i, const x86::Gp& stride, uint8_t permissions, const Label& exit) {
    const AccessInfo access = access_info(uop(i).op);
    Row row;
    row.words = emit_window_element(i, stride, permissions, exit);
    if (access.size == 8) return row;
    if (permissions == kWrite) isa_.place_store_in_row(row, access.size);
    else isa_.place_load_in_row(row, access.size, access.size <= 4);
    return row;
  }
  // The chunk's words in a row of windows: half `h`.
  x86::Mem words_at(const Row& row, int h) const {
    return x86::ptr(row.words, chunk_->lane, 3, Isa::kRegBytes * h);
  }
  void emit_row_load(size_t i) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const Row& row = rows_.at(i);
    Value64 v;
    for (int h = 0; h < 2; ++h) {
      const Reg z = v.r[static_cast<size_t>(h)] = isa_.fresh();
      isa_.load(z, words_at(row, h));
    }
    if (access.size == 8) return put_wide(i, v);
    Value32 n;
    const Reg z = n.r[0] = isa_.fresh();
    isa_.take_from_row(z, row, v.r, access.size);
    extend_to_32_bits(z, access);
    put_words(i, n);
  }
  // Of an element in the word's highest bits.
  void extend_to_32_bits(const Reg& z, const AccessInfo& access) {
    const int unused = 32 - 8 * access.size;
    if (unused == 0) return;
    if (access.extend == Extend::kZero)
      cc_.vpsrld(z, z, unused);
    else
      cc_.vpsrad(z, z, unused);
  }
  // Only the operand's bytes are written: other host threads may store others of the same words.
  void emit_row_store(size_t i) {
    const Uop& u = uop(i);
    const int size = access_info(u.op).size;
    const Row& row = rows_.at(i);
    if (size == 8) {
      const Value64 v = chunk_->template get<Wide64>(u.d, plan(i).d_kind);
      for (int h = 0; h < 2; ++h)
        isa_.store_elements64(words_at(row, h), v.r[static_cast<size_t>(h)], h);
      return;
    }
    const Reg z = chunk_->template get<Narrow32>(u.d, plan(i).d_kind).r[0];
    isa_.store_in_row(row, chunk_->lane, z, size);
  }

  // The chunk's part of a run of elements, from its element `first` on.
  x86::Mem elements(size_t i, int size, int first) {
    if (plan(i).scattered)
      return x86::ptr(chunk_place(i), static_cast<int32_t>(displacement(i)) + first * size);
    const auto shift = static_cast<uint32_t>(std::countr_zero(static_cast<unsigned>(size)));
    return x86::ptr(pointers_.at(i), chunk_->lane, shift, first * size);
  }
  void emit_load(size_t i) {
    const bool is_one = togetherness(i) == Togetherness::kAlike;
    if (plan(i).scattered && togetherness(i) == Togetherness::kNone) return emit_gather(i);
    if (plan(i).in_row) return emit_row_load(i);
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    if (is_one && access.size == 8) {
      const Reg z = isa_.fresh();
      isa_.broadcast64(z, elements(i, 8, 0).cloneResized(8));
      Value64 v;
      v.r.fill(z);
      return put_wide(i, v);
    }
    if (access.size <= 4) {
      Value32 v;
      const Reg z = v.r[0] = isa_.fresh();
      const x86::Mem at = elements(i, access.size, 0);
      const bool sign = access.extend != Extend::kZero;
      if (is_one)
        isa_.broadcast32(z, at.cloneResized(4));
      else if (access.size == 4)
        isa_.load(z, at);
      else if (access.size == 1)
        sign ? cc_.vpmovsxbd(z, at) : cc_.vpmovzxbd(z, at);
      else
        sign ? cc_.vpmovsxwd(z, at) : cc_.vpmovzxwd(z, at);
      return put_words(i, v);
    }
    Value64 v;
    for (int h = 0; h < 2; ++h) {
      const Reg z = v.r[static_cast<size_t>(h)] = isa_.fresh();
      isa_.load(z, elements(i, access.size, kLanesOfHalf * h));
    }
    put_wide(i, v);
  }
  // What step `i` loaded.
  void put_words(size_t i, const Value32& v) {
    chunk_->template put<Narrow32>(uop(i).d, v, words_kind(i));
  }
  void put_wide(size_t i, const Value64& v) {
    chunk_->template put<Wide64>(uop(i).d, v, kLanes);
  }
  // The kind of row that the narrow result of step `i` would have.
  uint8_t words_kind(size_t i) const {
    return plan(i).result & kZeroAbove ? uint8_t{kNarrow} : uint8_t{kSigned};
  }
  void emit_store(size_t i) {
    if (plan(i).scattered && togetherness(i) == Togetherness::kNone) return emit_scatter(i);
    if (plan(i).in_row) return emit_row_store(i);
    const Uop& u = uop(i);
    const int size = access_info(u.op).size;
    if (size == 8) {
      const Value64 v = chunk_->template get<Wide64>(u.d, plan(i).d_kind);
      for (int h = 0; h < 2; ++h)
        isa_.store_elements64(elements(i, size, kLanesOfHalf * h), v.r[static_cast<size_t>(h)], h);
      return;
    }
    const Reg z = chunk_->template get<Narrow32>(u.d, plan(i).d_kind).r[0];
    isa_.store_elements(elements(i, size, 0), z, size);
  }

  // --- scattered accesses

  // The addresses of a chunk, but for the immediate of AddressMode::kImmediate.
  Value64 emit_addresses(size_t i, Chunk<Isa>& chunk) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const Value64 a = chunk.template get<Wide64>(u.a, plan(i).source_kind[0]);
    if (access.mode == AddressMode::kImmediate) return a;
    const Value64 b = chunk.template get<Wide64>(u.b, plan(i).source_kind[1]);
    const int shift = static_cast<int>(u.imm & 63);
    Value64 sum;
    for (size_t h = 0; h < sum.r.size(); ++h) {
      const Reg z = sum.r[h] = isa_.fresh();
      if (access.mode == AddressMode::kIndex32) {
        cc_.vpsllq(z, b.r[h], 32);
        isa_.sar64(z, z, 32);
        if (shift) cc_.vpsllq(z, z, shift);
      } else {
        cc_.vpsllq(z, b.r[h], shift);
      }
      cc_.vpaddq(z, z, a.r[h]);
    }
    return sum;
  }

  // The accesses of a segment from the same registers, which are checked together.
  struct SameBase {
    size_t first;  // a step
    uint8_t need;
    int64_t begin, end;  // bytes that are accessed, from the registers' address on
  };
  bool is_same_base(const SameBase& x, size_t i) const {
    return x.need == need_of(i) && is_same_address(x.first, i) &&
           togetherness(x.first) == togetherness(i) &&
           (togetherness(i) != Togetherness::kNeighbours || size_of(x.first) == size_of(i));
  }
  int size_of(size_t i) const { return access_info(uop(i).op).size; }
  // Of a scattered access.
  Togetherness togetherness(size_t i) const {
    if (!plan(i).scattered || trace_.is_masked() || is_strided(i)) return Togetherness::kNone;
    if (step(i).alike >= kLanesOfChunk) return Togetherness::kAlike;
    return step(i).neighbours >= kLanesOfChunk ? Togetherness::kNeighbours : Togetherness::kNone;
  }
  bool is_same_address(size_t first, size_t i) const {
    const Uop &u = uop(first), &v = uop(i);
    const AddressMode mode = access_info(v.op).mode;
    if (access_info(u.op).mode != mode || u.a != v.a) return false;
    return mode == AddressMode::kImmediate || (u.b == v.b && (u.imm & 63) == (v.imm & 63));
  }
  struct Extent {
    size_t step;  // the first that had it
    Togetherness togetherness;
    int size;  // of neighbours
    x86::Gp first, last;
    x86::Mem of_chunks;  // of those that are together (jit/places.h)
  };
  uint8_t need_of(size_t i) const { return is_load(shape_of(uop(i))) ? kRead : kWrite; }
  // In [-2^31, 2^31): other immediates are not planned to be scattered.
  int64_t displacement(size_t i) const {
    return access_info(uop(i).op).mode == AddressMode::kImmediate ? static_cast<int64_t>(uop(i).imm)
                                                                  : 0;
  }
  // Before a segment: leaves unless all lanes may do all scattered accesses.
  void check_scattered(size_t begin, size_t end, const Label& exit) {
    std::vector<SameBase> bases;
    chunk_places_.clear();
    for (size_t i = begin; i < end; ++i) {
      if (!plan(i).scattered) continue;
      const int64_t first = displacement(i);
      const auto last =
          first +
          static_cast<int64_t>(touched_bytes(static_cast<uint64_t>(access_info(uop(i).op).size)));
      const auto same = std::find_if(bases.begin(), bases.end(),
                                     [&](const SameBase& x) { return is_same_base(x, i); });
      if (same == bases.end()) {
        bases.push_back({i, need_of(i), first, last});
      } else {
        same->begin = std::min(same->begin, first);
        same->end = std::max(same->end, last);
      }
    }
    for (const SameBase& x : bases) {
      check_reach(x, exit);
      if (!has_ctas()) continue;
      for (size_t i = begin; i < end; ++i)
        if (plan(i).scattered && is_same_base(x, i))
          deltas_.insert_or_assign(i, deltas_.at(x.first));
    }
    strided_.clear();
    for (size_t i = begin; i < end; ++i)
      if (is_strided(i)) find_stride(i, exit);
  }
  // Whether addresses run evenly from lane to lane: they need not be computed in vectors.
  bool is_strided(size_t i) const {
    const Plan& p = plan(i);
    if (!p.scattered || trace_.is_masked() || !is_compact(p.source_kind[0])) return false;
    const AddressMode mode = access_info(uop(i).op).mode;
    return mode == AddressMode::kImmediate ||
           (mode == AddressMode::kIndex && is_compact(p.source_kind[1]));
  }
  // Lanes' elements, but for their displacements.
  struct Strided {
    size_t step;  // the first that has them
    uint8_t need;
    x86::Gp first;  // where lane 0's is
    x86::Gp stride, thrice;
  };
  void find_stride(size_t i, const Label& exit) {
    if (strided(i) != strided_.end()) return;
    const Strided s{i, need_of(i), emit_address_base(i), emit_address_stride(i, exit),
                    cc_.newUInt64()};
    cc_.add(s.first, delta_of(i));
    cc_.lea(s.thrice, x86::ptr(s.stride, s.stride, 1));
    strided_.push_back(s);
  }
  typename std::vector<Strided>::const_iterator strided(size_t i) const {
    return std::find_if(strided_.begin(), strided_.end(), [&](const Strided& s) {
      return s.need == need_of(i) && is_same_address(s.step, i);
    });
  }
  // Calls f(k, place) for the elements of half `h` of the chunk.
  template <class F>
  void for_strided(size_t i, size_t h, F f) {
    const Strided& s = *strided(i);
    const x86::Gp at = cc_.newUIntPtr();
    cc_.lea(at, x86::ptr(chunk_->lane, kLanesOfHalf * static_cast<int>(h)));
    cc_.imul(at, s.stride);
    cc_.add(at, s.first);
    const auto displaced = static_cast<int32_t>(displacement(i));
    for (int k = 0; k < kLanesOfHalf; ++k) {
      if (k != 0 && k % 4 == 0) cc_.lea(at, x86::ptr(at, s.stride, 2));
      f(k, k % 4 == 0   ? x86::ptr(at, displaced)
           : k % 4 == 3 ? x86::ptr(at, s.thrice, 0, displaced)
                        : x86::ptr(at, s.stride, static_cast<uint32_t>(k % 4 - 1), displaced));
    }
  }
  void check_reach(const SameBase& x, const Label& exit) {
    const Extent& extent = extent_of(x.first, exit);
    const x86::Gp first = cc_.newUInt64(), last = cc_.newUInt64();
    cc_.lea(first, x86::ptr(extent.first, static_cast<int32_t>(x.begin)));
    cc_.lea(last, x86::ptr(extent.last, static_cast<int32_t>(x.end)));
    const Label unknown = cc_.newLabel(), known = cc_.newLabel();
    x86::Gp delta;
    if (has_ctas()) deltas_.insert_or_assign(x.first, delta = linear_delta());
    cc_.cmp(first, reach(x.need, offsetof(Reach, begin)));
    cc_.jb(unknown);
    cc_.cmp(last, reach(x.need, offsetof(Reach, end)));
    cc_.ja(unknown);
    cc_.cmp(first, last);
    cc_.ja(unknown);
    cc_.bind(known);
    deferred_.push_back([this, unknown, known, first, last, exit, delta, need = x.need] {
      cc_.bind(unknown);
      cc_.cmp(first, last);
      cc_.ja(exit);
      cc_.sub(last, first);
      const x86::Gp pointer = find_linear_run(first, last, need, exit);
      if (has_ctas()) {
        cc_.mov(delta, pointer);
        cc_.sub(delta, first);
      }
      cc_.jmp(known);
    });
  }
  const Extent* known_extent(size_t i) const {
    const auto found = std::find_if(extents_.begin(), extents_.end(), [&](const Extent& e) {
      return is_same_address(e.step, i) && e.togetherness == togetherness(i) &&
             (e.togetherness != Togetherness::kNeighbours || e.size == size_of(i));
    });
    return found != extents_.end() ? &*found : nullptr;
  }
  // Where the first lane of the chunk accesses, but for the displacement; the lanes are together.
  x86::Gp chunk_place(size_t i) {
    for (const auto& [k, place] : chunk_places_)
      if (known_extent(k) == known_extent(i) && need_of(k) == need_of(i)) return place;
    const x86::Gp place = cc_.newUIntPtr();
    x86::Mem of_chunk = known_extent(i)->of_chunks.cloneResized(8);
    of_chunk.setIndex(chunk_->lane);
    cc_.mov(place, of_chunk);
    cc_.add(place, delta_of(i));
    chunk_places_.emplace_back(i, place);
    return place;
  }
  // The same as below for lanes that are together.
  void emit_prefetch(size_t i, const x86::Gp& first, const x86::Mem& former) {
    const x86::Gp next = cc_.newUInt64();
    cc_.mov(next, first);
    cc_.sub(next, former);
    cc_.lea(next, x86::ptr(first, next, 2));
    cc_.add(next, linear_delta());
    cc_.prefetcht0(x86::ptr(next, static_cast<int32_t>(displacement(i))));
  }
  // The least and the greatest address of step `i`, but for its displacement.
  const Extent& extent_of(size_t i, const Label& exit) {
    const Extent* const known = known_extent(i);
    if (known != nullptr) return *known;
    if (togetherness(i) != Togetherness::kNone) {
      const Places places = find_places(
          isa_, at_, lanes_of_chunks(), togetherness(i), size_of(i), exit,
          [&](Chunk<Isa>& chunk) { return emit_addresses(i, chunk); },
          [&](const x86::Gp& first, const x86::Mem& former) {
            if (plan_.loops && need_of(i) == kRead) emit_prefetch(i, first, former);
          });
      extents_.push_back(
          {i, togetherness(i), size_of(i), places.least, places.most, places.of_chunks});
      return extents_.back();
    }
    if (is_strided(i)) {
      const x86::Gp base = emit_address_base(i), stride = emit_address_stride(i, exit);
      const x86::Gp least = cc_.newUInt64(), most = cc_.newUInt64();
      check_stride(stride, exit);
      // Round the end of the address space they are too far apart for any memory.
      cc_.imul(most, stride, static_cast<int>(trace_.width) - 1);
      cc_.add(most, base);
      cc_.mov(least, base);
      cc_.cmp(most, base);
      cc_.cmovb(least, most);
      cc_.cmovb(most, base);
      extents_.push_back({i, Togetherness::kNone, 0, least, most, {}});
      return extents_.back();
    }
    const typename Isa::Extremes extremes = isa_.start_extremes();
    Chunk<Isa> chunk(isa_, at_);
    const x86::Gp lane = chunk.lane = cc_.newUInt64("checked_lane");
    const Label loop = cc_.newLabel();
    cc_.xor_(lane, lane);
    cc_.bind(loop);
    const Value64 at = emit_addresses(i, chunk);
    x86::Gp bits;
    if (trace_.is_masked()) {
      bits = cc_.newUInt64();
      cc_.shrx(bits, active_, lane);
    }
    for (const Reg& z : at.r)
      isa_.extend_extremes(extremes, z, trace_.is_masked() ? &bits : nullptr);
    cc_.add(lane, kLanesOfChunk);
    cc_.cmp(lane, lanes_of_chunks());
    cc_.jb(loop);
    const x86::Gp least = isa_.least_of(extremes);
    extents_.push_back({i, Togetherness::kNone, 0, least, isa_.most_of(extremes), {}});
    return extents_.back();
  }
  // Steps from `begin` to `end` have written slots: what addresses are made of them is not known.
  void forget_extents(size_t begin, size_t end) {
    std::erase_if(extents_, [&](const Extent& e) {
      const Sources sources = sources_of(uop(e.step));
      for (size_t i = begin; i < end; ++i)
        for (int k = 0; k < sources.count; ++k)
          if (info_of(uop(i)).d.writes && uop(i).d == sources.slot[k]) return true;
      return false;
    });
  }
  bool has_ctas() const { return calls_.memory->cta_size != 0; }
  // From guest addresses of linear memory to host addresses.
  x86::Gp linear_delta() {
    const x86::Gp delta = cc_.newUIntPtr();
    cc_.mov(delta, reinterpret_cast<uint64_t>(calls_.memory->linear) - calls_.memory->linear_base);
    return delta;
  }
  // The same of a scattered access, which may be to the memory of a CTA.
  x86::Gp delta_of(size_t i) {
    const auto found = deltas_.find(i);
    return found != deltas_.end() ? found->second : linear_delta();
  }
  // Accesses to half a chunk's elements: `together`, of where the first is, if they turn out to be
  // neighbours, `repeated`, if they are one, or `apart`. Programs whose lanes permute what they
  // access meet both, and a scatter takes ten times as long as a store.
  template <class Together, class Repeated, class Apart>
  void emit_half(size_t i, size_t h, const x86::Gp& delta, const Reg& at, Together together,
                 Repeated repeated, Apart apart) {
    const int size = access_info(uop(i).op).size;
    if (trace_.partial || size < 4) return apart();
    std::array<uint64_t, kLanesOfHalf> steps;
    for (size_t k = 0; k < steps.size(); ++k) steps[k] = k * static_cast<uint64_t>(size);
    const Reg expected = isa_.fresh();
    const x86::Gp first = cc_.newUIntPtr();
    const Label strewn = cc_.newLabel(), different = cc_.newLabel(), join = cc_.newLabel();
    const bool may_repeat = step(i).repeats && is_load(shape_of(uop(i)));
    if (trace_.is_masked()) {  // lanes behind the group's width have any address
      const int after = (static_cast<int>(h) + 1) * kLanesOfHalf;
      cc_.cmp(chunk_->lane, static_cast<int>(trace_.width) - after);
      cc_.jg(different);
    }
    isa_.broadcast64(expected, at.xmm());
    cc_.vpaddq(expected, expected, isa_.constant(steps.data(), sizeof steps));
    cc_.vmovq(first, at.xmm());
    isa_.jump_if_differ64(expected, at, strewn);
    const x86::Mem place = x86::ptr(delta, first, 0, static_cast<int32_t>(displacement(i)));
    together(place);
    cc_.bind(join);
    deferred_.push_back([this, strewn, different, join, expected, at, place, may_repeat, repeated,
                         apart, running = isa_.running()] {
      cc_.bind(strewn);
      if (may_repeat) {
        isa_.broadcast64(expected, at.xmm());
        isa_.jump_if_differ64(expected, at, different);
        repeated(place);
        cc_.jmp(join);
      }
      cc_.bind(different);
      isa_.partial = trace_.is_masked();
      isa_.set_running(running);
      apart();
      isa_.partial = false;
      cc_.jmp(join);
    });
  }

  // Whether steps `i` and `i` + 1, before `end`, access the two words of a vector of the guest:
  // processors gather and scatter word by word, which 16 bytes at a time takes half as often.
  bool is_pair(size_t i, size_t end) const {
    if (i + 1 >= end || trace_.is_masked() || togetherness(i) != Togetherness::kNone ||
        togetherness(i + 1) != Togetherness::kNone)
      return false;
    const Uop &u = uop(i), &v = uop(i + 1);
    const auto fits = [this](size_t k) {
      const AccessInfo access = access_info(uop(k).op);
      return plan(k).scattered && step(k).side == Side::kNone && access.size == 8 &&
             access.mode == AddressMode::kImmediate;
    };
    const bool loads = is_load(shape_of(u)), stores = is_store(shape_of(u));
    if ((!loads && !stores) || is_load(shape_of(v)) != loads || is_store(shape_of(v)) != stores)
      return false;
    return fits(i) && fits(i + 1) && u.a == v.a && v.imm == u.imm + 8 && !(loads && u.d == v.a);
  }
  void emit_pair(size_t i) {
    const bool loads = is_load(shape_of(uop(i))), even = is_strided(i);
    Value64 at;
    x86::Gp delta;
    if (!even) {
      at = emit_addresses(i, *chunk_);
      delta = delta_of(i);
      if (loads && plan_.loops) emit_prefetch(i, delta, at);
    }
    std::array<Value64, 2> values;
    if (!loads)
      for (size_t k = 0; k < 2; ++k)
        values[k] = chunk_->template get<Wide64>(uop(i + k).d, plan(i + k).d_kind);
    for (size_t h = 0; h < 2; ++h) {
      const std::array<Reg, 2> both = {isa_.fresh(), isa_.fresh()};  // of even lanes, of odd ones
      if (!loads) {
        cc_.vpunpcklqdq(both[0], values[0].r[h], values[1].r[h]);
        cc_.vpunpckhqdq(both[1], values[0].r[h], values[1].r[h]);
      }
      const auto access = [&](int k, const x86::Mem& place) {
        const Reg& z = both[static_cast<size_t>(k % 2)];
        if (loads) isa_.load_part(z, place, k / 2);
        else isa_.store_part(place, z, k / 2);
      };
      if (even) for_strided(i, h, access);
      else for_each_address(i, delta, at.r[h], access);
      if (!loads) continue;
      for (size_t k = 0; k < 2; ++k) values[k].r[h] = isa_.fresh();
      cc_.vpunpcklqdq(values[0].r[h], both[0], both[1]);
      cc_.vpunpckhqdq(values[1].r[h], both[0], both[1]);
    }
    if (!loads) return;
    put_wide(i, values[0]);
    put_wide(i + 1, values[1]);
  }

  // Calls f(k, place) for the elements of half a chunk, at addresses from a register.
  template <class F>
  void for_each_address(size_t i, const x86::Gp& delta, const Reg& at, F f) {
    const x86::Mem addresses = element_space(0);
    isa_.store(addresses, at);
    for (int k = 0; k < kLanesOfHalf; ++k) {
      const x86::Gp address = cc_.newUInt64();
      cc_.mov(address, addresses.cloneAdjusted(8 * k).cloneResized(8));
      f(k, x86::ptr(delta, address, 0, static_cast<int32_t>(displacement(i))));
    }
  }

  void emit_gather(size_t i) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const Value64 at = emit_addresses(i, *chunk_);
    const x86::Gp delta = delta_of(i);
    if (plan_.loops && !trace_.is_masked()) emit_prefetch(i, delta, at);
    Value64 words;
    for (size_t h = 0; h < 2; ++h) {
      const Reg z = words.r[h] = isa_.fresh();
      const auto together = [&](const x86::Mem& elements) {
        if (access.size == 8)
          isa_.load(z, elements);
        else
          isa_.load_half(z, elements);
      };
      const auto repeated = [this, z, is_wide = access.size == 8](const x86::Mem& element) {
        if (is_wide) isa_.broadcast64(z, element.cloneResized(8));
        else isa_.broadcast32(z, element.cloneResized(4));
      };
      emit_half(i, h, delta, at.r[h], together, repeated, [this, i, h, z, delta, at = at.r[h]] {
        isa_.gather(z, static_cast<int>(h), access_info(uop(i).op).size, delta, at,
                    static_cast<int32_t>(displacement(i)));
      });
    }
    if (access.size == 8) return put_wide(i, words);
    Value32 v;
    const Reg z = v.r[0] = isa_.fresh();
    isa_.join_halves(z, words.r[0], words.r[1]);
    if (access.size < 4) cc_.vpslld(z, z, 32 - 8 * access.size);
    extend_to_32_bits(z, access);
    put_words(i, v);
  }
  void emit_scatter(size_t i) {
    const Uop& u = uop(i);
    const int size = access_info(u.op).size;
    const uint8_t kind = plan(i).d_kind;
    const Value64 at = emit_addresses(i, *chunk_);
    if (size < 4)
      return emit_single_stores(i, at, size, chunk_->template get<Narrow32>(u.d, kind).r[0]);
    const x86::Gp delta = delta_of(i);
    std::array<Reg, 2> values;
    if (size == 8) {
      values = chunk_->template get<Wide64>(u.d, kind).r;
    } else {
      values = {chunk_->template get<Narrow32>(u.d, kind).r[0], isa_.fresh()};
      isa_.high_half(values[1], values[0]);
    }
    for (size_t h = 0; h < 2; ++h) {
      const auto together = [&, z = values[h]](const x86::Mem& elements) {
        if (size == 8)
          isa_.store(elements, z);
        else
          isa_.store_half(elements, z);
      };
      const auto repeated = [](const x86::Mem&) {};  // they are not asked for
      emit_half(i, h, delta, at.r[h], together, repeated,
                [this, i, h, size, delta, at = at.r[h], z = values[h]] {
                  isa_.scatter(z, static_cast<int>(h), size, delta, at,
                               static_cast<int32_t>(displacement(i)));
                });
    }
  }
  // Where registers are laid down to be looked at element by element.
  x86::Mem element_space(int64_t offset) {
    if (!elements_) elements_ = cc_.newStack(3 * Isa::kRegBytes, 64);
    return elements_->cloneAdjusted(offset).cloneResized(Isa::kRegBytes);
  }
  // There are no scatters of bytes and half words.
  void emit_single_stores(size_t i, const Value64& at, int size, const Reg& values) {
    constexpr int kValues = 2 * Isa::kRegBytes;
    const auto part = [&](int64_t offset, uint32_t bytes) {
      return element_space(offset).cloneResized(bytes);
    };
    for (int h = 0; h < 2; ++h)
      isa_.store(part(Isa::kRegBytes * h, Isa::kRegBytes), at.r[static_cast<size_t>(h)]);
    isa_.store(part(kValues, Isa::kRegBytes), values);
    const x86::Gp delta = delta_of(i), address = cc_.newUIntPtr(), value = cc_.newUInt32();
    for (int lane = 0; lane < kLanesOfChunk; ++lane) {
      cc_.mov(address, part(8 * lane, 8));
      cc_.mov(value, part(kValues + 4 * lane, 4));
      const auto displaced = static_cast<int32_t>(displacement(i));
      if (size == 1)
        cc_.mov(x86::ptr(delta, address, 0, displaced, 1), value.r8());
      else
        cc_.mov(x86::ptr(delta, address, 0, displaced, 2), value.r16());
    }
  }

  Isa& isa_;
  // Of the segment being emitted.
  Chunk<Isa>* chunk_ = nullptr;
  std::map<size_t, x86::Gp> pointers_;  // by step
  std::map<size_t, Row> rows_;
  std::map<size_t, x86::Gp> deltas_;  // of machines of CTAs
  std::vector<Extent> extents_;       // of addresses that nothing has changed since
  std::vector<Strided> strided_;
  std::vector<std::pair<size_t, x86::Gp>> chunk_places_;  // by steps

 private:
  std::optional<x86::Mem> elements_;  // addresses and values of a chunk
};

}  // namespace gpusim::simd
