// Modules that would make a backend run for ever, leave its tables or differ from others are
// refused when they are read, whatever their checksum says.
#include <doctest/doctest.h>

#include <functional>

#include "device_sim/uir/check_fields.h"
#include "device_sim/uir/helpers.h"
#include "device_sim/uir/warp.h"
#include "tests/unit/translator/test_elf.h"
#include "translator/common/translator.h"
#include "translator/module_io.h"

namespace gpusim {
namespace {

Module sample() {
  return translate_elf(TestElf({
                                   0x9ac15c00,  // crc32cx w0, w0, x1
                                   0x4e201c00,  // and v0.16b, v0.16b, v0.16b
                                   0x0e205800,  // cnt v0.8b, v0.8b
                                   0x4ea08420,  // add v0.4s, v1.4s, v0.4s
                                   0x1e624022,  // fcvt s2, d1
                                   0xb8200002,  // ldadd w0, w2, [x0]
                                   0x91000421,  // add x1, x1, #1
                                   0x7101903f,  // cmp w1, #100
                                   0x54ffff0b,  // b.lt -32
                                   0xd4000001,  // svc #0
                                   0xd65f03c0,  // ret
                               })
                           .bytes(),
                       "test");
}

size_t find(const Module& m, Op op) {
  for (size_t i = 0; i < m.uops.size(); ++i)
    if (m.uops[i].op == op) return i;
  FAIL("the sample has no " << std::string(op_info(op).name));
  return 0;
}

void check_refused(const std::string& what, const std::function<void(Module&)>& change) {
  CAPTURE(what);
  Module m = sample();
  change(m);
  CHECK_THROWS_AS(read_module(module_bytes(m), "test"), Error);
}
void check_refused(const std::string& what, Op op, const std::function<void(Uop&)>& change) {
  check_refused(what, [&](Module& m) { change(m.uops[find(m, op)]); });
}

TEST_CASE("fields of micro-ops are checked against their rows") {
  REQUIRE_NOTHROW(read_module(module_bytes(sample()), "test"));
  check_refused("a loop of 2^40 steps", Op::help2, [](Uop& u) { u.imm = 0xd60000000008; });
  check_refused("bytes of a CRC", Op::help2, [](Uop& u) { u.imm = 3; });
  check_refused("a helper's number", Op::help2, [](Uop& u) { u.e = 255; });
  check_refused("the next kind's helper", Op::help2, [](Uop& u) {
    u.e = static_cast<uint8_t>(std::size(kHelper2Fields));
  });
  check_refused("an element size", Op::vadd, [](Uop& u) { u.aux = 4; });
  check_refused("a format", Op::fconvert, [](Uop& u) { u.aux |= 3; });
  check_refused("an access size", Op::amo_add, [](Uop& u) { u.aux = 4; });
  check_refused("a jump's hint", Op::jmp_reg, [](Uop& u) { u.aux = 3; });
  check_refused("a service", Op::service, [](Uop& u) { u.aux = 3; });
  check_refused("a register", Op::vadd, [](Uop& u) { u.a = 255; });
  check_refused("a state that is also the result", Op::fconvert,
                [](Uop& u) { u.d = u.e; });
}

TEST_CASE("rows of warps are checked, and are for programs with warps") {
  // The same module with a row in the place of another micro-op that ends no block.
  const auto reads = [](const Uop& row, uint32_t warp_size) {
    Module m = sample();
    m.warp_size = warp_size;
    m.uops[find(m, Op::vadd)] = row;
    try {
      read_module(module_bytes(m), "test");
    } catch (const Error&) {
      return false;
    }
    return true;
  };
  const auto warp = [](WarpOp op, const WarpFields& f) {
    return Uop{.op = Op::warp, .aux = static_cast<uint8_t>(op), .imm = f.pack()};
  };
  const auto sync = [](CtaSync kind, const BarrierFields& f) {
    return Uop{.op = Op::cta_sync, .aux = static_cast<uint8_t>(kind), .imm = f.pack()};
  };
  const Uop ballot = warp(WarpOp::kVoteBallot, {});
  CHECK(reads(ballot, kWarpLanes));
  CHECK(!reads(ballot, 0));
  CHECK(!reads(ballot, 64));
  CHECK(reads(warp(WarpOp::kShuffleUp, {.lane = 31, .clamp = 0x1f1f}), kWarpLanes));
  CHECK(!reads(warp(WarpOp::kShuffleUp, {.lane = 32}), kWarpLanes));
  CHECK(!reads(warp(WarpOp::kShuffleUp, {.clamp = 0x20}), kWarpLanes));
  CHECK(!reads(warp(WarpOp::kVoteAll, {.lane = 1}), kWarpLanes));
  CHECK(!reads(warp(WarpOp::kReduceAdd, {.negated = true}), kWarpLanes));
  CHECK(!reads(warp(WarpOp::kActiveMask, {.mask_in_slot = true}), kWarpLanes));
  CHECK(!reads(warp(static_cast<WarpOp>(static_cast<int>(kLastWarpOp) + 1), {}), kWarpLanes));
  CHECK(!reads({.op = Op::warp, .imm = uint64_t{1} << 63}, kWarpLanes));
  CHECK(reads(sync(CtaSync::kSync, {.barrier = 15, .threads = 64}), kWarpLanes));
  CHECK(!reads(sync(CtaSync::kSync, {.barrier = 16}), kWarpLanes));
  CHECK(!reads(sync(CtaSync::kSync, {.threads = 33}), kWarpLanes));
  CHECK(!reads(sync(CtaSync::kArrive, {}), kWarpLanes));
  CHECK(reads(sync(CtaSync::kArrive, {.threads = 32}), kWarpLanes));
  CHECK(reads(sync(CtaSync::kClusterArrive, {}), kWarpLanes));
  CHECK(reads(sync(CtaSync::kClusterWait, {}), kWarpLanes));
  CHECK(!reads(sync(CtaSync::kClusterWait, {.barrier = 1}), kWarpLanes));
  CHECK(!reads(sync(static_cast<CtaSync>(4), {}), kWarpLanes));
  const auto sum = [](uint8_t aux) { return Uop{.op = Op::amo_fadd, .aux = aux}; };
  CHECK(reads(sum(static_cast<uint8_t>(FloatWord::kF16x2)), 0));
  CHECK(!reads(sum(0), 0));
  CHECK(!reads(sum(3 | 1 << 2), 0));
}

TEST_CASE("control goes forward within a block") {
  check_refused("a link back inside a block", [](Module& m) {
    const size_t at = find(m, Op::vadd);
    m.uops[at] = {.op = Op::link, .imm = Uop::pack_target(m.uop_block[at], 0)};
    m.uops[at].imm = Uop::pack_target(m.uop_block[at], static_cast<uint32_t>(at - 1));
  });
  check_refused("a block that ends in a link to itself", [](Module& m) {
    Block& b = m.blocks[m.uop_block[find(m, Op::service)]];
    m.uops[b.first_uop + b.uop_count - 1] = {.op = Op::link,
                                             .imm = Uop::pack_target(0, b.first_uop)};
  });
  check_refused("a jump into a block", [](Module& m) {
    Uop& u = m.uops[find(m, Op::service)];
    u.imm = Uop::pack_target(u.block(), m.blocks[0].first_uop + 1);
  });
  check_refused("a block that counts for another", [](Module& m) {
    Uop& u = m.uops[find(m, Op::service)];
    u.imm = Uop::pack_target(u.block() + 1, u.target());
  });
  check_refused("a block that counts nothing", [](Module& m) {
    Block& b = m.blocks[m.uop_block[find(m, Op::service)]];
    b.insn_count = 0;
    b.classes = {};
  });
  check_refused("two blocks with the same micro-ops",
                [](Module& m) { m.blocks[1].first_uop = m.blocks[0].first_uop; });
  check_refused("an instruction of thousands of micro-ops", [](Module& m) {
    const size_t at = find(m, Op::service);
    const uint32_t number = m.uop_block[at];
    const Uop end = m.uops[at];
    Block& b = m.blocks[number];
    b.first_uop = static_cast<uint32_t>(m.uops.size());
    b.uop_count = 5001;
    for (uint32_t i = 0; i < b.uop_count; ++i) {
      m.uops.push_back(i == 5000 ? end : Uop{.op = Op::fence});
      m.uop_insn.push_back(0);
      m.uop_block.push_back(number);
    }
    for (uint32_t& u : m.code.uop_at)
      if (u == at) u = b.first_uop;
  });
}

TEST_CASE("what a core counts where it stops lies in the table of classes") {
  check_refused("no class", [](Module& m) { m.code.insn_class[1] = 0xff; });
  check_refused("another class", [](Module& m) { m.code.insn_class[1] ^= 1; });
  check_refused("an instruction behind the block", [](Module& m) { m.uop_insn[0] = 60000; });
  check_refused("addresses of instructions that have one length",
                [](Module& m) { m.insn_offsets = {0, 4, 8}; });
}

TEST_CASE("segments and registers are what the loader expects") {
  check_refused("a segment of 2^45 bytes",
                [](Module& m) { m.segments.back().size_bytes = uint64_t{1} << 45; });
  check_refused("segments far apart", [](Module& m) {
    m.segments.push_back(
        {.address = uint64_t{1} << 40, .size_bytes = 4096, .flags = kRead, .bytes = {}});
  });
  check_refused("a register that is another one",
                [](Module& m) { m.abi.stack_pointer = m.abi.link; });
  check_refused("a register without a name", [](Module& m) { m.slot_names[3].name = "x99"; });
  check_refused("no system call's number",
                [](Module& m) { m.abi.syscall_number = kNoSlot; });
}

// The rows' own numbers: helpers of tests/differential/backends and of the translator's visitors
// would be refused if the tables were out of step.
TEST_CASE("kinds of fields are those of the helpers") {
  CHECK(kHelper2Fields[helper_number(Helper2::crc32)] == Fields::kBytes);
  CHECK(kHelper1Fields[helper_number(Helper1::vrev)] == Fields::kReversal);
  CHECK(kHelper3Fields[helper_number(Helper3::vtable)] == Fields::kTableStart);
  CHECK(kFpHelper1Fields[helper_number(FpHelper1::sqshlu)] == Fields::kLeftShift);
  CHECK(kFpHelper2Fields[helper_number(FpHelper2::qshrn)] == Fields::kNarrowingShift);
  CHECK(kFpHelper3Fields[helper_number(FpHelper3::sqrdmlah)] == Fields::kProducts);
}

}  // namespace
}  // namespace gpusim
