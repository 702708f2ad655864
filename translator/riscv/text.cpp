#include "translator/riscv/text.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "translator/common/visit.h"
#include "translator/riscv/vector.h"

namespace gpusim::riscv {
namespace {

constexpr std::array<const char*, 32> kXNames = {
    "zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
    "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
    "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
constexpr std::array<const char*, 32> kFNames = {
    "ft0", "ft1", "ft2", "ft3", "ft4",  "ft5",  "ft6", "ft7", "fs0",  "fs1", "fa0",
    "fa1", "fa2", "fa3", "fa4", "fa5",  "fa6",  "fa7", "fs2", "fs3",  "fs4", "fs5",
    "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11"};
constexpr const char* kFormats[] = {"s", "d", "h", "q"};
constexpr const char* kIntegers[] = {"w", "wu", "l", "lu"};
constexpr const char* kRounding[] = {"rne", "rtz", "rdn", "rup", "rmm", "", "", "dyn"};

bool has(const Row& row, char letter) { return row.pattern.field(letter).width != 0; }

template <unsigned kWidth>
int64_t extend(uint32_t value) {
  return Imm<kWidth>{value}.sign_extend();
}

int64_t branch_offset(const Row& row, uint32_t w) {
  const auto f = [&](char letter) { return row.field(letter, w); };
  return extend<13>(f('g') << 12 | f('h') << 11 | f('i') << 5 | f('k') << 1);
}
int64_t jump_offset(const Row& row, uint32_t w) {
  const auto f = [&](char letter) { return row.field(letter, w); };
  return extend<21>(f('g') << 20 | f('k') << 12 | f('h') << 11 | f('i') << 1);
}
int64_t store_offset(const Row& row, uint32_t w) {
  return extend<12>(row.field('i', w) << 5 | row.field('k', w));
}

std::string csr_name(uint32_t csr) {
  switch (csr) {
    case 0x001:
      return "fflags";
    case 0x002:
      return "frm";
    case 0x003:
      return "fcsr";
    case 0x008:
      return "vstart";
    case 0x009:
      return "vxsat";
    case 0x00a:
      return "vxrm";
    case 0x00f:
      return "vcsr";
    case 0xc20:
      return "vl";
    case 0xc21:
      return "vtype";
    case 0xc22:
      return "vlenb";
    case 0xc00:
      return "cycle";
    case 0xc01:
      return "time";
    case 0xc02:
      return "instret";
    case 0xc80:
      return "cycleh";
    case 0xc81:
      return "timeh";
    case 0xc82:
      return "instreth";
    default:
      return fmt::format("0x{:x}", csr);
  }
}
std::string fence_set(uint32_t set) {
  std::string text;
  for (int i = 0; i < 4; ++i)
    if (set >> (3 - i) & 1) text += "iorw"[i];
  return text.empty() ? "unknown" : text;
}

// Rows of one major opcode have operands alike. Which of them are floating-point registers:
bool d_is_float(const Row& row) {
  switch (row.op) {
    case Op::FLE:
    case Op::FLT:
    case Op::FEQ:
    case Op::FLEQ:
    case Op::FLTQ:
    case Op::FCLASS:
    case Op::FCVT_TO_X:
    case Op::FCVTMOD_W_D:
    case Op::FMV_TO_X:
    case Op::FMVH_X_D:
      return false;
    default:
      return true;
  }
}
bool n_is_float(const Row& row) {
  return row.op != Op::FCVT_FROM_X && row.op != Op::FMV_FROM_X && row.op != Op::FMVP_D_X;
}

// Conversions that never round: assemblers write the mode 0 for them.
bool is_exact(const Row& row, uint32_t w) {
  constexpr int kWidths[] = {32, 64, 16, 128};
  if (row.op == Op::FCVT_F) return kWidths[row.field('f', w)] > kWidths[row.field('g', w)];
  return row.op == Op::FCVT_FROM_X && row.field('f', w) == 1 && row.field('o', w) < 2;
}

std::string float_operands(const Row& row, uint32_t w) {
  const auto f = [&](char letter) { return row.field(letter, w); };
  std::string text = d_is_float(row) ? f_name(f('d')) : x_name(f('d'));
  if (has(row, 'n')) text += fmt::format(",{}", n_is_float(row) ? f_name(f('n')) : x_name(f('n')));
  if (has(row, 'm'))
    text += fmt::format(",{}", row.op == Op::FMVP_D_X ? x_name(f('m')) : f_name(f('m')));
  if (has(row, 'a')) text += fmt::format(",{}", f_name(f('a')));
  if (row.op == Op::FLI) text += fmt::format(",{}", f('i'));
  const bool is_default = is_exact(row, w) ? f('r') == 0 : has(row, 'r') && f('r') == 7;
  if (has(row, 'r') && !is_default) text += fmt::format(",{}", kRounding[f('r')]);
  return text;
}

std::string operands(const Row& row, uint32_t w) {
  const auto f = [&](char letter) { return row.field(letter, w); };
  const auto x = [&](char letter) { return x_name(f(letter)); };
  switch (w & 0x7f) {
    case 0x37:
    case 0x17:
      return fmt::format("{},0x{:x}", x('d'), f('i'));
    case 0x6f:
      return fmt::format("{},.{:+}", x('d'), jump_offset(row, w));
    case 0x63:
      return fmt::format("{},{},.{:+}", x('n'), x('m'), branch_offset(row, w));
    case 0x67:
    case 0x03:
      return fmt::format("{},{}({})", x('d'), extend<12>(f('i')), x('n'));
    case 0x07:
      return fmt::format("{},{}({})", f_name(f('d')), extend<12>(f('i')), x('n'));
    case 0x23:
      return fmt::format("{},{}({})", x('m'), store_offset(row, w), x('n'));
    case 0x27:
      return fmt::format("{},{}({})", f_name(f('m')), store_offset(row, w), x('n'));
    case 0x2f:
      if (!has(row, 'm')) return fmt::format("{},({})", x('d'), x('n'));
      return fmt::format("{},{},({})", x('d'), x('m'), x('n'));
    case 0x0f:
      if (row.op != Op::FENCE) return {};
      return fmt::format("{},{}", fence_set(f('p')), fence_set(f('s')));
    case 0x73:
      if (!has(row, 'c')) return {};
      if (has(row, 'u')) return fmt::format("{},{},{}", x('d'), csr_name(f('c')), f('u'));
      return fmt::format("{},{},{}", x('d'), csr_name(f('c')), x('n'));
    case 0x13:
    case 0x1b: {
      const unsigned width = row.pattern.field('i').width;
      if (width == 12) return fmt::format("{},{},{}", x('d'), x('n'), extend<12>(f('i')));
      if (width == 6) return fmt::format("{},{},0x{:x}", x('d'), x('n'), f('i'));
      return fmt::format("{},{}", x('d'), x('n'));
    }
    case 0x33:
    case 0x3b:
      if (!has(row, 'm')) return fmt::format("{},{}", x('d'), x('n'));
      return fmt::format("{},{},{}", x('d'), x('n'), x('m'));
    default:
      return float_operands(row, w);
  }
}

}  // namespace

const char* x_name(uint32_t r) { return kXNames[r]; }
const char* f_name(uint32_t r) { return kFNames[r]; }

std::string mnemonic(const Row& row, uint32_t word) {
  if (is_vector(row)) return vector_mnemonic(row, word);
  const auto f = [&](char letter) { return row.field(letter, word); };
  switch (row.op) {
    case Op::FCVT_F:
      return fmt::format("fcvt.{}.{}", kFormats[f('f')], kFormats[f('g')]);
    case Op::FCVT_TO_X:
      return fmt::format("fcvt.{}.{}", kIntegers[f('o')], kFormats[f('f')]);
    case Op::FCVT_FROM_X:
      return fmt::format("fcvt.{}.{}", kFormats[f('f')], kIntegers[f('o')]);
    case Op::FMV_TO_X:
      return fmt::format("fmv.x.{}", f('f') == 0 ? "w" : kFormats[f('f')]);
    case Op::FMV_FROM_X:
      return fmt::format("fmv.{}.x", f('f') == 0 ? "w" : kFormats[f('f')]);
    default:
      break;
  }
  std::string name;
  for (const char c : row.name)
    name += c == '_' ? '.' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (has(row, 'w') && f('w'))
    name += name.ends_with("add") && name.starts_with("sh") ? ".uw" : "w";
  if (has(row, 'f') && row.op != Op::FENCE) name += fmt::format(".{}", kFormats[f('f')]);
  if (has(row, 'q')) {
    if (has(row, 'y')) name += f('y') ? ".d" : ".w";
    if (f('q') || f('l')) name += fmt::format(".{}{}", f('q') ? "aq" : "", f('l') ? "rl" : "");
  }
  return name;
}

std::string instruction_text(const Insn& insn) {
  if (!insn) return {};
  const std::string rest =
      is_vector(*insn.row) ? vector_operands(*insn.row, insn.word) : operands(*insn.row, insn.word);
  return rest.empty() ? mnemonic(*insn.row, insn.word)
                      : fmt::format("{} {}", mnemonic(*insn.row, insn.word), rest);
}

}  // namespace gpusim::riscv
