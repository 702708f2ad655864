#include "device_sim/self_test/value_program.h"

#include "device_sim/self_test/assembler.h"
#include "device_sim/uir/check_fields.h"

namespace gpusim::self_test {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
constexpr uint32_t kMostPerBlock = 64;

// d = the micro-op of kX, kY, kZ; then into the sum. Fields are zero, where a row allows that.
void execute_values(Assembler& a) {
  uint32_t count = 0;
  for (int i = 0; i < kOpCount; ++i) {
    Uop u{.op = static_cast<Op>(i), .d = kResult, .a = kX, .b = kY, .c = kZ};
    const ShapeInfo shape = shape_info(op_info(u.op).shape);
    if (op_info(u.op).shape > Shape::kGABC) continue;
    if (shape.fp_state) u.e = kFpState;
    if (shape.e.reads) u.e = kZ;
    if (!has_valid_fields(u)) continue;
    if (count++ % kMostPerBlock == 0) a.label();
    a.op(u);
    a.op(Op::xor64, kSum, kSum, kResult);
    a.op(Op::mul64, kSum, kSum, kTurns);
  }
}

// To the core's own page and back, whole words and parts of two; and to words of all.
void access_memory(Assembler& a) {
  a.label();
  a.op(Op::st64, kSum, kOwn, 0, 0, 16);
  a.op(Op::st32, kX, kOwn, 0, 0, 27);  // parts of two words
  a.op(Op::st8, kY, kOwn, 0, 0, 33);
  a.op(Op::ldu16, kResult, kOwn, 0, 0, 30);
  a.op(Op::xor64, kSum, kSum, kResult);
  a.op(Op::ld64, kResult, kOwn, 0, 0, 21);
  a.op(Op::add64, kSum, kSum, kResult);
  const Op of_all[] = {Op::amo_add, Op::amo_xor, Op::amo_umax, Op::amo_smin};
  for (uint64_t i = 0; i < 4; ++i)
    for (uint8_t log2_size = 0; log2_size < 4; ++log2_size) {
      a.op(Op::addi64, kAddress, kCommon, 0, 0, 8 * (4 * i + log2_size));
      a.op(of_all[i], kResult, kAddress, kX, 0, 0, log2_size);
    }
  a.konst(kResult, 0);  // what lay there depends on who came first
}

// The block that follows is for cores whose number modulo 5 is not `rest`.
void unless(Assembler& a, uint64_t rest, void (*end)(Assembler&)) {
  a.label();
  a.konst(kY, 5);
  a.op(Op::udiv64, kX, kNumber, kY);
  a.op(Op::msub64, kX, kX, kY, kNumber);
  const uint32_t others = a.end(Op::bri_ne64, kX, 0, static_cast<uint16_t>(rest), 0);
  end(a);
  a.aim(others, a.label());
}

}  // namespace

Module value_program() {
  Assembler a;
  a.konst(kTurns, kOdd);
  a.op(Op::mul64, kX, kNumber, kTurns);
  a.op(Op::xori64, kY, kX, 0, 0, 0x4008'0000'4049'0fdb);  // of doubles and floats near pi, some
  a.op(Op::lsri64, kZ, kX, 0, 0, 7);
  execute_values(a);
  // Cores go round as often as their numbers say: lanes of a warp part and meet again.
  a.label();
  a.op(Op::andi64, kScratch, kNumber, 0, 0, 7);
  const uint32_t again = a.label();
  a.op(Op::madd64, kSum, kSum, kTurns, kScratch);
  a.op(Op::addi64, kScratch, kScratch, 0, 0, ~uint64_t{0});
  a.end(Op::bri_ge64, kScratch, 0, 0, again);
  access_memory(a);
  unless(a, 1, [](Assembler& b) { b.op(Op::ld64, kResult, kFaulty, 0, 0, 8); });
  unless(a, 2, [](Assembler& b) { b.op(Op::st32, kSum, kFaulty, 0, 0, 12); });
  unless(a, 3, [](Assembler& b) {
    b.end(Op::service, 0, 0, 0, b.next(), static_cast<uint8_t>(Service::kSyscall));
  });
  unless(a, 4, [](Assembler& b) { b.end(Op::jmp_reg, kSum, 0, 0, 0); });
  return a.take(kValueSlots);
}

}  // namespace gpusim::self_test
