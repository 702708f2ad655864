// Copies that a thread does not wait for (cp.async), and barriers in shared memory (mbarrier).
//
// Copies are made at once: that is an order which every program that waits for them allows.
//
// A barrier's word: arrivals that are still to come (bits 0 to 19), arrivals of the next phase (20
// to 39), bytes that are still to come (40 to 62), and the phase's parity (63). A state is the word
// before an arrival. What changes it are functions in prelude.cpp.
#include "device_sim/uir/compare.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"

namespace gpusim::ptx {
namespace {

using I = const Instruction&;

void nothing(Emitter&, I) {}

constexpr Type kB32{Kind::kBits, 32};

// How many bytes are read; nothing: all. The rest of what is written is zero.
std::optional<Slot> source_bytes(Emitter& e, I i, uint64_t bytes) {
  if (i.operands.size() < 4) return std::nullopt;
  const Operand& o = i.operands[3];
  if (const auto known = e.constant(o, kB32); known && *known == bytes) return std::nullopt;
  if (!o.is(Operand::Kind::kRegister) || !e.reg_type(o).is_predicate()) return e.src(o, kB32);
  const Slot s = e.temp();  // ignore-src
  e.select(s, kZeroSlot, e.konst(bytes), o);
  return s;
}

// cp.async [to], [from], bytes{, bytes of the source}
void copy(Emitter& e, I i) {
  const auto bytes = e.constant(i.operands[2], kB32);
  const bool is_cg = i.has("cg");
  if (!bytes || (*bytes != 16 && (is_cg || (*bytes != 4 && *bytes != 8))))
    e.unsupported(i, is_cg ? "it copies 16 bytes" : "it copies 4, 8 or 16 bytes");
  const MemoryPlace to = e.address(i.operands[0], Space::kShared);
  const MemoryPlace from = e.address(i.operands[1], Space::kGlobal);
  const auto size = source_bytes(e, i, *bytes);
  const uint64_t step = *bytes == 4 ? 4 : 8;
  const Op load = step == 4 ? Op::ldu32 : Op::ld64, save = step == 4 ? Op::st32 : Op::st64;
  Slot words[2] = {e.temp(), e.temp()};
  const Slot address = e.temp(), here = e.temp(), mask = e.temp();
  for (uint64_t at = 0; at < *bytes; at += step) {
    const Slot word = words[at / step];
    if (!size) {
      e.b.emit(load, word, from.base, 0, 0, from.offset + at);
      continue;
    }
    // Nothing is read that does not count: what is written is there to be read instead.
    e.b.addi64(address, from.base, from.offset + at);
    e.b.addi64(here, to.base, to.offset + at);
    e.b.sel_cmpi(address, here, address, *size, at + 1, kBelow64);
    e.b.emit(load, word, address, 0, 0, 0);
    e.b.addi64(mask, *size, 0 - at);
    e.b.sel_cmpi(mask, mask, e.konst(8), mask, 8, kBelow64);
    e.b.lsli64(mask, mask, 3);
    e.b.sub64(mask, e.konst(64), mask);
    e.b.lsr64(mask, e.konst(~uint64_t{0}), mask);
    e.b.and64(word, word, mask);
    e.b.sel_cmpi(word, kZeroSlot, word, *size, at + 1, kBelow64);
  }
  for (uint64_t at = 0; at < *bytes; at += step)
    e.b.emit(save, words[at / step], to.base, 0, 0, to.offset + at);
}

void init(Emitter& e, I i) {
  const MemoryPlace m = e.address(i.operands[0], Space::kShared);
  const Slot count = e.src(i.operands[1], kB32), word = e.temp();
  e.b.add_lsl64(word, count, count, 20);
  e.b.emit(Op::st64, word, m.base, 0, 0, m.offset);
}

// Whether the phase has ended: d, [barrier], state or parity of the phase.
void wait(Emitter& e, I i) {
  const MemoryPlace m = e.address(i.operands[1], Space::kShared);
  const Slot word = e.temp(), phase = e.temp(), truth = e.temp();
  e.b.emit(Op::ld64, word, m.base, 0, 0, m.offset);
  e.b.lsri64(word, word, 63);
  if (i.has("parity"))
    e.b.andi64(phase, e.src(i.operands[2], kB32), 1);
  else
    e.b.lsri64(phase, e.src(i.operands[2], i.type()), 63);
  e.b.xor64(truth, word, phase);
  e.set_predicates(i.operands[0], truth);
  if (i.has("try_wait")) e.b.give_way(Turn::kYield, kZeroSlot, e.next_pc);
}

void pending_count(Emitter& e, I i) {
  e.b.andi64(e.dst(i.operands[0]), e.src(i.operands[1], i.type()), 0xfffff);
}

}  // namespace

#define GPUSIM_PTX_SHARED "{shared|shared::cta} .b64"
#define GPUSIM_PTX_ARRIVES "{release|relaxed} {cta|cluster} " GPUSIM_PTX_SHARED
#define GPUSIM_PTX_WAITS "{acquire|relaxed} {cta|cluster} " GPUSIM_PTX_SHARED
#define GPUSIM_PTX_BYTES "{relaxed} {cta|cluster} {shared|shared::cta|shared::cluster} .b64"
// In the memory of another CTA: there is no state to give.
#define GPUSIM_PTX_REMOTE "{release|relaxed} {cluster} (shared::cluster) .b64"
#define GPUSIM_PTX_TX "(mbarrier::complete_tx::bytes)"
#define GPUSIM_PTX_RANKS "(1d|2d|3d|4d|5d)"
#define GPUSIM_PTX_IMAGES "(3d|4d|5d)"
#define GPUSIM_PTX_BULK_REDUCE_HEAD \
  "cp (reduce) (async) (bulk) (global) (shared::cta) (bulk_group) "
#define GPUSIM_PTX_BULK_REDUCE(what)                                                      \
  {GPUSIM_PTX_BULK_REDUCE_HEAD what, "m m s32", kMemory, nullptr}, {                      \
    GPUSIM_PTX_BULK_REDUCE_HEAD "(L2::cache_hint) " what, "m m s32 s64", kMemory, nullptr \
  }

const RowList& async_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"cp (async) (ca|cg) (shared|shared::cta) (global) {L2::64B|L2::128B|L2::256B}",
       "m m any ? any", kMemory, copy},
      {"cp (async) (commit_group)", "", kParallel, nothing},
      {"cp (async) (wait_group)", "any", kParallel, nothing},
      {"cp (async) (wait_all)", "", kParallel, nothing},
      {"cp (async) (bulk) (shared::cluster|shared::cta) (global) " GPUSIM_PTX_TX, "m m s32 m",
       kMemory, nullptr},
      {"cp (async) (bulk) (shared::cluster|shared::cta) (global) " GPUSIM_PTX_TX
       " (L2::cache_hint)",
       "m m s32 m s64", kMemory, nullptr},
      {"cp (async) (bulk) (shared::cluster) (global) " GPUSIM_PTX_TX " (multicast::cluster)",
       "m m s32 m s16", kMemory, nullptr},
      {"cp (async) (bulk) (shared::cluster) (global) " GPUSIM_PTX_TX
       " (multicast::cluster) (L2::cache_hint)",
       "m m s32 m s16 s64", kMemory, nullptr},
      {"cp (async) (bulk) (shared::cluster) (shared::cta) " GPUSIM_PTX_TX, "m m s32 m", kMemory,
       nullptr},
      {"cp (async) (bulk) (global) (shared::cta) (bulk_group)", "m m s32", kMemory, nullptr},
      {"cp (async) (bulk) (global) (shared::cta) (bulk_group) (L2::cache_hint)", "m m s32 s64",
       kMemory, nullptr},
      {"cp (async) (bulk) (prefetch) (L2) (global)", "m s32", kOther, nothing},
      {"cp (async) (bulk) (prefetch) (L2) (global) (L2::cache_hint)", "m s32 s64", kOther, nothing},
      {"cp (async) (bulk) (commit_group)", "", kParallel, nothing},
      {"cp (async) (bulk) (wait_group) {read}", "i", kParallel, nothing},
      GPUSIM_PTX_BULK_REDUCE("(and|or|xor) .b32|.b64"),
      GPUSIM_PTX_BULK_REDUCE("(add) .u32|.s32|.u64|.f32|.f64"),
      GPUSIM_PTX_BULK_REDUCE("(add) (noftz) .f16|.bf16"),
      GPUSIM_PTX_BULK_REDUCE("(min|max) .u32|.s32|.u64|.s64|.f16|.bf16"),
      GPUSIM_PTX_BULK_REDUCE("(inc|dec) .u32"),
      {"cp (reduce) (async) (bulk) (shared::cluster) (shared::cta) " GPUSIM_PTX_TX
       " (and|or|xor) .b32",
       "m m s32 m", kMemory, nullptr},
      {"cp (reduce) (async) (bulk) (shared::cluster) (shared::cta) " GPUSIM_PTX_TX
       " (add) .u32|.s32|.u64",
       "m m s32 m", kMemory, nullptr},
      {"cp (reduce) (async) (bulk) (shared::cluster) (shared::cta) " GPUSIM_PTX_TX
       " (min|max) .u32|.s32",
       "m m s32 m", kMemory, nullptr},
      {"cp (reduce) (async) (bulk) (shared::cluster) (shared::cta) " GPUSIM_PTX_TX
       " (inc|dec) .u32",
       "m m s32 m", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_RANKS
       " (shared::cluster|shared::cta) (global) {tile} " GPUSIM_PTX_TX,
       "m tm m", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_RANKS
       " (shared::cluster|shared::cta) (global) {tile} " GPUSIM_PTX_TX " (L2::cache_hint)",
       "m tm m s64", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_RANKS
       " (shared::cluster) (global) {tile} " GPUSIM_PTX_TX " (multicast::cluster)",
       "m tm m s16", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_RANKS
       " (shared::cluster) (global) {tile} " GPUSIM_PTX_TX " (multicast::cluster) (L2::cache_hint)",
       "m tm m s16 s64", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_RANKS " (global) (shared::cta) {tile} (bulk_group)",
       "tm m", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_RANKS
       " (global) (shared::cta) {tile} (bulk_group) (L2::cache_hint)",
       "tm m s64", kMemory, nullptr},
      {"cp (reduce) (async) (bulk) (tensor) " GPUSIM_PTX_RANKS
       " (global) (shared::cta) (add|min|max|inc|dec|and|or|xor) {tile} (bulk_group)",
       "tm m", kMemory, nullptr},
      {"cp (reduce) (async) (bulk) (tensor) " GPUSIM_PTX_RANKS
       " (global) (shared::cta) (add|min|max|inc|dec|and|or|xor) {tile} (bulk_group) "
       "(L2::cache_hint)",
       "tm m s64", kMemory, nullptr},
      {"cp (async) (bulk) (prefetch) (tensor) " GPUSIM_PTX_RANKS " (L2) (global) {tile}", "tm",
       kOther, nothing},
      {"cp (async) (bulk) (prefetch) (tensor) " GPUSIM_PTX_RANKS
       " (L2) (global) {tile} (L2::cache_hint)",
       "tm s64", kOther, nothing},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (shared::cluster|shared::cta) (global) (im2col) " GPUSIM_PTX_TX,
       "m tm m to", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (shared::cluster|shared::cta) (global) (im2col) " GPUSIM_PTX_TX " (L2::cache_hint)",
       "m tm m to s64", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (shared::cluster) (global) (im2col) " GPUSIM_PTX_TX " (multicast::cluster)",
       "m tm m to s16", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (shared::cluster) (global) (im2col) " GPUSIM_PTX_TX
       " (multicast::cluster) (L2::cache_hint)",
       "m tm m to s16 s64", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (global) (shared::cta) (im2col_no_offs) (bulk_group)",
       "tm m", kMemory, nullptr},
      {"cp (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (global) (shared::cta) (im2col_no_offs) (bulk_group) (L2::cache_hint)",
       "tm m s64", kMemory, nullptr},
      {"cp (reduce) (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (global) (shared::cta) (add|min|max|inc|dec|and|or|xor) (im2col_no_offs) (bulk_group)",
       "tm m", kMemory, nullptr},
      {"cp (reduce) (async) (bulk) (tensor) " GPUSIM_PTX_IMAGES
       " (global) (shared::cta) (add|min|max|inc|dec|and|or|xor) (im2col_no_offs) (bulk_group) "
       "(L2::cache_hint)",
       "tm m s64", kMemory, nullptr},
      {"cp (async) (bulk) (prefetch) (tensor) " GPUSIM_PTX_IMAGES " (L2) (global) (im2col)",
       "tm to", kOther, nothing},
      {"cp (async) (bulk) (prefetch) (tensor) " GPUSIM_PTX_IMAGES
       " (L2) (global) (im2col) (L2::cache_hint)",
       "tm to s64", kOther, nothing},
      // Copies have ended: nothing is still to arrive, or the thread arrives.
      {"cp (async) (mbarrier) (arrive) " GPUSIM_PTX_SHARED, "m", kParallel, nothing},
      {"cp (async) (mbarrier) (arrive) (noinc) " GPUSIM_PTX_SHARED, "m", kParallel, nullptr},
      {"mbarrier (init) " GPUSIM_PTX_SHARED, "m s32", kParallel, init},
      {"mbarrier (inval) " GPUSIM_PTX_SHARED, "m", kParallel, nothing},
      {"mbarrier (arrive|arrive_drop) " GPUSIM_PTX_ARRIVES, "d0 m ? s32", kParallel, nullptr},
      {"mbarrier (arrive|arrive_drop) (noComplete) {release} {cta} " GPUSIM_PTX_SHARED, "d0 m s32",
       kParallel, nullptr},
      {"mbarrier (arrive|arrive_drop) (expect_tx) " GPUSIM_PTX_ARRIVES, "d0 m s32", kParallel,
       nullptr},
      {"mbarrier (arrive|arrive_drop) " GPUSIM_PTX_REMOTE, "_ m ? s32", kParallel, nullptr},
      {"mbarrier (arrive|arrive_drop) (expect_tx) " GPUSIM_PTX_REMOTE, "_ m s32", kParallel,
       nullptr},
      {"st (async) {weak} " GPUSIM_PTX_TX
       " {shared::cluster} {v2|v4} .b32|.b64|.u32|.u64|.s32|.s64|.f32|.f64",
       "m t0 m", kMemory, nullptr},
      {"red (async) (relaxed) (cluster) " GPUSIM_PTX_TX " {shared::cluster} (inc|dec) .u32",
       "m s0 m", kParallel, nullptr},
      {"red (async) (relaxed) (cluster) " GPUSIM_PTX_TX " {shared::cluster} (min|max) .u32|.s32",
       "m s0 m", kParallel, nullptr},
      {"red (async) (relaxed) (cluster) " GPUSIM_PTX_TX " {shared::cluster} (add) .u32|.s32|.u64",
       "m s0 m", kParallel, nullptr},
      {"red (async) (relaxed) (cluster) " GPUSIM_PTX_TX " {shared::cluster} (and|or|xor) .b32",
       "m s0 m", kParallel, nullptr},
      {"mbarrier (expect_tx|complete_tx) " GPUSIM_PTX_BYTES, "m s32", kParallel, nullptr},
      {"mbarrier (test_wait) " GPUSIM_PTX_WAITS, "dp m s0", kParallel, wait},
      {"mbarrier (test_wait) (parity) " GPUSIM_PTX_WAITS, "dp m s32", kParallel, wait},
      {"mbarrier (try_wait) " GPUSIM_PTX_WAITS, "dp m s0 ? s32", kParallel, wait},
      {"mbarrier (try_wait) (parity) " GPUSIM_PTX_WAITS, "dp m s32 ? s32", kParallel, wait},
      {"mbarrier (pending_count) .b64", "d32 s0", kParallel, pending_count},
  };
  return rows;
}

}  // namespace gpusim::ptx
