// The signal frame of Linux riscv (arch/riscv/kernel/signal.c, uapi/asm/ucontext.h, sigcontext.h).
#pragma once
#include <memory>

#include "host/linux/signal_frame.h"

namespace gpusim::host::riscv {

/// Word: a register as the frame has it, uint32_t or uint64_t.
template <class Word>
std::unique_ptr<SignalFrame> make_signal_frame(const Module& module);

}  // namespace gpusim::host::riscv
