// Alternates between slices on the machine and the events of its cores, until every core has ended.
#pragma once
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/core/async_slices.h"
#include "device_sim/core/backend.h"
#include "host/linux/kernel.h"
#include "host/memory_budget.h"
#include "host/memory_plan.h"
#include "host/run/call_frames.h"
#include "host/run/code_guard.h"
#include "host/run/debug_hook.h"
#include "host/run/livelock.h"
#include "host/run/progress.h"
#include "host/run/slice_of_threads.h"
#include "host/run/stop_report.h"
#include "host/run/tallies.h"
#include "translator/common/translator.h"

namespace gpusim::host {

// Sees a run from beside it; each call does nothing unless it is overridden.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual uint64_t longest_slice() { return ~uint64_t{0}; }  // in instructions
  virtual void before_slice() {}
  virtual void slice_has_run() {}      // nothing was done since
  virtual void slice_was_handled() {}  // with its events
  virtual void thread_started(uint32_t child, uint32_t parent) {
    (void)child;
    (void)parent;
  }
  virtual void thread_ended(uint32_t core) { (void)core; }
  // Service::kTimeRelease or kTimeAcquire.
  virtual void time_service(uint32_t core, Service service, uint64_t address, uint64_t number) {
    (void)core;
    (void)service;
    (void)address;
    (void)number;
  }
};

// The first core that dies by a fault or a signal, or waits in a deadlock, before anything is
// undone.
struct Death {
  uint32_t core = 0;
  int signal = 0;                                // 0: a deadlock
  std::function<uint64_t(uint32_t core)> pc_of;  // of any core that is alive
};

struct RunControlOptions {
  uint64_t slice = 0;              // instructions; 0: automatic
  uint64_t max_instructions = 0;   // per core, as configured
  bool returns_end_cores = false;  // a jump to kReturnAddress ends the core with status 0
  bool show_progress = false;
  std::string program;  // the file, for source lines
  // Others write to the cores' memory, too: no look for livelocks.
  bool memory_changes_outside = false;
  std::chrono::milliseconds longest_nap{50};  // so that Ctrl-C is heard
  RunObserver* observer = nullptr;
  MemoryWatch* memory = nullptr;
  // Reports of cores that stopped are said by finish(), so that tell_lines() may come before.
  bool reports_at_end = false;
  const volatile std::sig_atomic_t* interrupted =
      nullptr;  // the signal that ends the run, once it came
  std::function<void(const Death&)> on_death = {};  // once; may be empty
};

struct RunResult {
  int exit_status = 0;
  std::vector<StopRecord> stops;     // by core
  std::vector<StopReport> reports;   // of them, by StopRecord::report
  bool was_interrupted = false;
  bool was_deadlocked = false;  // cores waited when none could go on
  bool ran_out_of_memory = false;
  bool reached_limit = false;  // all cores did, when threads without one were left
};

class RunControl {
 public:
  // `line`: prints one line of diagnosis for the user.
  RunControl(Translator& translator, Backend& backend, const MemoryPlan& plan, Kernel& kernel,
             const RunControlOptions& options, std::function<void(const std::string&)> line);

  // Cores have been started: to their end.
  RunResult run();
  // The same in pieces: slices, or naps of at most longest_nap, until step() is false; then finish().
  bool step();
  // The same without waiting for slices of a device: kRuns, call again. In between nothing else may
  // be called but is_busy(), until step_apart() would not wait, and settle(), which waits for the
  // slice and leaves out its events.
  enum class Step { kEnded, kGoesOn, kRuns };
  Step step_apart();
  void settle();
  bool is_busy() const { return slice_runs_ && !async_->slice_is_done(); }
  bool had_slice() const { return had_slice_; }  // the last step_apart()
  // Of later slices, in instructions.
  void set_slice(uint64_t instructions) { options_.slice = instructions; }
  uint64_t next_slice() const { return slice_length(); }  // of the next step(), in instructions
  RunResult finish();
  // After the last step(): addresses in the functions and callers that finish() will name, the most
  // important first, and what is known of them.
  std::vector<uint64_t> reported_places(size_t most) const;
  void tell_lines(const LineTable& lines);
  const Tallies& tallies() const { return tallies_; }
  bool is_alive(uint32_t core) const { return kernel_.is_alive(core); }
  // Null: nobody debugs the run.
  void set_debugger(DebugHook* debugger) { debugger_ = debugger; }
  // For a debugger, between two steps: what an event that it kept or made does to the core, and a
  // signal that ends the core's process.
  void deliver(const Event& event);
  void deliver_ending(uint32_t core, int signal);
  void count_instruction(uint32_t core, InsnClass insn_class) { tallies_.add(core, insn_class, 1); }
  // Who waits for what, as the report of a deadlock has it.
  std::vector<std::string> waits();
  // The same of threads that have no core, whatever they do.
  std::vector<std::string> threads_without_core();
  // This is a new process now: neither progress nor the watch over memory are its.
  void became_child() {
    progress_.stop();
    options_.memory = nullptr;
  }
  // A line for the user, between two steps.
  void say(const std::string& text) { line_(text); }

  // For checkpoints, which define it. `same_machine`: the run goes on on the kind that it was on.
  template <class Archive>
  void describe(Archive& a, bool same_machine);

 private:
  const Module& module() const { return translator_.module(); }
  uint64_t slice_length() const;
  uint64_t wanted_slice_length() const;
  void choose_slices(std::span<const Event> events);
  bool is_interrupted() const {
    return options_.interrupted != nullptr && *options_.interrupted != 0;
  }

  bool debugger_keeps(const Event& event, Fault fault) {
    return debugger_ && !is_delivering_ && debugger_->keeps(event, fault);
  }
  // What a step does without a slice, if it needs none: whether the run goes on.
  std::optional<bool> step_without_slice();
  void before_slice();
  bool after_slice(std::span<const Event> seen);
  // Cores wait for what can never come. False: that ends the run.
  bool goes_on_waiting();
  void end_by_signal(const Event& event, int signal);
  void handle(const Event& event);
  void handle_limit(const Event& event);
  void handle_fault(const Event& event);
  bool store_beside_late_code(const Event& event);
  bool repeats_store(const Event& event);
  uint64_t step_beside(LateCode::Opened& opened, uint32_t core, uint64_t pc);
  bool finds_late_code(const Event& event);
  void handle_service(const Event& event);
  void handle_jump(const Event& event);
  std::string why_not_executed(const Event& event);
  void handle_time(const Event& event);
  // Blocks that this slice's jumps need, before any event is handled: backends look at the module.
  void translate_targets(std::span<const Event> events);
  void share_cores();
  void look_around();
  void end_killed();
  void end_faulted(StopRecord stop);
  void check_code();
  void end_core(uint32_t core, int status);
  bool is_return(const Event& event) const;
  void end_returned(uint32_t first, uint32_t count);
  void end_process(uint32_t caller, int status);
  void record(StopRecord stop);
  void tell_death(uint32_t core, int signal, uint64_t pc);
  uint64_t pc_of(uint32_t core);  // or of a thread without one
  CallFrames& call_frames();
  void sleep_until_something_happens();
  void end_without_cores();
  void report_deadlock();
  std::string why_cores_are_missing() const;
  void show_progress();
  int exit_status() const;

  Translator& translator_;
  Backend& backend_;
  const MemoryPlan& plan_;
  Kernel& kernel_;
  RunControlOptions options_;
  RunObserver no_observer_;
  RunObserver& observer_;  // of the options, or that
  std::function<void(const std::string&)> line_;
  Progress progress_;
  LivelockDetector livelock_;
  CodeGuard guard_;
  StopReports reports_;
  std::unique_ptr<CallFrames> call_frames_;  // once a core stopped
  Tallies tallies_;
  DebugHook* debugger_ = nullptr;
  bool is_delivering_ = false;  // what the debugger has seen
  // Threads of one program wait for each other's system calls, or for each other's core.
  SliceOfThreads slice_of_threads_;
  uint64_t slice_of_sharing_ = SliceOfThreads::kFirst;  // while threads share cores
  AsyncSlices* const async_;    // of the backend; or null
  bool slice_runs_ = false;     // on a device
  bool had_slice_ = false;
  std::span<const Event> unhandled_;  // of the last slice
  RunResult result_;
  std::vector<int16_t> status_;  // per core: exit status, once it ended
};

}  // namespace gpusim::host
