// Text of vector instructions, as binutils writes it.
#include <fmt/format.h>

#include <cctype>

#include "translator/riscv/text.h"
#include "translator/riscv/vector.h"

namespace gpusim::riscv {
namespace {

using vector::Kind;

bool has(const Row& row, char letter) { return row.pattern.field(letter).width != 0; }

// Where names spell everything: "vfcvt.x.f.v".
bool is_spelt_out(const Row& row) {
  const vector::Row operation = vector::row_of(vector_operation(row.op));
  return (operation.flags & vector::kUnary) != 0 || row.op == Op::VMV_S_X ||
         row.op == Op::VFMV_S_F || operation.kind == Kind::kConfigure;
}

std::string access_name(const Row& row, uint32_t w) {
  const auto f = [&](char letter) { return row.field(letter, w); };
  const uint32_t fields = has(row, 'g') ? f('g') + 1 : 1;
  const std::string seg = fields > 1 ? fmt::format("seg{}", fields) : "";
  const int bits = has(row, 'r') ? 8 << f('r') : 8;
  switch (row.op) {
    case Op::VLM_V:
      return "vlm.v";
    case Op::VSM_V:
      return "vsm.v";
    case Op::VLR_V:
    case Op::VLR8_V:
      return fmt::format("vl{}re{}.v", fields, bits);
    case Op::VSR_V:
      return fmt::format("vs{}r.v", fields);
    case Op::VLE:
    case Op::VLE8:
      return fmt::format("vl{}e{}.v", seg, bits);
    case Op::VSE:
    case Op::VSE8:
      return fmt::format("vs{}e{}.v", seg, bits);
    case Op::VLEFF:
    case Op::VLEFF8:
      return fmt::format("vl{}e{}ff.v", seg, bits);
    case Op::VLSE:
    case Op::VLSE8:
      return fmt::format("vls{}e{}.v", seg, bits);
    case Op::VSSE:
    case Op::VSSE8:
      return fmt::format("vss{}e{}.v", seg, bits);
    case Op::VLUXEI:
    case Op::VLUXEI8:
      return fmt::format("vlux{}ei{}.v", seg, bits);
    case Op::VLOXEI:
    case Op::VLOXEI8:
      return fmt::format("vlox{}ei{}.v", seg, bits);
    case Op::VSUXEI:
    case Op::VSUXEI8:
      return fmt::format("vsux{}ei{}.v", seg, bits);
    default:
      return fmt::format("vsox{}ei{}.v", seg, bits);
  }
}

// "e32,m2,ta,mu", or a number where a field is reserved.
std::string type_text(uint32_t type) {
  static constexpr const char* kGroups[] = {"m1", "m2", "m4", "m8", "", "mf8", "mf4", "mf2"};
  const uint32_t size = type >> 3 & 7, group = type & 7;
  if (type >> 8 != 0 || size > 3 || group == 4) return fmt::format("{}", type);
  return fmt::format("e{},{},{},{}", 8 << size, kGroups[group], type & 64 ? "ta" : "tu",
                     type & 128 ? "ma" : "mu");
}

}  // namespace

std::string vector_mnemonic(const Row& row, uint32_t word) {
  const VectorOp op = vector_operation(row.op);
  const vector::Row operation = vector::row_of(op);
  if (vector::is_access(operation.kind)) return access_name(row, word);
  if (row.op == Op::VMV_R_V) return fmt::format("vmv{}r.v", row.field('i', word) + 1);
  std::string name;
  for (const char c : row.name)
    name += c == '_' ? '.' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (is_spelt_out(row)) return name;
  const uint32_t form = word >> 12 & 7;
  const std::string second = form < 3 ? "v" : form == 3 ? "i" : form == 5 ? "f" : "x";
  if (name.ends_with(".vi")) name.resize(name.size() - 3);
  if (op == VectorOp::vmv_v) {
    if (name.ends_with(".i")) name.resize(name.size() - 2);
    return name + (name.ends_with(".v") ? "." : ".v.") + second;
  }
  switch (operation.kind) {
    case Kind::kReduce:
      return name + ".vs";
    case Kind::kMaskLogic:
      return name + ".mm";
    case Kind::kCompress:
      return name + ".vm";
    case Kind::kCarryIn:
      return name + ".v" + second + "m";
    case Kind::kCarryOut:
      return name + ".v" + second + (row.field('v', word) ? "" : "m");
    default:
      break;
  }
  if (operation.widths == vector::Widths::kWideA) return name + second;
  return name + (operation.widths == vector::Widths::kNarrow ? ".w" : ".v") + second;
}

std::string vector_operands(const Row& row, uint32_t w) {
  const auto f = [&](char letter) { return row.field(letter, w); };
  const VectorOp op = vector_operation(row.op);
  const vector::Row operation = vector::row_of(op);
  const auto v = [&](char letter) { return fmt::format("v{}", f(letter)); };
  const bool is_masked = has(row, 'v') && f('v') == 0;
  const std::string mask = is_masked ? ",v0.t" : "";
  if (operation.kind == Kind::kConfigure) {
    if (row.op == Op::VSETVL)
      return fmt::format("{},{},{}", x_name(f('d')), x_name(f('n')), x_name(f('m')));
    const std::string length = row.op == Op::VSETIVLI ? fmt::format("{}", f('u')) : x_name(f('n'));
    return fmt::format("{},{},{}", x_name(f('d')), length, type_text(f('i')));
  }
  if (vector::is_access(operation.kind)) {
    std::string text = fmt::format("{},({})", v('d'), x_name(f('n')));
    if (has(row, 'm')) text += "," + (operation.kind == Kind::kIndexed ? v('m') : x_name(f('m')));
    return text + mask;
  }
  const uint32_t form = w >> 12 & 7;
  std::string first = v('d');
  if (operation.kind == Kind::kMaskToScalar || op == VectorOp::vmv_x_s) first = x_name(f('d'));
  if (op == VectorOp::vfmv_f_s) first = f_name(f('d'));
  std::string second;
  if (has(row, 'n'))
    second = form < 3 ? v('n') : form == 5 ? f_name(f('n')) : x_name(f('n'));
  else if (has(row, 'i') && row.op != Op::VMV_R_V)
    second = (operation.flags & vector::kUnsigned)
                 ? fmt::format("{}", f('i'))
                 : fmt::format("{}", static_cast<int>(f('i') ^ 16) - 16);
  const std::string third = has(row, 'm') ? v('m') : "";
  switch (op) {
    case VectorOp::vmadd:
    case VectorOp::vnmsub:
    case VectorOp::vmacc:
    case VectorOp::vnmsac:
    case VectorOp::vwmaccu:
    case VectorOp::vwmacc:
    case VectorOp::vwmaccus:
    case VectorOp::vwmaccsu:
    case VectorOp::vfmadd:
    case VectorOp::vfnmadd:
    case VectorOp::vfmsub:
    case VectorOp::vfnmsub:
    case VectorOp::vfmacc:
    case VectorOp::vfnmacc:
    case VectorOp::vfmsac:
    case VectorOp::vfnmsac:
    case VectorOp::vfwmacc:
    case VectorOp::vfwnmacc:
    case VectorOp::vfwmsac:
    case VectorOp::vfwnmsac:
      return fmt::format("{},{},{}{}", first, second, third, mask);
    default:
      break;
  }
  std::string text = first;
  if (!third.empty()) text += "," + third;
  if (!second.empty()) text += "," + second;
  const bool names_mask =
      operation.kind == Kind::kCarryIn || (operation.kind == Kind::kCarryOut && is_masked);
  return text + (names_mask ? ",v0" : mask);
}

}  // namespace gpusim::riscv
