// System registers and instructions, encoding by encoding, against qemu-aarch64.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "tests/isa/a64/insn_oracle/oracle.h"
#include "tests/isa/a64/insn_oracle/sequence.h"

namespace gpusim::a64 {
namespace {

using oracle::Batch;
using oracle::Case;
using oracle::Rng;
using oracle::Sequence;

void compare(const Batch& batch, const std::string& cpu) {
  oracle::compare(batch, cpu, [](const std::string& text) { FAIL_CHECK(text); });
}

uint32_t reg(Rng& rng) { return static_cast<uint32_t>(rng() % 31); }

TEST_CASE("system registers and cache maintenance that user code has") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  struct Encoding {
    const char* row;
    uint32_t p, o, C, g, l;
  };
  static constexpr Encoding kEncodings[] = {
      {"MRS", 1, 3, 4, 2, 0}, {"MRS", 1, 3, 4, 4, 0},     {"MRS", 1, 3, 4, 4, 1},
      {"MRS", 1, 3, 0, 0, 1}, {"MRS", 1, 3, 0, 0, 7},     {"MRS", 1, 0, 0, 0, 0},
      {"MRS", 1, 0, 0, 0, 6}, {"MSR_reg", 1, 3, 4, 2, 0}, {"MSR_reg", 1, 3, 4, 4, 1},
  };
  Batch batch;
  for (const Encoding& e : kEncodings) {
    for (int i = 0; i < 20; ++i) {
      Sequence s(rng);
      s.add(e.row, {{'p', e.p}, {'o', e.o}, {'C', e.C}, {'g', e.g}, {'l', e.l}});
      batch.add(s.make());
    }
  }
  for (int i = 0; i < 20; ++i) {  // FPCR: bits that are RES0 here read as zero
    const uint32_t t = reg(rng);
    Sequence s(rng);
    s.add("MSR_reg", {{'p', 1}, {'o', 3}, {'C', 4}, {'g', 4}, {'l', 0}, {'t', t}});
    s.add("MRS", {{'p', 1}, {'o', 3}, {'C', 4}, {'g', 4}, {'l', 0}, {'t', (t + 1) % 31}});
    Case c = s.make();
    c.state.x[t] &= ~uint64_t{0x3f0000};  // qemu keeps AArch32's LEN and STRIDE
    batch.add(c);
  }
  static constexpr uint32_t kDcOps[] = {4, 10, 11, 14};  // CRm: ZVA, CVAC, CVAU, CIVAC
  for (const uint32_t crm : kDcOps) {
    for (int i = 0; i < 40; ++i) {
      const uint32_t t = reg(rng);
      Sequence s(rng);
      s.add("SYS", {{'o', 3}, {'C', 7}, {'g', crm}, {'l', 1}, {'t', t}});
      Case c = s.make();
      // Cache maintenance of what is not mapped faults on some machines; DC ZVA is below.
      c.state.x[t] = ORACLE_WINDOW + 512 + rng() % (ORACLE_WINDOW_BYTES - 0x1000 - 1024);
      batch.add(c);
    }
  }
  compare(batch, "cortex-a57");
}

// The name that assemblers give to registers without one, but for the op0 field's place.
std::string encoding(const char* row, const Case& c) {
  const uint32_t w = c.words[0];
  return std::string(row) + " S" + std::to_string(w >> 19 & 3) + "_" + std::to_string(w >> 16 & 7) +
         "_C" + std::to_string(w >> 12 & 15) + "_C" + std::to_string(w >> 8 & 15) + "_" +
         std::to_string(w >> 5 & 7);
}

// Encodings that user code may use under one of the two only, or that do other things under qemu.
struct Exception {
  std::string_view encoding;
  const char* reason;
};
constexpr Exception kExceptions[] = {
    {"MSR S3_3_C13_C0_2", "TPIDR_EL0 serves the guest program"},
    {"MRS S2_3_C0_C1_0", "MDCCSR_EL0: Linux traps the debug channel (MDSCR_EL1.TDCC)"},
    {"SYS S1_3_C7_C4_1", "DC ZVA: above"},
    {"SYS S1_3_C7_C12_1", "DC CVAP: a no-op here; v8.2"},
    {"SYS S1_3_C7_C13_1", "DC CVADP: a no-op here; v8.5"},
};
bool is_excepted(const std::string& encoding) {
  for (const Exception& e : kExceptions)
    if (e.encoding == encoding) return true;
  return false;
}

// Values are not compared: those of the identification registers are another machine's.
void sweep(const char* row, uint32_t first_word) {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Batch batch;
  const auto flush = [&] {
    const auto want = oracle::run_qemu(batch.cases(), "cortex-a57");
    const auto got = oracle::run_gpusim(
        batch.cases(), translate(batch.cases(), oracle::Passes::kUsual), oracle::Variant{});
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string name = encoding(row, batch.cases()[i]);
      if (!is_excepted(name))
        CHECK_MESSAGE(want[i].signal == got[i].signal,
                      name << ": signal " << got[i].signal << ", under qemu " << want[i].signal);
    }
    batch.clear();
  };
  const uint32_t count =
      first_word >> 20 & 1 ? 1 << 15 : 1 << 14;  // MSR and MRS have op0 = 2 and 3
  for (uint32_t i = 0; i < count; ++i) {
    if (batch.is_full()) flush();
    const uint32_t t = reg(rng);
    Case c;
    c.words = {first_word + (i << 5 | t)};
    if (is_excepted(encoding(row, c))) continue;
    c.state = oracle::random_state(rng);
    c.state.x[t] = ORACLE_WINDOW + 4096;
    batch.add(std::move(c));
  }
  flush();
}

TEST_CASE("every system register can be read as under qemu") { sweep("MRS", 0xd5300000); }
TEST_CASE("every system register can be written as under qemu") { sweep("MSR", 0xd5100000); }
TEST_CASE("every system instruction can be used as under qemu") { sweep("SYS", 0xd5080000); }

TEST_CASE("identification registers") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  for (const char* cpu : {"cortex-a57", "neoverse-n1"}) {
    CAPTURE(cpu);
    Batch batch;
    for (uint32_t crm = 0; crm < 16; ++crm) {
      for (uint32_t op2 = 0; op2 < 8; ++op2) {
        Sequence s(rng);
        batch.add(s.add("MRS", {{'p', 1}, {'o', 0}, {'C', 0}, {'g', crm}, {'l', op2}}).make());
      }
    }
    compare(batch, cpu);
  }
}

TEST_CASE("DIT and SSBS keep what is written to them") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Batch batch;
  for (int i = 0; i < 100; ++i) {
    Sequence s(rng);
    for (const uint32_t op2 : {5u, 6u})
      s.add("MSR_reg", {{'p', 1}, {'o', 3}, {'C', 4}, {'g', 2}, {'l', op2}});
    if (i % 2) s.add("MSR_imm", {{'o', 3}, {'l', 1 + (i >> 1 & 1)}});
    for (const uint32_t op2 : {5u, 6u})
      s.add("MRS", {{'p', 1}, {'o', 3}, {'C', 4}, {'g', 2}, {'l', op2}, {'t', op2}});
    batch.add(s.make());
  }
  compare(batch, "max");
}

// What is ours alone: PACGA's code and RNDR's numbers.
TEST_CASE("PACGA and RNDR") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Batch batch;
  Sequence s(rng);
  s.add("PACGA", {{'d', 0}, {'n', 8}, {'m', 9}})
      .add("PACGA", {{'d', 1}, {'n', 8}, {'m', 9}})
      .add("PACGA", {{'d', 2}, {'n', 9}, {'m', 8}});
  for (const uint32_t t : {3u, 4u})
    s.add("MRS", {{'p', 1}, {'o', 3}, {'C', 2}, {'g', 4}, {'l', t - 3}, {'t', t}});
  Case c = s.make();
  c.state.x[8] = 0x123456789abcdef0;
  c.state.x[9] = 1;
  batch.add(c);
  for (const oracle::Variant& v : oracle::all_variants()) {
    CAPTURE(v.name());
    const auto got = oracle::run_gpusim(batch.cases(), translate(batch.cases(), v.passes, "max"), v);
    const uint64_t* x = got[0].state.x;
    CHECK(x[0] == x[1]);
    CHECK(x[0] != x[2]);
    CHECK(static_cast<uint32_t>(x[0]) == 0);
    CHECK(x[0] != 0);
    CHECK(x[3] != x[4]);
    CHECK(got[0].state.nzcv == 0);
  }
}

// qemu-user reports another pc for it.
TEST_CASE("DC ZVA faults where the block can't be written") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Batch batch;
  for (int i = 0; i < 40; ++i) {
    const uint32_t t = reg(rng);
    Sequence s(rng);
    s.add("SYS", {{'o', 3}, {'C', 7}, {'g', 4}, {'l', 1}, {'t', t}});
    Case c = s.make();
    c.state.x[t] = i % 2 ? ORACLE_READ_ONLY + rng() % 0x1000 : ORACLE_WINDOW - 1 - rng() % 4096;
    batch.add(c);
  }
  for (const oracle::Variant& v : oracle::all_variants()) {
    const auto got = oracle::run_gpusim(batch.cases(), translate(batch.cases(), v.passes), v);
    for (size_t i = 0; i < got.size(); ++i) {
      const Case& c = batch.cases()[i];
      const oracle::Result want{
          .signal = 11, .pc = c.pc, .exit = 0, .state = c.state, .changes = {}};
      CHECK(difference(i, c, want, got[i]) == "");
    }
  }
}

}  // namespace
}  // namespace gpusim::a64
