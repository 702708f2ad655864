// Vectors of 512 bits, masks in registers of their own.
#pragma once
#include <array>

#include "device_sim/simd/jit/emitter.h"

namespace gpusim::simd {

struct Avx512 final : Emitter {
  using Reg = x86::Zmm;
  using Mask = x86::KReg;
  using Id = asmjit::InstId;
  static constexpr int kRegBytes = 64;
  static constexpr bool kMasksAreVectors = false;
  // By width of words: 32 and 64 bits.
  static constexpr Id kAnd[] = {x86::Inst::kIdVpandd, x86::Inst::kIdVpandq};
  static constexpr Id kAndNot[] = {x86::Inst::kIdVpandnd, x86::Inst::kIdVpandnq};
  static constexpr Id kOr[] = {x86::Inst::kIdVpord, x86::Inst::kIdVporq};
  static constexpr Id kXor[] = {x86::Inst::kIdVpxord, x86::Inst::kIdVpxorq};

  using Emitter::Emitter;
  static Avx512& current() { return *static_cast<Avx512*>(Emitter::current()); }
  static bool available() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("bmi2");
  }
  static void prepare(asmjit::FuncFrame& frame) {
    frame.setAvxEnabled();
    frame.setAvx512Enabled();
    frame.setAvxCleanup();
  }

  // --- registers, constants and moves

  Reg fresh() { return cc.newZmm(); }
  Mask fresh_mask() { return cc.newKq(); }
  static x86::Ymm half(const Reg& z) { return z.ymm(); }
  // `k` in every word, as an operand of an instruction.
  template <int kBits> x86::Mem repeated(uint64_t k) {
    return kBits == 64 ? constant(&k, 8)._1to8() : constant(&k, 4)._1to16();
  }
  void load(const Reg& z, const x86::Mem& from) { cc.vmovdqu64(z, from); }
  void store(const x86::Mem& to, const Reg& z) { cc.vmovdqu64(to, z); }
  void move(const Reg& z, const Reg& from) { cc.vmovdqa64(z, from); }
  void clear(const Reg& z) { cc.vpxord(z, z, z); }
  template <class From> void broadcast32(const Reg& z, const From& x) { cc.vpbroadcastd(z, x); }
  template <class From> void broadcast64(const Reg& z, const From& x) { cc.vpbroadcastq(z, x); }
  void high_half(const Reg& z, const Reg& from) { cc.vextracti64x4(z.ymm(), from, 1); }
  void join_halves(const Reg& z, const Reg& low, const Reg& high) {
    cc.vinserti64x4(z, low, high.ymm(), 1);
  }
  // Words of 64 bits to words of 32.
  void pack(const Reg& out, const std::array<Reg, 2>& in) {
    const Reg high = fresh();
    cc.vpmovqd(out.ymm(), in[0]);
    cc.vpmovqd(high.ymm(), in[1]);
    join_halves(out, out, high);
  }

  // --- arithmetic: d may be none of the sources

  template <class B> void mul64(const Reg& d, const Reg& a, const B& b) {
    cc.emit(x86::Inst::kIdVpmullq, d, a, b);
  }
  void sar64(const Reg& d, const Reg& a, int n) { cc.vpsraq(d, a, n); }
  template <class B> void sar64_v(const Reg& d, const Reg& a, const B& n) {
    cc.emit(x86::Inst::kIdVpsravq, d, a, n);
  }
  // Towards zero, of integers below 2^33 in magnitude.
  void quotient33(const Reg& d, const Reg& a, const Reg& b) {
    const Reg divisor = fresh();
    cc.vcvtqq2pd(d, a);
    cc.vcvtqq2pd(divisor, b);
    cc.vdivpd(d, d, divisor);
    cc.vcvttpd2qq(d, d);
  }

  template <int kFloatBits> void round_floats(const Reg& d, const Reg& a, int mode) {
    if constexpr (kFloatBits == 64)
      cc.vrndscalepd(d, a, mode);
    else
      cc.vrndscaleps(d, a, mode);
  }
  void widen_floats(const Reg& d, const Reg& a) {
    const Reg floats = fresh();
    cc.vpmovqd(floats.ymm(), a);
    cc.vcvtps2pd(d, floats.ymm());
  }
  void widen_halves(const Reg& d, const Reg& a) {
    const Reg t = fresh();
    cc.vpmovqw(t.xmm(), a);
    cc.vcvtph2ps(t.ymm(), t.xmm());
    cc.vpmovzxdq(d, t.ymm());
  }
  void narrow_floats(const Reg& d, const Reg& a, int mode) {
    const Reg t = fresh();
    cc.vpmovqd(t.ymm(), a);
    cc.vcvtps2ph(t.xmm(), t.ymm(), mode);
    cc.vpmovzxwq(d, t.xmm());
  }
  void narrow_doubles(const Reg& d, const Reg& a) {
    const Reg floats = fresh();
    round_next();
    cc.vcvtpd2ps(floats.ymm(), a);
    cc.vpmovzxdq(d, floats.ymm());
  }

  // --- masks of words

  template <int kBits> void equal(const Mask& m, const Reg& a, const asmjit::Operand& b) {
    cc.emit(kBits == 64 ? x86::Inst::kIdVpcmpq : x86::Inst::kIdVpcmpd, m, a, b, asmjit::imm(0));
  }
  template <int kBits> void less(const Mask& m, const Reg& a, const asmjit::Operand& b) {
    cc.emit(kBits == 64 ? x86::Inst::kIdVpcmpq : x86::Inst::kIdVpcmpd, m, a, b, asmjit::imm(1));
  }
  template <int kBits> void below(const Mask& m, const Reg& a, const asmjit::Operand& b) {
    cc.emit(kBits == 64 ? x86::Inst::kIdVpcmpuq : x86::Inst::kIdVpcmpud, m, a, b, asmjit::imm(1));
  }
  template <int kBits> void mask_not(const Mask& d, const Mask& m) {
    cc.emit(kBits == 64 ? x86::Inst::kIdKnotb : x86::Inst::kIdKnotw, d, m);
  }
  template <int kBits> void mask_and(const Mask& d, const Mask& a, const Mask& b) {
    cc.emit(kBits == 64 ? x86::Inst::kIdKandb : x86::Inst::kIdKandw, d, a, b);
  }
  template <int kBits> void mask_or(const Mask& d, const Mask& a, const Mask& b) {
    cc.emit(kBits == 64 ? x86::Inst::kIdKorb : x86::Inst::kIdKorw, d, a, b);
  }
  // d = m ? a : d, or 0.
  template <int kBits> void choose(const Reg& d, const Mask& m, const Reg& a) {
    cc.k(m);
    cc.emit(kBits == 64 ? x86::Inst::kIdVmovdqa64 : x86::Inst::kIdVmovdqa32, d, a);
  }
  template <int kBits> void choose_or_zero(const Reg& d, const Mask& m, const Reg& a) {
    cc.k(m).z();
    cc.emit(kBits == 64 ? x86::Inst::kIdVmovdqa64 : x86::Inst::kIdVmovdqa32, d, a);
  }
  // Each instruction says how it rounds.
  void begin_rounding(softfloat::Rounding mode) { rounding = mode; }
  void end_rounding() { rounding = softfloat::Rounding::kTieEven; }
  void round_next() {
    using enum softfloat::Rounding;
    if (rounding == kPosInf) cc.ru_sae();
    if (rounding == kNegInf) cc.rd_sae();
    if (rounding == kZero) cc.rz_sae();
  }
  // Of floats of `kFloatBits`, the lowest of each word.
  template <int kBits, int kFloatBits>
  void compare_floats(Mask& m, const Reg& a, const Reg& b, int predicate) {
    if constexpr (kFloatBits == 64) {
      cc.vcmppd(m, a, b, predicate);
    } else if constexpr (kBits == 32) {
      cc.vcmpps(m, a, b, predicate);
    } else {
      const Reg spread = fresh();
      cc.vcmpps(m, a, b, predicate);
      cc.vpmovm2d(spread, m);
      m = fresh_mask();
      cc.emit(x86::Inst::kIdVptestmq, m, spread, repeated<64>(1));
    }
  }
  // Elements of E's width: all ones where the comparison holds.
  template <class E> void equal_elements(const Reg& d, const Reg& a, const Reg& b) {
    compare_elements<E>(d, a, b, 0, kSigned);
  }
  template <class E> void greater_elements(const Reg& d, const Reg& a, const Reg& b) {
    compare_elements<E>(d, a, b, 6, kSigned);
  }
  template <class E> void above_elements(const Reg& d, const Reg& a, const Reg& b) {
    compare_elements<E>(d, a, b, 6, kUnsigned);
  }

  // --- what a chunk's lanes do

  struct Running {
    Mask lanes, others;
    Mask high_lanes;  // 8 to 15 of the chunk
  };
  // The lanes that run, of bits in a general register.
  void set_running(const x86::Gp& bits) {
    running_ = {cc.newKq(), cc.newKq(), cc.newKq()};
    cc.kmovw(running_.lanes, bits.r32());
    cc.knotw(running_.others, running_.lanes);
    cc.kshiftrw(running_.high_lanes, running_.lanes, 8);
  }
  // For code that is emitted later.
  const Running& running() const { return running_; }
  void set_running(const Running& running) { running_ = running; }
  template <int kBits, size_t kRegs>
  void jump_unless_all(const std::array<Mask, kRegs>& m, asmjit::Label to) {
    const Mask k = bits_of(m);
    cc.kortestw(k, partial ? running_.others : k);
    cc.jnc(to);
  }
  template <int kBits, size_t kRegs>
  void jump_if_any(const std::array<Mask, kRegs>& m, asmjit::Label to) {
    const Mask k = bits_of(m);
    if (partial) {
      cc.ktestw(k, running_.lanes);
    } else {
      cc.kortestw(k, k);
    }
    cc.jnz(to);
  }
  template <int kBits, size_t kRegs>
  void lane_bits(const x86::Gp& bits, const std::array<Mask, kRegs>& m) {
    cc.kmovw(bits.r32(), bits_of(m));
  }
  // All bits, of a mask of which all or none are set.
  void all_or_none(const x86::Gp& bits, const Mask& m) {
    cc.kmovb(bits.r32(), m);
    cc.movsx(bits, bits.r8());
  }
  void jump_if_differ64(const Reg& a, const Reg& b, asmjit::Label to) {
    const Mask differ = fresh_mask();
    cc.vpcmpq(differ, a, b, asmjit::imm(x86::VPCmpImm::kNE));
    cc.kortestb(differ, differ);
    cc.jnz(to);
  }

  // --- lanes of a region's block

  struct Side {
    Mask words;                // of 32 bits
    std::array<Mask, 2> wide;  // the same of 64 bits
  };
  Side side_of(const Mask& words) {
    const Side side{words, {words, fresh_mask()}};
    cc.kshiftrw(side.wide[1], words, 8);
    return side;
  }
  template <size_t kRegs> Mask words_mask(const std::array<Mask, kRegs>& m) { return bits_of(m); }
  Mask mask_of_all(bool set) {
    const Mask k = fresh_mask();
    if (set) cc.kxnorw(k, k, k);
    else cc.kxorw(k, k, k);
    return k;
  }
  // Adds 1 to the words in memory of those lanes.
  void count_lanes(const x86::Mem& at, const Side& side) {
    const Reg z = fresh();
    cc.vmovdqu32(z, at);
    cc.k(side.words).vpaddd(z, z, repeated<32>(1));
    cc.vmovdqu32(at, z);
  }

  // --- memory, for the lanes that run

  // The chunk's part of a row, of words of 32 bits or, half `h`, of 64.
  void store_row32(const x86::Mem& to, const Reg& z) { masked().vmovdqu32(to, z); }
  void store_row64(const x86::Mem& to, const Reg& z, int h) { masked(h).vmovdqu64(to, z); }
  // Neighbouring elements in guest memory.
  void store_elements64(const x86::Mem& to, const Reg& z, int h) { masked(h).vmovdqu64(to, z); }
  void store_elements(const x86::Mem& to, const Reg& z, int size) {
    if (size == 4)
      masked().vmovdqu32(to, z);
    else if (size == 2)
      masked().vpmovdw(to, z);
    else
      masked().vpmovdb(to, z);
  }
  // Half a chunk's elements of 4 or 8 bytes, at delta + at + displacement; those of 4 are the low
  // half of z.
  void gather(const Reg& z, int h, int size, const x86::Gp& delta, const Reg& at,
              int32_t displacement) {
    const Mask k = half_mask(h);
    clear(z);
    if (size == 8)
      cc.k(k).vpgatherqq(z, x86::ptr(delta, at, 0, displacement));
    else
      cc.k(k).vpgatherqd(z.ymm(), x86::ptr(delta, at, 0, displacement));
  }
  void scatter(const Reg& z, int h, int size, const x86::Gp& delta, const Reg& at,
               int32_t displacement) {
    const Mask k = half_mask(h);
    if (size == 8)
      cc.k(k).vpscatterqq(x86::ptr(delta, at, 0, displacement), z);
    else
      cc.k(k).vpscatterqd(x86::ptr(delta, at, 0, displacement), z.ymm());
  }

  // 16 bytes of a register. Part 0 comes first: loading it clears the others.
  void load_part(const Reg& z, const x86::Mem& from, int part) {
    if (part == 0) cc.vmovdqu32(z.xmm(), from);
    else cc.vinserti32x4(z, z, from, part);
  }
  void store_part(const x86::Mem& to, const Reg& z, int part) {
    if (part == 0) cc.vmovdqu32(to, z.xmm());
    else cc.vextracti32x4(to, z, part);
  }

  void load_half(const Reg& z, const x86::Mem& from) { cc.vmovdqu32(z.ymm(), from); }
  void store_half(const x86::Mem& to, const Reg& z) { cc.vmovdqu32(to, z.ymm()); }

  // --- elements in a row of windows: at one place in a word of 64 bits per lane

  struct InRow {
    x86::Gp words;    // where the first lane's element is; later, its word
    x86::Zmm half;    // the numbers of the halves that hold narrow elements, of a chunk's words
    x86::Xmm shift;   // bits
    x86::KReg bytes;  // of eight words; for elements of 32 bits halves of them
  };
  // Elements shorter than a word. Loads shift them to its top, or to that of their half.
  void place_load_in_row(InRow& row, int size, bool narrow) {
    const x86::Gp byte = take_byte(row);
    if (narrow) {
      std::array<uint32_t, 16> even;
      for (uint32_t k = 0; k < even.size(); ++k) even[k] = 2 * k;
      const x86::Gp odd = cc.newUInt64();
      row.half = fresh();
      cc.mov(odd, byte);
      cc.shr(odd, 2);
      cc.vpbroadcastd(row.half, odd.r32());
      cc.vpaddd(row.half, row.half, constant(even.data(), sizeof even));
      if (size == 4) return;
      cc.and_(byte, 3);
    }
    cc.shl(byte, 3);
    cc.neg(byte);
    cc.add(byte, (narrow ? 32 : 64) - 8 * size);
    set_shift(row, byte);
  }
  void take_from_row(const Reg& z, const InRow& row, const std::array<Reg, 2>& words, int size) {
    cc.vmovdqa64(z, row.half);
    cc.vpermi2d(z, words[0], words[1]);
    if (size < 4) cc.vpslld(z, z, row.shift);
  }
  void place_store_in_row(InRow& row, int size) {
    const x86::Gp byte = take_byte(row), bits = cc.newUInt64(), by = cc.newUInt64();
    row.bytes = cc.newKq();
    cc.mov(bits, size == 4 ? 0x5555 : ((1 << size) - 1) * 0x0101010101010101);
    cc.mov(by, byte);
    if (size == 4) cc.shr(by, 2);
    cc.shlx(bits, bits, by);
    cc.kmovq(row.bytes, bits);
    cc.shl(byte, 3);
    set_shift(row, byte);
  }
  // For the lanes that run.
  void store_in_row(const InRow& row, const x86::Gp& lane, const Reg& z, int size) {
    for (int h = 0; h < 2; ++h) {
      const Mask bytes = partial ? bytes_of_running(row, h, size) : row.bytes;
      const x86::Mem to = x86::ptr(row.words, lane, 3, kRegBytes * h);
      const Reg words = fresh();
      if (h == 0) {
        cc.vpmovzxdq(words, z.ymm());
      } else {
        high_half(words, z);
        cc.vpmovzxdq(words, words.ymm());
      }
      cc.vpsllq(words, words, row.shift);
      if (size == 4)
        cc.k(bytes).vmovdqu32(to, words);
      else
        cc.k(bytes).vmovdqu8(to, words);
    }
  }

  // --- the least and the greatest of many unsigned words

  struct Extremes {
    Reg least, most;
  };
  Extremes start_extremes() {
    const Extremes x{fresh(), fresh()};
    const uint64_t all_bits = ~uint64_t{0};
    cc.vpbroadcastq(x.least, constant(&all_bits, 8));
    clear(x.most);
    return x;
  }
  // Of words whose bits are set, if any are given; shifts them out.
  void extend_extremes(const Extremes& x, const Reg& z, const x86::Gp* bits) {
    if (bits != nullptr) {
      const Mask k = fresh_mask();
      cc.kmovw(k, bits->r32());
      cc.k(k).vpminuq(x.least, x.least, z);
      cc.k(k).vpmaxuq(x.most, x.most, z);
      cc.shr(*bits, 8);
    } else {
      cc.vpminuq(x.least, x.least, z);
      cc.vpmaxuq(x.most, x.most, z);
    }
  }
  x86::Gp least_of(const Extremes& x) { return fold(x.least, x86::Inst::kIdVpminuq); }
  x86::Gp most_of(const Extremes& x) { return fold(x.most, x86::Inst::kIdVpmaxuq); }

  void add_counts(const x86::Gp& to, const uint32_t* counts) override {
    const Reg sum = fresh();
    cc.vmovdqu64(sum, x86::ptr(to));
    cc.vpaddd(sum, sum, constant(counts, 64));
    cc.vmovdqu64(x86::ptr(to), sum);
  }

 private:
  enum Signedness { kSigned, kUnsigned };
  template <class E>
  void compare_elements(const Reg& d, const Reg& a, const Reg& b, int predicate, Signedness s) {
    constexpr int size = sizeof(E);
    const Id by_sign[] = {
        size == 1 ? x86::Inst::kIdVpcmpb : size == 2 ? x86::Inst::kIdVpcmpw : x86::Inst::kIdVpcmpd,
        size == 1   ? x86::Inst::kIdVpcmpub
        : size == 2 ? x86::Inst::kIdVpcmpuw
                    : x86::Inst::kIdVpcmpud};
    const Mask k = fresh_mask();
    cc.emit(by_sign[s], k, a, b, asmjit::imm(predicate));
    cc.emit(size == 1   ? x86::Inst::kIdVpmovm2b
            : size == 2 ? x86::Inst::kIdVpmovm2w
                        : x86::Inst::kIdVpmovm2d,
            d, k);
  }
  // The lanes' bits in one mask register.
  template <size_t kRegs> Mask bits_of(const std::array<Mask, kRegs>& m) {
    if constexpr (kRegs == 1) return m[0];
    const Mask k = fresh_mask();
    cc.kunpckbw(k, m[kRegs - 1], m[0]);
    return k;
  }
  // The compiler, for a store: of 16 words or half `h` of them.
  x86::Compiler& masked(int h = 0) {
    if (partial) cc.k(h == 0 ? running_.lanes : running_.high_lanes);
    return cc;
  }
  // The running lanes of half `h`; gathers and scatters clear it.
  Mask half_mask(int h) {
    const Mask k = fresh_mask();
    if (!partial)
      cc.kxnorw(k, k, k);
    else
      cc.kmovw(k, h == 0 ? running_.lanes : running_.high_lanes);
    return k;
  }
  // Of `row.bytes`, those of running lanes of half `h`.
  Mask bytes_of_running(const InRow& row, int h, int size) {
    const Reg words = fresh();
    const Mask k = fresh_mask();
    cc.vpmovm2q(words, h == 0 ? running_.lanes : running_.high_lanes);
    if (size == 4)
      cc.vpmovd2m(k, words);
    else
      cc.vpmovb2m(k, words);
    cc.kandq(k, k, row.bytes);
    return k;
  }
  x86::Gp take_byte(const InRow& row) {
    const x86::Gp byte = cc.newUInt64();
    cc.mov(byte.r32(), 7);
    cc.and_(byte, row.words);
    cc.xor_(row.words, byte);
    return byte;
  }
  void set_shift(InRow& row, const x86::Gp& bits) {
    row.shift = cc.newXmm();
    cc.vmovq(row.shift, bits);
  }
  x86::Gp fold(const Reg& z, Id combine) {
    const Reg other = fresh();
    cc.vshufi64x2(other, z, z, 0x4e);
    cc.emit(combine, z, z, other);
    cc.vshufi64x2(other, z, z, 0xb1);
    cc.emit(combine, z, z, other);
    cc.vpermilpd(other, z, 0x55);
    cc.emit(combine, z, z, other);
    const x86::Gp word = cc.newUInt64();
    cc.vmovq(word, z.xmm());
    return word;
  }

  Running running_;
};

}  // namespace gpusim::simd
