// The part of Linux that static user programs need: system calls of all cores, on the host.
//
// A core's call is answered at once, parks the core (futex, sleep), or ends cores. In the shared
// model all cores are threads of one process; in the private model every core is a process.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/guest_access.h"
#include "host/linux/address_space.h"
#include "host/linux/file_table.h"
#include "host/linux/output.h"
#include "host/linux/path_policy.h"
#include "host/linux/wait_queue.h"
#include "host/memory_plan.h"

namespace gpusim::host {

// What rt_sigaction keeps; signals are never delivered to handlers.
struct SignalAction {
  uint64_t handler = 0;  // 0: default, 1: ignore
  uint64_t flags = 0, restorer = 0, mask = 0;
};

struct Process {
  Process(uint32_t its_number, const AddressSpace& space, const std::array<FileRef, 3>& standard,
          std::string folder)
      : number(its_number),
        memory(space),
        files(standard),
        cwd(std::move(folder)),
        random_state(its_number) {}
  uint32_t number;
  AddressSpace memory;
  FileTable files;
  std::string cwd;  // absolute
  std::map<int, SignalAction> signal_actions;
  uint64_t signal_mask = 0;
  uint64_t random_state = 0;
};

// One system call of one core.
struct Call {
  uint32_t core = 0;
  uint32_t resume_uop = 0;
  std::array<uint64_t, 6> args{};
  Process* process = nullptr;
  GuestAccess memory;

  int64_t int_arg(int i) const { return static_cast<int32_t>(args[i]); }
};

// How a call ends.
struct Reply {
  enum class Kind : uint8_t {
    kResult,       // value goes to the guest: >= 0, or -errno
    kParked,       // the core waits in the kernel's queue
    kExitThread,   // value: exit status
    kExitProcess,  // value: exit status
    kSignal,       // value: the signal that ends the process
  };
  Kind kind = Kind::kResult;
  int64_t value = 0;

  static Reply result(int64_t v) { return {Kind::kResult, v}; }
  static Reply error(int number) { return {Kind::kResult, -number}; }
};

class Kernel {
 public:
  struct Config {
    const MemoryPlan* plan = nullptr;
    const Module* module = nullptr;
    std::vector<AllowedRoot> roots;
    std::string program;
    std::function<void(const std::string&)> note;  // a line for the user; may be empty
  };
  Kernel(Backend& backend, Config config);

  // The system call that `core` stopped at. kResult is not yet in its registers: see resume.
  Reply handle(uint32_t core, uint32_t resume_uop);
  // Gives the core its result and lets it go on.
  void resume(uint32_t core, uint32_t resume_uop, int64_t result);
  // Wakes cores whose time is over.
  void expire(Clock::time_point now);
  // The core ended; it waits no longer.
  void forget(uint32_t core) { waits_.remove(core); }

  // For the functions that implement calls.
  Backend& backend() { return backend_; }
  const MemoryPlan& plan() const { return *config_.plan; }
  const Module& module() const { return *config_.module; }
  const PathPolicy& paths() const { return paths_; }
  Output& output() { return output_; }
  WaitQueue& waits() { return waits_; }
  const WaitQueue& waits() const { return waits_; }
  bool is_private() const { return plan().config.memory_model == MemoryModel::kPrivate; }
  // Tells the user, once for each different `key`.
  void note_once(const std::string& key, const std::string& text);

 private:
  Process& process_of(uint32_t core);

  Backend& backend_;
  Config config_;
  PathPolicy paths_;
  Output output_;
  WaitQueue waits_;
  std::array<FileRef, 3> standard_files_;
  std::vector<std::unique_ptr<Process>> processes_;  // made at the first call
  std::set<std::string> noted_;
  std::string cwd_;
};

// System calls by number; null where there is none.
using Handler = Reply (*)(Kernel&, Call&);
Handler find_handler(uint64_t number);
// "clone3"; null for numbers that Linux does not have.
const char* syscall_name(uint64_t number);

}  // namespace gpusim::host
