// One mistake at a time, chosen by MISTAKE; CTest checks that the compiler names each.
#include "translator/a64/dispatch.h"

namespace gpusim::a64 {

#if MISTAKE == 1  // too few arguments
struct Visitor {
  bool ADD_imm(bool, bool, Imm<12>, Reg) { return true; }
};
#elif MISTAKE == 2  // a width that is not the field's
struct Visitor {
  bool ADD_imm(bool, bool, Imm<11>, Reg, Reg) { return true; }
};
#elif MISTAKE == 3  // a register where the row has a shift
struct Visitor {
  bool ADD_imm(bool, Reg, Imm<12>, Reg, Reg) { return true; }
};
#else
struct Visitor {
  bool ADD_imm(bool, bool, Imm<12>, Reg, Reg) { return true; }
};
#endif

Visit visit(Visitor& visitor, uint32_t word) { return dispatch(visitor, word); }

#if MISTAKE == 4
inline constexpr auto kPattern = parse_bits<uint32_t>("z00100010hiiiiiiiiiiiinnnnndddd");
#elif MISTAKE == 5
inline constexpr auto kPattern = parse_bits<uint32_t>("z00100010ziiiiiiiiiiiinnnnnddddd");
#elif MISTAKE == 6
inline constexpr auto kPattern = parse_bits<uint32_t>("z0010001_hiiiiiiiiiiiinnnnnddddd");
#endif

}  // namespace gpusim::a64
