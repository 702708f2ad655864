// The micro-op `vector` with values some of whose bits are undefined.
#include "device_sim/core/vector.h"
#include "host/uninitialised/machine.h"

namespace gpusim::host::uninitialised {

struct CheckedMachine::VectorOperands {
  vector::Work work;      // before the instruction
  vector::Group d, a, b;  // undefined bits
  uint64_t mask[vector::kWords];
  uint64_t any = 0;
  OriginId origin = 0;
};

namespace {

// Undefined bits in the place of values, so that what moves elements moves them.
template <class Load, class Store>
struct MemoryOfBits {
  const MemoryView& real;
  Load find;
  Store keep;
  uint32_t journal_words = 0;

  void note(uint32_t, uint64_t) const {}
  template <class T>
  bool load(uint32_t core, uint64_t address, T* out) const {
    T value;
    if (!real.load(core, address, &value)) return false;
    *out = static_cast<T>(find(address, static_cast<uint32_t>(sizeof(T))));
    return true;
  }
  template <class T>
  bool store(uint32_t core, uint64_t address, T undefined) const {
    if (!real.byte(core, address, kWrite) || !real.byte(core, address + sizeof(T) - 1, kWrite))
      return false;
    keep(address, static_cast<uint32_t>(sizeof(T)), undefined);
    return true;
  }
};

uint64_t repeated(uint64_t value, int log_size) {
  value &= ~uint64_t{0} >> (64 - (8 << log_size));
  for (int bits = 8 << log_size; bits < 64; bits *= 2) value |= value << bits;
  return value;
}

}  // namespace

Outcome CheckedMachine::execute_vector(const Uop& u, uint32_t number, StopInfo& stop) {
  CoreState& s = states_[number];
  const std::vector<uint64_t>& slots = cores_[number].slots;
  const auto state = [&](int i) { return static_cast<Slot>(u.c + i); };
  VectorOperands v;
  vector::Work& w = v.work;
  w.insn = vector::Insn::unpack(u.imm);
  w.vl = slots[state(vector::kVl)];
  w.vtype = slots[state(vector::kVtype)];
  w.vstart = slots[state(vector::kVstart)];
  w.vcsr = slots[state(vector::kVcsr)];
  w.fp = slots[u.e];
  w.x = slots[u.a];
  w.y = slots[u.b];
  if (!vector::prepare(w)) return execute_plain(u, number, stop);  // a fault
  const auto read = [&](int first, int registers, uint64_t* values, uint64_t* undefined) {
    for (int i = 0; i < registers * vector::kWords; ++i) {
      const Slot slot = state(vector::kFirstRegister + first * vector::kWords + i);
      values[i] = slots[slot];
      undefined[i] = s.undefined[slot];
      v.any |= undefined[i];
      if (undefined[i] != 0) v.origin = s.origin[slot];
    }
  };
  read(w.insn.d, w.d_count, w.d.words, v.d.words);
  read(w.insn.a, w.a_count, w.a.words, v.a.words);
  read(w.insn.b, w.b_count, w.b.words, v.b.words);
  if (w.insn.masked) read(0, 1, w.mask, v.mask);
  if (vector::is_access(w.kind)) return access_vector(u, number, stop, v);
  v.any |= s.undefined[u.a] | s.undefined[u.b];
  if (s.undefined[u.a] != 0) v.origin = s.origin[u.a];
  if (v.any != 0) {
    compute_vector(u, number, v);
    return execute_plain(u, number, stop);
  }
  const Outcome outcome = execute_plain(u, number, stop);
  set(s, u.d, 0, 0);
  return outcome;
}

Outcome CheckedMachine::access_vector(const Uop& u, uint32_t number, StopInfo& stop,
                                      VectorOperands& v) {
  CoreState& s = states_[number];
  check_slots(number, Use::kAddress, {u.a});
  if (v.work.kind == vector::Kind::kStrided) check_slots(number, Use::kAddress, {u.b});
  if (v.work.kind == vector::Kind::kIndexed) {
    uint64_t undefined = 0;
    for (int i = 0; i < v.work.a_count * vector::kWords; ++i) undefined |= v.a.words[i];
    if (undefined != 0) found(number, Use::kAddress, v.origin);
  }
  OriginId origin = v.origin;
  vector::Work bits = v.work;
  bits.d = v.d;
  const auto find = [&](uint64_t address, uint32_t size_bytes) {
    OriginId of_load = 0;
    const uint64_t undefined = loaded(number, address, size_bytes, &of_load);
    if (undefined != 0) origin = of_load;
    return undefined;
  };
  const auto keep = [&](uint64_t address, uint32_t size_bytes, uint64_t undefined) {
    shadow_.store(space_of(number), address, size_bytes, undefined, v.origin);
    stored_below(s, address, size_bytes);
  };
  StopInfo same_stop{};
  gpusim::access_vector(bits,
                        MemoryOfBits<decltype(find), decltype(keep)>{memory_.view(), find, keep},
                        number, same_stop);
  const Outcome outcome = execute_plain(u, number, stop);
  if (!(v.work.flags & vector::kStores))
    for (int i = 0; i < v.work.d_count * vector::kWords; ++i)
      set(s, static_cast<Slot>(u.c + vector::kFirstRegister + v.work.insn.d * vector::kWords + i),
          bits.d.words[i], bits.d.words[i] != 0 ? origin : 0);
  return outcome;
}

// By trying, as Domain::map(): before the machine executes it.
void CheckedMachine::compute_vector(const Uop& u, uint32_t number, VectorOperands& v) {
  CoreState& s = states_[number];
  vector::Work exact = v.work;
  vector::compute(exact);
  vector::Group undefined{};
  uint64_t undefined_result = 0;
  for (size_t way = 0; way < Domain::kWays; ++way) {
    vector::Work w = v.work;
    const std::array<Bits, 2> scalars{Bits{w.x, s.undefined[u.a]}, Bits{w.y, s.undefined[u.b]}};
    w.x = Domain::in_way(way, scalars.data(), 0, 2);
    w.y = Domain::in_way(way, scalars.data(), 1, 2);
    if (w.x != v.work.x || w.y != v.work.y)
      if (!vector::prepare(w)) continue;
    const uint64_t scalar = repeated(w.b_scalar, w.b_size);
    for (int i = 0; i < vector::Group::kMaxRegisters * vector::kWords; ++i) {
      const bool has_a = i < w.a_count * vector::kWords, has_b = i < w.b_count * vector::kWords;
      const std::array<Bits, 3> words{has_a ? Bits{w.a.words[i], v.a.words[i]} : Bits{},
                                      has_b ? Bits{w.b.words[i], v.b.words[i]} : Bits{scalar, 0},
                                      Bits{}};
      if (has_a) w.a.words[i] = Domain::in_way(way, words.data(), 0, 2);
      if (has_b) w.b.words[i] = Domain::in_way(way, words.data(), 1, 2);
      if (i < w.d_count * vector::kWords) {
        const std::array<Bits, 1> old{Bits{w.d.words[i], v.d.words[i]}};
        w.d.words[i] = Domain::in_way(way, old.data(), 0, 1);
      }
    }
    for (int i = 0; w.insn.masked && i < vector::kWords; ++i) {
      const std::array<Bits, 1> old{Bits{w.mask[i], v.mask[i]}};
      w.mask[i] = Domain::in_way(way, old.data(), 0, 1);
    }
    vector::compute(w);
    for (int i = 0; i < w.d_count * vector::kWords; ++i)
      undefined.words[i] |= w.d.words[i] ^ exact.d.words[i];
    undefined_result |= w.result ^ exact.result;
  }
  for (int i = 0; i < v.work.d_count * vector::kWords; ++i)
    set(s, static_cast<Slot>(u.c + vector::kFirstRegister + v.work.insn.d * vector::kWords + i),
        undefined.words[i], undefined.words[i] != 0 ? v.origin : 0);
  set(s, u.d, undefined_result, undefined_result != 0 ? v.origin : 0);
}

}  // namespace gpusim::host::uninitialised
