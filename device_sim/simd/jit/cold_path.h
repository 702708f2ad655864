// Micro-ops whose common path does not hold for some lane of a chunk: computed lane by lane, by the
// semantics of a single core.
#pragma once
#include "device_sim/core/execute.h"
#include "device_sim/simd/group.h"

namespace gpusim::simd {

inline constexpr int kMostChunkLanes = 16;

// Filled in by generated code. Operands in the order of the micro-op's fields a, b, c, aux: words
// of 64 bits, or of 32.
struct ColdFrame {
  static constexpr size_t kOperandBytes = kMostChunkLanes * sizeof(uint64_t);
  alignas(64) uint64_t operand[4][kMostChunkLanes];
  alignas(64) uint64_t result[kMostChunkLanes];
  Group* group;
  const Uop* uop;
  uint64_t first_lane;
};

template <class Word>
struct ColdContext {
  ColdFrame& frame;
  const Uop& u;
  int state;  // the slot of the floating-point state, or -1
  uint32_t i;

  uint32_t lane() const { return static_cast<uint32_t>(frame.first_lane) + i; }
  uint64_t get(Slot s) const {
    if (s == state) return frame.group->get_lane(s, lane());
    const uint64_t* operand = frame.operand[s == u.a ? 0 : s == u.b ? 1 : s == u.c ? 2 : 3];
    Word word;
    std::memcpy(&word, reinterpret_cast<const char*>(operand) + i * sizeof word, sizeof word);
    return word;
  }
  void set(Slot s, uint64_t value) const {
    if (s == state && s != u.d) {
      if (frame.group->get_lane(s, lane()) != value) set_lane(*frame.group, s, lane(), value);
      return;
    }
    const auto word = static_cast<Word>(value);
    std::memcpy(reinterpret_cast<char*>(frame.result) + i * sizeof word, &word, sizeof word);
  }
};

template <class Word, uint32_t kLanes>
void compute_lanes(ColdFrame* frame) {
  const Uop& u = *frame->uop;
  const int state = shape_info(op_info(u.op).shape).fp_state ? u.e : -1;
  StopInfo stop;
  for (uint32_t i = 0; i < kLanes; ++i) {
    ColdContext<Word> context{*frame, u, state, i};
    if (frame->group->active >> context.lane() & 1) execute(u, context, MemoryView{}, 0, stop);
  }
}

}  // namespace gpusim::simd
