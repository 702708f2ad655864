// Which vector instructions are legal in which state of the core (RISC-V vector extension 1.0,
// sections 3.4, 5.2, 5.3, 7 and those of the instructions), and which registers they name.
#pragma once

#include "device_sim/uir/vector.h"
#include "device_sim/uir/vector_type.h"

namespace gpusim::vector {

// A group of registers, or a part of one: log2 of its length.
struct Span {
  int first, log_count;
  GPUSIM_HD constexpr int count() const { return log_count <= 0 ? 1 : 1 << log_count; }
  GPUSIM_HD constexpr bool is_aligned() const { return (first & (count() - 1)) == 0; }
  GPUSIM_HD constexpr bool overlaps(const Span& other) const {
    return first < other.first + other.count() && other.first < first + count();
  }
};

// 5.2: a destination may overlap a source of narrower elements in the highest part of the
// destination.
GPUSIM_HD constexpr bool may_share(const Span& d, const Span& source) {
  if (!d.overlaps(source)) return true;
  return d.count() > source.count() && source.log_count >= 0 &&
         source.first + source.count() == d.first + d.count();
}

GPUSIM_HD constexpr int size_of_d(Widths w) {
  return w == Widths::kWide || w == Widths::kWideA ? 1 : 0;
}
GPUSIM_HD constexpr int size_of_a(Widths w) {
  switch (w) {
    case Widths::kWideA:
    case Widths::kNarrow:
      return 1;
    case Widths::kFrom2:
      return -1;
    case Widths::kFrom4:
      return -2;
    case Widths::kFrom8:
      return -3;
    default:
      return 0;
  }
}

// Elements of that size, as many as in a group of the type.
GPUSIM_HD inline bool group_of(const Work& w, int first, int log_size, Span& span) {
  span = {first, w.log_group + log_size - w.log_size};
  return log_size >= 0 && log_size <= kLogElen && span.log_count >= -3 && span.log_count <= 3 &&
         span.is_aligned();
}

GPUSIM_HD inline bool is_float_size(int log_size) { return log_size >= 1 && log_size <= 3; }

// A single or a half that does not lie in ones is a NaN.
GPUSIM_HD inline uint64_t unboxed(uint64_t f, int log_size) {
  if (log_size == 1) return f >> 16 == 0xffffffffffff ? f & 0xffff : 0x7e00;
  if (log_size == 2) return f >> 32 == 0xffffffff ? f & 0xffffffff : 0x7fc00000;
  return f;
}

GPUSIM_HD inline bool prepare_access(Work& w) {
  const Insn& u = w.insn;
  const bool loads = (w.flags & kStores) == 0;
  w.d_size = u.log_size;
  if (w.kind == Kind::kMaskAccess) {
    w.d_size = 0;
    w.d_count = 1;
    return u.fields == 1;
  }
  if (w.kind == Kind::kWholeAccess) {
    w.d_count = u.fields;
    return (u.fields & (u.fields - 1)) == 0 && (u.d & (u.fields - 1)) == 0;
  }
  Span d{}, index{};
  if (w.kind == Kind::kIndexed) {
    w.d_size = w.log_size;
    w.a_size = u.log_size;
    if (!group_of(w, u.a, w.a_size, index)) return false;
    w.a_count = index.count();
  }
  if (!group_of(w, u.d, w.d_size, d)) return false;
  w.d_count = d.count() * u.fields;
  if (w.d_count > Group::kMaxRegisters || u.d + w.d_count > kRegisters) return false;
  if (!loads) return true;
  if (u.masked && u.d == 0) return false;
  if (w.kind != Kind::kIndexed) return true;
  for (int i = 0; i < u.fields; ++i) {
    const Span part{u.d + i * d.count(), d.log_count};
    if (u.fields > 1 && part.overlaps(index)) return false;
    const bool is_same = part.first == index.first;
    if (w.a_size > w.d_size && !is_same && part.overlaps(index)) return false;
    if (w.a_size < w.d_size && !may_share(part, index)) return false;
  }
  return true;
}

GPUSIM_HD inline bool prepare_elements(Work& w, Widths widths) {
  const Insn& u = w.insn;
  const bool to_mask = w.kind == Kind::kCarryOut || w.kind == Kind::kCompare;
  const bool to_element = w.kind == Kind::kReduce;
  w.d_size = w.log_size + size_of_d(widths);
  w.a_size = w.log_size + size_of_a(widths);
  w.b_size = to_element ? w.d_size : (w.flags & kIndices16) ? 1 : w.log_size;
  const bool has_a = widths != Widths::kOnlyB && w.kind != Kind::kIndices;
  const bool has_b = (w.flags & kUnary) == 0 && static_cast<Source>(u.source) == Source::kVector;
  // These have no other forms.
  if ((to_element || w.kind == Kind::kCompress) && !has_b) return false;
  Span d{u.d, 0}, a{}, b{u.b, 0};
  if (w.d_size > kLogElen) return false;
  if (!to_mask && !to_element && !group_of(w, u.d, w.d_size, d)) return false;
  w.d_count = d.count();
  if (has_a) {
    if (w.kind == Kind::kIota)
      a = {u.a, 0};
    else if (!group_of(w, u.a, w.a_size, a))
      return false;
    w.a_count = a.count();
  }
  if (has_b) {
    const bool is_one = to_element || w.kind == Kind::kCompress;
    if (!is_one && !group_of(w, u.b, w.b_size, b)) return false;
    w.b_count = b.count();
  }
  // A masked result may not lie over the mask, unless it is one, or a single element.
  if (u.masked && u.d == 0 && !to_mask && !to_element) return false;
  switch (w.kind) {
    case Kind::kReduce:
      return w.vstart == 0;
    case Kind::kCarryOut:
    case Kind::kCompare:
      return (u.d == u.a || !d.overlaps(a)) && (!has_b || u.d == u.b || !d.overlaps(b));
    case Kind::kIota:
      return w.vstart == 0 && !d.overlaps(a);
    case Kind::kCompress:
      return w.vstart == 0 && !d.overlaps(a) && !d.overlaps(b);
    case Kind::kGather:
      return !d.overlaps(a) && !(has_b && d.overlaps(b));
    case Kind::kSlide: {
      const bool is_up = u.op == VectorOp::vslideup || u.op == VectorOp::vslide1up;
      return !is_up || !d.overlaps(a);
    }
    default:
      break;
  }
  if (widths == Widths::kNarrow) {
    return (u.d == u.a || !d.overlaps(a));
  }
  // Where sizes are the same, aligned groups are the same or apart.
  if (has_a && w.a_size != w.d_size && !may_share(d, a)) return false;
  return !has_b || w.b_size == w.d_size || may_share(d, b);
}

GPUSIM_VECTOR_FUNCTION bool prepare(Work& w) {
  const Insn& u = w.insn;
  const Row row = row_of(u.op);
  w.kind = row.kind;
  w.flags = row.flags;
  w.d_count = w.a_count = w.b_count = 0;
  const Type type = type_of(w.vtype);
  w.log_size = type.log_size;
  w.log_group = type.log_group;
  w.longest = type.longest;
  w.d_size = w.a_size = w.b_size = w.log_size;
  if (w.kind == Kind::kConfigure) return true;
  if (w.kind == Kind::kWholeAccess) return prepare_access(w);
  if (!type.is_legal) return false;
  if (w.vl > w.longest) w.vl = w.longest;
  if (is_access(w.kind)) return prepare_access(w);

  const auto source = static_cast<Source>(u.source);
  if ((row.flags & kFloat) || source == Source::kFloat) {
    // Where an operand is an integer, the other one decides.
    const int size = (row.flags & (kFromInteger | kToInteger)) ? w.log_size + 1 : w.log_size;
    if (!is_float_size(size)) return false;
    const bool has_wide = size_of_d(row.widths) != 0 || size_of_a(row.widths) > 0;
    if (has_wide && !is_float_size(w.log_size + 1)) return false;
    if (w.y > 4) return false;  // no rounding mode
  }
  switch (source) {
    case Source::kScalar:
      w.b_scalar = w.x;
      break;
    case Source::kFloat:
      w.b_scalar = unboxed(w.x, w.log_size);
      break;
    case Source::kImmediate:
      w.b_scalar = (row.flags & kUnsigned) ? u.b : uint64_t{u.b} | (u.b & 16 ? ~uint64_t{15} : 0);
      break;
    default:
      w.b_scalar = 0;
      break;
  }
  switch (w.kind) {
    case Kind::kMaskLogic:
      w.d_count = w.a_count = w.b_count = 1;
      return true;
    case Kind::kMaskToScalar:
      w.a_count = 1;
      return w.vstart == 0;
    case Kind::kMaskFirst:
      w.d_count = w.a_count = 1;
      return w.vstart == 0 && u.d != u.a && !(u.masked && u.d == 0);
    case Kind::kToScalar:
      w.a_count = 1;
      return true;
    case Kind::kFromScalar:
      w.d_count = 1;
      return true;
    case Kind::kWholeMove: {
      const int count = u.b + 1;
      w.d_count = w.a_count = count;
      return count <= Group::kMaxRegisters && (count & (count - 1)) == 0 &&
             ((u.d | u.a) & (count - 1)) == 0;
    }
    default:
      return prepare_elements(w, row.widths);
  }
}

}  // namespace gpusim::vector
