// What the ISA-independent translator and the host need from a guest ISA. Each ISA's folder defines
// one (a64/isa.cpp); isa_list.h has them all.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device_sim/uir/module.h"
#include "translator/common/block_builder.h"
#include "translator/common/debug_registers.h"

namespace gpusim {

/// One instruction of a program: where it is, and exactly its bytes.
struct GuestInsn {
  uint64_t pc = 0;
  std::span<const uint8_t> bytes;  // none: there is no instruction

  explicit operator bool() const { return !bytes.empty(); }
  /// The first four bytes, least significant first; those beyond the instruction are zero.
  uint32_t word() const {
    uint32_t w = 0;
    for (size_t i = 0; i < bytes.size() && i < 4; ++i) w |= uint32_t{bytes[i]} << 8 * i;
    return w;
  }
};

/// Direct control flow out of one instruction.
struct ControlFlow {
  bool ends_block = false;
  bool falls_through = true;       // the next instruction can follow without a return
  bool is_call = false;            // the callee returns to the next instruction
  std::optional<uint64_t> target;  // of a direct branch
};

/// That of a block's last instruction, from the micro-op that ends the block.
ControlFlow control_flow_of(const DraftBlock& block);

enum class InsnResult : uint8_t {
  kNext,       // the block can go on
  kEndsBlock,  // the builder holds a block end: jump, branch, service, give_way, or a trap that the
               // architecture defines
  kUnknown,    // the same with trap(Fault::kUndefined): unallocated, or not supported yet
};

/// Slot roles that passes know about.
struct SlotRoles {
  Slot zero = 0;       // always zero, never written
  Slot sink = 0;       // never read
  int flags = kNoSlot; // N<<3 | Z<<2 | C<<1 | V, of an ISA that has such; passes skip others
  Slot first_temp = 0;
  int temp_count = 0;  // temporaries are dead at the end of their instruction
  bool is_temp(Slot s) const { return s >= first_temp && s < first_temp + temp_count; }
  bool has_flags() const { return flags != kNoSlot; }
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

/// What a symbol of the ELF file says about the bytes from its address on.
enum class MappingSymbol : uint8_t { kNone, kCode, kData };

struct GuestIsa {
  const char* name;
  uint16_t elf_machine;
  /// Of a register for integers, an address and an ELF file's class: 32 or 64. Slots of a 32-bit ISA
  /// hold registers and addresses zero-extended, and what the host puts there is cut to 32 bits. A
  /// counter has 64: before Service::kReadCounter, such an ISA puts the lowest bit of the part that it
  /// wants, 0 or 32, into the destination.
  uint32_t register_bits = 64;

  // Instructions. Their addresses are multiples of `insn_align`, a power of two; where the longest
  // one is no longer, all have that length.
  uint32_t insn_align, longest_insn;  // bytes
  /// Of the first instruction in `bytes`; 0 if they are too few to tell, or to hold it.
  uint32_t (*insn_length)(std::span<const uint8_t> bytes);

  BlockBuilder (*make_builder)();
  /// Appends one instruction, begin_instruction() included, to the builder's block. Never fails.
  InsnResult (*translate)(const GuestInsn& insn, BlockBuilder& builder);
  /// `ends_block` agrees with translate.
  ControlFlow (*control_flow)(const GuestInsn& insn, uint32_t cpu);
  /// Appends the `target` that control_flow says of each instruction of the code at pc, sooner;
  /// null: control_flow has to be asked.
  void (*find_targets)(uint64_t pc, std::span<const uint8_t> code, std::vector<uint64_t>& targets);
  /// Text of the decoder, for what Capstone does not know; empty if unallocated.
  std::string (*text)(const GuestInsn& insn);
  /// The extension that an unknown instruction belongs to, if it is one that no CPU of `cpus` has: a
  /// program asks before it executes such. Null for others.
  const char* (*absent_extension)(const GuestInsn& insn);
  /// The row of the decode table that owns the instruction; empty if unallocated.
  std::string (*row)(const GuestInsn& insn);
  MappingSymbol (*mapping_symbol)(std::string_view name);
  int capstone_arch, capstone_mode;  // kNoCapstone: it lacks the ISA

  // Registers.
  int slot_count;  // canonical slots
  /// Slots that a module should lack if its program has no use for them; all others may be in every
  /// module. `may_use` is true of the first four bytes of all instructions that use one. Null: only
  /// translation tells, so programs are translated as a whole.
  struct RareSlots {
    std::span<const Slot> slots;
    bool (*may_use)(uint32_t word) = nullptr;
  } rare_slots;
  SlotRoles roles;
  std::string (*slot_name)(int canonical);  // unique per slot
  std::span<const InitialValue> initial_values;
  AbiSlots abi;  // canonical slots
  CallFrames frames;

  DebugTarget (*debug_target)();

  std::span<const GuestCpu> cpus;  // the first is the default
  /// What Linux's /proc/cpuinfo says of each such processor behind its number.
  std::string (*cpu_lines)(uint32_t cpu);

  static constexpr int kNoCapstone = -1;

  bool has_one_length() const { return insn_align == longest_insn; }
  uint32_t pc_shift() const;  // CodeMap::pc_shift
  /// A value as a register holds it.
  uint64_t in_register(uint64_t value) const {
    return register_bits == 32 ? value & 0xffffffff : value;
  }
  /// The instruction at pc; `code`: the program's code from there on. None if it is cut short.
  GuestInsn first_insn(uint64_t pc, std::span<const uint8_t> code) const;
};

}  // namespace gpusim
