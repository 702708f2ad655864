// Forms blocks at some addresses and at whatever they lead to directly.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_set>
#include <vector>

#include "translator/common/draft.h"

namespace gpusim {

class BlockFormer {
 public:
  /// `most`: of so many blocks, the nearest ones, and none of functions that they call. Where blocks
  /// start then depends on `starts_block` alone, not on what was formed before.
  BlockFormer(const GuestIsa& isa, const Guise& guise, CodeAt code_at,
              std::function<bool(uint64_t pc)> starts_block, size_t most = kAll);
  static constexpr size_t kAll = ~size_t{0};

  void add(uint64_t pc);
  /// Only if some block leads there should it turn out to be no instruction at all.
  void add_unless_unknown(uint64_t pc);
  /// Blocks by address. `exists`: no block is needed there.
  std::vector<CodeBlock> finish(const std::function<bool(uint64_t pc)>& exists);

  bool has_insn(uint64_t pc) const { return bool(isa_.first_insn(pc, code_at_(pc))); }
  CodeBlock form(uint64_t pc) const;

 private:
  void want_successors(const CodeBlock& b);
  void want(uint64_t pc);
  bool is_whole() const { return most_ == kAll; }

  const GuestIsa& isa_;
  Guise guise_;
  CodeAt code_at_;
  std::function<bool(uint64_t)> starts_block_;
  std::vector<CodeBlock> blocks_;
  std::unordered_set<uint64_t> seen_;
  std::deque<uint64_t> wanted_;
  size_t most_;
};

}  // namespace gpusim
