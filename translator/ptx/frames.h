// Functions that stand apart: each activation has a frame in the thread's local memory.
//
// A register of the kernel holds the address of the frame. A frame has the address to return to,
// results, parameters, variables in local memory, and what its function keeps of its registers
// while it calls: all that are live then, since callees use the same slots. The caller writes
// parameters and reads results behind its own frame, where the callee's begins.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "translator/ptx/unit.h"

namespace gpusim::ptx {

class Frames {
 public:
  explicit Frames(Function& out) : out_(out) {}

  /// What follows in the body belongs to another function: first the kernel, which has no
  /// parameters in memory. `names`: of the parameters' names, those in the body.
  void begin(const Prototype& signature, const std::map<std::string, std::string>& names = {});
  size_t count() const { return frames_.size(); }
  bool is_in_function() const { return frames_.size() > 1; }
  /// Whether any call stays one.
  bool has_stack() const { return stack_ != kNoRegister; }
  void add_local(const Variable& v, const std::string& name);
  /// Variables that a call hands over.
  void add_outgoing(const Instruction& call, const Prototype& signature,
                    const std::map<std::string, std::string>& names);
  /// Operands that name variables of frames become addresses.
  void to_memory(Instruction& insn);

  std::vector<Instruction> call(Instruction insn);
  Instruction return_of(Instruction insn) const;
  // At the beginning of a function, and behind the last instructions.
  Instruction clear_registers();
  Instruction end_of_function() const;
  Instruction end_of_kernel() const;

  /// When all is there: what calls keep, and the sizes of frames. Adds the stack's beginning.
  void finish();

  static bool is_alike(const Prototype& a, const Prototype& b);
  static void check(const Instruction& call, const Prototype& signature);

 private:
  struct Frame {
    uint64_t bytes = 0;  // without what calls keep
    size_t begin = 0;    // of its function in the body
    std::vector<uint32_t> calls;
  };
  Operand stack();
  Instruction part(const Row& row, std::vector<Operand> operands) const;

  Function& out_;
  uint32_t stack_ = kNoRegister;
  std::vector<Frame> frames_;
  std::vector<uint32_t> entries_;
  std::map<std::string, uint64_t> inside_, outgoing_;  // offsets in the frame; in the callee's
};

}  // namespace gpusim::ptx
