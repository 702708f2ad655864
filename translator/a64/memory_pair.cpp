// Loads and stores of pairs of general-purpose registers (C4.1.88).
#include "translator/a64/visitor.h"

namespace gpusim::a64 {
namespace {

constexpr unsigned kPostIndex = 1, kOffset = 2, kPreIndex = 3;

}  // namespace

// A fault in the second load must find the base unharmed: if the first one overwrites it, the
// second goes first. With write-back, a destination that is the base is CONSTRAINED UNPREDICTABLE:
// the base wins.
bool Visitor::load_pair(unsigned log2_size, Extend extend, unsigned mode, Imm<7> i, Reg u, Reg n,
                        Reg t) {
  set_class(InsnClass::kOffChipMemory);
  const Slot base = x_or_sp(n);
  const int64_t offset = i.sign_extend() * (int64_t{1} << log2_size);
  const int64_t first = mode == kPostIndex ? 0 : offset;
  const int64_t second = first + (int64_t{1} << log2_size);
  Slot low = x_dst(t), high = x_dst(u);
  if (mode != kOffset) {
    if (low == base) low = kSink;
    if (high == base) high = kSink;
  } else if (low == high) {
    low = kSink;
  }
  if (low == base) {
    load(log2_size, extend, high, at(base, second));
    load(log2_size, extend, low, at(base, first));
  } else {
    load(log2_size, extend, low, at(base, first));
    load(log2_size, extend, high, at(base, second));
  }
  if (mode != kOffset) b_.addi64(base, base, static_cast<uint64_t>(offset));
  return true;
}

bool Visitor::store_pair(unsigned log2_size, unsigned mode, Imm<7> i, Reg u, Reg n, Reg t) {
  set_class(InsnClass::kOffChipMemory);
  const Slot base = x_or_sp(n);
  const int64_t offset = i.sign_extend() * (int64_t{1} << log2_size);
  const int64_t first = mode == kPostIndex ? 0 : offset;
  store(log2_size, x_src(t), at(base, first));
  store(log2_size, x_src(u), at(base, first + (int64_t{1} << log2_size)));
  if (mode != kOffset) b_.addi64(base, base, static_cast<uint64_t>(offset));
  return true;
}

bool Visitor::STNP(bool is_64, Imm<7> i, Reg u, Reg n, Reg t) {
  return store_pair(is_64 ? 3 : 2, kOffset, i, u, n, t);
}
bool Visitor::LDNP(bool is_64, Imm<7> i, Reg u, Reg n, Reg t) {
  return load_pair(is_64 ? 3 : 2, Extend::kUnsigned, kOffset, i, u, n, t);
}
bool Visitor::STP(bool is_64, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t) {
  return store_pair(is_64 ? 3 : 2, mode, i, u, n, t);
}
bool Visitor::LDP(bool is_64, Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t) {
  return load_pair(is_64 ? 3 : 2, Extend::kUnsigned, mode, i, u, n, t);
}
bool Visitor::LDPSW(Imm<2> mode, Imm<7> i, Reg u, Reg n, Reg t) {
  return load_pair(2, Extend::kSign64, mode, i, u, n, t);
}

}  // namespace gpusim::a64
