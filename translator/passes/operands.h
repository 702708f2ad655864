// A micro-op's operands as passes see them: which slots it reads and writes.
#pragma once
#include <bitset>

#include "device_sim/uir/module.h"
#include "device_sim/uir/uop.h"
#include "translator/common/op_shape.h"

namespace gpusim {

inline constexpr int kMaxSlots = 256;
using SlotSet = std::bitset<kMaxSlots>;

/// Calls f(field, reads, writes) for every operand field that names slots: a reference to the field
/// and how many consecutive slots from there on are read and written.
template <class F>
void for_each_operand(Uop& u, F f) {
  const ShapeInfo& info = shape_of(u.op);
  if (info.d.reads || info.d.writes) f(u.d, info.d.reads, info.d.writes);
  if (info.a.reads || info.a.writes) f(u.a, info.a.reads, info.a.writes);
  if (info.b.reads || info.b.writes) f(u.b, info.b.reads, info.b.writes);
  if (info.c.reads || info.c.writes) f(u.c, info.c.reads, info.c.writes);
  if (info.e.reads || info.e.writes) f(u.e, info.e.reads, info.e.writes);
  if (info.fp_state) f(u.e, uint8_t{1}, uint8_t{1});
  // A service that answers with a value has its destination in d. Of a counter, d may say before
  // which part (GuestIsa::register_bits).
  if (u.op == Op::service && static_cast<Service>(u.aux) == Service::kReadCounter)
    f(u.d, uint8_t{1}, uint8_t{1});
  if (u.op == Op::service && static_cast<Service>(u.aux) == Service::kReadCounterFrequency)
    f(u.d, uint8_t{0}, uint8_t{1});
}

template <class F>
void for_each_operand(const Uop& u, F f) {
  Uop copy = u;
  for_each_operand(copy, [&](Slot& s, uint8_t reads, uint8_t writes) { f(s, reads, writes); });
}

inline bool writes_slot(const Uop& u, Slot slot) {
  bool found = false;
  for_each_operand(
      u, [&](Slot s, uint8_t, uint8_t writes) { found |= slot >= s && slot < s + writes; });
  return found;
}

inline bool reads_slot(const Uop& u, Slot slot) {
  bool found = false;
  for_each_operand(u,
                   [&](Slot s, uint8_t reads, uint8_t) { found |= slot >= s && slot < s + reads; });
  return found;
}

/// Operand fields that its shape does not use, zeroed: runners may look at them.
inline void clear_unused_fields(Uop& u) {
  const ShapeInfo& info = shape_of(u.op);
  const auto unused = [](OperandUse use) { return !use.reads && !use.writes; };
  if (unused(info.d) && u.op != Op::service) u.d = 0;
  if (unused(info.a)) u.a = 0;
  if (unused(info.b)) u.b = 0;
  if (unused(info.c)) u.c = 0;
}

/// Calls f(slot) for every register that the host knows; kNoSlot too.
template <class F>
void for_each_abi_slot(AbiSlots& abi, F f) {
  f(abi.stack_pointer);
  f(abi.link);
  f(abi.thread_pointer);
  f(abi.global_pointer);
  f(abi.core_id);
  f(abi.monitor);
  f(abi.fp_state);
  f(abi.syscall_number);
  for (int& s : abi.syscall_args) f(s);
  f(abi.syscall_result);
  for (int& s : abi.call_args) f(s);
  for (int& s : abi.call_float_args) f(s);
}

}  // namespace gpusim
