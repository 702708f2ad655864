// Every row of the decode table, all 16-bit instructions and random sequences, against
// qemu-riscv64 or qemu-riscv32: values, fcsr, memory, branches, faults with their pc. More cases:
// GPUSIM_ORACLE_CASES=n per row, or GPUSIM_LONG=1.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/isa/riscv/insn_oracle/draw_case.h"
#include "translator/riscv/compressed.h"
#include "translator/riscv/vector.h"

namespace gpusim::riscv {
namespace {

using gpusim::oracle::case_count;
using gpusim::oracle::test_seed;
using oracle::Batch;
using oracle::Case;
using oracle::kXlen;
using oracle::Rng;

// What QEMU 7.2 cannot judge; null for others.
const char* not_on_qemu(const Row& row) {
  switch (row.op) {
    case Op::ECALL:
      return "a system call with a random number";
    case Op::WRS_NTO:
    case Op::WRS_STO:
      return "not in QEMU 7.2, waits";
    case Op::VFCVT_RTZ_XU_F_V:
    case Op::VFCVT_RTZ_X_F_V:
    case Op::VFWCVT_RTZ_XU_F_V:
    case Op::VFWCVT_RTZ_X_F_V:
    case Op::VFNCVT_RTZ_XU_F_W:
    case Op::VFNCVT_RTZ_X_F_W:
      return "an assertion of QEMU 7.2 fails";
    default:
      if (!belongs(row.op, kXlen)) return "of the other register width";
      return row.extension == Extension::kZfa || row.extension == Extension::kZicond ||
                     row.extension == Extension::kZacas
                 ? "not in QEMU 7.2"
                 : nullptr;
  }
}

// QEMU 7.2 counts in all 64 bits where the low word is 0 ("CTZW counts in the low word").
bool is_ctzw(const Row& row, uint32_t word) { return row.op == Op::CTZ && row.field('w', word); }

class Runner {
 public:
  ~Runner() {
    flush();
    MESSAGE(total_ << " cases");
  }
  uint64_t next_pc() {
    if (batch_.is_full()) flush();
    return batch_.next_pc();
  }
  void add(Case c) { batch_.add(std::move(c)); }

 private:
  void flush() {
    total_ += batch_.cases().size();
    oracle::compare(batch_, [](const std::string& text) { FAIL_CHECK(text); });
    batch_ = {};
  }
  Batch batch_;
  size_t total_ = 0;
};

TEST_CASE("every row") {
  const uint64_t seed = test_seed();
  MESSAGE("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Runner runner;
  for (const Row& row : rows(kXlen)) {
    if (not_on_qemu(row) != nullptr) continue;
    for (unsigned n = case_count(100, 10000); n > 0; --n) {
      Case c = oracle::random_case(row, rng, runner.next_pc());
      const bool is_word = (c.code[0] & 8) != 0;
      if (row.op != Op::CTZ || !is_word) runner.add(std::move(c));
    }
  }
}

// Those that neither access memory nor branch, from random states: the others differ from their
// expansions, which "every row" has, by their length alone.
TEST_CASE("16-bit instructions") {
  const uint64_t seed = test_seed();
  MESSAGE("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Runner runner;
  const bool all = std::getenv("GPUSIM_LONG") != nullptr;
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 3) == 3 || (!all && rng() % 8 != 0)) continue;
    const Insn insn = decode_any(half, kXlen);
    if (insn && oracle::is_memory(*insn.row)) continue;
    Case c;
    const uint64_t pc = runner.next_pc();
    c.state = oracle::random_state(rng);
    if (insn && (insn.word & 0x7f) == 0x67)
      c.state.x[insn.field('n')] = oracle::jump_exit_pc(pc, 2) + rng() % 2;
    // C.J and branches: only those that lead to the second exit.
    const uint32_t major = insn.word & 0x7f;
    if (insn && (major == 0x6f || major == 0x63)) continue;
    c.append(half, 2);
    runner.add(c);
  }
}

// On few registers, so that they use each other's results: what passes and boxes see.
TEST_CASE("sequences") {
  const uint64_t seed = test_seed();
  MESSAGE("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Runner runner;
  std::vector<const Row*> choice;
  for (const Row& row : rows(kXlen)) {
    const uint32_t major = row.pattern.value & 0x7f;
    const bool is_flow = major == 0x63 || major == 0x67 || major == 0x6f || major == 0x73;
    if (!is_flow && !oracle::is_memory(row) && !is_vector(row) && not_on_qemu(row) == nullptr)
      choice.push_back(&row);
  }
  for (unsigned n = case_count(3000, 300000); n > 0; --n) {
    Case c;
    runner.next_pc();
    c.state = oracle::random_state(rng);
    for (int left = 2 + static_cast<int>(rng() % 9); left > 0; --left) {
      const Row& row = *choice[rng() % choice.size()];
      uint32_t word = random_word(row, kXlen, rng);
      for (const char letter : {'d', 'n', 'm', 'a'}) {
        const BitField f = row.pattern.field(letter);
        if (f.width != 5) continue;
        word = (word & ~(31u << f.lsb)) | static_cast<uint32_t>(8 + rng() % 6) << f.lsb;
      }
      if (is_ctzw(row, word)) continue;
      if (const Row* still = decode(word, kXlen); still && still->op == row.op) c.append(word, 4);
    }
    if (!c.code.empty()) runner.add(c);
  }
}

// A store-conditional succeeds where the address is the reserved one and nothing has changed there.
TEST_CASE("reservations") {
  const uint64_t seed = test_seed();
  MESSAGE("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Runner runner;
  for (unsigned n = case_count(300, 10000); n > 0; --n) {
    runner.next_pc();
    Case c;
    c.state = oracle::random_state(rng);
    c.state.x[10] = ORACLE_WINDOW + rng() % 256 * 8;
    c.state.x[11] = c.state.x[10] + (rng() % 3 == 0 ? 8 : 0);
    const uint32_t wide = kXlen == 64 ? rng() % 2 : 0;
    const uint32_t lr = 0x1005262f | wide << 12;                   // lr a2,(a0)
    const uint32_t store = kXlen == 64 ? 0x00d53023 : 0x00d52023;  // sd or sw a3,0(a0)
    const uint32_t sc = 0x18d5a72f | wide << 12;                   // sc a4,a3,(a1)
    c.append(lr, 4);
    if (rng() % 3 == 0) c.append(store, 4);
    c.append(sc, 4);
    if (rng() % 2 == 0) c.append(sc, 4);
    runner.add(c);
  }
}

// --- what QEMU 7.2 lacks: expected values from the manual

struct Word {
  uint32_t word;
  Word with(char letter, uint32_t value) const {
    const Row* row = decode(word, kXlen);
    return {word | value << (row ? row->pattern.field(letter).lsb : 0)};
  }
};
Word of(Op op) { return {row(op).pattern.value}; }

// d = 10, n = 11, m = 12; a register starts as given and x10 or f10 must be `want`.
struct Expectation {
  Word word;
  uint64_t n, m, want;
  uint64_t flags = 0;
  bool is_float_result = false;
};

void check_alone(std::span<const Expectation> list) {
  Batch batch;
  for (const Expectation& e : list) {
    Case c;
    const Word word = e.word.with('d', 10);
    const BitField n = row(decode(e.word.word, kXlen)->op).pattern.field('n');
    const BitField m = row(decode(e.word.word, kXlen)->op).pattern.field('m');
    c.append(word.word | (n.width ? 11u << n.lsb : 0) | (m.width ? 12u << m.lsb : 0), 4);
    c.state.f[11] = e.n;
    c.state.f[12] = e.m;
    c.state.x[11] = e.n & oracle::kRegisterMask;
    c.state.x[12] = e.m & oracle::kRegisterMask;
    batch.add(c);
  }
  for (const std::string& backend : gpusim::oracle::backends_under_test()) {
    const auto results = oracle::run_gpusim(batch.cases(), backend, true);
    for (size_t i = 0; i < list.size(); ++i) {
      INFO(decode(list[i].word.word, kXlen)->name << " " << list[i].n << " " << list[i].m);
      const oracle::State& s = results[i].state;
      CHECK((list[i].is_float_result ? s.f[10] : s.x[10]) ==
            (list[i].is_float_result ? list[i].want : list[i].want & oracle::kRegisterMask));
      CHECK((s.fcsr & 31) == list[i].flags);
    }
  }
}

constexpr uint64_t kBox = 0xffffffff00000000, kOne = 0x3ff0000000000000;
constexpr uint64_t kNan = 0x7ff8000000000000, kSignalling = 0x7ff0000000000001;
constexpr uint64_t kNv = 16, kNx = 1;

#if GPUSIM_ORACLE_BITS == 64
TEST_CASE("CTZW counts in the low word") {
  const Expectation list[] = {{of(Op::CTZ).with('w', 1), uint64_t{1} << 59, 0, 32},
                              {of(Op::CTZ).with('w', 1), 0, 0, 32},
                              {of(Op::CTZ).with('w', 1), 0xf00, 0, 8},
                              {of(Op::CTZ), uint64_t{1} << 59, 0, 59}};
  check_alone(list);
}
#else
TEST_CASE("halves of a double") {
  const Expectation list[] = {
      {of(Op::FMVH_X_D), 0x8123456789abcdef, 0, 0x81234567},
      {of(Op::FMVP_D_X), 0x89abcdef, 0x81234567, 0x8123456789abcdef, 0, true},
  };
  check_alone(list);
}
#endif

TEST_CASE("Zicond") {
  const Expectation list[] = {
      {of(Op::CZERO_EQZ), 7, 0, 0},
      {of(Op::CZERO_EQZ), 7, 5, 7},
      {of(Op::CZERO_NEZ), 7, 0, 7},
      {of(Op::CZERO_NEZ), 7, 5, 0},
  };
  check_alone(list);
}

TEST_CASE("Zfa") {
  const Word d = of(Op::FLI).with('f', 1);
  const auto fp = [](Op op, uint32_t f) { return of(op).with('f', f); };
  const Expectation list[] = {
      {d.with('i', 0), 0, 0, 0xbff0000000000000, 0, true},
      {d.with('i', 1), 0, 0, 0x0010000000000000, 0, true},
      {d.with('i', 2), 0, 0, 0x3ef0000000000000, 0, true},
      {d.with('i', 8), 0, 0, 0x3fd0000000000000, 0, true},
      {d.with('i', 16), 0, 0, kOne, 0, true},
      {d.with('i', 29), 0, 0, 0x40f0000000000000, 0, true},
      {d.with('i', 30), 0, 0, 0x7ff0000000000000, 0, true},
      {d.with('i', 31), 0, 0, kNan, 0, true},
      {of(Op::FLI).with('i', 1), 0, 0, kBox | 0x00800000, 0, true},
      {of(Op::FLI).with('i', 21), 0, 0, kBox | 0x40200000, 0, true},
      {fp(Op::FLI, 2).with('i', 29), 0, 0, 0xffffffffffff7c00, 0, true},
      {fp(Op::FLI, 2).with('i', 2), 0, 0, 0xffffffffffff0100, 0, true},
      {fp(Op::FMINM, 1), kOne, kNan, kNan, 0, true},
      {fp(Op::FMAXM, 1), kSignalling, kOne, kNan, kNv, true},
      {fp(Op::FMINM, 1), 0, uint64_t{1} << 63, uint64_t{1} << 63, 0, true},
      {fp(Op::FLEQ, 1), kOne, kNan, 0},
      {fp(Op::FLEQ, 1), kOne, kOne, 1},
      {fp(Op::FLTQ, 1), kOne, kOne, 0},
      {fp(Op::FLTQ, 1), kOne, kSignalling, 0, kNv},
      {fp(Op::FROUND, 1), 0x4004000000000000, 0, 0x4000000000000000, 0, true},  // 2.5, rne
      {fp(Op::FROUND, 1).with('r', 4), 0x4004000000000000, 0, 0x4008000000000000, 0, true},
      {fp(Op::FROUNDNX, 1).with('r', 1), 0x4004000000000000, 0, 0x4000000000000000, kNx, true},
      {of(Op::FCVTMOD_W_D), 0x41f0000000000000, 0, 0, kNv},                   // 2^32
      {of(Op::FCVTMOD_W_D), 0x41e0000000000000, 0, 0xffffffff80000000, kNv},  // 2^31
      {of(Op::FCVTMOD_W_D), 0xbff8000000000000, 0, ~uint64_t{0}, kNx},        // -1.5
      {of(Op::FCVTMOD_W_D), kNan, 0, 0, kNv},
  };
  check_alone(list);
}

#if GPUSIM_ORACLE_BITS == 64
// v4 = op(v8), of two singles or, wide, of doubles.
struct VectorExpectation {
  Op op;
  uint64_t vtype, source[2], want[2];
};

TEST_CASE("vector conversions towards zero") {
  constexpr uint64_t kSingles = 2 << 3;
  // 2.75, -2.75; 3e9, NaN; doubles: 2.75, -3e9
  constexpr uint64_t kSmall = 0xc030000040300000, kLarge = 0x7fc000004f32d05e;
  constexpr uint64_t kDouble = 0x4006000000000000, kNegative = 0xc1e65a0bc0000000;
  const VectorExpectation list[] = {
      {Op::VFCVT_RTZ_X_F_V, kSingles, {kSmall, kLarge}, {0xfffffffe00000002, 0x7fffffff7fffffff}},
      {Op::VFCVT_RTZ_XU_F_V, kSingles, {kSmall, kLarge}, {0x0000000000000002, 0xffffffffb2d05e00}},
      {Op::VFWCVT_RTZ_X_F_V, kSingles, {kSmall, 0}, {2, ~uint64_t{1}}},
      {Op::VFWCVT_RTZ_XU_F_V, kSingles, {kLarge, 0}, {0xb2d05e00, ~uint64_t{0}}},
      {Op::VFNCVT_RTZ_X_F_W, kSingles, {kDouble, kNegative}, {0x8000000000000002, 0}},
      {Op::VFNCVT_RTZ_XU_F_W, kSingles, {kDouble, kNegative}, {0x0000000000000002, 0}},
  };
  Batch batch;
  for (const VectorExpectation& e : list) {
    Case c;
    c.append(of(e.op).with('v', 1).with('d', 4).with('m', 8).word, 4);
    c.state.vtype = e.vtype;
    const bool is_wide = e.op == Op::VFWCVT_RTZ_X_F_V || e.op == Op::VFWCVT_RTZ_XU_F_V;
    const bool is_narrow = e.op == Op::VFNCVT_RTZ_X_F_W || e.op == Op::VFNCVT_RTZ_XU_F_W;
    c.state.vl = is_wide || is_narrow ? 2 : 4;
    std::copy_n(e.source, 2, &c.state.v[8 * ORACLE_VECTOR_WORDS]);
    batch.add(c);
  }
  for (const std::string& backend : gpusim::oracle::backends_under_test()) {
    const auto results = oracle::run_gpusim(batch.cases(), backend, true);
    for (size_t i = 0; i < std::size(list); ++i) {
      INFO(row(list[i].op).name);
      for (size_t word = 0; word < 2; ++word)
        CHECK(results[i].state.v[4 * ORACLE_VECTOR_WORDS + word] == list[i].want[word]);
    }
  }
}

// Every vector instruction that ends clears vstart, says the manual (3.7); QEMU 7.2 does not where
// no element is left to do.
TEST_CASE("vstart behind the end") {
  Batch batch;
  for (const Op op : {Op::VADD, Op::VMAND, Op::VMV_S_X, Op::VMV_X_S, Op::VSLIDEUP}) {
    Case c;
    Word word = of(op).with('d', 4);
    if (row(op).pattern.field('v').width != 0) word = word.with('v', 1);
    if (row(op).pattern.field('m').width != 0) word = word.with('m', 8);
    c.append(word.word, 4);
    c.state.vtype = 2 << 3;
    c.state.vl = 2;
    c.state.vstart = 3;
    c.state.v[4 * ORACLE_VECTOR_WORDS] = 0x1234;
    batch.add(c);
  }
  for (const std::string& backend : gpusim::oracle::backends_under_test()) {
    for (const oracle::Result& r : oracle::run_gpusim(batch.cases(), backend, true)) {
      CHECK(r.signal == 5);
      CHECK(r.state.vstart == 0);
      CHECK(r.state.v[4 * ORACLE_VECTOR_WORDS] == 0x1234);
    }
  }
}
#endif

}  // namespace
}  // namespace gpusim::riscv
