// Emits loads and stores of linear memory in native code: checks before a segment's loop, accesses
// of a chunk of lanes inside it.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "device_sim/simd/jit/control.h"

namespace gpusim::simd {

class AccessEmitter : protected ControlEmitter {
 protected:
  using ControlEmitter::ControlEmitter;

  // Leaves if a stride is so large that lane * stride could wrap.
  void check_stride(const x86::Gp& stride, const Label& exit) {
    const x86::Gp t = cc_.newUInt64();
    cc_.movsxd(t, stride.r32());
    cc_.cmp(t, stride);
    cc_.jne(exit);
  }

  // --- addresses

  // Of a uniform load, or of lane 0.
  x86::Gp emit_address(size_t i) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const x86::Gp address = cc_.newUInt64(), offset = cc_.newUInt64();
    cc_.mov(address, at_.base(u.a));
    if (access.mode == AddressMode::kImmediate) {
      if (u.imm == 0) return address;
      cc_.mov(offset, u.imm);
    } else {
      if (access.mode == AddressMode::kIndex)
        cc_.mov(offset, at_.base(u.b));
      else
        cc_.movsxd(offset, at_.base(u.b, 4));
      if (u.imm & 63) cc_.shl(offset, static_cast<int>(u.imm & 63));
    }
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
  // A pointer to lane 0's element of a consecutive access, if it is one and all of it is there.
  void emit_pointer(size_t i, const Label& exit) {
    const Uop& u = uop(i);
    const Plan& p = plan(i);
    const AccessInfo access = access_info(u.op);
    const x86::Gp stride = cc_.newUInt64();
    if (p.source_kind[0] == kAffine)
      cc_.mov(stride, at_.stride(u.a));
    else
      cc_.xor_(stride, stride);
    if (access.mode != AddressMode::kImmediate && p.source_kind[1] == kAffine) {
      const x86::Gp of_index = cc_.newUInt64();
      cc_.mov(of_index, at_.stride(u.b));
      if (access.mode == AddressMode::kIndex32) {  // no lane's index may wrap
        check_stride(of_index, exit);
        const x86::Gp last = cc_.newUInt64(), low = cc_.newUInt64();
        cc_.movsxd(low, at_.base(u.b, 4));
        cc_.imul(last, of_index, static_cast<int>(kMaxLanes) - 1);
        cc_.add(last, low);
        cc_.movsxd(low, last.r32());
        cc_.cmp(low, last);
        cc_.jne(exit);
      }
      if (u.imm & 63) cc_.shl(of_index, static_cast<int>(u.imm & 63));
      cc_.add(stride, of_index);
    }
    const uint8_t permissions = need_of(i);
    if (p.in_row) {
      rows_.emplace(i, emit_window_row(i, stride, permissions, exit));
      return;
    }
    cc_.cmp(stride, access.size);
    cc_.jne(exit);
    const x86::Gp pointer = emit_linear_run(
        emit_address(i), access.size * static_cast<int>(kMaxLanes), permissions, exit);
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

  // The same for the elements of a chunk that most often turn out to be neighbours (emit_eight).
  void emit_prefetch(size_t i, const x86::Gp& delta, const Wide64::V& at) {
    const x86::Mem last = cc_.newStack(kMaxLanes, 16);  // of each chunk's halves
    for (size_t h = 0; h < 2; ++h) {
      x86::Mem mine = last.cloneAdjusted(static_cast<int64_t>(8 * h)).cloneResized(8);
      mine.setIndex(chunk_->lane, 0);
      const x86::Gp first = cc_.newUInt64(), next = cc_.newUInt64();
      cc_.vmovq(first, at.r[h].xmm());
      cc_.mov(next, first);
      cc_.sub(next, mine);
      cc_.mov(mine, first);
      cc_.lea(next, x86::ptr(first, next, 2));
      cc_.prefetcht0(x86::ptr(delta, next, 0, static_cast<int32_t>(displacement(i))));
    }
  }

  // Where the chunks' words are in a row of windows, and where in a word the elements begin:
  // programs that step through arrays on their stacks come to each part of a word in turn.
  struct Row {
    x86::Gp words;
    x86::Zmm half;    // the numbers of the halves that hold narrow elements, of a chunk's words
    x86::Xmm shift;   // bits
    x86::KReg bytes;  // of eight words; for elements of 32 bits halves of them
  };
  Row emit_window_row(size_t i, const x86::Gp& stride, uint8_t permissions, const Label& exit) {
    const AccessInfo access = access_info(uop(i).op);
    const int size = access.size;
    const x86::Gp address = emit_address(i), byte = cc_.newUInt64();
    Row row{cc_.newUIntPtr(), {}, {}, {}};
    auto* call =
        invoke(address_of(calls_.window_row),
               asmjit::FuncSignatureT<void*, void*, uint64_t, uint64_t, uint64_t, uint64_t>());
    call->setArg(0, at_.group);
    call->setArg(1, address);
    call->setArg(2, stride);
    call->setArg(3, imm(size));
    call->setArg(4, imm(permissions));
    call->setRet(0, row.words);
    cc_.test(row.words, row.words);
    cc_.jz(exit);
    if (size == 8) return row;
    cc_.mov(byte.r32(), 7);
    cc_.and_(byte, row.words);
    cc_.xor_(row.words, byte);
    if (permissions == kWrite) {
      const x86::Gp bits = cc_.newUInt64(), by = cc_.newUInt64();
      row.bytes = cc_.newKq();
      cc_.mov(bits, size == 4 ? 0x5555 : ((1 << size) - 1) * 0x0101010101010101);
      cc_.mov(by, byte);
      if (size == 4) cc_.shr(by, 2);
      cc_.shlx(bits, bits, by);
      cc_.kmovq(row.bytes, bits);
      cc_.shl(byte, 3);
      return shifted(row, byte);
    }
    if (access.is_narrow()) {
      std::array<uint32_t, 16> even;
      for (uint32_t k = 0; k < even.size(); ++k) even[k] = 2 * k;
      const x86::Gp odd = cc_.newUInt64();
      row.half = cc_.newZmm();
      cc_.mov(odd, byte);
      cc_.shr(odd, 2);
      cc_.vpbroadcastd(row.half, odd.r32());
      cc_.vpaddd(row.half, row.half,
                 cc_.newConst(asmjit::ConstPoolScope::kLocal, even.data(), sizeof even));
      if (size == 4) return row;
      cc_.and_(byte, 3);
    }
    cc_.shl(byte, 3);
    cc_.neg(byte);
    cc_.add(byte, (access.is_narrow() ? 32 : 64) - 8 * size);
    return shifted(row, byte);
  }
  Row shifted(Row row, const x86::Gp& bits) {
    row.shift = cc_.newXmm();
    cc_.vmovq(row.shift, bits);
    return row;
  }
  // The chunk's words in a row of windows: half `h`.
  x86::Mem words_at(const Row& row, int h) const {
    return x86::ptr(row.words, chunk_->lane, 3, 64 * h);
  }
  void emit_row_load(size_t i) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const Row& row = rows_.at(i);
    Wide64::V v;
    for (int h = 0; h < 2; ++h) {
      const x86::Zmm z = v.r[static_cast<size_t>(h)] = cc_.newZmm();
      cc_.vmovdqu64(z, words_at(row, h));
    }
    if (!access.is_narrow()) {
      if (access.size != 8)
        for (const x86::Zmm& z : v.r) {
          cc_.vpsllq(z, z, row.shift);
          cc_.vpsraq(z, z, 64 - 8 * access.size);
        }
      return chunk_->put<Wide64>(u.d, v);
    }
    Narrow32::V n;
    const x86::Zmm z = n.r[0] = cc_.newZmm();
    cc_.vmovdqa64(z, row.half);
    cc_.vpermi2d(z, v.r[0], v.r[1]);
    const int unused = 32 - 8 * access.size;
    if (unused != 0) {
      cc_.vpslld(z, z, row.shift);
      if (access.extend == Extend::kZero)
        cc_.vpsrld(z, z, unused);
      else
        cc_.vpsrad(z, z, unused);
    }
    chunk_->put<Narrow32>(u.d, n);
  }
  // Only the operand's bytes are written: other host threads may store others of the same words.
  void emit_row_store(size_t i) {
    const Uop& u = uop(i);
    const int size = access_info(u.op).size;
    const Row& row = rows_.at(i);
    if (size == 8) {
      const Wide64::V v = chunk_->get<Wide64>(u.d, plan(i).d_kind);
      for (int h = 0; h < 2; ++h) cc_.vmovdqu64(words_at(row, h), v.r[static_cast<size_t>(h)]);
      return;
    }
    const x86::Zmm z = chunk_->get<Narrow32>(u.d, plan(i).d_kind).r[0];
    for (int h = 0; h < 2; ++h) {
      const x86::Zmm words = cc_.newZmm();
      if (h == 0) {
        cc_.vpmovzxdq(words, z.ymm());
      } else {
        cc_.vextracti64x4(words.ymm(), z, 1);
        cc_.vpmovzxdq(words, words.ymm());
      }
      cc_.vpsllq(words, words, row.shift);
      if (size == 4)
        cc_.k(row.bytes).vmovdqu32(words_at(row, h), words);
      else
        cc_.k(row.bytes).vmovdqu8(words_at(row, h), words);
    }
  }

  // The chunk's part of a run of elements, from its element `first` on.
  x86::Mem elements(size_t i, int size, int first) const {
    const auto shift = static_cast<uint32_t>(std::countr_zero(static_cast<unsigned>(size)));
    return x86::ptr(pointers_.at(i), chunk_->lane, shift, first * size);
  }
  void emit_load(size_t i) {
    if (plan(i).scattered) return emit_gather(i);
    if (plan(i).in_row) return emit_row_load(i);
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    if (access.is_narrow()) {
      Narrow32::V v;
      const x86::Zmm z = v.r[0] = cc_.newZmm();
      const x86::Mem at = elements(i, access.size, 0);
      const bool sign = access.extend == Extend::kSign32;
      if (access.size == 4)
        cc_.vmovdqu64(z, at);
      else if (access.size == 1)
        sign ? cc_.vpmovsxbd(z, at) : cc_.vpmovzxbd(z, at);
      else
        sign ? cc_.vpmovsxwd(z, at) : cc_.vpmovzxwd(z, at);
      return chunk_->put<Narrow32>(u.d, v);
    }
    Wide64::V v;
    for (int h = 0; h < 2; ++h) {
      const x86::Zmm z = v.r[static_cast<size_t>(h)] = cc_.newZmm();
      const x86::Mem at = elements(i, access.size, 8 * h);
      if (access.size == 8)
        cc_.vmovdqu64(z, at);
      else if (access.size == 4)
        cc_.vpmovsxdq(z, at);
      else if (access.size == 2)
        cc_.vpmovsxwq(z, at);
      else
        cc_.vpmovsxbq(z, at);
    }
    chunk_->put<Wide64>(u.d, v);
  }
  void emit_store(size_t i) {
    if (plan(i).scattered) return emit_scatter(i);
    if (plan(i).in_row) return emit_row_store(i);
    const Uop& u = uop(i);
    const int size = access_info(u.op).size;
    if (size == 8) {
      const Wide64::V v = chunk_->get<Wide64>(u.d, plan(i).d_kind);
      for (int h = 0; h < 2; ++h)
        chunk_->masked(h).vmovdqu64(elements(i, size, 8 * h), v.r[static_cast<size_t>(h)]);
      return;
    }
    const x86::Zmm z = chunk_->get<Narrow32>(u.d, plan(i).d_kind).r[0];
    const x86::Mem at = elements(i, size, 0);
    if (size == 4)
      chunk_->masked().vmovdqu32(at, z);
    else if (size == 2)
      chunk_->masked().vpmovdw(at, z);
    else
      chunk_->masked().vpmovdb(at, z);
  }

  // --- scattered accesses

  // The addresses of a chunk, but for the immediate of AddressMode::kImmediate.
  Wide64::V emit_addresses(size_t i, Chunk& chunk) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const Wide64::V a = chunk.get<Wide64>(u.a, plan(i).source_kind[0]);
    if (access.mode == AddressMode::kImmediate) return a;
    const Wide64::V b = chunk.get<Wide64>(u.b, plan(i).source_kind[1]);
    const int shift = static_cast<int>(u.imm & 63);
    Wide64::V sum;
    for (size_t h = 0; h < sum.r.size(); ++h) {
      const x86::Zmm z = sum.r[h] = cc_.newZmm();
      if (access.mode == AddressMode::kIndex32) {
        cc_.vpsllq(z, b.r[h], 32);
        cc_.vpsraq(z, z, 32);
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
    const Uop &u = uop(x.first), &v = uop(i);
    const AddressMode mode = access_info(v.op).mode;
    if (x.need != need_of(i) || access_info(u.op).mode != mode || u.a != v.a) return false;
    return mode == AddressMode::kImmediate || (u.b == v.b && (u.imm & 63) == (v.imm & 63));
  }
  uint8_t need_of(size_t i) const { return is_load(shape_of(uop(i))) ? kRead : kWrite; }
  // In [-2^31, 2^31): other immediates are not planned to be scattered.
  int64_t displacement(size_t i) const {
    return access_info(uop(i).op).mode == AddressMode::kImmediate ? static_cast<int64_t>(uop(i).imm)
                                                                  : 0;
  }
  // Before a segment: leaves unless all lanes may do all scattered accesses.
  void check_scattered(size_t begin, size_t end, const Label& exit) {
    std::vector<SameBase> bases;
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
    for (const SameBase& x : bases) check_reach(x, exit);
  }
  void check_reach(const SameBase& x, const Label& exit) {
    const x86::Zmm least = cc_.newZmm(), most = cc_.newZmm();
    const uint64_t all_bits = ~uint64_t{0};
    cc_.vpbroadcastq(least, cc_.newConst(asmjit::ConstPoolScope::kLocal, &all_bits, 8));
    cc_.vpxorq(most, most, most);
    Chunk chunk(cc_, at_);
    const x86::Gp lane = chunk.lane = cc_.newUInt64("checked_lane");
    const Label loop = cc_.newLabel();
    cc_.xor_(lane, lane);
    cc_.bind(loop);
    const Wide64::V at = emit_addresses(x.first, chunk);
    x86::Gp bits;
    if (trace_.partial) {
      bits = cc_.newUInt64();
      cc_.shrx(bits, active_, lane);
    }
    for (const x86::Zmm& z : at.r) {
      if (trace_.partial) {
        const x86::KReg k = cc_.newKq();
        cc_.kmovw(k, bits.r32());
        cc_.k(k).vpminuq(least, least, z);
        cc_.k(k).vpmaxuq(most, most, z);
        cc_.shr(bits, 8);
      } else {
        cc_.vpminuq(least, least, z);
        cc_.vpmaxuq(most, most, z);
      }
    }
    cc_.add(lane, kChunkLanes);
    cc_.cmp(lane, static_cast<int>(kMaxLanes));
    cc_.jb(loop);

    const x86::Gp first = fold(least, true), last = fold(most, false);
    cc_.add(first, static_cast<int32_t>(x.begin));
    cc_.add(last, static_cast<int32_t>(x.end));
    const Label unknown = cc_.newLabel(), known = cc_.newLabel();
    cc_.cmp(first, reach(x.need, offsetof(Reach, begin)));
    cc_.jb(unknown);
    cc_.cmp(last, reach(x.need, offsetof(Reach, end)));
    cc_.ja(unknown);
    cc_.cmp(first, last);
    cc_.ja(unknown);
    cc_.bind(known);
    deferred_.push_back([this, unknown, known, first, last, exit, need = x.need] {
      cc_.bind(unknown);
      cc_.cmp(first, last);
      cc_.ja(exit);
      cc_.sub(last, first);
      find_linear_run(first, last, need, exit);
      cc_.jmp(known);
    });
  }
  // The least or greatest of eight words.
  x86::Gp fold(const x86::Zmm& z, bool least) {
    const x86::Zmm other = cc_.newZmm();
    const auto combine = [&] {
      if (least)
        cc_.vpminuq(z, z, other);
      else
        cc_.vpmaxuq(z, z, other);
    };
    cc_.vshufi64x2(other, z, z, 0x4e);
    combine();
    cc_.vshufi64x2(other, z, z, 0xb1);
    combine();
    cc_.vpermilpd(other, z, 0x55);
    combine();
    const x86::Gp word = cc_.newUInt64();
    cc_.vmovq(word, z.xmm());
    return word;
  }

  // From guest addresses of linear memory to host addresses.
  x86::Gp linear_delta() {
    const x86::Gp delta = cc_.newUIntPtr();
    cc_.mov(delta, reinterpret_cast<uint64_t>(calls_.memory->linear) - calls_.memory->linear_base);
    return delta;
  }
  // Elements at the addresses in a vector.
  x86::Mem elements_at(size_t i, const x86::Gp& delta, const x86::Zmm& at) const {
    return x86::ptr(delta, at, 0, static_cast<int32_t>(displacement(i)));
  }
  // The running lanes of half `h`; gathers and scatters clear it.
  x86::KReg half_mask(size_t h) {
    const x86::KReg k = cc_.newKq();
    if (!trace_.partial)
      cc_.kxnorw(k, k, k);
    else
      cc_.kmovw(k, h == 0 ? emitter_.running : chunk_->running_high);
    return k;
  }

  // Accesses to eight elements: `together`, of where the first is, if they turn out to be
  // neighbours, or `apart`. Programs whose lanes permute what they access meet both, and a scatter
  // takes ten times as long as a store.
  template <class Together, class Apart>
  void emit_eight(size_t i, const x86::Gp& delta, const x86::Zmm& at, Together together,
                  Apart apart) {
    const int size = access_info(uop(i).op).size;
    if (trace_.partial || size < 4) return apart();
    std::array<uint64_t, 8> steps;
    for (size_t k = 0; k < steps.size(); ++k) steps[k] = k * static_cast<uint64_t>(size);
    const x86::Zmm expected = cc_.newZmm();
    const x86::KReg differ = cc_.newKq();
    const x86::Gp first = cc_.newUIntPtr();
    const Label strewn = cc_.newLabel(), join = cc_.newLabel();
    cc_.vpbroadcastq(expected, at.xmm());
    cc_.vpaddq(expected, expected,
               cc_.newConst(asmjit::ConstPoolScope::kLocal, steps.data(), sizeof steps));
    cc_.vpcmpq(differ, expected, at, imm(x86::VPCmpImm::kNE));
    cc_.kortestb(differ, differ);
    cc_.jnz(strewn);
    cc_.vmovq(first, at.xmm());
    together(x86::ptr(delta, first, 0, static_cast<int32_t>(displacement(i))));
    cc_.bind(join);
    deferred_.push_back([this, strewn, join, apart] {
      cc_.bind(strewn);
      apart();
      cc_.jmp(join);
    });
  }

  void emit_gather(size_t i) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const Wide64::V at = emit_addresses(i, *chunk_);
    const x86::Gp delta = linear_delta();
    if (plan_.loops && !trace_.partial) emit_prefetch(i, delta, at);
    Wide64::V words;
    for (size_t h = 0; h < 2; ++h) {
      const x86::Zmm z = words.r[h] = cc_.newZmm();
      const auto together = [&](const x86::Mem& elements) {
        if (access.size == 8)
          cc_.vmovdqu64(z, elements);
        else
          cc_.vmovdqu32(z.ymm(), elements);
      };
      emit_eight(i, delta, at.r[h], together, [this, i, h, z, delta, at = at.r[h]] {
        const x86::KReg k = half_mask(h);
        cc_.vpxorq(z, z, z);
        if (access_info(uop(i).op).size == 8)
          cc_.k(k).vpgatherqq(z, elements_at(i, delta, at));
        else
          cc_.k(k).vpgatherqd(z.ymm(), elements_at(i, delta, at));
      });
    }
    if (access.size == 8) return chunk_->put<Wide64>(u.d, words);
    Narrow32::V v;
    const x86::Zmm z = v.r[0] = cc_.newZmm();
    cc_.vinserti64x4(z, words.r[0], words.r[1].ymm(), 1);
    const int unused = 32 - 8 * access.size;
    if (unused != 0) {
      cc_.vpslld(z, z, unused);
      if (access.extend == Extend::kZero)
        cc_.vpsrld(z, z, unused);
      else
        cc_.vpsrad(z, z, unused);
    }
    if (access.is_narrow()) return chunk_->put<Narrow32>(u.d, v);
    for (size_t h = 0; h < 2; ++h) {
      const x86::Zmm half = cc_.newZmm();
      cc_.vextracti64x4(half.ymm(), z, static_cast<int>(h));
      words.r[h] = cc_.newZmm();
      cc_.vpmovsxdq(words.r[h], half.ymm());
    }
    chunk_->put<Wide64>(u.d, words);
  }
  void emit_scatter(size_t i) {
    const Uop& u = uop(i);
    const int size = access_info(u.op).size;
    const uint8_t kind = plan(i).d_kind;
    const Wide64::V at = emit_addresses(i, *chunk_);
    if (size < 4) return emit_single_stores(i, at, size, chunk_->get<Narrow32>(u.d, kind).r[0]);
    const x86::Gp delta = linear_delta();
    std::array<x86::Zmm, 2> values;
    if (size == 8) {
      values = chunk_->get<Wide64>(u.d, kind).r;
    } else {
      values = {chunk_->get<Narrow32>(u.d, kind).r[0], cc_.newZmm()};
      cc_.vextracti64x4(values[1].ymm(), values[0], 1);
    }
    for (size_t h = 0; h < 2; ++h) {
      const auto together = [&, z = values[h]](const x86::Mem& elements) {
        if (size == 8)
          cc_.vmovdqu64(elements, z);
        else
          cc_.vmovdqu32(elements, z.ymm());
      };
      emit_eight(i, delta, at.r[h], together,
                 [this, i, h, size, delta, at = at.r[h], z = values[h]] {
                   const x86::KReg k = half_mask(h);
                   if (size == 8)
                     cc_.k(k).vpscatterqq(elements_at(i, delta, at), z);
                   else
                     cc_.k(k).vpscatterqd(elements_at(i, delta, at), z.ymm());
                 });
    }
  }
  // There are no scatters of bytes and half words.
  void emit_single_stores(size_t i, const Wide64::V& at, int size, const x86::Zmm& values) {
    if (!elements_) elements_ = cc_.newStack(192, 64);
    const auto part = [&](int64_t offset, uint32_t bytes) {
      return elements_->cloneAdjusted(offset).cloneResized(bytes);
    };
    for (int h = 0; h < 2; ++h) cc_.vmovdqu64(part(64 * h, 64), at.r[static_cast<size_t>(h)]);
    cc_.vmovdqu64(part(128, 64), values);
    const x86::Gp delta = linear_delta(), address = cc_.newUIntPtr(), value = cc_.newUInt32();
    for (int lane = 0; lane < kChunkLanes; ++lane) {
      cc_.mov(address, part(8 * lane, 8));
      cc_.mov(value, part(128 + 4 * lane, 4));
      const auto displaced = static_cast<int32_t>(displacement(i));
      if (size == 1)
        cc_.mov(x86::ptr(delta, address, 0, displaced, 1), value.r8());
      else
        cc_.mov(x86::ptr(delta, address, 0, displaced, 2), value.r16());
    }
  }

  // Of the segment being emitted.
  Chunk* chunk_ = nullptr;
  std::map<size_t, x86::Gp> pointers_;  // by step
  std::map<size_t, Row> rows_;

 private:
  std::optional<x86::Mem> elements_;  // addresses and values of a chunk
};

}  // namespace gpusim::simd
