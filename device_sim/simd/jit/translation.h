// Makes native code of a trace, in one instruction set.
#pragma once
#include <asmjit/x86.h>

#include <bit>
#include <cstddef>
#include <optional>
#include <vector>

#include "device_sim/simd/jit/lower.h"
#include "device_sim/simd/jit/side_emitter.h"
#include "device_sim/uir/in_step.h"

namespace gpusim::simd {

template <class Isa>
class Translation : private SideEmitter<Isa> {
  using Accesses = SideEmitter<Isa>;
  using typename Accesses::Narrow32, typename Accesses::Reg, typename Accesses::Run,
      typename Accesses::Wide64;
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
      Accesses::next_, Accesses::plan, Accesses::plan_, Accesses::pointers_, Accesses::residents_,
      Accesses::rows_, Accesses::segment_exit_,
      Accesses::step, Accesses::trace_, Accesses::uop, Accesses::uop_at, Accesses::uops_,
      Accesses::words_kind;

 public:
  Translation(const Trace& trace, const NativeCalls& calls, Isa& isa)
      : Accesses(trace, calls, isa) {
    for (const Step& s : trace.steps)
      if (info_of(s.uop).fp_state) fp_states_[s.uop.e] = true;
    note_constants();
  }

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
    if (trace_.width < kMaxLanes) {
      cc_.cmp(at_.field(offsetof(Group, width), 4), static_cast<int>(trace_.width));
      cc_.jne(missed_);
    }
    if (trace_.is_masked()) {
      active_ = cc_.newUInt64("active");
      cc_.mov(active_, at_.field(offsetof(Group, active), 8));
    }
    cc_.bind(head);
    for (const auto& [slot, kind] : plan_.guards) {
      cc_.cmp(at_.kind(slot), static_cast<int>(kind));
      cc_.jne(missed_);
    }
    if (plan_.loops) begin_loop();
    cc_.bind(body);
    for (size_t i = 0; i < trace_.steps.size();) {
      const size_t begin = i;
      switch (plan(i).method) {
        case Method::kVector:
          i = segment_end(i);
          emit_segment(begin, i);
          break;
        case Method::kUniform:
        case Method::kRowLoad:
        case Method::kAffine: emit_compact(i++); break;
        case Method::kJump: emit_jump(i++); break;
        case Method::kCall: emit_call(i++); break;
      }
      this->forget_extents(begin, i);
    }
    if (plan_.loops) end_loop();
    residents_.flush_all();
    if (trace_.closed) cc_.jmp(plan_.loops ? body : head);
    else if (!trace_.steps.back().parted) cc_.lea(next_, uop_at(trace_.steps.back().next));
    cc_.bind(left_);
    cc_.ret(next_);
    cc_.bind(misfit_);
    cc_.mov(at_.field(offsetof(Group, misfit), 4), static_cast<int>(Misfit::kForms));
    cc_.ret(next_);
    cc_.bind(missed_);
    cc_.mov(next_, reinterpret_cast<uint64_t>(kMissed));
    cc_.ret(next_);
    cc_.bind(early_);
    cc_.mov(next_, reinterpret_cast<uint64_t>(kEarly));
    cc_.ret(next_);
    for (size_t d = 0; d < deferred_.size(); ++d) {
      const std::function<void()> emit_seldom = std::move(deferred_[d]);
      emit_seldom();  // may add to the list
    }
    cc_.endFunc();
  }

  // --- loops

  // Loads the compact values that steps look at themselves: they stay in registers.
  void begin_loop() {
    std::array<bool, 256> scalar{}, ends{}, written{};
    for (size_t i = 0; i < trace_.steps.size(); ++i) note_scalars(i, scalar, ends, written);
    std::vector<Slot> slots;
    for (const auto& [slot, kind] : plan_.guards) {
      if (!is_compact(kind) || !scalar[slot] || is_fp_state(slot)) continue;
      slots.push_back(slot);
      Run x = this->peek_run(slot, kind);
      if (x.stride && ends[slot]) this->find_span(x, missed_);
    }
    residents_.begin_loop(slots, written);
  }
  // Which slots step `i` reads as scalars, of which the last lane's value may be asked for, and
  // which it writes.
  void note_scalars(size_t i, std::array<bool, 256>& scalar, std::array<bool, 256>& ends,
                    std::array<bool, 256>& written) const {
    const Uop& u = uop(i);
    const Plan& p = plan(i);
    const bool accesses = is_load(shape_of(u)) || is_store(shape_of(u));
    const Sources sources = sources_of(u);
    for (int k = 0; k < sources.count; ++k) {
      if (!is_compact(p.source_kind[k])) continue;
      const bool looks = p.method == Method::kVector ? accesses && !p.scattered
                                                     : p.method != Method::kCall;
      scalar[sources.slot[k]] |= looks || p.need_words[k] != 0;
      ends[sources.slot[k]] |= p.need_words[k] != 0 || (looks && this->asks_for_last(i));
    }
    if (info_of(u).d.writes) written[u.d] = true;
  }
  void end_loop() {
    for (const auto& [slot, home] : residents_.loop()) {
      Run x = this->peek_run(slot, home.stride ? kAffine : kUniform);
      if (home.span && !x.span) this->find_span(x, exit_to(step(0).index));
    }
    residents_.end_loop();
  }

  // --- compact values

  void emit_compact(size_t i) {
    const bool uniform = plan(i).method == Method::kUniform;
    if (is_branch(shape_of(uop(i))))
      return uniform ? emit_uniform_branch(i) : emit_affine_branch(i);
    if (plan(i).method == Method::kRowLoad) return this->emit_compact_row(i);
    if (uniform && is_load(shape_of(uop(i)))) return emit_uniform_load(i);
    if (has_affine_code(i)) return emit_affine(i);
    if (uniform) return emit_uniform(i);
    emit_call(i);
  }

  // In vectors, by the common semantics.
  typename Uniform64::V load_uniform(Slot s) {
    residents_.flush(s);
    typename Uniform64::V v;
    v.r[0] = isa_.fresh();
    isa_.broadcast64(v.r[0], at_.base(s));
    return v;
  }
  void emit_uniform(size_t i) {
    const Uop& u = uop(i);
    const Sources sources = sources_of(u);
    typename Uniform64::V operand[4];
    for (int k = 0; k < sources.count; ++k) operand[k] = load_uniform(sources.slot[k]);
    typename Uniform64::V fp;
    const typename Uniform64::V r =
        lower_value<Uniform64>(u, operand[0], operand[1], operand[2], operand[3], fp);
    const x86::Gp value = cc_.newUInt64();
    cc_.vmovq(value, Uniform64::reg(r, 0).xmm());
    residents_.put(u.d, {value, std::nullopt, std::nullopt});
  }
  void emit_uniform_branch(size_t i) {
    const Uop& u = uop(i);
    if (comparison_of(u.op).relation != Relation::kNone && !step(i).parted)
      return this->emit_uniform_comparison(i);
    const Sources sources = sources_of(u);
    typename Uniform64::V operand[2];
    for (int k = 0; k < sources.count; ++k) operand[k] = load_uniform(sources.slot[k]);
    const typename Uniform64::M m = lower_branch<Uniform64>(u, operand[0], operand[1]);
    const x86::Gp taken = cc_.newUInt64();
    isa_.all_or_none(taken, m.r[0]);
    emit_branch(i, taken);
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
    residents_.put(u.d, {value, std::nullopt, std::nullopt});
  }

  // --- segments: vector steps, up to the end of a block that begins no region

  // Compact steps between them are executed before the segment's rows, if that makes no difference.
  size_t segment_end(size_t begin) const {
    bool fp = false;
    size_t end = begin;
    std::array<bool, 256> read{}, written{};  // by vector steps
    std::array<bool, 256> changed{};          // by any
    for (size_t i = begin; i < trace_.steps.size(); ++i) {
      const Uop& u = uop(i);
      const Sources sources = sources_of(u);
      if (plan(i).method != Method::kVector) {
        bool joins = may_join(i) && ((!read[u.d] && !written[u.d]) || is_repeated(i));
        for (int k = 0; k < sources.count; ++k) joins &= !written[sources.slot[k]];
        if (!joins) break;
        changed[u.d] = true;
        continue;
      }
      if (i != begin && is_plain_access(shape_of(u)) && u.aux == kInStep) break;
      const Side side = step(i).side;
      const ShapeInfo info = info_of(u);
      if (side != Side::kInside && side != Side::kEnd) {
        if (fp && names_fp_state(i)) break;  // a cold path may have changed it
        const auto is_changed = [&](Slot s) { return changed[s]; };
        if (plan(i).scattered &&  // addresses are checked first
            std::any_of(sources.slot, sources.slot + sources.count, is_changed))
          break;
        fp |= info.fp_state;
      }
      for (int k = 0; k < sources.count; ++k)
        if (!constants_[i].has[k]) read[sources.slot[k]] = true;
      if (is_store(shape_of(u)) || side == Side::kInside) read[u.d] = true;
      if (info.d.writes) written[u.d] = changed[u.d] = true;
      end = i + 1;
      if (info.ends_block && side == Side::kNone) break;
    }
    return end;
  }
  // Whether a compact step does nothing but compute in registers.
  bool may_join(size_t i) const {
    const Method method = plan(i).method;
    return (method == Method::kAffine || method == Method::kUniform) && info_of(uop(i)).pure &&
           has_affine_code(i) && !names_fp_state(i) && !trace_.partial;
  }
  // A constant that its slot has already.
  bool is_repeated(size_t i) const {
    if (uop(i).op != Op::konst) return false;
    for (size_t j = i; j-- > 0;)
      if (info_of(uop(j)).d.writes && uop(j).d == uop(i).d)
        return step(j).side == Side::kNone && uop(j).op == Op::konst && uop(j).imm == uop(i).imm;
    return false;
  }
  // Which sources of vector steps are what a constant step of the trace wrote: these do not read the
  // slot, so that it may have other constants for later steps of the segment. Conditions on
  // constants are decided on 64 bits, which integers in 32-bit lanes do not have.
  void note_constants() {
    constants_.resize(trace_.steps.size());
    std::array<std::optional<uint64_t>, 256> known;
    for (size_t i = 0; i < trace_.steps.size(); ++i) {
      const Uop& u = uop(i);
      const ShapeInfo info = info_of(u);
      const Sources sources = sources_of(u);
      if (is_vector(i) && !is_load(shape_of(u)) && !is_store(shape_of(u)) &&
          (info.fp_state || !plan(i).narrow))
        for (int k = 0; k < sources.count; ++k) {
          const std::optional<uint64_t>& value = known[sources.slot[k]];
          if (!value || plan(i).source_kind[k] != kUniform) continue;
          constants_[i].has[k] = true;
          constants_[i].value[k] = *value;
        }
      if (info.fp_state) known[u.e].reset();
      if (!info.d.writes) continue;
      known[u.d].reset();
      if (u.op == Op::konst && step(i).side == Side::kNone && plan(i).method == Method::kUniform)
        known[u.d] = u.imm;
    }
  }
  // A slot that some step has as its floating-point state.
  bool is_fp_state(Slot slot) const { return fp_states_[slot]; }
  bool names_fp_state(size_t i) const {
    const Sources sources = sources_of(uop(i));
    for (int k = 0; k < sources.count; ++k)
      if (is_fp_state(sources.slot[k])) return true;
    return info_of(uop(i)).d.writes && is_fp_state(uop(i).d);
  }

  void emit_segment(size_t begin, size_t end) {
    Chunk<Isa> chunk(isa_, at_);
    chunk_ = &chunk;
    segment_end_ = end;
    pointers_.clear();
    rows_.clear();
    note_rows(begin, end);
    const bool descending = !trace_.partial && chunk.plan_rows();
    // What the loop finds in the group; what compact steps of the segment write follows them.
    flush_sources(begin, end);
    const Residents::State state = residents_.state();
    const Label exit = exit_at(begin);
    segment_exit_ = exit;
    for (size_t i = begin; i < end; ++i) {
      if (is_vector(i)) emit_checks(begin, i, exit);
      else emit_compact(i);
    }
    segment_exit_.reset();
    check_scattered(begin, end, exit);
    if (trace_.partial) spread_rows(begin, end);
    begin_sides(begin, end, state);
    flush_sources(begin, end);

    const bool ends_block = info_of(uop(end - 1)).ends_block && step(end - 1).side == Side::kNone;
    const x86::Gp lane = chunk.lane = cc_.newUInt64("lane");
    if (ends_block) {
      taken_ = cc_.newUInt64("taken");
      cc_.xor_(taken_, taken_);
    }
    const Label loop = cc_.newLabel(), next = cc_.newLabel();
    if (descending) cc_.mov(lane, this->lanes_of_chunks() - kLanesOfChunk);
    else cc_.xor_(lane, lane);
    cc_.bind(loop);
    isa_.partial = trace_.is_masked();
    if (isa_.partial) load_masks(lane, next);
    for (size_t i = begin; i < end; ++i) {
      if (!is_vector(i)) continue;
      if (this->is_pair(i, end)) this->emit_pair(i++);
      else emit_vector_step(i);
    }
    chunk.store_rows();
    isa_.partial = false;
    cc_.bind(next);
    if (descending) {
      cc_.sub(lane, kLanesOfChunk);
      cc_.jns(loop);
    } else {
      cc_.add(lane, kLanesOfChunk);
      cc_.cmp(lane, this->lanes_of_chunks());
      cc_.jb(loop);
    }
    if (!trace_.partial) chunk.store_kinds();
    for (size_t i = begin; i < end; ++i) {
      if (is_vector(i) && info_of(uop(i)).d.writes) residents_.drop(uop(i).d);
      if (info_of(uop(i)).fp_state) residents_.drop(uop(i).e);
    }
    complete_sides(begin, end);
    if (ends_block) emit_branch(end - 1, taken_);
    if (!step(end - 1).parted) check_fp_state(begin, end);
  }

  bool is_vector(size_t i) const { return plan(i).method == Method::kVector; }
  // Writes compact values to the group, where rows' loops find them.
  void flush_sources(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (!is_vector(i)) continue;
      const Uop& u = uop(i);
      const Sources sources = sources_of(u);
      const bool accesses = is_load(shape_of(u)) || is_store(shape_of(u));
      if (!accesses || plan(i).scattered)
        for (int k = 0; k < sources.count; ++k) residents_.flush(sources.slot[k]);
      if (is_store(shape_of(u)) || step(i).side == Side::kInside) residents_.flush(u.d);
      if (info_of(u).fp_state) residents_.flush(u.e);
    }
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
      residents_.drop(u.d);
    }
  }

  void note_rows(size_t begin, size_t end) {
    std::array<uint8_t, 256> d_kind{};  // before the segment
    for (size_t i = begin; i < end; ++i) {
      if (!is_vector(i)) continue;
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
        for (int k = 0; k < sources.count; ++k)
          if (!constants_[i].has[k]) reads(sources.slot[k], plan(i).source_kind[k]);
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
      if (constants_[i].has[k]) continue;
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
      if (is_vector(i) && info_of(uop(i)).d.writes && uop(i).d == s) return true;
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
      operand[static_cast<size_t>(k)] =
          constants_[i].has[k]
              ? D::konst(constants_[i].value[k])
              : chunk_->template get<D>(sources.slot[k], plan(i).source_kind[k]);
    if (info_of(u).ends_block) {
      const typename D::M taken = lower_branch<D>(u, operand[0], operand[1]);
      if (step(i).side == Side::kNone) return emit_taken<D>(taken);
      return this->template emit_side_branch<D>(i, taken);
    }

    const Label cold = isa_.cold = cc_.newLabel();
    isa_.cold_used = isa_.always_cold = false;
    const uint64_t state = step(i).fp_state;
    V fp = D::konst(state);
    V r = lower_value<D>(u, operand[0], operand[1], operand[2], operand[3], fp, may_be_any_nan(i));
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
          if (!emit_nans<D>(i, operand, merged, join)) return;
          if (!emit_measured<D>(i, operand, merged, join)) return;
          emit_cold<D>(i, operand, merged, lane);
          cc_.jmp(join);
        });
      }
      r = merged;
    }
    if (step(i).side == Side::kInside) return this->template put_inside<D>(i, r);
    chunk_->template put<D>(u.d, r, words_kind(i));
  }

  // Whether the result of step `i` is of floats, and nobody sees which NaN it is: it is replaced
  // before the segment ends, and read only where any NaN gives the same.
  bool may_be_any_nan(size_t i) const {
    const Slot d = uop(i).d;
    if (!is_float_arithmetic(uop(i).op) || !forgets_nans(step(i).fp_state) ||
        step(i).side != Side::kNone)
      return false;
    for (size_t j = i + 1; j < segment_end_; ++j) {
      if (!is_vector(j)) continue;
      const Uop& u = uop(j);
      const ShapeInfo info = info_of(u);
      const Sources sources = sources_of(u);
      if (step(j).side != Side::kNone || (is_store(shape_of(u)) && u.d == d)) return false;
      const auto* const end = sources.slot + sources.count;
      if (std::find(sources.slot, end, d) != end &&
          !(info.fp_state && takes_any_nan(u) && forgets_nans(step(j).fp_state)))
        return false;
      if (info.d.writes && u.d == d) return true;
    }
    return false;
  }

  // Doubles keep the NaNs of their sources: most need no call. Returns whether some do.
  template <class D>
  bool emit_nans(size_t i, const std::array<typename D::V, 4>& operand, const typename D::V& merged,
                 const Label& join) {
    if constexpr (D::kWide) {
      const uint64_t state = step(i).fp_state;
      if (!is_double_arithmetic(uop(i).op) || !tells_nothing_new(state) ||
          softfloat::flushes_to_zero<softfloat::F64>(state))
        return true;
      const Label cold = isa_.cold = cc_.newLabel();
      isa_.cold_used = false;
      const typename D::V r = QuietFloat<D, double>(state).value_with_nans(uop(i), operand[0],
                                                                           operand[1], operand[2]);
      for (size_t h = 0; h < r.r.size(); ++h) isa_.move(merged.r[h], D::reg(r, h));
      cc_.jmp(join);
      if (!isa_.cold_used) return false;
      cc_.bind(cold);
    }
    return true;
  }

  // c + a * b that is zero, or that only c makes, in any lane: sparse data is full of both. The hot
  // path takes what lies far from underflow, and asks no more. Returns whether the rest needs a
  // call.
  template <class D>
  bool emit_measured(size_t i, const std::array<typename D::V, 4>& operand,
                     const typename D::V& merged, const Label& join) {
    const Op op = uop(i).op;
    const uint64_t state = step(i).fp_state;
    if ((op != Op::fma32 && op != Op::fma64 && op != Op::vfma32) || tells_nothing_new(state) ||
        (state & (sem::kFpModes | sem::kFpIxc)) != sem::kFpIxc)
      return true;
    const Label cold = isa_.cold = cc_.newLabel();
    isa_.cold_used = false;
    isa_.is_not_quick = true;
    typename D::V fp = D::konst(state);
    const typename D::V r =
        lower_value<D>(uop(i), operand[0], operand[1], operand[2], operand[3], fp);
    for (size_t h = 0; h < r.r.size(); ++h) isa_.move(merged.r[h], D::reg(r, h));
    cc_.jmp(join);
    cc_.bind(cold);
    return isa_.cold_used;
  }

  template <class D>
  void emit_cold(size_t i, const std::array<typename D::V, 4>& operand, const typename D::V& r,
                 const x86::Gp& lane) {
    const auto at = [&](size_t offset, uint32_t size) {
      return cold_frame_.cloneAdjusted(static_cast<int64_t>(offset)).cloneResized(size);
    };
    const auto at_operand = [&](size_t field, size_t h) {
      return at(offsetof(ColdFrame, operand) + field * ColdFrame::kOperandBytes + Isa::kRegBytes * h,
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
    if (trace_.is_masked()) cc_.and_(bits, active_);
    cc_.or_(taken_, bits);
  }


  // Of a step's sources, in the order of sources_of().
  struct Constants {
    std::array<bool, 4> has{};
    std::array<uint64_t, 4> value{};
  };
  std::vector<Constants> constants_;   // by step
  std::array<bool, 256> fp_states_{};  // slots
  x86::Mem cold_frame_;
  // Of the segment being emitted.
  x86::Gp taken_;
  size_t segment_end_ = 0;
};

}  // namespace gpusim::simd
