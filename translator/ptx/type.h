// PTX's fundamental types (PTX ISA, "Fundamental Types") and state spaces.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpusim::ptx {

enum class Kind : uint8_t { kBits, kUnsigned, kSigned, kFloat, kPredicate };

struct Type {
  Kind kind = Kind::kBits;
  uint8_t bits = 0;        // of the whole; 0: no type
  bool is_packed = false;  // f16x2
  bool is_plain = false;   // only registers of plain bits hold it

  bool is_float() const { return kind == Kind::kFloat; }
  bool is_signed() const { return kind == Kind::kSigned; }
  bool is_predicate() const { return kind == Kind::kPredicate; }
  uint32_t bytes() const { return bits / 8u; }
  bool operator==(const Type&) const = default;
};

inline constexpr Type kPredicateType{Kind::kPredicate, 1};

/// Of a name without its dot: "s32". Nothing for anything else.
std::optional<Type> type_of(std::string_view name);

/// Whether a register of type `reg` may stand where an instruction wants `wanted` ("Operand Type
/// Checking"): equal sizes, and no float for an integer; types of plain bits go with all.
bool types_agree(Type wanted, Type reg);

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kConst, kLocal, kParam };

}  // namespace gpusim::ptx
