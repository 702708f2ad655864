// What one CUDA thread does: it simulates one core, block by block. Plain functions that also run
// on the host (host_backend.h), so that only the launches need a GPU.
#pragma once
#include "device_sim/core/backend.h"
#include "device_sim/core/execute.h"
#include "device_sim/core/interleaving.h"
#include "device_sim/core/wait.h"

namespace gpusim::cuda {

inline constexpr uint32_t kWarpSize = 32;
inline constexpr uint32_t kLanesShift = 5;  // windows are interleaved by warp

// Guest instructions of a block: their number and those of each class.
struct BlockInfo {
  uint32_t insn_count;
  uint32_t classes[kInsnClassCount];
};

// The simulated machine as a thread sees it.
struct Machine {
  CodeView code;
  MemoryView memory;
  const BlockInfo* blocks = nullptr;
  uint64_t max_instructions = 0;  // per core; 0: none
  uint64_t seed = 0;              // see core/interleaving.h
};

// The part of a core's state that is not in slots.
struct CoreState {
  uint32_t pc = 0;         // next micro-op
  uint32_t depth = 0;      // call depth, a hint for reconvergence
  uint64_t instructions = 0;
  uint64_t slice_end = 0;  // instructions at which the slice is over
  CoreStatus status = CoreStatus::kIdle;
  bool waits = false;        // for an event, until it has come or the slice `until` begins
  uint32_t events_seen = 0;  // of those signalled
  uint32_t rounds = 0;       // of waiting, in vain
  uint32_t until = 0;
  Watch watch;
};

// What stopped a core; the fields of Event that are not implied by its status.
struct StopRecord {
  uint32_t uop = 0;
  Service service = Service::kSyscall;
  Slot slot = 0;
  Fault fault = Fault::kNone;
  uint64_t address = 0;
};

struct BlockResult {
  uint32_t completed = kNoBlock;  // the block that ended, if it did
  bool gave_way = false;          // the core wants others to run first
};

// Threads of a warp that are not at the same micro-op take turns by this order, smaller first:
// deeper calls, then lower addresses, so that those behind catch up.
GPUSIM_HD_INLINE uint32_t depth_key(const CoreState& s) { return ~s.depth; }

GPUSIM_HD_INLINE void stop_core(CoreState& s, StopRecord& record, CoreStatus status, uint32_t uop,
                                const StopInfo& stop) {
  s.status = status;
  record.uop = uop;
  record.fault = stop.fault;
  record.address = stop.address;
}

// Whether the core waits for an event that has not come.
GPUSIM_HD_INLINE bool sleeps(const MemoryView& memory, const CoreState& s, uint32_t slice) {
  return s.waits && static_cast<int32_t>(slice - s.until) < 0 && !s.watch.has_event(memory);
}

// Of a core that does not sleep. False: it reached the limit with a block that ended in an event, and
// stops now.
GPUSIM_HD_INLINE bool begin_slice(const Machine& m, uint32_t core, CoreState& s, uint32_t slice,
                                  uint64_t instructions, StopRecord& record) {
  if (s.waits && s.watch.has_event(m.memory)) s.rounds = 0;
  s.waits = false;
  s.slice_end = s.instructions + jittered(m.seed, slice, core, instructions);
  if (m.max_instructions == 0 || s.instructions < m.max_instructions) return true;
  stop_core(s, record, CoreStatus::kLimit, s.pc, StopInfo{});
  return false;
}

template <class Ctx>
GPUSIM_HD_INLINE void wait_for_event(const Machine& m, uint32_t core, uint32_t slice, CoreState& s,
                                     const Ctx& ctx, const Uop& u) {
  const auto data = static_cast<Slot>(u.a + 1);
  s.waits = start_watch(m.memory, core, ctx.get(u.a), ctx.get(data), s.events_seen, s.watch);
  s.until = slice + slices_to_sleep(s.rounds++);
  if (!s.watch.word) s.events_seen = Watch::read(m.memory.events);
}

// Runs a core from s.pc to the end of its block, or until it stops. All threads of a warp that
// enter with the same pc stay together until one of them faults.
template <class Ctx>
GPUSIM_HD_INLINE BlockResult run_block(const Machine& m, uint32_t core, uint32_t slice,
                                       CoreState& s, Ctx& ctx, StopRecord& record) {
  BlockResult result;
  uint32_t at = s.pc;
  Uop u = m.code.uops[at];
  for (;;) {
    // The next micro-op is fetched before this one runs: most often it follows.
    const Uop following = m.code.uops[at + 1];
    StopInfo stop;
    const Outcome outcome = execute(u, ctx, m.memory, core, stop);
    if (outcome == Outcome::kNext) {
      u = following;
      ++at;
      continue;
    }
    if (outcome == Outcome::kLink) {
      at = u.target();
      u = m.code.uops[at];
      continue;
    }
    if (outcome == Outcome::kFault) {
      stop_core(s, record, CoreStatus::kFault, at, stop);
      return result;
    }
    result.completed = u.block();
    s.instructions += m.blocks[u.block()].insn_count;
    s.pc = u.target();
    if (outcome == Outcome::kNotTaken) s.pc = at + 1;
    if (u.op == Op::jmp || u.op == Op::jmp_reg) {
      s.depth += u.aux == static_cast<uint8_t>(JumpHint::kCall);
      s.depth -= u.aux == static_cast<uint8_t>(JumpHint::kReturn) && s.depth > 0;
    }
    if (outcome == Outcome::kJumpReg) {
      s.pc = m.code.find(stop.address);
      if (s.pc == kNoUop) {
        stop_core(s, record, CoreStatus::kJump, at, stop);
        return result;
      }
    }
    if (outcome == Outcome::kService) {
      stop_core(s, record, CoreStatus::kService, s.pc, stop);
      record.service = static_cast<Service>(u.aux);
      record.slot = u.d;
      return result;
    }
    if (m.max_instructions && s.instructions >= m.max_instructions)
      stop_core(s, record, CoreStatus::kLimit, s.pc, stop);
    result.gave_way = outcome == Outcome::kGiveWay;
    if (result.gave_way && u.aux == static_cast<uint8_t>(Turn::kWaitForEvent))
      wait_for_event(m, core, slice, s, ctx, u);
    return result;
  }
}

inline Event make_event(uint32_t core, const CoreState& s, const StopRecord& r) {
  return {.core = core, .status = s.status, .service = r.service, .slot = r.slot,
          .fault = r.fault, .uop = r.uop, .address = r.address};
}

inline BlockInfo make_block_info(const Block& block) {
  BlockInfo info{block.insn_count, {}};
  for (int c = 0; c < kInsnClassCount; ++c) info.classes[c] = block.classes[static_cast<size_t>(c)];
  return info;
}

}  // namespace gpusim::cuda
