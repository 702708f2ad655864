// A program of a context: its code, its image, and the machines that run its kernels.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"
#include "host/offload/device_memory.h"
#include "host/offload/fault_lines.h"
#include "host/offload/lock_guard.h"
#include "host/offload/machine.h"
#include "host/offload/program_image.h"
#include "translator/common/translator.h"

namespace gpusim::offload {

// The image is at its place only while nobody else needs that: programs with the same addresses
// take turns, in this process's own addresses even those of different devices.
class Program {
 public:
  /// `live_data`: its variables are the caller's. OffloadError.
  Program(std::string its_name, DeviceMemory& memory, const Translator& opened, bool live_data);
  ~Program() { remove(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void install();
  void remove();
  bool is_in_the_way(uint64_t address, uint64_t size_bytes) const {
    return is_installed_ && image_.overlaps(address, size_bytes);
  }

  /// A machine that no kernel uses, for one that is about to begin; it stays taken until give().
  KernelMachine& take_machine(const KernelMachineOptions& wanted);
  void give_machine(const KernelMachine& machine);
  /// Instead: it is of no use any more.
  void drop_machine(const KernelMachine& machine);
  void drop_idle_machines();

  /// Why the function cannot be a kernel, or nothing.
  std::optional<std::string> objection(uint64_t function) const {
    return guard.objection(translator.module(), function);
  }
  /// As it was brought: to run as a process, which has a C library of its own.
  Translator unguarded() const;
  /// Before cores of a kernel come there.
  void prepare(uint64_t function);

  // What the guest runtime keeps for all cores of a kernel (gpusim_chip: barriers, reductions) is
  // one variable of the program. Each kernel has a copy: it is at its place while the kernel runs.
  using ChipState = std::vector<uint8_t>;
  void resume_kernel(ChipState& state);        // the program is installed
  void forget_kernel(const ChipState& state);  // it has ended

  const std::string name;
  const bool is_live;
  ProgramLines lines;
  Translator translator;
  const LockGuard guard;

 private:
  struct Entry {
    std::unique_ptr<KernelMachine> machine;
    bool is_taken = false;
  };
  // Of all devices of this process, which one thread at a time uses.
  static std::vector<Program*>& installed();
  bool shares_addresses(const Program& other) const {
    return &memory_ == &other.memory_ || (memory_.is_identity() && other.memory_.is_identity());
  }
  bool has_chip() const;  // and it can be reached

  DeviceMemory& memory_;
  ProgramImage image_;
  uint64_t chip_address_ = 0, chip_size_bytes_ = 0;  // of gpusim_chip; 0: there is none
  bool is_installed_ = false;
  std::set<uint64_t> prepared_;   // functions
  std::list<Entry> machines_;     // most recently used first
  ChipState* present_ = nullptr;  // whose state is at its place
};

}  // namespace gpusim::offload
