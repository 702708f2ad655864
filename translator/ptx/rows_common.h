// What several parts of the table share.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/compare.h"
#include "device_sim/uir/fp_aux.h"
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

// Of products of matrices: the types that the opcode names, in their order: tf32 is none of PTX's
// own.
inline std::vector<MatrixType> matrix_types_of(const Instruction& i) {
  static constexpr std::pair<const char*, MatrixType> kAll[] = {
      {"f16", MatrixType::kF16},  {"bf16", MatrixType::kBf16}, {"tf32", MatrixType::kTf32},
      {"f64", MatrixType::kF64},  {"u8", MatrixType::kU8},     {"s8", MatrixType::kS8},
      {"f32", MatrixType::kF32},  {"s32", MatrixType::kS32},   {"e4m3", MatrixType::kE4m3},
      {"e5m2", MatrixType::kE5m2}};
  std::vector<MatrixType> out;
  for (const std::string& m : i.modifiers)
    for (const auto& [name, type] : kAll)
      if (m == name) out.push_back(type);
  return out;
}

}  // namespace gpusim::ptx
