// Load-acquire and store-release, exclusives (C4.1.88, B2.9).
//
// A load-exclusive leaves the address and the data in the monitor's slots; the store-exclusive is a
// compare-and-swap against them (it succeeds after an ABA change, as under other emulators).
// These accesses exist for synchronisation and count as parallelism.
#include "translator/a64/visitor.h"

namespace gpusim::a64 {

// --- acquire and release

bool Visitor::load_ordered(unsigned log2_size, Extend extend, Reg t, Reg n, int64_t offset) {
  set_class(InsnClass::kParallelism);
  const Slot base = x_or_sp(n);
  if (log2_size > 0)
    b_.check_align(base, static_cast<uint64_t>(offset), static_cast<uint16_t>(1u << log2_size));
  load(log2_size, extend, x_dst(t), at(base, offset));
  b_.fence();
  return true;
}

// The fence after it keeps a later load-acquire from passing it.
bool Visitor::store_ordered(unsigned log2_size, Reg t, Reg n, int64_t offset) {
  set_class(InsnClass::kParallelism);
  const Slot base = x_or_sp(n);
  if (log2_size > 0)
    b_.check_align(base, static_cast<uint64_t>(offset), static_cast<uint16_t>(1u << log2_size));
  b_.fence();
  store(log2_size, x_src(t), at(base, offset));
  b_.fence();
  return true;
}

bool Visitor::STLR(Imm<2> size, Reg n, Reg t) { return store_ordered(size, t, n, 0); }
bool Visitor::STLLR(Imm<2> size, Reg n, Reg t) { return store_ordered(size, t, n, 0); }
bool Visitor::LDAR(Imm<2> size, Reg n, Reg t) {
  return load_ordered(size, Extend::kUnsigned, t, n, 0);
}
bool Visitor::LDLAR(Imm<2> size, Reg n, Reg t) { return LDAR(size, n, t); }
bool Visitor::LDAPR(Imm<2> size, Reg n, Reg t) { return LDAR(size, n, t); }
bool Visitor::STLUR(Imm<2> size, Imm<9> i, Reg n, Reg t) {
  return store_ordered(size, t, n, i.sign_extend());
}
bool Visitor::LDAPUR(Imm<2> size, Imm<9> i, Reg n, Reg t) {
  return load_ordered(size, Extend::kUnsigned, t, n, i.sign_extend());
}
bool Visitor::LDAPURS(Imm<2> size, bool w, Imm<9> i, Reg n, Reg t) {
  return load_ordered(size, sign(w), t, n, i.sign_extend());
}

// --- exclusives

bool Visitor::load_exclusive(unsigned log2_size, bool acquire, Reg t, Reg n) {
  set_class(InsnClass::kParallelism);
  const Slot base = x_or_sp(n);
  if (log2_size > 0) b_.check_align(base, 0, static_cast<uint16_t>(1u << log2_size));
  load(log2_size, Extend::kUnsigned, kMonitorLow, at(base, 0));
  b_.mov(kMonitor, base);
  if (t != 31) b_.mov(x_dst(t), kMonitorLow);
  if (acquire) b_.fence();
  return true;
}

bool Visitor::load_exclusive_pair(bool is_64, bool acquire, Reg u, Reg t, Reg n) {
  set_class(InsnClass::kParallelism);
  const Slot base = x_or_sp(n);
  b_.check_align(base, 0, is_64 ? 16 : 8);
  load(3, Extend::kUnsigned, kMonitorLow, at(base, 0));
  if (is_64) load(3, Extend::kUnsigned, kMonitorHigh, at(base, 8));
  b_.mov(kMonitor, base);
  move(is_64, x_dst(t), kMonitorLow);
  if (is_64)
    b_.mov(x_dst(u), kMonitorHigh);
  else
    b_.lsri64(x_dst(u), kMonitorLow, 32);
  if (acquire) b_.fence();
  return true;
}

bool Visitor::store_exclusive(unsigned log2_size, bool release, Reg s, Reg t, Reg n) {
  set_class(InsnClass::kParallelism);
  if (release) b_.fence();
  b_.stx(x_dst(s), x_or_sp(n), x_src(t), kMonitor, static_cast<uint8_t>(log2_size));
  if (release) b_.fence();
  return true;
}

Slot Visitor::joined_words(Slot low, Slot high) {
  const Slot t = b_.temp();
  b_.bfi64(t, high, low, uint64_t{0xffffffff} << 32, 32);
  return t;
}

bool Visitor::store_exclusive_pair(bool is_64, bool release, Reg s, Reg u, Reg t, Reg n) {
  set_class(InsnClass::kParallelism);
  if (release) b_.fence();
  if (is_64) {
    const Slot pair = b_.temp_run(2);
    b_.mov(pair, x_src(t));
    b_.mov(static_cast<Slot>(pair + 1), x_src(u));
    b_.stx128(x_dst(s), x_or_sp(n), pair, kMonitor);
  } else {
    b_.stx(x_dst(s), x_or_sp(n), joined_words(x_src(t), x_src(u)), kMonitor, 3);
  }
  if (release) b_.fence();
  return true;
}

bool Visitor::STXR(Imm<2> size, Reg s, Reg n, Reg t) {
  return store_exclusive(size, false, s, t, n);
}
bool Visitor::STLXR(Imm<2> size, Reg s, Reg n, Reg t) {
  return store_exclusive(size, true, s, t, n);
}
bool Visitor::STXP(bool is_64, Reg s, Reg u, Reg n, Reg t) {
  return store_exclusive_pair(is_64, false, s, u, t, n);
}
bool Visitor::STLXP(bool is_64, Reg s, Reg u, Reg n, Reg t) {
  return store_exclusive_pair(is_64, true, s, u, t, n);
}
bool Visitor::LDXR(Imm<2> size, Reg n, Reg t) { return load_exclusive(size, false, t, n); }
bool Visitor::LDAXR(Imm<2> size, Reg n, Reg t) { return load_exclusive(size, true, t, n); }
bool Visitor::LDXP(bool is_64, Reg u, Reg n, Reg t) {
  return load_exclusive_pair(is_64, false, u, t, n);
}
bool Visitor::LDAXP(bool is_64, Reg u, Reg n, Reg t) {
  return load_exclusive_pair(is_64, true, u, t, n);
}

bool Visitor::CLREX(Imm<4>) {
  set_class(InsnClass::kParallelism);
  b_.konst(kMonitor, kNoMonitor);
  return true;
}

}  // namespace gpusim::a64
