// What the kernel leaves on a thread's stack when it enters a signal handler, and takes back from
// there. Each ISA has its own layout (host/linux/<isa>/signal_frame.h); here is what they share.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/guest_access.h"
#include "host/linux/signals.h"

namespace gpusim::host {

class SignalFrame {
 public:
  virtual ~SignalFrame() = default;

  struct Request {
    SignalInfo info;
    SignalAction action;
    uint64_t pc = 0;    // where the core was
    uint64_t mask = 0;  // to be restored
    uint64_t fault_address = 0;
    SignalStack alternate_stack;
    uint64_t return_address = 0;  // of code that calls rt_sigreturn
  };
  // Puts the frame on the core's stack, or on the alternate one, and sets its registers as a handler
  // finds them. False, and nothing done, if the stack cannot take it.
  virtual bool enter(Backend& backend, uint32_t core, const Request& request) const = 0;

  struct Restored {
    uint64_t pc = 0, mask = 0;
    SignalStack alternate_stack;
    bool lost_a_register = false;  // a value for a register that the program nowhere sets
  };
  // Takes the registers from the frame at the stack pointer. Nothing if there is none.
  virtual std::optional<Restored> leave(Backend& backend, uint32_t core) const = 0;

  // What a handler interrupted, by the registers that it was called with, as far as they are known.
  // Nothing without a frame.
  struct Interrupted {
    uint64_t pc = 0;
    std::vector<std::pair<int, uint64_t>> registers;  // by the module's slot
  };
  struct CallerRegisters {
    uint64_t stack_pointer = 0, frame_pointer = 0;
  };
  virtual std::optional<Interrupted> interrupted(const GuestAccess& memory,
                                                 const CallerRegisters& at) const = 0;
};

/// asm-generic/siginfo.h. Word: of the guest's pointers, uint32_t or uint64_t, here and below.
template <class Word>
struct GuestSigInfo {
  int32_t number, error, code;
  union {
    alignas(Word) Word address;
    struct {
      alignas(Word) int32_t pid;
      uint32_t uid;
      Word value;
    } sender;
    alignas(Word) uint8_t room[sizeof(Word) == 8 ? 112 : 116];
  };
};
static_assert(sizeof(GuestSigInfo<uint32_t>) == 128 && sizeof(GuestSigInfo<uint64_t>) == 128);
template <class Word>
GuestSigInfo<Word> guest_siginfo(const SignalInfo& info);

/// stack_t.
template <class Word>
struct GuestSignalStack {
  Word base;
  int32_t flags;
  alignas(Word) Word size;
};
static_assert(sizeof(GuestSignalStack<uint32_t>) == 12 && sizeof(GuestSignalStack<uint64_t>) == 24);
template <class Word>
GuestSignalStack<Word> guest_signal_stack(const SignalStack& stack) {
  return {static_cast<Word>(stack.base), stack.flags, static_cast<Word>(stack.size)};
}
template <class Word>
SignalStack signal_stack(const GuestSignalStack<Word>& guest) {
  return {.base = guest.base, .flags = guest.flags, .size = guest.size};
}

/// Where a handler's frame goes, below `top`, and what its context says of the alternate stack.
struct FrameStack {
  uint64_t top = 0;
  SignalStack saved;
};
FrameStack stack_for_frame(const SignalFrame::Request& request, uint64_t stack_pointer);

/// A core's registers by the module's slots; those that the program nowhere uses are zero.
class FrameRegisters {
 public:
  FrameRegisters(Backend& backend, uint32_t core) : backend_(backend), core_(core) {}
  uint64_t get(int slot) const {
    return slot == kNoSlot ? 0 : backend_.slot(core_, static_cast<Slot>(slot));
  }
  void set(int slot, uint64_t value) {
    if (slot != kNoSlot)
      backend_.set_slot(core_, static_cast<Slot>(slot), value);
    else
      lost_ |= value != 0;
  }
  bool has_lost_a_value() const { return lost_; }

 private:
  Backend& backend_;
  uint32_t core_;
  bool lost_ = false;
};

/// The module's slot of that name, or kNoSlot.
int slot_named(const Module& module, std::string_view name);

}  // namespace gpusim::host
