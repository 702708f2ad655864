// Emits arithmetic on compact values, base + lane * stride: the rules of simd/affine.h in a few
// scalar instructions. What a rule asks of its operands is checked; where it does not hold, code
// leaves for the interpreter.
#pragma once
#include <optional>

#include "device_sim/simd/jit/control.h"
#include "device_sim/simd/narrow.h"

namespace gpusim::simd {

class AffineEmitter : public ControlEmitter {
 protected:
  using ControlEmitter::ControlEmitter;

  // A compact value that is being computed; without a stride it is uniform.
  struct Run {
    x86::Gp base;
    std::optional<x86::Gp> stride;
    std::optional<x86::Gp> span;  // as Resident's
    bool owns_stride = false;     // others keep it elsewhere
    std::optional<Slot> slot;     // that still has this stride
  };
  // To read only.
  Run peek_run(Slot s, uint8_t kind) {
    const Resident& r = residents_.get(s, kind);
    return {r.base, r.stride, r.span, false, s};
  }
  Run load_run(Slot s, uint8_t kind) {
    Run x = peek_run(s, kind);
    const x86::Gp base = cc_.newUInt64();
    cc_.mov(base, x.base);
    x.base = base;
    return x;
  }
  Run constant_run(uint64_t value) {
    Run x{.base = cc_.newUInt64()};
    cc_.mov(x.base, value);
    return x;
  }
  void store_run(Slot s, const Run& x) { residents_.put(s, {x.base, x.stride, x.span}); }
  // Before the stride of `x` is changed.
  void own_stride(Run& x) {
    if (!x.owns_stride) {
      const x86::Gp stride = cc_.newUInt64();
      if (x.stride)
        cc_.mov(stride, *x.stride);
      else
        cc_.xor_(stride, stride);
      x.stride = stride;
      x.owns_stride = true;
    }
    x.span.reset();
    x.slot.reset();
  }
  void make_uniform(Run& x) { x = {.base = x.base}; }

  // --- conditions

  // Leaves if a stride is so large that lane * stride could wrap.
  void check_stride(const x86::Gp& stride, const Label& exit) {
    const x86::Gp t = cc_.newUInt64();
    cc_.movsxd(t, stride.r32());
    cc_.cmp(t, stride);
    cc_.jne(exit);
  }
  // The last lane's value; that of a uniform one is its base.
  x86::Gp last_of(Run& x, const Label& exit) {
    if (!x.stride) return x.base;
    if (!x.span) find_span(x, exit);
    const x86::Gp last = cc_.newUInt64();
    cc_.lea(last, x86::ptr(x.base, *x.span));
    return last;
  }
  void find_span(Run& x, const Label& exit) {
    check_stride(*x.stride, exit);
    x.span = cc_.newUInt64();
    cc_.imul(*x.span, *x.stride, static_cast<int>(trace_.width) - 1);
    if (x.slot) residents_.note_span(*x.slot, *x.span);
  }
  // x &= the low `bits` bits, 1 to 62, of which no lane's may carry.
  void cut(Run& x, uint32_t bits, const Label& exit) {
    cut(x.base, bits);
    if (!x.stride) return;
    const x86::Gp last = last_of(x, exit), t = cc_.newUInt64();
    cc_.mov(t, last);
    cc_.shr(t, static_cast<int>(bits));
    cc_.jnz(exit);
  }
  void cut(const x86::Gp& x, uint32_t bits) {
    if (bits == 32) {
      cc_.mov(x.r32(), x.r32());
    } else {
      cc_.shl(x, static_cast<int>(64 - bits));
      cc_.shr(x, static_cast<int>(64 - bits));
    }
  }
  // The same with the sign of what is left.
  void extend(Run& x, uint32_t bits, const Label& exit) {
    const auto extend_word = [&](const x86::Gp& to, const x86::Gp& from) {
      if (bits == 32) {
        cc_.movsxd(to, from.r32());
        return;
      }
      if (to != from) cc_.mov(to, from);
      cc_.shl(to, static_cast<int>(64 - bits));
      cc_.sar(to, static_cast<int>(64 - bits));
    };
    extend_word(x.base, x.base);
    if (!x.stride) return;
    const x86::Gp last = last_of(x, exit), t = cc_.newUInt64();
    extend_word(t, last);
    cc_.cmp(t, last);
    cc_.jne(exit);
  }
  // Leaves unless all lanes agree above the low `bits` bits, 0 to 62.
  void check_agreement(const Run& x, uint32_t bits, const Label& exit) {
    if (!x.stride) return;
    Run low = x;
    low.base = cc_.newUInt64();
    cc_.mov(low.base, x.base);
    if (bits == 0)
      cc_.jmp(exit);  // a stride of zero would be none
    else
      cut(low, bits, exit);
  }

  // Leaves unless a compact slot has such words in all lanes.
  void check_words(Slot s, uint8_t kind, Words need, const Label& exit) {
    Run x = peek_run(s, kind);
    const auto check = [&](const x86::Gp& value) {
      const x86::Gp t = cc_.newUInt64();
      if (need == kSignAbove) {
        cc_.movsxd(t, value.r32());
        cc_.cmp(t, value);
        cc_.jne(exit);
      } else {
        cc_.mov(t, value);
        cc_.shr(t, need == kZeroAbove ? 32 : 31);
        cc_.jnz(exit);
      }
    };
    check(x.base);
    if (x.stride) check(last_of(x, exit));
  }

  // --- values

  void shift_left(Run& x, uint64_t n) {
    if ((n & 63) == 0) return;
    cc_.shl(x.base, static_cast<int>(n & 63));
    if (!x.stride) return;
    own_stride(x);
    cc_.shl(*x.stride, static_cast<int>(n & 63));
  }
  void add(Run& x, const Run& y) {
    cc_.add(x.base, y.base);
    if (!y.stride) return;
    own_stride(x);
    cc_.add(*x.stride, *y.stride);
  }
  void subtract(Run& x, const Run& y) {
    cc_.sub(x.base, y.base);
    if (!y.stride) return;
    own_stride(x);
    cc_.sub(*x.stride, *y.stride);
  }
  // One of them is uniform.
  void multiply(Run& x, const Run& y) {
    if (y.stride) {
      own_stride(x);
      cc_.mov(*x.stride, *y.stride);
      cc_.imul(*x.stride, x.base);
    } else if (x.stride) {
      own_stride(x);
      cc_.imul(*x.stride, y.base);
    }
    cc_.imul(x.base, y.base);
  }

  // Whether emit_affine() can; else the interpreter's handler has to.
  bool has_affine_code(size_t i) const {
    const Uop& u = uop(i);
    const Plan& p = plan(i);
    if (p.method == Method::kUniform)
      return is_affine_inline(u.op) || u.op == Op::konst || is_uniform_inline(u.op);
    const bool both_vary = p.source_kind[0] == kAffine && p.source_kind[1] == kAffine;
    const bool stays_uniform = step(i).d_after == kUniform;
    switch (u.op) {
      case Op::mulw:
      case Op::mul64:
      case Op::mul32:
      case Op::madd64:
      case Op::madd32:
      case Op::msub64:
      case Op::msub32:
      case Op::smaddl:
      case Op::umaddl:
        return !both_vary && !stays_uniform;
      case Op::andi64:
        return is_affine_mask(u.imm, stays_uniform);
      case Op::ubfiz:
        return is_affine_mask(u.imm | low_mask(u.aux), stays_uniform);
      case Op::ubfx:
        return u.aux == 0 ? is_affine_mask(u.imm, stays_uniform) : u.aux <= 62 && stays_uniform;
      case Op::lsri64:
      case Op::asri64:
      case Op::lsri32:
        return u.imm >= 1 && u.imm <= 62 && stays_uniform;
      case Op::sbf64:
        return u.imm >= u.aux ? u.aux >= 2 && !stays_uniform : u.aux - u.imm <= 62 && stays_uniform;
      default:
        return true;
    }
  }
  static bool is_uniform_inline(Op op) {
    switch (op) {
      case Op::and64:
      case Op::and32:
      case Op::or64:
      case Op::or32:
      case Op::ori64:
      case Op::xor64:
      case Op::xor32:
      case Op::xori64:
      case Op::bic64:
        return true;
      default:
        return false;
    }
  }
  // Values that are the same in all lanes.
  void emit_logic(size_t i) {
    const Uop& u = uop(i);
    const x86::Gp x = load_run(u.a, kUniform).base;
    const x86::Gp y =
        shape_of(u) == Shape::kDAI ? constant_run(u.imm).base : load_run(u.b, kUniform).base;
    switch (u.op) {
      case Op::and32:
      case Op::and64:
        cc_.and_(x, y);
        break;
      case Op::bic64:
        cc_.not_(y);
        cc_.and_(x, y);
        break;
      case Op::or32:
      case Op::or64:
      case Op::ori64:
        cc_.or_(x, y);
        break;
      default:
        cc_.xor_(x, y);
    }
    if (u.op == Op::and32 || u.op == Op::or32 || u.op == Op::xor32) cut(x, 32);
    store_run(u.d, {.base = x});
  }
  // Whether emit_affine() asks what the last lane has.
  bool asks_for_last(size_t i) const {
    const Uop& u = uop(i);
    if (is_branch(shape_of(u))) return true;
    if (is_load(shape_of(u)) || is_store(shape_of(u)))
      return access_info(u.op).mode == AddressMode::kIndex32;
    switch (u.op) {
      case Op::mov:
      case Op::addi64:
      case Op::add64:
      case Op::sub64:
      case Op::add_lsl64:
      case Op::sub_lsl64:
      case Op::lsli64:
      case Op::mul64:
      case Op::madd64:
      case Op::msub64:
        return false;
      default:
        return true;
    }
  }
  // A mask keeps either the low bits of what varies, or nothing of it.
  static bool is_affine_mask(uint64_t mask, bool stays_uniform) {
    const int below = std::countr_zero(mask), bits = 64 - std::countl_zero(mask);
    if (stays_uniform) return below >= 1 && below <= 62;
    return is_low_mask(mask) && bits >= 1 && bits <= 62;
  }

  void emit_affine(size_t i) {
    const Uop& u = uop(i);
    const Plan& p = plan(i);
    if (u.op == Op::konst) return store_run(u.d, constant_run(u.imm));
    if (is_uniform_inline(u.op)) return emit_logic(i);
    const Label exit = exit_of(i);
    Run x = load_run(u.a, p.source_kind[0]);
    const auto b = [&] { return load_run(u.b, p.source_kind[1]); };
    const auto c = [&] { return load_run(u.c, p.source_kind[2]); };
    const auto low = [&](Run y) {
      cut(y, 32, exit);
      return y;
    };
    const auto signed_low = [&](Run y) {
      extend(y, 32, exit);
      return y;
    };
    const auto shifted = [&](Run y) {
      shift_left(y, u.imm);
      return y;
    };
    const auto mask = [&](uint64_t m) {
      if (!x.stride) return (void)cc_.and_(x.base, constant_run(m).base);
      if (is_low_mask(m)) return cut(x, static_cast<uint32_t>(64 - std::countl_zero(m)), exit);
      check_agreement(x, static_cast<uint32_t>(std::countr_zero(m)), exit);
      make_uniform(x);
      cc_.and_(x.base, constant_run(m).base);
    };
    switch (u.op) {
      case Op::mov32:
        x = low(x);
        break;
      case Op::mov:
        break;
      case Op::addi64:
        add(x, constant_run(u.imm));
        break;
      case Op::add64:
        add(x, b());
        break;
      case Op::sub64:
        subtract(x, b());
        break;
      case Op::add_lsl64:
        add(x, shifted(b()));
        break;
      case Op::sub_lsl64:
        subtract(x, shifted(b()));
        break;
      case Op::add_sxtw64:
        add(x, shifted(signed_low(b())));
        break;
      case Op::add_uxtw64:
        add(x, shifted(low(b())));
        break;
      case Op::addi32:
        add(x, constant_run(u.imm));
        x = low(x);
        break;
      case Op::add32:
        add(x, b());
        x = low(x);
        break;
      case Op::sub32:
        subtract(x, b());
        x = low(x);
        break;
      case Op::add_lsl32:
        add(x, shifted(b()));
        x = low(x);
        break;
      case Op::sub_lsl32:
        subtract(x, shifted(b()));
        x = low(x);
        break;
      case Op::addw:
        add(x, b());
        x = signed_low(x);
        break;
      case Op::addiw:
        add(x, constant_run(u.imm));
        x = signed_low(x);
        break;
      case Op::subw:
        subtract(x, b());
        x = signed_low(x);
        break;
      case Op::lsli64:
        shift_left(x, u.imm);
        break;
      case Op::lsli32:
        shift_left(x, u.imm);
        x = low(x);
        break;
      case Op::mul64:
        multiply(x, b());
        break;
      case Op::mul32:
        multiply(x, b());
        x = low(x);
        break;
      case Op::mulw:
        multiply(x, b());
        x = signed_low(x);
        break;
      case Op::madd64:
        multiply(x, b());
        add(x, c());
        break;
      case Op::madd32:
        multiply(x, b());
        add(x, c());
        x = low(x);
        break;
      case Op::umaddl:
        x = low(x);
        multiply(x, low(b()));
        add(x, c());
        break;
      case Op::smaddl:
        x = signed_low(x);
        multiply(x, signed_low(b()));
        add(x, c());
        break;
      case Op::msub64:
      case Op::msub32: {
        Run from = c();
        multiply(x, b());
        subtract(from, x);
        x = u.op == Op::msub32 ? low(from) : from;
        break;
      }
      case Op::andi64:
        mask(u.imm);
        break;
      case Op::ubfiz:
        shift_left(x, u.aux);
        mask(u.imm | low_mask(u.aux));
        break;
      case Op::ubfx:
        if (u.aux == 0) {
          mask(u.imm);
          break;
        }
        check_agreement(x, u.aux, exit);
        make_uniform(x);
        cc_.shr(x.base, u.aux);
        cc_.and_(x.base, constant_run(u.imm).base);
        break;
      case Op::lsri64:
      case Op::asri64:
      case Op::lsri32:
        check_agreement(x, static_cast<uint32_t>(u.imm), exit);
        make_uniform(x);
        if (u.op == Op::lsri32) cut(x.base, 32);
        if (u.op == Op::asri64)
          cc_.sar(x.base, static_cast<int>(u.imm));
        else
          cc_.shr(x.base, static_cast<int>(u.imm));
        break;
      case Op::sbf64:
        if (u.imm >= u.aux) {
          shift_left(x, u.imm - u.aux);
          extend(x, 64u - u.aux, exit);
        } else {
          check_agreement(x, static_cast<uint32_t>(u.aux - u.imm), exit);
          make_uniform(x);
          cc_.shl(x.base, static_cast<int>(u.imm));
          cc_.sar(x.base, u.aux);
        }
        break;
      default:
        break;
    }
    if (x.stride && step(i).d_after == kUniform) {  // strides that cancel each other
      cc_.test(*x.stride, *x.stride);
      cc_.jnz(exit);
      make_uniform(x);
    }
    store_run(u.d, x);
  }

  // Goes on where all lanes went while recording, if what they all compare is so again.
  void emit_uniform_comparison(size_t i) {
    const Uop& u = uop(i);
    const Comparison k = comparison_of(u.op);
    const x86::Gp a = residents_.get(u.a, kUniform).base;
    const Label otherwise = cc_.newLabel();
    const bool takes = step(i).next == u.target();
    deferred_.push_back([this, i, takes, otherwise, state = residents_.state()] {
      cc_.bind(otherwise);
      residents_.write(state);
      const x86::Gp taken = cc_.newUInt64();
      if (takes)
        cc_.xor_(taken, taken);
      else if (trace_.is_masked())
        cc_.mov(taken, active_);
      else
        cc_.mov(taken, -1);
      call_branch(i, taken);
      cc_.ret(next_);
    });
    const auto compare = [&](const auto& x, const auto& y) { cc_.cmp(x, y); };
    if (k.immediate) {
      const auto value = static_cast<int16_t>(u.imm16());
      k.is_32bit ? compare(a.r32(), value) : compare(a, value);
    } else {
      const x86::Gp b = residents_.get(u.b, kUniform).base;
      k.is_32bit ? compare(a.r32(), b.r32()) : compare(a, b);
    }
    if (takes != k.negated) {  // it has to hold
      if (k.relation == Relation::kEqual)
        cc_.jne(otherwise);
      else if (k.is_signed)
        cc_.jge(otherwise);
      else
        cc_.jae(otherwise);
    } else {
      if (k.relation == Relation::kEqual)
        cc_.je(otherwise);
      else if (k.is_signed)
        cc_.jl(otherwise);
      else
        cc_.jb(otherwise);
    }
    complete_block(i);
  }

  // Goes on where all lanes went while recording, if they are sure to do so again: without
  // wrapping, the difference of the operands runs evenly from the first lane to the last.
  void emit_affine_branch(size_t i) {
    const Uop& u = uop(i);
    const Comparison k = comparison_of(u.op);
    const Label otherwise = cc_.newLabel();
    deferred_.push_back([this, i, otherwise, state = residents_.state()] {
      cc_.bind(otherwise);
      residents_.write(state);
      call_handler(i);
      cc_.ret(next_);
    });
    const int bits = !k.is_32bit ? 62 : k.is_signed ? 31 : 32;  // operands must fit
    struct Ends {
      x86::Gp first, last;
    };
    const auto load = [&](Slot s, uint8_t kind) {
      Run x = peek_run(s, kind);
      const Ends ends{x.base, last_of(x, otherwise)};
      const x86::Gp t = cc_.newUInt64();
      cc_.mov(t, ends.first);
      cc_.or_(t, ends.last);
      cc_.shr(t, bits);
      cc_.jnz(otherwise);
      return ends;
    };
    const Ends a = load(u.a, plan(i).source_kind[0]);
    // The first lane's value, or difference, and the last lane's.
    const x86::Gp first = cc_.newUInt64(), last = cc_.newUInt64();
    cc_.mov(first, a.first);
    cc_.mov(last, a.last);
    if (k.immediate) {
      const auto value = static_cast<int16_t>(u.imm16());
      // What an unsigned comparison with it means depends on its width.
      if (value < 0 && !k.is_signed) {
        cc_.jmp(otherwise);
        return;
      }
      cc_.sub(first, value);
      cc_.sub(last, value);
    } else {
      const Ends b = load(u.b, plan(i).source_kind[1]);
      cc_.sub(first, b.first);
      cc_.sub(last, b.last);
    }
    const bool holds = (step(i).next == u.target()) != k.negated;
    const x86::Gp both = cc_.newUInt64();
    cc_.mov(both, first);
    if (k.relation == Relation::kEqual && !holds) {
      cc_.test(first, first);
      cc_.jz(otherwise);
      cc_.test(last, last);
      cc_.jz(otherwise);
      cc_.xor_(both, last);
      cc_.js(otherwise);  // from one side to the other
    } else if (k.relation == Relation::kEqual) {
      cc_.or_(both, last);
      cc_.jnz(otherwise);
    } else if (holds) {
      cc_.and_(both, last);
      cc_.jns(otherwise);
    } else {
      cc_.or_(both, last);
      cc_.js(otherwise);
    }
    complete_block(i);
  }
};

}  // namespace gpusim::simd
