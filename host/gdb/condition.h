// Conditions of breakpoints as GDB sends them: bytecode of a stack machine (GDB manual, "The GDB
// Agent Expression Mechanism"). They are evaluated where a core stops, so that thousands of cores
// pass a breakpoint whose condition does not hold without a word to GDB.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace gpusim::host::gdb {

struct ConditionContext {
  std::function<std::optional<uint64_t>(uint32_t number)> read_register;
  std::function<bool(uint64_t address, std::span<uint8_t> out)> read_memory;
};

// The value on top of the stack at the end. Nothing if the code is not valid, knows operations that
// this does not, or reads what cannot be read: then GDB has to look for itself.
std::optional<uint64_t> evaluate_condition(std::span<const uint8_t> code,
                                           const ConditionContext& context);

}  // namespace gpusim::host::gdb
