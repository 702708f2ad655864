// A translated program: micro-ops, the blocks they form, and the guest image they came from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "device_sim/uir/insn_class.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

// A basic block: guest instructions at consecutive addresses, entered only at the first.
struct Block {
  uint64_t pc = 0;          // guest address of the first instruction
  uint32_t insn_count = 0;  // guest instructions
  uint32_t first_uop = 0;
  uint32_t uop_count = 0;
  uint32_t first_offset = 0;  // in Module::insn_offsets, if that has any
  BlockClassCounts classes{};  // guest instructions per class
};

enum SegmentFlags : uint8_t { kRead = 1, kWrite = 2, kExecute = 4 };

struct Segment {
  uint64_t address = 0;
  uint64_t size_bytes = 0;     // in memory; the part beyond `bytes` is zero
  uint8_t flags = 0;           // SegmentFlags
  std::vector<uint8_t> bytes;  // file contents
};

struct Symbol {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string name;
  bool is_function = false;
};

// A file that the guest mapped while it ran, and whose code it executes.
struct SharedObject {
  uint64_t begin = 0, end = 0;  // all its segments
  uint64_t bias = 0;            // to be added to the file's addresses
  std::string path;             // on the host

  std::string name() const { return path.substr(path.rfind('/') + 1); }
  bool contains(uint64_t address) const { return address >= begin && address < end; }
  bool operator==(const SharedObject&) const = default;
};

// Guest registers that the host has to find. An ISA that lacks one leaves it kNoSlot.
inline constexpr int kNoSlot = -1;
struct AbiSlots {
  int stack_pointer = kNoSlot;
  int link = kNoSlot;            // where a call leaves its return address
  int thread_pointer = kNoSlot;
  int global_pointer = kNoSlot;  // what small data is addressed by; set before any code runs
  int core_id = kNoSlot;         // read-only register that holds core count << 32 | core number
  int monitor = kNoSlot;         // address marked by a load-exclusive, or ~0
  int fp_state = kNoSlot;
  int syscall_number = kNoSlot;
  int syscall_args[6] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  int syscall_result = kNoSlot;
  int call_args[8] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  int call_float_args[8] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  bool operator==(const AbiSlots&) const = default;
};

struct SlotName {
  Slot slot = 0;
  std::string name;
  bool operator==(const SlotName&) const = default;
};

struct InitialValue {
  Slot slot = 0;
  uint64_t value = 0;
  bool operator==(const InitialValue&) const = default;
};

// Maps guest addresses of [text_base, text_base + (uop_at.size() << pc_shift)) to micro-ops. The
// end may move up while the module grows.
struct CodeMap {
  uint64_t text_base = 0;
  uint32_t pc_shift = 2;           // log2 of the instruction alignment in bytes
  std::vector<uint32_t> uop_at;    // first micro-op of the block that starts there, or kNoUop
  std::vector<uint8_t> insn_class; // InsnClass of the instruction there, or kNotCode

  static constexpr uint8_t kNotCode = 0xff;  // no instruction can be there

  // Place in the two tables of an address; of one outside of the code, not below their sizes.
  uint64_t unit_of(uint64_t pc) const {
    return pc >= text_base ? (pc - text_base) >> pc_shift : ~uint64_t{0};
  }
  bool is_aligned(uint64_t pc) const { return (pc & ((uint64_t{1} << pc_shift) - 1)) == 0; }
  bool is_code(uint64_t pc) const {
    const uint64_t unit = unit_of(pc);
    return unit < insn_class.size() && insn_class[unit] != kNotCode;
  }
};

struct Module {
  std::string isa;  // "aarch64"
  std::string cpu;  // which of the ISA's CPUs (GuestIsa::cpus) the program sees
  uint64_t entry = 0;
  std::vector<Uop> uops;
  std::vector<uint16_t> uop_insn;    // per micro-op: its instruction's index within its block
  std::vector<uint32_t> uop_block;   // per micro-op: its block
  // Micro-ops that got another target after they were added, in the order in which they did: others
  // never change.
  std::vector<uint32_t> relinked;
  std::vector<Block> blocks;
  // Where instructions differ in length: per block with instructions, from its `first_offset` on,
  // the distance of each instruction from the block's pc in bytes, then that of the block's end.
  std::vector<uint16_t> insn_offsets;
  CodeMap code;
  // Lanes of a warp: 0 or kWarpLanes (uir/warp.h). Cores of a module with warps run in CTAs
  // (MachineConfig::cta_threads), each warp of them in step; others have no rows of warps.
  uint32_t warp_size = 0;
  uint32_t slot_count = 0;
  std::vector<SlotName> slot_names;  // for listings and register dumps
  std::vector<InitialValue> initial_values;  // other slots start at zero
  AbiSlots abi;
  std::vector<Segment> segments;
  std::vector<Symbol> symbols;  // sorted by address
  std::vector<uint64_t> unknown;  // addresses of instructions that the translator does not know
  // Program headers as the guest sees them in its auxiliary vector.
  uint64_t phdr_address = 0;
  uint16_t phdr_count = 0, phdr_entry_size = 0;
  // Of a dynamic program `entry` is its interpreter's, which lies in `segments`, too, from
  // `interpreter_base` on, and starts `program_entry`. A static one has no interpreter: 0.
  uint64_t program_entry = 0, interpreter_base = 0;
  // Code that came to be in guest memory while the program ran, as it was translated; by address,
  // neither overlapping nor adjacent.
  std::vector<Segment> late_code;
  // By address, not overlapping; their symbols are among `symbols`. Where one takes the place of
  // another, that one is no longer here.
  std::vector<SharedObject> shared_objects;

  bool is_dynamic() const { return interpreter_base != 0; }
};

// Guest address of the i-th instruction of a block; behind the last one, of the block's end.
inline uint64_t insn_pc(const Module& module, const Block& block, uint32_t i) {
  return block.pc + (module.insn_offsets.empty() ? uint64_t{i} << module.code.pc_shift
                                                 : module.insn_offsets[block.first_offset + i]);
}
inline uint64_t end_pc(const Module& module, const Block& block) {
  return insn_pc(module, block, block.insn_count);
}

}  // namespace gpusim
