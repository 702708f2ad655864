// The execution domain of values some of whose bits nobody has set. The semantics of micro-ops
// (uir/semantics*.h) are templates over domains: over this one they tell which bits of a result
// depend on such bits.
//
// Rules: bitwise operations, sums, shifts, comparisons and selections are exact for each operation
// by itself. Products smear to the left of the lowest undefined bit. All else is asked by trying:
// the operation is done with the undefined bits set in several ways, and what differs is undefined.
// What two operands have in common is not seen: x ^ y of two copies of one value is undefined.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "device_sim/uir/semantics.h"

namespace gpusim::host::uninitialised {

struct Bits {
  uint64_t value = 0;
  uint64_t undefined = 0;  // a mask

  // The least and the greatest that it may be.
  uint64_t least() const { return value & ~undefined; }
  uint64_t most() const { return value | undefined; }
};
struct Truth {
  bool value = false, undefined = false;
};

// All bits from the lowest one that is set.
constexpr uint64_t smear_left(uint64_t undefined) { return undefined | (0 - undefined); }
// All bits up to the highest one that is set.
constexpr uint64_t smear_right(uint64_t x) {
  return x == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(x);
}

struct Domain {
  using V = Bits;
  using M = Truth;
  using Exact = sem::ScalarDomain;
  static constexpr int kBits = 64;

  static V konst(uint64_t x) { return {x, 0}; }
  static V add(V a, V b) {
    const uint64_t spread = (a.least() + b.least()) ^ (a.most() + b.most());
    return {a.value + b.value, a.undefined | b.undefined | spread};
  }
  static V sub(V a, V b) {
    const uint64_t spread = (a.least() - b.most()) ^ (a.most() - b.least());
    return {a.value - b.value, a.undefined | b.undefined | spread};
  }
  static V mul(V a, V b) { return {a.value * b.value, product(a, b)}; }
  static V mul_u32(V a, V b) {
    return {Exact::mul_u32(a.value, b.value), product(low32(a), low32(b))};
  }
  static V mul_s32(V a, V b) {
    return {Exact::mul_s32(a.value, b.value), product(low32(a), low32(b))};
  }
  static V mulhi_u(V a, V b) { return {Exact::mulhi_u(a.value, b.value), high_product(a, b)}; }
  static V mulhi_s(V a, V b) { return {Exact::mulhi_s(a.value, b.value), high_product(a, b)}; }
  static V and_(V a, V b) {
    return {a.value & b.value, (a.undefined | b.undefined) & a.most() & b.most()};
  }
  static V or_(V a, V b) {
    return {a.value | b.value, (a.undefined | b.undefined) & ~a.least() & ~b.least()};
  }
  static V xor_(V a, V b) { return {a.value ^ b.value, a.undefined | b.undefined}; }
  static V andnot(V a, V b) { return and_(a, not_(b)); }
  static V not_(V a) { return {~a.value, a.undefined}; }

  static V shl(V a, int n) { return {Exact::shl(a.value, n), Exact::shl(a.undefined, n)}; }
  static V shr(V a, int n) { return {Exact::shr(a.value, n), Exact::shr(a.undefined, n)}; }
  static V sar(V a, int n) { return {Exact::sar(a.value, n), Exact::sar(a.undefined, n)}; }
  static V shl_v(V a, V n) {
    return by_count(a, n, [](V x, int count) { return shl(x, count); });
  }
  static V shr_v(V a, V n) {
    return by_count(a, n, [](V x, int count) { return shr(x, count); });
  }
  static V sar_v(V a, V n) {
    return by_count(a, n, [](V x, int count) { return sar(x, count); });
  }

  static V quotient33(V a, V b) {
    // Other values than those that fit might trap.
    const auto fit = [](uint64_t x) { return Exact::sar(Exact::shl(x, 31), 31); };
    return map([&](uint64_t x, uint64_t y) { return Exact::quotient33(fit(x), fit(y)); }, a, b);
  }

  static M eq(V a, V b) {
    const uint64_t undefined = a.undefined | b.undefined;
    const bool differ = ((a.value ^ b.value) & ~undefined) != 0;
    return {a.value == b.value, undefined != 0 && !differ};
  }
  static M lt_u(V a, V b) {
    const bool is_known = a.most() < b.least() || a.least() >= b.most();
    return {a.value < b.value, (a.undefined | b.undefined) != 0 && !is_known};
  }
  static M lt_s(V a, V b) {
    constexpr uint64_t kTop = uint64_t{1} << 63;
    return lt_u({a.value ^ kTop, a.undefined}, {b.value ^ kTop, b.undefined});
  }
  static M m_not(M m) { return {!m.value, m.undefined}; }
  static M m_and(M a, M b) {
    const bool is_known = (!a.value && !a.undefined) || (!b.value && !b.undefined);
    return {a.value && b.value, (a.undefined || b.undefined) && !is_known};
  }
  static M m_or(M a, M b) { return m_not(m_and(m_not(a), m_not(b))); }
  static V select(M m, V a, V b) {
    const V chosen = m.value ? a : b;
    if (!m.undefined) return chosen;
    return {chosen.value, (a.value ^ b.value) | a.undefined | b.undefined};
  }

  // By trying. The first ways set all undefined bits alike, the last ones as other operands have
  // them, so that operands become equal where they can.
  template <class F, class... A>
  static V map(F f, A... a) {
    const V operands[] = {a...};
    uint64_t any = 0;
    for (const V& x : operands) any |= x.undefined;
    V result{f(a.value...), 0};
    if (any == 0) return result;
    return tried(f, result, operands, std::make_index_sequence<sizeof...(A)>{});
  }
  static V map(sem::CountLeadingZeros f, V a) {
    return {f(a.value), smear_right(f(a.least()) ^ f(a.most()))};
  }

  // --- elements of words
  template <class E>
  static V vadd(V a, V b) {
    const uint64_t spread =
        Exact::vadd<E>(a.least(), b.least()) ^ Exact::vadd<E>(a.most(), b.most());
    return {Exact::vadd<E>(a.value, b.value), a.undefined | b.undefined | spread};
  }
  template <class E>
  static V vsub(V a, V b) {
    const uint64_t spread =
        Exact::vsub<E>(a.least(), b.most()) ^ Exact::vsub<E>(a.most(), b.least());
    return {Exact::vsub<E>(a.value, b.value), a.undefined | b.undefined | spread};
  }
  template <class E>
  static V vmul(V a, V b) {
    return each<E>([](V x, V y) { return mul(x, y); }, a, b);
  }
  template <class E>
  static V vmin_s(V a, V b) {
    return each<E>([](V x, V y) { return select(lt_s(top<E>(x), top<E>(y)), x, y); }, a, b);
  }
  template <class E>
  static V vmax_s(V a, V b) {
    return each<E>([](V x, V y) { return select(lt_s(top<E>(x), top<E>(y)), y, x); }, a, b);
  }
  template <class E>
  static V vmin_u(V a, V b) {
    return each<E>([](V x, V y) { return select(lt_u(x, y), x, y); }, a, b);
  }
  template <class E>
  static V vmax_u(V a, V b) {
    return each<E>([](V x, V y) { return select(lt_u(x, y), y, x); }, a, b);
  }
  template <class E>
  static V veq(V a, V b) {
    return each<E>([](V x, V y) { return ones_if(eq(x, y)); }, a, b);
  }
  template <class E>
  static V vgt_s(V a, V b) {
    return each<E>([](V x, V y) { return ones_if(lt_s(top<E>(y), top<E>(x))); }, a, b);
  }
  template <class E>
  static V vgt_u(V a, V b) {
    return each<E>([](V x, V y) { return ones_if(lt_u(y, x)); }, a, b);
  }
  template <class E>
  static V vshl(V a, int n) {
    return {Exact::vshl<E>(a.value, n), Exact::vshl<E>(a.undefined, n)};
  }
  template <class E>
  static V vshr(V a, int n) {
    return {Exact::vshr<E>(a.value, n), Exact::vshr<E>(a.undefined, n)};
  }
  template <class E>
  static V vsar(V a, int n) {
    return {Exact::vsar<E>(a.value, n), Exact::vsar<E>(a.undefined, n)};
  }

  // Ways to set undefined bits: all alike in these, then as they are not, then as others have them.
  static constexpr std::array<uint64_t, 8> kPatterns = {0,
                                                        ~uint64_t{0},
                                                        0x5555555555555555,
                                                        0xaaaaaaaaaaaaaaaa,
                                                        0x9e3779b97f4a7c15,
                                                        0x3c6ef372fe94f82a,
                                                        0x7fffffff7fffffff,
                                                        0x8000000080000000};
  static constexpr size_t kWays = kPatterns.size() + 3;
  // Operand i of `count`, in one of kWays.
  static uint64_t in_way(size_t way, const V* operands, size_t i, size_t count) {
    const V& x = operands[i];
    uint64_t other = ~x.value;
    if (way < kPatterns.size())
      other = kPatterns[(way * (2 * i + 1)) % kPatterns.size()];
    else if (way > kPatterns.size())
      other = operands[(i + (way == kPatterns.size() + 1 ? 1 : count - 1)) % count].value;
    return x.least() | (other & x.undefined);
  }

 private:
  static V low32(V a) { return {a.value & 0xffffffff, a.undefined & 0xffffffff}; }
  static bool is_zero(V a) { return a.most() == 0; }
  static uint64_t product(V a, V b) {
    if ((a.undefined | b.undefined) == 0 || is_zero(a) || is_zero(b)) return 0;
    // What is undefined begins at the lowest such bit times the lowest one of the other.
    const auto from = [](V x, V y) {
      return smear_left(x.undefined << std::countr_zero(y.most()));
    };
    return (a.undefined != 0 ? from(a, b) : 0) | (b.undefined != 0 ? from(b, a) : 0);
  }
  static uint64_t high_product(V a, V b) {
    const bool is_known = (a.undefined | b.undefined) == 0 || is_zero(a) || is_zero(b);
    return is_known ? 0 : ~uint64_t{0};
  }
  // Each count that may be.
  template <class Shift>
  static V by_count(V a, V n, Shift shift) {
    V result = shift(a, static_cast<int>(n.value & 63));
    for (uint64_t left = n.undefined & 63, some = left; some != 0;) {
      some = (some - 1) & left;  // the subsets of `left`
      const V other = shift(a, static_cast<int>((n.least() & 63) | some));
      result.undefined |= other.undefined | (other.value ^ result.value);
    }
    if ((n.undefined & 63) != 0) {
      const V other = shift(a, static_cast<int>((n.least() | n.undefined) & 63));
      result.undefined |= other.undefined | (other.value ^ result.value);
    }
    return result;
  }
  template <class F, size_t... i>
  static V tried(F& f, V result, const V* operands, std::index_sequence<i...>) {
    for (size_t way = 0; way < kWays; ++way)
      result.undefined |= f(in_way(way, operands, i, sizeof...(i))...) ^ result.value;
    return result;
  }
  template <class E, class F>
  static V each(F f, V a, V b) {
    constexpr int kWidth = 8 * static_cast<int>(sizeof(E));
    V all;
    for (int at = 0; at < 64; at += kWidth) {
      const auto element = [&](V x) {
        return V{static_cast<E>(x.value >> at), static_cast<E>(x.undefined >> at)};
      };
      const V r = f(element(a), element(b));
      all.value |= uint64_t{static_cast<E>(r.value)} << at;
      all.undefined |= uint64_t{static_cast<E>(r.undefined)} << at;
    }
    return all;
  }
  // Signed elements compare as words with the element at the top.
  template <class E>
  static V top(V a) {
    return shl(a, 64 - 8 * static_cast<int>(sizeof(E)));
  }
  static V ones_if(M m) { return select(m, konst(~uint64_t{0}), konst(0)); }
};

}  // namespace gpusim::host::uninitialised

namespace gpusim::sem {

// The flags of a - b: what conditions say of them is exact, while N and V by themselves, of which
// only "less" is ever asked behind a comparison, count as defined where "less" is.
template <>
inline host::uninitialised::Bits fl_sub64<host::uninitialised::Domain>(
    const host::uninitialised::Bits a, const host::uninitialised::Bits b) {
  using D = host::uninitialised::Domain;
  uint64_t undefined = 0;
  if (D::lt_s(a, b).undefined) undefined |= 8 | 1;
  if (D::eq(a, b).undefined) undefined |= 4;
  if (D::lt_u(a, b).undefined) undefined |= 2;
  return {fl_sub64<ScalarDomain>(a.value, b.value), undefined};
}

// An undefined sign would otherwise be taken apart from its copies.
template <>
inline host::uninitialised::Bits sdiv32<host::uninitialised::Domain>(
    const host::uninitialised::Bits a, const host::uninitialised::Bits b) {
  return host::uninitialised::Domain::map(
      [](uint64_t x, uint64_t y) { return sdiv32<ScalarDomain>(x, y); }, a, b);
}

}  // namespace gpusim::sem
