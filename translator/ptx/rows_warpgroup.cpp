// Products of matrices of four warps (wgmma). The host multiplies, at once: fences, groups and
// waits for them change nothing.
#include <fmt/format.h>

#include <charconv>

#include "device_sim/uir/warp.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/kernel.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"
#include "translator/ptx/rows_internal.h"
#include "translator/ptx/warpgroup_op.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Type kB32{Kind::kBits, 32}, kB64{Kind::kBits, 64};

void nothing(Emitter&, I) {}

// The number behind a letter of the shape: of "m64n128k16".
int number_behind(const std::string& shape, char letter) {
  int value = 0;
  const size_t at = shape.find(letter) + 1;
  std::from_chars(shape.data() + at, shape.data() + shape.size(), value);
  return value;
}

// operands: d, a, b, of a sparse a metadata and a selector, whether d counts, signs of a and b,
// whether a (in memory) and b are transposed
WarpgroupOp op_of(Emitter& e, I i) {
  WarpgroupOp o;
  for (const std::string& m : i.modifiers)
    if (m.starts_with("m64n")) {
      o.matrix.columns = static_cast<uint16_t>(number_behind(m, 'n'));
      o.matrix.depth = static_cast<uint16_t>(number_behind(m, 'k'));
    }
  const std::vector<MatrixType> types = matrix_types_of(i);
  if (types.size() != 3) e.unsupported(i, "three types are needed");
  o.matrix.d = o.matrix.c = types[0];
  o.matrix.a = types[1];
  o.matrix.b = types[2];
  o.matrix.saturates = i.has("satfinite");
  o.a_in_registers = i.operands[1].is(Operand::Kind::kVector);
  o.matrix.is_sparse = i.has("sp");
  const size_t shift = o.matrix.is_sparse ? 2 : 0;
  if (o.matrix.is_sparse) {
    const auto selector = e.constant(i.operands[4], kB32);
    if (!selector || *selector > 1)
      e.unsupported(i, "the sparsity selector is the constant 0 or 1");
    o.matrix.selector = static_cast<uint8_t>(*selector);
  }
  const auto flag = [&](size_t at, uint64_t yes, uint64_t no) {
    at += shift;
    if (at >= i.operands.size()) return false;
    const auto known = e.constant(i.operands[at], kB32);
    if (!known || (*known != yes && *known != no))
      e.unsupported(i, "signs are the constants 1 and -1, transpositions 0 and 1");
    return *known == yes;
  };
  // Whether a is transposed is said where it lies in memory.
  if (i.operands.size() > 6 + shift && i.operands.size() != (o.a_in_registers ? 7u : 8u) + shift)
    e.unsupported(i, "of a in registers there is one transposition, else there are two");
  o.a_negated = flag(4, 0xffffffff, 1);
  o.b_negated = flag(5, 0xffffffff, 1);
  if (o.a_in_registers) {
    o.b_transposed = flag(6, 1, 0);
  } else {
    o.a_transposed = flag(6, 1, 0);
    o.b_transposed = flag(7, 1, 0);
  }
  return o;
}

uint64_t room_of(Emitter& e) {
  return e.place_of({.kind = Operand::Kind::kSymbol, .symbol = "@warpgroup"}).address;
}

std::vector<Operand> registers_of(Emitter& e, I i, const Operand& o, int needs) {
  std::vector<Operand> list{o};
  if (o.is(Operand::Kind::kVector)) list = o.elements;
  if (list.size() != static_cast<size_t>(needs))
    e.unsupported(i, fmt::format("a fragment has {} registers, not {}", needs, list.size()));
  return list;
}

void product(Emitter& e, I i) {
  const WarpgroupOp o = op_of(e, i);
  const uint64_t room = room_of(e);
  uint64_t at = room;
  const auto hand_over = [&](const Operand& x, Type t) {
    e.b.emit(Op::st64, e.src(x, t), kZeroSlot, 0, 0, at);
    at += 8;
  };
  for (const Operand& r : registers_of(e, i, i.operands[0], words_of_sum(o))) hand_over(r, kB32);
  for (const Operand& r : registers_of(e, i, i.operands[1], words_of_a(o)))
    hand_over(r, o.a_in_registers ? kB32 : kB64);
  if (o.matrix.is_sparse) hand_over(i.operands[3], kB32);
  hand_over(i.operands[2], kB64);
  hand_over(i.operands[o.matrix.is_sparse ? 5 : 3], kPredicateType);
  // The whole warp comes here, then stops.
  e.b.emit(Op::warp_sync, 0, 0, 0, kZeroSlot, WarpFields{}.pack());
  e.b.konst(kCallSlots, o.pack());
  e.b.konst(kCallSlots + 1, room);
  e.b.service(Service::kSyscall, e.next_pc, static_cast<Slot>(HostCall::kWarpgroup));
}

void product_result(Emitter& e, I i) {
  uint64_t at = room_of(e);
  const Operand& d = i.operands[0];
  const std::vector<Operand> list =
      d.is(Operand::Kind::kVector) ? d.elements : std::vector<Operand>{d};
  for (const Operand& r : list) {
    e.b.emit(Op::ld64, e.dst(r), kZeroSlot, 0, 0, at);
    at += 8;
  }
}

}  // namespace

const Row kWarpgroupProduct = {"wgmma", "", RowClass::kOther, product};
const Row kWarpgroupResult = {"wgmma", "", RowClass::kOther, product_result};

#define GPUSIM_PTX_N4(a, b, c, d, k) "m64n" a k "|m64n" b k "|m64n" c k "|m64n" d k
#define GPUSIM_PTX_N(k) \
  "(" GPUSIM_PTX_N4("8", "16", "24", "32", k) "|" GPUSIM_PTX_N4("40", "48", "56", "64", k) "|" \
  GPUSIM_PTX_N4("72", "80", "88", "96", k) "|" GPUSIM_PTX_N4("104", "112", "120", "128", k) "|" \
  GPUSIM_PTX_N4("136", "144", "152", "160", k) "|"                                            \
  GPUSIM_PTX_N4("168", "176", "184", "192", k) "|"                                            \
  GPUSIM_PTX_N4("200", "208", "216", "224", k) "|" GPUSIM_PTX_N4("232", "240", "248", "256", k) ")"
// Integers have fewer widths.
#define GPUSIM_PTX_N_INTEGER(k)                                                                \
  "(" GPUSIM_PTX_N4("8", "16", "24", "32", k) "|" GPUSIM_PTX_N4(                               \
      "48", "64", "80", "96", k) "|" GPUSIM_PTX_N4("112", "128", "144", "160",                 \
                                                   k) "|" GPUSIM_PTX_N4("176", "192", "208",   \
                                                                        "224", k) "|m64n240" k \
                                                                                  "|m64n256" k ")"
#define GPUSIM_PTX_GROUP "wgmma (mma_async) (sync) (aligned) "
#define GPUSIM_PTX_SPARSE_GROUP "wgmma (mma_async) (sp) (sync) (aligned) "

const RowList& warpgroup_rows() {
  using enum RowClass;
  static const RowList rows = {
      {GPUSIM_PTX_GROUP GPUSIM_PTX_N("k16") " .f16|.f32 .f16 .f16", "dv wa s64 sp i i i ? i",
       kOther, nullptr},
      {GPUSIM_PTX_GROUP GPUSIM_PTX_N("k16") " .f32 .bf16 .bf16", "dv wa s64 sp i i i ? i", kOther,
       nullptr},
      {GPUSIM_PTX_GROUP GPUSIM_PTX_N("k8") " .f32 .tf32 .tf32", "dv wa s64 sp i i", kOther,
       nullptr},
      {GPUSIM_PTX_GROUP GPUSIM_PTX_N("k32") " .f16|.f32 (e4m3|e5m2) (e4m3|e5m2)",
       "dv wa s64 sp i i", kOther, nullptr},
      {GPUSIM_PTX_GROUP GPUSIM_PTX_N_INTEGER("k32") " {satfinite} .s32 .u8|.s8 .u8|.s8",
       "dv wa s64 sp", kOther, nullptr},
      {GPUSIM_PTX_GROUP GPUSIM_PTX_N_INTEGER("k256") " .s32 (b1) (b1) (and) (popc)", "dv wa s64 sp",
       kOther, nullptr},
      {GPUSIM_PTX_SPARSE_GROUP GPUSIM_PTX_N("k32") " .f16|.f32 .f16 .f16",
       "dv wa s64 s32 i sp i i i ? i", kOther, nullptr},
      {GPUSIM_PTX_SPARSE_GROUP GPUSIM_PTX_N("k32") " .f32 .bf16 .bf16",
       "dv wa s64 s32 i sp i i i ? i", kOther, nullptr},
      {GPUSIM_PTX_SPARSE_GROUP GPUSIM_PTX_N("k16") " .f32 .tf32 .tf32", "dv wa s64 s32 i sp i i",
       kOther, nullptr},
      {GPUSIM_PTX_SPARSE_GROUP GPUSIM_PTX_N("k64") " .f16|.f32 (e4m3|e5m2) (e4m3|e5m2)",
       "dv wa s64 s32 i sp i i", kOther, nullptr},
      {GPUSIM_PTX_SPARSE_GROUP GPUSIM_PTX_N_INTEGER("k64") " {satfinite} .s32 .u8|.s8 .u8|.s8",
       "dv wa s64 s32 i sp", kOther, nullptr},
      {"wgmma (fence) (sync) (aligned)", "", kParallel, nothing},
      {"wgmma (commit_group) (sync) (aligned)", "", kParallel, nothing},
      {"wgmma (wait_group) (sync) (aligned)", "i", kParallel, nothing},
  };
  return rows;
}

}  // namespace gpusim::ptx
