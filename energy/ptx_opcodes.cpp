#include "energy/ptx_opcodes.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace gpusim::energy {
namespace {

bool is_type(std::string_view s) {
  if (s == "pred" || s == "bf16" || s == "bf16x2" || s == "f16x2") return true;
  return s.size() >= 2 && std::string_view("usbf").find(s[0]) != std::string_view::npos &&
         s.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

bool is_float(std::string_view type) {
  return !type.empty() && (type[0] == 'f' || type.starts_with("bf"));
}
bool is_double(std::string_view type) { return type == "f64"; }

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 20> kArithmetic = {
    "add",  "sub",  "mul",  "mad",   "fma",   "neg",  "abs",  "min",  "max",       "sad",
    "addc", "subc", "madc", "mul24", "mad24", "dp4a", "dp2a", "wmma", "vabsdiff4", "mma"};
constexpr std::array<std::string_view, 21> kLogical = {
    "and",   "or",   "xor",  "not", "cnot", "shl",  "shr",  "shf",  "lop3",     "bfe", "bfi",
    "bfind", "brev", "popc", "clz", "bmsk", "prmt", "selp", "slct", "copysign", "mov"};
constexpr std::array<std::string_view, 8> kSpecial = {"rcp", "sqrt", "rsqrt", "sin",
                                                      "cos", "lg2",  "ex2",   "tanh"};
constexpr std::array<std::string_view, 8> kControl = {"bra",  "brx",  "call",  "ret",
                                                      "exit", "trap", "brkpt", "pmevent"};
constexpr std::array<std::string_view, 14> kParallel = {
    "bar",  "barrier", "vote",  "shfl",  "match",      "redux",    "red",
    "atom", "membar",  "fence", "elect", "activemask", "mbarrier", "sured"};
constexpr std::array<std::string_view, 11> kMemory = {
    "ld", "ldu", "st", "tex", "tld4", "txq", "suld", "sust", "suq", "ldmatrix", "stmatrix"};

InsnClass arithmetic(std::string_view type) {
  return is_double(type)  ? InsnClass::kDoubleArithmetic
         : is_float(type) ? InsnClass::kFloatArithmetic
                          : InsnClass::kIntegerArithmetic;
}

InsnClass memory(const PtxSpelling& s) {
  const bool is_on_chip =
      s.base == "ldmatrix" || s.base == "stmatrix" ||
      std::any_of(s.modifiers.begin(), s.modifiers.end(), [](auto m) {
        return m.starts_with("shared") || m.starts_with("param") || m == "const";
      });
  return is_on_chip ? InsnClass::kOnChipMemory : InsnClass::kOffChipMemory;
}

}  // namespace

bool PtxSpelling::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

PtxSpelling split_ptx(std::string_view text) {
  PtxSpelling s;
  s.base = text.substr(0, text.find('.'));
  for (size_t at = s.base.size(); at < text.size();) {
    const size_t next = std::min(text.find('.', at + 1), text.size());
    const std::string_view part = text.substr(at + 1, next - at - 1);
    (is_type(part) ? s.types : s.modifiers).push_back(part);
    at = next;
  }
  return s;
}

InsnClass ptx_class(std::string_view spelling, PtxClasses scheme) {
  const PtxSpelling s = split_ptx(spelling);
  if (s.base == "cvt") {
    const bool has_float = std::any_of(s.types.begin(), s.types.end(), is_float);
    return has_float || scheme == PtxClasses::kThesis ? arithmetic(s.type())
                                                      : InsnClass::kIntegerLogical;
  }
  if (s.base == "mov" && scheme == PtxClasses::kThesis) return arithmetic(s.type());
  if (is_one_of(s.base, kArithmetic)) return arithmetic(s.type());
  if (s.base == "div" || s.base == "rem")
    return is_double(s.type())  ? InsnClass::kDoubleDivision
           : is_float(s.type()) ? InsnClass::kFloatDivision
                                : InsnClass::kIntegerDivision;
  if (s.base == "setp" || s.base == "set" || s.base == "testp")
    return !s.types.empty() && is_float(s.types.back()) ? InsnClass::kFloatComparison
                                                        : InsnClass::kIntegerComparison;
  if (is_one_of(s.base, kLogical)) return InsnClass::kIntegerLogical;
  if (is_one_of(s.base, kSpecial)) return InsnClass::kSpecialFunction;
  if (is_one_of(s.base, kControl)) return InsnClass::kControlFlow;
  if (is_one_of(s.base, kParallel)) return InsnClass::kParallelism;
  if (is_one_of(s.base, kMemory)) return memory(s);
  return InsnClass::kOther;
}

std::string_view ptx_row(std::string_view spelling) {
  const PtxSpelling s = split_ptx(spelling);
  const std::string_view t = s.type();
  const bool is_integer = !is_float(t), is_half = t.starts_with("f16");
  const auto is = [&](auto... names) { return ((s.base == names) || ...); };
  const bool has_carry = s.has("cc");
  if (is("add", "sub", "addc")) {
    if (is_integer) return has_carry || is("addc") ? "multi_add" : "int_add";
    return is_half ? "fp16" : t == "f32" ? "fp32_add" : is_double(t) ? "fp64_add" : "";
  }
  if (is("subc")) return "multi_subc";
  if (is("min", "max"))
    return is_integer ? "int_add" : t == "f32" ? "fp32_add" : is_double(t) ? "fp64_add" : "";
  if (is("madc")) return "multi_mad";
  if (is("mul", "mad", "fma")) {
    if (is_integer) return has_carry ? "multi_mad" : "int_mul";
    return t == "f32" ? "fp32_mul" : is_half && is("mul") ? "fp16" : "";
  }
  if (is("div", "rem")) {
    if (is_integer)
      return is("div") ? (t[0] == 's' ? "int_div_signed" : "int_div_unsigned")
                       : (t[0] == 's' ? "int_rem_signed" : "int_rem_unsigned");
    return t == "f32" ? "fp32_div" : is_double(t) ? "fp64_div" : "";
  }
  if (is("abs")) return is_integer ? "int_abs" : "";
  if (is("and", "or", "not", "xor")) return "logic";
  if (is("shl", "shr")) return "shift";
  if (is("mul24", "mad24")) return "mul24";
  if (is("sin", "cos")) return "sin_cos";
  if (is("sqrt")) return s.has("approx") ? "sqrt_approx" : "sqrt";
  for (const std::string_view same :
       {"cnot", "rcp", "rsqrt", "lg2", "ex2", "copysign", "sad", "popc", "clz", "bfind"})
    if (s.base == same) return same;
  return {};
}

}  // namespace gpusim::energy
