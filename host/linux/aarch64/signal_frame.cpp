#include "host/linux/aarch64/signal_frame.h"

#include <cstring>
#include <string>

namespace gpusim::host::aarch64 {
namespace {

struct Fpsimd {
  uint32_t magic, size;
  uint32_t fpsr, fpcr;
  uint64_t v[64];
};
static_assert(sizeof(Fpsimd) == 528);
constexpr uint32_t kFpsimdMagic = 0x46508001;

struct RecordHead {
  uint32_t magic, size;
};

struct GuestUcontext {
  uint64_t flags, link;
  SignalStack stack;
  uint64_t mask;
  uint8_t unused[120];
  uint64_t pad;  // struct sigcontext is aligned to 16
  uint64_t fault_address;
  uint64_t x[31];
  uint64_t sp, pc, pstate;
  uint64_t pad2;
  uint8_t reserved[4096];  // a list of records
};
static_assert(offsetof(GuestUcontext, fault_address) == 176);
static_assert(offsetof(GuestUcontext, reserved) == 464);

struct Frame {
  GuestSigInfo<uint64_t> info;
  GuestUcontext context;
};
static_assert(sizeof(Frame) == 128 + 4560);

struct FrameRecord {
  uint64_t fp, lr;
};

constexpr int kFp = 29, kLr = 30;

}  // namespace

SignalFrame::SignalFrame(const Module& module) {
  for (size_t i = 0; i < x_.size(); ++i) x_[i] = slot_named(module, "x" + std::to_string(i));
  for (size_t i = 0; i < v_.size(); ++i)
    v_[i] = slot_named(module, "v" + std::to_string(i / 2) + (i % 2 ? ".hi" : ".lo"));
  sp_ = slot_named(module, "sp");
  nzcv_ = slot_named(module, "nzcv");
  fp_state_ = slot_named(module, "fp_state");
  monitor_ = slot_named(module, "monitor");
}

bool SignalFrame::enter(Backend& backend, uint32_t core, const Request& request) const {
  FrameRegisters registers(backend, core);
  const uint64_t sp = registers.get(sp_);
  const FrameStack stack = stack_for_frame(request, sp);
  const uint64_t record_at = (stack.top & ~uint64_t{15}) - sizeof(FrameRecord);
  const uint64_t frame_at = record_at - sizeof(Frame);

  Frame frame{.info = guest_siginfo<uint64_t>(request.info), .context = {}};
  GuestUcontext& context = frame.context;
  context.stack = stack.saved;
  context.mask = request.mask;
  context.fault_address = request.fault_address;
  for (size_t i = 0; i < x_.size(); ++i) context.x[i] = registers.get(x_[i]);
  context.sp = sp;
  context.pc = request.pc;
  context.pstate = registers.get(nzcv_) << 28;
  Fpsimd fpsimd{.magic = kFpsimdMagic, .size = sizeof(Fpsimd), .fpsr = {}, .fpcr = {}, .v = {}};
  const uint64_t fp_state = registers.get(fp_state_);
  fpsimd.fpsr = static_cast<uint32_t>(fp_state);
  fpsimd.fpcr = static_cast<uint32_t>(fp_state >> 32);
  for (size_t i = 0; i < v_.size(); ++i) fpsimd.v[i] = registers.get(v_[i]);
  std::memcpy(context.reserved, &fpsimd, sizeof fpsimd);  // the record that ends the list is zero

  const GuestAccess memory(backend, core);
  const FrameRecord record{registers.get(x_[kFp]), registers.get(x_[kLr])};
  if (frame_at > stack.top || !memory.allows(frame_at, sizeof frame + sizeof record, kWrite))
    return false;
  if (!memory.store(frame_at, frame) || !memory.store(record_at, record)) return false;
  registers.set(x_[0], static_cast<uint64_t>(request.info.number));
  if (request.action.flags & kSaSigInfo) {
    registers.set(x_[1], frame_at);
    registers.set(x_[2], frame_at + offsetof(Frame, context));
  }
  registers.set(x_[kFp], record_at);
  registers.set(x_[kLr], request.return_address);
  registers.set(sp_, frame_at);
  // An exception and the return from it clear the exclusive monitor.
  registers.set(monitor_, kNoMonitor);
  return true;
}

std::optional<SignalFrame::Interrupted> SignalFrame::interrupted(const GuestAccess& memory,
                                                                 const CallerRegisters& at) const {
  Frame frame;  // the record follows it, see enter()
  if (at.frame_pointer < sizeof frame || !memory.load(at.frame_pointer - sizeof frame, &frame) ||
      frame.info.number < 1 || frame.info.number > kSignalCount)
    return std::nullopt;
  Interrupted result{.pc = frame.context.pc, .registers = {}};
  for (size_t i = 0; i < x_.size(); ++i)
    if (x_[i] != kNoSlot) result.registers.emplace_back(x_[i], frame.context.x[i]);
  if (sp_ != kNoSlot) result.registers.emplace_back(sp_, frame.context.sp);
  return result;
}

std::optional<SignalFrame::Restored> SignalFrame::leave(Backend& backend, uint32_t core) const {
  Frame frame;
  if (sp_ == kNoSlot) return std::nullopt;
  const uint64_t sp = backend.slot(core, static_cast<Slot>(sp_));
  if ((sp & 15) || !GuestAccess(backend, core).load(sp, &frame)) return std::nullopt;
  const GuestUcontext& context = frame.context;
  const Fpsimd* fpsimd = nullptr;
  for (size_t at = 0; at + sizeof(RecordHead) <= sizeof context.reserved;) {
    RecordHead head;
    std::memcpy(&head, context.reserved + at, sizeof head);
    if (head.magic == 0) break;
    if (head.size < sizeof head || head.size % 16 || head.size > sizeof context.reserved - at)
      return std::nullopt;
    if (head.magic == kFpsimdMagic && head.size == sizeof(Fpsimd))
      fpsimd = reinterpret_cast<const Fpsimd*>(context.reserved + at);
    at += head.size;
  }
  if (!fpsimd) return std::nullopt;

  FrameRegisters registers(backend, core);
  for (size_t i = 0; i < x_.size(); ++i) registers.set(x_[i], context.x[i]);
  registers.set(sp_, context.sp);
  if (monitor_ != kNoSlot) registers.set(monitor_, kNoMonitor);
  if (nzcv_ != kNoSlot) registers.set(nzcv_, (context.pstate >> 28) & 15);
  registers.set(fp_state_, uint64_t{fpsimd->fpcr} << 32 | fpsimd->fpsr);
  for (size_t i = 0; i < v_.size(); ++i) registers.set(v_[i], fpsimd->v[i]);
  return Restored{.pc = context.pc,
                  .mask = context.mask,
                  .alternate_stack = context.stack,
                  .lost_a_register = registers.has_lost_a_value()};
}

}  // namespace gpusim::host::aarch64
