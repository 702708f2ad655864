// One instruction of one core, executed by the host between two slices, while all other cores
// stand: how a debugger steps, and finds out what an instruction would access. docs/adr/0036 says
// why.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "device_sim/core/backend.h"
#include "translator/common/translator.h"

namespace gpusim::host::gdb {

enum class WatchKind : uint8_t { kWrite, kRead, kAccess };

struct Watch {
  WatchKind kind = WatchKind::kWrite;
  uint64_t address = 0, size_bytes = 0;
  bool operator==(const Watch&) const = default;
};

struct StepResult {
  enum class Kind : uint8_t {
    kDone,     // goes on at `next_pc`
    kWatched,  // accesses `watch` at `address`: nothing was done
    kFault,    // nothing was done
    kService,  // stops for the host, and then goes on at `next_pc`
    kNoCode,   // there is no instruction
  };
  Kind kind = Kind::kDone;
  uint64_t next_pc = 0;
  InsnClass insn_class = InsnClass::kOther;
  Fault fault = Fault::kNone;
  uint64_t address = 0;
  Watch watch;
  Service service = Service::kSyscall;
  Slot slot = 0;  // of a service, as Event has it
};

class HostStepper {
 public:
  HostStepper(const Translator& translator, Backend& backend)
      : translator_(translator), backend_(backend) {}

  // `core` does not run in the backend. Registers and memory are the backend's.
  StepResult step(uint32_t core, uint64_t pc, std::span<const Watch> watches);

 private:
  const Translator::Single* instruction(uint64_t pc);

  const Translator& translator_;
  Backend& backend_;
  std::unordered_map<uint64_t, Translator::Single> known_;
};

}  // namespace gpusim::host::gdb
