// Compact values that generated code keeps in general registers, from one step to the next and
// round a loop. They are written to the group only where somebody else looks: before calls and
// segments, and when the code leaves.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "device_sim/simd/jit/chunk.h"

namespace gpusim::simd {

// A compact value in registers, which nobody changes any more; without a stride it is uniform.
struct Resident {
  x86::Gp base;
  std::optional<x86::Gp> stride;
  // From lane 0 to the last, if known: the stride is small enough for it not to wrap.
  std::optional<x86::Gp> span;
};

class Residents {
 public:
  Residents(x86::Compiler& cc, const GroupOperands& operands) : cc_(cc), at_(operands) {}

  // The value of a slot of that compact kind, which is loaded unless it is here.
  const Resident& get(Slot s, uint8_t kind) {
    Held& h = held_[s];
    if (h.here) return h.value;
    h.value = Resident{cc_.newUInt64(), std::nullopt, std::nullopt};
    cc_.mov(h.value.base, at_.base(s));
    if (kind == kAffine) {
      h.value.stride = cc_.newUInt64();
      cc_.mov(*h.value.stride, at_.stride(s));
    }
    h.here = true;
    return h.value;
  }
  void put(Slot s, const Resident& value) {
    Held& h = held_[s];
    h.value = value;
    h.here = true;
    set_dirty(s);
  }
  // Notes a slot's span, after somebody computed it.
  void note_span(Slot s, const x86::Gp& span) {
    if (held_[s].here) held_[s].value.span = span;
  }

  // The slot gets other values in the group.
  void drop(Slot s) {
    clear_dirty(s);
    held_[s].here = false;
  }
  void drop_all() {
    for (Held& h : held_) h.here = h.dirty = false;
    dirty_.clear();
  }

  // What the group does not know yet, as of where it is asked for.
  struct Unwritten {
    Slot slot;
    Resident value;
    bool operator==(const Unwritten& other) const {
      const auto id = [](const std::optional<x86::Gp>& r) { return r ? r->id() : 0; };
      return slot == other.slot && value.base.id() == other.value.base.id() &&
             id(value.stride) == id(other.value.stride);
    }
  };
  using State = std::vector<Unwritten>;
  State state() const {
    State state;
    state.reserve(dirty_.size());
    for (const Slot s : dirty_) state.push_back({s, held_[s].value});
    return state;
  }
  void write(const State& state) {
    for (const Unwritten& x : state) write(x.slot, x.value);
  }
  void flush(Slot s) {
    if (!held_[s].dirty) return;
    write(s, held_[s].value);
    clear_dirty(s);
  }
  void flush_all() {
    while (!dirty_.empty()) flush(dirty_.back());
  }

  // --- loops

  // Before the label that a loop goes back to: slots that its steps find here. Those that they
  // write may then differ from the group's.
  void begin_loop(const std::vector<Slot>& slots, const std::array<bool, 256>& written) {
    for (const Slot s : slots) {
      if (written[s]) set_dirty(s);
      loop_.emplace_back(s, held_[s].value);
    }
  }
  // Before the jump back: brings the values to where the loop's beginning expects them. All spans
  // that it expects are known.
  void end_loop() {
    // What is no value of the loop's may lie in a register that is about to be overwritten.
    for (const Unwritten& x : state())
      if (std::none_of(loop_.begin(), loop_.end(),
                       [&](const auto& entry) { return entry.first == x.slot; }))
        flush(x.slot);
    std::vector<std::pair<x86::Gp, x86::Gp>> moves;  // to, from
    const auto move = [&](const x86::Gp& to, const x86::Gp& from) {
      if (to.id() != from.id()) moves.emplace_back(to, from);
    };
    for (const auto& [slot, home] : loop_) {
      const Resident& value = held_[slot].value;
      move(home.base, value.base);
      if (home.stride) move(*home.stride, *value.stride);
      if (home.span) move(*home.span, *value.span);
      clear_dirty(slot);
    }
    // A value may be in the place of another.
    for (auto& [to, from] : moves) {
      bool is_target = false;
      for (const auto& other : moves) is_target |= other.first.id() == from.id();
      if (!is_target) continue;
      const x86::Gp copy = cc_.newUInt64();
      cc_.mov(copy, from);
      from = copy;
    }
    for (const auto& [to, from] : moves) cc_.mov(to, from);
  }
  const std::vector<std::pair<Slot, Resident>>& loop() const { return loop_; }

 private:
  struct Held {
    Resident value;
    bool here = false;
    bool dirty = false;  // the group has another
  };

  void set_dirty(Slot s) {
    if (!held_[s].dirty) dirty_.push_back(s);
    held_[s].dirty = true;
  }
  void clear_dirty(Slot s) {
    if (held_[s].dirty) std::erase(dirty_, s);
    held_[s].dirty = false;
  }
  void write(Slot s, const Resident& value) {
    cc_.mov(at_.base(s), value.base);
    if (value.stride) {
      cc_.mov(at_.stride(s), *value.stride);
      cc_.mov(at_.filled(s), 0);
    }
    cc_.mov(at_.kind(s), static_cast<int>(value.stride ? kAffine : kUniform));
  }

  x86::Compiler& cc_;
  const GroupOperands& at_;
  std::array<Held, 256> held_{};
  std::vector<Slot> dirty_;  // which are
  std::vector<std::pair<Slot, Resident>> loop_;
};

}  // namespace gpusim::simd
