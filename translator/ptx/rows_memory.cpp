// Loads, stores, atomics, fences.
#include "device_sim/uir/in_step.h"
#include "device_sim/uir/warp.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

Space space_of(I i) {
  if (i.has("global")) return Space::kGlobal;
  if (i.has("shared") || i.has("shared::cta") || i.has("shared::cluster")) return Space::kShared;
  if (i.has("const")) return Space::kConst;
  if (i.has("local")) return Space::kLocal;
  if (i.has("param") || i.has("param::entry") || i.has("param::func")) return Space::kParam;
  return Space::kGeneric;
}

// The mark of an instruction's first access.
uint8_t order_of(I i, uint64_t place) { return i.has("volatile") && place == 0 ? kInStep : 0; }

void load_one(Emitter& e, Slot d, const MemoryPlace& m, uint64_t offset, Type t, int reg_bits,
              uint8_t order = 0) {
  const uint64_t at = m.offset + offset;
  if (!t.is_signed() || t.bits == reg_bits) {
    const Op op = t.bits == 8    ? Op::ldu8
                  : t.bits == 16 ? Op::ldu16
                  : t.bits == 32 ? Op::ldu32
                                 : Op::ld64;
    e.b.emit(op, d, m.base, 0, 0, at, order);
  } else if (reg_bits == 64) {
    const Op op = t.bits == 8 ? Op::lds8x : t.bits == 16 ? Op::lds16x : Op::lds32x;
    e.b.emit(op, d, m.base, 0, 0, at, order);
  } else {
    e.b.emit(t.bits == 8 ? Op::lds8w : Op::lds16w, d, m.base, 0, 0, at, order);
    if (reg_bits == 16) e.b.andi64(d, d, 0xffff);
  }
}

void load(Emitter& e, I i) {
  const Type t = i.type();
  const Operand& d = i.operands[0];
  const MemoryPlace m = e.address(i.operands[1], space_of(i));
  if (!d.is(Operand::Kind::kVector))
    return load_one(e, e.dst(d), m, 0, t, e.reg_type(d).bits, order_of(i, 0));
  for (size_t k = 0; k < d.elements.size(); ++k) {
    const Operand& part = d.elements[k];
    const int bits = e.is_sink(part) ? t.bits : e.reg_type(part).bits;
    load_one(e, e.dst(part), m, k * t.bytes(), t, bits, order_of(i, k));
  }
}

void store(Emitter& e, I i) {
  const Type t = i.type();
  const MemoryPlace m = e.address(i.operands[0], space_of(i));
  const Op op = t.bits == 8    ? Op::st8
                : t.bits == 16 ? Op::st16
                : t.bits == 32 ? Op::st32
                               : Op::st64;
  const Operand& s = i.operands[1];
  const auto store_one = [&](const Operand& part, uint64_t offset) {
    e.b.emit(op, e.src(part, t), m.base, 0, 0, m.offset + offset, order_of(i, offset));
  };
  if (!s.is(Operand::Kind::kVector)) return store_one(s, 0);
  for (size_t k = 0; k < s.elements.size(); ++k) store_one(s.elements[k], k * t.bytes());
}

void load_wide(Emitter& e, I i) {
  const Operand& d = i.operands[0];
  const MemoryPlace m = e.address(i.operands[1], space_of(i));
  e.b.emit(Op::ld64, e.dst(d), m.base, 0, 0, m.offset);
  e.b.emit(Op::ld64, e.high_dst(d), m.base, 0, 0, m.offset + 8);
}

void store_wide(Emitter& e, I i) {
  const Operand& s = i.operands[1];
  const MemoryPlace m = e.address(i.operands[0], space_of(i));
  const auto [low, high] = e.halves(i, s);
  e.b.emit(Op::st64, low, m.base, 0, 0, m.offset);
  e.b.emit(Op::st64, high, m.base, 0, 0, m.offset + 8);
}

// Parameters of functions that were put in their callers' place: registers.
void load_param(Emitter& e, I i) {
  const Type t = i.type();
  const Operand &d = i.operands[0], &s = i.operands[1];
  const int reg_bits = e.reg_type(d).bits;
  if (t.is_signed() && t.bits < reg_bits) {
    const Slot extended = e.temp();
    e.sign_extend(extended, e.reg(s), t.bits);
    return e.zero_extend(e.dst(d), extended, reg_bits);
  }
  const Slot from = e.reg(s), to = e.dst(d);
  if (from != to) e.b.mov(to, from);
}

void store_param(Emitter& e, I i) {
  const Type t = i.type();
  const Operand &d = i.operands[0], &s = i.operands[1];
  const Slot from = e.src(s, t), to = e.dst(d);
  if (s.is(Operand::Kind::kRegister) && e.reg_type(s).bits > t.bits)
    e.zero_extend(to, from, t.bits);
  else if (from != to)
    e.b.mov(to, from);
}

void address_of(Emitter& e, I i) {
  const MemoryPlace m = e.address(i.operands[1], Space::kShared);
  e.b.addi64(e.dst(i.operands[0]), m.base, m.offset);
}

// --- atomics; red is atom without a result
Slot atomic_address(Emitter& e, const Operand& o, Space space) {
  const MemoryPlace m = e.address(o, space);
  if (m.offset == 0) return m.base;
  const Slot t = e.temp();
  e.b.addi64(t, m.base, m.offset);
  return t;
}

void atomic(Emitter& e, I i) {
  const Type t = i.type();
  const bool has_result = i.base == "atom";
  const size_t at = has_result ? 1 : 0;
  const Slot address = atomic_address(e, i.operands[at], space_of(i));
  const uint8_t size = t.bits == 16 ? 1 : t.bits == 32 ? 2 : 3;
  const Slot value = e.src(i.operands[at + 1], t);
  const auto result = [&] { return has_result ? e.dst(i.operands[0]) : e.temp(); };
  if (i.has("cas")) {
    const Slot desired = e.src(i.operands[at + 2], t);
    e.b.cas(result(), address, desired, value, size);
    return;
  }
  Op op = Op::amo_add;
  uint8_t aux = size;
  Slot operand = value;
  if (i.has("noftz")) {
    op = Op::amo_fadd;
    const FloatWord word = i.has("f16")     ? FloatWord::kF16
                           : i.has("f16x2") ? FloatWord::kF16x2
                           : i.has("bf16")  ? FloatWord::kBf16
                                            : FloatWord::kBf16x2;
    aux = static_cast<uint8_t>(word);
  } else if (t.is_float()) {
    op = Op::amo_fadd;
    // Singles are flushed in global memory only.
    const FloatWord word = t.bits == 64                    ? FloatWord::kF64
                           : space_of(i) == Space::kShared ? FloatWord::kF32
                                                           : FloatWord::kF32Flushed;
    aux = static_cast<uint8_t>(word);
  } else if (i.has("and")) {
    op = Op::amo_clr;
    operand = e.temp();
    e.b.xori64(operand, value, ~uint64_t{0});
  } else if (i.has("or")) {
    op = Op::amo_or;
  } else if (i.has("xor")) {
    op = Op::amo_xor;
  } else if (i.has("exch")) {
    op = Op::amo_swp;
  } else if (i.has("inc")) {
    op = Op::amo_inc;
  } else if (i.has("dec")) {
    op = Op::amo_dec;
  } else if (i.has("min")) {
    op = t.is_signed() ? Op::amo_smin : Op::amo_umin;
  } else if (i.has("max")) {
    op = t.is_signed() ? Op::amo_smax : Op::amo_umax;
  }
  e.b.emit(op, result(), address, operand, 0, 0, aux);
}

// atom.cas.b128 d, [a], compare, new
void compare_and_swap_wide(Emitter& e, I i) {
  const Operand &d = i.operands[0], &compare = i.operands[2], &desired = i.operands[3];
  const auto pair_of = [&](const Operand& o) {
    const Slot pair = e.b.temp_run(2);
    const auto [low, high] = e.halves(i, o);
    e.b.mov(pair, low);
    e.b.mov(static_cast<Slot>(pair + 1), high);
    return pair;
  };
  const Slot old = pair_of(compare);
  e.b.cas128(old, atomic_address(e, i.operands[1], space_of(i)), pair_of(desired));
  if (e.is_sink(d)) return;
  e.b.mov(e.dst(d), old);
  e.b.mov(e.high_dst(d), static_cast<Slot>(old + 1));
}

void fence(Emitter& e, I) { e.b.fence(); }
void nothing(Emitter&, I) {}

// What a hint to caches takes. NVIDIA does not say what is in it.
void policy(Emitter& e, I i) { e.b.konst(e.dst(i.operands[0]), 0); }

// Common parts of rows.
#define GPUSIM_PTX_SEM "{relaxed|acquire|release|acq_rel} {cta|cluster|gpu|sys}"
#define GPUSIM_PTX_RED_SEM "{relaxed|release} {cta|cluster|gpu|sys}"
#define GPUSIM_PTX_SPACE "{global|shared|shared::cta|shared::cluster}"
#define GPUSIM_PTX_L1 \
  "{L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate}"
#define GPUSIM_PTX_PREFETCH "{L2::64B|L2::128B|L2::256B}"
#define GPUSIM_PTX_ATOM(what)                                                                   \
  {"atom " GPUSIM_PTX_SEM " " GPUSIM_PTX_SPACE " " what, "d0 m s0", kParallel, atomic}, {       \
    "atom " GPUSIM_PTX_SEM " {global} (L2::cache_hint) " what, "d0 m s0 s64", kParallel, atomic \
  }
#define GPUSIM_PTX_RED(what)                                                                    \
  {"red " GPUSIM_PTX_RED_SEM " " GPUSIM_PTX_SPACE " " what, "m s0", kParallel, atomic}, {       \
    "red " GPUSIM_PTX_RED_SEM " {global} (L2::cache_hint) " what, "m s0 s64", kParallel, atomic \
  }
#define GPUSIM_PTX_DATA ".b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64"

}  // namespace

const Row kLoadParamRegister = {"ld", "", RowClass::kMemory, load_param};
const Row kLoadSpilled = {"ld", "l0 m", RowClass::kMemory, load};
const Row kStoreSpilled = {"st", "m t0", RowClass::kMemory, store};
const Row kStoreNow = {"st", "m t0", RowClass::kMemory, store};
const Row kReduceNow = {"red", "m s0", RowClass::kParallel, atomic};
const Row kAddressOf = {"mov", "", RowClass::kMemory, address_of};
const Row kStoreParamRegister = {"st", "", RowClass::kMemory, store_param};

const RowList& memory_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"ld {global|shared|shared::cta|shared::cluster|const|local|param|param::entry|param::func} "
       "{ca|cg|cs|lu|cv} {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld (weak) {global|shared|shared::cta|shared::cluster|const|local} {ca|cg|cs|lu|cv} "
       "{v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld {global|shared|shared::cta|shared::cluster|const|local} {ca|cg|cs|lu|cv} .b128", "d0 m",
       kMemory, load_wide},
      {"st {global|shared|shared::cta|shared::cluster|local} {wb|cg|cs|wt} .b128", "m s0", kMemory,
       store_wide},
      {"ld (global) {ca|cg|cs} (nc) {v2|v4} " GPUSIM_PTX_DATA, "l0 m", kMemory, load},
      {"ld (volatile) {global|shared|shared::cta|shared::cluster|const|local} "
       "{v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld (relaxed|acquire) (cta|gpu|sys|cluster) {global|shared|shared::cta|shared::cluster} "
       "{v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld (mmio) (relaxed) (sys) {global} " GPUSIM_PTX_DATA, "l0 m", kMemory, load},
      // Hints to caches change nothing.
      {"ld {weak} {global} " GPUSIM_PTX_L1 " " GPUSIM_PTX_PREFETCH "  {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld {weak} {global} " GPUSIM_PTX_L1 " " GPUSIM_PTX_PREFETCH
       "  (L2::cache_hint) {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m s64", kMemory, load},
      {"ld {weak} {global} {ca|cg|cs|lu|cv} " GPUSIM_PTX_PREFETCH "  {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld {weak} {global} {ca|cg|cs|lu|cv} " GPUSIM_PTX_PREFETCH
       "  (L2::cache_hint) {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m s64", kMemory, load},
      {"ld (global) (nc) " GPUSIM_PTX_L1 " " GPUSIM_PTX_PREFETCH "  {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld (global) (nc) " GPUSIM_PTX_L1 " " GPUSIM_PTX_PREFETCH
       "  (L2::cache_hint) {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m s64", kMemory, load},
      {"ld (volatile) {global} " GPUSIM_PTX_PREFETCH "  {v2|v4} " GPUSIM_PTX_DATA, "l0 m", kMemory,
       load},
      {"ld (relaxed|acquire) (cta|gpu|sys|cluster) {global} " GPUSIM_PTX_L1 " " GPUSIM_PTX_PREFETCH
       "  {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m", kMemory, load},
      {"ld (relaxed|acquire) (cta|gpu|sys|cluster) {global} " GPUSIM_PTX_L1 " " GPUSIM_PTX_PREFETCH
       "  (L2::cache_hint) {v2|v4} " GPUSIM_PTX_DATA,
       "l0 m s64", kMemory, load},
      {"ldu {global} {v2|v4} " GPUSIM_PTX_DATA, "l0 m", kMemory, load},
      {"st {global|shared|shared::cta|shared::cluster|local|param|param::func} {wb|cg|cs|wt} "
       "{v2|v4} " GPUSIM_PTX_DATA,
       "m t0", kMemory, store},
      {"st (weak) {global|shared|shared::cta|shared::cluster|local} {wb|cg|cs|wt} "
       "{v2|v4} " GPUSIM_PTX_DATA,
       "m t0", kMemory, store},
      {"st (volatile) {global|shared|shared::cta|shared::cluster|local} {v2|v4} " GPUSIM_PTX_DATA,
       "m t0", kMemory, store},
      {"st (relaxed|release) (cta|gpu|sys|cluster) {global|shared|shared::cta|shared::cluster} "
       "{v2|v4} " GPUSIM_PTX_DATA,
       "m t0", kMemory, store},
      {"st (mmio) (relaxed) (sys) {global} " GPUSIM_PTX_DATA, "m t0", kMemory, store},
      {"st {weak} {global} " GPUSIM_PTX_L1 "  {v2|v4} " GPUSIM_PTX_DATA, "m t0", kMemory, store},
      {"st {weak} {global} " GPUSIM_PTX_L1 "  (L2::cache_hint) {v2|v4} " GPUSIM_PTX_DATA,
       "m t0 s64", kMemory, store},
      {"st {weak} {global} {wb|cg|cs|wt} (L2::cache_hint) {v2|v4} " GPUSIM_PTX_DATA, "m t0 s64",
       kMemory, store},
      {"st (relaxed|release) (cta|gpu|sys|cluster) {global} " GPUSIM_PTX_L1
       "  {v2|v4} " GPUSIM_PTX_DATA,
       "m t0", kMemory, store},
      {"st (relaxed|release) (cta|gpu|sys|cluster) {global} " GPUSIM_PTX_L1
       "  (L2::cache_hint) {v2|v4} " GPUSIM_PTX_DATA,
       "m t0 s64", kMemory, store},
      GPUSIM_PTX_ATOM("(add) .u32|.s32|.u64"),
      GPUSIM_PTX_RED("(add) .u32|.s32|.u64"),
      GPUSIM_PTX_ATOM("(add) .f32|.f64"),
      GPUSIM_PTX_RED("(add) .f32|.f64"),
      GPUSIM_PTX_ATOM("(add) (noftz) .f16|.f16x2|.bf16|.bf16x2"),
      GPUSIM_PTX_RED("(add) (noftz) .f16|.f16x2|.bf16|.bf16x2"),
      GPUSIM_PTX_ATOM("(and|or|xor) .b32|.b64"),
      GPUSIM_PTX_RED("(and|or|xor) .b32|.b64"),
      GPUSIM_PTX_ATOM("(exch) .b32|.b64"),
      GPUSIM_PTX_ATOM("(min|max) .u32|.s32|.u64|.s64"),
      GPUSIM_PTX_RED("(min|max) .u32|.s32|.u64|.s64"),
      GPUSIM_PTX_ATOM("(inc|dec) .u32"),
      GPUSIM_PTX_RED("(inc|dec) .u32"),
      {"atom " GPUSIM_PTX_SEM " " GPUSIM_PTX_SPACE " (cas) .b16|.b32|.b64", "d0 m s0 s0", kParallel,
       atomic},
      {"atom " GPUSIM_PTX_SEM " " GPUSIM_PTX_SPACE " (cas) .b128", "d0 m s0 s0", kParallel,
       compare_and_swap_wide},
      {"membar (cta|gl|sys)", "", kParallel, fence},
      {"membar [proxy] (alias)", "", kParallel, fence},
      {"fence {sc|acq_rel|acquire|release} (cta|cluster|gpu|sys)", "", kParallel, fence},
      {"fence (acquire) (sync_restrict::shared::cluster) (cluster)", "", kParallel, fence},
      {"fence (release) (sync_restrict::shared::cta) (cluster)", "", kParallel, fence},
      {"fence (mbarrier_init) (release) (cluster)", "", kParallel, fence},
      {"fence (proxy) (alias|async)", "", kParallel, fence},
      {"fence (proxy) (async) (global|shared::cta|shared::cluster)", "", kParallel, fence},
      {"fence (proxy) (async::generic) (acquire) (sync_restrict::shared::cluster) (cluster)", "",
       kParallel, fence},
      {"fence (proxy) (async::generic) (release) (sync_restrict::shared::cta) (cluster)", "",
       kParallel, fence},
      {"fence (proxy) (tensormap::generic) (release) (cta|cluster|gpu|sys)", "", kParallel, fence},
      {"fence (proxy) (tensormap::generic) (acquire) (cta|cluster|gpu|sys)", "m 128", kParallel,
       fence},
      {"prefetch {global|local} (L1|L2)", "m", kOther, nothing},
      {"prefetch {param|const} (tensormap)", "m", kOther, nothing},
      {"prefetchu (L1)", "m", kOther, nothing},
      {"prefetch (global) (L2::evict_last|L2::evict_normal)", "m", kOther, nothing},
      {"applypriority {global} (L2::evict_normal)", "m 128", kOther, nothing},
      {"discard {global} (L2)", "m 128", kOther, nothing},
      {"createpolicy (fractional) "
       "(L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged) "
       "{L2::evict_first|L2::evict_unchanged} .b64",
       "d64 ? sf", kOther, policy},
      {"createpolicy (range) {global} "
       "(L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged) "
       "{L2::evict_first|L2::evict_unchanged} .b64",
       "d64 m s32 s32", kOther, policy},
      {"createpolicy (cvt) (L2) .b64", "d64 n", kOther, policy},
  };
  return rows;
}

}  // namespace gpusim::ptx
