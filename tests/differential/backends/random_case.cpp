#include "tests/differential/backends/random_case.h"

#include <algorithm>
#include <sstream>

#include "tests/differential/backends/uop_fields.h"

namespace gpusim::difftest {
namespace {

// Slots. Data slots are anybody's; the others have one use, so that programs end and cores that
// share memory do not race.
constexpr uint32_t kData = 24;
constexpr Slot kFpState = 24, kFpState2 = 25;
constexpr Slot kMark = 26;        // and the two after it: what a store-exclusive looks at
constexpr Slot kAddress = 29, kIndex = 30, kJumpTo = 31, kLink = 32, kIgnored = 33;
constexpr Slot kFlags = 34, kFlags2 = 35;  // mostly what conditions look at; never above 15
constexpr Slot kFirstCounter = 36;
constexpr uint32_t kCounters = 4;
constexpr Slot kFirstPointer = 40;

constexpr uint64_t kText = 0x10000;
constexpr uint64_t kLinear = 0x400000;
constexpr uint64_t kStack = 0x5500000000;

// Where programs access memory through a pointer slot.
struct Pointer {
  uint64_t base = 0, stride = 0;
  int64_t from = 0, to = 0;  // valid offsets
  bool writable = false;
  bool atomics = false;      // no other core comes here
  bool rare = false;         // some or all accesses fault
};

class Generator {
 public:
  Generator(uint64_t seed, uint32_t cores, MemoryModel model) : rng_(seed) {
    case_.config.cores = cores;
    case_.config.memory_model = model;
    shared_ = model == MemoryModel::kShared;
  }

  Case make() {
    case_.memory_seed = rng_.next();
    if (rng_.once_in(8)) case_.config.max_instructions = 1 + rng_.below(60);
    lay_out_memory();
    for (uint32_t s = 0; s < kData; ++s) case_.slots.push_back(random_slot());
    vectors_ = static_cast<Slot>(kFirstPointer + pointers_.size());
    case_.slots.resize(vectors_ + size_t{vector::kSlotCount});
    for (int i = 0; i < vector::kRegisters * vector::kWords; ++i)
      case_.slots[static_cast<size_t>(vectors_ + vector::kFirstRegister + i)] = random_slot();
    for (Slot s : {kFpState, kFpState2}) case_.slots[s] = random_fp_state();
    for (Slot s : {kFlags, kFlags2})
      if (rng_.coin()) fill(case_.slots[s], [&] { return rng_.below(16); });
    for (uint32_t i = 0; i < kCounters; ++i) case_.slots[kFirstCounter + i] = random_counter();
    for (size_t i = 0; i < pointers_.size(); ++i)
      case_.slots[kFirstPointer + i] = {pointers_[i].base, pointers_[i].stride, {}};
    case_.ignored.assign(case_.slots.size(), false);
    case_.ignored[kIgnored] = true;
    Module& m = case_.module;
    m.isa = "random";
    m.slot_count = static_cast<uint32_t>(case_.slots.size());
    m.code.text_base = kText;
    for (Slot s = 0; s < 3; ++s)
      if (rng_.coin()) m.initial_values.push_back({s, rng_.next()});
    emit_program();
    return std::move(case_);
  }

 private:
  // --- data

  SlotData random_slot() {
    SlotData d;
    switch (rng_.below(8)) {
      case 0: d.base = interesting_integer(rng_); break;
      case 1: d.base = interesting_float(rng_); break;
      case 2:
      case 3:
        d.base = rng_.coin() ? rng_.below(1000) : interesting_integer(rng_);
        d.stride = rng_.coin() ? rng_.pick<uint64_t>({1, 2, 4, 8, 64, 4096, ~uint64_t{0}})
                               : interesting_integer(rng_);
        break;
      case 4: d.values = {interesting_integer(rng_), interesting_integer(rng_)}; break;
      case 5: fill(d, [&] { return interesting_integer(rng_); }); break;
      case 6: fill(d, [&] { return interesting_float(rng_); }); break;
      default:
        // One core in the group differs.
        d.values.assign(37, interesting_integer(rng_));
        d.values[rng_.below(37)] = interesting_integer(rng_);
        break;
    }
    return d;
  }
  template <class F>
  void fill(SlotData& d, F f) {
    d.values.resize(std::min<uint32_t>(case_.config.cores, 97));
    for (uint64_t& v : d.values) v = f();
  }
  SlotData random_fp_state() {
    // FPCR: AHP, DN, FZ, RMode, FZ16. FPSR: the cumulative flags and QC.
    const auto state = [&] {
      const uint64_t control = rng_.coin() ? 0 : rng_.next() & 0x07c80000;
      const uint64_t status = rng_.coin() ? 0x10 : rng_.next() & 0x0800009f;
      return control << 32 | status;
    };
    SlotData d;
    if (rng_.coin()) d.base = rng_.coin() ? 0 : state();
    else if (rng_.coin()) d.values = {state(), state()};
    else fill(d, state);
    return d;
  }
  SlotData random_counter() {
    SlotData d;
    if (rng_.coin()) d.base = rng_.below(5);
    else fill(d, [&] { return rng_.below(5); });
    return d;
  }

  // --- memory

  uint64_t page_up(uint64_t n) { return (n + 4095) & ~uint64_t{4095}; }

  void lay_out_memory() {
    MachineConfig& config = case_.config;
    const uint64_t cores = config.cores;
    config.window_shift = cores > 100 ? 13 : 13 + rng_.below(3);
    const uint64_t window = uint64_t{1} << config.window_shift;
    config.linear_base = kLinear;
    uint64_t at = kLinear;
    const auto region = [&](uint64_t size, uint8_t flags) {
      const uint64_t address = at;
      case_.regions.push_back({address, page_up(size), flags});
      at += page_up(size);
      return address;
    };
    const uint64_t constants = region(2 * 4096 + cores * 64, kRead);
    const uint64_t hole = region(4096 + 8 * cores, 0);
    uint64_t cells = 0;
    const uint64_t cells_size = cores * (1 + 2 + 4 + 8 + 8 + 64 + 64) + 4096;
    if (shared_) cells = region(cells_size, kRead | kWrite);
    const uint64_t counters = shared_ ? region(4096, kRead | kWrite) : 0;
    const uint64_t write_only = region(4096 + 8 * cores, shared_ ? 0 : uint8_t{kWrite});
    const uint64_t last = region(4096, kRead);
    config.linear_size = at - kLinear;
    config.window_base = rng_.coin() ? at : 0x7000000000;
    const uint64_t windows = config.window_base, apart = shared_ ? window : 0;
    // Windows: a page of the core's own, a page that all may read, pages with flags by core.
    case_.regions.push_back({windows, 4096, kRead | kWrite});
    const uint32_t period = rng_.coin() ? 0 : 2 + rng_.below(7);
    case_.regions.push_back({windows + 4096, 4096, kRead, period, 0});
    if (window > 8192)
      case_.regions.push_back({windows + 8192, window - 8192, kRead | kWrite, period, kRead});
    if (!shared_) case_.regions[case_.regions.size() - 1].flags = kRead | kWrite;
    if (!shared_ && window > 8192 && rng_.coin()) {
      config.stack_base = kStack;
      config.stack_size = 4096;
      case_.regions.back().size_bytes -= config.stack_size;
      case_.regions.push_back({kStack, config.stack_size, kRead | kWrite});
    }

    const auto add = [&](Pointer p) { pointers_.push_back(p); };
    add({constants, 0, 0, 8192, false});
    add({constants, rng_.pick<uint64_t>({1, 2, 4, 8}), 0, 64, false});
    add({constants + cores * 32, rng_.pick<uint64_t>({8, 16, 24, 40, ~uint64_t{7}, ~uint64_t{0}}),
         0, 64, false});
    add({constants + 4096, 0, -16, 16, false});
    const int64_t page = 4096;
    const auto end = static_cast<int64_t>(window - config.stack_size);
    add({windows, apart, 0, page, true, true});
    add({windows + 512, apart, -256, 256, true, true});
    if (shared_) {
      for (uint64_t size : {1, 2, 4, 8}) {
        add({cells, size, 0, static_cast<int64_t>(size), true, true});
        cells += (cores * size + 63) & ~uint64_t{63};
      }
      add({cells + 8 * (cores - 1), 0 - uint64_t{8}, 0, 8, true, true});
      cells += (8 * cores + 63) & ~uint64_t{63};
      add({cells, 64, 0, 64, true, true});
      cells += 64 * cores;
      add({cells, 64, 0, 16, true, true});
      counters_ = counters;
    } else {
      // Any address in the own window is the core's own business.
      for (uint64_t stride : {1, 2, 4, 8, 64, 3})
        add({windows + (cores * stride < 4000 ? 0 : 2048), cores * stride < 4000 ? stride : 0, 0,
             64, true, true});
      add({windows + 2048, cores < 100 ? ~uint64_t{7} : 0, -128, 16, true, true});
    }
    if (config.stack_size != 0) {
      add({kStack, 0, 0, 4096, true, true});
      add({kStack + 2048, cores < 100 ? uint64_t{8} : 0, -1024, 1024, true, true});
      add({kStack - 4, 0, -8, 8, false, false, true});
      add({kStack + 4096 - 4, 0, -16, 16, false, false, true});
    }
    // Another core's window, lane by lane and all at the first's.
    add({windows + 4096, 0, 0, page, false, false, period != 0});
    add({windows + 4096 + (shared_ ? (cores / 2) * window : 0), 0, 0, page, false, false,
         period != 0});
    if (window > 8192)
      add({windows + 8192, apart, 0, end - 8192, true, true, period != 0});
    // Faults: everywhere, off the end for the upper cores, across the ends of pages and zones.
    add({hole, 8, 0, 64, true, true, true});
    const bool touching = windows == at;  // then core 0's window is where a shared run would go on
    add({last + 4096 - 8 * (cores / 2 + 1), shared_ && touching ? uint64_t{0} : 8, 0, 8, false,
         false, true});
    add({hole - 4, 0, -8, 8, true, true, true});
    add({write_only, 8, 0, 64, false, false, true});
    add({constants, 64, 0, 8, true, true, true});
    add({windows + window - 4, apart, -16, shared_ ? 4 : 16, true, false, true});
    add({windows + 4096 - 4, apart, -16, 16, true, false, true});
    add({windows - 4, 0, -8, 4, false, false, true});
    add({0, 0, 0, 64, true, true, true});
    add({0 - uint64_t{8}, 0, -8, 16, false, false, true});
  }

  // --- code

  Slot flags() { return rng_.coin() ? kFlags : kFlags2; }
  Slot data() { return static_cast<Slot>(rng_.below(kData)); }
  Slot source() {
    if (rng_.once_in(12)) return static_cast<Slot>(kFirstPointer + rng_.below(pointers_.size()));
    if (rng_.once_in(20)) return static_cast<Slot>(kFirstCounter + rng_.below(kCounters));
    return data();
  }
  Uop& emit(Uop u) {
    case_.module.uops.push_back(u);
    return case_.module.uops.back();
  }

  void emit_value() {
    // Half of them where affine values have rules.
    Op op;
    if (rng_.once_in(3)) {
      op = rng_.once_in(25) ? Op::konst : random_value_op(traits::kAffine, rng_);
    } else {
      do op = static_cast<Op>(rng_.below(kOpCount));
      while (op_info(op).shape > Shape::kGABC);
    }
    Uop u{.op = op, .d = data(), .a = source(), .b = source(), .c = source()};
    random_fields(u, rng_.once_in(4) ? kFpState2 : kFpState, rng_);
    if (op == Op::sel_cmp) u.e = source();
    const bool makes_flags = (op >= Op::fl_add64 && op <= Op::fl_nz32) || op == Op::fcmp;
    if (makes_flags && !rng_.once_in(4)) u.d = flags();
    if (op == Op::cset) u.a = flags();
    if (op_info(op).shape == Shape::kSel && !rng_.once_in(4)) {
      u.c = flags();
      if (rng_.coin()) emit({.op = Op::andi64, .d = u.c, .a = source(), .imm = 15});
    }
    emit(u);
  }

  uint32_t pick_pointer(bool writable, bool atomics = false) {
    for (;;) {
      const uint32_t i = rng_.below(pointers_.size());
      const Pointer& p = pointers_[i];
      if ((writable && !p.writable) || (atomics && !p.atomics)) continue;
      if (p.rare && !rng_.once_in(30)) continue;
      return i;
    }
  }
  // An offset of `size` bytes within the pointer's range.
  int64_t offset_in(const Pointer& p, int64_t size) {
    const int64_t room = std::max<int64_t>(p.to - p.from - size, 0);
    int64_t offset = rng_.below(static_cast<uint64_t>(room) + 1);
    if (!rng_.once_in(4)) offset &= ~(size - 1);
    return p.from + offset;
  }

  void emit_access(bool store) {
    const auto op = static_cast<Op>(static_cast<int>(store ? Op::st8 : Op::ldu8) +
                                    static_cast<int>(rng_.below(store ? 12 : 27)));
    const Shape shape = op_info(op).shape;
    const int64_t size = access_size(op);
    uint32_t which = pick_pointer(store);
    while (pointers_[which].to - pointers_[which].from < size) which = pick_pointer(store);
    const Pointer& p = pointers_[which];
    Uop u{.op = op, .d = store ? source() : data(), .a = static_cast<Slot>(kFirstPointer + which)};
    if (shape == Shape::kLdI || shape == Shape::kStI) {
      u.imm = static_cast<uint64_t>(offset_in(p, size));
      if (rng_.once_in(4)) {  // through a computed pointer
        emit({.op = Op::addi64, .d = kAddress, .a = u.a, .imm = u.imm});
        u.a = kAddress;
        u.imm = 0;
      }
      emit(u);
      return;
    }
    // The index: constant, the same for all, or what data says. Shifted, it stays in range.
    if (p.to < size) return emit_access(store);
    const bool narrow = shape == Shape::kLdW || shape == Shape::kStW;
    const auto scale = static_cast<uint64_t>(rng_.below(4));
    const int64_t room = p.to - std::max<int64_t>(p.from, 0) - size;
    uint64_t mask = 0;
    while (static_cast<int64_t>((2 * mask + 1) << scale) <= room) mask = 2 * mask + 1;
    u.b = kIndex;
    u.imm = scale;
    if (rng_.once_in(3) || mask == 0) {
      emit({.op = Op::konst, .d = kIndex, .imm = rng_.next() & mask});
    } else {
      emit({.op = Op::andi64, .d = kIndex, .a = source(), .imm = mask});
      if (p.from < 0 && static_cast<int64_t>(((mask + 1) / 2) << scale) <= -p.from)
        emit({.op = narrow ? Op::addi32 : Op::addi64, .d = kIndex, .a = kIndex,
              .imm = 0 - (mask + 1) / 2});
    }
    if (narrow && rng_.coin())  // the upper half does not count
      emit({.op = Op::bfi64, .d = kIndex, .a = source(), .b = kIndex, .aux = 32,
            .imm = ~uint64_t{0} << 32});
    emit(u);
  }
  static int64_t access_size(Op op) {
    const std::string name = op_info(op).name;
    if (name.find("64") != std::string::npos) return 8;
    if (name.find("32") != std::string::npos) return 4;
    return name.find("16") != std::string::npos ? 2 : 1;
  }

  // A pointer spilled to the own window and loaded again.
  void emit_spill() {
    const uint32_t own = 4, which = pick_pointer(false);
    const auto at = static_cast<uint64_t>(8 * rng_.below(500));
    const auto slot = static_cast<Slot>(kFirstPointer + own);
    emit({.op = Op::st64, .d = static_cast<Slot>(kFirstPointer + which), .a = slot, .imm = at});
    emit({.op = Op::ld64, .d = kAddress, .a = slot, .imm = at});
    const Pointer& p = pointers_[which];
    const int64_t size = p.to - p.from >= 8 ? 8 : 1;
    emit({.op = size == 8 ? Op::ld64 : Op::ldu8, .d = data(), .a = kAddress,
          .imm = static_cast<uint64_t>(offset_in(p, size))});
  }

  // kAddress = an address that fits 1 << log2_size bytes; now and then misaligned.
  void emit_atomic_address(uint32_t log2_size) {
    const int64_t size = int64_t{1} << log2_size;
    uint32_t which;
    do which = pick_pointer(true, true);
    while (pointers_[which].to - pointers_[which].from < size);
    const Pointer& p = pointers_[which];
    const auto slot = static_cast<Slot>(kFirstPointer + which);
    int64_t offset = offset_in(p, size) & ~(size - 1);
    if (offset < p.from) offset += size;
    emit({.op = Op::addi64, .d = kAddress, .a = slot, .imm = static_cast<uint64_t>(offset)});
    // Strides below the size leave some cores' addresses misaligned, or make cells overlap.
    const bool misaligned = rng_.once_in(60) && !shared_;
    if (!misaligned && (!shared_ || (p.stride % static_cast<uint64_t>(size) == 0)))
      emit({.op = Op::andi64, .d = kAddress, .a = kAddress, .imm = ~static_cast<uint64_t>(size - 1)});
  }
  void emit_atomic() {
    const auto log2_size = static_cast<uint8_t>(rng_.below(4));
    switch (rng_.below(6)) {
      case 0:
        if (counters_ != 0) {  // contended: which old value a core sees is a matter of time
          emit({.op = Op::konst, .d = kAddress, .imm = counters_ + 16 * log2_size + 8 * rng_.below(2)});
          emit({.op = Op::amo_add, .d = kIgnored, .a = kAddress, .b = source(), .aux = log2_size});
          return;
        }
        [[fallthrough]];
      case 1:
      case 2:
        emit_atomic_address(log2_size);
        emit({.op = static_cast<Op>(static_cast<int>(Op::amo_add) +
                                    static_cast<int>(rng_.below(11))),
              .d = data(), .a = kAddress, .b = source(), .aux = log2_size});
        return;
      case 3:
        emit_atomic_address(log2_size);
        if (rng_.coin()) emit({.op = Op::ldu8, .d = 3, .a = kAddress});
        emit({.op = Op::cas, .d = data(), .a = kAddress, .b = source(),
              .c = rng_.coin() ? Slot{3} : source(), .aux = log2_size});
        return;
      case 4: {
        const auto d = static_cast<Slot>(rng_.below(kData - 1));
        emit_atomic_address(4);
        if (rng_.coin()) {
          emit({.op = Op::ld64, .d = d, .a = kAddress});
          emit({.op = Op::ld64, .d = static_cast<Slot>(d + 1), .a = kAddress, .imm = 8});
        }
        emit({.op = Op::cas128, .d = d, .a = kAddress,
              .b = static_cast<Slot>(rng_.below(kData - 1))});
        return;
      }
      default: {
        const bool pair = rng_.once_in(3);
        emit_atomic_address(pair ? 4 : log2_size);
        constexpr Op kLoads[] = {Op::ldu8, Op::ldu16, Op::ldu32, Op::ld64};
        if (!rng_.once_in(5)) emit({.op = Op::mov, .d = kMark, .a = kAddress});
        emit({.op = pair ? Op::ld64 : kLoads[log2_size], .d = kMark + 1, .a = kAddress});
        if (pair) emit({.op = Op::ld64, .d = kMark + 2, .a = kAddress, .imm = 8});
        if (rng_.once_in(4)) emit_value();
        if (pair)
          emit({.op = Op::stx128, .d = data(), .a = kAddress,
                .b = static_cast<Slot>(rng_.below(kData - 1)), .c = kMark});
        else
          emit({.op = Op::stx, .d = data(), .a = kAddress, .b = source(), .c = kMark,
                .aux = log2_size});
        return;
      }
    }
  }
  void emit_check() {
    const uint32_t which = pick_pointer(false);
    Uop u{.op = Op::check_align, .a = static_cast<Slot>(kFirstPointer + which)};
    u.set_imm16(static_cast<uint16_t>(1u << (rng_.once_in(10) ? rng_.below(5) : 0)));
    u.imm = rng_.below(4) * u.imm16();
    emit(u);
  }

  // On a type that is legal most often. Elements of memory are nobody else's.
  void emit_vector() {
    const auto state = [&](vector::Slots s) { return static_cast<Slot>(vectors_ + s); };
    const auto set = [&](vector::Slots s, uint64_t value) {
      emit({.op = Op::konst, .d = state(s), .imm = value});
    };
    set(vector::kVtype, rng_.once_in(20) ? rng_.next() : rng_.below(4) << 3 | rng_.below(4));
    if (rng_.coin()) set(vector::kVl, rng_.below(70));
    else emit({.op = Op::andi64, .d = state(vector::kVl), .a = source(), .imm = 31});
    if (rng_.once_in(8)) set(vector::kVstart, rng_.below(20));
    Uop u{.op = Op::vector, .d = data(), .a = source(), .b = source(), .c = vectors_};
    random_fields(u, kFpState, rng_);
    const vector::Row row = vector::row_of(vector::Insn::unpack(u.imm).op);
    if (vector::is_access(row.kind)) {
      const bool stores = (row.flags & vector::kStores) != 0;
      if (shared_ && stores) return;
      const uint32_t which = shared_ ? 0 : pick_pointer(stores);
      u.a = static_cast<Slot>(kFirstPointer + which);
      if (row.kind == vector::Kind::kStrided) {
        emit({.op = Op::konst, .d = kIndex, .imm = rng_.below(40)});
        u.b = kIndex;
      }
      if (shared_ && row.kind == vector::Kind::kIndexed) return;
    } else {
      emit({.op = Op::konst, .d = kIndex, .imm = rng_.below(5)});
      u.b = kIndex;
    }
    emit(u);
  }

  void emit_action() {
    if (rng_.once_in(12)) return emit_vector();
    switch (rng_.below(21)) {
      case 0: case 1: case 2: case 3: return emit_access(false);
      case 4: case 5: case 6: return emit_access(true);
      case 7: return emit_atomic();
      case 8: return rng_.once_in(3) ? emit_check() : emit_spill();
      case 9:
        if (rng_.once_in(4)) emit({.op = Op::fence});
        return emit_value();
      case 10:
        emit({.op = Op::note, .a = source(), .b = source(),
              .aux = static_cast<uint8_t>(rng_.below(4)), .imm = rng_.below(64)});
        return;
      default: return emit_value();
    }
  }

  // --- blocks

  void begin_block() {
    block_ = Block{.pc = kText + 0x100 * case_.module.blocks.size(),
                   .first_uop = static_cast<uint32_t>(case_.module.uops.size())};
  }
  void end_block(Uop end, uint32_t target_block = kNoBlock) {
    Module& m = case_.module;
    const auto number = static_cast<uint32_t>(m.blocks.size());
    if (rng_.once_in(6)) {
      // Part of the block lies elsewhere.
      const auto at = static_cast<uint32_t>(m.uops.size());
      emit({.op = Op::link, .imm = Uop::pack_target(number, at + 2)});
      emit({.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kUndefined)});
    }
    end.imm = Uop::pack_target(number, target_block);
    emit(end);
    block_.uop_count = static_cast<uint32_t>(m.uops.size()) - block_.first_uop;
    block_.insn_count = 1 + rng_.below(6);
    for (uint32_t i = 0; i < block_.insn_count; ++i)
      ++block_.classes[rng_.below(kInsnClassCount)];
    m.blocks.push_back(block_);
  }
  void emit_body() {
    for (uint32_t n = 1 + rng_.below(10); n > 0; --n) emit_action();
  }
  uint64_t pc_of(uint32_t block) { return kText + 0x100 * block; }

  Uop random_branch() {
    Op op;
    Shape shape;
    do {
      op = static_cast<Op>(static_cast<int>(Op::br_eq64) +
                           static_cast<int>(rng_.below(static_cast<int>(Op::br_cond) -
                                                       static_cast<int>(Op::br_eq64) + 1)));
      shape = op_info(op).shape;
    } while (shape != Shape::kBrAB && shape != Shape::kBrAI);
    Uop u{.op = op, .a = op == Op::br_cond ? flags() : source()};
    if (shape == Shape::kBrAB) {
      u.b = source();
    } else if (op == Op::br_bit0 || op == Op::br_bit1) {
      u.set_imm16(static_cast<uint16_t>(rng_.below(64)));
    } else {
      u.set_imm16(static_cast<uint16_t>(rng_.coin() ? rng_.next() : rng_.below(3) - 1));
    }
    return u;
  }

  // The jump's target or the other one, by some condition.
  Uop random_choice() {
    return Uop{.op = Op::csel64, .d = kJumpTo, .a = kJumpTo, .b = kIndex, .c = flags()}.with_imm16(
        static_cast<uint16_t>(rng_.next()));
  }

  // Block numbers from `number` on to `end` may be targets; falling out of the last goes to `end`.
  void emit_blocks(uint32_t first, uint32_t end, bool may_call) {
    for (uint32_t number = first; number < end; ++number) {
      begin_block();
      emit_body();
      const auto later = [&] { return number + 1 + rng_.below(std::min(end - number, 4u)); };
      switch (rng_.below(12)) {
        case 0:
          end_block({.op = Op::jmp}, number + 1);
          break;
        case 1:
          if (next_counter_ < kCounters && number > first) {
            const auto counter = static_cast<Slot>(kFirstCounter + next_counter_++);
            emit({.op = Op::addi64, .d = counter, .a = counter, .imm = ~uint64_t{0}});
            end_block(Uop{.op = Op::bri_ge64, .a = counter}.with_imm16(1),
                      first + rng_.below(number - first + 1));
            break;
          }
          [[fallthrough]];
        case 2:
          emit({.op = Op::konst, .d = kJumpTo, .imm = pc_of(later())});
          if (rng_.coin()) {
            emit({.op = Op::konst, .d = kIndex, .imm = rng_.once_in(8) ? 0x123456789 : pc_of(later())});
            emit(random_choice());
          }
          if (rng_.once_in(12))
            emit({.op = Op::addi64, .d = kJumpTo, .a = kJumpTo, .imm = rng_.pick<uint64_t>({1, 2, 4})});
          end_block({.op = Op::jmp_reg, .a = kJumpTo});
          break;
        case 3:
          if (may_call) {
            emit({.op = Op::konst, .d = kLink, .imm = pc_of(number + 1)});
            if (rng_.coin()) {
              end_block({.op = Op::jmp, .aux = static_cast<uint8_t>(JumpHint::kCall)},
                        rng_.once_in(3) ? kFunction2 : kFunction1);
            } else {
              emit({.op = Op::konst, .d = kJumpTo, .imm = kFunction1});
              emit({.op = Op::konst, .d = kIndex, .imm = kFunction2});
              emit(random_choice());
              end_block({.op = Op::jmp_reg, .a = kJumpTo, .aux = static_cast<uint8_t>(JumpHint::kCall)});
            }
            break;
          }
          [[fallthrough]];
        case 4:
          end_block({.op = Op::give_way}, number + 1);
          break;
        case 5: {
          const auto kind = rng_.pick({Service::kSyscall, Service::kReadCounter,
                                       Service::kReadCounterFrequency});
          end_block({.op = Op::service, .d = data(), .aux = static_cast<uint8_t>(kind)}, number + 1);
          break;
        }
        case 6:
          if (rng_.once_in(8)) {
            end_block({.op = Op::trap, .aux = static_cast<uint8_t>(
                           rng_.pick({Fault::kUndefined, Fault::kBreakpoint}))});
            break;
          }
          [[fallthrough]];
        default: end_block(random_branch(), later()); break;
      }
    }
  }

  void emit_program() {
    Module& m = case_.module;
    const uint32_t main_blocks = 2 + rng_.below(12);
    emit_blocks(0, main_blocks, true);
    begin_block();
    const uint32_t exit = main_blocks;
    end_block({.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)});
    std::vector<uint32_t> functions;
    for (int f = 0; f < 2; ++f) {
      const auto first = static_cast<uint32_t>(m.blocks.size());
      functions.push_back(first);
      emit_blocks(first, first + 1 + rng_.below(3), false);
      begin_block();
      emit_body();
      end_block({.op = Op::jmp_reg, .a = kLink, .aux = static_cast<uint8_t>(JumpHint::kReturn)});
    }
    // Block numbers become micro-ops and addresses.
    for (Uop& u : m.uops) {
      if (u.op == Op::konst && (u.imm == kFunction1 || u.imm == kFunction2))
        u.imm = pc_of(functions[u.imm == kFunction2]);
      const ShapeInfo shape = shape_info(op_info(u.op).shape);
      if (!shape.has_target || u.op == Op::link) continue;
      uint32_t target = u.target();
      if (target == kFunction1 || target == kFunction2) target = functions[target == kFunction2];
      u.imm = Uop::pack_target(u.block(), m.blocks[target].first_uop);
    }
    m.entry = kText;
    m.code.uop_at.assign(m.blocks.size() * 0x40, kNoUop);
    m.code.insn_class.assign(m.code.uop_at.size(), 0);
    m.uop_block.assign(m.uops.size(), 0);
    m.uop_insn.assign(m.uops.size(), 0);
    for (uint32_t b = 0; b < m.blocks.size(); ++b) {
      m.code.uop_at[b * 0x40] = m.blocks[b].first_uop;
      for (uint32_t i = 0; i < m.blocks[b].uop_count; ++i)
        m.uop_block[m.blocks[b].first_uop + i] = b;
    }
    case_.exit_uop = m.blocks[exit].first_uop;
  }

  static constexpr uint32_t kFunction1 = 0xfffffff1, kFunction2 = 0xfffffff2;

  Rng rng_;
  Case case_;
  bool shared_ = true;
  std::vector<Pointer> pointers_;
  Slot vectors_ = 0;  // the state of vector micro-ops
  uint64_t counters_ = 0;
  Block block_;
  uint32_t next_counter_ = 0;
};

}  // namespace

Case random_case(uint64_t seed, uint32_t cores, MemoryModel model) {
  return Generator(seed, cores, model).make();
}

std::string print_uop(const Module& module, uint32_t at) {
  const Uop& u = module.uops[at];
  std::ostringstream out;
  out << at << ": " << op_info(u.op).name << " d=" << int(u.d) << " a=" << int(u.a)
      << " b=" << int(u.b) << " c=" << int(u.c) << " e=" << int(u.e) << " aux=" << int(u.aux);
  const ShapeInfo shape = shape_info(op_info(u.op).shape);
  if (shape.ends_block) out << " block=" << u.block() << " target=" << u.target();
  else out << " imm=0x" << std::hex << u.imm;
  return out.str();
}

std::string print_case(const Case& c) {
  std::ostringstream out;
  out << c.config.cores << " cores, "
      << (c.config.memory_model == MemoryModel::kShared ? "shared" : "private")
      << " memory, linear zone 0x" << std::hex << c.config.linear_base << " + 0x"
      << c.config.linear_size << ", windows 0x" << c.config.window_base << std::dec << " of 1 << "
      << c.config.window_shift << ", limit " << c.config.max_instructions << '\n';
  for (uint32_t i = 0; i < c.module.uops.size(); ++i) {
    if (c.module.uops[i].op == Op::fence) continue;  // what is left of a shrunk program
    for (uint32_t b = 0; b < c.module.blocks.size(); ++b)
      if (c.module.blocks[b].first_uop == i) out << "block " << b << ":\n";
    out << "  " << print_uop(c.module, i) << '\n';
  }
  for (size_t s = 0; s < c.slots.size(); ++s) {
    const SlotData& d = c.slots[s];
    if (d.values.empty() && d.base == 0 && d.stride == 0) continue;
    out << "slot " << s << std::hex << ": ";
    if (d.values.empty()) out << "0x" << d.base << " + core * 0x" << d.stride;
    else for (size_t i = 0; i < d.values.size() && i < 4; ++i) out << " 0x" << d.values[i];
    out << std::dec << '\n';
  }
  for (const Region& r : c.regions)
    out << "region 0x" << std::hex << r.address << " + 0x" << r.size_bytes << std::dec << " flags "
        << int(r.flags) << ", every " << r.period << "th core " << int(r.other_flags) << '\n';
  return out.str();
}

}  // namespace gpusim::difftest
