// What several parts of the table share.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/compare.h"
#include "device_sim/uir/fp_aux.h"
#include "translator/common/block_builder.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/matrix_op.h"

namespace gpusim::ptx {

constexpr uint64_t ones(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

// Of a type of floats.
inline FpFormat format(Type t) {
  return t.bits == 16 ? FpFormat::kF16 : t.bits == 32 ? FpFormat::kF32 : FpFormat::kF64;
}

// What 16-bit instructions leave above their result goes.
inline void trim(Emitter& e, Slot d, Type t) {
  if (t.bits < 32) e.b.andi64(d, d, ones(t.bits));
}

constexpr uint8_t compare_kind(CompareRelation r, bool is_32bit) {
  return CompareKind{r, is_32bit, false}.pack();
}
inline constexpr uint8_t kBelow32 = compare_kind(CompareRelation::kLessUnsigned, true);
inline constexpr uint8_t kEqual64 = compare_kind(CompareRelation::kEqual, false);
inline constexpr uint8_t kLess64 = compare_kind(CompareRelation::kLessSigned, false);
inline constexpr uint8_t kBelow64 = compare_kind(CompareRelation::kLessUnsigned, false);

// d = the single a, within +-`most` (its bits); NaNs stay. d may be a.
inline void clamp_single(Emitter& e, Slot d, Slot a, uint64_t most) {
  const BlockBuilder::Temporaries own(e.b);
  const Slot size = e.temp(), clamped = e.temp();
  e.b.andi64(size, a, 0x7fffffff);
  const Slot bound = e.konst(most), infinity = e.konst(0x7f800000);
  e.b.sel_cmp(clamped, bound, size, bound, size, kBelow64);
  e.b.sel_cmp(clamped, size, clamped, infinity, size, kBelow64);
  e.b.andi64(size, a, 0x80000000);
  e.b.or64(d, clamped, size);
}

// d = a truth combined with a predicate, by .and, .or or .xor.
inline void combine(Emitter& e, const Instruction& i, Slot d, Slot truth, const Operand& p) {
  const Slot c = e.src(p, kPredicateType);
  if (i.has("and"))
    e.b.and64(d, truth, c);
  else if (i.has("or"))
    e.b.or64(d, truth, c);
  else
    e.b.xor64(d, truth, c);
}

// .xorsign.abs: d = compute(|a|, |b|), negative where one of both is; a NaN stays as it is.
template <class Compute>
void min_max_of_sizes(Emitter& e, Slot d, Slot a, Slot b, uint64_t sign, uint64_t nan,
                      Compute compute) {
  const BlockBuilder::Temporaries own(e.b);
  const Slot x = e.temp(), y = e.temp(), signs = e.temp();
  e.b.xor64(signs, a, b);
  e.b.andi64(signs, signs, sign);
  e.b.andi64(x, a, sign - 1);
  e.b.andi64(y, b, sign - 1);
  compute(x, x, y);
  e.b.or64(signs, signs, x);
  const Slot canonical = e.konst(nan);
  e.b.sel_cmp(d, x, signs, x, canonical, kEqual64);
}

// Comparisons of floats: which of the flags N, Z and C, C, C and V of fcmp satisfy them.
inline uint16_t truth_table(const Instruction& i) {
  constexpr uint16_t less = 1 << 0b1000, equal = 1 << 0b0110, greater = 1 << 0b0010,
                     unordered = 1 << 0b0011;
  const std::pair<const char*, uint16_t> all[] = {{"eq", equal},
                                                  {"ne", less | greater},
                                                  {"lt", less},
                                                  {"le", less | equal},
                                                  {"gt", greater},
                                                  {"ge", greater | equal},
                                                  {"equ", equal | unordered},
                                                  {"neu", less | greater | unordered},
                                                  {"ltu", less | unordered},
                                                  {"leu", less | equal | unordered},
                                                  {"gtu", greater | unordered},
                                                  {"geu", greater | equal | unordered},
                                                  {"num", less | equal | greater},
                                                  {"nan", unordered}};
  for (const auto& [name, table] : all)
    if (i.has(name)) return table;
  return 0;
}

// The types of matrices that the opcode names, in their order. tf32 is none of PTX's own.
inline std::vector<MatrixType> matrix_types_of(const Instruction& i) {
  static constexpr std::pair<const char*, MatrixType> kAll[] = {
      {"f16", MatrixType::kF16},   {"bf16", MatrixType::kBf16}, {"tf32", MatrixType::kTf32},
      {"f64", MatrixType::kF64},   {"u8", MatrixType::kU8},     {"s8", MatrixType::kS8},
      {"f32", MatrixType::kF32},   {"s32", MatrixType::kS32},   {"e4m3", MatrixType::kE4m3},
      {"e5m2", MatrixType::kE5m2}, {"u4", MatrixType::kU4},     {"s4", MatrixType::kS4},
      {"b1", MatrixType::kB1}};
  std::vector<MatrixType> out;
  for (const std::string& m : i.modifiers)
    for (const auto& [name, type] : kAll)
      if (m == name) out.push_back(type);
  return out;
}

}  // namespace gpusim::ptx
