#include "translator/common/isa_list.h"

#include <capstone/capstone.h>
#include <elf.h>

#include <array>

#include "translator/a64/cpus.h"
#include "translator/a64/decode.h"
#include "translator/a64/extensions.h"
#include "translator/a64/text.h"
#include "translator/a64/translate.h"

namespace gpusim {
namespace {

namespace aarch64 {

using namespace a64;

InsnResult translate(uint32_t word, uint64_t pc, BlockBuilder& builder) {
  switch (translate_instruction(word, pc, builder)) {
    case Translated::kNext:
      return InsnResult::kNext;
    case Translated::kEndsBlock:
      return InsnResult::kEndsBlock;
    case Translated::kUnknown:
      return InsnResult::kUnknown;
  }
  return InsnResult::kUnknown;
}

ControlFlow flow(uint32_t word, uint64_t pc, uint32_t cpu) {
  const Flow f = control_flow(word, pc, cpu);
  return {f.ends_block, f.falls_through, f.is_call, f.target};
}

std::string row_name(uint32_t word) {
  const Row* row = decode(word);
  return row ? std::string(row->name) : std::string();
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

}  // namespace aarch64

const GuestIsa kIsas[] = {
    {.name = "aarch64",
     .elf_machine = EM_AARCH64,
     .pc_shift = 2,
     .make_builder = a64::make_block_builder,
     .translate = aarch64::translate,
     .control_flow = aarch64::flow,
     .text = a64::instruction_text,
     .absent_extension = a64::absent_extension,
     .row = aarch64::row_name,
     .slot_count = a64::kSlotCount,
     .roles = aarch64::kRoles,
     .slot_name = aarch64::slot_name,
     .initial_values = aarch64::kInitialValues,
     .abi = aarch64::abi(),
     .frames = aarch64::kFrames,
     .cpus = a64::cpus(),
     .cpu_lines = a64::cpu_lines,
     .capstone_arch = CS_ARCH_ARM64,
     .capstone_mode = CS_MODE_LITTLE_ENDIAN},
};

}  // namespace

std::span<const GuestIsa> all_isas() { return kIsas; }

const GuestIsa* find_isa(const std::string& name) {
  for (const GuestIsa& isa : kIsas)
    if (name == isa.name) return &isa;
  return nullptr;
}

std::optional<uint32_t> find_cpu(const GuestIsa& isa, const std::string& name) {
  if (name.empty()) return 0;
  for (size_t i = 0; i < isa.cpus.size(); ++i)
    if (name == isa.cpus[i].name) return static_cast<uint32_t>(i);
  return std::nullopt;
}

const GuestIsa* find_isa_for_elf(uint16_t elf_machine) {
  for (const GuestIsa& isa : kIsas)
    if (elf_machine == isa.elf_machine) return &isa;
  return nullptr;
}

}  // namespace gpusim
