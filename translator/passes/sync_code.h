// Which blocks bear on the order between cores: a journal of that order alone has no others
// (TranslateOptions::order_only).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "translator/common/draft.h"

namespace gpusim {

/// Blocks that synchronise: by an atomic operation, a fence or by giving way; all blocks of
/// functions of certain names, and of those that they lead to; and blocks of short loops that may
/// wait for another core. Loops that wait by a call through a pointer are missed.
class SyncCode {
 public:
  /// The module has its segments and symbols.
  SyncCode(const Module& module, std::span<const std::string_view> functions);

  /// The block at an address as the program has it, or nothing.
  using BlockAt = std::function<std::optional<CodeBlock>(uint64_t pc)>;
  bool has(const CodeBlock& block, const BlockAt& block_at);
  /// Code has changed.
  void forget() { seen_.clear(); }

 private:
  // What a search has to know of a block.
  struct Summary {
    uint32_t instructions = 0;
    bool looks = false;      // at a word that others may change, or tries to change it
    bool waits = false;      // gives way
    bool does_more = false;  // stores, or changes a word in any case
    bool calls = false, returns = false;
    std::optional<uint64_t> taken, next;
  };
  static Summary summary_of(const CodeBlock& block);
  const Summary* find(uint64_t pc, const BlockAt& block_at);
  using Functions = std::map<uint64_t, uint64_t>;  // begin, end
  static bool is_in(const Functions& functions, uint64_t pc);
  static void add_function(const Module& module, uint64_t pc, Functions& functions);
  bool is_in_loop(uint64_t pc, const BlockAt& block_at);

  Functions named_, reached_;            // from the former
  std::unordered_set<uint64_t> called_;  // blocks of functions that loops call
  std::unordered_map<uint64_t, std::optional<Summary>> seen_;
};

}  // namespace gpusim
