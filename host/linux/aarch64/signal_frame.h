// The signal frame of Linux arm64 (arch/arm64/kernel/signal.c, uapi/asm/sigcontext.h).
#pragma once
#include <array>

#include "host/linux/signal_frame.h"

namespace gpusim::host::aarch64 {

class SignalFrame final : public host::SignalFrame {
 public:
  explicit SignalFrame(const Module& module);
  bool enter(Backend& backend, uint32_t core, const Request& request) const override;
  std::optional<Restored> leave(Backend& backend, uint32_t core) const override;
  std::optional<Interrupted> interrupted(const GuestAccess& memory,
                                         const CallerRegisters& at) const override;

 private:
  std::array<int, 31> x_;
  std::array<int, 64> v_;  // halves
  int sp_, nzcv_, fp_state_, monitor_;
};

}  // namespace gpusim::host::aarch64
