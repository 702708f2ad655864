// Where cores begin: as a Linux user process, or as a call of one function.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/memory_plan.h"
#include "translator/common/translator.h"

namespace gpusim::host {

struct ProcessStart {
  std::string program;  // AT_EXECFN
  std::vector<std::string> args;
  std::vector<std::string> environment;
  std::optional<std::string> argv0;  // none: program
};

// The initial stack of a process: strings, auxiliary vector, environment, arguments, argc.
using AuxEntry = std::pair<uint64_t, uint64_t>;  // type, value
struct StackImage {
  uint64_t stack_pointer = 0;  // of argc; a multiple of 16
  std::vector<uint8_t> bytes;  // from stack_pointer to the top
  // Where in `bytes` words hold addresses on this stack, and where the `extra` entries begin.
  std::vector<size_t> address_words;
  size_t extra_offset = 0;
  std::vector<AuxEntry> auxiliary_vector;  // all but its end

  // For cores whose stacks lie `distance` bytes apart, a multiple of 16: all words of the image.
  std::vector<CoreWord> words(uint64_t distance) const;
};
// `extra` follows Linux's own entries. Throws Error if it takes more than `room_bytes`.
StackImage process_stack(const Module& module, const ProcessStart& start, uint64_t stack_top,
                         uint64_t room_bytes, std::span<const AuxEntry> extra = {});

// A program with a C library of its own starts once and makes its threads itself; one that knows of
// gpusim's cores, or has no library, starts on all of them.
bool makes_its_threads(const Module& module);

// The first `cores` cores runnable at the program's entry.
std::vector<AuxEntry> start_as_process(Backend& backend, Translator& translator,
                                       const MemoryPlan& plan, const ProcessStart& start,
                                       uint32_t cores);

// One argument of `--entry`, before cores are told apart.
struct CallValue {
  enum class Kind { kInteger, kFloat, kCore, kCores };
  Kind kind = Kind::kInteger;
  uint64_t bits = 0;  // kInteger; kFloat: a double's
};
// 12, -3, 0x1f, 1.5, &SYMBOL, @core, @cores. Throws Error.
CallValue parse_call_value(const Module& module, const std::string& text);

// A jump to this address is a return from the entry function.
inline constexpr uint64_t kReturnAddress = 0x0000'ffff'ffff'f000;
/// As the module's registers hold it.
uint64_t return_address(const Module& module);

// An argument of a call: of core c value + c * step, or, if there is a table, its word c, or, if
// there are bytes, the address of a copy of them on the core's stack.
struct CallWord {
  CoreWord word;
  bool is_float = false;
  std::span<const uint64_t> per_core = {};
  std::vector<uint8_t> copy = {};
};
// Every core runnable at the function at `address` with these arguments.
void start_as_call(Backend& backend, Translator& translator, const MemoryPlan& plan,
                   uint64_t address, std::span<const CallWord> args);
// Every core runnable at `symbol` with these arguments.
void start_as_call(Backend& backend, Translator& translator, const MemoryPlan& plan,
                   const std::string& symbol, std::span<const std::string> args);

}  // namespace gpusim::host
