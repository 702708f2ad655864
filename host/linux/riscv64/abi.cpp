#include "host/linux/riscv64/abi.h"

#include <fcntl.h>

#include "host/linux/kernel.h"
#include "host/linux/riscv/core_notes.h"
#include "host/linux/riscv/signal_frame.h"
#include "host/linux/riscv64/hwprobe.h"

namespace gpusim::host::riscv64 {
namespace {

// Two instructions: li a7, 139; ecall.
constexpr uint8_t kSignalReturn[] = {0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00};

// asm-generic/fcntl.h
constexpr OpenFlag kOpenFlags[] = {{0200000, O_DIRECTORY}, {0400000, O_NOFOLLOW}};

// Code that was written is found where it is executed: there is nothing to flush.
Reply flush_icache(Kernel&, Call&) { return Reply::result(0); }

// arch/riscv/include/uapi/asm/unistd.h
constexpr OwnCall kOwnCalls[] = {{258, {"riscv_hwprobe", hwprobe}},
                                 {259, {"riscv_flush_icache", flush_icache}}};

}  // namespace

const LinuxAbi kAbi = {
    .isa = "riscv64",
    .machine = "riscv64",
    .word_bytes = 8,
    .platform = nullptr,
    .has_hwcap2 = false,
    .sysroot = "/usr/riscv64-linux-gnu",
    .call_bytes = 4,
    .generic_number = nullptr,
    .own_calls = kOwnCalls,
    .open_flags = kOpenFlags,
    .signal_return = kSignalReturn,
    .least_signal_stack = 2048,  // asm-generic/signal.h
    .has_restorer = false,
    .make_signal_frame = riscv::make_signal_frame<uint64_t>,
    .core_notes = riscv::core_notes<uint64_t>,
    .thread_control_block = 0,  // RISC-V ELF psABI, "Thread Local Storage": what libraries keep of
                                // a thread lies before its variables
    .global_pointer_symbol = "__global_pointer$"};

}  // namespace gpusim::host::riscv64
