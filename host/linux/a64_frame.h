// The signal frame of Linux arm64 (arch/arm64/kernel/signal.c, uapi/asm/sigcontext.h).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/guest_access.h"
#include "host/linux/signals.h"

namespace gpusim::host {

class A64Frame {
 public:
  explicit A64Frame(const Module& module);

  struct Request {
    SignalInfo info;
    SignalAction action;
    uint64_t pc = 0;             // where the core was
    uint64_t mask = 0;           // to be restored
    uint64_t fault_address = 0;
    SignalStack alternate_stack;
    uint64_t return_address = 0;  // of code that calls rt_sigreturn
  };
  // Puts the frame on the core's stack, or on the alternate one, and sets its registers as a handler
  // finds them. False, and nothing done, if the stack cannot take it.
  bool enter(Backend& backend, uint32_t core, const Request& request) const;

  struct Restored {
    uint64_t pc = 0, mask = 0;
    SignalStack alternate_stack;
    bool lost_a_register = false;  // a value for a register that the program nowhere sets
  };
  // What a handler interrupted, by the frame pointer that it was called with. Nothing without a frame.
  struct Interrupted {
    uint64_t pc = 0;
    std::vector<std::pair<int, uint64_t>> registers;  // by the module's slot
  };
  std::optional<Interrupted> interrupted(const GuestAccess& memory, uint64_t frame_pointer) const;

  // Takes the registers from the frame at the stack pointer. Nothing if there is none.
  std::optional<Restored> leave(Backend& backend, uint32_t core) const;

 private:
  std::array<int, 31> x_;
  std::array<int, 64> v_;  // halves
  int sp_, nzcv_, fp_state_, monitor_;
};

}  // namespace gpusim::host
