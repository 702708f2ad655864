// Vector micro-ops that no translator makes are refused, not computed from operands that are not
// there.
#include <doctest/doctest.h>

#include <initializer_list>

#include "device_sim/uir/vector.h"

namespace gpusim::vector {
namespace {

bool is_legal(VectorOp op, Source source, uint8_t fields = 1) {
  Work w{};
  w.insn = {
      .op = op, .d = 8, .a = 16, .b = 24, .source = static_cast<uint8_t>(source), .fields = fields};
  w.vtype = 2 << 3;  // elements of 32 bits, one register
  w.vl = 4;
  return prepare(w);
}

TEST_CASE("reductions and vcompress have a vector as second operand") {
  for (int i = 0; i < kVectorOpCount; ++i) {
    const auto op = static_cast<VectorOp>(i);
    const Kind kind = row_of(op).kind;
    if (kind != Kind::kReduce && kind != Kind::kCompress) continue;
    CAPTURE(kNames[i]);
    CHECK(is_legal(op, Source::kVector));
    for (const Source other : {Source::kScalar, Source::kFloat, Source::kImmediate})
      CHECK(!is_legal(op, other));
  }
}

TEST_CASE("masks have no segments") {
  for (const VectorOp op : {VectorOp::vload_mask, VectorOp::vstore_mask}) {
    CHECK(is_legal(op, Source::kVector, 1));
    for (uint8_t fields = 2; fields <= 8; ++fields) CHECK(!is_legal(op, Source::kVector, fields));
  }
  CHECK(is_legal(VectorOp::vstore, Source::kVector, 8));
}

}  // namespace
}  // namespace gpusim::vector
