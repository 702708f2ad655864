// The micro-op `vector` on one core: operands from its context, elements from and to memory.
#pragma once
#include "device_sim/core/effects.h"
#include "device_sim/uir/vector.h"
#include "device_sim/uir/vector_note.h"
#if defined(__CUDACC__)
#include "device_sim/uir/vector_compute.h"
#endif

namespace gpusim {

// An element between memory and a group of registers; false: a fault.
template <class Memory>
GPUSIM_HD_INLINE bool move_element(bool loads, const Memory& memory, uint32_t core,
                                   uint64_t address, int log_size, vector::Group& group,
                                   uint64_t i) {
  const auto move = [&]<class T>(T value) {
    if (!loads) return memory.store(core, address, static_cast<T>(group.get(log_size, i)));
    if (!memory.load(core, address, &value)) return false;
    group.set(log_size, i, value);
    return true;
  };
  switch (log_size) {
    case 0:
      return move(uint8_t{});
    case 1:
      return move(uint16_t{});
    case 2:
      return move(uint32_t{});
    default:
      return move(uint64_t{});
  }
}

// What a core's journal says of an access (uir/vector_note.h).
template <class Memory>
class VectorNotes {
 public:
  GPUSIM_HD VectorNotes(const Memory& memory, uint32_t core) : memory_(memory), core_(core) {}
  GPUSIM_HD void add(uint64_t address, uint64_t bytes) {
    if (memory_.journal_words == 0) return;
    if (address != address_ + bytes_) write();
    if (bytes_ == 0) address_ = address;
    bytes_ += bytes;
  }
  GPUSIM_HD void end(bool is_complete) {
    if (memory_.journal_words == 0) return;
    write();
    if (is_complete) memory_.note(core_, VectorNote::kEnd);
  }

 private:
  GPUSIM_HD void write() {
    if (bytes_ != 0) memory_.note(core_, VectorNote::pack(address_, bytes_));
    bytes_ = 0;
  }
  const Memory& memory_;
  const uint32_t core_;
  uint64_t address_ = 0, bytes_ = 0;
};

// Element by element in their order, so that vstart says at a fault which are done.
template <class Memory>
GPUSIM_HD bool access_vector(vector::Work& w, const Memory& memory, uint32_t core, StopInfo& stop) {
  using vector::Kind;
  const bool loads = (w.flags & vector::kStores) == 0;
  const bool is_whole = w.kind == Kind::kWholeAccess;
  const auto fields = static_cast<uint64_t>(is_whole ? 1 : w.insn.fields);
  const uint64_t size = uint64_t{1} << w.d_size;
  uint64_t count = w.vl;
  if (is_whole) count = static_cast<uint64_t>(w.d_count) * vector::kBytes >> w.d_size;
  if (w.kind == Kind::kMaskAccess) count = (w.vl + 7) / 8;
  // Elements of a register group, of which each field of a segment has its own.
  const uint64_t group = static_cast<uint64_t>(w.d_count) * vector::kBytes / fields >> w.d_size;
  VectorNotes<Memory> notes(memory, core);
  for (uint64_t i = w.vstart; i < count; ++i) {
    if (!w.is_active(i)) continue;
    uint64_t address = w.x;
    if (w.kind == Kind::kStrided)
      address += i * w.y;
    else if (w.kind == Kind::kIndexed)
      address += w.a.get(w.a_size, i);
    else
      address += i * fields * size;
    vector::Group before;
    if (w.flags & vector::kFirstFault) before = w.d;
    for (uint64_t field = 0; field < fields; ++field, address += size) {
      const bool ok = move_element(loads, memory, core, address, w.d_size, w.d, field * group + i);
      if (!ok && (w.flags & vector::kFirstFault) && i > 0) {
        w.d = before;
        w.vl = i;
        notes.end(true);
        return true;
      }
      notes.add(address, size);
      if (ok) continue;
      notes.end(false);
      // Such loads have nothing of a segment that faults; the specification leaves that open.
      if (w.flags & vector::kFirstFault) w.d = before;
      w.vstart = i;
      stop = {loads ? Fault::kLoadAccess : Fault::kStoreAccess, address};
      return false;
    }
  }
  notes.end(true);
  return true;
}

template <class Ctx, class Memory>
GPUSIM_HD bool execute_vector(const Uop& u, Ctx& ctx, const Memory& memory, uint32_t core,
                              StopInfo& stop) {
  vector::Work w;
  w.insn = vector::Insn::unpack(u.imm);
  const auto state = [&](int s) { return static_cast<Slot>(u.c + s); };
  const auto each_word = [&](int first, int registers, auto f) {
    for (int i = 0; i < registers * vector::kWords; ++i)
      f(state(vector::kFirstRegister + first * vector::kWords + i), i);
  };
  const auto read = [&](int first, int registers, vector::Group& group) {
    each_word(first, registers, [&](Slot s, int i) { group.words[i] = ctx.get(s); });
  };
  w.vl = ctx.get(state(vector::kVl));
  w.vtype = ctx.get(state(vector::kVtype));
  const uint64_t vstart = w.vstart = ctx.get(state(vector::kVstart));
  const uint64_t vcsr = w.vcsr = ctx.get(state(vector::kVcsr));
  const uint64_t fp = w.fp = ctx.get(u.e);
  w.x = ctx.get(u.a);
  w.y = ctx.get(u.b);
  if (!vector::prepare(w)) {
    stop = {Fault::kUndefined, 0};
    return false;
  }
  read(w.insn.d, w.d_count, w.d);
  read(w.insn.a, w.a_count, w.a);
  read(w.insn.b, w.b_count, w.b);
  if (w.insn.masked) each_word(0, 1, [&](Slot s, int i) { w.mask[i] = ctx.get(s); });

  const uint64_t vl = w.vl;
  bool ok = true;
  if (vector::is_access(w.kind))
    ok = access_vector(w, memory, core, stop);
  else
    vector::compute(w);
  if (ok) w.vstart = 0;

  if (!(w.flags & vector::kStores))
    each_word(w.insn.d, w.d_count, [&](Slot s, int i) { ctx.set(s, w.d.words[i]); });
  if (w.kind == vector::Kind::kConfigure) ctx.set(state(vector::kVtype), w.vtype);
  if (w.kind == vector::Kind::kConfigure || w.vl != vl) ctx.set(state(vector::kVl), w.vl);
  if (w.vstart != vstart) ctx.set(state(vector::kVstart), w.vstart);
  if (w.vcsr != vcsr) ctx.set(state(vector::kVcsr), w.vcsr);
  if (w.fp != fp) ctx.set(u.e, w.fp);
  if (ok) ctx.set(u.d, w.result);
  return ok;
}

}  // namespace gpusim
