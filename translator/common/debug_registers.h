// Registers of a guest ISA as debuggers have them: what GDB's target descriptions say (GDB manual,
// "Target Descriptions"), and where a core keeps each. Every ISA's folder has its own.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device_sim/uir/uop.h"

namespace gpusim {

struct DebugRegister {
  /// Some bits of the register, and where a canonical slot holds them.
  struct Part {
    int slot;
    uint8_t from, bits;  // in the slot
    uint16_t at;         // in the register
  };
  std::string name;
  uint32_t bits;            // a multiple of 8
  std::string type;         // GDB's, or one of the feature's
  std::vector<Part> parts;  // bits that none has are zero, and stay so
  bool is_pc = false;       // no slot holds it
};

struct DebugFeature {
  std::string name;   // "org.gnu.gdb...."
  std::string types;  // XML that stands before the registers
  std::vector<DebugRegister> registers;
};

struct DebugTarget {
  std::string architecture;            // GDB's
  std::vector<DebugFeature> features;  // registers count through all of them
  int stack_pointer, frame_pointer;    // numbers of registers
  /// What else follows from slots that a debugger wrote. May be empty.
  std::function<void(const std::function<uint64_t(Slot)>& get,
                     const std::function<void(Slot, uint64_t)>& set)>
      settle;
};

}  // namespace gpusim
