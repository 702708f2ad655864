// Which slots native code keeps in registers, for the whole program: the ones that hot code uses
// most.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "device_sim/native/domain.h"

namespace gpusim::native {

class SlotMap {
 public:
  static constexpr std::array<uint8_t, 9> kGpRegisters = {3, 6, 7, 8, 9, 10, 12, 13, 14};
  static constexpr std::array<uint8_t, 10> kXmmRegisters = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13};

  // How often hot code uses slots, as integers and as floating-point or vector values.
  struct Uses {
    std::array<uint64_t, 256> gp = {}, xmm = {};
    void add(const Uop& u, uint64_t times);
  };
  // The best map; `kept_in_frame`: a slot that code looks at in the frame, or kNoSlot.
  static SlotMap best(const Uses& uses, int kept_in_frame);

  const SlotPlace& operator[](Slot s) const { return places_[s]; }
  // Uses that find their slot in a register.
  uint64_t served(const Uses& uses) const;

  void load_all(x86::Assembler& a) const;
  void store_all(x86::Assembler& a) const;

 private:
  std::array<SlotPlace, 256> places_ = {};
};

}  // namespace gpusim::native
