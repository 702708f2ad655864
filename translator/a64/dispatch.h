// Calls the visitor's method for an instruction. Instantiates a function per row: include it in
// the one source file that runs the visitor.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "translator/a64/decode.h"
#include "translator/common/visit.h"

namespace gpusim::a64 {

/// The type in which a field reaches the visitor: register letters as Reg, all others as Imm.
template <char kLetter, unsigned kWidth>
struct FieldType {
  static constexpr bool kIsRegister =
      kWidth == 5 && std::string_view("adnmstu").find(kLetter) != std::string_view::npos;
  using Type = std::conditional_t<kIsRegister, Reg, Imm<kWidth>>;
};

namespace calls {
#define A64_ROW(name, feature, bits) GPUSIM_VISIT_CALL(name)
#define A64_ROW_IF(name, feature, bits, ...) GPUSIM_VISIT_CALL(name)
#include "translator/a64/rows/all.def"
}  // namespace calls

template <typename Visitor>
inline constexpr std::array<VisitFn<Visitor, uint32_t>, kOpCount> kVisitFns = {
#define A64_ROW(name, feature, bits)                                                      \
  visit_fn<Visitor, uint32_t, parse_bits<uint32_t>(bits), calls::Call_##name, FieldType>( \
      std::make_index_sequence<parse_bits<uint32_t>(bits).field_count>{}),
#define A64_ROW_IF(name, feature, bits, ...) A64_ROW(name, feature, bits)
#include "translator/a64/rows/all.def"
};

/// Decodes and calls `visitor.NAME(fields...)`, fields in the order of the row's bit string.
template <typename Visitor>
Visit dispatch(Visitor& visitor, const Insn& insn) {
  if (!insn) return Visit::kUnallocated;
  const auto fn = kVisitFns<Visitor>[static_cast<size_t>(insn.op())];
  if (fn == nullptr) return Visit::kNoVisitor;
  return fn(visitor, insn.word) ? Visit::kTranslated : Visit::kRefused;
}
template <typename Visitor>
Visit dispatch(Visitor& visitor, uint32_t word) {
  return dispatch(visitor, decode_at(0, word));
}

/// False: the visitor's class has no method for that row yet.
template <typename Visitor>
constexpr bool has_visitor(Op op) {
  return kVisitFns<Visitor>[static_cast<size_t>(op)] != nullptr;
}

}  // namespace gpusim::a64
