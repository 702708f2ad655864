#include "tests/differential/backends/random_warps.h"

#include "device_sim/core/cta.h"
#include "device_sim/uir/compare.h"
#include "device_sim/uir/softfloat/format.h"
#include "tests/differential/backends/uop_fields.h"

namespace gpusim::difftest {
namespace {

constexpr uint64_t kLinear = 0x10000, kLinearBytes = 0x20000, kWindow = 0x200000,
                   kShared = 0xf0000000, kSharedBytes = 0x4000, kCluster = 0xf1000000;
constexpr uint32_t kDeepest = 3, kClusterShift = 16;

// Slots. Members of a construct share a mask, which each of them has in kMask.
enum Names : Slot {
  kThread,
  kMask,
  kOwn,
  kWarpCells,
  kCell,
  kCounter,
  kWindowWord,
  kGlobal,
  kIgnored,
  kCondition,
  kTaken,
  kAddress,
  kFpState,
  kRounds,
  kSaved,                      // kDeepest of masks
  kTrips = kSaved + kDeepest,  // and of trips left
  kData = kTrips + kDeepest,
  kDataCount = 7,
  kSlotCount = kData + kDataCount,
};

// Blocks from micro-ops, with targets that come later.
class Assembler {
 public:
  using Label = uint32_t;
  Label new_label() {
    places_.push_back(0);
    return static_cast<Label>(places_.size() - 1);
  }
  void emit(const Uop& u) { m_.uops.push_back(u); }
  void end(Uop u, Label target) {
    const auto block = static_cast<uint32_t>(m_.blocks.size());
    fixups_.push_back({static_cast<uint32_t>(m_.uops.size()), target});
    u.imm = Uop::pack_target(block, 0);
    m_.uops.push_back(u);
    Block b;
    b.first_uop = first_;
    b.uop_count = b.insn_count = static_cast<uint32_t>(m_.uops.size()) - first_;
    b.classes[block % kInsnClassCount] = static_cast<uint16_t>(b.insn_count);
    for (uint32_t i = 0; i < b.uop_count; ++i) {
      m_.uop_block.push_back(block);
      m_.uop_insn.push_back(static_cast<uint16_t>(i));
    }
    m_.blocks.push_back(b);
    first_ = static_cast<uint32_t>(m_.uops.size());
  }
  void place(Label label) {
    if (first_ != m_.uops.size()) end({.op = Op::jmp}, label);
    places_[label] = first_;
  }
  Module finish() {
    for (const auto& [uop, label] : fixups_)
      m_.uops[uop].imm = Uop::pack_target(m_.uops[uop].block(), places_[label]);
    m_.slot_count = kSlotCount;
    m_.warp_size = kWarpLanes;
    return std::move(m_);
  }

 private:
  Module m_;
  uint32_t first_ = 0;
  std::vector<uint32_t> places_;
  std::vector<std::pair<uint32_t, Label>> fixups_;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed), seed_(seed) {}

  WarpCase run() {
    WarpCase w;
    order_matters_ = rng_.once_in(3);
    const uint32_t threads =
        rng_.pick({1u, 9u, 32u, 32u, 40u, 64u, 64u, 64u, 96u, 128u, 130u, 256u});
    const uint32_t places = rng_.pick({1u, 1u, 2u, 3u});
    cluster_ctas_ = rng_.coin() ? places : 1;
    const auto again = a_.new_label();
    a_.place(again);
    emit_body(3 + rng_.below(10), 0);
    a_.emit({.op = Op::addi32, .d = kRounds, .a = kRounds, .imm = ~uint64_t{0}});
    a_.end({.op = Op::bri_ne32, .a = kRounds}, again);
    a_.end({.op = Op::end_thread}, again);
    Case& c = w.c;
    c.module = a_.finish();
    w.order_matters = order_matters_;
    c.config.cores = places << cta_shift_of(threads);
    c.config.cta_threads = threads;
    c.config.cta_base = kShared;
    c.config.cta_bytes = kSharedBytes;
    c.config.cluster_ctas = cluster_ctas_;
    c.config.cluster_base = kCluster;
    c.config.cluster_shift = kClusterShift;
    c.config.memory_model = MemoryModel::kPrivate;
    c.config.linear_base = kLinear;
    c.config.linear_size = kLinearBytes;
    c.config.window_base = kWindow;
    c.config.window_shift = 12;
    c.regions = {{kLinear, kLinearBytes, kRead | kWrite}, {kWindow, 4096, kRead | kWrite}};
    c.memory_seed = seed_;
    set_slots(c, 1u << cta_shift_of(threads));
    return w;
  }

 private:
  Slot data() { return static_cast<Slot>(kData + rng_.below(kDataCount)); }

  void set_slots(Case& c, uint32_t place) {
    c.slots.resize(kSlotCount);
    c.ignored.assign(kSlotCount, false);
    c.ignored[kIgnored] = true;
    const auto of_threads = [&](Slot slot, auto value) {
      for (uint32_t t = 0; t < place; ++t) c.slots[slot].values.push_back(value(t));
    };
    of_threads(kThread, [](uint32_t t) { return uint64_t{t}; });
    of_threads(kWarpCells, [](uint32_t t) { return kShared + 8 * (t & ~31u); });
    of_threads(kCell, [](uint32_t t) { return kShared + 0x2000 + 8 * t; });
    of_threads(kOwn, [](uint32_t t) { return kShared + 8 * t; });
    c.slots[kCounter].base = kShared + 0x3000;
    c.slots[kMask].base = 0xffffffff;
    c.slots[kWindowWord].base = kWindow + 8 * rng_.below(64);
    c.slots[kGlobal] = {.base = kLinear, .stride = 8};
    c.slots[kRounds].base = rng_.pick({1u, 2u, 5u, 30u});
    if (rng_.coin()) {
      const uint64_t flags = rng_.coin() ? softfloat::kFpsrIxc : 0xffffffff;
      const uint64_t modes = rng_.coin() ? 0 : softfloat::kFpcrFz | softfloat::kFpcrFz16;
      c.slots[kFpState].base = softfloat::kFpFullNan | flags | modes;
    }
    for (uint32_t i = 0; i < kDataCount; ++i) {
      SlotData& s = c.slots[kData + i];
      switch (rng_.below(4)) {
        case 0:
          s = {.base = rng_.below(100), .stride = rng_.below(3)};
          break;
        case 1:
          for (int k = 0; k < 61; ++k) s.values.push_back(interesting_float(rng_));
          break;
        default:
          for (int k = 0; k < 67; ++k) s.values.push_back(interesting_integer(rng_));
      }
    }
  }

  void emit_body(uint32_t statements, uint32_t depth) {
    for (uint32_t i = 0; i < statements; ++i) emit_statement(depth);
  }

  void emit_statement(uint32_t depth) {
    switch (rng_.below(14)) {
      case 0:
      case 1:
      case 2:
        return emit_value();
      case 3:
      case 4:
      case 5:
        return emit_warp(depth);
      case 6:
        return emit_exchange(depth);
      case 7:
        return depth != 0        ? emit_value()
               : rng_.once_in(3) ? emit_cluster_exchange()
                                 : emit_cta_exchange();
      case 8:
        return emit_memory();
      case 9:
        return emit_atomic(depth);
      case 10:
        return depth == 0 && rng_.once_in(4) ? emit_early_end() : emit_value();
      case 11:
        return depth < kDeepest ? emit_loop(depth) : emit_value();
      default:
        return depth < kDeepest ? emit_condition(depth) : emit_value();
    }
  }

  void emit_value() {
    Uop u;
    do u.op = static_cast<Op>(rng_.below(kOpCount));
    while (op_info(u.op).shape > Shape::kGABC);
    random_fields(u, kFpState, rng_);
    u.d = data();
    u.a = data();
    u.b = data();
    u.c = data();
    if (op_info(u.op).shape == Shape::kSelCmp) u.e = data();
    a_.emit(u);
  }

  // A mask that all members have: as a constant, or in their slots.
  WarpFields members(uint32_t depth) {
    WarpFields f;
    if (depth == 0 && rng_.coin()) return f;
    f.mask = 0;
    f.mask_in_slot = true;
    return f;
  }
  Uop warp_row(WarpOp op, Slot d, Slot a, Slot b, const WarpFields& f) {
    return {.op = Op::warp,
            .d = d,
            .a = a,
            .b = b,
            .c = kMask,
            .aux = static_cast<uint8_t>(op),
            .imm = f.pack()};
  }

  void emit_warp(uint32_t depth) {
    const auto op = static_cast<WarpOp>(rng_.below(static_cast<uint32_t>(kLastWarpOp) + 1));
    if (op == WarpOp::kActiveMask) return a_.emit(warp_row(op, kIgnored, data(), data(), {}));
    WarpFields f = converges(op) ? members(depth) : WarpFields{};
    if (is_shuffle(op) || is_in_range(op)) {
      if (rng_.once_in(3))
        f.lane_in_slot = true;
      else
        f.lane = static_cast<uint8_t>(rng_.coin() ? 1u << rng_.below(5) : rng_.below(32));
      if (rng_.once_in(6))
        f.clamp_in_slot = true;
      else
        f.clamp = rng_.pick<uint16_t>({31, 0, 0x1f1f, 0x181f, 0x1c03});
    }
    f.negated = is_vote(op) && rng_.coin();
    f.wide = is_match(op) && rng_.coin();
    a_.emit(warp_row(op, data(), data(), data(), f));
  }

  void emit_sync(uint32_t depth) {
    a_.emit({.op = Op::warp_sync, .c = kMask, .imm = members(depth).pack()});
  }

  // Words of the members: each stores its own and loads that of the lowest.
  void emit_exchange(uint32_t depth) {
    a_.emit({.op = rng_.coin() ? Op::st64 : Op::st32, .d = data(), .a = kOwn});
    emit_sync(depth);
    a_.emit(warp_row(WarpOp::kElect, kAddress, data(), data(), members(depth)));
    a_.emit({.op = Op::add_lsl64, .d = kAddress, .a = kWarpCells, .b = kAddress, .imm = 3});
    a_.emit({.op = rng_.pick({Op::ld64, Op::ldu32, Op::lds8x}), .d = data(), .a = kAddress});
    emit_sync(depth);
  }

  Uop barrier() {
    return {.op = Op::cta_sync,
            .imm = BarrierFields{.barrier = static_cast<uint8_t>(rng_.below(16))}.pack()};
  }
  // Words of all threads.
  void emit_cta_exchange() {
    if (rng_.once_in(3)) {
      a_.emit({.op = Op::cta_reduce,
               .d = data(),
               .a = data(),
               .aux = static_cast<uint8_t>(rng_.below(3)),
               .imm = BarrierFields{.barrier = static_cast<uint8_t>(rng_.below(16)),
                                    .negated = rng_.coin()}
                          .pack()});
      return;
    }
    a_.emit(barrier());
    a_.emit({.op = Op::st64, .d = data(), .a = kCell});
    a_.emit(barrier());
    a_.emit({.op = Op::xori64, .d = kAddress, .a = kThread, .imm = 1 + rng_.below(63)});
    a_.emit({.op = Op::lsli64, .d = kAddress, .a = kAddress, .imm = 3});
    a_.emit({.op = Op::addi64, .d = kAddress, .a = kAddress, .imm = kShared + 0x2000});
    a_.emit({.op = rng_.pick({Op::ld64, Op::ldu16}), .d = data(), .a = kAddress});
    a_.emit(barrier());
  }

  static Uop cluster_barrier(CtaSync kind) {
    return {.op = Op::cta_sync, .aux = static_cast<uint8_t>(kind), .imm = BarrierFields{}.pack()};
  }
  // What is between its parts, others may do at any time.
  void emit_cluster_barrier() {
    a_.emit(cluster_barrier(CtaSync::kClusterArrive));
    if (rng_.coin()) a_.emit({.op = Op::xori64, .d = data(), .a = kThread, .imm = rng_.below(99)});
    if (rng_.once_in(3)) emit_sync(0);
    a_.emit(cluster_barrier(CtaSync::kClusterWait));
  }
  // Words of all threads of a cluster: each stores its own, and loads one of some CTA's.
  void emit_cluster_exchange() {
    const uint64_t rank = rng_.below(cluster_ctas_);
    const uint64_t there = kCluster + (rank << kClusterShift);
    emit_cluster_barrier();
    a_.emit({.op = Op::st64, .d = data(), .a = kCell});
    if (rng_.coin()) {
      a_.emit({.op = Op::konst, .d = kAddress, .imm = there + 0x3008});
      a_.emit({.op = Op::amo_add, .d = kIgnored, .a = kAddress, .b = data(), .aux = 3});
    }
    emit_cluster_barrier();
    a_.emit({.op = Op::xori64, .d = kAddress, .a = kThread, .imm = 1 + rng_.below(63)});
    if (rng_.once_in(4)) a_.emit({.op = Op::andi64, .d = kAddress, .a = kAddress});
    a_.emit({.op = Op::lsli64, .d = kAddress, .a = kAddress, .imm = 3});
    a_.emit({.op = Op::addi64, .d = kAddress, .a = kAddress, .imm = there + 0x2000});
    a_.emit({.op = rng_.pick({Op::ld64, Op::ldu16, Op::lds32x}), .d = data(), .a = kAddress});
    emit_cluster_barrier();
  }

  void emit_memory() {
    const Slot at = rng_.coin() ? kGlobal : kWindowWord;
    const uint64_t offset = at == kGlobal ? 0x8000 * rng_.below(2) : 8 * rng_.below(16);
    if (rng_.coin())
      a_.emit({.op = rng_.pick({Op::st64, Op::st8}), .d = data(), .a = at, .imm = offset});
    else
      a_.emit({.op = rng_.pick({Op::ld64, Op::lds32x}), .d = data(), .a = at, .imm = offset});
  }

  void emit_atomic(uint32_t depth) {
    if (order_matters_ && depth == 0) {  // on a word of the warp: lanes come in their order
      const Op op = rng_.pick({Op::amo_fadd, Op::amo_inc, Op::amo_dec, Op::amo_swp, Op::amo_smax});
      const auto word = rng_.pick({FloatWord::kF32, FloatWord::kF32Flushed, FloatWord::kF16x2,
                                   FloatWord::kBf16x2, FloatWord::kF64});
      const uint8_t aux =
          op == Op::amo_fadd ? static_cast<uint8_t>(word) : static_cast<uint8_t>(2 + rng_.below(2));
      emit_sync(depth);
      a_.emit({.op = Op::addi64, .d = kAddress, .a = kWarpCells, .imm = 0x1000});
      a_.emit({.op = op, .d = data(), .a = kAddress, .b = data(), .aux = aux});
      emit_sync(depth);
      return;
    }
    a_.emit({.op = Op::amo_add, .d = kIgnored, .a = kCounter, .b = data(), .aux = 3});
  }

  // The condition's outcome in kCondition, 0 or 1.
  void emit_test() {
    a_.emit({.op = Op::andi64, .d = kCondition, .a = data(), .imm = uint64_t{1} << rng_.below(6)});
    a_.emit({.op = Op::konst, .d = kTaken, .imm = 0});
    a_.emit({.op = Op::konst, .d = kAddress, .imm = 1});
    const CompareKind equal{CompareRelation::kEqual, false, false};
    a_.emit({.op = Op::sel_cmpi,
             .d = kCondition,
             .a = kTaken,
             .b = kAddress,
             .c = kCondition,
             .aux = equal.pack()});
  }

  void emit_condition(uint32_t depth) {
    const auto otherwise = a_.new_label(), join = a_.new_label();
    const auto saved = static_cast<Slot>(kSaved + depth);
    emit_test();
    a_.emit({.op = Op::mov, .d = saved, .a = kMask});
    a_.emit(warp_row(WarpOp::kVoteBallot, kTaken, kCondition, kCondition, members(depth)));
    a_.emit({.op = Op::bic64, .d = kMask, .a = kMask, .b = kTaken});
    a_.end({.op = Op::bri_eq64, .a = kCondition}, otherwise);
    a_.emit({.op = Op::mov, .d = kMask, .a = kTaken});
    emit_body(1 + rng_.below(3), depth + 1);
    a_.end({.op = Op::jmp}, join);
    a_.place(otherwise);
    if (rng_.coin()) emit_body(1 + rng_.below(3), depth + 1);
    a_.place(join);
    a_.emit({.op = Op::mov, .d = kMask, .a = saved});
    if (rng_.coin()) emit_sync(depth);
  }

  // Lanes leave one after the other.
  void emit_loop(uint32_t depth) {
    const auto head = a_.new_label(), exit = a_.new_label();
    const auto saved = static_cast<Slot>(kSaved + depth), trips = static_cast<Slot>(kTrips + depth);
    a_.emit({.op = Op::andi64, .d = trips, .a = data(), .imm = 3});
    a_.emit({.op = Op::mov, .d = saved, .a = kMask});
    a_.place(head);
    a_.emit(warp_row(WarpOp::kVoteBallot, kTaken, trips, trips, members(depth + 1)));
    a_.end({.op = Op::bri_eq64, .a = trips}, exit);
    a_.emit({.op = Op::mov, .d = kMask, .a = kTaken});
    emit_body(1 + rng_.below(3), depth + 1);
    a_.emit({.op = Op::addi64, .d = trips, .a = trips, .imm = ~uint64_t{0}});
    if (!order_matters_ && rng_.once_in(6))
      a_.end({.op = Op::give_way, .a = kIgnored, .aux = static_cast<uint8_t>(Turn::kYield)}, head);
    else
      a_.end({.op = Op::jmp}, head);
    a_.place(exit);
    a_.emit({.op = Op::mov, .d = kMask, .a = saved});
  }

  // Some threads end; the others go on without them.
  void emit_early_end() {
    const auto go_on = a_.new_label();
    a_.emit({.op = Op::andi64, .d = kCondition, .a = data(), .imm = 15});
    a_.end({.op = Op::bri_ne64, .a = kCondition}, go_on);
    a_.end({.op = Op::end_thread}, go_on);
    a_.place(go_on);
  }

  Rng rng_;
  uint64_t seed_;
  Assembler a_;
  bool order_matters_ = false;
  uint32_t cluster_ctas_ = 1;
};

}  // namespace

WarpCase random_warps(uint64_t seed) { return Generator(seed).run(); }

}  // namespace gpusim::difftest
