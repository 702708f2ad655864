#include "host/linux/aarch64/abi.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>

#include "host/linux/aarch64/signal_frame.h"

namespace gpusim::host::aarch64 {
namespace {

// Two instructions: mov x8, #139; svc #0.
constexpr uint8_t kSignalReturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};

// arch/arm64/include/uapi/asm/fcntl.h
constexpr OpenFlag kOpenFlags[] = {{0040000, O_DIRECTORY}, {0100000, O_NOFOLLOW}};

std::unique_ptr<host::SignalFrame> make_signal_frame(const Module& module) {
  return std::make_unique<SignalFrame>(module);
}

// arch/arm64/include/uapi/asm/ptrace.h: struct user_pt_regs, user_fpsimd_state
std::vector<CoreNote> core_notes() {
  std::vector<std::pair<std::string, uint32_t>> general, vectors;
  for (int i = 0; i < 31; ++i) general.emplace_back(fmt::format("x{}", i), 8);
  for (const char* name : {"sp", "pc", "cpsr"}) general.emplace_back(name, 8);
  for (int i = 0; i < 32; ++i) vectors.emplace_back(fmt::format("v{}", i), 16);
  for (const char* name : {"fpsr", "fpcr"}) vectors.emplace_back(name, 4);
  return {{"CORE", NT_PRSTATUS, std::move(general), 34 * 8},
          {"CORE", NT_PRFPREG, std::move(vectors), 528},
          {"LINUX", NT_ARM_TLS, {{"tpidr", 8}}, 8}};
}

}  // namespace

const LinuxAbi kAbi = {
    .isa = "aarch64",
    .machine = "aarch64",
    .word_bytes = 8,
    .platform = "aarch64",
    .has_hwcap2 = true,
    .sysroot = "/usr/aarch64-linux-gnu",
    .call_bytes = 4,
    .generic_number = nullptr,
    .own_calls = {},
    .open_flags = kOpenFlags,
    .signal_return = kSignalReturn,
    .least_signal_stack = 5120,  // arch/arm64/include/uapi/asm/signal.h
    .has_restorer = true,
    .make_signal_frame = make_signal_frame,
    .core_notes = core_notes,
    .thread_control_block = 16,  // ELF for the Arm 64-bit Architecture, 10: variant 1, two words
    .global_pointer_symbol = nullptr};

}  // namespace gpusim::host::aarch64
