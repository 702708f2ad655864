#include "host/linux/aarch64/abi.h"

#include <fcntl.h>

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
    .thread_control_block = 16,  // ELF for the Arm 64-bit Architecture, 10: variant 1, two words
    .global_pointer_symbol = nullptr};

}  // namespace gpusim::host::aarch64
