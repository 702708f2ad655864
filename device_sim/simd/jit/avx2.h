// Vectors of 256 bits. A mask is a vector, too: all ones in the words where it holds. What AVX2
// lacks for words of 64 bits, and stores of small elements under masks, take a few instructions.
#pragma once
#include <array>
#include <bit>
#include <optional>

#include "device_sim/simd/jit/emitter.h"

namespace gpusim::simd {

struct Avx2 final : Emitter {
  using Reg = x86::Ymm;
  using Mask = x86::Ymm;
  using Id = asmjit::InstId;
  static constexpr int kRegBytes = 32;
  static constexpr bool kMasksAreVectors = true;
  static constexpr Id kAnd[] = {x86::Inst::kIdVpand, x86::Inst::kIdVpand};
  static constexpr Id kAndNot[] = {x86::Inst::kIdVpandn, x86::Inst::kIdVpandn};
  static constexpr Id kOr[] = {x86::Inst::kIdVpor, x86::Inst::kIdVpor};
  static constexpr Id kXor[] = {x86::Inst::kIdVpxor, x86::Inst::kIdVpxor};

  using Emitter::Emitter;
  static Avx2& current() { return *static_cast<Avx2*>(Emitter::current()); }
  static bool available() {
    const auto& has = asmjit::CpuInfo::host().features().x86();
    return has.hasAVX2() && has.hasFMA() && has.hasF16C() && has.hasBMI2();
  }
  static void prepare(asmjit::FuncFrame& frame) {
    frame.setAvxEnabled();
    frame.setAvxCleanup();
  }

  // --- registers, constants and moves

  Reg fresh() { return cc.newYmm(); }
  Mask fresh_mask() { return cc.newYmm(); }
  static x86::Xmm half(const Reg& y) { return y.xmm(); }
  template <int kBits> x86::Mem repeated(uint64_t k) {
    const uint64_t word = kBits == 64 ? k : (k & 0xffffffffu) * 0x1'0000'0001;
    const std::array<uint64_t, 4> words = {word, word, word, word};
    return constant(words.data(), sizeof words);
  }
  void load(const Reg& y, const x86::Mem& from) { cc.vmovdqu(y, from); }
  void store(const x86::Mem& to, const Reg& y) { cc.vmovdqu(to, y); }
  void move(const Reg& y, const Reg& from) { cc.vmovdqa(y, from); }
  void clear(const Reg& y) { cc.vpxor(y, y, y); }
  void broadcast32(const Reg& y, const x86::Mem& x) { cc.vpbroadcastd(y, x); }
  void broadcast32(const Reg& y, const x86::Gp& x) {
    cc.vmovd(y.xmm(), x);
    cc.vpbroadcastd(y, y.xmm());
  }
  void broadcast64(const Reg& y, const x86::Mem& x) { cc.vpbroadcastq(y, x); }
  void broadcast64(const Reg& y, const x86::Xmm& x) { cc.vpbroadcastq(y, x); }
  void broadcast64(const Reg& y, const x86::Gp& x) {
    cc.vmovq(y.xmm(), x);
    cc.vpbroadcastq(y, y.xmm());
  }
  void high_half(const Reg& y, const Reg& from) { cc.vextracti128(y.xmm(), from, 1); }
  void join_halves(const Reg& y, const Reg& low, const Reg& high) {
    cc.vinserti128(y, low, high.xmm(), 1);
  }
  // Words of 64 bits to words of 32.
  void pack(const Reg& out, const std::array<Reg, 2>& in) {
    cc.vshufps(out, in[0], in[1], 0x88);
    cc.vpermq(out, out, 0xd8);
  }

  // --- arithmetic

  // b: a register or memory.
  void mul64(const Reg& d, const Reg& a, const asmjit::Operand& b) {
    const Reg cross = fresh(), low = fresh();
    cc.emit(x86::Inst::kIdVpshufd, cross, b, asmjit::imm(0xb1));
    cc.vpmulld(cross, cross, a);
    cc.vpsrlq(low, cross, 32);
    cc.vpaddd(cross, cross, low);
    cc.vpsllq(cross, cross, 32);
    cc.emit(x86::Inst::kIdVpmuludq, low, a, b);
    cc.vpaddq(d, low, cross);
  }
  void sar64(const Reg& d, const Reg& a, int n) {
    const Reg low = fresh(), high = fresh();
    if (n < 32) {
      cc.vpsrlq(low, a, n);
      cc.vpsrad(high, a, n);
    } else {
      cc.vpsrad(high, a, 31);
      if (n == 32) {
        cc.vpshufd(low, a, 0xf5);
      } else {
        cc.vpsrad(low, a, n - 32);
        cc.vpshufd(low, low, 0xf5);
      }
    }
    cc.vpblendd(d, low, high, 0xaa);
  }
  // By complements, negative numbers are shifted as positive ones are.
  void sar64_v(const Reg& d, const Reg& a, const asmjit::Operand& n) {
    const Reg sign = fresh(), t = fresh();
    clear(t);
    cc.vpcmpgtq(sign, t, a);
    cc.vpxor(t, a, sign);
    cc.emit(x86::Inst::kIdVpsrlvq, t, t, n);
    cc.vpxor(d, t, sign);
  }
  // Towards zero, of integers below 2^33 in magnitude: next to 1.5 * 2^52 a double's last bit is 1.
  void quotient33(const Reg& d, const Reg& a, const Reg& b) {
    constexpr uint64_t kMagic = 0x4338000000000000;
    const x86::Mem magic = repeated<64>(kMagic);
    const Reg divisor = fresh();
    cc.vpaddq(d, a, magic);
    cc.vsubpd(d, d, magic);
    cc.vpaddq(divisor, b, magic);
    cc.vsubpd(divisor, divisor, magic);
    cc.vdivpd(d, d, divisor);
    cc.vroundpd(d, d, 0x0b);
    cc.vaddpd(d, d, magic);
    cc.vpsubq(d, d, magic);
  }

  template <int kFloatBits> void round_floats(const Reg& d, const Reg& a, int mode) {
    if constexpr (kFloatBits == 64)
      cc.vroundpd(d, a, mode);
    else
      cc.vroundps(d, a, mode);
  }
  void widen_floats(const Reg& d, const Reg& a) {
    const Reg floats = fresh();
    low_words(floats.xmm(), a);
    cc.vcvtps2pd(d, floats.xmm());
  }
  // The low halves of words of 64 bits.
  void low_words(const x86::Xmm& d, const Reg& a) {
    cc.vextracti128(d, a, 1);
    cc.vshufps(d, a.xmm(), d, 0x88);
  }
  void widen_halves(const Reg& d, const Reg& a) {
    const Reg t = fresh();
    low_words(t.xmm(), a);
    cc.vpackusdw(t.xmm(), t.xmm(), t.xmm());
    cc.vcvtph2ps(t.xmm(), t.xmm());
    cc.vpmovzxdq(d, t.xmm());
  }
  void narrow_floats(const Reg& d, const Reg& a, int mode) {
    const Reg t = fresh();
    low_words(t.xmm(), a);
    cc.vcvtps2ph(t.xmm(), t.xmm(), mode);
    cc.vpmovzxwq(d, t.xmm());
  }
  void narrow_doubles(const Reg& d, const Reg& a) {
    const Reg floats = fresh();
    cc.vcvtpd2ps(floats.xmm(), a);
    cc.vpmovzxdq(d, floats.xmm());
  }

  // --- masks of words

  template <int kBits> void equal(const Mask& m, const Reg& a, const asmjit::Operand& b) {
    cc.emit(kBits == 64 ? x86::Inst::kIdVpcmpeqq : x86::Inst::kIdVpcmpeqd, m, a, b);
  }
  template <int kBits> void greater(const Mask& m, const Reg& a, const asmjit::Operand& b) {
    cc.emit(kBits == 64 ? x86::Inst::kIdVpcmpgtq : x86::Inst::kIdVpcmpgtd, m, a, b);
  }
  template <int kBits> void mask_not(const Mask& d, const Mask& m) {
    cc.vpxor(d, m, repeated<64>(~uint64_t{0}));
  }
  template <int kBits> void mask_and(const Mask& d, const Mask& a, const Mask& b) {
    cc.vpand(d, a, b);
  }
  template <int kBits> void mask_or(const Mask& d, const Mask& a, const Mask& b) {
    cc.vpor(d, a, b);
  }
  // m ? a : b
  void select(const Reg& d, const Mask& m, const Reg& a, const Reg& b) {
    cc.vpblendvb(d, b, a, m);
  }
  // Flags of the host's state are nobody's.
  void begin_rounding(softfloat::Rounding mode) {
    constexpr uint32_t kDown = 1 << 13, kUp = 2 << 13, kZero = 3 << 13;
    rounding = mode;
    load_state(mode == softfloat::Rounding::kNegInf   ? kDown
               : mode == softfloat::Rounding::kPosInf ? kUp
                                                      : kZero);
  }
  void end_rounding() {
    rounding = softfloat::Rounding::kTieEven;
    load_state(0);
  }
  void load_state(uint32_t mode) {
    constexpr uint32_t kNoTraps = 0x1f80;
    const uint32_t word = kNoTraps | mode;
    cc.vldmxcsr(constant(&word, sizeof word));
  }
  void round_next() {}
  // Of floats of `kFloatBits`, the lowest of each word.
  template <int kBits, int kFloatBits>
  void compare_floats(Mask& m, const Reg& a, const Reg& b, int predicate) {
    if constexpr (kFloatBits == 64) {
      cc.vcmppd(m, a, b, predicate);
    } else {
      cc.vcmpps(m, a, b, predicate);
      if constexpr (kBits == 64) cc.vpshufd(m, m, 0xa0);
    }
  }
  // Elements of E's width: all ones where the comparison holds.
  template <class E> void equal_elements(const Reg& d, const Reg& a, const Reg& b) {
    cc.emit(by_size<E>(x86::Inst::kIdVpcmpeqb, x86::Inst::kIdVpcmpeqw, x86::Inst::kIdVpcmpeqd), d,
            a, b);
  }
  template <class E> void greater_elements(const Reg& d, const Reg& a, const Reg& b) {
    cc.emit(by_size<E>(x86::Inst::kIdVpcmpgtb, x86::Inst::kIdVpcmpgtw, x86::Inst::kIdVpcmpgtd), d,
            a, b);
  }
  template <class E> void above_elements(const Reg& d, const Reg& a, const Reg& b) {
    constexpr uint64_t kSigns = ~uint64_t{0} / static_cast<E>(-1) << (8 * sizeof(E) - 1);
    const Reg x = fresh(), y = fresh();
    cc.vpxor(x, a, repeated<64>(kSigns));
    cc.vpxor(y, b, repeated<64>(kSigns));
    greater_elements<E>(d, x, y);
  }

  // --- what a chunk's lanes do

  struct Running {
    x86::Gp bits, other_bits;
    Mask lanes;  // words of 32 bits
    std::array<Mask, 2> half;
  };
  // The lanes that run, of bits in a general register.
  void set_running(const x86::Gp& bits) {
    Running& r = running_;
    r = {cc.newUInt32(), cc.newUInt32(), {}, {fresh(), fresh()}};
    cc.movzx(r.bits, bits.r8());
    cc.mov(r.other_bits, r.bits);
    cc.xor_(r.other_bits, 0xff);
    r.lanes = mask_of_bits32(r.bits);
    cc.vpmovsxdq(r.half[0], r.lanes.xmm());
    high_half(r.half[1], r.lanes);
    cc.vpmovsxdq(r.half[1], r.half[1].xmm());
  }
  // For code that is emitted later.
  const Running& running() const { return running_; }
  void set_running(const Running& running) { running_ = running; }
  template <int kBits, size_t kRegs>
  void jump_unless_all(const std::array<Mask, kRegs>& m, asmjit::Label to) {
    const x86::Gp bits = cc.newUInt32();
    if (partial) {
      lane_bits<kBits>(bits, m);
      cc.or_(bits, running_.other_bits);
      cc.cmp(bits, 0xff);
    } else {
      word_bits<kBits>(bits, combined(x86::Inst::kIdVpand, m));
      cc.cmp(bits, kBits == 64 ? 0xf : 0xff);
    }
    cc.jne(to);
  }
  template <int kBits, size_t kRegs>
  void jump_if_any(const std::array<Mask, kRegs>& m, asmjit::Label to) {
    const x86::Gp bits = cc.newUInt32();
    if (partial) {
      lane_bits<kBits>(bits, m);
      cc.test(bits, running_.bits);
    } else {
      word_bits<kBits>(bits, combined(x86::Inst::kIdVpor, m));
      cc.test(bits, bits);
    }
    cc.jnz(to);
  }
  template <int kBits, size_t kRegs>
  void lane_bits(const x86::Gp& bits, const std::array<Mask, kRegs>& m) {
    word_bits<kBits>(bits.r32(), m[0]);
    if constexpr (kRegs == 2) {
      const x86::Gp high = cc.newUInt32();
      cc.vmovmskpd(high, m[1]);
      cc.shl(high, 4);
      cc.or_(bits.r32(), high);
    }
  }
  // All bits, of a mask of which all or none are set.
  void all_or_none(const x86::Gp& bits, const Mask& m) { cc.vmovq(bits, m.xmm()); }
  void jump_if_differ64(const Reg& a, const Reg& b, asmjit::Label to) {
    const Mask same = fresh();
    const x86::Gp bits = cc.newUInt32();
    cc.vpcmpeqq(same, a, b);
    cc.vmovmskpd(bits, same);
    cc.cmp(bits, 0xf);
    cc.jne(to);
  }

  // --- lanes of a region's block

  struct Side {
    Mask words;                // of 32 bits
    std::array<Mask, 2> wide;  // the same of 64 bits
  };
  Side side_of(const Mask& words) {
    const Side side{words, {fresh(), fresh()}};
    cc.vpmovsxdq(side.wide[0], words.xmm());
    high_half(side.wide[1], words);
    cc.vpmovsxdq(side.wide[1], side.wide[1].xmm());
    return side;
  }
  template <size_t kRegs> Mask words_mask(const std::array<Mask, kRegs>& m) {
    if constexpr (kRegs == 1) {
      return m[0];
    } else {
      const Mask words = fresh();
      pack(words, m);
      return words;
    }
  }
  Mask mask_of_all(bool set) {
    const Mask m = fresh();
    if (set) cc.vpcmpeqd(m, m, m);
    else clear(m);
    return m;
  }
  // Adds 1 to the words in memory of those lanes.
  void count_lanes(const x86::Mem& at, const Side& side) {
    const Reg y = fresh();
    cc.vmovdqu(y, at);
    cc.vpsubd(y, y, side.words);
    cc.vmovdqu(at, y);
  }

  // --- memory, for the lanes that run

  // Rows belong to the group: what waiting lanes have there may be written again.
  void store_row32(const x86::Mem& to, const Reg& y) { merge(to, y, running_.lanes); }
  void store_row64(const x86::Mem& to, const Reg& y, int h) {
    merge(to, y, running_.half[static_cast<size_t>(h)]);
  }
  // Neighbouring elements in guest memory, where others may write meanwhile.
  void store_elements64(const x86::Mem& to, const Reg& y, int h) {
    if (partial)
      cc.vpmaskmovq(to, running_.half[static_cast<size_t>(h)], y);
    else
      cc.vmovdqu(to, y);
  }
  void store_elements(const x86::Mem& to, const Reg& y, int size) {
    if (size == 4 && partial) return void(cc.vpmaskmovd(to, running_.lanes, y));
    if (size == 4) return void(cc.vmovdqu(to, y));
    if (partial) return store_apart(to, size, y, size);
    const Reg t = fresh(), high = fresh();
    std::array<uint8_t, 32> low_bytes;
    low_bytes.fill(0x80);  // zero
    for (int k = 0; k < 4 * size; ++k) {
      const auto from = static_cast<uint8_t>(k / size * 4 + k % size);
      low_bytes[static_cast<size_t>(k)] = low_bytes[static_cast<size_t>(16 + k)] = from;
    }
    cc.vpshufb(t, y, constant(low_bytes.data(), sizeof low_bytes));
    high_half(high, t);
    if (size == 2) {
      cc.vpunpcklqdq(t.xmm(), t.xmm(), high.xmm());
      cc.vmovdqu(to, t.xmm());
    } else {
      cc.vpunpckldq(t.xmm(), t.xmm(), high.xmm());
      cc.vmovq(to, t.xmm());
    }
  }
  // The words' low bytes, `step` bytes from one another.
  void store_apart(const x86::Mem& to, int step, const Reg& y, int size) {
    const Reg high = fresh();
    high_half(high, y);
    for (int lane = 0; lane < 8; ++lane) {
      const asmjit::Label skip = cc.newLabel();
      if (partial) {
        cc.bt(running_.bits, lane);
        cc.jnc(skip);
      }
      const x86::Mem at = to.cloneAdjusted(lane * step).cloneResized(static_cast<uint32_t>(size));
      const x86::Xmm from = lane < 4 ? y.xmm() : high.xmm();
      if (size == 4)
        cc.vpextrd(at, from, lane % 4);
      else if (size == 2)
        cc.vpextrw(at, from, lane % 4 * 2);
      else
        cc.vpextrb(at, from, lane % 4 * 4);
      if (partial) cc.bind(skip);
    }
  }
  // Half a chunk's elements of 4 or 8 bytes, at delta + at + displacement; those of 4 are the low
  // half of y.
  void gather(const Reg& y, int h, int size, const x86::Gp& delta, const Reg& at,
              int32_t displacement) {
    const Mask k = fresh();  // which the instruction clears
    if (!partial)
      cc.vpcmpeqd(k, k, k);
    else if (size == 8)
      move(k, running_.half[static_cast<size_t>(h)]);
    else if (h == 0)
      move(k, running_.lanes);
    else
      high_half(k, running_.lanes);
    clear(y);
    if (size == 8)
      cc.vpgatherqq(y, x86::ptr(delta, at, 0, displacement), k);
    else
      cc.vpgatherqd(y.xmm(), x86::ptr(delta, at, 0, displacement), k.xmm());
  }
  void scatter(const Reg& y, int h, int size, const x86::Gp& delta, const Reg& at,
               int32_t displacement) {
    if (!scratch_) scratch_ = cc.newStack(2 * kRegBytes, 32);
    const x86::Mem values = scratch_->cloneAdjusted(kRegBytes);
    cc.vmovdqa(*scratch_, at);
    cc.vmovdqa(values, y);
    const x86::Gp address = cc.newUIntPtr(), value = cc.newUInt64();
    for (int k = 0; k < 4; ++k) {
      const asmjit::Label skip = cc.newLabel();
      if (partial) {
        cc.bt(running_.bits, 4 * h + k);
        cc.jnc(skip);
      }
      cc.mov(address, scratch_->cloneAdjusted(8 * k).cloneResized(8));
      const x86::Mem to = x86::ptr(delta, address, 0, displacement, static_cast<uint32_t>(size));
      if (size == 8) {
        cc.mov(value, values.cloneAdjusted(8 * k).cloneResized(8));
        cc.mov(to, value);
      } else {
        cc.mov(value.r32(), values.cloneAdjusted(4 * k).cloneResized(4));
        cc.mov(to, value.r32());
      }
      if (partial) cc.bind(skip);
    }
  }

  // 16 bytes of a register. Part 0 comes first: loading it clears the others.
  void load_part(const Reg& y, const x86::Mem& from, int part) {
    if (part == 0) cc.vmovdqu(y.xmm(), from);
    else cc.vinserti128(y, y, from, part);
  }
  void store_part(const x86::Mem& to, const Reg& y, int part) {
    if (part == 0) cc.vmovdqu(to, y.xmm());
    else cc.vextracti128(to, y, part);
  }

  void load_half(const Reg& y, const x86::Mem& from) { cc.vmovdqu(y.xmm(), from); }
  void store_half(const x86::Mem& to, const Reg& y) { cc.vmovdqu(to, y.xmm()); }

  // --- elements in a row of windows: at one place in a word of 64 bits per lane

  struct InRow {
    x86::Gp words;   // where the first lane's element is; for loads later, its word
    x86::Xmm shift;  // bits, of the whole word
  };
  // Elements shorter than a word. Wide ones are shifted to its top, narrow ones to the bottom.
  void place_load_in_row(InRow& row, int size, bool narrow) {
    const x86::Gp byte = cc.newUInt64();
    cc.mov(byte.r32(), 7);
    cc.and_(byte, row.words);
    cc.xor_(row.words, byte);
    cc.shl(byte, 3);
    if (!narrow) {
      cc.neg(byte);
      cc.add(byte, 64 - 8 * size);
    }
    row.shift = cc.newXmm();
    cc.vmovq(row.shift, byte);
  }
  void take_from_row(const Reg& y, const InRow& row, const std::array<Reg, 2>& words, int size) {
    for (const Reg& w : words) cc.vpsrlq(w, w, row.shift);
    pack(y, words);
    if (size < 4) cc.vpslld(y, y, 32 - 8 * size);
  }
  void place_store_in_row(const InRow&, int) {}
  void store_in_row(const InRow& row, const x86::Gp& lane, const Reg& y, int size) {
    store_apart(x86::ptr(row.words, lane, 3), 8, y, size);
  }

  // --- the least and the greatest of many unsigned words: with their signs flipped, as signed ones

  struct Extremes {
    Reg least, most;
  };
  Extremes start_extremes() {
    const Extremes x{fresh(), fresh()};
    const uint64_t greatest = ~kSign;
    cc.vpbroadcastq(x.least, constant(&greatest, 8));
    cc.vpbroadcastq(x.most, constant(&kSign, 8));
    return x;
  }
  // Of words whose bits are set, if any are given; shifts them out.
  void extend_extremes(const Extremes& x, const Reg& y, const x86::Gp* bits) {
    const Reg flipped = fresh();
    cc.vpxor(flipped, y, repeated<64>(kSign));
    std::optional<Mask> of_these;
    if (bits != nullptr) {
      of_these = mask_of_bits64(*bits);
      cc.shr(*bits, 4);
    }
    const auto take_where = [&](const Reg& best, const Mask& better) {
      if (of_these) cc.vpand(better, better, *of_these);
      select(best, better, flipped, best);
    };
    const Mask less = fresh(), more = fresh();
    cc.vpcmpgtq(less, x.least, flipped);
    take_where(x.least, less);
    cc.vpcmpgtq(more, flipped, x.most);
    take_where(x.most, more);
  }
  x86::Gp least_of(const Extremes& x) { return fold(x.least, true); }
  x86::Gp most_of(const Extremes& x) { return fold(x.most, false); }

  void add_counts(const x86::Gp& to, const uint32_t* counts) override {
    for (int h = 0; h < 2; ++h) {
      const Reg sum = fresh();
      cc.vmovdqu(sum, x86::ptr(to, kRegBytes * h));
      cc.vpaddd(sum, sum, constant(counts + 8 * h, kRegBytes));
      cc.vmovdqu(x86::ptr(to, kRegBytes * h), sum);
    }
  }

 private:
  static constexpr uint64_t kSign = uint64_t{1} << 63;

  template <class E> static constexpr Id by_size(Id b, Id w, Id d) {
    return sizeof(E) == 1 ? b : sizeof(E) == 2 ? w : d;
  }
  template <int kBits> void word_bits(const x86::Gp& bits, const Mask& m) {
    if constexpr (kBits == 64) cc.vmovmskpd(bits, m);
    else cc.vmovmskps(bits, m);
  }
  template <size_t kRegs> Mask combined(Id id, const std::array<Mask, kRegs>& m) {
    if constexpr (kRegs == 1) return m[0];
    const Mask d = fresh();
    cc.emit(id, d, m[0], m[kRegs - 1]);
    return d;
  }
  Mask mask_of_bits32(const x86::Gp& bits) {
    const std::array<uint32_t, 8> each = {1, 2, 4, 8, 16, 32, 64, 128};
    const x86::Mem bit = constant(each.data(), sizeof each);
    const Mask m = fresh();
    broadcast32(m, bits.r32());
    cc.vpand(m, m, bit);
    cc.vpcmpeqd(m, m, bit);
    return m;
  }
  Mask mask_of_bits64(const x86::Gp& bits) {
    const std::array<uint64_t, 4> each = {1, 2, 4, 8};
    const x86::Mem bit = constant(each.data(), sizeof each);
    const Mask m = fresh();
    broadcast64(m, bits.r64());
    cc.vpand(m, m, bit);
    cc.vpcmpeqq(m, m, bit);
    return m;
  }
  void merge(const x86::Mem& to, const Reg& y, const Mask& where) {
    if (!partial) return void(cc.vmovdqu(to, y));
    const Reg merged = fresh();
    cc.vmovdqu(merged, to);
    select(merged, where, y, merged);
    cc.vmovdqu(to, merged);
  }
  x86::Gp fold(const Reg& y, bool least) {
    const Reg other = fresh();
    const auto combine = [&] {
      const Mask better = fresh();
      if (least) cc.vpcmpgtq(better, y, other);
      else cc.vpcmpgtq(better, other, y);
      select(y, better, other, y);
    };
    cc.vpermq(other, y, 0x4e);
    combine();
    cc.vpshufd(other, y, 0x4e);
    combine();
    const x86::Gp word = cc.newUInt64();
    cc.vmovq(word, y.xmm());
    cc.btc(word, 63);
    return word;
  }

  Running running_;
  std::optional<x86::Mem> scratch_;  // of a scatter
};

}  // namespace gpusim::simd
