#include "host/linux/riscv64/signal_frame.h"

#include "translator/riscv/float_state.h"
#include "translator/riscv/text.h"

namespace gpusim::host::riscv64 {
namespace {

struct GuestUcontext {
  uint64_t flags, link;
  SignalStack stack;
  uint64_t mask;
  uint8_t unused[120];
  uint64_t pad;  // struct sigcontext is aligned to 16
  uint64_t pc;
  uint64_t x[31];  // from x1 on
  uint64_t f[32];
  uint32_t fcsr;
  uint8_t rest[268];  // room for registers of 128 bits
};
static_assert(offsetof(GuestUcontext, pc) == 176);
static_assert(offsetof(GuestUcontext, fcsr) == 176 + 256 + 256);
static_assert(sizeof(GuestUcontext) == 176 + 784);

struct Frame {
  GuestSigInfo info;
  GuestUcontext context;
};

constexpr int kRa = 1, kSp = 2, kA0 = 10;

}  // namespace

SignalFrame::SignalFrame(const Module& module) {
  x_[0] = kNoSlot;
  for (uint32_t i = 1; i < 32; ++i) x_[i] = slot_named(module, riscv::x_name(i));
  for (uint32_t i = 0; i < 32; ++i) f_[i] = slot_named(module, riscv::f_name(i));
  fp_state_ = slot_named(module, "fp_state");
  frm_ = slot_named(module, "frm");
  monitor_ = slot_named(module, "monitor");
}

bool SignalFrame::enter(Backend& backend, uint32_t core, const Request& request) const {
  FrameRegisters registers(backend, core);
  const FrameStack stack = stack_for_frame(request, registers.get(x_[kSp]));
  const uint64_t frame_at = (stack.top - sizeof(Frame)) & ~uint64_t{15};

  Frame frame{.info = guest_siginfo(request.info), .context = {}};
  GuestUcontext& context = frame.context;
  context.stack = stack.saved;
  context.mask = request.mask;
  context.pc = request.pc;
  for (size_t i = 1; i < 32; ++i) context.x[i - 1] = registers.get(x_[i]);
  for (size_t i = 0; i < 32; ++i) context.f[i] = registers.get(f_[i]);
  context.fcsr =
      riscv::fflags_of(registers.get(fp_state_)) | static_cast<uint32_t>(registers.get(frm_)) << 5;

  const GuestAccess memory(backend, core);
  if (frame_at > stack.top || !memory.allows(frame_at, sizeof frame, kWrite) ||
      !memory.store(frame_at, frame))
    return false;
  registers.set(x_[kA0], static_cast<uint64_t>(request.info.number));
  registers.set(x_[kA0 + 1], frame_at);
  registers.set(x_[kA0 + 2], frame_at + offsetof(Frame, context));
  registers.set(x_[kRa], request.return_address);
  registers.set(x_[kSp], frame_at);
  // An exception and the return from it end a reservation.
  registers.set(monitor_, kNoMonitor);
  return true;
}

std::optional<SignalFrame::Interrupted> SignalFrame::interrupted(const GuestAccess& memory,
                                                                 const CallerRegisters& at) const {
  Frame frame;
  if (!memory.load(at.stack_pointer, &frame) || frame.info.number < 1 ||
      frame.info.number > kSignalCount)
    return std::nullopt;
  Interrupted result{.pc = frame.context.pc, .registers = {}};
  for (size_t i = 1; i < 32; ++i)
    if (x_[i] != kNoSlot) result.registers.emplace_back(x_[i], frame.context.x[i - 1]);
  return result;
}

std::optional<SignalFrame::Restored> SignalFrame::leave(Backend& backend, uint32_t core) const {
  Frame frame;
  if (x_[kSp] == kNoSlot) return std::nullopt;
  const uint64_t sp = backend.slot(core, static_cast<Slot>(x_[kSp]));
  if ((sp & 15) || !GuestAccess(backend, core).load(sp, &frame)) return std::nullopt;
  const GuestUcontext& context = frame.context;

  FrameRegisters registers(backend, core);
  for (size_t i = 1; i < 32; ++i) registers.set(x_[i], context.x[i - 1]);
  for (size_t i = 0; i < 32; ++i) registers.set(f_[i], context.f[i]);
  // Without floating-point instructions there is no state to keep.
  if (fp_state_ != kNoSlot) registers.set(fp_state_, riscv::fp_state_of(context.fcsr));
  registers.set(frm_, context.fcsr >> 5 & 7);
  if (monitor_ != kNoSlot) registers.set(monitor_, kNoMonitor);
  return Restored{.pc = context.pc,
                  .mask = context.mask,
                  .alternate_stack = context.stack,
                  .lost_a_register = registers.has_lost_a_value()};
}

}  // namespace gpusim::host::riscv64
