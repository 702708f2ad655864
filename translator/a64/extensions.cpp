#include "translator/a64/extensions.h"

#include "translator/a64/decode.h"

namespace gpusim::a64 {
namespace {

// Encodings that rows/ leaves out; Arm ARM, C4.1, "A64 instruction set encoding".
struct Encoding {
  uint32_t mask, value;
  const char* extension;
};
constexpr Encoding kAbsent[] = {
    {0x1e000000, 0x04000000, "SVE"},
    {0x9e000000, 0x80000000, "SME"},
    {0xff200000, 0xd9200000, "MTE"},   // LDG, STG and kin
    {0xffc00000, 0x91800000, "MTE"},   // ADDG
    {0xffc00000, 0xd1800000, "MTE"},   // SUBG
    {0xfe400000, 0x68000000, "MTE"},   // STGP
    {0xdfe0fc00, 0x9ac00000, "MTE"},   // SUBP, SUBPS
    {0xffe0f800, 0x9ac01000, "MTE"},   // IRG, GMI
    {0x3f200c00, 0x19000400, "MOPS"},  // CPY*, SET*
};

}  // namespace

const char* absent_extension(uint32_t word) {
  if (const Row* row = decode(word)) return row->feature == Feature::kPauth ? "PAuth" : nullptr;
  for (const Encoding& e : kAbsent)
    if ((word & e.mask) == e.value) return e.extension;
  return nullptr;
}

}  // namespace gpusim::a64
