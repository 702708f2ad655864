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
    const auto got = oracle::run_gpusim(batch.cases(), translate(batch.cases(), v.optimise), v);
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
