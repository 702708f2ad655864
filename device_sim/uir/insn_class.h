// Instruction classes: what is tallied. Thesis section 6.1.1 lists them as the components of its
// energy model.
#pragma once
#include <array>
#include <cstdint>

namespace gpusim {

enum class InsnClass : uint8_t {
  kIntegerArithmetic,
  kIntegerDivision,
  kIntegerLogical,
  kIntegerComparison,
  kFloatArithmetic,
  kFloatDivision,
  kFloatComparison,  // float and double
  kDoubleArithmetic,
  kDoubleDivision,
  kSpecialFunction,
  kOnChipMemory,
  kOffChipMemory,  // every load and store, as long as no cache model says otherwise
  kControlFlow,
  kParallelism,  // atomics, exclusives, barriers, wait and signal
  kOther,
};
inline constexpr int kInsnClassCount = 15;

inline constexpr const char* kInsnClassNames[kInsnClassCount] = {
    "integer_arithmetic", "integer_division", "integer_logical",   "integer_comparison",
    "float_arithmetic",   "float_division",   "float_comparison",  "double_arithmetic",
    "double_division",    "special_function", "on_chip_memory",    "off_chip_memory",
    "control_flow",       "parallelism",      "other"};

// One more than the classes, so that a vector of them fills 64 bytes.
using ClassCounts = std::array<uint64_t, 16>;
using BlockClassCounts = std::array<uint32_t, 16>;

}  // namespace gpusim
