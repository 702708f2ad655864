// Functions and system calls that the check knows by name.
#pragma once
#include <cstdint>
#include <string_view>

#include "device_sim/uir/module.h"

namespace gpusim::host::uninitialised {

// Whether the function there looks at strings and blocks a word at a time, beyond their ends.
bool is_in_string_function(const Module& module, uint64_t pc);
// Whether the code there is a function of a C library whose name is not known.
bool is_in_unnamed_function(const Module& module, uint64_t pc);
// Whether the function there exists to give a core another stack.
bool changes_stacks(const Module& module, uint64_t pc);

struct SystemCall {
  enum class Bytes : uint8_t { kNone, kBuffer, kPieces };
  const char* name;
  int arguments;               // of so many the kernel uses the value, whatever the others are
  Bytes bytes = Bytes::kNone;  // argument 1 is what is written: argument 2 tells how much
};
// Null: it is not checked.
const SystemCall* checked_call(std::string_view name);

}  // namespace gpusim::host::uninitialised
