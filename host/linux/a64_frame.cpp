#include "host/linux/a64_frame.h"

#include <cstring>
#include <map>
#include <string>

namespace gpusim::host {
namespace {

struct GuestSigInfo {
  int32_t number, error, code, pad;
  union {
    uint64_t address;
    struct {
      int32_t pid;
      uint32_t uid;
      uint64_t value;
    } sender;
  };
  uint8_t rest[96];
};
static_assert(sizeof(GuestSigInfo) == 128);

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
  GuestSigInfo info;
  GuestUcontext context;
};
static_assert(sizeof(Frame) == 128 + 4560);

struct FrameRecord {
  uint64_t fp, lr;
};

// An exception and the return from it clear the exclusive monitor.
constexpr uint64_t kNoMark = ~uint64_t{0};
constexpr int kFp = 29, kLr = 30;

}  // namespace

A64Frame::A64Frame(const Module& module) {
  std::map<std::string, int> slots;
  for (const SlotName& s : module.slot_names) slots[s.name] = s.slot;
  const auto find = [&](const std::string& name) {
    const auto it = slots.find(name);
    return it == slots.end() ? kNoSlot : it->second;
  };
  for (size_t i = 0; i < x_.size(); ++i) x_[i] = find("x" + std::to_string(i));
  for (size_t i = 0; i < v_.size(); ++i)
    v_[i] = find("v" + std::to_string(i / 2) + (i % 2 ? ".hi" : ".lo"));
  sp_ = find("sp");
  nzcv_ = find("nzcv");
  fp_state_ = find("fp_state");
  monitor_ = find("monitor");
}

bool A64Frame::enter(Backend& backend, uint32_t core, const Request& request) const {
  const auto get = [&](int slot) {
    return slot == kNoSlot ? uint64_t{0} : backend.slot(core, static_cast<Slot>(slot));
  };
  const auto set = [&](int slot, uint64_t value) {
    if (slot != kNoSlot) backend.set_slot(core, static_cast<Slot>(slot), value);
  };
  const uint64_t sp = get(sp_);
  const SignalStack& other = request.alternate_stack;
  const bool has_other = !(other.flags & SignalStack::kDisable) && other.size != 0;
  const bool on_other = has_other && other.contains(sp);
  uint64_t top = sp;
  if ((request.action.flags & kSaOnStack) && has_other && !on_other) top = other.base + other.size;
  const uint64_t record_at = (top & ~uint64_t{15}) - sizeof(FrameRecord);
  const uint64_t frame_at = record_at - sizeof(Frame);

  Frame frame{};
  frame.info.number = request.info.number;
  frame.info.code = request.info.code;
  if (request.info.is_fault)
    frame.info.address = request.info.address;
  else
    frame.info.sender = {request.info.pid, request.info.uid, request.info.value};
  GuestUcontext& context = frame.context;
  context.stack = other;
  if (has_other) context.stack.flags = on_other ? SignalStack::kOnStack : 0;
  context.mask = request.mask;
  context.fault_address = request.fault_address;
  for (size_t i = 0; i < x_.size(); ++i) context.x[i] = get(x_[i]);
  context.sp = sp;
  context.pc = request.pc;
  context.pstate = get(nzcv_) << 28;
  Fpsimd fpsimd{.magic = kFpsimdMagic, .size = sizeof(Fpsimd), .fpsr = {}, .fpcr = {}, .v = {}};
  const uint64_t fp_state = get(fp_state_);
  fpsimd.fpsr = static_cast<uint32_t>(fp_state);
  fpsimd.fpcr = static_cast<uint32_t>(fp_state >> 32);
  for (size_t i = 0; i < v_.size(); ++i) fpsimd.v[i] = get(v_[i]);
  std::memcpy(context.reserved, &fpsimd, sizeof fpsimd);  // the record that ends the list is zero

  const GuestAccess memory(backend, core);
  const FrameRecord record{get(x_[kFp]), get(x_[kLr])};
  if (frame_at > top || !memory.allows(frame_at, sizeof frame + sizeof record, kWrite))
    return false;
  if (!memory.store(frame_at, frame) || !memory.store(record_at, record)) return false;
  set(x_[0], static_cast<uint64_t>(request.info.number));
  if (request.action.flags & kSaSigInfo) {
    set(x_[1], frame_at);
    set(x_[2], frame_at + offsetof(Frame, context));
  }
  set(x_[kFp], record_at);
  set(x_[kLr], request.return_address);
  set(sp_, frame_at);
  set(monitor_, kNoMark);
  return true;
}

std::optional<A64Frame::Interrupted> A64Frame::interrupted(const GuestAccess& memory,
                                                           uint64_t frame_pointer) const {
  Frame frame;  // the record follows it, see enter()
  if (frame_pointer < sizeof frame || !memory.load(frame_pointer - sizeof frame, &frame) ||
      frame.info.number < 1 || frame.info.number > kSignalCount)
    return std::nullopt;
  Interrupted result{.pc = frame.context.pc, .registers = {}};
  for (size_t i = 0; i < x_.size(); ++i)
    if (x_[i] != kNoSlot) result.registers.emplace_back(x_[i], frame.context.x[i]);
  if (sp_ != kNoSlot) result.registers.emplace_back(sp_, frame.context.sp);
  return result;
}

std::optional<A64Frame::Restored> A64Frame::leave(Backend& backend, uint32_t core) const {
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

  Restored restored{.pc = context.pc, .mask = context.mask, .alternate_stack = context.stack};
  const auto set = [&](int slot, uint64_t value) {
    if (slot != kNoSlot)
      backend.set_slot(core, static_cast<Slot>(slot), value);
    else
      restored.lost_a_register |= value != 0;
  };
  for (size_t i = 0; i < x_.size(); ++i) set(x_[i], context.x[i]);
  set(sp_, context.sp);
  if (monitor_ != kNoSlot) set(monitor_, kNoMark);
  if (nzcv_ != kNoSlot) set(nzcv_, (context.pstate >> 28) & 15);
  set(fp_state_, uint64_t{fpsimd->fpcr} << 32 | fpsimd->fpsr);
  for (size_t i = 0; i < v_.size(); ++i) set(v_[i], fpsimd->v[i]);
  return restored;
}

}  // namespace gpusim::host
