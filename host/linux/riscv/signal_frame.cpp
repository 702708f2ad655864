#include "host/linux/riscv/signal_frame.h"

#include <array>
#include <bit>
#include <cstddef>

#include "translator/riscv/float_state.h"
#include "translator/riscv/text.h"

namespace gpusim::host::riscv {
namespace {

template <class Word>
struct GuestUcontext {
  Word flags, link;
  GuestSignalStack<Word> stack;
  std::array<Word, 8 / sizeof(Word)> mask;
  uint8_t unused[120];
  alignas(16) Word pc;
  Word x[31];  // from x1 on
  uint64_t f[32];
  uint32_t fcsr;
  uint8_t rest[268];  // room for registers of 128 bits
};
static_assert(offsetof(GuestUcontext<uint64_t>, pc) == 176);
static_assert(offsetof(GuestUcontext<uint64_t>, fcsr) == 176 + 256 + 256);
static_assert(sizeof(GuestUcontext<uint64_t>) == 176 + 784);
static_assert(offsetof(GuestUcontext<uint32_t>, pc) == 160);
static_assert(offsetof(GuestUcontext<uint32_t>, fcsr) == 160 + 128 + 256);
static_assert(sizeof(GuestUcontext<uint32_t>) == 160 + 656);

template <class Word>
struct Frame {
  GuestSigInfo<Word> info;
  GuestUcontext<Word> context;
};

constexpr int kRa = 1, kSp = 2, kA0 = 10;

template <class Word>
class Frames final : public SignalFrame {
 public:
  explicit Frames(const Module& module);
  bool enter(Backend& backend, uint32_t core, const Request& request) const override;
  std::optional<Restored> leave(Backend& backend, uint32_t core) const override;
  std::optional<Interrupted> interrupted(const GuestAccess& memory,
                                         const CallerRegisters& at) const override;

 private:
  std::array<int, 32> x_, f_;  // x_[0] is none
  int fp_state_, frm_, monitor_;
};

template <class Word>
Frames<Word>::Frames(const Module& module) {
  x_[0] = kNoSlot;
  for (uint32_t i = 1; i < 32; ++i) x_[i] = slot_named(module, gpusim::riscv::x_name(i));
  for (uint32_t i = 0; i < 32; ++i) f_[i] = slot_named(module, gpusim::riscv::f_name(i));
  fp_state_ = slot_named(module, "fp_state");
  frm_ = slot_named(module, "frm");
  monitor_ = slot_named(module, "monitor");
}

template <class Word>
bool Frames<Word>::enter(Backend& backend, uint32_t core, const Request& request) const {
  FrameRegisters registers(backend, core);
  const FrameStack stack = stack_for_frame(request, registers.get(x_[kSp]));
  const uint64_t frame_at = (stack.top - sizeof(Frame<Word>)) & ~uint64_t{15};

  Frame<Word> frame{.info = guest_siginfo<Word>(request.info), .context = {}};
  GuestUcontext<Word>& context = frame.context;
  context.stack = guest_signal_stack<Word>(stack.saved);
  context.mask = std::bit_cast<decltype(context.mask)>(request.mask);
  context.pc = static_cast<Word>(request.pc);
  for (size_t i = 1; i < 32; ++i) context.x[i - 1] = static_cast<Word>(registers.get(x_[i]));
  for (size_t i = 0; i < 32; ++i) context.f[i] = registers.get(f_[i]);
  context.fcsr = gpusim::riscv::fflags_of(registers.get(fp_state_)) |
                 static_cast<uint32_t>(registers.get(frm_)) << 5;

  const GuestAccess memory(backend, core);
  if (frame_at > stack.top || !memory.allows(frame_at, sizeof frame, kWrite) ||
      !memory.store(frame_at, frame))
    return false;
  registers.set(x_[kA0], static_cast<uint64_t>(request.info.number));
  registers.set(x_[kA0 + 1], frame_at);
  registers.set(x_[kA0 + 2], frame_at + offsetof(Frame<Word>, context));
  registers.set(x_[kRa], request.return_address);
  registers.set(x_[kSp], frame_at);
  // An exception and the return from it end a reservation.
  registers.set(monitor_, kNoMonitor);
  return true;
}

template <class Word>
std::optional<SignalFrame::Interrupted> Frames<Word>::interrupted(const GuestAccess& memory,
                                                                  const CallerRegisters& at) const {
  Frame<Word> frame;
  if (!memory.load(at.stack_pointer, &frame) || frame.info.number < 1 ||
      frame.info.number > kSignalCount)
    return std::nullopt;
  Interrupted result{.pc = frame.context.pc, .registers = {}};
  for (size_t i = 1; i < 32; ++i)
    if (x_[i] != kNoSlot) result.registers.emplace_back(x_[i], frame.context.x[i - 1]);
  return result;
}

template <class Word>
std::optional<SignalFrame::Restored> Frames<Word>::leave(Backend& backend, uint32_t core) const {
  Frame<Word> frame;
  if (x_[kSp] == kNoSlot) return std::nullopt;
  const uint64_t sp = backend.slot(core, static_cast<Slot>(x_[kSp]));
  if ((sp & 15) || !GuestAccess(backend, core).load(sp, &frame)) return std::nullopt;
  const GuestUcontext<Word>& context = frame.context;

  FrameRegisters registers(backend, core);
  for (size_t i = 1; i < 32; ++i) registers.set(x_[i], context.x[i - 1]);
  for (size_t i = 0; i < 32; ++i) registers.set(f_[i], context.f[i]);
  // Without floating-point instructions there is no state to keep.
  if (fp_state_ != kNoSlot) registers.set(fp_state_, gpusim::riscv::fp_state_of(context.fcsr));
  registers.set(frm_, context.fcsr >> 5 & 7);
  if (monitor_ != kNoSlot) registers.set(monitor_, kNoMonitor);
  return Restored{.pc = context.pc,
                  .mask = std::bit_cast<uint64_t>(context.mask),
                  .alternate_stack = signal_stack(context.stack),
                  .lost_a_register = registers.has_lost_a_value()};
}

}  // namespace

template <class Word>
std::unique_ptr<SignalFrame> make_signal_frame(const Module& module) {
  return std::make_unique<Frames<Word>>(module);
}
template std::unique_ptr<SignalFrame> make_signal_frame<uint32_t>(const Module& module);
template std::unique_ptr<SignalFrame> make_signal_frame<uint64_t>(const Module& module);

}  // namespace gpusim::host::riscv
