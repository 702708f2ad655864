// Matrices of a warp: mma, wmma, ldmatrix. Loads and stores are of each lane's own elements
// (matrix_op.h); a product is the host's: lanes leave their registers in local memory.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "device_sim/uir/warp.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/kernel.h"
#include "translator/ptx/matrix_op.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Type kB32{Kind::kBits, 32};

// rows, columns, depth
struct Shape {
  const char* name;
  uint8_t rows, columns;
  uint16_t depth;
};
constexpr Shape kShapes[] = {
    {"m16n8k4", 16, 8, 4},     {"m16n8k8", 16, 8, 8},   {"m16n8k16", 16, 8, 16},
    {"m16n8k32", 16, 8, 32},   {"m16n8k64", 16, 8, 64}, {"m16n8k128", 16, 8, 128},
    {"m16n8k256", 16, 8, 256}, {"m8n8k4", 8, 8, 4},     {"m8n8k16", 8, 8, 16},
    {"m8n8k32", 8, 8, 32},     {"m8n8k128", 8, 8, 128}, {"m16n16k16", 16, 16, 16},
    {"m32n8k16", 32, 8, 16},   {"m8n32k16", 8, 32, 16}, {"m16n16k8", 16, 16, 8}};

MatrixOp op_of(I i) {
  MatrixOp m;
  for (const Shape& s : kShapes)
    if (i.has(s.name)) {
      m.rows = s.rows;
      m.columns = s.columns;
      m.depth = s.depth;
    }
  const std::vector<MatrixType> types = matrix_types_of(i);
  m.saturates = i.has("satfinite");
  if (types.size() == 4) {
    m.d = types[0];
    m.a = types[1];
    m.b = types[2];
    m.c = types[3];
  } else if (types.size() == 2) {  // of f16: those of d and c
    m.d = types[0];
    m.c = types[1];
  }
  m.is_sparse = i.has("sp") || i.has("sp::ordered_metadata");
  m.is_xor = i.has("xor");
  m.is_by_quads = i.has("m8n8k4") && m.a == MatrixType::kF16 && i.base == "mma";
  if (m.is_by_quads) {
    const auto layout = std::find_if(i.modifiers.begin(), i.modifiers.end(), [](const auto& name) {
      return name == "row" || name == "col";
    });
    m.a_by_columns = *layout == "col";
    m.b_by_rows = *std::next(layout) == "row";
  }
  return m;
}

std::vector<Operand> registers_of(const Operand& o) {
  if (o.is(Operand::Kind::kVector)) return o.elements;
  return {o};
}

void check_count(Emitter& e, I i, size_t has, int needs) {
  if (has < static_cast<size_t>(needs))
    e.unsupported(i, fmt::format("a fragment has {} registers, not {}", needs, has));
}

// operands: a, b, c; of a sparse a metadata and a selector
void product(Emitter& e, I i) {
  MatrixOp m = op_of(i);
  if (m.is_sparse) {
    const auto selector = e.constant(i.operands[4], kB32);
    const uint64_t most = 64 / (2 * indices_of_row(m)) - 1;
    if (!selector || *selector > most)
      e.unsupported(i, fmt::format("the sparsity selector is a constant of 0 to {}", most));
    m.selector = static_cast<uint8_t>(*selector);
  }
  const uint64_t room = e.place_of({.kind = Operand::Kind::kSymbol, .symbol = "@matrix"}).address;
  const int counts[] = {registers_of_a(m), registers_of_b(m), registers_of_sum(m, m.c)};
  uint64_t at = room;
  for (size_t k = 0; k < 3; ++k) {
    const std::vector<Operand> list = registers_of(i.operands[k]);
    check_count(e, i, list.size(), counts[k]);
    for (int r = 0; r < counts[k]; ++r, at += 8)
      e.b.emit(Op::st64, e.reg(list[static_cast<size_t>(r)]), kZeroSlot, 0, 0, at);
  }
  if (m.is_sparse) e.b.emit(Op::st64, e.src(i.operands[3], kB32), kZeroSlot, 0, 0, at);
  // The whole warp comes here, then stops.
  e.b.emit(Op::warp_sync, 0, 0, 0, kZeroSlot, WarpFields{}.pack());
  e.b.konst(kCallSlots, m.pack());
  e.b.konst(kCallSlots + 1, room);
  e.b.service(Service::kSyscall, e.next_pc, static_cast<Slot>(HostCall::kMatrix));
}

// operands: d
void product_result(Emitter& e, I i) {
  const MatrixOp m = op_of(i);
  uint64_t at = e.place_of({.kind = Operand::Kind::kSymbol, .symbol = "@matrix"}).address;
  const std::vector<Operand> list = registers_of(i.operands[0]);
  check_count(e, i, list.size(), registers_of_sum(m, m.d));
  for (const Operand& r : list) {
    e.b.emit(Op::ld64, e.dst(r), kZeroSlot, 0, 0, at);
    at += 8;
  }
}

// --- loads and stores of fragments

enum class Which : uint8_t { kA, kB, kSum };

class Fragment {
 public:
  Fragment(Emitter& e, I i, const Operand& address, const Operand* stride) : e_(e) {
    m_ = op_of(i);
    type_ = matrix_types_of(i).at(0);
    m_.a = m_.b = m_.c = type_;
    which_ = i.has("a") ? Which::kA : i.has("b") ? Which::kB : Which::kSum;
    is_row_major_ = i.has("row");
    const int n = which_ == Which::kSum ? 2 : per_register(type_);
    // The lane's first element: row g or n * t, column likewise.
    const Slot group = e.temp(), member = e.temp();
    e.b.lsri64(group, special_slot(Special::kLaneid), 2);
    e.b.andi64(member, special_slot(Special::kLaneid), 3);
    // What is smaller than a byte comes in whole registers.
    const int units = bits() < 8 ? 1 : n;
    if (units != 1) e.b.mul64(member, member, e.konst(static_cast<uint64_t>(units)));
    const bool group_is_row = which_ != Which::kB;
    const Slot major = group_is_row == is_row_major_ ? group : member;
    const Slot minor = group_is_row == is_row_major_ ? member : group;
    const MemoryPlace place = e.address(address, i.has("global") ? Space::kGlobal : Space::kShared);
    if (stride == nullptr) {
      const int width = is_row_major_         ? (which_ == Which::kA ? m_.depth : m_.columns)
                        : which_ == Which::kB ? m_.depth
                                              : m_.rows;
      stride_ = e.konst(static_cast<uint64_t>(width * bits() / 8));
    } else if (const auto known = e.constant(*stride, kB32)) {
      stride_ = e.konst(*known * static_cast<uint64_t>(bits()) / 8);
    } else {
      stride_ = e.temp();
      e.b.mul64(stride_, e.reg(*stride), e.konst(static_cast<uint64_t>(bits())));
      e.b.lsri64(stride_, stride_, 3);
    }
    base_ = e.temp();
    address_ = e.temp();
    e.b.mul64(base_, minor, e.konst(static_cast<uint64_t>(bits() < 8 ? 4 : bits() / 8)));
    e.b.madd64(base_, major, stride_, base_);
    e.b.add64(base_, base_, place.base);
    offset_ = place.offset;
  }

  int count() const {
    return which_ == Which::kA   ? registers_of_a(m_)
           : which_ == Which::kB ? registers_of_b(m_)
                                 : registers_of_sum(m_, type_);
  }
  int bits() const { return bits_of(type_); }
  int bytes() const { return bits() / 8; }
  int elements() const { return per_register(type_); }
  MatrixType type() const { return type_; }

  // Elements of a register lie beside each other.
  bool is_dense() const { return elements() == 1 || (which_ == Which::kB) != is_row_major_; }

  MemoryPlace place(int r, int element) {
    const Lane first(0);
    const Element at = which_ == Which::kA   ? element_of_a(m_, first, r, element)
                       : which_ == Which::kB ? element_of_b(m_, first, r, element)
                                             : element_of_sum(m_, type_, first, r, element);
    const int major = is_row_major_ ? at.row : at.column;
    const int minor = is_row_major_ ? at.column : at.row;
    const uint64_t offset = offset_ + static_cast<uint64_t>(minor * bits() / 8);
    if (major == 0) return {base_, offset};
    if (major == known_) return {address_, offset};
    e_.b.madd64(address_, stride_, e_.konst(static_cast<uint64_t>(major)), base_);
    known_ = major;
    return {address_, offset};
  }

 private:
  Emitter& e_;
  MatrixOp m_;
  MatrixType type_;
  Which which_;
  bool is_row_major_;
  Slot stride_ = 0, base_ = 0, address_ = 0;
  uint64_t offset_ = 0;
  int known_ = 0;  // what address_ is for
};

void load(Emitter& e, I i) {
  Fragment f(e, i, i.operands[1], i.operands.size() > 2 ? &i.operands[2] : nullptr);
  const std::vector<Operand> list = registers_of(i.operands[0]);
  check_count(e, i, list.size(), f.count());
  const Slot word = e.temp(), part = e.temp();
  for (int r = 0; r < static_cast<int>(list.size()); ++r) {
    const Slot d = e.dst(list[static_cast<size_t>(r)]);
    if (r >= f.count()) {
      e.b.konst(d, 0);  // what the product does not look at
      continue;
    }
    if (f.is_dense()) {
      const MemoryPlace at = f.place(r, 0);
      e.b.emit(f.bytes() == 8 ? Op::ld64 : Op::ldu32, d, at.base, 0, 0, at.offset);
      continue;
    }
    for (int k = 0; k < f.elements(); ++k) {
      const MemoryPlace at = f.place(r, k);
      e.b.emit(f.bytes() == 1 ? Op::ldu8 : Op::ldu16, k == 0 ? word : part, at.base, 0, 0,
               at.offset);
      if (k != 0) e.b.add_lsl64(word, word, part, static_cast<uint64_t>(k * 8 * f.bytes()));
    }
    e.b.mov(d, word);
  }
}

void store(Emitter& e, I i) {
  Fragment f(e, i, i.operands[0], i.operands.size() > 2 ? &i.operands[2] : nullptr);
  const std::vector<Operand> list = registers_of(i.operands[1]);
  check_count(e, i, list.size(), f.count());
  const Slot part = e.temp();
  for (int r = 0; r < f.count(); ++r) {
    const Slot s = e.reg(list[static_cast<size_t>(r)]);
    if (f.is_dense()) {
      const MemoryPlace at = f.place(r, 0);
      e.b.emit(f.bytes() == 8 ? Op::st64 : Op::st32, s, at.base, 0, 0, at.offset);
      continue;
    }
    for (int k = 0; k < f.elements(); ++k) {  // halves
      const MemoryPlace at = f.place(r, k);
      e.b.ubfx(part, s, 0xffff, static_cast<uint8_t>(16 * k));
      e.b.emit(Op::st16, part, at.base, 0, 0, at.offset);
    }
  }
}

// ldmatrix, stmatrix: lanes 8 n to 8 n + 7 have the addresses of the rows of matrix n.
class RowsByLanes {
 public:
  // Of `registers`, one for each matrix.
  RowsByLanes(Emitter& e, I i, const Operand& registers, const Operand& address)
      : e_(e), list_(registers_of(registers)), own_(e.temp()), source_(e.temp()) {
    const size_t wanted = i.has("x4") ? 4 : i.has("x2") ? 2 : 1;
    if (list_.size() != wanted)
      e.unsupported(i, fmt::format("there are {} registers, not {}", wanted, list_.size()));
    const MemoryPlace place = e.address(address, Space::kShared);
    e.b.addi64(own_, place.base, place.offset);
    e.b.lsri64(group = e.temp(), special_slot(Special::kLaneid), 2);
    e.b.andi64(member = e.temp(), special_slot(Special::kLaneid), 3);
    if (i.has("trans")) e.b.lsli64(member, member, 1);
  }
  const std::vector<Operand>& list() const { return list_; }
  // row: where lane `lane` + more has its row, and element `column` of 1 << shift bytes in it.
  void find(Slot row, Slot lane, uint64_t more, Slot column, uint8_t shift) {
    constexpr uint64_t kClamp = uint64_t{0x1f} << 32;
    WarpFields f;
    f.lane_in_slot = f.clamp_in_slot = true;
    e_.b.addi64(source_, lane, more + kClamp);
    e_.b.emit(Op::warp, row, own_, source_, kZeroSlot, f.pack(),
              static_cast<uint8_t>(WarpOp::kShuffleIdx));
    e_.b.add_lsl64(row, row, column, shift);
  }
  Slot group, member;  // of the lane; transposed: the member's first row

 private:
  Emitter& e_;
  std::vector<Operand> list_;
  Slot own_, source_;
};

void load_rows(Emitter& e, I i) {
  RowsByLanes rows(e, i, i.operands[0], i.operands[1]);
  const Slot row = e.temp(), high = e.temp();
  for (size_t n = 0; n < rows.list().size(); ++n) {
    const Slot d = e.dst(rows.list()[n]);
    if (!i.has("trans")) {
      rows.find(row, rows.group, 8 * n, rows.member, 2);
      e.b.emit(Op::ldu32, d, row, 0, 0, 0);
      continue;
    }
    rows.find(row, rows.member, 8 * n + 1, rows.group, 1);
    e.b.emit(Op::ldu16, high, row, 0, 0, 0);
    rows.find(row, rows.member, 8 * n, rows.group, 1);
    e.b.emit(Op::ldu16, row, row, 0, 0, 0);
    e.b.add_lsl64(d, row, high, 16);
  }
}

void store_rows(Emitter& e, I i) {
  RowsByLanes rows(e, i, i.operands[1], i.operands[0]);
  const Slot row = e.temp(), high = e.temp();
  for (size_t n = 0; n < rows.list().size(); ++n) {
    const Slot s = e.src(rows.list()[n], kB32);
    if (!i.has("trans")) {
      rows.find(row, rows.group, 8 * n, rows.member, 2);
      e.b.emit(Op::st32, s, row, 0, 0, 0);
      continue;
    }
    rows.find(row, rows.member, 8 * n, rows.group, 1);
    e.b.emit(Op::st16, s, row, 0, 0, 0);
    rows.find(row, rows.member, 8 * n + 1, rows.group, 1);
    e.b.ubfx(high, s, 0xffff, 16);
    e.b.emit(Op::st16, high, row, 0, 0, 0);
  }
}

// movmatrix: elements 2 m and 2 m + 1 of row g of the transposed matrix, in which element (r, c) is
// half r % 2 of what lane 4 c + r / 2 has.
void transpose(Emitter& e, I i) {
  constexpr uint64_t kClamp = uint64_t{0x1f} << 32;
  const Slot own = e.src(i.operands[1], kB32), row = e.temp(), shift = e.temp(), lane = e.temp();
  const Slot halves[2] = {e.temp(), e.temp()};
  e.b.lsri64(row, special_slot(Special::kLaneid), 2);
  e.b.andi64(shift, row, 1);
  e.b.lsli64(shift, shift, 4);
  e.b.andi64(lane, special_slot(Special::kLaneid), 3);
  e.b.lsli64(lane, lane, 3);
  e.b.lsri64(row, row, 1);
  e.b.add64(row, row, lane);
  WarpFields f;
  f.lane_in_slot = f.clamp_in_slot = true;
  for (uint64_t half = 0; half < 2; ++half) {
    e.b.addi64(lane, row, 4 * half + kClamp);
    e.b.emit(Op::warp, halves[half], own, lane, kZeroSlot, f.pack(),
             static_cast<uint8_t>(WarpOp::kShuffleIdx));
    e.b.lsr64(halves[half], halves[half], shift);
    e.b.andi64(halves[half], halves[half], 0xffff);
  }
  e.b.add_lsl64(e.dst(i.operands[0]), halves[0], halves[1], 16);
}

}  // namespace

const Row kMatrixProduct = {"mma", "", RowClass::kOther, product};
const Row kMatrixResult = {"mma", "", RowClass::kOther, product_result};

#define GPUSIM_PTX_ALIGNED "(sync) (aligned) "
#define GPUSIM_PTX_SPARSE "(sp|sp::ordered_metadata) "
#define GPUSIM_PTX_SPACES " {global|shared|shared::cta} "
#define GPUSIM_PTX_F16_SHAPES "(m16n16k16|m32n8k16|m8n32k16)"

const RowList& matrix_rows() {
  using enum RowClass;
  // Those without an emitter are made of two parts (inline.cpp).
  static const RowList rows = {
      {"mma " GPUSIM_PTX_ALIGNED "(m8n8k4) (row|col) (row|col) .f16 .f16 .f16 .f16", "dv sv sv sv",
       kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED "(m8n8k4) (row|col) (row|col) .f32 .f16 .f16 .f16|.f32",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED "(m16n8k8|m16n8k16) (row) (col) .f32 .f16 .f16 .f32",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED "(m16n8k8|m16n8k16) (row) (col) .f16 .f16 .f16 .f16",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED "(m16n8k8|m16n8k16) (row) (col) .f32 .bf16 .bf16 .f32",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED "(m16n8k4|m16n8k8) (row) (col) .f32 .tf32 .tf32 .f32",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED
       "(m16n8k16|m16n8k32) (row) (col) .f32 (e4m3|e5m2) (e4m3|e5m2) .f32",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED
       "(m16n8k16|m16n8k32) (row) (col) .f16 (e4m3|e5m2) (e4m3|e5m2) .f16",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED
       "(m8n8k16|m16n8k16|m16n8k32) (row) (col) {satfinite} .s32 .u8|.s8 .u8|.s8 .s32",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED
       "(m8n8k32|m16n8k32|m16n8k64) (row) (col) {satfinite} .s32 (u4|s4) (u4|s4) .s32",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED
       "(m8n8k128|m16n8k128|m16n8k256) (row) (col) .s32 (b1) (b1) .s32 (and|xor) (popc)",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_ALIGNED
       "(m8n8k4|m16n8k4|m16n8k8|m16n8k16) (row) (col) .f64 .f64 .f64 .f64",
       "dv sv sv sv", kOther, nullptr},
      {"mma " GPUSIM_PTX_SPARSE GPUSIM_PTX_ALIGNED
       "(m16n8k16|m16n8k32) (row) (col) .f32 .f16 .f16 .f32",
       "dv sv sv sv s32 i", kOther, nullptr},
      {"mma " GPUSIM_PTX_SPARSE GPUSIM_PTX_ALIGNED
       "(m16n8k16|m16n8k32) (row) (col) .f16 .f16 .f16 .f16",
       "dv sv sv sv s32 i", kOther, nullptr},
      {"mma " GPUSIM_PTX_SPARSE GPUSIM_PTX_ALIGNED
       "(m16n8k16|m16n8k32) (row) (col) .f32 .bf16 .bf16 .f32",
       "dv sv sv sv s32 i", kOther, nullptr},
      {"mma " GPUSIM_PTX_SPARSE GPUSIM_PTX_ALIGNED
       "(m16n8k8|m16n8k16) (row) (col) .f32 .tf32 .tf32 .f32",
       "dv sv sv sv s32 i", kOther, nullptr},
      {"mma " GPUSIM_PTX_SPARSE GPUSIM_PTX_ALIGNED
       "(m16n8k64) (row) (col) .f32 (e4m3|e5m2) (e4m3|e5m2) .f32",
       "dv sv sv sv s32 i", kOther, nullptr},
      {"mma " GPUSIM_PTX_SPARSE GPUSIM_PTX_ALIGNED
       "(m16n8k32|m16n8k64) (row) (col) {satfinite} .s32 .u8|.s8 .u8|.s8 .s32",
       "dv sv sv sv s32 i", kOther, nullptr},
      {"mma " GPUSIM_PTX_SPARSE GPUSIM_PTX_ALIGNED
       "(m16n8k64|m16n8k128) (row) (col) {satfinite} .s32 (u4|s4) (u4|s4) .s32",
       "dv sv sv sv s32 i", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row|col) (row|col) " GPUSIM_PTX_F16_SHAPES
       " .f16|.f32 .f16|.f32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row|col) (row|col) " GPUSIM_PTX_F16_SHAPES
       " .f32 .bf16 .bf16 .f32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row|col) (row|col) (m16n16k8) .f32 .tf32 .tf32 .f32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row|col) (row|col) " GPUSIM_PTX_F16_SHAPES
       " {satfinite} .s32 .u8 .u8 .s32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row|col) (row|col) " GPUSIM_PTX_F16_SHAPES
       " {satfinite} .s32 .s8 .s8 .s32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row|col) (row|col) (m8n8k4) {rn} .f64 .f64 .f64 .f64",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row) (col) (m8n8k32) {satfinite} .s32 (u4) (u4) .s32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) " GPUSIM_PTX_ALIGNED "(row) (col) (m8n8k32) {satfinite} .s32 (s4) (s4) .s32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (mma) (and|xor) (popc) " GPUSIM_PTX_ALIGNED
       "(row) (col) (m8n8k128) .s32 (b1) (b1) .s32",
       "dv sv sv sv", kOther, nullptr},
      {"wmma (load) (a) " GPUSIM_PTX_ALIGNED "(row) (m8n8k32)" GPUSIM_PTX_SPACES "(u4|s4)",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (b) " GPUSIM_PTX_ALIGNED "(col) (m8n8k32)" GPUSIM_PTX_SPACES "(u4|s4)",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (a) " GPUSIM_PTX_ALIGNED "(row) (m8n8k128)" GPUSIM_PTX_SPACES "(b1)",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (b) " GPUSIM_PTX_ALIGNED "(col) (m8n8k128)" GPUSIM_PTX_SPACES "(b1)",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (c) " GPUSIM_PTX_ALIGNED "(row|col) (m8n8k32|m8n8k128)" GPUSIM_PTX_SPACES
       ".s32",
       "dv m ? s32", kMemory, load},
      {"wmma (store) (d) " GPUSIM_PTX_ALIGNED "(row|col) (m8n8k32|m8n8k128)" GPUSIM_PTX_SPACES
       ".s32",
       "m sv ? s32", kMemory, store},
      {"wmma (load) (a|b) " GPUSIM_PTX_ALIGNED "(row|col) " GPUSIM_PTX_F16_SHAPES GPUSIM_PTX_SPACES
       ".f16|.bf16|.u8|.s8",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (a|b) " GPUSIM_PTX_ALIGNED "(row|col) (m16n16k8)" GPUSIM_PTX_SPACES ".tf32",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (a|b|c) " GPUSIM_PTX_ALIGNED "(row|col) (m8n8k4)" GPUSIM_PTX_SPACES ".f64",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (c) " GPUSIM_PTX_ALIGNED "(row|col) " GPUSIM_PTX_F16_SHAPES GPUSIM_PTX_SPACES
       ".f16|.f32|.s32",
       "dv m ? s32", kMemory, load},
      {"wmma (load) (c) " GPUSIM_PTX_ALIGNED "(row|col) (m16n16k8)" GPUSIM_PTX_SPACES ".f32",
       "dv m ? s32", kMemory, load},
      {"wmma (store) (d) " GPUSIM_PTX_ALIGNED "(row|col) " GPUSIM_PTX_F16_SHAPES GPUSIM_PTX_SPACES
       ".f16|.f32|.s32",
       "m sv ? s32", kMemory, store},
      {"wmma (store) (d) " GPUSIM_PTX_ALIGNED "(row|col) (m16n16k8)" GPUSIM_PTX_SPACES ".f32",
       "m sv ? s32", kMemory, store},
      {"wmma (store) (d) " GPUSIM_PTX_ALIGNED "(row|col) (m8n8k4)" GPUSIM_PTX_SPACES ".f64",
       "m sv ? s32", kMemory, store},
      {"ldmatrix " GPUSIM_PTX_ALIGNED "(m8n8) (x1|x2|x4) {trans} {shared|shared::cta} .b16", "dv m",
       kMemory, load_rows},
      {"movmatrix " GPUSIM_PTX_ALIGNED "(m8n8) (trans) .b16", "d32 r32", kParallel, transpose},
      {"stmatrix " GPUSIM_PTX_ALIGNED "(m8n8) (x1|x2|x4) {trans} {shared|shared::cta} .b16", "m sv",
       kMemory, store_rows},
  };
  return rows;
}

}  // namespace gpusim::ptx
