// Sequences: random ones of all instructions, and those that the passes look for.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/isa/a64/insn_oracle/oracle.h"
#include "tests/isa/a64/insn_oracle/sequence.h"

namespace gpusim::a64 {
namespace {

using oracle::Batch;
using oracle::Case;
using oracle::Rng;
using oracle::Sequence;

// Draws cases until there are `usual`, or what the environment asks for, and compares them.
template <class Draw>
void compare_cases(const std::string& cpu, unsigned usual, Draw draw) {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Batch batch;
  size_t native_pieces = 0;
  const auto flush = [&] {
    native_pieces += oracle::compare(batch, cpu, [](const std::string& text) { FAIL_CHECK(text); });
    batch.clear();
  };
  const unsigned count = oracle::case_count(usual, 16 * usual);
  for (unsigned n = 0; n < count; ++n) {
    if (batch.is_full()) flush();
    draw(rng, batch);
  }
  flush();
  MESSAGE(native_pieces << " pieces of native code, " << count << " sequences, seed " << seed);
}

TEST_CASE("random streams of all instructions") {
  compare_cases("max", 2500, [](Rng& rng, Batch& batch) {
    batch.add(oracle::random_stream(rng, batch.next_pc()));
    static constexpr unsigned kLanes[] = {1, 1, 2, 3, 4, 8};
    const unsigned lanes = kLanes[rng() % std::size(kLanes)];
    for (unsigned k = 1; k < lanes; ++k)
      batch.add_lane(oracle::random_stream_state(rng, batch.cases().back()));
  });
}

uint32_t reg(Rng& rng) { return static_cast<uint32_t>(rng() % 31); }

TEST_CASE("comparisons and the branches and selects that use them") {
  const std::string_view setters[] = {"SUBS_imm", "ADDS_imm", "SUBS_shift", "ADDS_shift",
                                      "SUBS_ext", "ANDS_imm", "ANDS_shift", "BICS_shift",
                                      "ADDS_ext", "ADCS",     "SBCS",       "CCMP_imm",
                                      "CCMP_reg", "CCMN_imm", "SETF8",      "RMIF"};
  const std::string_view users[] = {"B_cond", "B_cond",   "CSEL", "CSINC",
                                    "CSNEG",  "CCMP_reg", "ADC"};
  compare_cases("max", 4000, [&](Rng& rng, Batch& batch) {
    const std::string_view setter = setters[rng() % std::size(setters)];
    const std::string_view user = users[rng() % std::size(users)];
    Sequence s(rng);
    if (setter.find("S_") != setter.npos && rng() % 2)
      s.add(setter, {{'d', 31}});  // CMP, TST
    else
      s.add(setter, {});
    if (rng() % 3 == 0) s.add("ADD_imm", {});
    if (user == "B_cond")
      s.add(user, {{'i', 2}});
    else
      s.add(user, {});
    if (rng() % 4 == 0 && user != "B_cond") s.add("CSINC", {});
    Case c = s.make();
    c.uses_memory = false;
    if (rng() % 3 == 0)  // near the immediates that compilers compare with
      for (uint64_t& x : c.state.x) x = rng() % 64 - 32;
    batch.add(c);
  });
}

TEST_CASE("constants in pieces, and chains of bit fields") {
  compare_cases("max", 2000, [&](Rng& rng, Batch& batch) {
    const uint32_t d = reg(rng), z = static_cast<uint32_t>(rng() % 2);
    Sequence s(rng);
    switch (rng() % 4) {
      case 0:
        s.add("MOVZ", {{'d', d}, {'z', z}})
            .add("MOVK", {{'d', d}, {'z', 1}})
            .add("MOVK", {{'d', d}});
        break;
      case 1:
        s.add("MOVN", {{'d', d}, {'z', z}}).add("MOVK", {{'d', d}, {'z', z}});
        break;
      case 2:
        s.add("ADRP", {{'d', d}}).add("ADD_imm", {{'n', d}, {'z', 1}});
        break;
      default:
        s.add("UBFM", {{'d', d}})
            .add("SBFM", {{'n', d}, {'d', d}})
            .add("BFM", {{'n', d}})
            .add("EXTR", {{'m', d}});
        break;
    }
    Case c = s.make();
    c.uses_memory = false;
    batch.add(c);
  });
}

TEST_CASE("exclusives: success, a changed value, another address, CLREX") {
  compare_cases("max", 1500, [&](Rng& rng, Batch& batch) {
    const uint32_t y = static_cast<uint32_t>(rng() % 4), n = 20, status = 21;
    const uint32_t t = static_cast<uint32_t>(rng() % 20), v = static_cast<uint32_t>(rng() % 20);
    const bool pair = rng() % 3 == 0;
    Sequence s(rng);
    const std::string_view load =
        pair ? (rng() % 2 ? "LDXP" : "LDAXP") : (rng() % 2 ? "LDXR" : "LDAXR");
    const std::string_view store =
        pair ? (rng() % 2 ? "STXP" : "STLXP") : (rng() % 2 ? "STXR" : "STLXR");
    const uint32_t size = pair ? y & 1 : y;
    if (pair)
      s.add(load, {{'y', size}, {'n', n}, {'t', t}, {'u', (t + 1) % 20}});
    else
      s.add(load, {{'y', size}, {'n', n}, {'t', t}});
    switch (rng() % 6) {
      case 0:
        s.add("CLREX", {});
        break;
      case 1:
        s.add("STR_uimm", {{'y', 0}, {'i', 0}, {'n', n}, {'t', v}});
        break;
      case 2:
        s.add("ADD_imm", {{'z', 1}, {'h', 0}, {'i', 16}, {'n', n}, {'d', n}});
        break;
      default:
        break;
    }
    if (pair)
      s.add(store, {{'y', size}, {'n', n}, {'s', status}, {'t', v}, {'u', (v + 3) % 20}});
    else
      s.add(store, {{'y', size}, {'n', n}, {'s', status}, {'t', v}});
    Case c = s.make();
    // Whether a store-exclusive that fails looks at its address is up to the machine.
    c.state.x[n] = ORACLE_WINDOW + 512 + rng() % 256 * 64;
    batch.add(c);
  });
}

}  // namespace
}  // namespace gpusim::a64
