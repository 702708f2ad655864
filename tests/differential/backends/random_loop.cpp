#include "tests/differential/backends/random_loop.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "device_sim/uir/access.h"
#include "device_sim/uir/compare.h"
#include "tests/differential/backends/uop_fields.h"

namespace gpusim::difftest {
namespace {

constexpr uint64_t kText = 0x10000, kBlockBytes = 0x100;
constexpr uint64_t kLinear = 0x400000;
// Elements of a plane: four parts, of which phases use one after the other.
constexpr uint32_t kPartCells = 256, kPlaneCells = 4 * kPartCells;
constexpr uint32_t kNoLabel = ~0u;

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  LoopCase make() {
    cores_ = rng_.pick({64u, 64u, 64u, 64u, 128u, 130u, 65u, 63u, 40u, 17u, 200u});
    case_.config.cores = cores_;
    shared_ = rng_.below(6) != 0;
    case_.config.memory_model = shared_ ? MemoryModel::kShared : MemoryModel::kPrivate;
    case_.memory_seed = rng_.next();
    order_matters_ = shared_ && rng_.once_in(6);
    faulty_ = rng_.once_in(12);
    fp_weight_ = rng_.pick({0u, 0u, 1u, 1u, 5u});
    memory_weight_ = rng_.pick({0u, 1u, 3u, 3u, 8u});
    names_fp_state_ = fp_weight_ != 0 && rng_.once_in(2);
    rounds_ = rng_.pick({60u, 200u, 500u, 1000u});
    if (faulty_) rounds_ = 100;
    phase_shift_ = faulty_ ? 3 : 3 + rng_.below(6);
    choose_slots();
    lay_out_memory();
    set_slots();
    emit_program();
    finish();
    return {std::move(case_), order_matters_};
  }

 private:
  // --- slots

  // What slots are for. Data slots are anybody's; the others have one use, so that programs end and
  // cores that share memory do not race.
  enum Role : uint32_t {
    kCore,       // the core's number
    kIteration,  // of the loop
    kPhase,      // kIteration >> phase_shift_
    kRounds,     // still to go
    kNoise,      // lanes
    kNoise2,
    kFloats,  // lanes, or one for all; in both of one width
    kFloats2,
    kConstants,        // address of memory that nobody writes
    kTable,            // address of 16 bytes of them, by core
    kOwn,              // address of an element of its own; four roles: of 1, 2, 4, 8 bytes
    kCell = kOwn + 4,  // address of 64 bytes of its own
    kPlane,            // address of a plane; four roles: elements of 1, 2, 4, 8 bytes
    kStack = kPlane + 4,
    kCounters,  // address of what all cores add to
    kHole,      // address of nothing
    kAddress,
    kIndex,
    kScratch,
    kOldValue,
    kJumpTo,
    kLink,
    kInnerRounds,
    kFlags,  // what conditions look at; starts below 16
    kFpState,
    kMark,  // and the two after it: what a store-exclusive looks at
    kFirstData = kMark + 3
  };
  Slot slot(uint32_t role) const { return slots_[role]; }
  SlotData& start_of(uint32_t role) { return case_.slots[slot(role)]; }

  // Roles get slots at random. Slot 0, which fields that mean nothing name, has any role; half of
  // the time data.
  void choose_slots() {
    data_count_ = 3 + rng_.below(8);
    const size_t n = kFirstData + data_count_;
    for (size_t i = 0; i < n; ++i) slots_.push_back(static_cast<Slot>(i));
    for (size_t i = n; i-- > 1;) std::swap(slots_[i], slots_[rng_.below(i + 1)]);
    // The mark's slots follow one another; data gets those that it had.
    for (size_t k = 0; k < 3; ++k) {
      slots_.push_back(slots_[kMark + k]);
      slots_[kMark + k] = static_cast<Slot>(n + k);
    }
    data_count_ += 3;
    if (rng_.coin()) std::swap(*std::find(slots_.begin(), slots_.end(), 0), slots_[kFirstData]);
    case_.slots.resize(slots_.size());
    case_.ignored.assign(slots_.size(), false);
  }
  // The first data slot is a favourite, so that values meet.
  Slot data() { return slot(rng_.once_in(6) ? kFirstData : kFirstData + rng_.below(data_count_)); }
  Slot source() {
    switch (rng_.below(14)) {
      case 0:
        return slot(kCore);
      case 1:
        return slot(kIteration);
      case 2:
        return slot(kPhase);
      case 3:
        return slot(kNoise);
      case 4:
        return slot(kNoise2);
      case 5:
        return float_slot();
      case 6:
        return slot(rng_.once_in(3) ? kFlags : rng_.once_in(3) ? kRounds : kScratch);
      default:
        return data();
    }
  }
  Slot float_slot() { return slot(rng_.coin() ? kFloats : kFloats2); }
  // Lanes, phases or anything else that a selection may look at.
  Slot phase_or_source() { return rng_.coin() ? slot(kPhase) : source(); }
  Slot phase_or_iteration() { return slot(rng_.coin() ? kPhase : kIteration); }
  Slot loaded() { return rng_.once_in(10) ? slot(kScratch) : data(); }
  Slot stored() {
    if (rng_.once_in(5)) return source();
    return rng_.once_in(5) ? slot(kCore) : data();
  }

  // --- what slots start with

  template <class F>
  void fill(SlotData& d, F f) {
    d.values.resize(cores_);
    for (uint64_t& v : d.values) v = f();
  }
  static uint64_t sign_extended(uint64_t x) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(x)});
  }
  SlotData random_data() {
    SlotData d;
    switch (rng_.below(11)) {
      case 9:  // words with their sign
        fill(d, [&] { return sign_extended(rng_.coin() ? rng_.next() : rng_.below(1000)); });
        break;
      case 10:  // passes 1 << 31, or stops short of it
        d.base = sign_extended(0x7ffff000 + rng_.below(0x2000));
        d.stride = rng_.coin() ? 1 + rng_.below(64) : uint64_t{0} - 1 - rng_.below(64);
        break;
      case 0:
        d.base = interesting_integer(rng_);
        break;
      case 1:
        d.base = rng_.below(100);
        d.stride = 1 + rng_.below(8);
        break;
      case 2:  // passes 1 << 32
        d.base = 0xfffff000 + rng_.below(0x1000);
        d.stride = 1 + rng_.below(64);
        break;
      case 3:
        d.base = interesting_integer(rng_);
        d.stride = interesting_integer(rng_);
        break;
      case 4:
        fill(d, [&] { return interesting_integer(rng_); });
        break;
      case 5:
        fill(d, [&] { return interesting_integer(rng_) & 0xffffffff; });
        break;
      case 6:
        fill(d, [&] { return rng_.below(1000); });
        break;
      case 7:
        fill(d, [&] { return interesting_float(rng_); });
        break;
      default:
        break;
    }
    return d;
  }
  SlotData random_iteration() {
    SlotData d;
    d.base = rng_.once_in(4) ? 0xffffff80 : rng_.once_in(6) ? 0xffffffffffffff80 : 0;
    if (rng_.once_in(5)) d.stride = 1;
    if (rng_.once_in(6)) fill(d, [&] { return rng_.below(20); });
    return d;
  }
  SlotData random_rounds() {
    SlotData d;
    switch (rng_.below(6)) {
      case 0:
        d.base = rounds_;
        d.stride = 1 + rng_.below(6);
        break;
      case 1:
        fill(d, [&] { return rounds_ + rng_.below(rounds_); });
        break;
      case 2:
        fill(d, [&] { return rng_.once_in(16) ? 2 * rounds_ : rounds_; });
        break;
      case 3:
        fill(d, [&] { return rng_.once_in(8) ? 1 + rng_.below(rounds_) : rounds_; });
        break;
      default:
        d.base = rounds_;
    }
    return d;
  }
  // Floats whose sums and products stay finite for long.
  uint64_t random_number() {
    const double x = 0.5 + rng_.below(1000) / 700.0;
    if (single_floats_) {
      const auto f = static_cast<float>(x);
      uint32_t bits;
      std::memcpy(&bits, &f, sizeof bits);
      return rng_.coin() ? uint64_t{bits} << 32 | bits : bits;
    }
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
  }
  void set_slots() {
    start_of(kCore) = {0, 1, {}};
    start_of(kIteration) = random_iteration();
    start_of(kRounds) = random_rounds();
    if (rng_.coin())
      fill(start_of(kNoise), [&] { return rng_.below(4096); });
    else
      fill(start_of(kNoise), [&] { return rng_.next() >> (rng_.once_in(3) ? 0 : 32); });
    if (rng_.coin())
      fill(start_of(kNoise2), [&] { return rng_.below(rounds_); });
    else
      fill(start_of(kNoise2), [&] { return rng_.next(); });
    single_floats_ = rng_.coin();
    fill(start_of(kFloats), [&] { return random_number(); });
    if (rng_.coin())
      fill(start_of(kFloats2), [&] { return random_number(); });
    else
      start_of(kFloats2).base = random_number();
    start_of(kFpState).base = rng_.pick<uint64_t>(
        {0x10, 0x10, 0x10, 0x10, 0x1f, 0, 0x0080000000000010, 0x0100000000000010});
    if (rng_.once_in(10)) start_of(kFpState).values = {0x10, 0};
    if (rng_.coin()) fill(start_of(kFlags), [&] { return rng_.below(16); });
    start_of(kMark).base = ~uint64_t{0};
    for (uint32_t i = 0; i < data_count_; ++i) start_of(kFirstData + i) = random_data();
  }

  // --- memory

  void lay_out_memory() {
    MachineConfig& config = case_.config;
    config.linear_base = kLinear;
    uint64_t at = kLinear;
    const auto region = [&](uint64_t size, uint8_t flags) {
      const uint64_t address = at;
      size = (size + 4095) & ~uint64_t{4095};
      case_.regions.push_back({address, size, flags});
      at += size;
      return address;
    };
    const uint64_t constants = region(0x10000, kRead), strides[] = {16, 24, 40, 48};
    start_of(kConstants).base = constants;
    start_of(kTable) = {constants, rng_.of(strides), {}};
    if (rng_.coin()) start_of(kTable) = {constants + 0xff00, 0 - rng_.of(strides), {}};
    const uint64_t own_size =
        cores_ * (1 + 2 + 4 + 8 + 64) + 5 * 64 + kPlaneCells * (1 + 2 + 4 + 8);
    uint64_t own = shared_ ? region(own_size, kRead | kWrite) : 0;
    const uint64_t counters = shared_ ? region(4096, kRead | kWrite) : 0;
    start_of(kHole).base = region(0x2000, 0);
    region(4096, kRead);
    config.linear_size = at - kLinear;
    config.window_shift = shared_ ? 13 : own_size > 0x7000 ? 16 : 15;
    config.window_base = rng_.coin() ? at : 0x7000000000;
    const uint64_t window = uint64_t{1} << config.window_shift;
    case_.regions.push_back({config.window_base, window, kRead | kWrite});
    if (!shared_) own = config.window_base + 0x1000;
    const auto take = [&](uint64_t size) {
      const uint64_t address = own;
      own += (size + 63) & ~uint64_t{63};
      return address;
    };
    for (uint32_t k = 0; k < 4; ++k)
      start_of(kOwn + k) = {take(uint64_t{cores_} << k), uint64_t{1} << k, {}};
    start_of(kCell) = {take(uint64_t{cores_} * 64), 64, {}};
    for (uint32_t k = 0; k < 4; ++k) {
      start_of(kPlane + k).base = take(uint64_t{kPlaneCells} << k);
      plane_shift_[k] = rng_.below(5);
    }
    start_of(kCounters).base = counters;
    start_of(kStack) = {config.window_base, shared_ ? window : 0, {}};
  }

  // --- blocks and labels

  void emit(Uop u) {
    open_block();
    case_.module.uops.push_back(u);
  }
  void open_block() {
    if (in_block_) return;
    in_block_ = true;
    block_ = Block{.pc = kText + kBlockBytes * case_.module.blocks.size(),
                   .first_uop = static_cast<uint32_t>(case_.module.uops.size())};
  }
  void end_block(Uop end, uint32_t label = kNoLabel) {
    open_block();
    Module& m = case_.module;
    const auto number = static_cast<uint32_t>(m.blocks.size());
    if (rng_.once_in(12)) {
      // Part of the block lies elsewhere.
      const auto at = static_cast<uint32_t>(m.uops.size());
      emit({.op = Op::link, .imm = Uop::pack_target(number, at + 2)});
      emit({.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kUndefined)});
    }
    end.imm = Uop::pack_target(number, label);
    emit(end);
    block_.uop_count = static_cast<uint32_t>(m.uops.size()) - block_.first_uop;
    block_.insn_count = 1 + rng_.below(6);
    for (uint32_t i = 0; i < block_.insn_count; ++i) ++block_.classes[rng_.below(kInsnClassCount)];
    m.blocks.push_back(block_);
    in_block_ = false;
  }
  uint32_t new_label() {
    labels_.push_back(kNoBlock);
    return static_cast<uint32_t>(labels_.size() - 1);
  }
  // The next micro-op starts a block.
  void bind(uint32_t label) {
    if (in_block_) end_block({.op = Op::jmp}, label);
    labels_[label] = static_cast<uint32_t>(case_.module.blocks.size());
  }
  void emit_pc(Slot d, uint32_t label) {
    emit({.op = Op::konst, .d = d});
    pcs_.push_back({case_.module.uops.size() - 1, label});
  }

  // --- values

  static uint8_t compare_kind(CompareRelation relation, bool is_32bit = false,
                               bool narrow_result = false) {
    return CompareKind{relation, is_32bit, narrow_result}.pack();
  }
  uint64_t random_phase() { return 1 + rng_.below(std::max<uint64_t>(1, rounds_ >> phase_shift_)); }
  // d = x where `look_at` is below the number of a random phase, else y.
  void emit_select(Slot d, Slot x, Slot y, Slot look_at) {
    emit({.op = Op::sel_cmpi,
          .d = d,
          .a = x,
          .b = y,
          .c = look_at,
          .aux = compare_kind(CompareRelation::kLessUnsigned),
          .imm = random_phase()});
  }
  void set_fields(Uop& u) {
    random_fields(u, slot(kFpState), rng_);
    if (u.op == Op::sel_cmp) u.e = source();
  }
  Op random_op(Shape first, Shape last) {
    for (;;) {
      const auto op = static_cast<Op>(rng_.below(kOpCount));
      if (op_info(op).shape >= first && op_info(op).shape <= last) return op;
    }
  }

  void emit_value() {
    // Where affine values have rules, and where values get narrow or compact again.
    Op op;
    switch (rng_.below(4)) {
      case 0:
        op = rng_.once_in(25) ? Op::konst : random_value_op(traits::kAffine, rng_);
        break;
      case 1:
        op = random_value_op(traits::kNarrow | traits::kNarrowIfFits | traits::kNarrowSigned, rng_);
        break;
      default:
        op = random_op(Shape::kDI, Shape::kSelCmpI);
    }
    Uop u{.op = op, .d = data()};
    const ShapeInfo info = shape_info(op_info(op).shape);
    const bool all = rng_.once_in(4);  // fields that mean nothing name slots, too
    if (info.a.reads || all) u.a = source();
    if (info.b.reads || all) u.b = source();
    if (info.c.reads || all) u.c = source();
    if (rng_.once_in(4)) u.a = u.d;
    set_fields(u);
    if (op >= Op::fl_add64 && op <= Op::fl_nz32 && rng_.coin()) u.d = slot(kFlags);
    if (op == Op::cset) u.a = slot(kFlags);
    if (op_info(op).shape == Shape::kSel && rng_.coin()) u.c = slot(kFlags);
    emit(u);
  }

  void emit_fp() {
    if (names_fp_state_ && rng_.once_in(3)) return emit_turning_fp_state();
    constexpr Op kUsual[] = {Op::fadd32,  Op::fsub32,  Op::fmul32, Op::fma32,  Op::fadd64,
                             Op::fmul64,  Op::fma64,   Op::fcmp,   Op::fdiv32, Op::fsqrt32,
                             Op::vfadd32, Op::vfmul32, Op::vfma32, Op::i2f,    Op::fminmax};
    const Op op = rng_.once_in(3) ? random_op(Shape::kFA, Shape::kGABC) : rng_.of(kUsual);
    Uop u{.op = op, .d = data()};
    const auto operand = [&] { return rng_.once_in(3) ? source() : float_slot(); };
    const ShapeInfo info = shape_info(op_info(op).shape);
    if (info.a.reads) u.a = operand();
    if (info.b.reads) u.b = operand();
    if (info.c.reads) u.c = rng_.coin() ? u.d : operand();
    if (rng_.once_in(3)) u.a = u.d;
    set_fields(u);
    if (op == Op::fcmp && rng_.coin()) u.d = slot(kFlags);
    emit(u);
    if (names_fp_state_ && rng_.once_in(4)) emit_read_fp_state();
    if (names_fp_state_ && rng_.once_in(12)) emit_write_fp_state();
  }
  // The state is the same for all, until products overflow in some cores: from some phase on, or in
  // one round of each core.
  void emit_turning_fp_state() {
    const Slot x = slot(kScratch);
    // Native code computes products, or, where subnormal numbers are flushed, a handler does.
    const auto state = rng_.pick<uint64_t>({0x10, 0x0100000000000010, 0x0100000000000010});
    if (!rng_.once_in(3)) emit({.op = Op::konst, .d = slot(kFpState), .imm = state});
    if (rng_.coin()) bind(new_label());
    emit({.op = Op::konst, .d = x, .imm = 0x7fefffff7f7fffff});  // large as a double and as a float
    if (rng_.coin())
      emit_select(x, float_slot(), x, slot(kPhase));
    else
      emit({.op = Op::sel_cmp,
            .d = x,
            .a = x,
            .b = float_slot(),
            .c = slot(kIteration),
            .e = slot(kNoise2),
            .aux = compare_kind(CompareRelation::kEqual)});
    Uop u{.op = single_floats_ ? Op::fmul32 : Op::fmul64, .d = data(), .a = x, .b = float_slot()};
    set_fields(u);
    emit(u);
    if (rng_.once_in(3)) emit_action();
    emit_read_fp_state();
  }
  void emit_read_fp_state() {
    Uop u{.op = rng_.pick({Op::mov, Op::andi64, Op::xor64, Op::ubfx, Op::mov32}),
          .d = data(),
          .a = slot(kFpState)};
    if (u.op == Op::xor64) u.b = source();
    set_fields(u);
    emit(u);
  }
  void emit_write_fp_state() {
    if (rng_.once_in(3)) {
      emit({.op = Op::andi64, .d = slot(kScratch), .a = source(), .imm = 0x1f});
      emit({.op = Op::ori64, .d = slot(kFpState), .a = slot(kScratch), .imm = 0x10});
    } else {
      const auto state = rng_.pick<uint64_t>({0x10, 0x10, 0, 0x0040000000000010});
      emit({.op = Op::konst, .d = slot(kFpState), .imm = state});
    }
  }

  // A value whose form depends on the phase, or becomes simple again.
  void emit_form() {
    const Slot d = data();
    switch (rng_.below(18)) {
      case 14:  // a word with its sign, or cut at some place
        emit({.op = Op::sbf64,
              .d = d,
              .a = source(),
              .aux = static_cast<uint8_t>(rng_.pick({32u, 32u, 48u, 32 + rng_.below(32)})),
              .imm = rng_.pick<uint64_t>({32, 32, 48, 32 + rng_.below(32)})});
        break;
      case 15:
        emit({.op = rng_.pick({Op::addw, Op::subw, Op::mulw}), .d = d, .a = d, .b = source()});
        break;
      case 16: {  // masks that are known late
        const Slot t = slot(kScratch);
        emit({.op = Op::lsli64, .d = t, .a = slot(kPhase), .imm = rng_.below(6)});
        if (rng_.coin()) emit({.op = Op::addi64, .d = t, .a = t, .imm = ~uint64_t{0}});
        const Slot other = rng_.coin() ? slot(kCore) : source();
        emit({.op = rng_.coin() ? Op::and64 : Op::and32, .d = d, .a = t, .b = other});
        break;
      }
      case 0: {
        Uop u{.op = Op::sel_cmpi, .d = d, .a = source(), .b = source(), .c = slot(kPhase)};
        const auto relation =
            rng_.coin() ? CompareRelation::kLessUnsigned : CompareRelation::kEqual;
        const bool is_32bit = rng_.coin();
        u.aux = compare_kind(relation, is_32bit, rng_.once_in(4));
        u.imm = random_phase();
        emit(u);
        break;
      }
      case 1:
        emit({.op = Op::mul64, .d = d, .a = slot(kCore), .b = slot(kPhase)});
        break;
      case 2:
        emit({.op = Op::mul64, .d = d, .a = slot(kNoise), .b = slot(kPhase)});
        if (rng_.coin()) emit({.op = Op::add64, .d = d, .a = d, .b = source()});
        break;
      case 3: {  // lanes with affine values, for a while
        const Slot t = data();
        emit({.op = Op::add64, .d = t, .a = slot(kNoise), .b = slot(kPhase)});
        emit({.op = Op::xor64, .d = d, .a = t, .b = slot(kNoise)});
        const Op op = rng_.pick({Op::xor64, Op::add64, Op::or64, Op::add32});
        emit({.op = op, .d = d, .a = d, .b = slot(kCore)});
        break;
      }
      case 4:
        emit({.op = Op::addi64, .d = d, .a = slot(kCore), .imm = interesting_integer(rng_)});
        break;
      case 5:
        emit({.op = Op::konst, .d = d, .imm = interesting_integer(rng_)});
        break;
      case 6: {
        const auto by =
            rng_.pick<uint64_t>({1, 1, 0x1000000, 0xffffffff, ~uint64_t{0}, 0x100000000});
        emit({.op = rng_.coin() ? Op::addi32 : Op::addi64, .d = d, .a = d, .imm = by});
        break;
      }
      case 7:
        emit({.op = Op::lsri64, .d = d, .a = slot(kIteration), .imm = rng_.below(10)});
        break;
      case 8: {
        const auto mask = rng_.pick<uint64_t>({1, 3, 63, 0xffff, 0xffffffff});
        emit({.op = Op::andi64, .d = d, .a = source(), .imm = mask});
        break;
      }
      case 9:
        emit({.op = rng_.coin() ? Op::add64 : Op::add32, .d = d, .a = d, .b = source()});
        break;
      case 10:
        emit({.op = Op::xor64, .d = d, .a = slot(kCore), .b = slot(kPhase)});
        break;
      case 11:
        emit({.op = Op::madd64, .d = d, .a = slot(kCore), .b = slot(kPhase), .c = source()});
        break;
      default:
        emit_lanes_for_a_while(d);
        break;
    }
  }
  // Lanes whose values are uniform or affine in the first phases.
  void emit_lanes_for_a_while(Slot d) {
    const Slot t = rng_.coin() ? data() : slot(kScratch);
    if (rng_.coin())
      emit({.op = Op::add64, .d = t, .a = slot(kNoise), .b = slot(kPhase)});
    else
      emit_select(t, slot(kNoise), slot(kNoise2), slot(kPhase));
    emit({.op = Op::xor64, .d = d, .a = t, .b = slot(kNoise)});
    switch (rng_.below(5)) {
      case 0:
        break;
      case 1:
        emit({.op = Op::xor64, .d = d, .a = d, .b = slot(kIteration)});
        break;
      case 2:
        emit({.op = Op::add32, .d = d, .a = d, .b = slot(kCore)});
        break;
      case 3:  // squares come and go
        emit({.op = Op::madd64, .d = d, .a = slot(kCore), .b = slot(kCore), .c = d});
        emit({.op = Op::msub64, .d = d, .a = slot(kCore), .b = slot(kCore), .c = d});
        emit({.op = Op::add64, .d = d, .a = d, .b = slot(kCore)});
        break;
      default:
        emit({.op = rng_.coin() ? Op::xor64 : Op::add64, .d = d, .a = d, .b = slot(kCore)});
    }
  }

  // --- accesses

  struct Access {
    Op op;  // with an immediate offset
    uint32_t log2_size;
    bool store = false;
  };
  Access random_access(bool store) {
    constexpr Access kLoads[] = {{Op::ldu8, 0},   {Op::ldu16, 1}, {Op::ldu32, 2},
                                 {Op::ld64, 3},   {Op::lds8x, 0}, {Op::lds16x, 1},
                                 {Op::lds32x, 2}, {Op::lds8w, 0}, {Op::lds16w, 1}};
    constexpr Access kStores[] = {
        {Op::st8, 0, true}, {Op::st16, 1, true}, {Op::st32, 2, true}, {Op::st64, 3, true}};
    return store ? rng_.of(kStores) : rng_.of(kLoads);
  }
  Access random_access(bool store, uint32_t log2_size) {
    for (;;) {
      const Access access = random_access(store);
      if (access.log2_size == log2_size) return access;
    }
  }
  // The access at an index, of 64 or 32 bits.
  static Op with_index(const Access& access, AddressMode mode) {
    constexpr int kLoadsApart = static_cast<int>(Op::ldu8_x) - static_cast<int>(Op::ldu8);
    constexpr int kStoresApart = static_cast<int>(Op::st8_x) - static_cast<int>(Op::st8);
    const int at = mode == AddressMode::kIndex ? 1 : 2;
    return static_cast<Op>(static_cast<int>(access.op) +
                           at * (access.store ? kStoresApart : kLoadsApart));
  }

  // kIndex = something from 0 to `mask`.
  void emit_index(uint64_t mask) {
    const Slot i = slot(kIndex);
    switch (rng_.below(9)) {
      case 0:
        emit({.op = Op::konst, .d = i, .imm = rng_.next() & mask});
        return;
      case 1:
        emit({.op = Op::andi64, .d = i, .a = slot(kCore), .imm = mask});
        return;
      case 2:  // uniform, consecutive, strided ...
        emit({.op = Op::mul64, .d = i, .a = slot(kCore), .b = slot(kPhase)});
        break;
      case 3:
        emit({.op = Op::xor64, .d = i, .a = slot(kCore), .b = phase_or_iteration()});
        break;
      case 4: {
        const Op op = rng_.coin() ? Op::add64 : Op::add32;
        emit({.op = op, .d = i, .a = slot(kCore), .b = phase_or_iteration()});
        break;
      }
      case 5: {
        const Slot x = source();
        emit_select(i, x, source(), slot(kPhase));
        break;
      }
      case 6:
        emit_lanes_for_a_while(i);
        break;
      default:
        emit({.op = Op::andi64, .d = i, .a = source(), .imm = mask});
        return;
    }
    emit({.op = Op::andi64, .d = i, .a = i, .imm = mask});
  }
  void emit_direct(const Access& access, Slot base, uint64_t offset) {
    emit({.op = access.op, .d = access.store ? stored() : loaded(), .a = base, .imm = offset});
  }
  // At base + (kIndex << scale).
  void emit_indexed(const Access& access, Slot base, uint32_t scale) {
    const Slot i = slot(kIndex);
    const Slot d = access.store ? stored() : rng_.once_in(20) ? i : data();
    switch (rng_.below(3)) {
      case 0: {
        const Op op = with_index(access, AddressMode::kIndex);
        emit({.op = op, .d = d, .a = base, .b = i, .imm = scale});
        break;
      }
      case 1: {
        const uint64_t upper = ~uint64_t{0} << 32;  // does not count
        if (rng_.coin())
          emit({.op = Op::bfi64, .d = i, .a = source(), .b = i, .aux = 32, .imm = upper});
        const Op op = with_index(access, AddressMode::kIndex32);
        emit({.op = op, .d = d, .a = base, .b = i, .imm = scale});
        break;
      }
      default: {
        const Slot a = slot(kAddress);
        emit({.op = Op::add_lsl64, .d = a, .a = base, .b = i, .imm = scale});
        const uint64_t offset = rng_.once_in(4) ? rng_.below(200) : 0;
        if (offset != 0) emit({.op = Op::addi64, .d = a, .a = a, .imm = 0 - offset});
        const bool over_address = !access.store && rng_.once_in(8);
        emit({.op = access.op, .d = over_address ? a : d, .a = a, .imm = offset});
      }
    }
  }

  void emit_memory() {
    const bool store = rng_.below(5) < 2;
    switch (rng_.below(store ? 5 : 6)) {
      case 0:
        return emit_own_element(store);
      case 1:
        if (rng_.once_in(3)) return emit_own_vector(store);
        return emit_own_cell(random_access(store));
      case 2:
        return emit_permuted(store);
      case 3:
        return emit_stack(random_access(store));
      case 4:
        if (rng_.coin()) return emit_spill();
        return emit_stack(random_access(store));
      default: {
        const Access access = random_access(false);
        emit_index(rng_.pick<uint64_t>({0xff, 0xfff, 63}));
        emit_indexed(access, slot(kConstants), rng_.pick({0u, access.log2_size, 3u}));
      }
    }
  }
  void emit_own_element(bool store) {
    const uint32_t log2_size = rng_.below(4);
    const Access access = random_access(store, log2_size);
    if (rng_.coin()) return emit_direct(access, slot(kOwn + log2_size), 0);
    // By the core's number, from an address that has come to be the same for all.
    const Slot a = slot(kAddress);
    emit({.op = Op::sub64, .d = a, .a = slot(kOwn + log2_size), .b = slot(kCore)});
    for (uint32_t k = 1; k < 1u << log2_size; ++k)
      emit({.op = Op::sub64, .d = a, .a = a, .b = slot(kCore)});
    const Op op = with_index(access, rng_.coin() ? AddressMode::kIndex : AddressMode::kIndex32);
    const Slot d = store ? stored() : loaded();
    emit({.op = op, .d = d, .a = a, .b = slot(kCore), .imm = log2_size});
  }
  void emit_own_cell(const Access& access) {
    if (rng_.coin()) return emit_direct(access, slot(kCell), rng_.below(56));
    emit_index(rng_.coin() ? 7 : 3);
    emit_indexed(access, slot(kCell), rng_.below(4));
  }
  // 16 bytes, word by word.
  void emit_own_vector(bool store) {
    const Access word = random_access(store, 3);
    Slot base = slot(kCell);
    uint64_t offset = rng_.below(49);
    if (rng_.coin()) {
      base = slot(kAddress);
      offset = 0;
      emit_index(3);
      emit({.op = Op::add_lsl64, .d = base, .a = slot(kCell), .b = slot(kIndex), .imm = 4});
    }
    const auto emit_words = [&](const Access& access, Slot from, uint64_t at) {
      const Slot first = access.store ? stored() : loaded();
      const Slot second = access.store ? stored() : loaded();
      emit({.op = access.op, .d = first, .a = from, .imm = at});
      emit({.op = access.op, .d = second, .a = from, .imm = at + 8});
    };
    emit_words(word, base, offset);
    if (rng_.coin()) emit_words({Op::ld64, 3}, slot(kTable), 8 * rng_.below(9));
  }
  // In each phase cores permute the elements of another part of a plane.
  void emit_permuted(bool store) {
    const uint32_t log2_size = rng_.below(4);
    const Access access = random_access(store, log2_size);
    const Slot i = slot(kIndex), part = slot(kScratch);
    static_assert(kPartCells == 1 << 8);
    emit({.op = Op::andi64, .d = part, .a = slot(kPhase), .imm = 3});
    emit({.op = Op::lsli64, .d = i, .a = part, .imm = plane_shift_[log2_size]});
    emit({.op = Op::xor64, .d = i, .a = i, .b = slot(kCore)});
    emit({.op = Op::add_lsl64, .d = i, .a = i, .b = part, .imm = 8});
    emit_indexed(access, slot(kPlane + log2_size), log2_size);
  }
  void emit_stack(const Access& access) {
    if (rng_.once_in(3)) {
      emit_index(0xff);
      return emit_indexed(access, slot(kStack), rng_.below(4));
    }
    uint64_t offset = rng_.below(rng_.coin() ? 64 : shared_ ? 0x1800 : 0x800);
    if (!rng_.once_in(4)) offset &= ~uint64_t{0} << access.log2_size;
    emit_direct(access, slot(kStack), offset);
  }
  // A value that has a form, or changes it from phase to phase, stored on the stack and loaded
  // again, all of it or a part.
  void emit_spill() {
    const Slot t = slot(kScratch), phase = slot(kPhase), core = slot(kCore);
    switch (rng_.below(6)) {
      case 0:
        emit({.op = Op::mov, .d = t, .a = phase_or_iteration()});
        break;
      case 1:  // each phase another stride, none in the first
        emit({.op = Op::mul64, .d = t, .a = core, .b = phase});
        break;
      case 2: {  // wraps in a part of the word, in some lanes
        const uint64_t near = rng_.pick<uint64_t>({1 << 7, 1 << 8, 1 << 15, 1 << 16,
                                                   uint64_t{1} << 31, uint64_t{1} << 32});
        if (rng_.coin())
          emit({.op = Op::add64, .d = t, .a = core, .b = phase_or_iteration()});
        else
          emit({.op = Op::mul64, .d = t, .a = core, .b = rng_.coin() ? core : phase});
        emit({.op = Op::addi64, .d = t, .a = t, .imm = near - rng_.below(200)});
        break;
      }
      case 3:
        emit_select(t, core, slot(kNoise), phase);
        break;
      case 4:
        emit_lanes_for_a_while(t);
        break;
      default:
        emit({.op = Op::sub64, .d = t, .a = phase, .b = core});
    }
    Slot base = slot(kStack);
    const uint32_t log2_size = rng_.coin() ? 3 : rng_.below(4);
    uint64_t offset = rng_.below(shared_ ? 0x1800 : 0x780) & ~uint64_t{7};
    if (rng_.once_in(3)) {  // now in this page, now in that
      base = slot(kAddress);
      emit({.op = Op::andi64, .d = base, .a = phase_or_iteration(), .imm = 7});
      emit({.op = Op::add_lsl64, .d = base, .a = slot(kStack), .b = base,
            .imm = rng_.pick({0u, 1u, 3u, 4u, shared_ ? 8u : 4u})});
      offset = rng_.below(shared_ ? 0x1000 : 0x600) & ~uint64_t{7};
    }
    if (log2_size < 3 && rng_.coin()) offset += uint64_t{1} << log2_size;
    emit({.op = random_access(true, log2_size).op, .d = t, .a = base, .imm = offset});
    if (rng_.once_in(3)) emit({.op = Op::add32, .d = data(), .a = source(), .b = source()});
    const uint32_t size_of_part = rng_.once_in(4) ? rng_.below(log2_size + 1) : log2_size;
    const Access part = random_access(false, size_of_part);
    emit({.op = part.op, .d = loaded(), .a = base, .imm = offset});
  }
  // In some rounds some lanes have an address where nothing is.
  void emit_fault() {
    const Slot a = slot(kAddress), round = slot(kScratch);
    emit({.op = Op::andi64, .d = round, .a = slot(kIteration), .imm = 31});
    emit({.op = Op::sel_cmp,
          .d = a,
          .a = slot(kHole),
          .b = slot(kCell),
          .c = round,
          .e = slot(rng_.coin() ? kCore : kNoise2),
          .aux = compare_kind(CompareRelation::kEqual)});
    emit_direct(random_access(rng_.coin()), a, 0);
  }

  // --- atomics

  void emit_atomic() {
    const auto log2_size = static_cast<uint8_t>(rng_.below(4));
    const auto op =
        static_cast<Op>(static_cast<int>(Op::amo_add) + static_cast<int>(rng_.below(11)));
    const Slot a = slot(kAddress), cell = slot(kCell);
    switch (rng_.below(7)) {
      case 0:
        if (shared_) emit_contended(op, log2_size);
        return;
      case 1:
      case 2: {
        const Slot own = rng_.coin() ? cell : slot(kOwn + log2_size);
        emit({.op = op, .d = data(), .a = own, .b = source(), .aux = log2_size});
        return;
      }
      case 3:
        emit_index(7);
        emit({.op = Op::add_lsl64, .d = a, .a = cell, .b = slot(kIndex), .imm = 3});
        emit({.op = op, .d = data(), .a = a, .b = source(), .aux = log2_size});
        return;
      case 4: {
        const Slot old = slot(kOldValue);
        emit({.op = Op::ld64, .d = old, .a = cell});
        Uop u{.op = Op::cas, .d = data(), .a = cell, .b = source(), .aux = 3};
        u.c = rng_.coin() ? old : source();
        emit(u);
        return;
      }
      case 5:
        emit({.op = Op::mov, .d = slot(kMark), .a = cell});
        emit({.op = Op::ld64, .d = slot(kMark + 1), .a = cell});
        emit({.op = Op::stx, .d = data(), .a = cell, .b = source(), .c = slot(kMark), .aux = 3});
        return;
      default:
        if (rng_.coin())
          emit({.op = Op::fence});
        else
          emit(Uop{.op = Op::check_align, .a = cell, .imm = 8 * rng_.below(3)}.with_imm16(8));
    }
  }
  void emit_contended(Op op, uint8_t log2_size) {
    const Slot a = slot(kAddress), old = slot(kOldValue);
    if (order_matters_) {
      emit_index(rng_.pick<uint64_t>({0, 3, 7}));
      emit({.op = Op::add_lsl64, .d = a, .a = slot(kCounters), .b = slot(kIndex), .imm = 3});
      if (rng_.coin()) op = Op::amo_add;
      emit({.op = op, .d = data(), .a = a, .b = source(), .aux = log2_size});
    } else {  // only the sum counts
      const Slot by = rng_.coin() ? source() : slot(kCore);
      emit({.op = Op::amo_add, .d = old, .a = slot(kCounters), .b = by, .aux = 3});
      emit({.op = Op::konst, .d = old});
    }
  }

  // --- control flow

  void emit_action() {
    const uint32_t k = rng_.below(4 + 3 + fp_weight_ + memory_weight_);
    if (k < 4) return emit_value();
    if (k < 4 + 3) return emit_form();
    if (k < 4 + 3 + fp_weight_) return emit_fp();
    if (rng_.once_in(5)) return emit_atomic();
    if (faulty_ && rng_.once_in(3)) return emit_fault();
    emit_memory();
  }
  void emit_actions(uint32_t most) {
    for (uint32_t n = rng_.below(most + 1); n > 0; --n) emit_action();
  }

  // From br_eq64 to `last`.
  Op random_branch_op(Op last) {
    for (;;) {
      const auto first = static_cast<uint32_t>(Op::br_eq64);
      const auto op = static_cast<Op>(first + rng_.below(static_cast<uint32_t>(last) - first + 1));
      const Shape shape = op_info(op).shape;
      if (shape == Shape::kBrAB || shape == Shape::kBrAI) return op;
    }
  }
  Uop random_branch() {
    if (rng_.once_in(3)) return compacting_branch();
    return rng_.once_in(3) ? crossing_branch() : any_branch();
  }
  Uop any_branch() {
    Uop u{.op = random_branch_op(Op::br_cond)};
    u.a = u.op == Op::br_cond ? slot(kFlags) : source();
    if (op_info(u.op).shape == Shape::kBrAB) {
      u.b = source();
    } else if (u.op == Op::br_bit0 || u.op == Op::br_bit1) {
      u.set_imm16(static_cast<uint16_t>(rng_.below(64)));
    } else {
      u.set_imm16(static_cast<uint16_t>(rng_.pick<uint64_t>(
          {rng_.next(), rng_.below(3) - uint64_t{1}, rng_.below(64), random_phase(), 5000})));
      if (u.op != Op::br_cond && rng_.once_in(3)) u.a = slot(kPhase);
    }
    return u;
  }
  // Its operands are lanes that look compact for a while.
  Uop compacting_branch() {
    Uop u{.op = random_branch_op(Op::bri_geu32), .a = data()};
    if (rng_.coin()) u.a = slot(kFirstData);
    emit_lanes_for_a_while(u.a);
    if (op_info(u.op).shape == Shape::kBrAI) {
      u.set_imm16(rng_.pick<uint16_t>({0, 1, 5000, 64, 63, 0x7fff, 0xffff}));
    } else if (rng_.coin()) {
      u.b = data();
      emit_lanes_for_a_while(u.b);
    } else {
      u.b = rng_.coin() ? slot(kIteration) : data();
    }
    return u;
  }
  // Compares affine values, one of which passes the other as rounds go by.
  Uop crossing_branch() {
    Uop u{.op = random_branch_op(Op::bri_geu32), .a = data()};
    emit({.op = Op::lsli64, .d = u.a, .a = slot(kCore), .imm = rng_.below(4)});
    if (rng_.coin())
      emit({.op = Op::sub64, .d = u.a, .a = u.a, .b = slot(kIteration)});
    else
      emit({.op = Op::sub64, .d = u.a, .a = slot(kIteration), .b = u.a});
    uint64_t bias = rng_.below(rounds_);
    if (rng_.coin())
      bias += rng_.pick<uint64_t>(
          {0x7ffffe00, 0xfffffe00, 0x3ffffffffffffe00, 0x7ffffffffffffe00, 0 - uint64_t{512}});
    const Op add = rng_.once_in(4) ? Op::addi32 : Op::addi64;
    emit({.op = add, .d = u.a, .a = u.a, .imm = bias});
    if (op_info(u.op).shape == Shape::kBrAI) {
      u.set_imm16(static_cast<uint16_t>(
          rng_.pick<uint64_t>({0, 1, rng_.below(256), 0x7f00, 0xff00, 0xffff})));
      return u;
    }
    u.b = data();
    if (u.b == u.a || rng_.once_in(3))
      u.b = slot(kCore);
    else if (rng_.coin())
      emit({.op = Op::konst, .d = u.b, .imm = bias});
    else
      emit({.op = Op::addi64, .d = u.b, .a = slot(rng_.coin() ? kCore : kPhase), .imm = bias});
    return u;
  }

  void emit_diamond() {
    const uint32_t over = new_label();
    const Uop branch = random_branch();
    end_block(branch, over);
    emit_use(branch.a);
    emit_actions(4);
    if (rng_.coin()) {
      const uint32_t join = new_label();
      end_block({.op = Op::jmp}, join);
      bind(over);
      emit_use(branch.a);
      emit_actions(4);
      bind(join);
    } else {
      bind(over);
      emit_use(branch.a);
    }
  }
  // What a branch made of its operand shows, in most cases.
  void emit_use(Slot operand) {
    if (rng_.once_in(3)) return;
    emit({.op = Op::add64, .d = data(), .a = operand, .b = source()});
  }
  void emit_inner_loop(uint32_t depth) {
    const Slot i = slot(kInnerRounds);
    in_inner_loop_ = true;
    if (rng_.coin()) {
      emit({.op = Op::konst, .d = i, .imm = 1 + rng_.below(3)});
    } else {
      emit({.op = Op::andi64, .d = i, .a = source(), .imm = 3});
      emit({.op = Op::addi64, .d = i, .a = i, .imm = 1});
    }
    const uint32_t head = new_label();
    bind(head);
    emit_sequence(depth + 1, false);
    emit({.op = Op::addi64, .d = i, .a = i, .imm = ~uint64_t{0}});
    if (rng_.coin())
      end_block({.op = Op::bri_ne64, .a = i}, head);
    else
      end_block(Uop{.op = Op::bri_ge64, .a = i}.with_imm16(1), head);
    in_inner_loop_ = false;
  }
  void emit_call() {
    const uint32_t back = new_label(), function = functions_[rng_.below(functions_.size())];
    constexpr auto kCall = static_cast<uint8_t>(JumpHint::kCall);
    emit_pc(slot(kLink), back);
    if (rng_.coin()) {
      end_block({.op = Op::jmp, .aux = kCall}, function);
    } else {
      emit_pc(slot(kJumpTo), function);
      if (rng_.coin()) {
        emit_pc(slot(kScratch), functions_[0]);
        emit_select(slot(kJumpTo), slot(kScratch), slot(kJumpTo), phase_or_source());
      }
      end_block({.op = Op::jmp_reg, .a = slot(kJumpTo), .aux = kCall});
    }
    bind(back);
  }
  void emit_indirect_jump() {
    const uint32_t first = new_label(), second = new_label();
    emit_pc(slot(kJumpTo), first);
    emit_pc(slot(kScratch), second);
    emit_select(slot(kJumpTo), slot(kScratch), slot(kJumpTo), phase_or_source());
    end_block({.op = Op::jmp_reg, .a = slot(kJumpTo)});
    bind(first);
    emit_actions(4);
    bind(second);
  }
  void emit_sequence(uint32_t depth, bool in_function) {
    for (uint32_t n = 1 + rng_.below(depth == 0 ? 4 : 2); n > 0; --n) {
      emit_actions(6);
      if (depth >= 2) continue;
      switch (rng_.below(8)) {
        case 0:
        case 1:
        case 2:
          emit_diamond();
          break;
        case 3:
          if (!in_function && !in_inner_loop_) emit_inner_loop(depth);
          break;
        case 4:
          if (!in_function) emit_call();
          break;
        case 5:
          emit_indirect_jump();
          break;
        case 6:
          if (!in_function && rng_.once_in(8)) {  // some cores leave early
            end_block({.op = Op::br_eq64, .a = slot(kIteration), .b = slot(kNoise2)}, exit_);
            break;
          }
          [[fallthrough]];
        default:
          if (rng_.coin()) bind(new_label());
      }
    }
  }

  void emit_loop() {
    const Slot iteration = slot(kIteration), phase = slot(kPhase), rounds = slot(kRounds);
    const auto random_add = [&](uint32_t n) { return rng_.once_in(n) ? Op::addi32 : Op::addi64; };
    const uint32_t head = new_label();
    bind(head);
    emit({.op = random_add(4), .d = iteration, .a = iteration, .imm = 1});
    emit({.op = Op::lsri64, .d = phase, .a = iteration, .imm = phase_shift_});
    if (rng_.once_in(5)) emit({.op = Op::andi64, .d = phase, .a = phase, .imm = 1});
    emit_sequence(0, false);
    emit({.op = random_add(2), .d = rounds, .a = rounds, .imm = ~uint64_t{0}});
    switch (rng_.below(3)) {
      case 0:
        end_block({.op = Op::bri_ne32, .a = rounds}, head);
        break;
      case 1:
        end_block({.op = Op::bri_ne64, .a = rounds}, head);
        break;
      default:
        end_block(Uop{.op = Op::bri_ge32, .a = rounds}.with_imm16(1), head);
    }
  }
  void emit_program() {
    exit_ = new_label();
    functions_ = {new_label(), new_label()};
    emit_actions(5);
    emit_loop();
    if (rng_.once_in(3)) {
      const Slot rounds = slot(kRounds);
      emit({.op = Op::andi64, .d = rounds, .a = slot(kNoise2), .imm = 127});
      emit({.op = Op::addi64, .d = rounds, .a = rounds, .imm = 20});
      emit_loop();
    }
    bind(exit_);
    end_block({.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)});
    for (const uint32_t function : functions_) {
      bind(function);
      emit_sequence(1, true);
      end_block(
          {.op = Op::jmp_reg, .a = slot(kLink), .aux = static_cast<uint8_t>(JumpHint::kReturn)});
    }
  }

  // Labels become micro-ops and addresses.
  void finish() {
    Module& m = case_.module;
    for (Uop& u : m.uops) {
      if (!shape_info(op_info(u.op).shape).has_target || u.op == Op::link) continue;
      u.imm = Uop::pack_target(u.block(), m.blocks[labels_[u.target()]].first_uop);
    }
    for (const auto& [at, label] : pcs_) m.uops[at].imm = m.blocks[labels_[label]].pc;
    m.isa = "random";
    m.slot_count = static_cast<uint32_t>(case_.slots.size());
    m.entry = kText;
    m.code.text_base = kText;
    constexpr uint64_t kInsns = kBlockBytes / 4;
    m.code.uop_at.assign(m.blocks.size() * kInsns, kNoUop);
    m.code.insn_class.assign(m.code.uop_at.size(), 0);
    m.uop_block.assign(m.uops.size(), 0);
    m.uop_insn.assign(m.uops.size(), 0);
    for (uint32_t b = 0; b < m.blocks.size(); ++b) {
      const Block& block = m.blocks[b];
      m.code.uop_at[b * kInsns] = block.first_uop;
      for (uint32_t i = 0; i < block.uop_count; ++i) m.uop_block[block.first_uop + i] = b;
    }
    case_.exit_uop = m.blocks[labels_[exit_]].first_uop;
    case_.resumed_faults = 15;
  }

  Rng rng_;
  Case case_;
  bool order_matters_ = false;
  uint32_t cores_ = 0, rounds_ = 0, fp_weight_ = 0, memory_weight_ = 0;
  uint64_t phase_shift_ = 0;  // log2 of the rounds of a phase
  bool shared_ = true, faulty_ = false;
  bool names_fp_state_ = false;  // the floating-point state is read and written like data, too
  bool single_floats_ = false;
  std::vector<Slot> slots_;  // by role
  uint32_t data_count_ = 0;
  std::array<uint64_t, 4> plane_shift_{};
  bool in_block_ = false, in_inner_loop_ = false;
  Block block_;
  std::vector<uint32_t> labels_;                  // their blocks
  std::vector<std::pair<size_t, uint32_t>> pcs_;  // micro-ops that hold the addresses of labels
  std::vector<uint32_t> functions_;
  uint32_t exit_ = 0;
};

}  // namespace

LoopCase random_loop(uint64_t seed) { return Generator(seed).make(); }

}  // namespace gpusim::difftest
