// The processors that a program can find itself on, and their identification registers.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "translator/common/guest_isa.h"

namespace gpusim::a64 {

std::span<const GuestCpu> cpus();

/// Lines of /proc/cpuinfo that describe one processor.
std::string cpu_lines(uint32_t cpu);

/// What reading the register op0 = 3, op1 = 0, CRn = 0 gives at EL0, where Linux emulates it
/// (HWCAP_CPUID): the fields that it shows to user code. `cpu`: its number in cpus().
bool id_register(uint32_t cpu, uint32_t CRm, uint32_t op2, uint64_t* value);

/// Extensions whose system registers or fields exist only where the CPU shows them.
struct SystemFeatures {
  bool fp16;  // FPCR.FZ16
  bool dit, ssbs, rng;
  bool ecv;  // CNTVCTSS_EL0
};
SystemFeatures system_features(uint32_t cpu);

}  // namespace gpusim::a64
