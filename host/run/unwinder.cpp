#include "host/run/unwinder.h"

#include <algorithm>
#include <memory>

#include "host/guest_access.h"
#include "host/start_state.h"
#include "translator/common/isa_list.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

bool is_same_function(const Module& module, uint64_t a, uint64_t b) {
  const auto name = [&](uint64_t pc) {
    const std::string symbol = symbolize(module, pc);
    return symbol.substr(0, symbol.find('+'));
  };
  return name(a) == name(b);
}

// Labels within a function are none.
const Symbol* function_at(const Module& module, uint64_t pc) {
  constexpr int kMostLabels = 64;
  auto at = std::ranges::upper_bound(module.symbols, pc, {}, &Symbol::address);
  for (int tries = 0; at != module.symbols.begin() && tries < kMostLabels; ++tries) {
    --at;
    if (at->is_function && pc - at->address < at->size_bytes) return &*at;
  }
  const Symbol* const symbol = symbol_at(module, pc);
  return symbol && symbol->is_function ? symbol : nullptr;
}

}  // namespace

// Read when they are needed: on a GPU a register takes microseconds.
class Unwinder::Registers {
 public:
  Registers(const Unwinder& owner, uint32_t core) : owner_(&owner), core_(core) {
    values_.resize(owner.slots_.size());
    is_cores_.assign(owner.slots_.size(), true);
  }

  uint32_t core() const { return core_; }
  std::optional<uint64_t> get(int reg) const {
    const auto i = static_cast<size_t>(reg);
    if (reg < 0 || i >= values_.size()) return std::nullopt;
    if (is_cores_[i]) {
      const int slot = owner_->slots_[i];
      // The program nowhere sets it.
      if (slot == kNoSlot) return 0;
      return owner_->kernel_.slot(core_, static_cast<Slot>(slot));
    }
    return values_[i];
  }
  void set(int reg, std::optional<uint64_t> value) {
    const auto i = static_cast<size_t>(reg);
    if (reg < 0 || i >= values_.size()) return;
    is_cores_[i] = false;
    values_[i] = value;
  }
  std::optional<uint64_t> load(uint64_t address) const {
    uint64_t value = 0;  // little-endian: the upper bytes of a narrow one stay zero
    const std::span<uint8_t> word(reinterpret_cast<uint8_t*>(&value), owner_->word_bytes_);
    if (!owner_->kernel_.memory_of(core_).read(address, word)) return std::nullopt;
    return value;
  }

 private:
  const Unwinder* owner_;
  uint32_t core_;
  std::vector<std::optional<uint64_t>> values_;
  std::vector<bool> is_cores_;  // as the core has it now
};

Unwinder::Unwinder(const Module& module, Kernel& kernel, DebugInfo* debug_info)
    : module_(module), kernel_(kernel), debug_info_(debug_info) {
  const GuestIsa* const isa = find_isa(module.isa);
  if (!isa) return;
  frames_ = &isa->frames;
  word_bytes_ = isa->register_bits / 8;
  for (const int canonical : frames_->slots) {
    slots_.push_back(kNoSlot);
    if (canonical == kNoSlot) continue;
    const std::string name = isa->slot_name(canonical);
    for (const SlotName& s : module.slot_names)
      if (s.name == name) slots_.back() = s.slot;
  }
}

bool Unwinder::is_code(uint64_t address) const {
  return module_.code.unit_of(address) < module_.code.uop_at.size();
}

SignalFrame::CallerRegisters Unwinder::frame_of(const Registers& caller) const {
  return {.stack_pointer = caller.get(frames_->stack_pointer).value_or(0),
          .frame_pointer = caller.get(frames_->frame_pointer).value_or(0)};
}

bool Unwinder::returns_somewhere(const Registers& caller) const {
  const uint64_t to = caller.get(frames_->return_address).value_or(0);
  return to == 0 || to == return_address(module_) || is_code(to - 1) ||
         kernel_.interrupted_at(caller.core(), to, frame_of(caller));
}

CallStack Unwinder::stack(uint32_t core, CallPlace place) {
  CallStack stack{.places = {place}, .bad_return = {}};
  if (!frames_) return stack;
  Registers registers(*this, core);
  bool is_innermost = true;
  while (true) {
    if (stack.places.size() == kMostCalls) {
      stack.is_cut = true;
      break;
    }
    const uint64_t at = place.inside();
    std::optional<Registers> caller = step_by_rule(registers, at, is_innermost);
    if (!caller || !returns_somewhere(*caller)) {
      std::optional<Registers> other = step_by_frame_pointer(registers, at, is_innermost);
      if (other && (!caller || returns_somewhere(*other))) caller = std::move(other);
    }
    if (!caller) break;
    registers = std::move(*caller);
    is_innermost = false;
    const uint64_t to = registers.get(frames_->return_address).value_or(0);
    if (to == 0 || to == return_address(module_)) break;
    if (const auto interrupted = kernel_.interrupted_at(core, to, frame_of(registers))) {
      for (size_t reg = 0; reg < slots_.size(); ++reg) registers.set(static_cast<int>(reg), {});
      for (const auto& [slot, value] : interrupted->registers)
        for (size_t reg = 0; reg < slots_.size(); ++reg)
          if (slots_[reg] == slot) registers.set(static_cast<int>(reg), value);
      place = {.pc = interrupted->pc, .is_return = false, .was_interrupted = true};
      is_innermost = true;
    } else {
      place = {.pc = to, .is_return = true};
    }
    if (!is_code(place.inside())) {
      stack.bad_return = place.pc;
      break;
    }
    stack.places.push_back(place);
  }
  return stack;
}

std::optional<Unwinder::Registers> Unwinder::step_by_rule(const Registers& callee, uint64_t pc,
                                                          bool is_innermost) {
  const CallerRule& rule = rule_at(pc);
  const auto base = rule.is_known ? callee.get(rule.cfa_register) : std::nullopt;
  const auto sp = callee.get(frames_->stack_pointer);
  if (!base || !sp) return std::nullopt;
  const uint64_t cfa = *base + static_cast<uint64_t>(rule.cfa_offset);
  // A function that called has its own return address elsewhere than in the register.
  const auto back = std::ranges::find(rule.saved, frames_->return_address, &CallerRule::Saved::reg);
  const bool is_back_known =
      back == rule.saved.end()
          ? is_innermost
          : !rule.is_from_code || back->where != CallerRule::Saved::Where::kLost;
  if (!is_back_known) return std::nullopt;
  // Only a leaf needs no stack; nothing is saved beyond the end of addresses.
  if (cfa < *sp || (cfa == *sp && !is_innermost)) return std::nullopt;
  Registers caller = callee;
  caller.set(frames_->stack_pointer, cfa);
  for (const CallerRule::Saved& s : rule.saved) {
    const uint64_t address = cfa + static_cast<uint64_t>(s.value);
    switch (s.where) {
      case CallerRule::Saved::Where::kAtCfa:
        caller.set(s.reg, callee.load(address));
        break;
      case CallerRule::Saved::Where::kIsCfa:
        caller.set(s.reg, address);
        break;
      case CallerRule::Saved::Where::kRegister:
        caller.set(s.reg, callee.get(static_cast<int>(s.value)));
        break;
      case CallerRule::Saved::Where::kLost:
        caller.set(s.reg, std::nullopt);
        break;
    }
  }
  return caller;
}

std::optional<Unwinder::Registers> Unwinder::step_by_frame_pointer(const Registers& callee,
                                                                   uint64_t pc,
                                                                   bool is_innermost) const {
  const auto sp = callee.get(frames_->stack_pointer);
  const auto fp = callee.get(frames_->frame_pointer);
  if (!sp) return std::nullopt;
  std::optional<uint64_t> saved_fp, saved_return;
  if (fp && *fp >= *sp) {
    saved_fp = callee.load(*fp + static_cast<uint64_t>(frames_->saved_frame_pointer));
    saved_return = callee.load(*fp + static_cast<uint64_t>(frames_->saved_return_address));
  }
  // A leaf, or a function that has not yet made its frame, still has the return address in its
  // register; elsewhere the register tells where the function's last call came back to.
  if (is_innermost) {
    const auto link = callee.get(frames_->return_address);
    if (link && link != saved_return && *link != 0 &&
        (*link == return_address(module_) ||
         (is_code(*link - 1) && !is_same_function(module_, *link - 1, pc))))
      return callee;
  }
  if (!saved_fp || !saved_return) return std::nullopt;
  Registers caller = callee;
  for (size_t reg = 0; reg < slots_.size(); ++reg) caller.set(static_cast<int>(reg), {});
  caller.set(frames_->frame_pointer, saved_fp);
  caller.set(frames_->return_address, saved_return);
  caller.set(frames_->stack_pointer, *fp + static_cast<uint64_t>(frames_->end_of_record));
  return caller;
}

const CallerRule& Unwinder::rule_at(uint64_t pc) {
  constexpr size_t kMostRules = 1 << 16;
  if (rules_.size() >= kMostRules) rules_.clear();
  const auto [it, is_new] = rules_.try_emplace(pc);
  if (is_new) it->second = find_rule(pc);
  return it->second;
}

CallerRule Unwinder::find_rule(uint64_t pc) {
  if (debug_info_)
    if (CallerRule rule = rule_from_debug_info(*debug_info_, slots_.size(), pc); rule.is_known)
      return rule;
  const Symbol* const function = function_at(module_, pc);
  // Cold parts of functions begin with the frame that the function had.
  if (!function || function->name.find(".cold") != std::string::npos) return {};
  const uint64_t size_bytes = function->size_bytes;
  return rule_from_code(module_, function->address,
                        size_bytes ? function->address + size_bytes : pc + 1, pc, budget_);
}

}  // namespace gpusim::host
