#include "translator/a64/isa.h"

#include <capstone/capstone.h>
#include <elf.h>

#include <array>
#include <cstring>

#include "translator/a64/cpus.h"
#include "translator/a64/debug.h"
#include "translator/a64/decode.h"
#include "translator/a64/extensions.h"
#include "translator/a64/text.h"
#include "translator/a64/translate.h"

namespace gpusim::a64 {
namespace {

constexpr uint32_t kInsnBytes = 4;

uint32_t insn_length(std::span<const uint8_t> bytes) {
  return bytes.size() < kInsnBytes ? 0 : kInsnBytes;
}

InsnResult translate(const GuestInsn& insn, BlockBuilder& builder) {
  return translate_instruction(insn.word(), insn.pc, builder);
}

ControlFlow flow(const GuestInsn& insn, uint32_t cpu) {
  return control_flow(insn.word(), insn.pc, cpu);
}

void find_targets(uint64_t pc, std::span<const uint8_t> code, std::vector<uint64_t>& targets) {
  for (size_t i = 0; i + kInsnBytes <= code.size(); i += kInsnBytes) {
    uint32_t word;
    std::memcpy(&word, code.data() + i, sizeof word);
    if ((word >> 26 & 7) != 5) continue;  // all branches are there
    if (const auto target = branch_target(word, pc + i)) targets.push_back(*target);
  }
}

std::string text(const GuestInsn& insn) { return instruction_text(insn.word()); }

const char* extension(const GuestInsn& insn) { return absent_extension(insn.word()); }

std::string row_name(const GuestInsn& insn) {
  const Row* row = decode(insn.word());
  return row ? std::string(row->name) : std::string();
}

// ELF for the Arm 64-bit Architecture, 5.5.4: $x begins instructions, $d data.
MappingSymbol mapping_symbol(std::string_view name) {
  if (name.size() < 2 || name[0] != '$' || (name.size() > 2 && name[2] != '.'))
    return MappingSymbol::kNone;
  if (name[1] == 'x') return MappingSymbol::kCode;
  return name[1] == 'd' ? MappingSymbol::kData : MappingSymbol::kNone;
}

std::string slot_name(int s) {
  if (s <= 30) return "x" + std::to_string(s);
  if (s >= kV0) return "v" + std::to_string((s - kV0) / 2) + ((s - kV0) % 2 ? ".hi" : ".lo");
  switch (s) {
    case kSp:
      return "sp";
    case kZero:
      return "zero";
    case kSink:
      return "sink";
    case kNzcv:
      return "nzcv";
    case kFpState:
      return "fp_state";
    case kTpidr:
      return "tpidr";
    case kCoreId:
      return "core_id";
    case kMonitor:
      return "monitor";
    case kMonitorLow:
      return "monitor.lo";
    case kMonitorHigh:
      return "monitor.hi";
    case kPstate:
      return "pstate";
    case kRandom:
      return "random";
    default:
      return "t" + std::to_string(s - kFirstTemp);
  }
}

// The vector registers, and what tells an ordinary program from one that knows its core.
constexpr auto kRareSlots = [] {
  std::array<Slot, kSlotCount - kV0 + 2> slots{kTpidr, kCoreId};
  for (size_t i = 2; i < slots.size(); ++i) slots[i] = static_cast<Slot>(kV0 + i - 2);
  return slots;
}();

// Arm ARM, C4.1: loads and stores with V set and data processing of SIMD and floating point; system
// instructions.
bool may_use_rare_slots(uint32_t word) { return (word >> 26 & 3) == 3 || word >> 24 == 0xd5; }

constexpr InitialValue kInitialValues[] = {{kMonitor, kNoMonitor}};

// Procedure call standard (AAPCS64) and the Linux system call convention.
constexpr AbiSlots abi() {
  AbiSlots a;
  a.stack_pointer = kSp;
  a.link = kLink;
  a.thread_pointer = kTpidr;
  a.core_id = kCoreId;
  a.monitor = kMonitor;
  a.fp_state = kFpState;
  a.syscall_number = kX0 + 8;
  a.syscall_result = kX0;
  for (int i = 0; i < 6; ++i) a.syscall_args[i] = kX0 + i;
  for (int i = 0; i < 8; ++i) {
    a.call_args[i] = kX0 + i;
    a.call_float_args[i] = v_low(static_cast<uint32_t>(i));
  }
  return a;
}

// DWARF for the Arm 64-bit Architecture, 4.1: X0 to X30 and SP; AAPCS64, 6.4.6: the frame record.
constexpr auto kDwarfSlots = [] {
  std::array<int, 32> slots{};
  for (int i = 0; i < 31; ++i) slots[i] = kX0 + i;
  slots[31] = kSp;
  return slots;
}();
constexpr CallFrames kFrames = {.slots = kDwarfSlots,
                                .stack_pointer = 31,
                                .frame_pointer = 29,
                                .return_address = 30,
                                .saved_frame_pointer = 0,
                                .saved_return_address = 8,
                                .end_of_record = 16};

constexpr SlotRoles kRoles = {.zero = kZero,
                              .sink = kSink,
                              .flags = kNzcv,
                              .first_temp = kFirstTemp,
                              .temp_count = kTempCount};

}  // namespace

const GuestIsa kIsa = {.name = "aarch64",
                       .elf_machine = EM_AARCH64,
                       .insn_align = kInsnBytes,
                       .longest_insn = kInsnBytes,
                       .insn_length = insn_length,
                       .make_builder = make_block_builder,
                       .translate = translate,
                       .control_flow = flow,
                       .find_targets = find_targets,
                       .text = text,
                       .absent_extension = extension,
                       .row = row_name,
                       .mapping_symbol = mapping_symbol,
                       .capstone_arch = CS_ARCH_ARM64,
                       .capstone_mode = CS_MODE_LITTLE_ENDIAN,
                       .slot_count = kSlotCount,
                       .rare_slots = {kRareSlots, may_use_rare_slots},
                       .roles = kRoles,
                       .slot_name = slot_name,
                       .initial_values = kInitialValues,
                       .abi = abi(),
                       .frames = kFrames,
                       .debug_target = debug_target,
                       .cpus = cpus(),
                       .cpu_lines = cpu_lines};

}  // namespace gpusim::a64
