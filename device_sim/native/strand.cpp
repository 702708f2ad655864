#include "device_sim/native/strand.h"

#include <algorithm>
#include <cstddef>

#include "device_sim/native/float_ops.h"
#include "device_sim/simd/jit/lower.h"
#include "device_sim/uir/access.h"

namespace gpusim::native {

namespace {

x86::Mem field(size_t offset, uint32_t size_bytes) {
  return x86::ptr(x86::rbp, static_cast<int32_t>(offset), size_bytes);
}

// Whether the machine raises the inexact exception exactly where the micro-op raises IXC, also
// where code goes the cold way after all.
bool raises_as_machine(const Uop& u) {
  switch (u.op) {
    case Op::f2i:  // scaled first, it may overflow
      return u.imm == 0;
    case Op::fmisc1:
    case Op::fmisc2:
    case Op::fmisc3:
    case Op::fhelp1:
    case Op::fhelp2:
    case Op::fhelp3:
      return false;
    default:
      return true;
  }
}

bool is_flags(Op op) {
  return op == Op::fl_sub32 || op == Op::fl_sub64 || op == Op::fl_add32 || op == Op::fl_add64;
}

}  // namespace

void jump_if_inexact(x86::Assembler& a, int fp_state, Label to) {
  a.test(slot_in_frame(static_cast<Slot>(fp_state), 1), static_cast<int>(softfloat::kFpsrIxc));
  a.jnz(to);
}

void write_exceptions(x86::Assembler& a, int fp_state) {
  constexpr int kInexact = 0x20;
  const Label none = a.newLabel();
  a.vstmxcsr(field(offsetof(Frame, mxcsr_now), 4));
  a.test(field(offsetof(Frame, mxcsr_now), 1), kInexact);
  a.jz(none);
  a.or_(slot_in_frame(static_cast<Slot>(fp_state), 4), static_cast<int>(softfloat::kFpsrIxc));
  a.vldmxcsr(field(offsetof(Frame, mxcsr), 4));
  a.bind(none);
}

StrandWriter::StrandWriter(asmjit::CodeHolder& code, const Surroundings& around)
    : around_(around), uops_(around.module->uops.data()), a_(&code) {
  a_.addEncodingOptions(asmjit::EncodingOptions::kOptimizedAlign);
  state_.piece.set_assembler(&a_);
}

void StrandWriter::write(std::span<const uint32_t> starts, const Find& find, const Count& count) {
  find_ = find;
  count_ = count;
  for (const uint32_t start : starts) labels_.emplace(start, a_.newLabel());
  Domain::current() = &state_;
  for (size_t i = 0; i < starts.size(); ++i)
    write_strand(starts[i], i + 1 < starts.size() ? starts[i + 1] : kNoUop);
  for (size_t i = 0; i < later_.size(); ++i) later_[i]();  // may add to the list
  Domain::current() = nullptr;
}

void StrandWriter::leave_at(uint32_t uop) {
  a_.mov(x86::eax, uop);
  a_.jmp(around_.leave);
}

// A label from which the core goes on at the micro-op.
Label StrandWriter::way_to(uint32_t uop) {
  const auto found = labels_.find(uop);
  if (found != labels_.end()) return found->second;
  const Label label = a_.newLabel();
  labels_.emplace(uop, label);
  later([this, uop, label] {
    a_.bind(label);
    if (const uint64_t code = find_(uop)) return void(a_.jmp(code));
    exits_.push_back({uop, label});
    leave_at(uop);
  });
  return label;
}

void StrandWriter::go_to(uint32_t uop, uint32_t next_start) {
  if (uop != next_start) a_.jmp(way_to(uop));
}

void StrandWriter::write_strand(uint32_t start, uint32_t next_start) {
  uint32_t end = start;
  while (!ends_strand(uops_[end])) ++end;
  const AccessRuns runs(uops_, start, end);
  runs_ = &runs;
  covers_.assign(end - start, 0);
  covers_used_ = 0;

  const Label label = labels_.at(start);
  a_.align(asmjit::AlignMode::kCode, 16);
  a_.bind(label);
  entries_.push_back({start, label});
  for (uint32_t i = start; i < end; ++i) write_uop(i);
  write_branch(end, next_start);
}

Domain::V StrandWriter::slot(Slot s) const {
  const SlotPlace& place = around_.slots[s];
  V v{.form = V::kSlot, .id = s};
  if (place.kind == SlotPlace::kGp) v = Domain::in_gp(x86::gpq(place.id));
  if (place.kind == SlotPlace::kXmm) v = Domain::in_xmm(x86::xmm(place.id));
  return v;
}

// Copies a result to its slot.
void StrandWriter::finish(const Uop& u, Slot d, const V& v) {
  Piece& piece = state_.piece;
  const ShapeInfo info = shape_info(op_info(u.op).shape);
  const bool is_source = (info.a.reads && u.a == d) || (info.b.reads && u.b == d) ||
                         (info.c.reads && u.c == d) || (info.e.reads && u.e == d);
  const SlotPlace& place = around_.slots[d];
  const bool is_xmm = v.form == V::kXmm && v.is_plain();
  if (place.kind == SlotPlace::kGp) {
    const x86::Gp to = x86::gpq(place.id);
    if (is_xmm)
      piece.emit(x86::Inst::kIdVmovq, to, x86::xmm(v.id));
    else
      piece.finish(to, Domain::gp(v), is_source);
  } else if (place.kind == SlotPlace::kXmm) {
    const x86::Xmm to = x86::xmm(place.id);
    piece.finish(to, Domain::xmm(v), is_source);
  } else if (is_xmm) {
    piece.emit(x86::Inst::kIdVmovq, slot_in_frame(d), x86::xmm(v.id));
  } else if (v.is_konst() && Domain::fits_imm(v.k)) {
    piece.emit(x86::Inst::kIdMov, slot_in_frame(d), asmjit::imm(static_cast<int32_t>(v.k)));
  } else {
    piece.emit(x86::Inst::kIdMov, slot_in_frame(d), Domain::gp(v));
  }
}

// The interpreter's function computes the micro-op.
void StrandWriter::write_call(uint32_t i) {
  a_.mov(x86::eax, i);
  a_.call(around_.compute);
}

// The machine has such flags itself.
Domain::V StrandWriter::flags(const Uop& u) {
  const bool is_32bit = u.op == Op::fl_sub32 || u.op == Op::fl_add32;
  const bool is_difference = u.op == Op::fl_sub32 || u.op == Op::fl_sub64;
  const x86::Gp a = Domain::gp(slot(u.a)), b = Domain::gp(slot(u.b)), d = state_.piece.gp();
  if (is_32bit)
    state_.piece.flags(d, a.r32(), b.r32(), is_difference);
  else
    state_.piece.flags(d, a, b, is_difference);
  return Domain::in_gp(d, true);
}

bool StrandWriter::write_value(uint32_t i) {
  const Uop& u = uops_[i];
  const ShapeInfo info = shape_info(op_info(u.op).shape);
  V fp = Domain::konst(softfloat::kFpsrIxc);
  if (info.fp_state && (!around_.fp_by_machine || u.e != around_.module->abi.fp_state ||
                        !raises_as_machine(u)))
    return false;
  const Label cold = a_.newLabel(), done = a_.newLabel();
  state_.piece.begin(cold);
  state_.conditions.clear();
  const V e = info.e.reads ? slot(u.e) : Domain::konst(0);
  const std::optional<V> machine =
      info.fp_state ? machine_float(u, slot(u.a), slot(u.b), slot(u.c)) : std::nullopt;
  const V r = machine          ? *machine
              : is_flags(u.op) ? flags(u)
                               : simd::lower_value<Domain>(u, slot(u.a), slot(u.b), slot(u.c), e, fp);
  if (info.fp_state && !fp.is_konst(softfloat::kFpsrIxc)) return false;
  finish(u, u.d, r);
  if (!state_.piece.flush()) return false;
  if (state_.piece.cold_used()) {
    a_.bind(done);
    later([this, cold, done, i] {
      a_.bind(cold);
      write_call(i);
      a_.jmp(done);
    });
  }
  return true;
}

// Whether the micro-op names the floating-point state, otherwise than to compute in it.
bool StrandWriter::names_fp_state(const Uop& u) const {
  const ShapeInfo info = shape_info(op_info(u.op).shape);
  const auto hits = [state = around_.module->abi.fp_state](Slot s, const OperandUse& use) {
    return state >= s && state < s + std::max(use.reads, use.writes);
  };
  return hits(u.d, info.d) || hits(u.a, info.a) || hits(u.b, info.b) || hits(u.c, info.c) ||
         hits(u.e, info.e);
}

// Before somebody looks at the floating-point state, or writes it: what was raised belongs to the
// former one.
void StrandWriter::settle_exceptions() { write_exceptions(a_, around_.module->abi.fp_state); }

// After a write of the floating-point state.
void StrandWriter::check_fp_state(uint32_t next) {
  const Label other = a_.newLabel();
  const auto s = static_cast<Slot>(around_.module->abi.fp_state);
  a_.mov(x86::rax, slot_in_frame(s));
  a_.mov(x86::rcx, sem::kFpModes);
  a_.test(x86::rax, x86::rcx);
  a_.jnz(other);
  later([this, other, next] {
    a_.bind(other);
    leave_at(next);
  });
}

void StrandWriter::write_uop(uint32_t i) {
  const Uop& u = uops_[i];
  const Shape shape = op_info(u.op).shape;
  const ShapeInfo info = shape_info(shape);
  if (around_.fp_by_machine && names_fp_state(u)) settle_exceptions();
  if (access_info(u.op).size != 0) {
    write_access(i);
  } else {
    const bool is_value = info.pure || info.fp_state;
    if (!is_value || !write_value(i)) write_call(i);
  }
  if (!around_.fp_by_machine) return;
  const int state = around_.module->abi.fp_state;
  const auto hits = [&](Slot d, int count) { return state >= d && state < d + count; };
  // Arithmetic only adds flags.
  if (hits(u.d, info.d.writes) || hits(u.c, info.c.writes)) check_fp_state(i + 1);
}

// --- memory

// By where the base points now; mostly pointers to stacks are kept for long.
bool StrandWriter::seems_in_windows(const Uop& u) const {
  return around_.plain_windows && u.a == around_.module->abi.stack_pointer;
}

// In rax: an address, of `extent` bytes that are to be accessed. At `access`, rax + rdx is where
// they lie.
void StrandWriter::write_check(uint8_t need, bool in_windows, int64_t extent,
                               Label access, Label slow) {
  const MemoryView& m = around_.memory;
  const uint64_t linear = reinterpret_cast<uint64_t>(m.linear) - m.linear_base;
  const uint64_t windows = reinterpret_cast<uint64_t>(m.windows) - m.window_base;
  const auto pages = static_cast<int32_t>(around_.pages);
  const int window_bits = 4;
  const Label other = a_.newLabel();
  a_.mov(x86::rcx, x86::rax);
  a_.shr(x86::rcx, kPageShift);
  a_.cmp(x86::rcx, pages);
  a_.jae(other);
  a_.add(x86::rcx, field(offsetof(Frame, rights), 8));
  a_.test(x86::byte_ptr(x86::rcx), in_windows ? need << window_bits : need);
  a_.jz(other);
  a_.mov(x86::rdx, in_windows ? windows : linear);
  a_.bind(access);
  later([=, this] {
    a_.bind(other);
    a_.mov(x86::rcx, x86::rax);
    a_.shr(x86::rcx, kPageShift);
    a_.cmp(x86::rcx, pages);
    a_.jae(slow);
    a_.add(x86::rcx, field(offsetof(Frame, rights), 8));
    a_.movzx(x86::ecx, x86::byte_ptr(x86::rcx));
    a_.mov(x86::rdx, in_windows ? linear : windows);
    a_.test(x86::cl, in_windows ? need : need << window_bits);
    a_.jnz(access);
    a_.lea(x86::rdx, x86::ptr(x86::rax, static_cast<int32_t>(extent - 1)));
    a_.xor_(x86::rdx, x86::rax);
    a_.shr(x86::rdx, kPageShift);
    a_.jnz(slow);
    a_.mov(x86::rdx, linear);
    a_.test(x86::cl, need << PageRights::kAlone);
    a_.jnz(access);
    a_.mov(x86::rdx, windows);
    a_.test(x86::cl, need << (PageRights::kAlone + window_bits));
    a_.jnz(access);
    a_.jmp(slow);
  });
}

// Between memory and the micro-op's slot.
void StrandWriter::write_move(const Uop& u, x86::Mem at) {
  const AccessInfo access = access_info(u.op);
  const SlotPlace& place = around_.slots[u.d];
  const auto size = static_cast<uint32_t>(access.size);
  at.setSize(size);
  if (shape_info(op_info(u.op).shape).d.reads) {
    if (place.kind == SlotPlace::kXmm && size >= 4) {
      if (size == 8)
        a_.vmovq(at, x86::xmm(place.id));
      else
        a_.vmovd(at, x86::xmm(place.id));
      return;
    }
    x86::Gp from = x86::rcx;
    if (place.kind == SlotPlace::kGp)
      from = x86::gpq(place.id);
    else if (place.kind == SlotPlace::kXmm)
      a_.vmovq(from, x86::xmm(place.id));
    else
      a_.mov(from, slot_in_frame(u.d));
    switch (size) {
      case 1:
        a_.mov(at, from.r8());
        break;
      case 2:
        a_.mov(at, from.r16());
        break;
      case 4:
        a_.mov(at, from.r32());
        break;
      default:
        a_.mov(at, from);
        break;
    }
    return;
  }
  if (place.kind == SlotPlace::kXmm && size >= 4 && access.extend == Extend::kZero) {
    if (size == 8)
      a_.vmovq(x86::xmm(place.id), at);
    else
      a_.vmovd(x86::xmm(place.id), at);
    return;
  }
  const x86::Gp to = place.kind == SlotPlace::kGp ? x86::gpq(place.id) : x86::rcx;
  switch (access.extend) {
    case Extend::kZero:
      if (size == 8)
        a_.mov(to, at);
      else if (size == 4)
        a_.mov(to.r32(), at);
      else
        a_.movzx(to.r32(), at);
      break;
    case Extend::kSign64:
      if (size == 4)
        a_.movsxd(to, at);
      else
        a_.movsx(to, at);
      break;
    case Extend::kSign32:
      a_.movsx(to.r32(), at);
      break;
  }
  if (place.kind == SlotPlace::kXmm)
    a_.vmovq(x86::xmm(place.id), to);
  else if (place.kind == SlotPlace::kFrame)
    a_.mov(slot_in_frame(u.d), to);
}

// In rax: the address that the micro-op accesses, and `more`.
void StrandWriter::write_address(const Uop& u, int64_t more) {
  const auto in_gp = [&](Slot s, x86::Gp to, bool low) {
    const SlotPlace& p = around_.slots[s];
    if (p.kind == SlotPlace::kGp && low)
      a_.movsxd(to, x86::gpd(p.id));
    else if (p.kind == SlotPlace::kGp)
      a_.mov(to, x86::gpq(p.id));
    else if (p.kind == SlotPlace::kFrame && low)
      a_.movsxd(to, slot_in_frame(s, 4));
    else if (p.kind == SlotPlace::kFrame)
      a_.mov(to, slot_in_frame(s));
    else {
      a_.vmovq(to, x86::xmm(p.id));
      if (low) a_.movsxd(to, to.r32());
    }
  };
  const SlotPlace& base = around_.slots[u.a];
  const AddressMode mode = access_info(u.op).mode;
  if (mode == AddressMode::kImmediate) {
    const uint64_t offset = u.imm + static_cast<uint64_t>(more);
    const bool fits = Domain::fits_imm(offset);
    if (base.kind == SlotPlace::kGp && fits) {
      if (offset == 0)
        a_.mov(x86::rax, x86::gpq(base.id));
      else
        a_.lea(x86::rax, x86::ptr(x86::gpq(base.id), static_cast<int32_t>(offset)));
    } else {
      in_gp(u.a, x86::rax, false);
      if (offset != 0 && fits) a_.add(x86::rax, static_cast<int32_t>(offset));
      if (!fits) {
        a_.mov(x86::rcx, offset);
        a_.add(x86::rax, x86::rcx);
      }
    }
    return;
  }
  const SlotPlace& index = around_.slots[u.b];
  const auto shift = static_cast<uint32_t>(u.imm & 63);
  const bool is_short = mode == AddressMode::kIndex32;
  x86::Gp second = x86::rax;
  if (index.kind == SlotPlace::kGp && !is_short)
    second = x86::gpq(index.id);
  else
    in_gp(u.b, x86::rax, is_short);
  if (shift > 3) {
    if (second != x86::rax) a_.mov(x86::rax, second);
    a_.shl(x86::rax, shift);
    second = x86::rax;
  }
  x86::Gp first = x86::rcx;
  if (base.kind == SlotPlace::kGp)
    first = x86::gpq(base.id);
  else
    in_gp(u.a, x86::rcx, false);
  a_.lea(x86::rax, x86::ptr(first, second, shift > 3 ? 0 : shift));
}

void StrandWriter::write_access(uint32_t i) {
  const Label slow = a_.newLabel(), done = a_.newLabel();
  if (around_.direct.base != nullptr)
    write_guarded_access(i, slow, done);
  else
    write_checked_access(i, slow, done);
}

// The host's page protection stops what the guest may not access, if the address is bounded. That
// of a run's first access bounds the others': what may lie between them is a page.
void StrandWriter::write_guarded_access(uint32_t i, Label slow, Label done) {
  static_assert(DirectMemory::kMargin >= 4 * kPageSize);
  constexpr uint64_t kFarthest = DirectMemory::kMargin / 2;
  const Uop& u = uops_[i];
  const AccessPlace* place = runs_->find(i);
  const bool is_bounded = place != nullptr && runs_->run(*place).first != i;
  const SlotPlace& base = around_.slots[u.a];
  const bool is_near = access_info(u.op).mode == AddressMode::kImmediate &&
                       u.imm + kFarthest < 2 * kFarthest;
  x86::Gp from = x86::rax;
  if (is_near && base.kind == SlotPlace::kGp)
    from = x86::gpq(base.id);
  else
    write_address(u, is_near ? -static_cast<int64_t>(u.imm) : 0);
  if (!is_bounded) {
    a_.cmp(from, field(offsetof(Frame, limit), 8));
    a_.jae(slow);
  }
  x86::Mem at = x86::ptr(from, is_near ? static_cast<int32_t>(u.imm) : 0);
  at.setSegment(x86::gs);
  const Label begin = a_.newLabel();
  a_.bind(begin);
  write_move(u, at);
  a_.bind(done);
  accesses_.push_back({begin, done, slow});
  write_slow_access(i, slow, done, [] {});
}

// `before`: more code of the slow path.
void StrandWriter::write_slow_access(uint32_t i, Label slow, Label done,
                                     std::function<void()> before) {
  later([this, slow, done, i, before] {
    a_.bind(slow);
    before();
    write_call(i);
    a_.jmp(done);
  });
}

void StrandWriter::write_checked_access(uint32_t i, Label slow, Label done) {
  const Uop& u = uops_[i];
  const AccessInfo access = access_info(u.op);
  const Label at = a_.newLabel();
  const AccessPlace* place = runs_->find(i);
  const AccessRun* run = place ? &runs_->run(*place) : nullptr;
  uint32_t* cover = place ? &covers_[place->run] : nullptr;
  const auto cover_field = [](uint32_t n) {
    return field(offsetof(Frame, covers) + 8 * (n - 1), 8);
  };
  if (run != nullptr && run->first != i && *cover != 0) {
    a_.mov(x86::rax, cover_field(*cover));
    a_.test(x86::rax, x86::rax);
    a_.jz(slow);
    write_move(u, x86::ptr(x86::rax, static_cast<int32_t>(place->offset - run->low)));
    a_.bind(done);
    return write_slow_access(i, slow, done, [] {});
  }
  const bool covers = run != nullptr && run->first == i && covers_used_ < Frame::kCovers;
  if (covers) *cover = ++covers_used_;

  write_address(u, covers ? run->low : 0);
  const bool writes =
      run != nullptr && covers ? run->writes : shape_info(op_info(u.op).shape).d.reads != 0;
  const uint8_t need = writes ? PageRights::kLinearWrite : PageRights::kLinearRead;
  write_check(need, seems_in_windows(u), covers ? run->high - run->low : access.size, at, slow);
  if (covers) {
    a_.add(x86::rax, x86::rdx);
    a_.mov(cover_field(*cover), x86::rax);
    write_move(u, x86::ptr(x86::rax, static_cast<int32_t>(-run->low)));
    a_.bind(done);
    const uint32_t number = *cover;
    return write_slow_access(i, slow, done,
                             [this, cover_field, number] { a_.mov(cover_field(number), 0); });
  }
  write_move(u, x86::ptr(x86::rax, x86::rdx));
  a_.bind(done);
  write_slow_access(i, slow, done, [] {});
}

// --- control

// Where the budget ends the interpreter takes the core out of the block, and counts it.
void StrandWriter::write_block_count(uint32_t i) {
  const uint32_t number = uops_[i].block();
  const Block& block = around_.module->blocks[number];
  const auto insns = static_cast<int32_t>(block.insn_count);
  if (insns != 0) {
    const Label over = a_.newLabel();
    a_.sub(x86::r15, insns);
    a_.jle(over);
    later([this, over, insns, i] {
      a_.bind(over);
      a_.add(x86::r15, insns);
      leave_at(i);
    });
  }
  if (!around_.counts_at_once) {
    const size_t count = sizeof(Frame) + sizeof(uint32_t) * count_(number);
    return void(a_.inc(field(count, sizeof(uint32_t))));
  }
  a_.mov(x86::rax, field(offsetof(Frame, block_counts), 8));
  const x86::Mem count = x86::qword_ptr(x86::rax, static_cast<int32_t>(8 * number));
  if (Domain::fits_imm(around_.weight)) {
    a_.add(count, static_cast<int32_t>(around_.weight));
  } else {
    a_.mov(x86::rcx, around_.weight);
    a_.add(count, x86::rcx);
  }
  alignas(32) uint32_t counts[16] = {};
  for (size_t c = 0; c < kInsnClassCount; ++c) counts[c] = block.classes[c];
  for (int half = 0; half < 2; ++half) {
    const uint32_t* eight = counts + 8 * half;
    if (std::all_of(eight, eight + 8, [](uint32_t n) { return n == 0; })) continue;
    const Label data = a_.newLabel();
    const x86::Ymm sum = x86::ymm(14 + static_cast<uint32_t>(half));
    a_.vpaddd(sum, sum, x86::ptr(data));
    std::array<uint32_t, 8> words;
    std::copy_n(eight, 8, words.begin());
    later([this, data, words] {
      a_.align(asmjit::AlignMode::kData, 32);
      a_.bind(data);
      a_.embed(words.data(), sizeof words);
    });
  }
}

void StrandWriter::write_indirect_jump(uint32_t i) {
  const Uop& u = uops_[i];
  const CodeMap& code = around_.module->code;
  const Label elsewhere = a_.newLabel();
  const SlotPlace& place = around_.slots[u.a];
  if (place.kind == SlotPlace::kGp)
    a_.mov(x86::rdx, x86::gpq(place.id));
  else if (place.kind == SlotPlace::kXmm)
    a_.vmovq(x86::rdx, x86::xmm(place.id));
  else
    a_.mov(x86::rdx, slot_in_frame(u.a));
  if (Domain::fits_imm(code.text_base)) {
    a_.sub(x86::rdx, static_cast<int32_t>(code.text_base));
  } else {
    a_.mov(x86::rcx, code.text_base);
    a_.sub(x86::rdx, x86::rcx);
  }
  if (code.pc_shift != 0) a_.ror(x86::rdx, code.pc_shift);  // what is not aligned is far out
  a_.cmp(x86::rdx, field(offsetof(Frame, text_units), 8));
  a_.jae(elsewhere);
  a_.mov(x86::rcx, field(offsetof(Frame, unit_entries), 8));
  a_.mov(x86::rdx, x86::ptr(x86::rcx, x86::rdx, 3, 0, 8));
  a_.test(x86::rdx, x86::rdx);
  a_.jz(elsewhere);
  write_block_count(i);
  const x86::Mem depth = field(offsetof(Frame, depth), 4);
  if (u.aux == static_cast<uint8_t>(JumpHint::kCall)) a_.inc(depth);
  if (u.aux == static_cast<uint8_t>(JumpHint::kReturn)) {
    a_.cmp(depth, 1);
    a_.adc(depth, -1);
  }
  a_.jmp(x86::rdx);
  later([this, elsewhere, i] {
    a_.bind(elsewhere);
    leave_at(i);
  });
}

void StrandWriter::write_branch(uint32_t i, uint32_t next_start) {
  const Uop& u = uops_[i];
  switch (op_info(u.op).shape) {
    case Shape::kLink:
      return go_to(u.target(), next_start);
    case Shape::kJmp:
      write_block_count(i);
      if (u.aux == static_cast<uint8_t>(JumpHint::kCall)) a_.inc(field(offsetof(Frame, depth), 4));
      return go_to(u.target(), next_start);
    case Shape::kJmpReg:
      return write_indirect_jump(i);
    case Shape::kBrAB:
    case Shape::kBrAI: {
      if (around_.fp_by_machine && names_fp_state(u)) settle_exceptions();
      write_block_count(i);
      state_.piece.begin(Label());
      state_.conditions.clear();
      const Domain::M m = simd::lower_branch<Domain>(u, slot(u.a), slot(u.b));
      if (m.kind == Domain::M::kKnown) return go_to(m.known ? u.target() : i + 1, next_start);
      const bool swapped = u.target() == next_start;
      Domain::jump_if(m, !swapped, way_to(swapped ? i + 1 : u.target()), false);
      if (!state_.piece.flush()) failed_ = true;
      return go_to(swapped ? u.target() : i + 1, next_start);
    }
    default:
      return leave_at(i);  // the interpreter counts the block, too
  }
}

}  // namespace gpusim::native
