// Calls the visitor's method for an instruction. Instantiates a function per row: include it in the
// one source file that runs the visitor.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "translator/common/visit.h"
#include "translator/riscv/decode.h"

namespace gpusim::riscv {

/// The type in which a field reaches the visitor: register letters as Reg, all others as Imm.
template <char kLetter, unsigned kWidth>
struct FieldType {
  static constexpr bool kIsRegister =
      kWidth == 5 && std::string_view("adnm").find(kLetter) != std::string_view::npos;
  using Type = std::conditional_t<kIsRegister, Reg, Imm<kWidth>>;
};

namespace calls {
#define RV_ROW(name, extension, bits) GPUSIM_VISIT_CALL(name)
#define RV_ROW_IF(name, extension, bits, ...) GPUSIM_VISIT_CALL(name)
#include "translator/riscv/rows/all.def"
}  // namespace calls

template <typename Visitor>
inline constexpr std::array<VisitFn<Visitor, uint32_t>, kOpCount> kVisitFns = {
#define RV_ROW(name, extension, bits)                                                     \
  visit_fn<Visitor, uint32_t, parse_bits<uint32_t>(bits), calls::Call_##name, FieldType>( \
      std::make_index_sequence<parse_bits<uint32_t>(bits).field_count>{}),
#define RV_ROW_IF(name, extension, bits, ...) RV_ROW(name, extension, bits)
#include "translator/riscv/rows/all.def"
};

/// Calls `visitor.NAME(fields...)`, fields in the order of the row's bit string.
template <typename Visitor>
Visit dispatch(Visitor& visitor, const Insn& insn) {
  if (!insn) return Visit::kUnallocated;
  const auto fn = kVisitFns<Visitor>[static_cast<size_t>(insn.op())];
  if (fn == nullptr) return Visit::kNoVisitor;
  return fn(visitor, insn.word) ? Visit::kTranslated : Visit::kRefused;
}

/// False: the visitor's class has no method for that row yet.
template <typename Visitor>
constexpr bool has_visitor(Op op) {
  return kVisitFns<Visitor>[static_cast<size_t>(op)] != nullptr;
}

}  // namespace gpusim::riscv
