#include "translator/riscv/isa.h"

#include <elf.h>

#include <array>

#include "translator/riscv/compressed.h"
#include "translator/riscv/debug.h"
#include "translator/riscv/decode.h"
#include "translator/riscv/float_state.h"
#include "translator/riscv/text.h"
#include "translator/riscv/translate.h"

namespace gpusim::riscv {
namespace {

// What differs between the register widths is a template of kXlen, 32 or 64.
template <int kXlen>
Insn decoded(const GuestInsn& insn) {
  return decode_any(insn.word(), kXlen);
}

uint32_t insn_length(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return 0;
  const unsigned length = instruction_bytes(bytes[0]);
  return bytes.size() < length ? 0 : length;
}

template <int kXlen>
InsnResult translate(const GuestInsn& insn, BlockBuilder& builder) {
  return translate_instruction(decoded<kXlen>(insn), insn.pc, builder);
}

template <int kXlen>
ControlFlow flow(const GuestInsn& insn, uint32_t) {
  return control_flow(decoded<kXlen>(insn), insn.pc);
}

// Manual, 34: JAL and branches; C.J, C.BEQZ and C.BNEZ; C.JAL, which RV64 does not have.
template <int kXlen>
bool may_branch(uint32_t word) {
  const uint32_t funct3 = word >> 13 & 7;
  return (word & 0x7f) == 0x63 || (word & 0x7f) == 0x6f ||
         ((word & 3) == 1 && (funct3 >= 5 || (kXlen == 32 && funct3 == 1)));
}

template <int kXlen>
void find_targets(uint64_t pc, std::span<const uint8_t> code, std::vector<uint64_t>& targets) {
  while (code.size() >= 2) {
    const size_t bytes = insn_length(code);
    if (bytes == 0) return;
    const GuestInsn insn{pc, code.first(bytes)};
    if (may_branch<kXlen>(insn.word()))
      if (const auto target = flow<kXlen>(insn, 0).target) targets.push_back(*target);
    code = code.subspan(bytes);
    pc += bytes;
  }
}

template <int kXlen>
std::string text(const GuestInsn& insn) {
  return instruction_text(decoded<kXlen>(insn));
}

// The major opcode OP-V; its loads and stores have widths that those of F and D leave free.
bool is_vector_word(uint32_t word) {
  const uint32_t major = word & 0x7f, width = word >> 12 & 7;
  return major == 0x57 || ((major == 0x07 || major == 0x27) && (width == 0 || width >= 5));
}
// Programs that ask have other code for CPUs without V, as those of RV32 are.
template <int kXlen>
const char* absent_extension(const GuestInsn& insn) {
  return kXlen == 32 && is_vector_word(insn.word()) ? "V" : nullptr;
}

template <int kXlen>
std::string row_name(const GuestInsn& insn) {
  const Insn i = decoded<kXlen>(insn);
  if (!i) return {};
  return std::string(i.bytes == 2 ? compressed_row(static_cast<uint16_t>(insn.word()), kXlen)
                                  : i.row->name);
}

// RISC-V ELF psABI, "Mapping Symbol": $x begins instructions, maybe with the ISA's name behind it,
// $d data.
MappingSymbol mapping_symbol(std::string_view name) {
  if (name.starts_with("$d") && (name.size() == 2 || name[2] == '.')) return MappingSymbol::kData;
  if (name.starts_with("$x") && (name.size() == 2 || name[2] == '.' || name[2] == 'r'))
    return MappingSymbol::kCode;
  return MappingSymbol::kNone;
}

std::string slot_name(int s) {
  if (s < 32) return x_name(static_cast<uint32_t>(s));
  if (s >= kF0 && s < kF0 + 32) return f_name(static_cast<uint32_t>(s - kF0));
  switch (s) {
    case kSink:
      return "sink";
    case kFpState:
      return "fp_state";
    case kFrm:
      return "frm";
    case kCoreId:
      return "core_id";
    case kMonitor:
      return "monitor";
    case kMonitorLow:
      return "monitor.lo";
    case kMonitorHigh:
      return "monitor.hi";
    case vector_slot(vector::kVl):
      return "vl";
    case vector_slot(vector::kVtype):
      return "vtype";
    case vector_slot(vector::kVstart):
      return "vstart";
    case vector_slot(vector::kVcsr):
      return "vcsr";
    default:
      break;
  }
  const int word = s - vector_slot(vector::kFirstRegister);
  if (word >= 0)
    return "v" + std::to_string(word / vector::kWords) + "." +
           std::to_string(word % vector::kWords);
  return "temp" + std::to_string(s - kFirstTemp);
}

// The host tells programs with a C library from others by the first two; the others are many.
constexpr auto kRareSlots = [] {
  std::array<Slot, 2 + vector::kSlotCount> slots{kTp, kCoreId};
  for (int i = 0; i < vector::kSlotCount; ++i)
    slots[static_cast<size_t>(2 + i)] = static_cast<Slot>(kVectorState + i);
  return slots;
}();
bool may_use_rare_slots(uint32_t word) {
  const auto names_tp = [&](int at) { return (word >> at & 31) == kTp; };
  if (instruction_bytes(word) == 2) return names_tp(7) || names_tp(2);  // short fields: x8 to x15
  const bool is_hint = (word & 0x7fff) == 0x2013;  // SLTI to x0: Visitor::custom_hint()
  const bool is_csr = (word & 0x7f) == 0x73 && (word >> 12 & 7) != 0;
  return is_hint || is_vector_word(word) || is_csr || names_tp(7) || names_tp(15) || names_tp(20);
}

constexpr InitialValue kInitialValues[] = {{kMonitor, kNoMonitor},
                                           {kFpState, kFpPolicy},
                                           {vector_slot(vector::kVtype), vector::kIllegalType}};

// RISC-V ELF psABI, "Procedure Calling Convention", and Linux's system calls.
constexpr AbiSlots abi() {
  AbiSlots a;
  a.stack_pointer = kSp;
  a.link = kRa;
  a.thread_pointer = kTp;
  a.global_pointer = kGp;
  a.core_id = kCoreId;
  a.monitor = kMonitor;
  a.fp_state = kFpState;
  a.syscall_number = kA7;
  a.syscall_result = kA0;
  for (int i = 0; i < 6; ++i) a.syscall_args[i] = kA0 + i;
  for (int i = 0; i < 8; ++i) {
    a.call_args[i] = kA0 + i;
    a.call_float_args[i] = kFa0 + i;
  }
  return a;
}

// RISC-V DWARF: x0 to x31. A frame pointer is the address behind the frame, whose topmost registers
// are the return address and the caller's frame pointer.
constexpr auto kDwarfSlots = [] {
  std::array<int, 32> slots{};
  for (int i = 0; i < 32; ++i) slots[static_cast<size_t>(i)] = i;
  return slots;
}();
template <int kXlen>
constexpr CallFrames kFrames = {.slots = kDwarfSlots,
                                .stack_pointer = kSp,
                                .frame_pointer = kFp,
                                .return_address = kRa,
                                .saved_frame_pointer = -2 * kXlen / 8,
                                .saved_return_address = -kXlen / 8,
                                .end_of_record = 0};

constexpr SlotRoles kRoles = {
    .zero = kZero, .sink = kSink, .first_temp = kFirstTemp, .temp_count = kTempCount};

// AT_HWCAP has a bit per letter: I M A F D C, and V.
constexpr uint64_t letter(char c) { return uint64_t{1} << (c - 'A'); }
constexpr uint64_t kHwcap =
    letter('I') | letter('M') | letter('A') | letter('F') | letter('D') | letter('C');
constexpr GuestCpu kCpus32[] = {
    {"rv32", "RV32GC with Zba, Zbb, Zbc, Zbs, Zicond, Zfh, Zfa, Zawrs", kHwcap, 0}};
constexpr GuestCpu kCpus64[] = {
    {"rv64", "RV64GCV with Zba, Zbb, Zbc, Zbs, Zicond, Zfh, Zvfh, Zfa, Zacas, Zawrs",
     kHwcap | letter('V'), 0}};

// Of Zacas, RV32 lacks the form on doublewords: it does not claim the extension.
std::string cpu_lines_32(uint32_t) {
  return "hart\t\t: 0\n"
         "isa\t\t: rv32imafdc_zicond_zicsr_zifencei_zawrs_zfa_zfh_zba_zbb_zbc_zbs\n"
         "mmu\t\t: sv32\n";
}
std::string cpu_lines_64(uint32_t) {
  return "hart\t\t: 0\n"
         "isa\t\t: rv64imafdcv_zicond_zicsr_zifencei_zacas_zawrs_zfa_zfh_zba_zbb_zbc_zbs_zvfh\n"
         "mmu\t\t: sv39\n";
}

template <int kXlen>
constexpr GuestIsa make_isa() {
  return {.name = kXlen == 32 ? "riscv32" : "riscv64",
          .elf_machine = EM_RISCV,
          .register_bits = kXlen,
          .insn_align = 2,
          .longest_insn = 4,
          .insn_length = insn_length,
          .make_builder = make_block_builder,
          .translate = translate<kXlen>,
          .control_flow = flow<kXlen>,
          .find_targets = find_targets<kXlen>,
          .text = text<kXlen>,
          .absent_extension = absent_extension<kXlen>,
          .row = row_name<kXlen>,
          .mapping_symbol = mapping_symbol,
          .capstone_arch = GuestIsa::kNoCapstone,
          .capstone_mode = 0,
          .slot_count = kSlotCount,
          .rare_slots = {kRareSlots, may_use_rare_slots},
          .roles = kRoles,
          .slot_name = slot_name,
          .initial_values = kInitialValues,
          .abi = abi(),
          .frames = kFrames<kXlen>,
          .debug_target = [] { return debug_target(kXlen); },
          .cpus = kXlen == 32 ? std::span(kCpus32) : std::span(kCpus64),
          .cpu_lines = kXlen == 32 ? cpu_lines_32 : cpu_lines_64};
}

}  // namespace

const GuestIsa kIsa32 = make_isa<32>();
const GuestIsa kIsa = make_isa<64>();

}  // namespace gpusim::riscv
