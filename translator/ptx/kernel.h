// A kernel translated: a module of micro-ops, and what a launch has to know.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"
#include "translator/ptx/special.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

struct ParamInfo {
  uint32_t offset_bytes = 0, size_bytes = 0, align_bytes = 1;
  bool is_float = false;
};

// What the host does for a thread that stops; Event::slot says which.
enum class HostCall : uint8_t {
  kBarrier = 0,  // + the barrier's number, below 16
  kPrintf = 16,
  kAssertFail,
  kTrap,
  kMalloc,
  kFree,
  kMatrix,
  kDevice,  // a DeviceCall
  kMisalignedBulk,
  kTensor,     // a TensorOp
  kWarpgroup,  // a WarpgroupOp
  kStackOverflow,
};

struct StaticInstruction {
  std::string opcode{};
  uint32_t line = 0;  // of the text
  Location location{};
};

// Of a CTA's shared memory; 0 bytes: all that a launch adds.
struct SharedVariable {
  std::string name{};
  uint32_t offset = 0, size_bytes = 0;
};

struct KernelCode {
  std::string name{};
  std::vector<ParamInfo> params{};
  uint32_t param_bytes = 0, static_shared_bytes = 0, local_bytes = 0, registers = 0;
  bool has_heap = false;            // calls malloc or free
  bool has_launches = false;        // calls what device_call.h has
  bool has_global_atomics = false;  // that may reach global memory; and of 16 bytes:
  bool has_wide_global_atomics = false;
  bool has_stack = false;              // in local memory, behind local_bytes
  bool has_alloca = false;             // likewise, before that stack
  uint32_t dynamic_shared_offset = 0;  // in the CTA's memory, where what a launch adds begins
  std::vector<SharedVariable> shared_variables{};  // that it uses
  uint32_t max_threads[3] = {0, 0, 0}, required_threads[3] = {0, 0, 0};
  uint32_t cluster[3] = {0, 0, 0};  // .reqnctapercluster; 0: not given
  uint32_t max_cluster_rank = 0;    // .maxclusterrank; 0: not given
  bool is_explicit_cluster = false;

  Module module;
  // Slots of the module, or kNoSlot where the kernel has no use for one.
  int param_base = kNoSlot;
  int specials[static_cast<int>(Special::kCount)] = {};
  int call_slots[4] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot};

  // Per block of the module, its instructions.
  std::vector<std::vector<StaticInstruction>> instructions{};
  // Per block that has none: of which instruction it is a part.
  std::vector<StaticInstruction> part_of{};
  // Of a micro-op, which such a block's are, too; null: of what no text says.
  const StaticInstruction* instruction_of(uint32_t uop) const {
    const uint32_t block = module.uop_block[uop];
    const auto& list = instructions[block];
    if (list.empty()) return part_of[block].line != 0 ? &part_of[block] : nullptr;
    return &list[std::min<size_t>(module.uop_insn[uop], list.size() - 1)];
  }
};

// Where the dynamic part of shared memory begins is after the static one, so aligned, or as its
// variables say.
inline constexpr uint32_t kDynamicSharedAlign = 128;
// At the beginning of a CTA's shared memory, kept as the newest devices keep it:
// %reserved_smem_offset_1.
inline constexpr uint32_t kReservedSharedBytes = 1024;

}  // namespace gpusim::ptx
