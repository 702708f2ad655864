#include "translator/ptx/type.h"

#include <array>
#include <utility>

namespace gpusim::ptx {
namespace {

constexpr std::array<std::pair<std::string_view, Type>, 25> kTypes{{
    {"b8", {Kind::kBits, 8}},
    {"b16", {Kind::kBits, 16}},
    {"b32", {Kind::kBits, 32}},
    {"b64", {Kind::kBits, 64}},
    {"b128", {Kind::kBits, 128}},
    {"u8", {Kind::kUnsigned, 8}},
    {"u16", {Kind::kUnsigned, 16}},
    {"u16x2", {Kind::kUnsigned, 32, true, true}},
    {"s16x2", {Kind::kSigned, 32, true, true}},
    {"u32", {Kind::kUnsigned, 32}},
    {"u64", {Kind::kUnsigned, 64}},
    {"s8", {Kind::kSigned, 8}},
    {"s16", {Kind::kSigned, 16}},
    {"s32", {Kind::kSigned, 32}},
    {"s64", {Kind::kSigned, 64}},
    {"f16", {Kind::kFloat, 16}},
    {"f16x2", {Kind::kFloat, 32, true}},
    {"bf16", {Kind::kBits, 16, false, true}},
    {"bf16x2", {Kind::kBits, 32, true, true}},
    {"tf32", {Kind::kBits, 32, false, true}},
    {"e4m3x2", {Kind::kBits, 16, true, true}},
    {"e5m2x2", {Kind::kBits, 16, true, true}},
    {"f32", {Kind::kFloat, 32}},
    {"f64", {Kind::kFloat, 64}},
    {"pred", kPredicateType},
}};

}  // namespace

std::optional<Type> type_of(std::string_view name) {
  for (const auto& [text, type] : kTypes)
    if (text == name) return type;
  return std::nullopt;
}

bool types_agree(Type wanted, Type reg) {
  if (wanted.bits != reg.bits || wanted.is_predicate() != reg.is_predicate()) return false;
  if (wanted.is_plain) return reg.kind == Kind::kBits;
  if (wanted.kind == Kind::kBits || reg.kind == Kind::kBits) return true;
  if (wanted.bits == 16 && wanted.is_float() != reg.is_float()) return false;
  return wanted.is_float() == reg.is_float() && wanted.is_packed == reg.is_packed;
}

}  // namespace gpusim::ptx
