// Branches, ends of threads, barriers, operations of warps.
#include "device_sim/uir/compare.h"
#include "device_sim/uir/warp.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/kernel.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

constexpr Type kB32{Kind::kBits, 32};
constexpr uint8_t kEqual32 = compare_kind(CompareRelation::kEqual, true);

void branch(Emitter& e, I i) {
  const uint64_t target = e.label_pc(i.operands[0].symbol);
  if (i.guard == kNoRegister) return e.b.jmp(target);
  const Operand guard{
      .kind = Operand::Kind::kRegister, .is_negated = i.guard_is_negated, .reg = i.guard};
  e.branch(guard, target);
}

void branch_if_below(Emitter& e, I i) {
  e.b.branch_imm(Op::bri_ltu32, e.reg(i.operands[1]), static_cast<uint16_t>(i.operands[2].value),
                 e.label_pc(i.operands[0].symbol));
}

void end_thread(Emitter& e, I) { e.end_thread(); }
void nothing(Emitter&, I) {}

// The thread's clock goes on at once; others get their turn.
void sleep(Emitter& e, I i) {
  constexpr Slot clock = special_slot(Special::kClock);
  e.b.add64(clock, clock, e.src(i.operands[0], i.type()));
  e.b.give_way(Turn::kYield, kZeroSlot, e.next_pc);
}

void host_call(Emitter& e, HostCall call) {
  e.b.service(Service::kSyscall, e.next_pc, static_cast<Slot>(call));
}

void trap(Emitter& e, I) { host_call(e, HostCall::kTrap); }

// operands[0]: what to call, then the arguments.
void call_host(Emitter& e, I i) {
  for (size_t k = 1; k < i.operands.size(); ++k)
    e.b.mov(static_cast<Slot>(kCallSlots + k - 1), e.reg(i.operands[k]));
  host_call(e, static_cast<HostCall>(i.operands[0].value));
}
// operands[0]: what to do, then the words that the host reads in that room.
void call_with_room(Emitter& e, I i, const char* room_name, HostCall call) {
  const uint64_t room = e.place_of({.kind = Operand::Kind::kSymbol, .symbol = room_name}).address;
  for (size_t k = 1; k < i.operands.size(); ++k)
    e.b.emit(Op::st64, e.src(i.operands[k], Type{Kind::kBits, 64}), kZeroSlot, 0, 0,
             room + 8 * (k - 1));
  e.b.konst(kCallSlots, room);
  e.b.konst(kCallSlots + 1, i.operands[0].value);
  host_call(e, call);
}
void call_device(Emitter& e, I i) { call_with_room(e, i, "@call", HostCall::kDevice); }
void call_tensor(Emitter& e, I i) { call_with_room(e, i, "@tensor", HostCall::kTensor); }
void host_result(Emitter& e, I i) { e.b.mov(e.dst(i.operands[0]), kCallSlots); }

// --- barriers of the CTA

struct BarrierOperands {
  BarrierFields fields;
  Slot id = 0, count = 0;
};

// The barrier's number at operands[at], then maybe a number of threads.
BarrierOperands barrier_operands(Emitter& e, I i, size_t at, bool has_count) {
  BarrierOperands o;
  if (const auto known = e.constant(i.operands[at], kB32)) {
    if (*known >= kCtaBarriers) e.unsupported(i, "barriers have the numbers 0 to 15");
    o.fields.barrier = static_cast<uint8_t>(*known);
  } else {
    o.fields.barrier_in_slot = true;
    o.id = e.reg(i.operands[at]);
  }
  if (!has_count) return o;
  if (const auto known = e.constant(i.operands[at + 1], kB32)) {
    if (!BarrierFields::is_count(*known) || *known == 0)
      e.unsupported(i, "the number of threads is a multiple of 32, up to 1024");
    o.fields.threads = static_cast<uint16_t>(*known);
  } else {
    o.fields.threads_in_slot = true;
    o.count = e.reg(i.operands[at + 1]);
  }
  return o;
}

void barrier(Emitter& e, I i) {
  const BarrierOperands o = barrier_operands(e, i, 0, i.operands.size() > 1);
  const CtaSync what = i.has("arrive") ? CtaSync::kArrive : CtaSync::kSync;
  e.b.emit(Op::cta_sync, 0, 0, o.id, o.count, o.fields.pack(), static_cast<uint8_t>(what));
}

// bar.red.op d, a{, b}, p
void barrier_reduce(Emitter& e, I i) {
  const bool has_count = i.operands.size() > 3;
  BarrierOperands o = barrier_operands(e, i, 1, has_count);
  Operand p = i.operands.back();
  if (p.is(Operand::Kind::kRegister)) {
    o.fields.negated = p.is_negated;
    p.is_negated = false;
  }
  const Slot a = e.src(p, kPredicateType);
  const CtaReduce what = i.has("popc")  ? CtaReduce::kPopc
                         : i.has("and") ? CtaReduce::kAnd
                                        : CtaReduce::kOr;
  e.b.emit(Op::cta_reduce, e.dst(i.operands[0]), a, o.id, o.count, o.fields.pack(),
           static_cast<uint8_t>(what));
}

void set_mask(Emitter& e, const Operand& mask, WarpFields& f, Slot& c) {
  if (const auto known = e.constant(mask, kB32)) {
    f.mask = static_cast<uint32_t>(*known);
  } else {
    f.mask = 0;
    f.mask_in_slot = true;
    c = e.reg(mask);
  }
}

void cluster_barrier(Emitter& e, I i) {
  const CtaSync what = i.has("arrive") ? CtaSync::kClusterArrive : CtaSync::kClusterWait;
  e.b.emit(Op::cta_sync, 0, 0, 0, 0, BarrierFields{}.pack(), static_cast<uint8_t>(what));
}

// --- addresses in clusters (memory_map.h). A CTA has one address for each byte of its own shared
// memory, that which shared::cta has.

Slot own_rank(Emitter& e) {
  const Slot rank = e.temp();
  e.b.ubfx(rank, special_slot(Special::kClusterCtaidZRank), ones(32), 32);
  return rank;
}

// Of a, a register of the instruction's type or a variable.
Slot address_in_cluster(Emitter& e, const Operand& a, Type t) {
  if (a.is(Operand::Kind::kSymbol)) return e.konst(e.place_of(a).address);
  return e.src(a, t);
}

// mapa d, a, rank
void map_address(Emitter& e, I i) {
  const Slot a = address_in_cluster(e, i.operands[1], i.type());
  const Slot rank = e.src(i.operands[2], kB32), offset = e.temp(), own = e.temp(), there = e.temp();
  const Slot is_own = own_rank(e);
  e.b.andi64(offset, a, kClusterCtaBytes - 1);
  e.b.addi64(own, offset, kCtaBase);
  e.b.add_lsl64(there, offset, rank, kClusterShift);
  e.b.addi64(there, there, kClusterBase);
  e.b.sel_cmp(there, own, there, rank, is_own, kEqual32);
  e.zero_extend(e.dst(i.operands[0]), there, i.type().bits);
}

// getctarank d, a
void rank_of_address(Emitter& e, I i) {
  const Slot a = address_in_cluster(e, i.operands[1], i.type());
  const Slot own = own_rank(e), there = e.temp();
  e.b.addi64(there, a, 0 - kClusterBase);
  e.b.lsri64(there, there, kClusterShift);
  e.b.sel_cmpi(there, there, own, there, kMostClusterCtas, kBelow64);
  e.b.mov(e.dst(i.operands[0]), there);
}

// elect.sync d|p, mask
void elect(Emitter& e, I i) {
  WarpFields f;
  Slot c = kZeroSlot;
  set_mask(e, i.operands[1], f, c);
  const Slot leader = e.temp();
  e.b.emit(Op::warp, leader, kZeroSlot, kZeroSlot, c, f.pack(),
           static_cast<uint8_t>(WarpOp::kElect));
  const Operand &d = i.operands[0].elements[0], &p = i.operands[0].elements[1];
  if (!e.is_sink(p))
    e.b.sel_cmp(e.dst(p), kOneSlot, kZeroSlot, leader, special_slot(Special::kLaneid), kEqual64);
  if (!e.is_sink(d)) e.b.mov(e.dst(d), leader);
}

// --- operations of warps

void warp_barrier(Emitter& e, I i) {
  WarpFields f;
  Slot c = kZeroSlot;
  set_mask(e, i.operands[0], f, c);
  e.b.emit(Op::warp_sync, 0, 0, 0, c, f.pack());
}

void warp_op(Emitter& e, WarpOp op, Slot d, Slot a, Slot b, Slot c, const WarpFields& f) {
  e.b.emit(Op::warp, d, a, b, c, f.pack(), static_cast<uint8_t>(op));
}

// shfl.sync.mode d{|p}, a, b, c, mask
void shuffle(Emitter& e, I i) {
  const Operand& out = i.operands[0];
  const bool is_pair = out.is(Operand::Kind::kPair);
  WarpFields f;
  Slot b = kZeroSlot, c = kZeroSlot;
  const auto lane = e.constant(i.operands[2], kB32), clamp = e.constant(i.operands[3], kB32);
  if (lane && clamp) {
    f.lane = static_cast<uint8_t>(*lane & 31);
    f.clamp = static_cast<uint16_t>(*clamp & WarpFields::kClampBits);
  } else {
    // Both in one slot, where either is not constant.
    f.lane_in_slot = f.clamp_in_slot = true;
    b = e.temp();
    e.b.add_lsl64(b, e.src(i.operands[2], kB32), e.src(i.operands[3], kB32), 32);
  }
  set_mask(e, i.operands[4], f, c);
  const int mode = i.has("idx") ? 0 : i.has("up") ? 1 : i.has("down") ? 2 : 3;
  const Slot a = e.src(i.operands[1], kB32);
  const auto numbered = [](WarpOp first, int n) {
    return static_cast<WarpOp>(static_cast<int>(first) + n);
  };
  const Slot in_range = e.temp();
  if (is_pair && !e.is_sink(out.elements[1])) {
    WarpFields apart = f;
    apart.mask = ~uint32_t{0};
    apart.mask_in_slot = false;
    warp_op(e, numbered(WarpOp::kInRangeIdx, mode), in_range, a, b, kZeroSlot, apart);
  }
  const Operand& value = is_pair ? out.elements[0] : out;
  warp_op(e, numbered(WarpOp::kShuffleIdx, mode), e.dst(value), a, b, c, f);
  if (is_pair && !e.is_sink(out.elements[1])) e.b.mov(e.dst(out.elements[1]), in_range);
}

// vote.sync.mode d, a, mask
void vote(Emitter& e, I i) {
  WarpFields f;
  Slot c = kZeroSlot;
  set_mask(e, i.operands[2], f, c);
  Operand p = i.operands[1];
  if (p.is(Operand::Kind::kRegister)) {
    f.negated = p.is_negated;
    p.is_negated = false;
  }
  const Slot a = e.src(p, kPredicateType);
  const WarpOp op = i.has("all")   ? WarpOp::kVoteAll
                    : i.has("any") ? WarpOp::kVoteAny
                    : i.has("uni") ? WarpOp::kVoteUni
                                   : WarpOp::kVoteBallot;
  warp_op(e, op, e.dst(i.operands[0]), a, kZeroSlot, c, f);
}

void warp_match(Emitter& e, I i) {
  const Type t = i.type();
  const Operand& out = i.operands[0];
  const bool is_pair = out.is(Operand::Kind::kPair);
  WarpFields f{.wide = t.bits == 64};
  Slot c = kZeroSlot;
  set_mask(e, i.operands[2], f, c);
  const Slot a = e.src(i.operands[1], t), members = e.temp();
  warp_op(e, i.has("any") ? WarpOp::kMatchAny : WarpOp::kMatchAll, members, a, kZeroSlot, c, f);
  const Operand& value = is_pair ? out.elements[0] : out;
  if (!e.is_sink(value)) e.b.mov(e.dst(value), members);
  if (!is_pair || e.is_sink(out.elements[1])) return;
  const CompareKind is_zero{CompareRelation::kEqual, true, false};
  e.b.sel_cmpi(e.dst(out.elements[1]), kZeroSlot, kOneSlot, members, 0, is_zero.pack());
}

void redux(Emitter& e, I i) {
  WarpFields f;
  Slot c = kZeroSlot;
  set_mask(e, i.operands[2], f, c);
  const bool is_signed = i.type().is_signed();
  const WarpOp op = i.has("add")   ? WarpOp::kReduceAdd
                    : i.has("min") ? (is_signed ? WarpOp::kReduceMinS : WarpOp::kReduceMinU)
                    : i.has("max") ? (is_signed ? WarpOp::kReduceMaxS : WarpOp::kReduceMaxU)
                    : i.has("and") ? WarpOp::kReduceAnd
                    : i.has("or")  ? WarpOp::kReduceOr
                                   : WarpOp::kReduceXor;
  const Slot a = e.src(i.operands[1], i.type());
  warp_op(e, op, e.dst(i.operands[0]), a, kZeroSlot, c, f);
}

void active_mask(Emitter& e, I i) {
  warp_op(e, WarpOp::kActiveMask, e.dst(i.operands[0]), kZeroSlot, kZeroSlot, kZeroSlot, {});
}

}  // namespace

const Row kCallInPlace = {"call", "", RowClass::kControl, nothing};
const Row kMemoryInPlace = {"cp", "", RowClass::kMemory, nothing};
const Row kParallelInPlace = {"mbarrier", "", RowClass::kParallel, nothing};
const Row kCallHost = {"call", "", RowClass::kControl, call_host};
const Row kCallDevice = {"call", "", RowClass::kControl, call_device};
const Row kCallTensor = {"cp", "", RowClass::kControl, call_tensor};
const Row kBranchIfBelow = {"brx", "", RowClass::kControl, branch_if_below};
const Row kHostResult = {"call", "", RowClass::kControl, host_result};

const RowList& control_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"bra {uni}", "lab", kControl, branch},
      {"brx (idx) {uni}", "s32 lab", kControl, nullptr},
      {"ret {uni}", "", kControl, end_thread},
      {"exit", "", kControl, end_thread},
      {"trap", "", kControl, trap},
      {"call {uni}", "any any any ? any", kControl, nullptr},
      {"nanosleep .u32", "s0", kOther, sleep},
      {"bar {cta} (sync)", "i ? i", kParallel, barrier},
      {"bar {cta} (arrive)", "i i", kParallel, barrier},
      {"bar {cta} (red) (popc) .u32", "d0 i sp", kParallel, barrier_reduce},
      {"bar {cta} (red) (popc) .u32", "d0 i i sp", kParallel, barrier_reduce},
      {"bar {cta} (red) (and|or) .pred", "d0 i sp", kParallel, barrier_reduce},
      {"bar {cta} (red) (and|or) .pred", "d0 i i sp", kParallel, barrier_reduce},
      {"barrier {cta} (sync) {aligned}", "i ? i", kParallel, barrier},
      {"barrier {cta} (arrive) {aligned}", "i i", kParallel, barrier},
      {"barrier {cta} (red) (popc) {aligned} .u32", "d0 i sp", kParallel, barrier_reduce},
      {"barrier {cta} (red) (and|or) {aligned} .pred", "d0 i sp", kParallel, barrier_reduce},
      {"barrier (cluster) (arrive) {release|relaxed} {aligned}", "", kParallel, cluster_barrier},
      {"barrier (cluster) (wait) {acquire} {aligned}", "", kParallel, cluster_barrier},
      {"mapa {shared::cluster} .u32|.u64", "d0 mv s32", kOther, map_address},
      {"getctarank {shared::cluster} .u32|.u64", "d32 mv", kOther, rank_of_address},
      {"elect (sync)", "de s32", kParallel, elect},
      // Grids follow each other, and registers are there for all.
      {"pmevent {mask}", "n", kControl, nothing},  // nobody counts
      {"griddepcontrol (launch_dependents|wait)", "", kOther, nothing},
      {"setmaxnreg (inc|dec) (sync) (aligned) .u32", "i", kOther, nothing},
      {"bar (warp) (sync)", "s32", kParallel, warp_barrier},
      {"shfl (sync) (up|down|bfly|idx) .b32", "dq s0 s0 s0 s32", kParallel, shuffle},
      {"vote (sync) (all|any|uni) .pred", "d0 sp s32", kParallel, vote},
      {"vote (sync) (ballot) .b32", "d0 sp s32", kParallel, vote},
      {"match (any) (sync) .b32|.b64", "d32 s0 s32", kParallel, warp_match},
      {"match (all) (sync) .b32|.b64", "dm s0 s32", kParallel, warp_match},
      {"redux (sync) (add) .u32|.s32", "d0 s0 s32", kParallel, redux},
      {"redux (sync) (min|max) .u32|.s32", "d0 s0 s32", kParallel, redux},
      {"redux (sync) (and|or|xor) .b32", "d32 s32 s32", kParallel, redux},
      {"activemask .b32", "d0", kParallel, active_mask},
  };
  return rows;
}

}  // namespace gpusim::ptx
