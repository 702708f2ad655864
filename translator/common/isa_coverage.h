// Which rows of an ISA's decode table a run has executed: what docs/isa-support.md is made from.
#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "device_sim/uir/module.h"
#include "translator/common/draft.h"

namespace gpusim {

class IsaCoverage {
 public:
  explicit IsaCoverage(const GuestIsa& isa) : isa_(isa) {}

  /// Blocks with a count above zero. `counts`: executions per block.
  void add_blocks(const Module& module, std::span<const uint64_t> counts, const CodeAt& code_at);
  void add(const GuestInsn& insn);

  const std::set<std::string>& rows() const { return rows_; }
  /// A line per row.
  std::string text() const;

 private:
  const GuestIsa& isa_;
  std::set<std::string> rows_;
};

}  // namespace gpusim
