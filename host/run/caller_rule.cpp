#include "host/run/caller_rule.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "device_sim/uir/access.h"
#include "translator/common/draft.h"
#include "translator/common/isa_list.h"
#include "translator/common/translator.h"
#include "translator/passes/operands.h"

namespace gpusim::host {
namespace {

struct Value {
  enum class Kind : uint8_t { kUnknown, kConstant, kCfa, kCaller };
  Kind kind = Kind::kUnknown;
  int64_t number = 0;  // the constant; the distance from the CFA; whose slot's value

  bool is(Kind k) const { return kind == k; }
  bool operator==(const Value&) const = default;
};

constexpr Value constant(int64_t number) { return {Value::Kind::kConstant, number}; }

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// What an ISA's slots and the frame hold.
class Frame {
 public:
  explicit Frame(const GuestIsa& isa) : isa_(&isa) {
    for (size_t s = 0; s < slots_.size(); ++s)
      slots_[s] = {Value::Kind::kCaller, static_cast<int64_t>(s)};
    slots_[isa.roles.zero] = constant(0);
    slots_[static_cast<size_t>(isa.frames.slots[static_cast<size_t>(isa.frames.stack_pointer)])] = {
        Value::Kind::kCfa, 0};
  }

  Value get(int slot) const { return slots_[static_cast<size_t>(slot)]; }
  const std::map<int64_t, int64_t>& saved() const { return saved_; }
  int64_t depth() const {  // bytes below the CFA; without end where alloca() was
    const Value sp = get(isa_->frames.slots[static_cast<size_t>(isa_->frames.stack_pointer)]);
    return sp.is(Value::Kind::kCfa) ? -sp.number : std::numeric_limits<int64_t>::max();
  }

  void execute(const Uop& u) {
    switch (u.op) {
      case Op::konst:
        return set(u.d, constant(as_signed(u.imm)));
      case Op::mov:
        return set(u.d, get(u.a));
      case Op::add64:
      case Op::add32:
        return set(u.d, sum(get(u.a), get(u.b)));
      case Op::addi64:
      case Op::addi32:
        return set(u.d, sum(get(u.a), constant(as_signed(u.imm))));
      case Op::addiw: {
        const Value a = sum(get(u.a), constant(as_signed(u.imm)));
        return set(
            u.d, a.is(Value::Kind::kConstant) ? constant(static_cast<int32_t>(a.number)) : Value{});
      }
      case Op::sub64:
      case Op::sub32: {
        const Value b = get(u.b);
        return set(u.d, b.is(Value::Kind::kConstant)
                            ? sum(get(u.a), constant(wrapping_add(~b.number, 1)))
                            : Value{});
      }
      case Op::lsli64: {
        const Value a = get(u.a);
        return set(u.d,
                   a.is(Value::Kind::kConstant)
                       ? constant(static_cast<int64_t>(static_cast<uint64_t>(a.number) << u.imm))
                       : Value{});
      }
      default:
        break;
    }
    const Shape shape = op_info(u.op).shape;
    if (shape == Shape::kLdI || shape == Shape::kStI) {
      const Value address = sum(get(u.a), constant(as_signed(u.imm)));
      if (address.is(Value::Kind::kCfa)) {
        const int size_bytes = access_info(u.op).size;
        if (shape == Shape::kStI) return store(address.number, size_bytes, get(u.d));
        return set(u.d, size_bytes == word_bytes() ? load(address.number) : Value{});
      }
    }
    for_each_operand(u, [&](Slot first, uint8_t, uint8_t writes) {
      for (int s = first; s < first + writes; ++s) set(s, {});
    });
  }

 private:
  int64_t as_signed(uint64_t value) const {
    return isa_->register_bits == 32 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
  }
  int word_bytes() const { return static_cast<int>(isa_->register_bits / 8); }

  static Value sum(Value a, Value b) {
    if (a.is(Value::Kind::kConstant)) std::swap(a, b);
    // A move, as RISC-V writes it.
    if (b == constant(0)) return a;
    const bool is_known =
        b.is(Value::Kind::kConstant) && (a.is(Value::Kind::kConstant) || a.is(Value::Kind::kCfa));
    return is_known ? Value{a.kind, wrapping_add(a.number, b.number)} : Value{};
  }

  void set(int slot, Value value) {
    if (slot != isa_->roles.zero) slots_[static_cast<size_t>(slot)] = value;
  }

  Value load(int64_t offset) const {
    const auto found = saved_.find(offset);
    return found == saved_.end() ? Value{} : Value{Value::Kind::kCaller, found->second};
  }
  void store(int64_t offset, int size_bytes, Value value) {
    saved_.erase(saved_.upper_bound(offset - word_bytes()),
                 saved_.lower_bound(offset + size_bytes));
    if (!value.is(Value::Kind::kCaller) || size_bytes != word_bytes()) return;
    // The first place counts: a value that is not defined is stored like any other.
    const bool is_saved = std::ranges::any_of(
        saved_, [&](const auto& s) { return s.second == value.number && s.first >= -depth(); });
    constexpr size_t kMostSaved = 64;
    if (!is_saved && saved_.size() < kMostSaved) saved_[offset] = value.number;
  }

  const GuestIsa* isa_;
  std::array<Value, 256> slots_{};
  std::map<int64_t, int64_t> saved_;  // the slot whose value in the caller is at CFA + key
};

// What a frame says of the caller.
CallerRule rule_of(const GuestIsa& isa, const Frame& frame) {
  CallerRule rule;
  const std::span<const int> slots = isa.frames.slots;
  const auto is_base = [&](int reg) {
    return slots[static_cast<size_t>(reg)] != kNoSlot &&
           frame.get(slots[static_cast<size_t>(reg)]).is(Value::Kind::kCfa);
  };
  // After alloca() only the frame pointer tells.
  rule.cfa_register = isa.frames.stack_pointer;
  if (!is_base(rule.cfa_register)) rule.cfa_register = isa.frames.frame_pointer;
  if (!is_base(rule.cfa_register)) return rule;
  rule.is_known = rule.is_from_code = true;
  rule.cfa_offset = -frame.get(slots[static_cast<size_t>(rule.cfa_register)]).number;
  std::map<int64_t, int> registers;  // DWARF's number of a slot
  for (size_t reg = 0; reg < slots.size(); ++reg) registers[slots[reg]] = static_cast<int>(reg);
  std::map<int, CallerRule::Saved> found;
  for (size_t reg = 0; reg < slots.size(); ++reg) {
    const Value value = slots[reg] == kNoSlot ? Value{} : frame.get(slots[reg]);
    if (value == Value{Value::Kind::kCaller, slots[reg]}) continue;
    const int number = static_cast<int>(reg);
    found.try_emplace(number, CallerRule::Saved{.reg = number});
    if (const auto whose = registers.find(value.number);
        value.is(Value::Kind::kCaller) && whose != registers.end())
      found[whose->second] = {whose->second, CallerRule::Saved::Where::kRegister, number};
  }
  // What is saved counts before registers: a call from here may have changed those.
  for (const auto& [offset, slot] : frame.saved())
    if (const auto whose = registers.find(slot);
        whose != registers.end() && offset >= -frame.depth())
      found[whose->second] = {whose->second, CallerRule::Saved::Where::kAtCfa, offset};
  found.erase(isa.frames.stack_pointer);  // the CFA
  for (const auto& [reg, saved] : found) rule.saved.push_back(saved);
  return rule;
}

bool links_by(const CodeBlock& call, int slot) {
  return std::ranges::any_of(call.draft.uops, [&](const Uop& u) {
    return u.op == Op::konst && u.d == slot && u.imm == call.next_pc;
  });
}

// Of the C library. Others are followed as if they did, after all else.
bool never_returns(const Module& module, uint64_t function) {
  static constexpr std::string_view kNames[] = {"abort", "exit", "__assert_fail",
                                                "__stack_chk_fail"};
  const Symbol* const symbol = symbol_at(module, function);
  return symbol && symbol->address == function &&
         std::ranges::find(kNames, symbol->name) != std::end(kNames);
}

}  // namespace

CallerRule rule_from_debug_info(DebugInfo& debug_info, size_t registers, uint64_t pc) {
  CallerRule rule;
  Dwfl* const dwfl = debug_info.get();
  Dwfl_Module* const file = dwfl ? dwfl_addrmodule(dwfl, pc) : nullptr;
  if (!file) return rule;
  Dwarf_Frame* found = nullptr;
  Dwarf_Addr bias = 0;
  Dwarf_CFI* cfi = dwfl_module_eh_cfi(file, &bias);
  if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &found) != 0) {
    found = nullptr;
    cfi = dwfl_module_dwarf_cfi(file, &bias);
    if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &found) != 0) return rule;
  }
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(found, &std::free);
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  // "register + offset" is all that compilers write for code of C and C++.
  if (dwarf_frame_cfa(frame.get(), &ops, &count) != 0 || count != 1) return rule;
  if (ops[0].atom == DW_OP_bregx) {
    rule.cfa_register = static_cast<int>(ops[0].number);
    rule.cfa_offset = static_cast<int64_t>(ops[0].number2);
  } else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
    rule.cfa_register = ops[0].atom - DW_OP_breg0;
    rule.cfa_offset = static_cast<int64_t>(ops[0].number);
  } else {
    return rule;
  }
  for (int reg = 0; reg < static_cast<int>(registers); ++reg) {
    Dwarf_Op memory[3];
    if (dwarf_frame_register(frame.get(), reg, memory, &ops, &count) != 0) return rule;
    if (count == 0 && ops == nullptr) continue;  // the same value
    CallerRule::Saved s{.reg = reg};
    if (count != 0 && ops[0].atom == DW_OP_call_frame_cfa) {
      size_t at = 1;
      if (at < count && ops[at].atom == DW_OP_plus_uconst)
        s.value = static_cast<int64_t>(ops[at++].number);
      const bool is_value = at < count && ops[at].atom == DW_OP_stack_value;
      if (at + is_value == count)
        s.where = is_value ? CallerRule::Saved::Where::kIsCfa : CallerRule::Saved::Where::kAtCfa;
    } else if (count == 1 && ops[0].atom == DW_OP_regx) {
      s.where = CallerRule::Saved::Where::kRegister;
      s.value = static_cast<int64_t>(ops[0].number);
    } else if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
      s.where = CallerRule::Saved::Where::kRegister;
      s.value = ops[0].atom - DW_OP_reg0;
    }
    rule.saved.push_back(s);
  }
  rule.is_known = true;
  return rule;
}

CallerRule rule_from_code(const Module& module, uint64_t begin, uint64_t end, uint64_t pc,
                          size_t& budget) {
  constexpr uint64_t kMostBytes = 1 << 16;
  constexpr size_t kMostWays = 256;
  const GuestIsa* const isa = find_isa(module.isa);
  if (!isa || isa->frames.slots.empty() || end - begin > kMostBytes) return {};
  const Guise guise{.cpu = find_cpu(*isa, module.cpu).value_or(0)};
  const auto code = [&](uint64_t at) { return code_from(module, at); };
  const auto is_one = [](uint64_t) { return true; };
  std::unordered_set<uint64_t> seen;
  const auto is_new = [&](uint64_t at) {
    return at >= begin && at < end && !seen.contains(at) && isa->first_insn(at, code(at));
  };

  // Ways on: along branches before behind calls, because some calls never return.
  struct Way {
    uint64_t at;
    Frame frame;
  };
  std::deque<Way> ways, behind_calls;
  std::optional<Frame> at_table;  // at an indirect jump, the deepest one
  uint64_t gap = begin;
  ways.push_back({begin, Frame(*isa)});
  while (true) {
    if (ways.empty()) ways.swap(behind_calls);
    if (ways.empty()) {
      // What only a table of jumps leads to has the frame of the jump.
      while (seen.contains(gap)) gap += isa->first_insn(gap, code(gap)).bytes.size();
      if (!at_table || !is_new(gap)) return {};
      ways.push_back({gap, *at_table});
    }
    auto [at, frame] = std::move(ways.front());
    ways.pop_front();
    while (is_new(at)) {
      if (budget == 0) return {};
      --budget;
      seen.insert(at);
      const CodeBlock block = form_block(*isa, at, code, is_one, guise);
      if (pc >= at && pc < block.next_pc) return rule_of(*isa, frame);
      for (const Uop& u : block.draft.uops) frame.execute(u);
      at = block.next_pc;
      if (!block.draft.end.present) continue;
      const Uop& last = block.draft.uops.back();
      if (block.is_call()) {
        // Through another register: to a part that functions share, as __riscv_save_0.
        if (!links_by(block, isa->frames.slots[static_cast<size_t>(isa->frames.return_address)]))
          break;
        if (last.op == Op::jmp && never_returns(module, block.draft.end.taken_pc)) break;
        behind_calls.push_back({at, std::move(frame)});
        break;
      }
      if (last.op == Op::jmp_reg) {
        if (static_cast<JumpHint>(last.aux) != JumpHint::kReturn &&
            (!at_table || frame.depth() > at_table->depth()))
          at_table = std::move(frame);
        break;
      }
      if (!block.has_target()) break;
      const uint64_t taken = block.draft.end.taken_pc;
      if (!block.falls_through())
        at = taken;
      else if (is_new(taken) && ways.size() < kMostWays)
        ways.push_back({taken, frame});
    }
  }
}

}  // namespace gpusim::host
