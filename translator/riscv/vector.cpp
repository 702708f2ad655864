// Vector instructions (V 1.0). ADR 0032 says why each is one micro-op.
#include "translator/riscv/vector.h"

#include <array>

#include "translator/riscv/registers.h"

namespace gpusim::riscv {
namespace {

using vector::Kind;
using vector::Source;

constexpr auto kOperations = [] {
  std::array<VectorOp, kOpCount> table{};
#define RV_ROW(name, extension, bits)
#define RV_ROW_IF(name, extension, bits, ...)
#define RVV_ROW(name, operation, bits, ...) \
  table[static_cast<size_t>(Op::name)] = VectorOp::operation;
#include "translator/riscv/rows/all.def"
  return table;
}();

bool has(const Row& row, char letter) { return row.pattern.field(letter).width != 0; }

InsnClass class_of(VectorOp op, bool is_double) {
  const vector::Row row = vector::row_of(op);
  if (vector::is_access(row.kind)) return InsnClass::kOffChipMemory;
  const bool is_float = (row.flags & vector::kFloat) != 0;
  switch (op) {
    case VectorOp::vdiv:
    case VectorOp::vdivu:
    case VectorOp::vrem:
    case VectorOp::vremu:
      return InsnClass::kIntegerDivision;
    case VectorOp::vfdiv:
    case VectorOp::vfrdiv:
      return is_double ? InsnClass::kDoubleDivision : InsnClass::kFloatDivision;
    case VectorOp::vfsqrt:
    case VectorOp::vfrsqrt7:
    case VectorOp::vfrec7:
      return InsnClass::kSpecialFunction;
    case VectorOp::vand:
    case VectorOp::vor:
    case VectorOp::vxor:
    case VectorOp::vsll:
    case VectorOp::vsrl:
    case VectorOp::vsra:
    case VectorOp::vnsrl:
    case VectorOp::vnsra:
      return InsnClass::kIntegerLogical;
    default:
      break;
  }
  switch (row.kind) {
    case Kind::kConfigure:
      return InsnClass::kOther;
    case Kind::kCompare:
      return is_float ? InsnClass::kFloatComparison : InsnClass::kIntegerComparison;
    case Kind::kMaskLogic:
    case Kind::kMaskFirst:
    case Kind::kSlide:
    case Kind::kGather:
    case Kind::kCompress:
    case Kind::kWholeMove:
    case Kind::kToScalar:
    case Kind::kFromScalar:
      return InsnClass::kIntegerLogical;
    default:
      break;
  }
  if (!is_float) return InsnClass::kIntegerArithmetic;
  return is_double ? InsnClass::kDoubleArithmetic : InsnClass::kFloatArithmetic;
}

// The type that the block itself has set before, if it shows: only for the class of instructions.
bool works_on_doubles(const BlockBuilder& builder) {
  const auto& uops = builder.draft().uops;
  for (size_t i = uops.size(); i-- > 0;) {
    if (uops[i].op != gpusim::Op::vector || vector::Insn::unpack(uops[i].imm).op != VectorOp::vset)
      continue;
    const Uop* const type = i > 0 && uops[i - 1].op == gpusim::Op::konst ? &uops[i - 1] : nullptr;
    return type != nullptr && type->d == uops[i].b && (type->imm >> 3 & 7) == 3;
  }
  return false;
}

// What is illegal does not write rd; the length goes there else.
void configure(const Insn& insn, BlockBuilder& b) {
  const Slot d = x_dst(insn.field('d'));
  vector::Insn u{.op = VectorOp::vset};
  Slot length = kZero, type = kZero;
  const auto constant = [&](uint64_t value) {
    const Slot t = b.temp();
    b.konst(t, value);
    return t;
  };
  if (insn.op() == Op::VSETIVLI) {
    length = constant(insn.field('u'));
  } else if (insn.field('n') != 0) {
    length = x_src(insn.field('n'));
  } else {
    u.source = static_cast<uint8_t>(insn.field('d') != 0 ? vector::Length::kLongest
                                                         : vector::Length::kKeep);
  }
  type = insn.op() == Op::VSETVL ? x_src(insn.field('m')) : constant(insn.field('i'));
  b.vector(d, length, type, kVectorState, u);
}

void access(const Insn& insn, VectorOp op, BlockBuilder& b) {
  const Row& row = *insn.row;
  const auto field = [&](char letter) {
    return static_cast<uint8_t>(has(row, letter) ? insn.field(letter) : 0);
  };
  vector::Insn u{.op = op, .d = field('d'), .masked = has(row, 'v') && field('v') == 0};
  u.fields = static_cast<uint8_t>(field('g') + 1);
  u.log_size = field('r');
  const bool is_indexed = vector::row_of(op).kind == Kind::kIndexed;
  if (is_indexed) u.a = field('m');
  const Slot stride = has(row, 'm') && !is_indexed ? x_src(field('m')) : kZero;
  b.vector(kSink, x_src(field('n')), stride, kVectorState, u);
}

}  // namespace

VectorOp vector_operation(Op op) { return kOperations[static_cast<size_t>(op)]; }

void translate_vector(const Insn& insn, BlockBuilder& b) {
  const Row& row = *insn.row;
  const VectorOp op = vector_operation(insn.op());
  const vector::Row operation = vector::row_of(op);
  b.set_class(class_of(op, works_on_doubles(b)));
  if (operation.kind == Kind::kConfigure) return configure(insn, b);
  if (vector::is_access(operation.kind)) return access(insn, op, b);

  const bool is_float = (insn.word >> 12 & 3) == 1;  // OPFVV, OPFVF
  vector::Insn u{.op = op};
  u.masked = has(row, 'v') ? insn.field('v') == 0 : (insn.word >> 25 & 1) == 0;
  if (has(row, 'm')) u.a = static_cast<uint8_t>(insn.field('m'));
  // The major opcodes' forms: vector, immediate, integer or floating-point register.
  const uint32_t form = insn.word >> 12 & 7;
  Source source = form == 3  ? Source::kImmediate
                  : form < 4 ? Source::kVector
                  : is_float ? Source::kFloat
                             : Source::kScalar;
  Slot scalar = kZero, d = kSink;
  if (has(row, 'i')) u.b = static_cast<uint8_t>(insn.field('i'));
  if (has(row, 'n')) {
    const uint32_t n = insn.field('n');
    if (source == Source::kVector)
      u.b = static_cast<uint8_t>(n);
    else
      scalar = is_float ? f_reg(n) : x_src(n);
  }
  u.source = static_cast<uint8_t>(source);
  switch (operation.kind) {
    case Kind::kMaskToScalar:
      d = x_dst(insn.field('d'));
      break;
    case Kind::kToScalar:
      d = is_float ? f_reg(insn.field('d')) : x_dst(insn.field('d'));
      break;
    default:
      u.d = static_cast<uint8_t>(insn.field('d'));
      break;
  }
  b.vector(d, scalar, is_float ? kFrm : kZero, kVectorState, u);
}

}  // namespace gpusim::riscv
