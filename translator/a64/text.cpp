#include "translator/a64/text.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

namespace gpusim::a64 {
namespace {

/// Appends one of `suffixes`, chosen by the value of the fields in `letters`, first letter most
/// significant; "" stands for all remaining values.
struct Rule {
  std::string_view letters;
  std::vector<std::string_view> suffixes;
};

const Rule kSize = {"y", {"b", "h", "", ""}};
const Rule kSignedSize = {"y", {"b", "h", "w"}};
const Rule kOrdering = {"AR", {"", "l", "a", "al"}};
const Rule kUpperHalf = {"q", {"", "2"}};
const Rule kKey = {"M", {"a", "b"}};
const Rule kKeyZero = {"M", {"az", "bz"}};
const Rule kCondition = {"c",
                         {".eq", ".ne", ".cs", ".cc", ".mi", ".pl", ".vs", ".vc", ".hi", ".ls",
                          ".ge", ".lt", ".gt", ".le", ".al", ".nv"}};
const Rule kCrcSize = {"y", {"b", "h", "w", "x"}};
const Rule kDcps = {"l", {"", "1", "2", "3"}};
const Rule kBottomTop = {"q", {"b", "t"}};
// MOVI_family_v, PAC_reg and the structures: the whole mnemonic.
const Rule kModifiedImmediate = {
    "ok", {"movi", "orr",  "movi", "orr",  "movi", "orr",  "movi", "orr",  "movi", "orr",  "movi",
           "orr",  "movi", "movi", "movi", "fmov", "mvni", "bic",  "mvni", "bic",  "mvni", "bic",
           "mvni", "bic",  "mvni", "bic",  "mvni", "bic",  "mvni", "mvni", "movi", "fmov"}};
const Rule kPac = {"o", {"pacia", "pacib", "pacda", "pacdb", "autia", "autib", "autda", "autdb"}};
const Rule kPacZ = {
    "o", {"paciza", "pacizb", "pacdza", "pacdzb", "autiza", "autizb", "autdza", "autdzb"}};
const Rule kXpac = {"o", {"xpaci", "xpacd"}};
const Rule kStructures = {"o", {"4", "", "1", "", "3", "", "1", "1", "2", "", "1"}};
const Rule kSingleStructure = {"oR", {"1", "2", "3", "4", "1", "2", "3", "4", "1", "2", "3", "4"}};
const Rule kReplicate = {"oR", {"1r", "2r", "3r", "4r"}};

struct Text {
  std::string_view base;  // empty: the row's base mnemonic
  std::vector<Rule> rules;
};

const std::map<Op, Text>& texts() {
  static const std::map<Op, Text> kTexts = [] {
    std::map<Op, Text> m;
    for (Op op : {Op::STXR,        Op::STLXR,       Op::LDXR,  Op::LDAXR,  Op::STLLR,   Op::STLR,
                  Op::LDLAR,       Op::LDAR,        Op::STLUR, Op::LDAPUR, Op::STUR,    Op::LDUR,
                  Op::STR_prepost, Op::LDR_prepost, Op::STTR,  Op::LDTR,   Op::STR_reg, Op::LDR_reg,
                  Op::STR_uimm,    Op::LDR_uimm,    Op::LDAPR}) {
      m[op] = {"", {kSize}};
    }
    for (Op op :
         {Op::LDAPURS, Op::LDURS, Op::LDRS_prepost, Op::LDTRS, Op::LDRS_reg, Op::LDRS_uimm}) {
      m[op] = {"", {kSignedSize}};
    }
    for (Op op : {Op::CAS, Op::SWP, Op::LDADD, Op::LDCLR, Op::LDEOR, Op::LDSET, Op::LDSMAX,
                  Op::LDSMIN, Op::LDUMAX, Op::LDUMIN}) {
      m[op] = {"", {kOrdering, kSize}};
    }
    for (Op op :
         {Op::ADDHN_v,     Op::RADDHN_v,    Op::SUBHN_v,       Op::RSUBHN_v,      Op::SADDL_v,
          Op::UADDL_v,     Op::SADDW_v,     Op::UADDW_v,       Op::SSUBL_v,       Op::USUBL_v,
          Op::SSUBW_v,     Op::USUBW_v,     Op::SABAL_v,       Op::UABAL_v,       Op::SABDL_v,
          Op::UABDL_v,     Op::SMLAL_v,     Op::UMLAL_v,       Op::SMLSL_v,       Op::UMLSL_v,
          Op::SMULL_v,     Op::UMULL_v,     Op::SQDMLAL_v,     Op::SQDMLSL_v,     Op::SQDMULL_v,
          Op::PMULL_v,     Op::SMLAL_elt_v, Op::UMLAL_elt_v,   Op::SMLSL_elt_v,   Op::UMLSL_elt_v,
          Op::SMULL_elt_v, Op::UMULL_elt_v, Op::SQDMLAL_elt_v, Op::SQDMLSL_elt_v, Op::SQDMULL_elt_v,
          Op::XTN_v,       Op::SQXTN_v,     Op::SQXTUN_v,      Op::UQXTN_v,       Op::SHLL_v,
          Op::SSHLL_v,     Op::USHLL_v,     Op::SHRN_v,        Op::RSHRN_v,       Op::SQSHRN_v,
          Op::SQRSHRN_v,   Op::UQSHRN_v,    Op::UQRSHRN_v,     Op::SQSHRUN_v,     Op::SQRSHRUN_v,
          Op::FCVTN_v,     Op::FCVTL_v,     Op::FCVTXN_v,      Op::BFCVTN_v}) {
      m[op] = {"", {kUpperHalf}};
    }
    for (Op op : {Op::HINT, Op::NOP, Op::YIELD, Op::WFE, Op::WFI, Op::SEV, Op::SEVL}) {
      m[op] = {"hint", {}};
    }
    for (Op op : {Op::ST_multi, Op::ST_multi_post}) m[op] = {"st", {kStructures}};
    for (Op op : {Op::LD_multi, Op::LD_multi_post}) m[op] = {"ld", {kStructures}};
    for (Op op : {Op::ST_single, Op::ST_single_post}) m[op] = {"st", {kSingleStructure}};
    for (Op op : {Op::LD_single, Op::LD_single_post}) m[op] = {"ld", {kSingleStructure}};
    for (Op op : {Op::LD_replicate, Op::LD_replicate_post}) m[op] = {"ld", {kReplicate}};
    for (Op op : {Op::BRA, Op::BLRA, Op::RETA, Op::ERETA}) m[op] = {"", {kKey}};
    for (Op op : {Op::RETA, Op::ERETA}) m[op].rules = {{"M", {"a", "b"}}};
    for (Op op : {Op::BRA_z, Op::BLRA_z}) m[op] = {"", {kKeyZero}};
    for (Op op : {Op::BFMLAL_v, Op::BFMLAL_elt_v}) m[op] = {"", {kBottomTop}};
    m[Op::CASP] = {"", {kOrdering}};
    m[Op::LDRA] = {"", {{"k", {"a", "b"}}}};
    m[Op::B_cond] = {"", {kCondition}};
    m[Op::CRC32] = m[Op::CRC32C] = {"", {kCrcSize}};
    m[Op::DCPS] = {"", {kDcps}};
    m[Op::MOVI_family_v] = {"", {kModifiedImmediate}};
    m[Op::PAC_reg] = {"", {kPac}};
    m[Op::PAC_z] = {"", {kPacZ}};
    m[Op::XPAC] = {"", {kXpac}};
    return m;
  }();
  return kTexts;
}

bool is_whole_mnemonic(Op op) {
  return op == Op::MOVI_family_v || op == Op::PAC_reg || op == Op::PAC_z || op == Op::XPAC;
}

/// By-element rows: the register that holds the element.
unsigned element_register(const Row& row, uint32_t word) {
  const std::string_view name = row.name;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const unsigned m = row.field('m', word);
  const unsigned with_high = (row.field('M', word) << 4) | m;
  if (name.ends_with("_h") || name.starts_with("FMLAL") || name.starts_with("FMLSL") ||
      name.starts_with("BFMLAL")) {
    return m;
  }
  if (has("DOT") || has("FCMLA") || row.pattern.field('f').width != 0) return with_high;
  return row.field('y', word) == 1 ? m : with_high;
}

}  // namespace

std::string mnemonic(const Row& row, uint32_t word) {
  const auto it = texts().find(row.op);
  if (it == texts().end()) return base_mnemonic(row);
  const Text& text = it->second;
  std::string result = text.base.empty() ? base_mnemonic(row) : std::string(text.base);
  if (is_whole_mnemonic(row.op)) result.clear();
  for (const Rule& rule : text.rules) {
    uint32_t index = 0;
    for (const char letter : rule.letters) {
      const BitField f = row.pattern.field(letter);
      index = (index << f.width) | f.of(word);
    }
    if (index < rule.suffixes.size()) result += rule.suffixes[index];
  }
  return result;
}

std::optional<std::vector<unsigned>> register_numbers(const Row& row, uint32_t word) {
  switch (row.op) {
    case Op::CASP: {
      const unsigned s = row.field('s', word);
      const unsigned t = row.field('t', word);
      return {{s, s + 1, t, t + 1, row.field('n', word)}};
    }
    case Op::SYS:  // the text leaves register 31 out, and Cn and Cm look like none
    case Op::SYSL:
    case Op::MSR_reg:
    case Op::MRS:
      return std::nullopt;
    case Op::RETA:
    case Op::ERETA:
      return std::vector<unsigned>{};
    case Op::PRFM_lit:
    case Op::PRFM_reg:
    case Op::PRFM_uimm:
    case Op::PRFUM: {
      std::vector<unsigned> r;
      for (const char letter : {'n', 'm'}) {
        if (row.pattern.field(letter).width != 0) r.push_back(row.field(letter, word));
      }
      return r;
    }
    case Op::LD_multi_post:
    case Op::ST_multi_post:
    case Op::LD_single_post:
    case Op::ST_single_post:
    case Op::LD_replicate_post: {
      std::vector<unsigned> r = {row.field('t', word), row.field('n', word)};
      if (row.field('m', word) != 31) r.push_back(row.field('m', word));
      return r;
    }
    default:
      break;
  }
  std::vector<unsigned> r;
  for (const char letter : {'s', 't', 'u', 'd', 'n', 'm', 'a'}) {
    const BitField f = row.pattern.field(letter);
    if (f.width == 5) r.push_back(f.of(word));
    if (f.width == 4 && letter == 'm') r.push_back(element_register(row, word));
  }
  if (row.op == Op::RET && r.front() == 30) r.clear();
  return r;
}

namespace {

std::string general(unsigned number, bool is_64bit) {
  const char kind = is_64bit ? 'x' : 'w';
  return number == 31 ? fmt::format("{}zr", kind) : fmt::format("{}{}", kind, number);
}
std::string address(unsigned number) { return number == 31 ? "sp" : general(number, true); }

int64_t signed_field(uint32_t value, unsigned width) {
  return static_cast<int64_t>(uint64_t{value} << (64 - width)) >> (64 - width);
}
std::string with_offset(unsigned base, int64_t offset, bool writes_back = false) {
  return fmt::format("[{}{}]{}", address(base), offset ? fmt::format(", #{}", offset) : "",
                     writes_back ? "!" : "");
}

// Loads and stores that Capstone lacks; nothing of others.
std::string access_operands(const Row& row, uint32_t word) {
  const auto f = [&](char letter) { return row.field(letter, word); };
  switch (row.op) {
    case Op::CASP:
      return fmt::format("{}, {}, {}, {}, [{}]", general(f('s'), f('y')),
                         general(f('s') + 1, f('y')), general(f('t'), f('y')),
                         general(f('t') + 1, f('y')), address(f('n')));
    case Op::CAS:
    case Op::SWP:
    case Op::LDADD:
    case Op::LDCLR:
    case Op::LDEOR:
    case Op::LDSET:
    case Op::LDSMAX:
    case Op::LDSMIN:
    case Op::LDUMAX:
    case Op::LDUMIN:
      return fmt::format("{}, {}, [{}]", general(f('s'), f('y') == 3), general(f('t'), f('y') == 3),
                         address(f('n')));
    case Op::STLLR:
    case Op::LDLAR:
    case Op::LDAPR:
      return fmt::format("{}, [{}]", general(f('t'), f('y') == 3), address(f('n')));
    case Op::STLUR:
    case Op::LDAPUR:
      return fmt::format("{}, {}", general(f('t'), f('y') == 3),
                         with_offset(f('n'), signed_field(f('i'), 9)));
    case Op::LDAPURS:
      return fmt::format("{}, {}", general(f('t'), f('w') == 0),
                         with_offset(f('n'), signed_field(f('i'), 9)));
    case Op::LDRA:
      return fmt::format(
          "{}, {}", general(f('t'), true),
          with_offset(f('n'), 8 * signed_field(f('h') << 9 | f('i'), 10), f('w') != 0));
    default:
      return {};
  }
}

// What a register is called in a row of which only its registers are printed.
std::string register_name(const Row& row, uint32_t word, unsigned number) {
  const bool is_vector = row.group == Group::kSimd || row.group == Group::kFloat ||
                         row.name.find("_fp") != std::string_view::npos;
  if (is_vector) return fmt::format("v{}", number);
  const BitField size = row.pattern.field('z');
  return general(number, size.width == 0 || size.of(word) != 0);
}

}  // namespace

std::string instruction_text(uint32_t word) {
  const Row* row = decode(word);
  if (!row) return {};
  std::string text = mnemonic(*row, word);
  if (const std::string operands = access_operands(*row, word); !operands.empty())
    return text + " " + operands;
  const char* separator = " ";
  for (const unsigned number : register_numbers(*row, word).value_or(std::vector<unsigned>{})) {
    text += separator + register_name(*row, word, number);
    separator = ", ";
  }
  return text;
}

}  // namespace gpusim::a64
