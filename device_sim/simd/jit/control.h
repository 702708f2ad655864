// Emits how generated code goes on: calls of the interpreter's handlers, ends of blocks, and leaving
// for the interpreter where something is not as recorded.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>

#include "device_sim/simd/jit/chunk.h"
#include "device_sim/simd/jit/compiler.h"
#include "device_sim/simd/jit/plan.h"
#include "device_sim/simd/jit/residents.h"

namespace gpusim::simd {

using asmjit::imm;
using asmjit::Label;

template <class Function>
asmjit::Imm address_of(Function* f) {
  return imm(reinterpret_cast<uint64_t>(f));
}

class ControlEmitter {
 public:
  ControlEmitter(const Trace& trace, const NativeCalls& calls, Emitter& emitter)
      : trace_(trace), calls_(calls), plan_(make_plan(trace)), emitter_(emitter), cc_(emitter.cc) {}

 protected:
  const Step& step(size_t i) const { return trace_.steps[i]; }
  const Uop& uop(size_t i) const { return trace_.steps[i].uop; }
  const Plan& plan(size_t i) const { return plan_.steps[i]; }

  // --- leaving

  x86::Mem uop_at(uint32_t index) const {
    return x86::ptr(uops_, static_cast<int32_t>(index * sizeof(Uop)));
  }
  x86::Gp uop_address(uint32_t index) {
    const x86::Gp p = cc_.newUIntPtr();
    cc_.lea(p, uop_at(index));
    return p;
  }
  // A way to `target`, one of the labels by which code is left, that writes `state` to the group.
  Label leave(const Residents::State& state, const Label& target) {
    if (state.empty()) return target;
    for (const Way& way : ways_)
      if (way.target == target && way.state == state) return way.label;
    ways_.push_back({state, target, cc_.newLabel()});
    deferred_.push_back([this, way = ways_.back()] {
      cc_.bind(way.label);
      residents_.write(way.state);
      cc_.jmp(way.target);
    });
    return ways_.back().label;
  }
  // Where the interpreter takes over at micro-op `index`, with everything before it done.
  Label exit_to(uint32_t index) {
    const Label label = cc_.newLabel();
    deferred_.push_back([this, label, index, state = residents_.state()] {
      cc_.bind(label);
      cc_.mov(at_.field(offsetof(Group, misfit), 4), static_cast<int>(Misfit::kForms));
      cc_.lea(next_, uop_at(index));
      cc_.jmp(leave(state, left_));
    });
    return label;
  }
  Label exit_at(size_t i) {
    return i == 0 ? leave(residents_.state(), missed_) : exit_to(step(i).index);
  }
  // The same for a step's own conditions. Steps that a segment takes in have not been executed
  // before its rows have: the interpreter begins with the segment.
  Label exit_of(size_t i) { return segment_exit_ ? *segment_exit_ : exit_at(i); }

  // --- steps that the interpreter executes

  asmjit::InvokeNode* invoke(const asmjit::Imm& target, const asmjit::FuncSignature& signature) {
    asmjit::InvokeNode* call = nullptr;
    cc_.invoke(&call, target, signature);
    return call;
  }
  void call_handler(size_t i) {
    const x86::Gp at = uop_address(step(i).index);
    auto* call = invoke(address_of(calls_.handlers[static_cast<int>(uop(i).op)]),
                        asmjit::FuncSignatureT<const void*, void*, const void*>());
    call->setArg(0, at_.group);
    call->setArg(1, at);
    call->setRet(0, next_);
  }
  void emit_call(size_t i) {
    residents_.flush_all();
    call_handler(i);
    residents_.drop_all();
    check_kinds(i);
    const ShapeInfo info = info_of(uop(i));
    if (info.ends_block && is_last(i)) {
      cc_.jmp(left_);
      return;
    }
    expect_next(i);
    if (!info.pure && !info.fp_state) check_active();
  }
  // Leaves unless the group went on where it went while recording.
  void expect_next(size_t i) {
    const x86::Gp expected = uop_address(step(i).next);
    cc_.cmp(next_, expected);
    cc_.jne(left_);
  }
  // The group may have gone on with other lanes, or without some that faulted.
  void check_active() {
    if (trace_.partial) {
      cc_.cmp(active_, at_.field(offsetof(Group, active), 8));
    } else {
      const x86::Gp active = cc_.newUInt64();
      cc_.mov(active, at_.field(offsetof(Group, active), 8));
      cc_.cmp(active, at_.field(offsetof(Group, exists), 8));
    }
    cc_.jne(left_);
  }
  bool is_last(size_t i) const { return i + 1 == trace_.steps.size() && !trace_.closed; }

  // Whether a field of some step names a slot: programs seldom look at the floating-point state, which
  // changes its form for good while flags are being set.
  bool is_named(Slot s) const {
    return std::any_of(trace_.steps.begin(), trace_.steps.end(), [s](const Step& x) {
      const Sources sources = sources_of(x.uop);
      return (has_d(x.uop) && x.uop.d == s) ||
             std::find(sources.slot, sources.slot + sources.count, s) != sources.slot + sources.count;
    });
  }
  // After a call: are the slots that it may have changed in the forms that they had?
  void check_kinds(size_t i) {
    const Step& s = step(i);
    const Shape shape = shape_of(s.uop);
    const auto check = [&](Slot slot, uint8_t kind) {
      cc_.cmp(at_.kind(slot), static_cast<int>(kind));
      cc_.jne(misfit_);
    };
    if (has_d(s.uop)) check(s.uop.d, s.d_after);
    if (info_of(s.uop).fp_state && is_named(s.uop.e))
      check(s.uop.e, s.state_after);
    if (!changes_sources(shape)) return;
    const Sources sources = sources_of(s.uop);
    for (int k = 0; k < sources.count; ++k)
      if (!is_compact(plan(i).source_kind[k]) && !(has_d(s.uop) && sources.slot[k] == s.uop.d))
        check(sources.slot[k], s.after[k] != s.before[k] ? s.after[k] : plan(i).source_kind[k]);
  }

  // --- ends of blocks

  // Counts the block that step `i` ends, for all lanes. Flags tell whether budget is left.
  void count_block(size_t i) {
    const uint32_t block = uop(i).block();
    const x86::Gp counts = cc_.newUIntPtr(), weight = cc_.newUInt64(), epoch = cc_.newUIntPtr();
    cc_.mov(counts, at_.field(offsetof(Group, block_counts), 8));
    cc_.mov(weight, at_.field(offsetof(Group, weight), 8));
    cc_.add(x86::ptr(counts, static_cast<int32_t>(8 * block), 8), weight);
    const BlockTally& tally = calls_.block_tallies[block];
    cc_.mov(epoch, at_.field(offsetof(Group, epoch), 8));
    emitter_.add_counts(epoch, tally.counts);
    const auto count = static_cast<int>(tally.counts[kInsnCount]);
    cc_.sub(at_.field(offsetof(Group, turns.patience), 8), count);
    cc_.sub(at_.field(offsetof(Group, budget), 8), count);
  }
  // The same, and goes on where it went while recording.
  void complete_block(size_t i) {
    count_block(i);
    const Label over = cc_.newLabel();
    cc_.jle(over);
    deferred_.push_back([this, over, next = step(i).next, state = residents_.state()] {
      cc_.bind(over);
      residents_.write(state);
      auto* call = invoke(address_of(&park), asmjit::FuncSignatureT<void, void*, uint32_t>());
      call->setArg(0, at_.group);
      call->setArg(1, imm(next));
      const x86::Gp none = cc_.newUIntPtr();
      cc_.xor_(none, none);
      cc_.ret(none);
    });
  }
  // The branch helper, which does everything.
  void call_branch(size_t i, const x86::Gp& taken) {
    const x86::Gp at = uop_address(step(i).index);
    auto* call = invoke(address_of(calls_.branch),
                        asmjit::FuncSignatureT<const void*, void*, const void*, uint64_t>());
    call->setArg(0, at_.group);
    call->setArg(1, at);
    call->setArg(2, taken);
    call->setRet(0, next_);
  }
  void compare_to_all(const x86::Gp& lanes) {
    if (trace_.is_masked()) cc_.cmp(lanes, active_);
    else cc_.cmp(lanes, -1);
  }
  // Where lanes parted while recording: another trace goes on from here if they seldom do.
  void note_if_together(const x86::Gp& taken) {
    const Label together = cc_.newLabel(), apart = cc_.newLabel();
    cc_.test(taken, taken);
    cc_.jz(together);
    compare_to_all(taken);
    cc_.jne(apart);
    cc_.bind(together);
    cc_.mov(at_.field(offsetof(Group, misfit), 4), static_cast<int>(Misfit::kTogether));
    cc_.bind(apart);
  }
  void branch_otherwise(size_t i, const Label& from, const x86::Gp& taken) {
    deferred_.push_back([this, i, from, taken, state = residents_.state()] {
      cc_.bind(from);
      residents_.write(state);
      if (step(i).parted) note_if_together(taken);
      call_branch(i, taken);
      cc_.ret(next_);
    });
  }
  // Under a mask others may have to run first.
  void emit_branch_call(size_t i, const x86::Gp& taken) {
    residents_.flush_all();
    call_branch(i, taken);
    residents_.drop_all();
    if (step(i).parted || is_last(i)) {
      cc_.jmp(left_);
      return;
    }
    expect_next(i);
    check_active();
  }
  // Ends a block by a branch, with the lanes that take it as bits.
  void emit_branch(size_t i, const x86::Gp& taken) {
    if (trace_.partial) return emit_branch_call(i, taken);
    if (trace_.is_masked()) cc_.and_(taken, active_);
    const Label otherwise = cc_.newLabel();
    branch_otherwise(i, otherwise, taken);
    if (step(i).parted) {
      cc_.jmp(otherwise);
      return;
    }
    if (step(i).next == uop(i).target()) {
      compare_to_all(taken);
      cc_.jne(otherwise);
    } else {
      cc_.test(taken, taken);
      cc_.jnz(otherwise);
    }
    complete_block(i);
  }

  void emit_jump(size_t i) {
    const Uop& u = uop(i);
    const bool indirect = shape_of(u) == Shape::kJmpReg;
    if (indirect) {
      const x86::Gp expected = cc_.newUInt64();
      cc_.mov(expected, step(i).jump);
      cc_.cmp(expected, residents_.get(u.a, kUniform).base);
      const Label otherwise = cc_.newLabel();
      cc_.jne(otherwise);
      // Code may have been retired from the map since.
      const x86::Gp map = cc_.newUIntPtr();
      cc_.mov(map, at_.field(offsetof(Group, machine), 8));
      cc_.mov(map, x86::ptr(map, offsetof(Machine, code) + offsetof(CodeView, uop_at), 8));
      cc_.cmp(x86::ptr(map, static_cast<int32_t>(4 * step(i).jump_unit), 4), step(i).next);
      cc_.jne(otherwise);
      deferred_.push_back([this, i, otherwise, state = residents_.state()] {
        cc_.bind(otherwise);
        residents_.write(state);
        call_handler(i);
        cc_.ret(next_);
      });
    }
    const x86::Mem depth = at_.field(offsetof(Group, depth), 4);
    if (u.aux == static_cast<uint8_t>(JumpHint::kCall)) cc_.add(depth, 1);
    if (indirect && u.aux == static_cast<uint8_t>(JumpHint::kReturn)) {
      const Label zero = cc_.newLabel();
      cc_.cmp(depth, 0);
      cc_.je(zero);
      cc_.sub(depth, 1);
      cc_.bind(zero);
    }
    complete_block(i);
  }

  const Trace& trace_;
  const NativeCalls& calls_;
  const TracePlan plan_;
  Emitter& emitter_;
  x86::Compiler& cc_;

  GroupOperands at_;
  Residents residents_{cc_, at_};
  std::optional<Label> segment_exit_;  // while a segment's conditions are emitted
  x86::Gp uops_, next_;
  x86::Gp active_;  // if the trace is masked
  Label missed_, early_, left_, misfit_;
  // Emitted after everything else: what is seldom executed.
  std::vector<std::function<void()>> deferred_;

 private:
  struct Way {
    Residents::State state;
    Label target, label;
  };
  std::vector<Way> ways_;
};

}  // namespace gpusim::simd
