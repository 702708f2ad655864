#include "energy/accelwattch/components.h"

#include <array>

#include "device_sim/base/csv.h"

namespace gpusim::accelwattch {
namespace {

constexpr std::array<ComponentInfo, 25> kComponents = {{
    {"IBP", "instruction buffer", "Instruction supply"},
    {"ICP", "instruction cache", "Instruction supply"},
    {"DCP", "L1 data cache", "L1, shared, constant"},
    {"CCP", "constant cache", "L1, shared, constant"},
    {"SHRDP", "shared memory", "L1, shared, constant"},
    {"RFP", "register file", "Register file"},
    {"INTP", "integer ALU", "Integer units"},
    {"FPUP", "FP32 unit", "Floating-point units"},
    {"DPUP", "FP64 unit", "Floating-point units"},
    {"INT_MULP", "integer multiply", "Integer units"},
    {"FP_MULP", "FP32 multiply", "Floating-point units"},
    {"FP_SQRTP", "square root", "SFU and texture"},
    {"FP_LGP", "logarithm", "SFU and texture"},
    {"FP_SINP", "sine, cosine", "SFU and texture"},
    {"FP_EXP", "exponential", "SFU and texture"},
    {"DP_MULP", "FP64 multiply", "Floating-point units"},
    {"TENSORP", "tensor core", "Tensor cores"},
    {"TEXP", "texture unit", "SFU and texture"},
    {"SCHEDP", "scheduler", "Instruction supply"},
    {"L2CP", "L2 cache and NoC", "L2 and NoC"},
    {"DRAMP", "DRAM and its controller", "DRAM"},
    {"PIPEP", "SM pipeline", "Instruction supply"},
    {kIdle, "idle SMs", "Idle SMs"},
    {kConstant, "constant", "Constant"},
    {kStatic, "static", "Static"},
}};

}  // namespace

std::span<const ComponentInfo> all_components() { return kComponents; }

const ComponentInfo* find_component(std::string_view name) {
  for (const ComponentInfo& c : kComponents)
    if (lower(c.name) == lower(name)) return &c;
  return nullptr;
}

}  // namespace gpusim::accelwattch
