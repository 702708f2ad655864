// One run, for the command `gpusim run` and for programs that have machines inside (host/python).
#pragma once
#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "energy/target.h"
#include "host/backend_choice.h"
#include "host/checkpoint/checkpoint.h"
#include "host/linux/kernel.h"
#include "host/memory_budget.h"
#include "host/memory_plan.h"
#include "host/observers.h"
#include "host/options.h"
#include "host/output_file.h"
#include "host/run/run_control.h"
#include "host/stats.h"
#include "translator/common/translator.h"

namespace gpusim::host {

namespace gdb {
class Server;
}
class SignalSetup;

// What a run may do to the process that it is in, and where its words go: as it stands, those of a
// command.
struct Embedding {
  // Signals end the run, progress is shown, and limits of the process are raised. Else nothing of
  // the process changes, and the run ends when `interrupted`, if there is one, is not 0.
  bool owns_process = true;
  const volatile std::sig_atomic_t* interrupted = nullptr;
  std::function<void(const std::string&)> line = {};  // of diagnosis; empty: standard error
  std::array<int, 3> standard_files{0, 1, 2};         // the guest's
};

class Watch;

// What a run is made of, in the order in which that comes to be.
class Simulation {
 public:
  // Files that are written at the end are looked at here: an hour later is too late to refuse them.
  // `translated`: as the run began, if it goes on from a checkpoint: the module then grows as it
  // grew.
  explicit Simulation(const RunOptions& options, Embedding embedding = {},
                      std::optional<Translated> translated = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  const RunOptions& options() const { return options_; }
  Translated translated() const { return translated_; }
  Translator& translator() { return translator_; }
  const Module& module() const { return translator_.module(); }
  Backend& backend() { return *backend_; }
  const MemoryPlan& plan() const { return plan_; }
  Kernel& kernel() { return *kernel_; }
  RunControl& control() { return *control_; }
  Observers& observers() { return observers_; }

  void make_backend();
  // A machine without anything in its memory.
  void make_machine(const MemoryPlan& plan, bool starts_alone);
  void load_and_start();
  void make_control(bool returns_end_cores);
  // All four, for a run from its beginning.
  void make_ready();

  // Shows the run while execute() runs it; null: nobody looks on.
  void watch(Watch* watch) { watch_ = watch; }
  // To the end of the run. Returns its exit status.
  int execute(std::optional<Checkpointer>& checkpointer, double seconds_before);
  // The same in pieces, after the last RunControl::step(). `seconds`: of simulation.
  RunResult finish();
  RunSummary summarise(const RunResult& result, double seconds);
  void write_files(const RunSummary& summary, const RunResult& result);
  std::string why_out_of_memory() const;

 private:
  static std::optional<OutputFile> file_for(const char* option, const std::string& path) {
    return path.empty() ? std::nullopt : std::optional<OutputFile>(std::in_place, option, path);
  }
  void debug();
  [[noreturn]] void end_child();
  void tell_end(RunResult& result);
  void report(RunResult& result, double seconds);
  void show_to_watch();
  void note_idle_cores() const;
  void write_core(const Death& death);

  const RunOptions options_;
  Embedding embedding_;
  Watch* watch_ = nullptr;
  std::optional<OutputFile> stats_file_, coverage_file_, core_file_;
  std::vector<energy::Target> energy_targets_;
  Observers observers_;
  std::unique_ptr<gdb::Server> gdb_;
  BackendChoice choice_;
  Translated translated_;
  Translator translator_;
  std::unique_ptr<Backend> backend_;
  MemoryPlan plan_;
  MemoryBudget budget_;
  std::optional<MemoryWatch> memory_watch_;
  std::optional<Kernel> kernel_;
  std::vector<std::pair<uint64_t, uint64_t>> auxiliary_vector_;  // as core 0 found it
  std::unique_ptr<SignalSetup> signals_;
  std::optional<RunControl> control_;
};

}  // namespace gpusim::host
