// Makes native code of a trace, in one instruction set.
#pragma once
#include <asmjit/x86.h>

#include <bit>
#include <cstddef>

#include "device_sim/simd/jit/lower.h"
#include "device_sim/simd/jit/side_emitter.h"

namespace gpusim::simd {

template <class Isa>
class Translation : private SideEmitter<Isa> {
  using Accesses = SideEmitter<Isa>;
  using typename Accesses::Narrow32, typename Accesses::Reg, typename Accesses::Wide64;
  using Uniform64 = JitDomain<Isa, 64, 1>;
  using Accesses::active_, Accesses::at_, Accesses::begin_sides, Accesses::call_branch,
      Accesses::call_handler, Accesses::calls_, Accesses::cc_, Accesses::check_scattered,
      Accesses::check_words, Accesses::chunk_, Accesses::complete_block, Accesses::complete_sides,
      Accesses::deferred_, Accesses::early_, Accesses::emit_address, Accesses::emit_affine,
      Accesses::emit_affine_branch, Accesses::emit_branch, Accesses::emit_call, Accesses::emit_jump,
      Accesses::emit_linear_run, Accesses::emit_load, Accesses::emit_pointer,
      Accesses::emit_side_jump, Accesses::emit_store, Accesses::enter_side, Accesses::exit_at,
      Accesses::exit_to, Accesses::has_affine_code, Accesses::invoke, Accesses::isa_,
      Accesses::kLanesOfChunk, Accesses::left_, Accesses::misfit_, Accesses::missed_,
      Accesses::next_, Accesses::plan, Accesses::plan_, Accesses::pointers_, Accesses::rows_,
      Accesses::step, Accesses::trace_, Accesses::uop, Accesses::uop_at, Accesses::uops_,
      Accesses::words_kind;

 public:
  Translation(const Trace& trace, const NativeCalls& calls, Isa& isa)
      : Accesses(trace, calls, isa) {}

  bool run() {
    if (!plan_.worthwhile) return false;
    Emitter::current() = &isa_;
    emit();
    Emitter::current() = nullptr;
    return cc_.finalize() == asmjit::kErrorOk;
  }

 private:
  void emit() {
    auto* func = cc_.addFunc(asmjit::FuncSignatureT<const void*, void*, const void*>());
    Isa::prepare(func->frame());
    at_.group = cc_.newUIntPtr("group");
    at_.lanes = cc_.newUIntPtr("lanes");
    uops_ = cc_.newUIntPtr("uops");
    next_ = cc_.newUIntPtr("next");
    func->setArg(0, at_.group);
    func->setArg(1, uops_);
    cold_frame_ = cc_.newStack(sizeof(ColdFrame), 64);
    missed_ = cc_.newLabel();
    early_ = cc_.newLabel();
    left_ = cc_.newLabel();
    misfit_ = cc_.newLabel();
    const Label head = cc_.newLabel(), body = cc_.newLabel();

    cc_.mov(at_.lanes, at_.field(offsetof(Group, lanes), 8));
    isa_.partial = trace_.partial;
    if (trace_.partial) {
      active_ = cc_.newUInt64("active");
      cc_.mov(active_, at_.field(offsetof(Group, active), 8));
    }
    cc_.bind(head);
    for (const auto& [slot, kind] : plan_.guards) {
      cc_.cmp(at_.kind(slot), static_cast<int>(kind));
      cc_.jne(missed_);
    }
    cc_.bind(body);
    for (size_t i = 0; i < trace_.steps.size();) {
      const size_t begin = i;
      switch (plan(i).method) {
        case Method::kVector:
          i = segment_end(i);
          emit_segment(begin, i);
          break;
        case Method::kUniform: emit_uniform(i++); break;
        case Method::kAffine: emit_compact(i++); break;
        case Method::kJump: emit_jump(i++); break;
        case Method::kCall: emit_call(i++); break;
      }
    }
    if (trace_.closed) cc_.jmp(plan_.loops ? body : head);
    else if (!trace_.steps.back().parted) cc_.lea(next_, uop_at(trace_.steps.back().next));
    cc_.bind(left_);
    cc_.ret(next_);
    cc_.bind(misfit_);
    cc_.mov(at_.field(offsetof(Group, misfit), 4), 1);
    cc_.ret(next_);
    cc_.bind(missed_);
    cc_.mov(next_, reinterpret_cast<uint64_t>(kMissed));
    cc_.ret(next_);
    cc_.bind(early_);
    cc_.mov(next_, reinterpret_cast<uint64_t>(kEarly));
    cc_.ret(next_);
    for (size_t d = 0; d < deferred_.size(); ++d) deferred_[d]();  // may add to the list
    cc_.endFunc();
  }

  // --- compact values

  void emit_uniform(size_t i) {
    const Uop& u = uop(i);
    if (is_load(shape_of(u))) return emit_uniform_load(i);
    const Sources sources = sources_of(u);
    typename Uniform64::V operand[4];
    for (int k = 0; k < sources.count; ++k) {
      operand[k].r[0] = isa_.fresh();
      isa_.broadcast64(operand[k].r[0], at_.base(sources.slot[k]));
    }
    if (is_branch(shape_of(u))) {
      const typename Uniform64::M m = lower_branch<Uniform64>(u, operand[0], operand[1]);
      const x86::Gp taken = cc_.newUInt64();
      isa_.all_or_none(taken, m.r[0]);
      return emit_branch(i, taken);
    }
    typename Uniform64::V fp;
    const typename Uniform64::V r =
        lower_value<Uniform64>(u, operand[0], operand[1], operand[2], operand[3], fp);
    cc_.vmovq(at_.base(u.d), Uniform64::reg(r, 0).xmm());
    cc_.mov(at_.kind(u.d), static_cast<int>(kUniform));
  }
  void emit_uniform_load(size_t i) {
    const Uop& u = uop(i);
    const AccessInfo access = access_info(u.op);
    const x86::Gp address = emit_address(i), value = cc_.newUInt64();
    const x86::Gp p = emit_linear_run(address, access.size, kRead, exit_at(i));
    const x86::Mem at = x86::ptr(p, 0, static_cast<uint32_t>(access.size));
    const bool sign64 = access.extend == Extend::kSign64, sign32 = access.extend == Extend::kSign32;
    if (access.size == 8) cc_.mov(value, at);
    else if (access.size == 4 && sign64) cc_.movsxd(value, at);
    else if (access.size == 4) cc_.mov(value.r32(), at);
    else if (sign64) cc_.movsx(value, at);
    else if (sign32) cc_.movsx(value.r32(), at);
    else cc_.movzx(value.r32(), at);
    cc_.mov(at_.base(u.d), value);
    cc_.mov(at_.kind(u.d), static_cast<int>(kUniform));
  }

  void emit_compact(size_t i) {
    if (is_branch(shape_of(uop(i)))) return emit_affine_branch(i);
    if (has_affine_code(i)) return emit_affine(i);
    emit_call(i);
  }

  // --- segments: vector steps, up to the end of a block that begins no region

  size_t segment_end(size_t begin) const {
    bool fp = false;
    size_t end = begin;
    while (end < trace_.steps.size() && plan(end).method == Method::kVector) {
      const Side side = step(end).side;
      if (side == Side::kInside || side == Side::kEnd) {
        ++end;
        continue;
      }
      if (fp && names_fp_state(end)) break;  // a cold path may have changed it
      if (plan(end).scattered && reads_written(begin, end)) break;  // addresses are checked first
      const ShapeInfo info = info_of(uop(end));
      fp |= info.fp_state;
      ++end;
      if (info.ends_block && side == Side::kNone) break;
    }
    return end;
  }
  bool reads_written(size_t begin, size_t i) const {
    const Sources sources = sources_of(uop(i));
    for (int k = 0; k < sources.count; ++k)
      if (written_before(begin, i, sources.slot[k])) return true;
    return false;
  }
  bool names_fp_state(size_t i) const {
    const Sources sources = sources_of(uop(i));
    const auto is_state = [&](Slot slot) {
      for (const Step& s : trace_.steps)
        if (info_of(s.uop).fp_state && s.uop.e == slot) return true;
      return false;
    };
    for (int k = 0; k < sources.count; ++k)
      if (is_state(sources.slot[k])) return true;
    return info_of(uop(i)).d.writes && is_state(uop(i).d);
  }

  void emit_segment(size_t begin, size_t end) {
    Chunk<Isa> chunk(isa_, at_);
    chunk_ = &chunk;
    pointers_.clear();
    rows_.clear();
    note_rows(begin, end);
    const bool descending = chunk.plan_rows();
    const Label exit = exit_at(begin);
    for (size_t i = begin; i < end; ++i) emit_checks(begin, i, exit);
    check_scattered(begin, end, exit);
    if (trace_.partial) spread_rows(begin, end);
    begin_sides(begin, end);

    const bool ends_block = info_of(uop(end - 1)).ends_block && step(end - 1).side == Side::kNone;
    const x86::Gp lane = chunk.lane = cc_.newUInt64("lane");
    if (ends_block) {
      taken_ = cc_.newUInt64("taken");
      cc_.xor_(taken_, taken_);
    }
    const Label loop = cc_.newLabel(), next = cc_.newLabel();
    if (descending) cc_.mov(lane, static_cast<int>(kMaxLanes) - kLanesOfChunk);
    else cc_.xor_(lane, lane);
    cc_.bind(loop);
    if (trace_.partial) load_masks(lane, next);
    for (size_t i = begin; i < end; ++i) emit_vector_step(i);
    chunk.store_rows();
    cc_.bind(next);
    if (descending) {
      cc_.sub(lane, kLanesOfChunk);
      cc_.jns(loop);
    } else {
      cc_.add(lane, kLanesOfChunk);
      cc_.cmp(lane, static_cast<int>(kMaxLanes));
      cc_.jb(loop);
    }
    if (!trace_.partial) chunk.store_kinds();
    complete_sides(begin, end);
    if (ends_block) emit_branch(end - 1, taken_);
    if (!step(end - 1).parted) check_fp_state(begin, end);
  }

  // Goes to `next` if none of the chunk's lanes is active: often only one of all is.
  void load_masks(const x86::Gp& lane, const Label& next) {
    const x86::Gp bits = cc_.newUInt64();
    cc_.shrx(bits, active_, lane);
    cc_.test(bits.r32(), (1 << kLanesOfChunk) - 1);
    cc_.jz(next);
    isa_.set_running(bits);
  }
  // Under a mask: rows that are written get the general form before the loop, for the lanes that
  // wait, unless they stay narrow.
  void spread_rows(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const Uop& u = uop(i);
      typename Chunk<Isa>::Row& r = chunk_->rows[u.d];
      if (!info_of(u).d.writes || !r.spread || written_before(begin, i, u.d)) continue;
      auto* call = invoke(address_of(calls_.spread), asmjit::FuncSignatureT<void, void*, uint32_t>());
      call->setArg(0, at_.group);
      call->setArg(1, imm(static_cast<uint32_t>(u.d)));
    }
  }

  void note_rows(size_t begin, size_t end) {
    std::array<uint8_t, 256> d_kind{};  // before the segment
    for (size_t i = begin; i < end; ++i) {
      const Uop& u = uop(i);
      const Shape shape = shape_of(u);
      const auto reads = [&](Slot s, uint8_t kind) {
        typename Chunk<Isa>::Row& r = chunk_->rows[s];
        if (r.written || r.read_first) return;
        r.read_first = true;
        r.entry_kind = kind;
      };
      const Sources sources = sources_of(u);
      // Addresses of consecutive elements are read before the loop.
      if ((!is_load(shape) && !is_store(shape)) || plan(i).scattered)
        for (int k = 0; k < sources.count; ++k) reads(sources.slot[k], plan(i).source_kind[k]);
      if (is_store(shape) || step(i).side == Side::kInside) reads(u.d, plan(i).d_kind);
      if (info_of(u).d.writes) {
        typename Chunk<Isa>::Row& r = chunk_->rows[u.d];
        if (!r.written) d_kind[u.d] = plan(i).d_kind;
        r.written = true;
        r.kind = plan(i).row_kind;
        r.spread = trace_.partial && r.kind == kLanes && d_kind[u.d] != kLanes;
      }
    }
  }

  // Before the loop: what must hold, and where memory is.
  void emit_checks(size_t begin, size_t i, const Label& exit) {
    const Uop& u = uop(i);
    const Shape shape = shape_of(u);
    const Plan& p = plan(i);
    if (info_of(u).fp_state && !state_checked(begin, i)) {
      const auto state = u.e;
      const x86::Gp expected = cc_.newUInt64();
      cc_.cmp(at_.kind(state), static_cast<int>(kUniform));
      cc_.jne(exit);
      cc_.mov(expected, step(i).fp_state);
      cc_.cmp(expected, at_.base(state));
      cc_.jne(exit);
    }
    const Sources sources = sources_of(u);
    if (is_load(shape) || is_store(shape)) {
      if (!p.scattered) emit_pointer(i, exit);
      return;
    }
    for (int k = 0; k < sources.count; ++k) {
      const Slot s = sources.slot[k];
      if (is_compact(p.source_kind[k]) && p.need_words[k] && !written_before(begin, i, s))
        check_words(s, p.source_kind[k], p.need_words[k], exit);
    }
    if (p.need_d_words && !written_before(begin, i, u.d))
      check_words(u.d, p.d_kind, p.need_d_words, exit);
  }
  bool state_checked(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i)
      if (info_of(uop(i)).fp_state && uop(i).e == uop(end).e) return true;
    return false;
  }
  bool written_before(size_t begin, size_t end, Slot s) const {
    for (size_t i = begin; i < end; ++i)
      if (info_of(uop(i)).d.writes && uop(i).d == s) return true;
    return false;
  }
  // A cold path may have changed the state of some lanes.
  void check_fp_state(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (!info_of(uop(i)).fp_state || state_checked(begin, i)) continue;
      cc_.cmp(at_.kind(uop(i).e), static_cast<int>(kUniform));
      cc_.jne(exit_to(step(end - 1).next));
    }
  }

  void emit_vector_step(size_t i) {
    const Shape shape = shape_of(uop(i));
    const Side side = step(i).side;
    if (side == Side::kInside || side == Side::kEnd) enter_side(i);
    if (side == Side::kEnd && shape == Shape::kJmp) return emit_side_jump(i);
    if (is_load(shape)) return emit_load(i);
    if (is_store(shape)) return emit_store(i);
    if (plan(i).narrow) emit_in<Narrow32>(i);
    else emit_in<Wide64>(i);
  }

  template <class D>
  void emit_in(size_t i) {
    using V = typename D::V;
    const Uop& u = uop(i);
    const Sources sources = sources_of(u);
    std::array<V, 4> operand;
    for (int k = 0; k < sources.count; ++k)
      operand[static_cast<size_t>(k)] = chunk_->template get<D>(sources.slot[k], plan(i).source_kind[k]);
    if (info_of(u).ends_block) {
      const typename D::M taken = lower_branch<D>(u, operand[0], operand[1]);
      if (step(i).side == Side::kNone) return emit_taken<D>(taken);
      return this->template emit_side_branch<D>(i, taken);
    }

    const Label cold = isa_.cold = cc_.newLabel();
    isa_.cold_used = isa_.always_cold = false;
    const uint64_t state = step(i).fp_state;
    V fp = D::konst(state);
    V r = lower_value<D>(u, operand[0], operand[1], operand[2], operand[3], fp);
    if (info_of(u).fp_state && !(fp.is_konst && fp.k == state)) isa_.always_cold = true;
    if (isa_.always_cold || isa_.cold_used) {
      V merged;
      for (auto& z : merged.r) z = isa_.fresh();
      if (isa_.always_cold) {
        if (isa_.cold_used) cc_.bind(cold);
        emit_cold<D>(i, operand, merged, chunk_->lane);
      } else {
        for (size_t h = 0; h < r.r.size(); ++h) isa_.move(merged.r[h], D::reg(r, h));
        const Label join = cc_.newLabel();
        cc_.bind(join);
        deferred_.push_back([this, cold, join, operand, merged, i, lane = chunk_->lane] {
          cc_.bind(cold);
          emit_cold<D>(i, operand, merged, lane);
          cc_.jmp(join);
        });
      }
      r = merged;
    }
    if (step(i).side == Side::kInside) return this->template put_inside<D>(i, r);
    chunk_->template put<D>(u.d, r, words_kind(i));
  }

  template <class D>
  void emit_cold(size_t i, const std::array<typename D::V, 4>& operand, const typename D::V& r,
                 const x86::Gp& lane) {
    const auto at = [&](size_t offset, uint32_t size) {
      return cold_frame_.cloneAdjusted(static_cast<int64_t>(offset)).cloneResized(size);
    };
    const auto at_operand = [&](size_t field, size_t h) {
      return at(offsetof(ColdFrame, operand) + field * sizeof(ColdFrame::operand[0]) + Isa::kRegBytes * h,
                Isa::kRegBytes);
    };
    const ShapeInfo info = info_of(uop(i));
    size_t k = 0, field = 0;
    for (const OperandUse& use : {info.a, info.b, info.c, info.e}) {
      if (use.reads) {
        for (size_t h = 0; h < r.r.size(); ++h)
          isa_.store(at_operand(field, h), D::reg(operand[k], h));
        ++k;
      }
      ++field;
    }
    const x86::Gp t = cc_.newUIntPtr();
    cc_.mov(at(offsetof(ColdFrame, group), 8), at_.group);
    cc_.mov(t, reinterpret_cast<uint64_t>(&uop(i)));
    cc_.mov(at(offsetof(ColdFrame, uop), 8), t);
    cc_.mov(at(offsetof(ColdFrame, first_lane), 8), lane);
    const x86::Gp frame = cc_.newUIntPtr();
    cc_.lea(frame, cold_frame_);
    using Word = std::conditional_t<D::kWide, uint64_t, uint32_t>;
    auto* call = invoke(address_of(&compute_lanes<Word, kLanesOfChunk>), asmjit::FuncSignatureT<void, void*>());
    call->setArg(0, frame);
    for (size_t h = 0; h < r.r.size(); ++h)
      isa_.load(r.r[h], at(offsetof(ColdFrame, result) + Isa::kRegBytes * h, Isa::kRegBytes));
  }

  template <class D>
  void emit_taken(const typename D::M& m) {
    const x86::Gp bits = cc_.newUInt64();
    if (m.is_konst) cc_.mov(bits, m.k ? (1 << kLanesOfChunk) - 1 : 0);
    else isa_.template lane_bits<D::kBits>(bits, m.r);
    cc_.shlx(bits, bits, chunk_->lane);
    if (trace_.partial) cc_.and_(bits, active_);
    cc_.or_(taken_, bits);
  }


  x86::Mem cold_frame_;
  x86::Gp taken_;  // of the segment being emitted
};

}  // namespace gpusim::simd
