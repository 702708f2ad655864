// The decode table by itself: no ambiguous rows, every row can be drawn, fields reach visitors.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "translator/a64/decode.h"
#include "translator/a64/extensions.h"

#include <doctest/doctest.h>

#include <bit>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "translator/a64/dispatch.h"

namespace gpusim::a64 {
namespace {

using Pair = std::pair<Op, Op>;

// Rows that lie inside another one and own its words (inner, outer). Declared here so that a new
// overlap is a decision.
const std::set<Pair> kNested = {
    {Op::NOP, Op::HINT},
    {Op::YIELD, Op::HINT},
    {Op::WFE, Op::HINT},
    {Op::WFI, Op::HINT},
    {Op::SEV, Op::HINT},
    {Op::SEVL, Op::HINT},
    {Op::CFINV, Op::MSR_imm},
    {Op::XAFLAG, Op::MSR_imm},
    {Op::AXFLAG, Op::MSR_imm},
    {Op::STNP, Op::STP},
    {Op::LDNP, Op::LDP},
    {Op::STNP_fp, Op::STP_fp},
    {Op::LDNP_fp, Op::LDP_fp},
    {Op::PRFUM, Op::LDURS},
    {Op::PRFM_reg, Op::LDRS_reg},
    {Op::PRFM_uimm, Op::LDRS_uimm},
    {Op::BFCVT, Op::FCVT},
    {Op::LD_replicate, Op::LD_single},
    {Op::LD_replicate_post, Op::LD_single_post},
};

TEST_CASE("rows that share words are nested, and declared") {
  std::set<Pair> found;
  for (const Row& a : rows()) {
    for (const Row& b : rows()) {
      if (&a == &b || !a.pattern.overlaps(b.pattern)) continue;
      INFO(a.name << " and " << b.name);
      CHECK((a.pattern.strictly_inside(b.pattern) != b.pattern.strictly_inside(a.pattern)));
      if (a.pattern.strictly_inside(b.pattern)) found.insert({a.op, b.op});
    }
  }
  CHECK(found == kNested);
}

TEST_CASE("the table is consistent") {
  CHECK(rows().size() == kOpCount);
  for (size_t i = 0; i < rows().size(); ++i) {
    const Row& r = rows()[i];
    CHECK(static_cast<size_t>(r.op) == i);
    CHECK(&row(r.op) == &r);
    // Every bit is fixed, ignored, or in one field.
    uint32_t covered = r.pattern.mask ^ r.pattern.should_mask;
    for (unsigned f = 0; f < r.pattern.field_count; ++f) {
      const BitField& field = r.pattern.fields[f];
      const uint32_t bits = ((1u << field.width) - 1) << field.lsb;
      CHECK((covered & bits) == 0);
      covered |= bits;
    }
    CHECK(covered == ~0u);
  }
}

TEST_CASE("the bucket look-up finds what a search of all rows finds") {
  std::mt19937 rng(1);
  const auto search = [](uint32_t word) -> const Row* {
    const Row* best = nullptr;
    for (const Row& r : rows()) {
      if (!r.pattern.matches(word)) continue;
      if (best == nullptr || r.pattern.strictly_inside(best->pattern)) best = &r;
    }
    if (best == nullptr || best->allowed == nullptr) return best;
    return best->allowed(word) ? best : nullptr;
  };
  unsigned wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint32_t word = static_cast<uint32_t>(rng());
    wrong += decode(word) != search(word);
  }
  CHECK(wrong == 0);
}

TEST_CASE("random words belong to their row, and vary every field") {
  std::mt19937 rng(2);
  for (const Row& r : rows()) {
    uint32_t ones = 0;
    uint32_t zeros = 0;
    for (int i = 0; i < 200; ++i) {
      const uint32_t word = random_word(r, rng);
      CHECK(decode(word) == &r);
      CHECK((word & r.pattern.should_mask) == r.pattern.should_value);
      ones |= word;
      zeros |= ~word;
    }
    if (r.allowed != nullptr) continue;  // a constraint may hold bits
    const uint32_t variable = ~(r.pattern.mask | r.pattern.should_mask);
    const uint32_t stuck = variable & ~(ones & zeros);
    INFO(r.name << " never varies " << stuck);
    CHECK(stuck == 0);
  }
}

TEST_CASE("bit mask immediates: as many as the manual's formula gives") {
  // Element of 2^k bits: 2^k - 1 run lengths, 2^k rotations.
  unsigned expected_64 = 0;
  for (unsigned size = 2; size <= 64; size *= 2) expected_64 += size * (size - 1);
  unsigned count_64 = 0;
  unsigned count_32 = 0;
  for (uint32_t n = 0; n < 2; ++n) {
    for (uint32_t imms = 0; imms < 64; ++imms) {
      const uint32_t low = ((n << 6) | (~imms & 63));
      const unsigned rotations = low == 0 ? 0 : std::bit_floor(low);  // of distinct effect
      if (is_bit_mask(1, n, imms)) count_64 += rotations;
      if (is_bit_mask(0, n, imms)) count_32 += rotations;
    }
  }
  CHECK(count_64 == expected_64);
  CHECK(count_32 == expected_64 - 64 * 63);
}

struct Known {
  uint32_t word;
  std::string_view row;  // "": unallocated
};

TEST_CASE("words at the edges of the allocated space") {
  const Known known[] = {
      {0x00000000, "UDF"},
      {0x91000c20, "ADD_imm"},
      {0x0b208c20, "ADD_ext"},
      {0x0b20b420, ""},  // ADD (extended register) by 5
      {0x0b008420, ""},  // ADD (shifted register), 32 bits by 33
      {0x8b008420, "ADD_shift"},
      {0x0bc00020, ""},  // ADD has no ROR
      {0x12400020, ""},  // AND, 32 bits, N = 1
      {0x9200f020, "AND_imm"},
      {0x9200f420, ""},  // AND, element all ones
      {0x52c00020, ""},  // MOVZ, 32 bits, LSL 32
      {0x53008020, ""},  // UBFM, 32 bits, imms 32
      {0xd503201f, "NOP"},
      {0xd50320df, "HINT"},  // DGH
      {0xd503233f, "HINT"},  // PACIASP
      {0xd65f03c0, "RET"},
      {0xd65f0bff, "RETA"},
      {0xd4000001, "SVC"},
      {0xd4000000, ""},
      {0xf9800000, "PRFM_uimm"},
      {0xf9c00000, ""},
      {0xb9c00000, ""},  // LDRSW to 32 bits
      {0x3dc00000, "LDR_fp_uimm"},
      {0x7dc00000, ""},       // 128-bit load with size 1
      {0x68c00000, "LDPSW"},  // post-index
      {0x68400000, ""},       // LDNP has no sign-extending form
      {0x28400000, "LDNP"},
      {0x28c00000, "LDP"},
      {0x08207c00, "CASP"},
      {0x08217c00, ""},  // odd register pair
      {0x1e202000, "FCMP"},
      {0x1ea02000, ""},      // ftype 2
      {0x1ee02000, "FCMP"},  // half precision
      {0x1e244000, "FRINTN"},
      {0x1e224000, ""},  // FCVT from single to single
      {0x1e624000, "FCVT"},
      {0x1e63c000, "FCVT"},
      {0x1e634000, "BFCVT"},
      {0x9eae0000, "FMOV_top_to_gpr"},
      {0x9e260000, ""},  // FMOV X, S
      {0x0ee08400, ""},  // ADD 1D
      {0x4ee08400, "ADD_v"},
      {0x5ee08400, "ADD_s"},
      {0x0f000400, "MOVI_family_v"},
      {0x2f00f400, ""},  // FMOV 1D
      {0x6f00f400, "MOVI_family_v"},
      {0x0f080400, "SSHR_v"},
      {0x0f400400, ""},  // SSHR 1D
      {0x4f400400, "SSHR_v"},
      {0x0c407000, "LD_multi"},
      {0x0c408c00, ""},          // LD2 1D
      {0x0c40ac00, "LD_multi"},  // LD1 of two 1D
      {0x0d40c000, "LD_replicate"},
      {0x0d40d000, ""},  // LD1R with S = 1
      {0x0d00c000, ""},  // no store from all lanes
      {0x0e003c00, ""},  // UMOV with imm5 = 0
      {0x0e013c00, "UMOV_v"},
      {0x4e083c00, "UMOV_v"},
      {0x0e083c00, ""},
      {0xffffffff, ""},
  };
  for (const Known& k : known) {
    const Row* r = decode(k.word);
    INFO("word " << k.word);
    CHECK((r == nullptr ? std::string_view() : r->name) == k.row);
  }
}

struct Recorder {
  std::vector<int64_t> seen;

  bool ADD_imm(bool sf, bool sh, Imm<12> imm12, Reg n, Reg d) {
    seen = {sf, sh, imm12.value, n.index, d.index};
    return true;
  }
  bool MADD(uint32_t sf, Reg m, Reg a, Reg n, Reg d) {  // an Imm<1> is a uint32_t too
    seen = {sf, m.index, a.index, n.index, d.index};
    return true;
  }
  bool LDUR(Imm<2> size, Imm<9> imm9, Reg n, Reg t) {
    seen = {size.value, imm9.sign_extend(), n.index, t.index};
    return true;
  }
  bool ADR(Imm<2> low, Imm<19> high, Reg d) {
    seen = {concat(high, low).sign_extend(), d.index};
    return true;
  }
  bool NOP() { return false; }
};

TEST_CASE("dispatch hands the fields over in the order of the bit string") {
  Recorder r;
  CHECK(dispatch(r, 0x917ffca5u) == Visit::kTranslated);  // add x5, x5, #0xfff, lsl #12
  CHECK(r.seen == std::vector<int64_t>{1, 1, 0xfff, 5, 5});
  CHECK(dispatch(r, 0x1b031041u) == Visit::kTranslated);  // madd w1, w2, w3, w4
  CHECK(r.seen == std::vector<int64_t>{0, 3, 4, 2, 1});
  CHECK(dispatch(r, 0xf85f8041u) == Visit::kTranslated);  // ldur x1, [x2, #-8]
  CHECK(r.seen == std::vector<int64_t>{3, -8, 2, 1});
  CHECK(dispatch(r, 0x70ffffe7u) == Visit::kTranslated);  // adr x7, .-1
  CHECK(r.seen == std::vector<int64_t>{-1, 7});
  CHECK(dispatch(r, 0xd503201fu) == Visit::kRefused);
  CHECK(dispatch(r, 0xd65f03c0u) == Visit::kNoVisitor);
  CHECK(dispatch(r, 0xffffffffu) == Visit::kUnallocated);
  CHECK(has_visitor<Recorder>(Op::ADR));
  CHECK_FALSE(has_visitor<Recorder>(Op::RET));
}

TEST_CASE("names") {
  CHECK(base_mnemonic(row(Op::ADD_imm)) == "add");
  CHECK(base_mnemonic(row(Op::SHA256H2)) == "sha256h2");
  CHECK(row(Op::LDR_fp_prepost).name == "LDR_fp_prepost");
  CHECK(row(Op::LDR_fp_prepost).group == Group::kLoadsStores);
  CHECK(row(Op::CAS).feature == Feature::kLse);
  CHECK(decode_at(0x400000, 0x91000c20).field('i') == 3);
}

TEST_CASE("instructions of absent extensions have their names") {
  const std::pair<uint32_t, const char*> examples[] = {
      {0x04e0e3e0, "SVE"},  {0x0420e3e7, "SVE"},   // cntd x0; cntb x7
      {0xa5804000, "SVE"},                         // ld1w, scalar plus scalar
      {0x80800000, "SME"},                         // fmopa za0.s
      {0xd9600000, "MTE"},  {0xd9200800, "MTE"},   // ldg x0, [x0]; stg x0, [x0]
      {0x91800000, "MTE"},  {0xd1800000, "MTE"},   // addg, subg
      {0x69000000, "MTE"},  {0x9ac00000, "MTE"},   // stgp, subp
      {0xbac00000, "MTE"},  {0x9ac01000, "MTE"},   // subps, irg
      {0x9ac01400, "MTE"},  {0x19010440, "MOPS"},  // gmi, cpyfp
      {0xdac123e0, "PAuth"},                       // paciza x0
  };
  for (const auto& [encoding, extension] : examples) {
    const uint32_t word = encoding;
    CAPTURE(word);
    const char* const found = absent_extension(word);
    REQUIRE(found);
    CHECK(std::string(found) == extension);
  }
  for (const uint32_t word : {0x8b010000u, 0x9ac10800u, 0xb8200002u, 0u, 0xffffffffu, 0x68400000u})
    CHECK(absent_extension(word) == nullptr);
}

}  // namespace
}  // namespace gpusim::a64
