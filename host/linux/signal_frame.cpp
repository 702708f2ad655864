#include "host/linux/signal_frame.h"

#include <cstring>

namespace gpusim::host {

template <class Word>
GuestSigInfo<Word> guest_siginfo(const SignalInfo& info) {
  GuestSigInfo<Word> guest;
  std::memset(&guest, 0, sizeof guest);
  guest.number = info.number;
  guest.code = info.code;
  if (info.is_fault)
    guest.address = static_cast<Word>(info.address);
  else
    guest.sender = {info.pid, info.uid, static_cast<Word>(info.value)};
  return guest;
}
template GuestSigInfo<uint32_t> guest_siginfo(const SignalInfo& info);
template GuestSigInfo<uint64_t> guest_siginfo(const SignalInfo& info);

FrameStack stack_for_frame(const SignalFrame::Request& request, uint64_t stack_pointer) {
  const SignalStack& other = request.alternate_stack;
  const bool has_other = !(other.flags & SignalStack::kDisable) && other.size != 0;
  const bool on_other = has_other && other.contains(stack_pointer);
  FrameStack stack{.top = stack_pointer, .saved = other};
  if ((request.action.flags & kSaOnStack) && has_other && !on_other)
    stack.top = other.base + other.size;
  if (has_other) stack.saved.flags = on_other ? SignalStack::kOnStack : 0;
  return stack;
}

int slot_named(const Module& module, std::string_view name) {
  for (const SlotName& s : module.slot_names)
    if (s.name == name) return s.slot;
  return kNoSlot;
}

}  // namespace gpusim::host
