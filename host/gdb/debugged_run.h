// A run whose cores a debugger stops, steps and looks into. It knows nothing of the debugger's
// protocol. All cores stand between two calls of go().
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/gdb/host_step.h"
#include "host/gdb/registers.h"
#include "host/linux/kernel.h"
#include "host/run/debug_hook.h"
#include "host/run/run_control.h"

namespace gpusim::host::gdb {

struct Stop {
  enum class Why : uint8_t {
    kSignal,  // a fault, or what is about to end the core: `signal`
    kBreakpoint,
    kWatch,
    kStep,
    kInterrupt,  // the debugger asked for it
    kWaiting,    // none of the cores that may run can go on
    kGone,       // those that were to run have ended
  };
  Why why = Why::kInterrupt;
  uint32_t core = 0;
  int signal = 5;  // Linux's number
  Watch watch;
  uint64_t address = 0;  // kWatch
};

enum class Action : uint8_t { kStand, kGo, kStep };

struct Resume {
  struct One {
    uint32_t core = 0;
    Action action = Action::kGo;
    int signal = 0;                           // what the core stopped with takes effect
    uint64_t range_begin = 0, range_end = 0;  // kStep: on, while it is in here
  };
  Action others = Action::kStand;  // also of cores that start meanwhile
  std::vector<One> ones;
  uint32_t focus = 0;  // the core that the user looks at
};

class DebuggedRun final : public DebugHook {
 public:
  // The run is ready to go on. All must outlive this.
  DebuggedRun(Translator& translator, Backend& backend, const MemoryPlan& plan, Kernel& kernel,
              RunControl& control);
  ~DebuggedRun() override { kernel_.set_held({}); }
  DebuggedRun(const DebuggedRun&) = delete;
  DebuggedRun& operator=(const DebuggedRun&) = delete;

  uint32_t cores() const { return plan_.config.cores; }
  bool is_alive(uint32_t core) const { return core < cores() && kernel_.is_alive(core); }
  std::optional<uint32_t> first_alive(uint32_t from = 0) const;
  uint64_t pc(uint32_t core);  // or of a thread without one
  // False: it waits in a system call, which has to end first.
  bool set_pc(uint32_t core, uint64_t pc);
  // "runs", "waits for a futex at lock"; of a thread without a core: "waits for a core"
  std::string state(uint32_t core);
  // Before it is resumed.
  std::optional<Stop> untold_stop(uint32_t core) const;
  const RegisterFile& registers() const { return registers_; }

  // All breakpoints, with code of conditions one of which must hold, if there are any.
  using Conditions = std::vector<std::vector<uint8_t>>;
  void set_breakpoints(std::map<uint64_t, Conditions> breakpoints);
  void set_watches(std::vector<Watch> watches) { watches_ = std::move(watches); }
  // Signals that do not stop cores.
  void pass_signals(std::set<int> signals) { passed_ = std::move(signals); }

  // Runs until a core stops, `looks` (called between slices) is true, or, with nothing, the run
  // ends.
  std::optional<Stop> go(const Resume& resume, const std::function<bool()>& looks);
  // No debugger is there: all that was stopped goes on as if there had never been one.
  void let_go();
  // A debugger is there.
  void attach() { take_up_breakpoints(); }

  // DebugHook
  uint64_t longest_slice() override;
  void before_slice() override;
  void slice_has_run() override;
  bool keeps(const Event& event, Fault fault) override;
  bool keeps_ending(uint32_t core, int signal) override;
  bool keeps_waiting() override;

 private:
  struct Kept {
    std::optional<Event> event;  // else a signal that ends the core
    int signal = 0;
  };
  const Module& module() const { return translator_.module(); }
  bool may_be_moved(uint32_t core) const { return is_alive(core) && !kernel_.is_parked(core); }
  uint64_t place_of(uint32_t core);
  void hold(uint32_t core, uint64_t pc);
  void start(const std::vector<uint32_t>& cores);
  void keep(uint32_t core, uint64_t pc, const Stop& stop);
  bool keep_fault(uint32_t core, uint64_t pc, const Event& event, Fault fault);
  bool is_wanted(uint64_t pc, uint32_t core);
  void let_kept_act(uint32_t core, int signal);
  void take_up_breakpoints();
  void step_core(uint32_t core);
  void step_service(uint32_t core, const StepResult& result);
  void step_cores(bool alone);
  void try_to_reach_breakpoint(uint32_t core);
  void begin(const Resume& resume);
  std::vector<uint32_t> held_to_go() const;
  bool anyone_resumed() const;
  std::optional<Stop> take_stop();
  std::vector<uint64_t> watched_pages() const;
  bool is_watched(uint64_t address) const;

  Translator& translator_;
  Backend& backend_;
  const MemoryPlan& plan_;
  Kernel& kernel_;
  RunControl& control_;
  RegisterFile registers_;
  HostStepper stepper_;

  bool is_attached_ = false;
  std::vector<uint8_t> held_;  // per core: it does not run in the backend, though it could
  std::vector<uint64_t> pc_;   // of those
  std::vector<Action> action_;
  bool all_go_ = true, any_go_ = true;
  struct Stepping {
    Resume::One one;
    bool in_call = false, is_done = false;
  };
  std::vector<Stepping> steps_;  // that are not done
  std::deque<Stop> stops_;       // that nobody was told of
  std::unordered_map<uint32_t, Kept> kept_;
  std::map<uint64_t, Conditions> breakpoints_;
  std::set<uint64_t> placed_;  // breakpoints in the code: those, and some that are no longer
  uint64_t passed_stale_ = 0;  // how often a core came to one of the latter
  std::vector<Watch> watches_;
  struct Armed {
    uint32_t core;
    uint64_t page;
    uint8_t rights;
  };
  std::vector<Armed> armed_;
  std::set<int> passed_;
};

}  // namespace gpusim::host::gdb
