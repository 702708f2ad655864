// AArch64's registers for debuggers (GDB manual, "AArch64 Features").
#include "translator/a64/debug.h"

#include "translator/a64/registers.h"

namespace gpusim::a64 {
namespace {

DebugRegister general(std::string name, int slot, const char* type) {
  return {.name = std::move(name), .bits = 64, .type = type, .parts = {{slot, 0, 64, 0}}};
}

DebugFeature core() {
  DebugFeature f{.name = "org.gnu.gdb.aarch64.core", .types = {}, .registers = {}};
  f.types =
      "<flags id=\"cpsr_flags\" size=\"4\">"
      "<field name=\"V\" start=\"28\" end=\"28\"/><field name=\"C\" start=\"29\" end=\"29\"/>"
      "<field name=\"Z\" start=\"30\" end=\"30\"/><field name=\"N\" start=\"31\" end=\"31\"/>"
      "</flags>";
  for (int i = 0; i < 31; ++i) f.registers.push_back(general("x" + std::to_string(i), i, "int"));
  f.registers.push_back(general("sp", kSp, "data_ptr"));
  f.registers.push_back({.name = "pc", .bits = 64, .type = "code_ptr", .parts = {}, .is_pc = true});
  f.registers.push_back(
      {.name = "cpsr", .bits = 32, .type = "cpsr_flags", .parts = {{kNzcv, 0, 4, 28}}});
  return f;
}

DebugFeature vectors() {
  DebugFeature f{.name = "org.gnu.gdb.aarch64.fpu", .types = {}, .registers = {}};
  f.types =
      "<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
      "<vector id=\"v2u\" type=\"uint64\" count=\"2\"/>"
      "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>"
      "<vector id=\"v4u\" type=\"uint32\" count=\"4\"/>"
      "<vector id=\"v8u\" type=\"uint16\" count=\"8\"/>"
      "<vector id=\"v16u\" type=\"uint8\" count=\"16\"/>"
      "<vector id=\"v1u\" type=\"uint128\" count=\"1\"/>"
      "<union id=\"vnd\"><field name=\"f\" type=\"v2d\"/><field name=\"u\" type=\"v2u\"/></union>"
      "<union id=\"vns\"><field name=\"f\" type=\"v4f\"/><field name=\"u\" type=\"v4u\"/></union>"
      "<union id=\"vnh\"><field name=\"u\" type=\"v8u\"/></union>"
      "<union id=\"vnb\"><field name=\"u\" type=\"v16u\"/></union>"
      "<union id=\"vnq\"><field name=\"u\" type=\"v1u\"/></union>"
      "<union id=\"aarch64v\"><field name=\"d\" type=\"vnd\"/><field name=\"s\" type=\"vns\"/>"
      "<field name=\"h\" type=\"vnh\"/><field name=\"b\" type=\"vnb\"/>"
      "<field name=\"q\" type=\"vnq\"/></union>";
  for (uint32_t i = 0; i < 32; ++i)
    f.registers.push_back({.name = "v" + std::to_string(i),
                           .bits = 128,
                           .type = "aarch64v",
                           .parts = {{v_low(i), 0, 64, 0}, {v_high(i), 0, 64, 64}}});
  f.registers.push_back(
      {.name = "fpsr", .bits = 32, .type = "int", .parts = {{kFpState, 0, 32, 0}}});
  f.registers.push_back(
      {.name = "fpcr", .bits = 32, .type = "int", .parts = {{kFpState, 32, 32, 0}}});
  return f;
}

}  // namespace

DebugTarget debug_target() {
  return {.architecture = "aarch64",
          .features = {core(),
                       vectors(),
                       {.name = "org.gnu.gdb.aarch64.tls",
                        .types = {},
                        .registers = {general("tpidr", kTpidr, "data_ptr")}}},
          .stack_pointer = 31,
          .frame_pointer = 29,
          .settle = {}};
}

}  // namespace gpusim::a64
