// From a decoded word to a visitor's method: fields are cut out of the word in the order of the
// bit string and handed over as arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "translator/common/bit_pattern.h"

namespace gpusim {

/// A field of kWidth bits that is not a register number. Converts to uint32_t, so a visitor may
/// take `Imm<12>` (the width is then checked by the compiler), or plain `uint32_t` or `bool`.
template <unsigned kWidth>
struct Imm {
  static_assert(kWidth >= 1 && kWidth <= 32);
  uint32_t value = 0;

  constexpr operator uint32_t() const { return value; }
  constexpr bool bit(unsigned i) const { return ((value >> i) & 1) != 0; }
  constexpr uint64_t zero_extend() const { return value; }
  constexpr int64_t sign_extend() const {
    return static_cast<int64_t>(uint64_t{value} << (64 - kWidth)) >> (64 - kWidth);
  }
};

/// Most significant part first, as the manual's `immhi:immlo`.
template <unsigned kHigh, unsigned kLow>
constexpr Imm<kHigh + kLow> concat(Imm<kHigh> high, Imm<kLow> low) {
  return {(high.value << kLow) | low.value};
}
template <unsigned kHigh, unsigned kLow, unsigned... kRest>
constexpr auto concat(Imm<kHigh> high, Imm<kLow> low, Imm<kRest>... rest) {
  return concat(concat(high, low), rest...);
}

/// A register number. Which register file it selects is the instruction's business.
struct Reg {
  uint32_t index = 0;
  constexpr operator uint32_t() const { return index; }
};

/// What became of one instruction word.
enum class Visit : uint8_t {
  kTranslated,
  kRefused,      // the visitor's method returned false
  kNoVisitor,    // a known instruction that the visitor has no method for
  kUnallocated,  // no row
};

template <typename Visitor, typename Word>
using VisitFn = bool (*)(Visitor&, Word);

template <typename Visitor, typename Word, typename Call, typename... Fields>
struct VisitCall {
  // The cutters know their field's position; packs of types and of positions run in parallel.
  template <BitField... kFields>
  static bool call(Visitor& visitor, [[maybe_unused]] Word word) {
    return Call::call(visitor, Fields{kFields.of(word)}...);
  }
};

template <typename Visitor, typename Word, typename Call, BitField... kFields,
          typename... FieldTypes>
constexpr VisitFn<Visitor, Word> make_visit_fn(FieldTypes...) {
  if constexpr (Call::template accepts<Visitor, FieldTypes...>(0)) {
    return &VisitCall<Visitor, Word, Call, FieldTypes...>::template call<kFields...>;
  } else {
    static_assert(!Call::template exists<Visitor>(0),
                  "the visitor's method does not take the fields of its row");
    return nullptr;
  }
}

/// Call is a struct made by GPUSIM_VISIT_CALL around one method name. FieldType maps
/// (letter, width) to the argument's type. Null when the visitor has no such method.
template <typename Visitor, typename Word, BitPattern<Word> kPattern, typename Call,
          template <char, unsigned> typename FieldType, size_t... kI>
constexpr VisitFn<Visitor, Word> visit_fn(std::index_sequence<kI...>) {
  return make_visit_fn<Visitor, Word, Call, kPattern.fields[kI]...>(
      typename FieldType<kPattern.fields[kI].letter, kPattern.fields[kI].width>::Type{}...);
}

/// The Call of a method name, for visit_fn: struct Call_NAME.
#define GPUSIM_VISIT_CALL(name)                                            \
  struct Call_##name {                                                     \
    template <typename V, typename... F>                                   \
    static constexpr auto accepts(int)                                     \
        -> decltype(std::declval<V&>().name(std::declval<F>()...), true) { \
      return true;                                                         \
    }                                                                      \
    template <typename V, typename... F>                                   \
    static constexpr bool accepts(...) {                                   \
      return false;                                                        \
    }                                                                      \
    template <typename V>                                                  \
    static constexpr auto exists(int) -> decltype(&V::name, true) {        \
      return true;                                                         \
    }                                                                      \
    template <typename V>                                                  \
    static constexpr bool exists(...) {                                    \
      return false;                                                        \
    }                                                                      \
    template <typename V, typename... F>                                   \
    static bool call(V& v, F... f) {                                       \
      return v.name(f...);                                                 \
    }                                                                      \
  };

}  // namespace gpusim
