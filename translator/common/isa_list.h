// The one list of guest ISAs, and what the ISA-independent translator needs from each.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "device_sim/uir/module.h"
#include "translator/common/block_builder.h"

namespace gpusim {

/// Direct control flow out of one instruction.
struct ControlFlow {
  bool ends_block = false;
  bool falls_through = true;       // the next instruction can follow without a return
  bool is_call = false;            // the callee returns to the next instruction
  std::optional<uint64_t> target;  // of a direct branch
};

enum class InsnResult : uint8_t { kNext, kEndsBlock, kUnknown };

/// Slot roles that passes know about.
struct SlotRoles {
  Slot zero = 0;   // always zero, never written
  Slot sink = 0;   // never read
  Slot flags = 0;  // N<<3 | Z<<2 | C<<1 | V
  Slot first_temp = 0;
  int temp_count = 0;  // temporaries are dead at the end of their instruction
  bool is_temp(Slot s) const { return s >= first_temp && s < first_temp + temp_count; }
};

/// A processor that programs find when they ask which one they run on. Instructions work alike on
/// all of them, but for system registers that one has and another lacks.
struct GuestCpu {
  const char* name;
  const char* note;        // for listings
  uint64_t hwcap, hwcap2;  // AT_HWCAP and AT_HWCAP2 of the auxiliary vector
};

/// Where a call leaves what its caller goes on with. Registers are numbers of DWARF here.
struct CallFrames {
  std::span<const int> slots;  // canonical slot by DWARF's number, or kNoSlot
  int stack_pointer, frame_pointer, return_address;
  /// Where a frame pointer points, at these offsets: the caller's frame pointer, and where the call
  /// returns to. The caller's stack pointer is not below `end_of_record`.
  int64_t saved_frame_pointer, saved_return_address, end_of_record;
};

struct GuestIsa {
  const char* name;
  uint16_t elf_machine;
  uint32_t pc_shift;  // log2 of the bytes of an instruction
  BlockBuilder (*make_builder)();
  /// Appends one instruction to the builder's block. Never fails.
  InsnResult (*translate)(uint32_t word, uint64_t pc, BlockBuilder& builder);
  /// `ends_block` agrees with translate.
  ControlFlow (*control_flow)(uint32_t word, uint64_t pc, uint32_t cpu);
  /// Text of the decoder, for what Capstone does not know; empty if unallocated.
  std::string (*text)(uint32_t word);
  /// The extension that an unknown instruction belongs to, if it is one that no CPU of `cpus` has: a
  /// program asks before it executes such. Null for others.
  const char* (*absent_extension)(uint32_t word);
  /// The row of the decode table that owns the word; empty if unallocated.
  std::string (*row)(uint32_t word);
  int slot_count;  // canonical slots
  SlotRoles roles;
  std::string (*slot_name)(int canonical);  // unique per slot
  std::span<const InitialValue> initial_values;
  AbiSlots abi;                    // canonical slots
  CallFrames frames;
  std::span<const GuestCpu> cpus;  // the first is the default
  /// What Linux's /proc/cpuinfo says of each such processor behind its number.
  std::string (*cpu_lines)(uint32_t cpu);
  int capstone_arch, capstone_mode;
};

std::span<const GuestIsa> all_isas();
/// Null if there is none.
const GuestIsa* find_isa(const std::string& name);
const GuestIsa* find_isa_for_elf(uint16_t elf_machine);
/// Its number in isa.cpus; the default's for an empty name. None if the ISA lacks it.
std::optional<uint32_t> find_cpu(const GuestIsa& isa, const std::string& name);

}  // namespace gpusim
