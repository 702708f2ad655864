// Vector instructions without memory, on the operands of vector::Work.
#pragma once

#include "device_sim/uir/vector.h"
#include "device_sim/uir/vector_float.h"
#include "device_sim/uir/vector_integer.h"
#include "device_sim/uir/vector_rules.h"

namespace gpusim::vector {

// y is the new type, x the length that the program would like.
GPUSIM_HD inline void configure(Work& w) {
  const Type type = type_of(w.y);
  uint64_t wanted = w.x;
  if (static_cast<Length>(w.insn.source) == Length::kLongest) wanted = ~uint64_t{0};
  if (static_cast<Length>(w.insn.source) == Length::kKeep) wanted = w.vl;
  w.vtype = type.is_legal ? w.y : kIllegalType;
  w.vl = type.is_legal ? (wanted < type.longest ? wanted : type.longest) : 0;
  w.result = w.vl;
}

GPUSIM_HD inline uint64_t element(Work& w, uint64_t a, uint64_t b, uint64_t d) {
  return (w.flags & kFloat) ? float_element(w, a, b, d) : integer_element(w, a, b, d);
}
GPUSIM_HD inline uint64_t b_of(const Work& w, uint64_t i) {
  if (w.b_count != 0) return w.b.get(w.b_size, i);
  return w.b_scalar & softfloat::low_mask(8 << w.b_size);
}

GPUSIM_HD inline void each_element(Work& w) {
  for (uint64_t i = w.vstart; i < w.vl; ++i) {
    if (!w.is_active(i)) continue;
    const uint64_t a = w.a_count != 0 ? w.a.get(w.a_size, i) : 0;
    w.d.set(w.d_size, i, element(w, a, b_of(w, i), w.d.get(w.d_size, i)));
  }
}

GPUSIM_HD inline void each_comparison(Work& w) {
  for (uint64_t i = w.vstart; i < w.vl; ++i) {
    if (!w.is_active(i)) continue;
    const uint64_t a = w.a.get(w.a_size, i), b = b_of(w, i);
    w.d.set_bit(i, (w.flags & kFloat) ? float_compare(w, a, b) : integer_compare(w, a, b));
  }
}

GPUSIM_HD inline void each_carry(Work& w) {
  const uint64_t ones = softfloat::low_mask(8 << w.log_size);
  for (uint64_t i = w.vstart; i < w.vl; ++i) {
    const uint64_t a = w.a.get(w.a_size, i), b = b_of(w, i);
    const bool bit = w.insn.masked && w.has_bit(i);
    switch (w.insn.op) {
      case VectorOp::vadc:
        w.d.set(w.d_size, i, a + b + bit);
        break;
      case VectorOp::vsbc:
        w.d.set(w.d_size, i, a - b - bit);
        break;
      case VectorOp::vmerge:
        w.d.set(w.d_size, i, bit ? b : a);
        break;
      case VectorOp::vmadc:
        w.d.set_bit(i, ((a + b + bit) & ones) < a || (bit && b == ones));
        break;
      default:
        w.d.set_bit(i, a < b || (bit && a == b));
        break;
    }
  }
}

GPUSIM_HD inline void reduce(Work& w) {
  if (w.vl == 0) return;
  // Elements meet the sum so far as b meets a.
  const int size = w.a_size;
  uint64_t sum = w.b.get(w.d_size, 0);
  w.a_size = w.d_size;
  for (uint64_t i = 0; i < w.vl; ++i)
    if (w.is_active(i))
      sum = element(w, sum, w.a.get(size, i), 0) & softfloat::low_mask(8 << w.d_size);
  w.d.set(w.d_size, 0, sum);
}

GPUSIM_HD inline void mask_logic(Work& w) {
  for (uint64_t i = w.vstart; i < w.vl; ++i) {
    const bool a = w.a.bit(i), b = w.b.bit(i);
    bool r = false;
    switch (w.insn.op) {
      case VectorOp::vmand:
        r = a && b;
        break;
      case VectorOp::vmnand:
        r = !(a && b);
        break;
      case VectorOp::vmandn:
        r = a && !b;
        break;
      case VectorOp::vmxor:
        r = a != b;
        break;
      case VectorOp::vmor:
        r = a || b;
        break;
      case VectorOp::vmnor:
        r = !(a || b);
        break;
      case VectorOp::vmorn:
        r = a || !b;
        break;
      default:
        r = a == b;
        break;
    }
    w.d.set_bit(i, r);
  }
}

GPUSIM_HD inline void mask_to_scalar(Work& w) {
  uint64_t count = 0, first = ~uint64_t{0};
  for (uint64_t i = w.vl; i-- > 0;) {
    if (!w.is_active(i) || !w.a.bit(i)) continue;
    ++count;
    first = i;
  }
  w.result = w.insn.op == VectorOp::vcpop ? count : first;
}

// Sets the bits before the first one that is set, up to it, or it alone.
GPUSIM_HD inline void mask_first(Work& w) {
  bool found = false;
  for (uint64_t i = 0; i < w.vl; ++i) {
    if (!w.is_active(i)) continue;
    const bool is_first = !found && w.a.bit(i);
    found |= is_first;
    const bool before = !found, of = is_first;
    w.d.set_bit(i, w.insn.op == VectorOp::vmsbf   ? before
                   : w.insn.op == VectorOp::vmsif ? before || of
                                                  : of);
  }
}

GPUSIM_HD inline void iota(Work& w) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < w.vl; ++i) {
    if (!w.is_active(i)) continue;
    w.d.set(w.d_size, i, count);
    count += w.a.bit(i);
  }
}

GPUSIM_HD inline void slide(Work& w) {
  const VectorOp op = w.insn.op;
  const bool by_one = op == VectorOp::vslide1up || op == VectorOp::vslide1down;
  const bool up = op == VectorOp::vslideup || op == VectorOp::vslide1up;
  const uint64_t offset = by_one ? 1 : w.b_scalar;
  for (uint64_t i = w.vstart; i < w.vl; ++i) {
    if (!w.is_active(i)) continue;
    uint64_t value = 0;
    if (up) {
      if (i < offset && !by_one) continue;
      value = i < offset ? w.b_scalar : w.a.get(w.a_size, i - offset);
    } else if (by_one && i == w.vl - 1) {
      value = w.b_scalar;
    } else if (offset < w.longest && i + offset < w.longest) {
      value = w.a.get(w.a_size, i + offset);
    }
    w.d.set(w.d_size, i, value);
  }
}

GPUSIM_HD inline void gather(Work& w) {
  for (uint64_t i = w.vstart; i < w.vl; ++i) {
    if (!w.is_active(i)) continue;
    const uint64_t from = w.b_count != 0 ? w.b.get(w.b_size, i) : w.b_scalar;
    w.d.set(w.d_size, i, from < w.longest ? w.a.get(w.a_size, from) : 0);
  }
}

GPUSIM_HD inline void compress(Work& w) {
  uint64_t to = 0;
  for (uint64_t i = 0; i < w.vl; ++i)
    if (w.b.bit(i)) w.d.set(w.d_size, to++, w.a.get(w.a_size, i));
}

// Whole registers, from the element vstart on.
GPUSIM_HD inline void whole_move(Work& w) {
  const uint64_t count = static_cast<uint64_t>(w.d_count) * kBytes >> w.log_size;
  for (uint64_t i = w.vstart; i < count; ++i) w.d.set(w.log_size, i, w.a.get(w.log_size, i));
}

GPUSIM_VECTOR_FUNCTION void compute(Work& w) {
  switch (w.kind) {
    case Kind::kConfigure:
      configure(w);
      break;
    case Kind::kElements:
      each_element(w);
      break;
    case Kind::kCarryIn:
    case Kind::kCarryOut:
      each_carry(w);
      break;
    case Kind::kCompare:
      each_comparison(w);
      break;
    case Kind::kReduce:
      reduce(w);
      break;
    case Kind::kMaskLogic:
      mask_logic(w);
      break;
    case Kind::kMaskToScalar:
      mask_to_scalar(w);
      break;
    case Kind::kMaskFirst:
      mask_first(w);
      break;
    case Kind::kIota:
      iota(w);
      break;
    case Kind::kIndices:
      for (uint64_t i = w.vstart; i < w.vl; ++i)
        if (w.is_active(i)) w.d.set(w.d_size, i, i);
      break;
    case Kind::kToScalar: {
      const int bits = 8 << w.log_size;
      const uint64_t value = w.a.get(w.log_size, 0);
      w.result = (w.flags & kFloat) ? value | ~softfloat::low_mask(bits) : extended(value, bits);
      break;
    }
    case Kind::kFromScalar:
      if (w.vstart < w.vl) w.d.set(w.log_size, 0, w.b_scalar);
      break;
    case Kind::kSlide:
      slide(w);
      break;
    case Kind::kGather:
      gather(w);
      break;
    case Kind::kCompress:
      compress(w);
      break;
    case Kind::kWholeMove:
      whole_move(w);
      break;
    default:
      break;
  }
}

}  // namespace gpusim::vector
