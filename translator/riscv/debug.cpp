// RISC-V's registers for debuggers (GDB manual, "RISC-V Features").
#include "translator/riscv/debug.h"

#include "translator/riscv/float_state.h"
#include "translator/riscv/registers.h"
#include "translator/riscv/text.h"

namespace gpusim::riscv {
namespace {

DebugFeature integers(uint32_t xlen) {
  DebugFeature f{.name = "org.gnu.gdb.riscv.cpu", .types = {}, .registers = {}};
  const auto bits = static_cast<uint8_t>(xlen);
  for (uint32_t i = 0; i < 32; ++i) {
    const bool is_pointer = i == kSp || i == kGp || i == kTp || i == kFp;
    DebugRegister r{.name = x_name(i),
                    .bits = xlen,
                    .type = i == kRa     ? "code_ptr"
                            : is_pointer ? "data_ptr"
                                         : "int",
                    .parts = {}};
    if (i != 0) r.parts.push_back({static_cast<int>(i), 0, bits, 0});
    f.registers.push_back(std::move(r));
  }
  f.registers.push_back(
      {.name = "pc", .bits = xlen, .type = "code_ptr", .parts = {}, .is_pc = true});
  return f;
}

DebugFeature floats() {
  DebugFeature f{.name = "org.gnu.gdb.riscv.fpu", .types = {}, .registers = {}};
  f.types =
      "<union id=\"riscv_double\"><field name=\"float\" type=\"ieee_single\"/>"
      "<field name=\"double\" type=\"ieee_double\"/></union>";
  for (uint32_t i = 0; i < 32; ++i)
    f.registers.push_back(
        {.name = f_name(i), .bits = 64, .type = "riscv_double", .parts = {{f_reg(i), 0, 64, 0}}});
  // The state word has the flags in the reverse order (float_state.h).
  DebugRegister flags{.name = "fflags", .bits = 32, .type = "int", .parts = {}};
  for (uint8_t bit = 0; bit < 5; ++bit)
    flags.parts.push_back({kFpState, bit, 1, static_cast<uint16_t>(4 - bit)});
  DebugRegister both = flags;
  both.name = "fcsr";
  both.parts.push_back({kFrm, 0, 3, 5});
  f.registers.push_back(std::move(flags));
  f.registers.push_back({.name = "frm", .bits = 32, .type = "int", .parts = {{kFrm, 0, 3, 0}}});
  f.registers.push_back(std::move(both));
  return f;
}

DebugFeature vectors() {
  DebugFeature f{.name = "org.gnu.gdb.riscv.vector", .types = {}, .registers = {}};
  f.types =
      "<vector id=\"bytes\" type=\"uint8\" count=\"16\"/>"
      "<vector id=\"shorts\" type=\"uint16\" count=\"8\"/>"
      "<vector id=\"words\" type=\"uint32\" count=\"4\"/>"
      "<vector id=\"longs\" type=\"uint64\" count=\"2\"/>"
      "<vector id=\"quads\" type=\"uint128\" count=\"1\"/>"
      "<union id=\"riscv_vector\"><field name=\"b\" type=\"bytes\"/>"
      "<field name=\"s\" type=\"shorts\"/><field name=\"w\" type=\"words\"/>"
      "<field name=\"l\" type=\"longs\"/><field name=\"q\" type=\"quads\"/></union>";
  static_assert(vector::kBytes == 16);
  for (int i = 0; i < vector::kRegisters; ++i) {
    DebugRegister r{
        .name = "v" + std::to_string(i), .bits = 128, .type = "riscv_vector", .parts = {}};
    for (int word = 0; word < vector::kWords; ++word) {
      const int slot = kVectorState + vector::kFirstRegister + i * vector::kWords + word;
      r.parts.push_back({slot, 0, 64, static_cast<uint16_t>(64 * word)});
    }
    f.registers.push_back(std::move(r));
  }
  return f;
}

void settle(const std::function<uint64_t(Slot)>& get,
            const std::function<void(Slot, uint64_t)>& set) {
  const auto frm = static_cast<uint32_t>(get(kFrm));
  set(kFpState, (get(kFpState) & ~(uint64_t{7} << kFpModeShift)) | fp_mode_bits(frm));
}

}  // namespace

DebugTarget debug_target(uint32_t xlen) {
  DebugTarget t{.architecture = xlen == 32 ? "riscv:rv32" : "riscv:rv64",
                .features = {integers(xlen), floats()},
                .stack_pointer = kSp,
                .frame_pointer = kFp,
                .settle = settle};
  if (xlen == 64) t.features.push_back(vectors());
  return t;
}

}  // namespace gpusim::riscv
