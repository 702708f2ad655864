#include "translator/passes/sync_code.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "device_sim/uir/vector.h"
#include "translator/common/translator.h"

namespace gpusim {
namespace {

// Instructions of a loop that waits, at most: host/chip/core_model.cpp takes longer ones for work.
constexpr uint32_t kMostOfLoop = 64;
constexpr size_t kMostCalls = 3, kMostStates = 256;

bool is_load(Shape s) { return s == Shape::kLdI || s == Shape::kLdX || s == Shape::kLdW; }
bool is_store(Shape s) { return s == Shape::kStI || s == Shape::kStX || s == Shape::kStW; }

bool synchronises(const Uop& u) {
  switch (op_info(u.op).shape) {
    case Shape::kAmo:
    case Shape::kCas:
    case Shape::kCas128:
    case Shape::kStx:
    case Shape::kStx128:
    case Shape::kFence:
    case Shape::kGiveWay:
      return true;
    // Writes to the journal whenever there is one.
    case Shape::kVector:
      return vector::is_access(vector::row_of(vector::Insn::unpack(u.imm).op).kind);
    default:
      return false;
  }
}

// Whether the block looks at a word with acquire order, or does what may have to be tried again.
bool looks_at_word(const DraftBlock& draft) {
  constexpr uint32_t kNever = ~uint32_t{0} - 1;
  uint32_t loaded = kNever;
  for (size_t i = 0; i < draft.uops.size(); ++i) {
    const Uop& u = draft.uops[i];
    const Shape shape = op_info(u.op).shape;
    const uint32_t insn = draft.uop_insn[i];
    if (is_load(shape)) loaded = insn;
    if (shape == Shape::kFence && insn - loaded <= 1) return true;
    if (synchronises(u) && shape != Shape::kFence && shape != Shape::kVector &&
        shape != Shape::kGiveWay && (shape != Shape::kAmo || u.op == Op::amo_swp))
      return true;
  }
  return false;
}

// Whether it does anything that a core does not repeat while it waits.
bool does_more(const Uop& u) {
  const Shape shape = op_info(u.op).shape;
  return is_store(shape) || shape == Shape::kVector ||
         (shape == Shape::kAmo && u.op != Op::amo_swp);
}

}  // namespace

SyncCode::SyncCode(const Module& module, std::span<const std::string_view> functions) {
  std::vector<const Symbol*> found;
  for (const Symbol& symbol : module.symbols)
    if (symbol.is_function &&
        std::ranges::find(functions, name_of_whole(symbol.name)) != functions.end())
      found.push_back(&symbol);
  for (const Symbol* symbol : found) {
    add_function(module, symbol->address, named_);
    for (const uint64_t target : branch_targets(module, symbol->address, symbol->size_bytes))
      if (target - symbol->address >= symbol->size_bytes) add_function(module, target, reached_);
  }
}

void SyncCode::add_function(const Module& module, uint64_t pc, Functions& functions) {
  constexpr uint64_t kUnknownSize = 64;
  uint64_t begin = pc, end = pc + kUnknownSize;
  const auto behind = std::ranges::upper_bound(module.symbols, pc, {}, &Symbol::address);
  for (auto it = behind; it != module.symbols.begin();) {
    --it;
    if (!it->is_function) continue;
    if (pc - it->address < it->size_bytes) {
      begin = it->address;
      end = it->address + it->size_bytes;
    }
    break;
  }
  uint64_t& known = functions[begin];
  known = std::max(known, end);
}

bool SyncCode::is_in(const Functions& functions, uint64_t pc) {
  const auto behind = functions.upper_bound(pc);
  return behind != functions.begin() && pc < std::prev(behind)->second;
}

SyncCode::Summary SyncCode::summary_of(const CodeBlock& block) {
  Summary s{.instructions = static_cast<uint32_t>(block.draft.classes.size()),
            .calls = block.is_call()};
  s.looks = looks_at_word(block.draft);
  s.does_more = std::ranges::any_of(block.draft.uops, does_more);
  s.waits = std::ranges::any_of(
      block.draft.uops, [](const Uop& u) { return op_info(u.op).shape == Shape::kGiveWay; });
  if (!block.draft.end.present) {
    s.next = block.next_pc;
    return s;
  }
  const Uop& end = block.draft.uops.back();
  if (block.has_target()) s.taken = block.draft.end.taken_pc;
  if (block.falls_through() || s.calls) s.next = block.next_pc;
  s.returns = end.op == Op::jmp_reg && static_cast<JumpHint>(end.aux) == JumpHint::kReturn;
  return s;
}

const SyncCode::Summary* SyncCode::find(uint64_t pc, const BlockAt& block_at) {
  const auto [it, is_new] = seen_.try_emplace(pc);
  if (is_new)
    if (const std::optional<CodeBlock> block = block_at(pc)) it->second = summary_of(*block);
  return it->second ? &*it->second : nullptr;
}

bool SyncCode::has(const CodeBlock& block, const BlockAt& block_at) {
  const uint64_t pc = block.draft.pc;
  if (is_in(named_, pc) || is_in(reached_, pc) || called_.contains(pc) ||
      std::ranges::any_of(block.draft.uops, synchronises))
    return true;
  seen_.insert_or_assign(pc, summary_of(block));
  return is_in_loop(pc, block_at);
}

// Whether a way of few instructions leads from the block back to it, and looks at a word that
// others may change. Blocks of functions that such ways call belong to them. A function that is
// known by name ends a way: who comes back from it looks anew.
bool SyncCode::is_in_loop(uint64_t pc, const BlockAt& block_at) {
  struct State {
    uint64_t pc = 0;
    std::array<uint64_t, kMostCalls> returns{};
    size_t depth = 0;
    uint32_t instructions = 0;
    bool looks = false, waits = false, does_more = false;
    bool is_wait() const { return waits || (looks && !does_more); }
  };
  std::vector<State> states{{.pc = pc}};
  std::vector<std::vector<size_t>> before(1);  // per state: those that led to it
  std::map<std::tuple<uint64_t, size_t, uint64_t, bool, bool, bool>, size_t> known;
  std::vector<size_t> ends;  // that led back
  for (size_t i = 0; i < states.size() && states.size() < kMostStates; ++i) {
    const State here = states[i];
    if (i != 0 && is_in(named_, here.pc)) continue;
    const Summary* const block = find(here.pc, block_at);
    if (!block) continue;
    State next = here;
    next.looks |= block->looks;
    next.waits |= block->waits;
    next.does_more |= block->does_more;
    next.instructions += block->instructions;
    if (next.instructions > kMostOfLoop) continue;
    const auto go_to = [&](State to, uint64_t target) {
      to.pc = target;
      if (target == pc && to.depth == 0) {
        if (to.is_wait()) ends.push_back(i);
        if (to.is_wait()) return;
      }
      const uint64_t top = to.depth == 0 ? 0 : to.returns[to.depth - 1];
      const auto [it, is_new] = known.try_emplace(
          {target, to.depth, top, to.looks, to.waits, to.does_more}, states.size());
      if (is_new) {
        states.push_back(to);
        before.emplace_back();
      }
      before[it->second].push_back(i);
    };
    if (block->returns) {
      if (next.depth != 0) {
        --next.depth;
        go_to(next, next.returns[next.depth]);
      }
    } else if (block->calls && block->taken && block->next && next.depth < kMostCalls) {
      State callee = next;
      callee.returns[callee.depth++] = *block->next;
      go_to(callee, *block->taken);
    } else if (block->calls) {
      if (block->next) go_to(next, *block->next);
    } else {
      if (block->taken) go_to(next, *block->taken);
      if (block->next) go_to(next, *block->next);
    }
  }
  const bool found = !ends.empty();
  std::vector<bool> seen(states.size());
  while (!ends.empty()) {
    const size_t i = ends.back();
    ends.pop_back();
    if (seen[i]) continue;
    seen[i] = true;
    if (states[i].depth != 0) called_.insert(states[i].pc);
    ends.insert(ends.end(), before[i].begin(), before[i].end());
  }
  return found;
}

}  // namespace gpusim
