// Advanced SIMD: loads and stores of structures (C4.1.88). Interleaving is done on whole words
// between memory and registers: two registers are an unzip apart, four two of them, three a
// gathering of bytes.
#include <array>

#include "translator/a64/simd_visitor.h"

namespace gpusim::a64 {
namespace {

// o opcode of the multiple structures.
struct Shape {
  uint32_t registers;
  bool interleaved;
};
Shape shape_of(uint32_t o) {
  switch (o) {
    case 0b0000:
      return {4, true};
    case 0b0100:
      return {3, true};
    case 0b1000:
      return {2, true};
    case 0b0010:
      return {4, false};
    case 0b0110:
      return {3, false};
    case 0b1010:
      return {2, false};
    default:
      return {1, false};
  }
}

// Of the 24 bytes of three words, as an index per byte: the bytes of register `r` when loading,
// of memory's word `r` when storing.
uint64_t indexes_of_three(bool load, uint32_t r, uint32_t y) {
  uint64_t indexes = 0;
  const uint32_t bytes = 1u << y;
  for (uint32_t i = 0; i < 8; ++i) {
    uint32_t from;
    if (load) {
      from = (i / bytes * 3 + r) * bytes + i % bytes;
    } else {
      const uint32_t element = (8 * r + i) / bytes;  // of memory
      from = 8 * (element % 3) + element / 3 * bytes + i % bytes;
    }
    indexes |= uint64_t{from} << 8 * i;
  }
  return indexes;
}

}  // namespace

void SimdVisitor::post_index(Reg n, Reg m, uint32_t bytes) {
  const Slot base = x_or_sp(n);
  if (m == 31) {
    b_.addi64(base, base, bytes);
  } else {
    b_.add64(base, base, x_src(m));
  }
}

void SimdVisitor::gather_bytes(Slot d, const Slot words[3], uint64_t indexes, Slot scratch[2]) {
  const uint16_t number = helper_number(Helper3::vtable);
  b_.konst(scratch[0], indexes);
  b_.help3(scratch[1], words[0], words[1], scratch[0], 0, 0, number);
  b_.help3(scratch[0], words[2], kZero, scratch[0], 16, 0, number);
  b_.or64(d, scratch[0], scratch[1]);
}

// One half of each of `count` interleaved registers, from as many words of memory.
void SimdVisitor::load_half(uint32_t count, uint32_t half, uint32_t y, Slot base, Reg t) {
  const auto reg = [&](uint32_t k) { return v((t + k) % 32, half); };
  std::array<Slot, 4> w{};
  for (uint32_t i = 0; i < count; ++i) {
    w[i] = b_.temp();
    b_.ld64(w[i], base, 8 * (count * half + i));
  }
  if (count == 2) {
    op3(MicroOp::vuzp1, reg(0), w[0], w[1], y);
    op3(MicroOp::vuzp2, reg(1), w[0], w[1], y);
  } else if (count == 4) {
    const Slot a = b_.temp(), b = b_.temp();
    for (uint32_t odd = 0; odd < 2; ++odd) {
      const MicroOp op = odd ? MicroOp::vuzp2 : MicroOp::vuzp1;
      op3(op, a, w[0], w[1], y);
      op3(op, b, w[2], w[3], y);
      op3(MicroOp::vuzp1, reg(odd), a, b, y);
      op3(MicroOp::vuzp2, reg(2 + odd), a, b, y);
    }
  } else {
    Slot scratch[2] = {b_.temp(), b_.temp()};
    for (uint32_t k = 0; k < 3; ++k) {
      gather_bytes(reg(k), w.data(), indexes_of_three(true, k, y), scratch);
    }
  }
}

void SimdVisitor::store_half(uint32_t count, uint32_t half, uint32_t y, Slot base, Reg t) {
  const auto reg = [&](uint32_t k) { return v((t + k) % 32, half); };
  std::array<Slot, 4> w{};
  for (uint32_t i = 0; i < count; ++i) w[i] = b_.temp();
  if (count == 2) {
    op3(MicroOp::vzip1, w[0], reg(0), reg(1), y);
    op3(MicroOp::vzip2, w[1], reg(0), reg(1), y);
  } else if (count == 4) {
    const Slot a = b_.temp(), b = b_.temp();
    for (uint32_t upper = 0; upper < 2; ++upper) {
      const MicroOp op = upper ? MicroOp::vzip2 : MicroOp::vzip1;
      op3(op, a, reg(0), reg(2), y);
      op3(op, b, reg(1), reg(3), y);
      op3(MicroOp::vzip1, w[2 * upper], a, b, y);
      op3(MicroOp::vzip2, w[2 * upper + 1], a, b, y);
    }
  } else {
    const Slot words[3] = {reg(0), reg(1), reg(2)};
    Slot scratch[2] = {b_.temp(), b_.temp()};
    for (uint32_t k = 0; k < 3; ++k) {
      gather_bytes(w[k], words, indexes_of_three(false, k, y), scratch);
    }
  }
  for (uint32_t i = 0; i < count; ++i) b_.st64(w[i], base, 8 * (count * half + i));
}

bool SimdVisitor::multiple(bool load, bool q, uint32_t o, uint32_t y, Reg n, Reg t) {
  set_class(InsnClass::kOffChipMemory);
  const Shape shape = shape_of(o);
  const Slot base = x_or_sp(n);
  for (uint32_t h = 0; h <= q; ++h) {
    if (shape.interleaved && y != 3) {
      if (load) {
        load_half(shape.registers, h, y, base, t);
      } else {
        store_half(shape.registers, h, y, base, t);
      }
      continue;
    }
    for (uint32_t k = 0; k < shape.registers; ++k) {
      const uint32_t words = q ? 2 : 1;
      const uint32_t word = shape.interleaved ? shape.registers * h + k : words * k + h;
      const Slot r = v((t + k) % 32, h);
      if (load) {
        b_.ld64(r, base, 8 * word);
      } else {
        b_.st64(r, base, 8 * word);
      }
    }
  }
  if (load && !q) {
    for (uint32_t k = 0; k < shape.registers; ++k) b_.konst(v((t + k) % 32, 1), 0);
  }
  return true;
}
bool SimdVisitor::ST_multi(bool q, uint32_t o, uint32_t y, Reg n, Reg t) {
  return multiple(false, q, o, y, n, t);
}
bool SimdVisitor::LD_multi(bool q, uint32_t o, uint32_t y, Reg n, Reg t) {
  return multiple(true, q, o, y, n, t);
}
bool SimdVisitor::ST_multi_post(bool q, Reg m, uint32_t o, uint32_t y, Reg n, Reg t) {
  multiple(false, q, o, y, n, t);
  post_index(n, m, shape_of(o).registers * (q ? 16 : 8));
  return true;
}
bool SimdVisitor::LD_multi_post(bool q, Reg m, uint32_t o, uint32_t y, Reg n, Reg t) {
  multiple(true, q, o, y, n, t);
  post_index(n, m, shape_of(o).registers * (q ? 16 : 8));
  return true;
}

// --- one element per register

SimdVisitor::Single SimdVisitor::single(bool q, uint32_t R, uint32_t o, uint32_t k, uint32_t y) {
  const uint32_t count = ((o & 1) << 1 | R) + 1;
  const uint32_t position = static_cast<uint32_t>(q) << 3 | k << 2 | y;  // in bytes, but for size 3
  switch (o >> 1) {
    case 0:
      return {count, position, 0};
    case 1:
      return {count, position >> 1, 1};
    default:
      if ((y & 1) == 0) return {count, position >> 2, 2};
      return {count, q, 3};
  }
}

namespace {
constexpr MicroOp kLoads[] = {MicroOp::ldu8, MicroOp::ldu16, MicroOp::ldu32, MicroOp::ld64};
constexpr MicroOp kStores[] = {MicroOp::st8, MicroOp::st16, MicroOp::st32, MicroOp::st64};
}  // namespace

bool SimdVisitor::single_structure(bool load, const Single& s, Reg n, Reg t) {
  set_class(InsnClass::kOffChipMemory);
  const Slot base = x_or_sp(n);
  for (uint32_t k = 0; k < s.count; ++k) {
    const Reg r{(t + k) % 32};
    const Slot element = b_.temp();
    const uint64_t offset = uint64_t{k} << s.y;
    if (load) {
      b_.emit(kLoads[s.y], element, base, 0, 0, offset);
      insert_element(element, r, s.index, s.y);
    } else {
      extract(element, r, s.index, s.y);
      b_.emit(kStores[s.y], element, base, 0, 0, offset);
    }
  }
  return true;
}
bool SimdVisitor::ST_single(bool q, uint32_t R, uint32_t o, uint32_t k, uint32_t y, Reg n, Reg t) {
  return single_structure(false, single(q, R, o, k, y), n, t);
}
bool SimdVisitor::LD_single(bool q, uint32_t R, uint32_t o, uint32_t k, uint32_t y, Reg n, Reg t) {
  return single_structure(true, single(q, R, o, k, y), n, t);
}
bool SimdVisitor::ST_single_post(bool q, uint32_t R, Reg m, uint32_t o, uint32_t k, uint32_t y,
                                 Reg n, Reg t) {
  const Single s = single(q, R, o, k, y);
  single_structure(false, s, n, t);
  post_index(n, m, s.count << s.y);
  return true;
}
bool SimdVisitor::LD_single_post(bool q, uint32_t R, Reg m, uint32_t o, uint32_t k, uint32_t y,
                                 Reg n, Reg t) {
  const Single s = single(q, R, o, k, y);
  single_structure(true, s, n, t);
  post_index(n, m, s.count << s.y);
  return true;
}

bool SimdVisitor::replicate(bool q, uint32_t count, uint32_t y, Reg n, Reg t) {
  set_class(InsnClass::kOffChipMemory);
  const Slot base = x_or_sp(n);
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t r = (t + k) % 32;
    const Slot low = v(r, 0);
    b_.emit(kLoads[y], low, base, 0, 0, uint64_t{k} << y);
    if (y != 3) b_.vdup(low, low, 0, u8(y));
    if (q) {
      b_.mov(v(r, 1), low);
    } else {
      b_.konst(v(r, 1), 0);
    }
  }
  return true;
}
bool SimdVisitor::LD_replicate(bool q, uint32_t R, uint32_t o, uint32_t y, Reg n, Reg t) {
  return replicate(q, (o << 1 | R) + 1, y, n, t);
}
bool SimdVisitor::LD_replicate_post(bool q, uint32_t R, Reg m, uint32_t o, uint32_t y, Reg n,
                                    Reg t) {
  const uint32_t count = (o << 1 | R) + 1;
  replicate(q, count, y, n, t);
  post_index(n, m, count << y);
  return true;
}

}  // namespace gpusim::a64
