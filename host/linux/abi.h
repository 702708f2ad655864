// What Linux does in another way for each guest ISA. Each ISA has a folder here, named as it is;
// abi.cpp lists them.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim::host {

class Kernel;
class SignalFrame;  // host/linux/signal_frame.h
struct Call;
struct Reply;

/// A system call; a null name: Linux has none of that number, a null function: it is not provided.
using Handler = Reply (*)(Kernel&, Call&);
struct SystemCall {
  const char* name = nullptr;
  Handler handler = nullptr;
};
struct OwnCall {
  uint64_t number;
  SystemCall call;
};

/// A flag of open(2).
struct OpenFlag {
  uint64_t guest;
  int host;
};

/// A set of registers as a core file has it: by the names that debuggers know, and bytes of each.
struct CoreNote {
  const char* owner;
  uint32_t type;
  std::vector<std::pair<std::string, uint32_t>> registers;
  uint32_t bytes;  // of all; what is left is zero
};

struct LinuxAbi {
  const char* isa;       // GuestIsa::name
  const char* machine;   // of uname(2)
  uint32_t word_bytes;   // of longs and pointers, as GuestIsa::register_bits: 4 or 8

  // The auxiliary vector. C libraries walk it, so that what is in it counts in instructions.
  const char* platform;  // AT_PLATFORM; null: there is none
  bool has_hwcap2;       // AT_HWCAP2

  const char* sysroot;  // where distributions put libraries for other machines; null: nowhere

  // System calls.
  uint32_t call_bytes;  // of the instruction that calls: where a call begins anew lies before it
  /// The number in asm-generic/unistd.h; null where the ISA has the generic table.
  uint64_t (*generic_number)(uint64_t number);
  std::span<const OwnCall> own_calls;      // those that the generic table lacks
  std::span<const OpenFlag> open_flags;    // which differ between ISAs

  // Signals.
  std::span<const uint8_t> signal_return;  // code that calls rt_sigreturn, as unwinders know it
  uint64_t least_signal_stack;             // MINSIGSTKSZ
  bool has_restorer;                       // struct sigaction has sa_restorer
  std::unique_ptr<SignalFrame> (*make_signal_frame)(const Module& module);

  // Core files. The first set is that of struct elf_prstatus.
  std::vector<CoreNote> (*core_notes)();

  // Start of a function without a C library (--entry).
  uint64_t thread_control_block;      // bytes between the thread pointer and thread-local variables
  const char* global_pointer_symbol;  // what AbiSlots::global_pointer begins as; may be null
};

/// That of the module's ISA.
const LinuxAbi& linux_abi(const Module& module);
/// Null if there is none.
const LinuxAbi* find_linux_abi(const std::string& isa);

SystemCall find_call(const LinuxAbi& abi, uint64_t number);

// A guest's open flags as the host's, and back.
int host_open_flags(const LinuxAbi& abi, uint64_t guest_flags);
uint64_t guest_open_flags(const LinuxAbi& abi, int host_flags);

}  // namespace gpusim::host
