#include "host/linux/riscv/core_notes.h"

#include <elf.h>

#include <cstdint>

#include "translator/riscv/text.h"

namespace gpusim::host::riscv {

// arch/riscv/include/uapi/asm/ptrace.h: struct user_regs_struct, __riscv_d_ext_state
template <class Word>
std::vector<CoreNote> core_notes() {
  std::vector<std::pair<std::string, uint32_t>> general{{"pc", sizeof(Word)}}, floats;
  for (uint32_t i = 1; i < 32; ++i)
    general.emplace_back(gpusim::riscv::x_name(i), static_cast<uint32_t>(sizeof(Word)));
  for (uint32_t i = 0; i < 32; ++i) floats.emplace_back(gpusim::riscv::f_name(i), 8);
  floats.emplace_back("fcsr", 4);
  return {{"CORE", NT_PRSTATUS, std::move(general), 32 * sizeof(Word)},
          {"CORE", NT_PRFPREG, std::move(floats), 33 * 8}};
}

template std::vector<CoreNote> core_notes<uint32_t>();
template std::vector<CoreNote> core_notes<uint64_t>();

}  // namespace gpusim::host::riscv
