// Generates code for strands: micro-ops from a place where control may arrive to the next one that
// ends a block.
#pragma once
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "device_sim/core/guarded_space.h"
#include "device_sim/native/runs.h"
#include "device_sim/native/slot_map.h"
#include "device_sim/uir/module.h"

namespace gpusim::native {

// What is the same for all code of an engine.
struct Surroundings {
  const Module* module = nullptr;
  MemoryView memory;
  SlotMap slots;
  // The modes in the slot that the ABI names are the usual ones: the machine computes, and its
  // inexact exceptions, which are gathered in MXCSR, are IXC.
  bool fp_by_machine = false;
  // In Frame::block_counts and Frame::tally, instead of behind the frame.
  bool counts_at_once = false;
  uint64_t weight = 1;              // of an execution in Frame::block_counts
  uint64_t pages = 0;               // that PageRights are known of
  bool plain_windows = false;       // the windows are one run of storage
  DirectMemory direct;              // if there is one, GS begins there, and PageRights are not used
  uint64_t leave = 0, compute = 0;  // addresses of the code in common
};

class StrandWriter {
 public:
  StrandWriter(asmjit::CodeHolder& code, const Surroundings& around);

  // Null if there is no code at the micro-op yet.
  using Find = std::function<uint64_t(uint32_t uop)>;
  // Which of the frame's counts is a block's.
  using Count = std::function<uint32_t(uint32_t block)>;
  // Strands that start at these micro-ops, in this order.
  void write(std::span<const uint32_t> starts, const Find& find, const Count& count);
  bool failed() const { return failed_; }

  struct Way {
    uint32_t uop;
    Label label;
  };
  const std::vector<Way>& entries() const { return entries_; }
  // Code that leaves for a micro-op without code; may become a jump there.
  const std::vector<Way>& exits() const { return exits_; }
  // Instructions that access memory without a look at permissions, by place.
  struct Access {
    Label begin, end, slow;
  };
  const std::vector<Access>& accesses() const { return accesses_; }

 private:
  using V = Domain::V;
  void write_strand(uint32_t start, uint32_t next_start);
  void write_uop(uint32_t i);
  bool write_value(uint32_t i);
  V flags(const Uop& u);
  void finish(const Uop& u, Slot d, const V& v);
  void write_call(uint32_t i);
  void write_access(uint32_t i);
  void write_guarded_access(uint32_t i, Label slow, Label done);
  void write_checked_access(uint32_t i, Label slow, Label done);
  void write_slow_access(uint32_t i, Label slow, Label done, std::function<void()> before);
  void write_address(const Uop& u, int64_t more);
  void write_move(const Uop& u, x86::Mem at);
  void write_check(uint8_t need, bool in_windows, int64_t extent, Label access, Label slow);
  bool seems_in_windows(const Uop& u) const;
  void write_block_count(uint32_t i);
  void write_branch(uint32_t i, uint32_t next_start);
  void write_indirect_jump(uint32_t i);
  bool names_fp_state(const Uop& u) const;
  void settle_exceptions();
  void check_fp_state(uint32_t next);
  void go_to(uint32_t uop, uint32_t next_start);
  Label way_to(uint32_t uop);
  V slot(Slot s) const;
  void later(std::function<void()> write) { later_.push_back(std::move(write)); }
  void leave_at(uint32_t uop);

  const Surroundings& around_;
  const Uop* uops_;
  x86::Assembler a_;
  Domain::State state_;
  Find find_;
  Count count_;
  std::unordered_map<uint32_t, Label> labels_;
  std::vector<Way> entries_, exits_;
  std::vector<Access> accesses_;
  std::deque<std::function<void()>> later_;
  const AccessRuns* runs_ = nullptr;
  std::vector<uint32_t> covers_;  // by run: its place in Frame::covers, + 1
  uint32_t covers_used_ = 0;
  bool failed_ = false;
};

// Adds the inexact exception that MXCSR may have to the state in the frame, and clears it.
void write_exceptions(x86::Assembler& a, int fp_state);
// If the state has it already: then what MXCSR has need not be looked at, nor cleared, until
// somebody writes the state.
void jump_if_inexact(x86::Assembler& a, int fp_state, Label to);

// Ends of strands.
inline bool ends_strand(const Uop& u) { return shape_info(op_info(u.op).shape).ends_block; }

}  // namespace gpusim::native
