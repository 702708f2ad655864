// A core's registers as a debugger numbers them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "translator/common/guest_isa.h"

namespace gpusim::host::gdb {

class RegisterFile {
 public:
  // `slot_of`: reads the registers in the backend's place; may be empty.
  using SlotOf = std::function<uint64_t(uint32_t core, Slot slot)>;
  RegisterFile(const GuestIsa& isa, const Module& module, Backend& backend, SlotOf slot_of = {});

  size_t count() const { return registers_.size(); }
  const DebugTarget& target() const { return target_; }
  // Bytes, the least significant first. `number` < count().
  std::vector<uint8_t> read(uint32_t core, size_t number, uint64_t pc) const;
  size_t size_bytes(size_t number) const { return registers_[number]->bits / 8; }
  bool is_pc(size_t number) const { return registers_[number]->is_pc; }
  // Of any but the pc. False: the program nowhere uses the register, which stays zero.
  bool write(uint32_t core, size_t number, std::span<const uint8_t> bytes) const;
  // Those that a debugger wants to know at each stop.
  std::vector<size_t> at_each_stop() const;

  // "target.xml"
  std::string description() const;

 private:
  const DebugTarget target_;
  Backend& backend_;
  SlotOf slot_of_;
  std::vector<const DebugRegister*> registers_;
  std::vector<int> slots_;  // canonical -> the module's, or kNoSlot
};

}  // namespace gpusim::host::gdb
