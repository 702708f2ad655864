// The signal frame of Linux riscv (arch/riscv/kernel/signal.c, uapi/asm/ucontext.h, sigcontext.h).
#pragma once
#include <array>

#include "host/linux/signal_frame.h"

namespace gpusim::host::riscv64 {

class SignalFrame final : public host::SignalFrame {
 public:
  explicit SignalFrame(const Module& module);
  bool enter(Backend& backend, uint32_t core, const Request& request) const override;
  std::optional<Restored> leave(Backend& backend, uint32_t core) const override;
  std::optional<Interrupted> interrupted(const GuestAccess& memory,
                                         const CallerRegisters& at) const override;

 private:
  std::array<int, 32> x_, f_;  // x_[0] is none
  int fp_state_, frm_, monitor_;
};

}  // namespace gpusim::host::riscv64
