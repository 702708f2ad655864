// Scalar video instructions against the manual's statements of them (PTX ISA, "Scalar Video
// Instructions").
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "tests/isa/ptx/one_insn.h"

using namespace gpusim::ptx::test;

namespace {

using U = uint64_t;
__extension__ using Wide = __int128;

struct Part {
  const char* text;
  int at, bits;
};
constexpr Part kParts[] = {{"", 0, 32},    {".b0", 0, 8},  {".b1", 8, 8},  {".b2", 16, 8},
                           {".b3", 24, 8}, {".h0", 0, 16}, {".h1", 16, 16}};

Wide part_of(U word, const Part& p, bool is_signed) {
  const Wide low = static_cast<Wide>(word >> p.at & ((U{1} << p.bits) - 1));
  return is_signed && (low >> (p.bits - 1)) != 0 ? low - (Wide{1} << p.bits) : low;
}
Wide clamped(Wide x, int bits, bool is_signed) {
  const Wide most = (Wide{1} << (bits - is_signed)) - 1;
  return std::clamp(x, is_signed ? -most - 1 : Wide{0}, most);
}
// What the second operation takes is .s33.
Wide cut_to_33_bits(Wide x) {
  constexpr Wide kSign = Wide{1} << 32;
  return ((x & (2 * kSign - 1)) ^ kSign) - kSign;
}
const char* type(bool is_signed) { return is_signed ? ".s32" : ".u32"; }

// What is drawn of the forms of an instruction.
class Draw {
 public:
  bool coin() { return below(2) != 0; }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  const Part& part() { return kParts[below(std::size(kParts))]; }

 private:
  std::mt19937_64 random_{4};
};

// Two operands, and what is done with the result and c.
void check_scalar(Draw& draw, const std::string& name, const std::string& mode, bool has_type_of_d,
                  bool may_saturate, bool b_is_unsigned,
                  const std::function<Wide(Wide, Wide)>& of) {
  const std::vector<Operands> few = draw_operands(17, 200);
  for (int k = 0; k < 24; ++k) {
    const bool of_d = has_type_of_d && draw.coin(), of_a = draw.coin(),
               of_b = !b_is_unsigned && draw.coin(), sat = may_saturate && draw.coin();
    const Part &pa = draw.part(), &pb = draw.part();
    const uint32_t second = draw.below(5);  // nothing, add, min, max, merge with a part or nothing
    const Part& pd = second == 4 ? draw.part() : kParts[0];
    constexpr const char* kSecond[] = {"", ".add", ".min", ".max", ""};
    const std::string text =
        fmt::format("{}{}{}{}{}{}{} %D{}, %A{}, %B{}{};", name, has_type_of_d ? type(of_d) : "",
                    type(of_a), type(of_b), sat ? ".sat" : "", mode, kSecond[second], pd.text,
                    pa.text, pb.text, second == 0 ? "" : ", %C");
    CAPTURE(text);
    check_case({text, "rrrr",
                [=](U a, U b, U c) {
                  Wide x = of(part_of(a, pa, of_a), part_of(b, pb, of_b));
                  x = sat ? clamped(x, pd.bits, of_d) : cut_to_33_bits(x);
                  const Wide y = part_of(c, kParts[0], of_d);
                  if (second == 1) x += y;
                  if (second == 2) x = std::min(x, y);
                  if (second == 3) x = std::max(x, y);
                  const U low = static_cast<U>(x) & 0xffffffff;
                  if (second != 4) return low;
                  const U mask = ((U{1} << pd.bits) - 1) << pd.at;
                  return (low << pd.at & mask) | (c & ~mask);
                }},
               few);
  }
}

}  // namespace

TEST_CASE("scalar video instructions") {
  Draw draw;
  const auto scalar = [&](const char* name, auto of) {
    check_scalar(draw, name, "", true, true, false, of);
  };
  scalar("vadd", [](Wide a, Wide b) { return a + b; });
  scalar("vsub", [](Wide a, Wide b) { return a - b; });
  scalar("vabsdiff", [](Wide a, Wide b) { return a < b ? b - a : a - b; });
  scalar("vmin", [](Wide a, Wide b) { return std::min(a, b); });
  scalar("vmax", [](Wide a, Wide b) { return std::max(a, b); });
  for (const bool wraps : {false, true}) {
    const auto count = [=](Wide b) { return wraps ? b & 31 : std::min<Wide>(b, 32); };
    const char* mode = wraps ? ".wrap" : ".clamp";
    check_scalar(draw, "vshl", mode, true, true, true,
                 [=](Wide a, Wide b) { return a * (Wide{1} << count(b)); });
    check_scalar(draw, "vshr", mode, true, true, true,
                 [=](Wide a, Wide b) { return a >> count(b); });
  }
  const auto relation = [&](const char* name, auto holds) {
    check_scalar(draw, "vset", name, false, false, false, holds);
  };
  relation(".eq", [](Wide a, Wide b) { return Wide{a == b}; });
  relation(".ne", [](Wide a, Wide b) { return Wide{a != b}; });
  relation(".lt", [](Wide a, Wide b) { return Wide{a < b}; });
  relation(".le", [](Wide a, Wide b) { return Wide{a <= b}; });
  relation(".gt", [](Wide a, Wide b) { return Wide{a > b}; });
  relation(".ge", [](Wide a, Wide b) { return Wide{a >= b}; });
}

TEST_CASE("vmad") {
  const std::vector<Operands> few = draw_operands(18, 200);
  Draw draw;
  for (int k = 0; k < 120; ++k) {
    const bool of_a = draw.coin(), of_b = draw.coin(), sat = draw.coin(), plus_one = draw.coin();
    const uint32_t negated = plus_one ? 0 : draw.below(4);  // nothing, a, b, c
    const uint32_t shift = draw.below(3) * 8 - 1;           // none, 7, 15
    const Part &pa = draw.part(), &pb = draw.part();
    const bool is_signed = of_a || of_b || negated != 0;
    const std::string text =
        fmt::format("vmad{}{}{}{}{}{} %D, {}%A{}, {}%B{}, {}%C;", type(is_signed), type(of_a),
                    type(of_b), plus_one ? ".po" : "", sat ? ".sat" : "",
                    shift == 7    ? ".shr7"
                    : shift == 15 ? ".shr15"
                                  : "",
                    negated == 1 ? "-" : "", pa.text, negated == 2 ? "-" : "", pb.text,
                    negated == 3 ? "-" : "");
    CAPTURE(text);
    check_case({text, "rrrr",
                [=](U a, U b, U c) {
                  Wide product = part_of(a, pa, of_a) * part_of(b, pb, of_b);
                  Wide summand = part_of(c, kParts[0], is_signed);
                  if (negated == 1 || negated == 2) product = -product;
                  if (negated == 3) summand = -summand;
                  Wide x = product + summand + plus_one;
                  if (shift < 32) x >>= shift;
                  if (sat) x = clamped(x, 32, is_signed);
                  return static_cast<U>(x) & 0xffffffff;
                }},
               few);
  }
}
