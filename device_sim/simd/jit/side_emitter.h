// Emits the blocks of regions (regions.h) inside a segment's loop: which lanes come to each block,
// what they keep of what it computes, and the counts of its executions.
#pragma once
#include <map>

#include "device_sim/simd/jit/access.h"
#include "device_sim/simd/side_counts.h"

namespace gpusim::simd {

template <class Isa>
class SideEmitter : protected AccessEmitter<Isa> {
 protected:
  using Accesses = AccessEmitter<Isa>;
  using Accesses::Accesses;
  using Accesses::at_, Accesses::calls_, Accesses::cc_, Accesses::chunk_, Accesses::count_block,
      Accesses::deferred_, Accesses::early_, Accesses::isa_, Accesses::kLanesOfChunk,
      Accesses::leave, Accesses::left_, Accesses::next_, Accesses::plan, Accesses::step,
      Accesses::uop, Accesses::uop_at, Accesses::words_kind;
  using typename Accesses::Narrow32, typename Accesses::Wide64;

  // Before a segment's loop: leaves if the budget may end at a block that it completes before its
  // last step. Then the interpreter looks at the budget after each of them. `state`: before the
  // segment.
  void begin_sides(size_t begin, size_t end, const Residents::State& state) {
    side_bits_.clear();
    int64_t instructions = 0;
    for (size_t i = begin; i < end; ++i) {
      if (step(i).side == Side::kRoot || step(i).side == Side::kEnd) instructions += count_of(i);
      if (step(i).side != Side::kEnd) continue;
      const x86::Gp bits = cc_.newUInt64();
      cc_.xor_(bits, bits);
      side_bits_.emplace(i, bits);
    }
    if (instructions == 0) return;
    Label early = leave(state, early_);
    if (begin != 0) {
      early = cc_.newLabel();
      deferred_.push_back([this, early, state, index = step(begin).index] {
        cc_.bind(early);
        cc_.lea(next_, uop_at(index));
        cc_.jmp(leave(state, left_));
      });
    }
    cc_.cmp(at_.field(offsetof(Group, budget), 8), static_cast<int>(instructions));
    cc_.jle(early);
    counts_ = cc_.newUIntPtr();
    cc_.mov(counts_, at_.field(offsetof(Group, lane_tally), 8));
  }

  // The branch that begins a region, or one that ends a block of it.
  template <class D>
  void emit_side_branch(size_t i, const typename D::M& m) {
    const Mask taken = m.is_konst ? isa_.mask_of_all(m.k) : isa_.words_mask(m.r);
    const Mask other = isa_.fresh_mask();
    isa_.template mask_not<32>(other, taken);
    if (step(i).side == Side::kRoot) {
      coming_.clear();
      come_to(i, step(i).taken, taken);
      come_to(i, step(i).other, other);
      return;
    }
    for (const auto& [start, lanes] : {std::pair{step(i).taken, taken}, {step(i).other, other}}) {
      const Mask of_side = isa_.fresh_mask();
      isa_.template mask_and<32>(of_side, lanes, side_.words);
      come_to(i, start, of_side);
    }
  }
  void emit_side_jump(size_t i) { come_to(i, step(i).taken, side_.words); }

  // Before a block's steps.
  void enter_side(size_t i) {
    if (i != 0 && step(i - 1).block_start == step(i).block_start &&
        step(i - 1).side == Side::kInside)
      return;
    side_ = isa_.side_of(coming_.at(step(i).block_start));
    size_t end = i;
    while (step(end).side != Side::kEnd) ++end;
    const x86::Gp bits = cc_.newUInt64();
    isa_.template lane_bits<32>(bits, std::array<Mask, 1>{side_.words});
    cc_.shlx(bits, bits, chunk_->lane);
    cc_.or_(side_bits_.at(end), bits);
    const size_t at = kSideCountsOffset + offsetof(SideCounts, of) + 256 * step(end).place;
    isa_.count_lanes(x86::ptr(counts_, chunk_->lane, 2, static_cast<int32_t>(at), Isa::kRegBytes),
                     side_);
  }

  // Lanes of the block take the value, others keep what they have.
  template <class D>
  void put_inside(size_t i, const typename D::V& value) {
    const Uop& u = uop(i);
    const Plan& p = plan(i);
    if (p.row_kind == kLanes) {
      typename Wide64::V wide;
      if constexpr (D::kWide)
        wide = value;
      else
        wide = chunk_->widened(D::in_registers(value), words_kind(i));
      const typename Wide64::V before = chunk_->template get<Wide64>(u.d, p.d_kind);
      const typename Wide64::M lanes{.r = side_.wide};
      chunk_->template put<Wide64>(u.d, Wide64::select(lanes, wide, before), kLanes);
    } else if constexpr (!D::kWide) {
      const typename D::V before = chunk_->template get<D>(u.d, p.d_kind);
      const typename D::M lanes{.r = {side_.words}};
      chunk_->template put<D>(u.d, D::select(lanes, value, before), p.row_kind);
    }
  }

  // After the loop: counts what the segment completed before its last step.
  void complete_sides(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (step(i).side == Side::kRoot) count_block(i);
      if (step(i).side == Side::kEnd) count_side(i);
    }
  }

 private:
  using Mask = typename Isa::Mask;

  int64_t count_of(size_t i) const {
    return calls_.block_tallies[uop(i).block()].counts[kInsnCount];
  }
  void come_to(size_t i, uint32_t start, const Mask& lanes) {
    if (start == step(i).next) return;  // there they meet again
    const auto [found, first] = coming_.emplace(start, lanes);
    if (first) return;
    const Mask both = isa_.fresh_mask();
    isa_.template mask_or<32>(both, found->second, lanes);
    found->second = both;
  }
  void count_side(size_t i) {
    const x86::Gp& bits = side_bits_.at(i);
    const x86::Gp n = cc_.newUInt64(), block_counts = cc_.newUIntPtr();
    const Label nobody = cc_.newLabel();
    const auto count = static_cast<int>(count_of(i));
    cc_.popcnt(n, bits);
    cc_.jz(nobody);
    cc_.mov(block_counts, at_.field(offsetof(Group, block_counts), 8));
    cc_.add(x86::ptr(block_counts, static_cast<int32_t>(8 * uop(i).block()), 8), n);
    cc_.sub(at_.field(offsetof(Group, turns.patience), 8), count);
    cc_.sub(at_.field(offsetof(Group, budget), 8), count);
    cc_.imul(n, n, count);
    const size_t sum = kSideCountsOffset + offsetof(SideCounts, instructions);
    cc_.add(x86::ptr(counts_, static_cast<int32_t>(sum), 8), n);
    cc_.bind(nobody);
  }

  std::map<uint32_t, Mask> coming_;      // to the blocks of a region, by their first micro-op
  typename Isa::Side side_;              // of the block being emitted
  std::map<size_t, x86::Gp> side_bits_;  // by the blocks' last steps
  x86::Gp counts_;                       // Group::lane_tally
};

}  // namespace gpusim::simd
