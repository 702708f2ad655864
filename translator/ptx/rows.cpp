#include "translator/ptx/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "translator/ptx/rows_internal.h"
#include "translator/ptx/special.h"

namespace gpusim::ptx {
namespace {

struct Group {
  std::vector<std::string> names;
  bool is_optional = false, is_type = false, is_first = false;
};

struct Pattern {
  const Row* row;
  std::vector<Group> groups;
  std::vector<std::string> operands;
  size_t least = 0;  // operands that must be there
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    if (end != 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

using Table = std::map<std::string, std::vector<Pattern>, std::less<>>;

void add_rows(const RowList& rows, Table& table) {
  for (const Row& row : rows) {
    const std::vector<std::string> words = split(row.syntax, ' ');
    Pattern p{.row = &row, .groups = {}, .operands = {}};
    for (size_t i = 1; i < words.size(); ++i) {
      std::string word = words[i];
      Group g{.names = {},
              .is_optional = word[0] == '{',
              .is_type = word[0] == '.',
              .is_first = word[0] == '['};
      if (!g.is_type) word = word.substr(1, word.size() - 2);
      for (const std::string& name : split(word, '|'))
        g.names.push_back(g.is_type ? name.substr(1) : name);
      p.groups.push_back(std::move(g));
    }
    bool is_open = false;
    for (const std::string& o : split(row.operands, ' ')) {
      if (o == "?") {
        is_open = true;
        continue;
      }
      p.operands.push_back(o);
      if (!is_open) ++p.least;
    }
    table[words[0]].push_back(std::move(p));
  }
}

const Table& table() {
  static const Table all = [] {
    Table t;
    for (const RowList* rows :
         {&integer_rows(), &bit_rows(),         &compare_rows(), &carry_rows(),
          &float_rows(),   &approximate_rows(), &half_rows(),    &half_compare_rows(),
          &convert_rows(), &narrow_rows(),      &packed_rows(),  &memory_rows(),
          &control_rows(), &bfloat_rows(),      &async_rows(),   &matrix_rows(),
          &texture_rows(), &warpgroup_rows(),   &video_rows(),   &stack_rows()})
      add_rows(*rows, t);
    return t;
  }();
  return all;
}

bool has_name(const Group& g, std::string_view name) {
  return std::find(g.names.begin(), g.names.end(), name) != g.names.end();
}

// The modifier that the pattern does not take, or what it lacks; nothing if it takes all.
std::string misfit(const Pattern& p, const Instruction& insn, std::vector<Type>& types) {
  std::vector<bool> filled(p.groups.size());
  for (size_t k = 0; k < insn.modifiers.size(); ++k) {
    const std::string& m = insn.modifiers[k];
    const bool is_type = type_of(m).has_value();
    bool found = false;
    for (size_t g = 0; g < p.groups.size() && !found; ++g) {
      if (filled[g] || p.groups[g].is_type != is_type) continue;
      if (p.groups[g].is_first && k != 0) continue;
      found = has_name(p.groups[g], m);
      if (!found && is_type) break;  // in their order
      filled[g] = found;
    }
    if (!found) return "." + m;
    if (is_type) types.push_back(*type_of(m));
  }
  for (size_t g = 0; g < p.groups.size(); ++g)
    if (!filled[g] && !p.groups[g].is_optional)
      return fmt::format("none of .{}", fmt::join(p.groups[g].names, ", ."));
  return {};
}

// --- operands

using Kind = Operand::Kind;

constexpr Type kBits32{ptx::Kind::kBits, 32}, kWord{ptx::Kind::kUnsigned, 32};

class OperandCheck {
 public:
  OperandCheck(const Instruction& insn, const Function& f, const std::vector<Type>& types)
      : insn_(insn), function_(f), types_(types) {}

  bool fits(const std::string& code, const Operand& o) const {
    if (code == "any") return true;
    if (code == "_") return o.is(Kind::kSink);
    if (code == "lab") return o.is(Kind::kSymbol);
    if (code == "m") return is_address(o);
    if (code == "i") return o.is(Kind::kInteger) || is_register(o, kBits32);
    if (code == "sp")
      return is_register(o, kPredicateType, true) ||
             (o.is(Kind::kInteger) && o.value <= 1 && !o.is_negated);
    if (code == "dp") return is_register(o, kPredicateType) || o.is(Kind::kSink);
    if (code == "dpq") {
      if (!o.is(Kind::kPair)) return fits("dp", o);
      return fits("dp", o.elements[0]) && fits("dp", o.elements[1]);
    }
    if (code == "dq" || code == "dm") {  // a word, maybe with a predicate
      const Type t = code == "dq" ? kBits32 : kWord;
      if (!o.is(Kind::kPair)) return is_register(o, t);
      return (is_register(o.elements[0], t) || o.elements[0].is(Kind::kSink)) &&
             fits("dp", o.elements[1]);
    }
    if (code == "de")
      return o.is(Kind::kPair) &&
             (is_register(o.elements[0], kWord) || o.elements[0].is(Kind::kSink)) &&
             fits("dp", o.elements[1]);
    if (code == "dl") return fits("de", o) && !o.elements[1].is(Kind::kSink);
    if (code == "r32") return is_register(o, kBits32);
    if (code == "r0") return o.is(Kind::kRegister) && fits("s0", o);
    if (code == "n") return o.is(Kind::kInteger);
    if (code == "128") return o.is(Kind::kInteger) && o.value == 128;
    if (code == "dv" || code == "sv") {
      const auto is_plain = [](const Operand& x) { return x.is(Kind::kRegister); };
      return is_plain(o) ||
             (o.is(Kind::kVector) && std::all_of(o.elements.begin(), o.elements.end(), is_plain));
    }
    if (code == "dt") return fits_texels(o.is(Kind::kPair) ? o.elements[0] : o) && has_predicate(o);
    if (code == "wa") return o.is(Kind::kVector) ? fits("sv", o) : fits("s64", o);
    if (code == "tx") return fits_coordinates(o);
    if (code == "tm") return fits_tensor(o);
    if (code == "to") return is_row_of(o, {Kind_::kUnsigned, 16}, tensor_rank() - 2);
    if (code == "gv") return is_row_of(o, types_[1], gradient_size());
    if (code == "dx" || code == "sx") return fits_element(o);
    if (code == "mv") return fits_mov(o);
    if (code == "md") {
      const auto is_integer = [](const Operand& x) { return x.is(Kind::kInteger); };
      if (!o.is(Kind::kVector)) return is_register(o, types_[0]);
      return std::none_of(o.elements.begin(), o.elements.end(), is_integer) && fits_mov(o);
    }
    if (code == "c0")
      return types_[0].is_float() && types_[0].bits > 16
                 ? is_register(o, types_[0])
                 : fits_scalar(o, types_[0], false) && !o.is(Kind::kSink);
    if (code == "c1")
      return o.is(Kind::kSpecial) ? is_special_of(o, types_[1]) : fits_scalar(o, types_[1], true);
    if (code == "dpart") return is_register(o, types_[0], false, true);
    if (code == "v1" || code == "vn" || code == "sn") {
      const bool is_word = is_register(o, kWord, code != "v1", code != "sn");
      return is_word || (is_literal(o, kWord) && !o.is_negated);
    }
    const Type t = type(code);
    switch (code[0]) {
      case 'd':
        return is_register(o, t) || (o.is(Kind::kSink) && code == "d0" && sinks());
      case 's':
        if (t.is_predicate() && o.is(Kind::kInteger)) return is_truth(o);
        return is_register(o, t, t.is_predicate()) || is_literal(o, t);
      case 'l':
      case 't':
        return fits_access(o, t, code[0] == 't');
      default:
        return false;
    }
  }

 private:
  using Kind_ = ptx::Kind;

  bool sinks() const { return insn_.base == "atom" || insn_.base == "mbarrier"; }

  Type type(const std::string& code) const {
    const std::string which = code.substr(1);
    if (which == "32") return kWord;
    if (which == "64") return {Kind_::kUnsigned, 64};
    if (which == "f") return {Kind_::kFloat, 32};
    if (which == "16") return {Kind_::kUnsigned, 16};
    Type t = which == "1" && types_.size() > 1 ? types_[1] : types_.empty() ? Type{} : types_[0];
    if (which == "w") t.bits = static_cast<uint8_t>(t.bits * 2);
    return t;
  }
  bool is_register(const Operand& o, Type t, bool may_be_negated = false,
                   bool may_be_part = false) const {
    return o.is(Kind::kRegister) && types_agree(t, function_.registers[o.reg].type) &&
           (may_be_negated || !o.is_negated) && (may_be_part || o.part_bits == 0);
  }
  // -1, 0, 1, where a predicate stands.
  static bool is_truth(const Operand& o) { return o.value + 1 <= 2; }
  static bool is_literal(const Operand& o, Type t) {
    if (t.is_predicate() || t.is_plain) return false;
    if (o.is(Kind::kFloat))
      return t.is_float() ? t.bits != 16 && !t.is_packed
                          : t.kind == Kind_::kBits && t.bits == o.bits;
    return o.is(Kind::kInteger) && !t.is_float();
  }
  bool is_address(const Operand& o) const {
    if (!o.is(Kind::kAddress) || o.elements.size() != 1) return false;
    const Operand& base = o.elements[0];
    if (base.is(Kind::kInteger)) return true;
    if (!base.is(Kind::kRegister)) return base.is(Kind::kSymbol);
    const Type t = function_.registers[base.reg].type;
    if (t.is_float() || t.is_predicate()) return false;
    const bool is_short = insn_.has("shared") || insn_.has("shared::cta") ||
                          insn_.has("shared::cluster") || insn_.has("local") ||
                          insn_.has("const") || insn_.has("param") ||
                          insn_.has("mbarrier::complete_tx::bytes");
    return t.bits == 64 || (t.bits == 32 && is_short);
  }
  // Registers may be wider than what is in memory; floats then go with plain bits only.
  bool fits_scalar(const Operand& o, Type t, bool is_store) const {
    if (o.is(Kind::kSink)) return !is_store;
    if (!o.is(Kind::kRegister)) return is_store && is_literal(o, t);
    const Type reg = function_.registers[o.reg].type;
    if (reg.bits == t.bits) return types_agree(t, reg) && !o.is_negated;
    if (insn_.has("async")) return false;
    if (reg.is_predicate() || reg.bits < t.bits || reg.bits > 64 || o.is_negated) return false;
    return reg.kind == Kind_::kBits || t.kind == Kind_::kBits || (!reg.is_float() && !t.is_float());
  }
  bool fits_access(const Operand& o, Type t, bool is_store) const {
    const size_t count = insn_.has("v2") ? 2 : insn_.has("v4") ? 4 : 1;
    if (count * t.bits > 128) return false;
    if (count == 1) return fits_scalar(o, t, is_store) && !o.is(Kind::kSink);
    if (!o.is(Kind::kVector) || o.elements.size() != count) return false;
    // Registers of one width; integers and floats are not next to each other.
    int bits = 0;
    bool was_integer = false, was_float = false;
    for (const Operand& e : o.elements) {
      if (!fits_scalar(e, t, is_store)) return false;
      if (!e.is(Kind::kRegister)) continue;
      const Type reg = function_.registers[e.reg].type;
      if (bits != 0 && bits != reg.bits) return false;
      bits = reg.bits;
      const bool is_integer = !reg.is_float() && reg.kind != Kind_::kBits;
      if ((was_integer && reg.is_float()) || (was_float && is_integer)) return false;
      was_integer = is_integer;
      was_float = reg.is_float();
    }
    return true;
  }
  // --- textures and surfaces
  // Registers of one type in { }.
  bool is_row_of(const Operand& o, Type t, size_t count) const {
    const auto fits = [&](const Operand& x) { return is_register(x, t) || is_literal(x, t); };
    return o.is(Kind::kVector) && o.elements.size() == count &&
           std::all_of(o.elements.begin(), o.elements.end(), fits);
  }
  bool fits_texels(const Operand& o) const {
    const auto fits = [&](const Operand& x) {
      return x.is(Kind::kSink) || is_register(x, types_[0]);
    };
    return o.is(Kind::kVector) && o.elements.size() == 4 &&
           std::all_of(o.elements.begin(), o.elements.end(), fits);
  }
  bool has_predicate(const Operand& o) const {
    return !o.is(Kind::kPair) || is_register(o.elements[1], kPredicateType) ||
           o.elements[1].is(Kind::kSink);
  }
  size_t gradient_size() const {
    return insn_.has("3d") ? 4 : insn_.has("2d") || insn_.has("a2d") ? 2 : 1;
  }
  // [handle, {coordinates}]: up to three, or four; a layer comes first.
  bool fits_coordinates(const Operand& o) const {
    if (!o.is(Kind::kAddress) || o.elements.size() != 2 || o.value != 0) return false;
    const Operand& base = o.elements[0];
    if (base.is(Kind::kRegister)) {
      const Type t = function_.registers[base.reg].type;
      if (t.is_float() || t.bits != 64) return false;
    }
    const bool is_of_texture = insn_.base == "tex" || insn_.base == "tld4";
    const Type t = is_of_texture ? types_[1] : kBits32;
    const std::vector<Operand>& list = o.elements[1].elements;
    const bool has_layer = insn_.has("a1d") || insn_.has("a2d") || insn_.has("acube");
    const size_t count = insn_.has("1d") ? 1 : insn_.has("2d") || insn_.has("a1d") ? 2 : 4;
    if (list.size() != count) return false;
    for (size_t k = 0; k < count; ++k) {
      const Type wanted = k == 0 && has_layer ? kBits32 : t;
      if (!is_register(list[k], wanted) && !is_literal(list[k], wanted)) return false;
    }
    return true;
  }
  size_t tensor_rank() const {
    size_t rank = 1;
    while (rank < 5 && !insn_.has(fmt::format("{}d", rank))) ++rank;
    return rank;
  }
  bool fits_tensor(const Operand& o) const {
    if (!o.is(Kind::kAddress) || o.elements.size() != 2 || o.value != 0) return false;
    const Operand& base = o.elements[0];
    if (base.is(Kind::kRegister) && function_.registers[base.reg].type.bits != 64) return false;
    const std::vector<Operand>& list = o.elements[1].elements;
    const auto fits = [&](const Operand& x) {
      return is_register(x, kBits32) || is_literal(x, kBits32);
    };
    return list.size() == tensor_rank() && std::all_of(list.begin(), list.end(), fits);
  }
  // Bytes have registers of 16 bits, others of their own size.
  bool fits_element(const Operand& o) const {
    const size_t count = insn_.has("v2") ? 2 : insn_.has("v4") ? 4 : 1;
    if (count * types_[0].bits > 128) return false;
    const auto fits = [&](const Operand& x) {
      if (!x.is(Kind::kRegister) || x.is_negated) return false;
      const Type reg = function_.registers[x.reg].type;
      return !reg.is_predicate() && reg.bits == std::max<int>(16, types_[0].bits);
    };
    if (!o.is(Kind::kVector)) return count == 1 && fits(o);
    return o.elements.size() == count && std::all_of(o.elements.begin(), o.elements.end(), fits);
  }
  static bool is_special_of(const Operand& o, Type t) {
    const int bits = special_register(o.symbol).bits;
    if (bits == 1) return t.is_predicate();
    return !t.is_float() && !t.is_predicate() && (t.bits == bits || (bits == 32 && t.bits == 16));
  }
  bool fits_mov(const Operand& o) const {
    const Type t = types_[0];
    if (o.is(Kind::kSpecial)) return is_special_of(o, t);
    if (t.is_predicate() && o.is(Kind::kInteger)) return is_truth(o);
    if (o.is(Kind::kSymbol)) return !t.is_float() && t.bits >= 32 && t.bits <= 64;
    if (o.is(Kind::kVector)) {
      if (t.kind != Kind_::kBits || o.elements.size() > 4) return false;
      size_t bits = 0;
      for (const Operand& e : o.elements) {
        if (e.is(Kind::kSink) || e.is(Kind::kInteger)) {
          bits += t.bits / o.elements.size();
        } else if (e.is(Kind::kRegister)) {
          bits += function_.registers[e.reg].type.bits;
        } else {
          return false;
        }
      }
      return bits == t.bits;
    }
    return is_register(o, t) || is_literal(o, t);
  }

  const Instruction& insn_;
  const Function& function_;
  const std::vector<Type>& types_;
};

// ptxas refuses .sat where nothing could be out of range.
bool saturates_in_vain(const Instruction& insn, const std::vector<Type>& types) {
  if (insn.base != "cvt" || !insn.has("sat") || types[0].is_float() || types[1].is_float())
    return false;
  const auto bits = [](Type t) { return t.bits - (t.is_signed() ? 1 : 0); };
  return (types[0].is_signed() || !types[1].is_signed()) && bits(types[0]) >= bits(types[1]);
}

// vmad: the product or c, not both.
bool negates_too_much(const Instruction& insn) {
  const auto& o = insn.operands;
  return insn.base == "vmad" && o[1].is_negated != o[2].is_negated && o[3].is_negated;
}

bool operands_fit(const Pattern& p, const Instruction& insn, const Function& f,
                  const std::vector<Type>& types) {
  if (insn.operands.size() < p.least || insn.operands.size() > p.operands.size()) return false;
  const OperandCheck check(insn, f, types);
  for (size_t i = 0; i < insn.operands.size(); ++i)
    if (!check.fits(p.operands[i], insn.operands[i])) return false;
  return !negates_too_much(insn);
}

}  // namespace

bool is_known_opcode(std::string_view base) { return table().contains(base); }

bool is_video(std::string_view base) {
  return base.starts_with('v') &&
         std::any_of(video_rows().begin(), video_rows().end(),
                     [&](const Row& r) { return split(r.syntax, ' ').front() == base; });
}

std::vector<const Row*> rows_of(std::string_view base) {
  std::vector<const Row*> out;
  const auto found = table().find(base);
  if (found != table().end())
    for (const Pattern& p : found->second) out.push_back(p.row);
  return out;
}

std::vector<const Row*> all_rows() {
  std::vector<const Row*> out;
  for (const auto& [base, patterns] : table())
    for (const Pattern& p : patterns) out.push_back(p.row);
  return out;
}

bool is_destination(const Instruction& insn, size_t operand) {
  if (insn.row == &kBranchIfBelow || insn.row == &kCallHost || insn.row == &kCallDevice ||
      insn.row == &kCallTensor || insn.row == &kCallInPlace || insn.row == &kCallOut ||
      insn.row == &kReturn)
    return false;
  if (insn.row == &kMatrixProduct || insn.row == &kWarpgroupProduct) return false;
  if (insn.row == &kMatrixResult || insn.row == &kWarpgroupResult || insn.row == &kAddressOf ||
      insn.row == &kHostResult || insn.row == &kSetStack || insn.row == &kFrameAddress ||
      insn.row == &kClearRegisters || insn.row == &kAfterCall)
    return operand == 0;
  if (insn.row == &kLoadParamRegister || insn.row == &kStoreParamRegister) return operand == 0;
  if (operand != 0) return false;
  const std::string_view codes = insn.row->operands;
  return codes.starts_with("d") || codes.starts_with("md") || codes.starts_with("c0") ||
         codes.starts_with("l0");
}

bool is_special_register(std::string_view name) {
  return special_register(name).what != Special::kNone;
}

std::string match(Instruction& insn, const Function& function) {
  const auto found = table().find(insn.base);
  if (found == table().end()) return fmt::format("instruction '{}' is not supported", insn.base);
  std::string wrong, allowed;
  bool modifiers_fit = false;
  for (const Pattern& p : found->second) {
    std::vector<Type> types;
    std::string why = misfit(p, insn, types);
    if (why.empty() && saturates_in_vain(insn, types)) why = ".sat: every value fits";
    if (why.empty()) {
      modifiers_fit = true;
      if (operands_fit(p, insn, function, types)) {
        insn.row = p.row;
        insn.types = std::move(types);
        return {};
      }
      allowed += fmt::format("\n  {}  {}", p.row->syntax, p.row->operands);
    } else if (wrong.empty()) {
      wrong = why;
    }
  }
  if (modifiers_fit)
    return fmt::format("operands of '{}' do not fit; allowed:{}", insn.opcode, allowed);
  for (const Pattern& p : found->second) allowed += fmt::format("\n  {}", p.row->syntax);
  return fmt::format("'{}' is not supported ({}); allowed:{}", insn.opcode, wrong, allowed);
}

InsnClass class_of(const Instruction& insn) {
  const Type t = insn.type();
  const bool is_double = t.is_float() && t.bits == 64;
  const bool is_float = t.is_float() || insn.has("bf16") || insn.has("bf16x2");
  switch (insn.row->kind) {
    case RowClass::kArithmetic:
      return is_double  ? InsnClass::kDoubleArithmetic
             : is_float ? InsnClass::kFloatArithmetic
                        : InsnClass::kIntegerArithmetic;
    case RowClass::kDivision:
      return is_double      ? InsnClass::kDoubleDivision
             : t.is_float() ? InsnClass::kFloatDivision
                            : InsnClass::kIntegerDivision;
    case RowClass::kComparison:
      return insn.types.back().is_float() || is_float ? InsnClass::kFloatComparison
                                                      : InsnClass::kIntegerComparison;
    case RowClass::kMemory: {
      if (insn.base == "cp") return InsnClass::kOffChipMemory;
      const bool is_on_chip = insn.has("shared") || insn.has("shared::cta") ||
                              insn.has("shared::cluster") || insn.has("param") || insn.has("const");
      return is_on_chip ? InsnClass::kOnChipMemory : InsnClass::kOffChipMemory;
    }
    case RowClass::kLogical:
      return InsnClass::kIntegerLogical;
    case RowClass::kSpecial:
      return InsnClass::kSpecialFunction;
    case RowClass::kControl:
      return InsnClass::kControlFlow;
    case RowClass::kParallel:
      return InsnClass::kParallelism;
    case RowClass::kOther:
      break;
  }
  return InsnClass::kOther;
}

}  // namespace gpusim::ptx
