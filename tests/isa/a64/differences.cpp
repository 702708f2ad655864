#include "tests/isa/a64/differences.h"

namespace gpusim::a64 {
namespace {

constexpr std::string_view kAny = "................................";

uint32_t bits_at(uint32_t word, unsigned lsb) { return (word >> lsb) & 31; }
bool t_is_n(const Row*, uint32_t word) { return bits_at(word, 0) == bits_at(word, 5); }
bool t_is_u(const Row*, uint32_t word) { return bits_at(word, 0) == bits_at(word, 10); }
bool t_is_u_or_n(const Row*, uint32_t word) {
  return bits_at(word, 0) == bits_at(word, 10) || bits_at(word, 0) == bits_at(word, 5) ||
         bits_at(word, 10) == bits_at(word, 5);
}

template <Feature kFeature>
bool is(const Row* row, uint32_t) {
  return row != nullptr && row->feature == kFeature;
}

/// Half precision in a row that has all precisions.
bool is_folded_half(const Row* row, uint32_t word) {
  if (row == nullptr) return false;
  if (row->pattern.field('f').width == 2) return row->field('f', word) == 3;
  const bool fixed_point = row->name.find("CVT") != std::string_view::npos;
  return fixed_point && row->pattern.field('j').width != 0 && row->field('j', word) < 4;
}

bool should_be_bits_differ(const Row* row, uint32_t word) {
  return row != nullptr && (word & row->pattern.should_mask) != row->pattern.should_value;
}

using enum Tool;
using enum Verdict;

constexpr Difference kDifferences[] = {
    // objdump 2.40 knows extensions that the table leaves out.
    {kObjdump, kOnlyTool, "1..0000.........................", "", nullptr, "SME"},
    {kObjdump, kOnlyTool, "...0010.........................", "", nullptr, "SVE"},
    {kObjdump, kOnlyTool, "1.01000110......................", "", nullptr, "MTE: ADDG, SUBG"},
    {kObjdump, kOnlyTool, "10.11010110.....000.............", "", nullptr,
     "MTE: IRG, GMI, SUBP, SUBPS"},
    {kObjdump, kOnlyTool, "11011001........................", "", nullptr, "MTE: STG, LDG ..."},
    {kObjdump, kOnlyTool, "0110100..0......................", "stgp", nullptr, "MTE: STGP"},
    {kObjdump, kOnlyTool, "01010100...................1....", "bc.", nullptr, "FEAT_HBC: BC.cond"},
    {kObjdump, kOnlyTool, "00011.01........................", "cpy", nullptr, "FEAT_MOPS"},
    {kObjdump, kOnlyTool, "00011.01........................", "set", nullptr, "FEAT_MOPS"},
    {kObjdump, kOnlyTool, ".101101011000000................", "", nullptr,
     "FEAT_CSSC: ABS, CNT, CTZ"},
    {kObjdump, kOnlyTool, ".001000111......................", "", nullptr, "FEAT_CSSC: SMAX ..."},
    {kObjdump, kOnlyTool, ".0011010110.....0110............", "", nullptr, "FEAT_CSSC: SMAX ..."},
    {kObjdump, kOnlyTool, "11111000........................", "", nullptr, "FEAT_LS64"},
    {kObjdump, kOnlyTool, "11010101000000110011000001111111", "tcommit", nullptr, "TME"},
    {kObjdump, kOnlyTool, "11010101000000110011..1000111111", "dsb", nullptr, "FEAT_XS: DSB nXS"},
    {kObjdump, kOnlyTool, "11010101000000110100....01111111", "smst", nullptr,
     "SME: SMSTART, SMSTOP"},
    {kObjdump, kOnlyTool, "11010100011.....................", "tcancel", nullptr, "TME"},

    // objdump goes by masks that leave checks of the manual out, or that are stricter than it.
    {kObjdump, kOnlyTool, "1101010100......................", "m", nullptr,
     "MSR, MRS: prints op0 = 0 as a system register, which only op0 = 2 and 3 select"},
    {kObjdump, kOnlyTool, "0..01110.11.....11.011..........", "fml", nullptr,
     "FMLAL, FMLSL, FMLAL2, FMLSL2: sz = 1 is unallocated"},
    {kObjdump, kRegisters, "1101010100000...0100............", "msr", nullptr,
     "MSR (immediate): for one-bit fields takes CRm 0 and 1 only, a CPU ignores CRm<3:1>"},
    {kObjdump, kOnlyOurs, "..001000110.....1...............", "", should_be_bits_differ,
     "LDAR: Rs and Rt2 should be ones, a CPU may execute it whatever they are"},
    {kObjdump, kOnlyOurs, "..111000101.....110000..........", "", should_be_bits_differ,
     "LDAPR: Rs should be ones, a CPU may execute it whatever it is"},
    {kObjdump, kName, "11010101000000110011....11111111", "msr", should_be_bits_differ,
     "SB: CRm should be zero, a CPU may execute it whatever it is"},
    {kObjdump, kName, "11010101000000000100....0..11111", "msr", should_be_bits_differ,
     "CFINV, XAFLAG, AXFLAG: CRm should be zero, a CPU may execute them whatever it is"},
    {kObjdump, kOnlyOurs, "0110100..1......................", "", t_is_u_or_n,
     "LDPSW: constrained unpredictable, Rt = Rt2 or write-back to a loaded register"},

    // Capstone 4.0.2 stops at Armv8.1.
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kFp16>, "no FP16"},
    {kCapstone, kOnlyOurs, kAny, "", is_folded_half, "no FP16"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kLse>, "no LSE"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kLor>, "no LOR"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kRdm>, "no RDM"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kPauth>, "no PAuth"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kRcpc>, "no LRCPC"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kRcpc2>, "no LRCPC2"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kJscvt>, "no JSCVT"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kFcma>, "no FCMA"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kDotProd>, "no DotProd"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kFhm>, "no FHM"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kFlagM>, "no FlagM"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kFlagM2>, "no FlagM2"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kFrintts>, "no FRINTTS"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kBf16>, "no BF16"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kI8mm>, "no I8MM"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kSha3>, "no SHA512, SHA3"},
    {kCapstone, kOnlyOurs, kAny, "", is<Feature::kSm>, "no SM3, SM4"},
    {kCapstone, kName, "11010101000000110011....11111111", "msr", nullptr, "no SB"},
    {kCapstone, kOnlyOurs, "0000000000000000................", "", nullptr, "no UDF"},

    // Capstone refuses what the manual calls constrained unpredictable.
    {kCapstone, kOnlyOurs, "1.001000011.....................", "", t_is_u, "LDXP, LDAXP: Rt = Rt2"},
    {kCapstone, kOnlyOurs, "..101.0..1......................", "", t_is_u_or_n,
     "LDP, LDNP, LDPSW: Rt = Rt2, or write-back to a loaded register"},
    {kCapstone, kOnlyOurs, "..10100..0......................", "", t_is_u_or_n,
     "STP: write-back to a stored register"},
    {kCapstone, kOnlyOurs, "..111000..0..........1..........", "", t_is_n,
     "LDR, LDRS: write-back to the loaded register"},

    // Capstone is stricter or laxer than the manual.
    {kCapstone, kOnlyOurs, "..111000..0.........10..........", "", t_is_n,
     "LDTR: refuses Rt = Rn as if it wrote back"},
    {kCapstone, kOnlyOurs, "0.001110000.....000011..........", "", nullptr,
     "DUP: bits of imm5 above the lowest set one are ignored by a CPU"},
    {kCapstone, kOnlyOurs, "01101110000.....0....1..........", "", nullptr,
     "INS: bits of imm4 below the element's size are ignored by a CPU"},
    {kCapstone, kOnlyOurs, "1101010100000...0100............", "", nullptr,
     "MSR (immediate): knows SPSel, DAIFSet, DAIFClr, PAN and UAO, the last two with CRm 0 and 1"},
    {kCapstone, kOnlyTool, "1101010100......................", "m", nullptr,
     "MSR, MRS: prints op0 = 0 as a system register, which only op0 = 2 and 3 select"},

    // The same instruction under another of its names.
    {kCapstone, kName, "01010100...................00010", "b.hs", nullptr, "B.CS"},
    {kCapstone, kName, "01010100...................00011", "b.lo", nullptr, "B.CC"},
    {kCapstone, kName, ".0110011..............11111.....", "bfi", nullptr, "BFC"},
    {kCapstone, kName, "..011010100.....111.............", "c", nullptr,
     "CINC, CINV, CNEG: not the preferred names where the condition is AL or NV"},
};

}  // namespace

bool Difference::covers(const Row* row, uint32_t word, std::string_view printed) const {
  if (!printed.starts_with(mnemonic)) return false;
  for (unsigned i = 0; i < 32; ++i) {
    if (bits[i] != '.' && (bits[i] == '1') != (((word >> (31 - i)) & 1) != 0)) return false;
  }
  return when == nullptr || when(row, word);
}

std::span<const Difference> differences() { return kDifferences; }

}  // namespace gpusim::a64
