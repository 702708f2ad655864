// All that watches a run because the user asked for it: --profile, --timeline, --power-trace, --caches,
// --chip, --plugin, --simulated-time. What is wrong with them is found out before the run.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "energy/target.h"
#include "host/caches/hierarchy.h"
#include "host/chip/chip_model.h"
#include "host/journal/journals.h"
#include "host/journal/trace.h"
#include "host/options.h"
#include "host/plugin/plugin_host.h"
#include "host/races/detector.h"
#include "host/run/call_frames.h"
#include "host/run/call_tree.h"
#include "host/run/profile_report.h"
#include "host/run/run_control.h"
#include "host/run/simulated_time.h"
#include "host/run/timeline.h"
#include "host/stats.h"
#include "host/uninitialised/machine.h"
#include "translator/common/translator.h"

namespace gpusim::host {

class Observers final : public RunObserver {
 public:
  // `options` and `targets`, those of --energy, must outlive this. Throws Error.
  Observers(const RunOptions& options, const std::vector<energy::Target>& targets);

  // For that backend.
  TranslateOptions translation(const std::string& backend);
  // What the machine has to count and to write down.
  void complete(MachineConfig& config) const;
  // The machine is configured; nothing has run. All must outlive this.
  void start(const Module& module, Backend& backend, const MachineConfig& config,
             const RunControl& control, Kernel& kernel);

  uint64_t longest_slice() override;
  // From now on, slices are no longer than this, in instructions, whatever the observers need.
  void limit_slices(uint64_t longest) { slice_limit_ = longest; }
  void before_slice() override;
  void slice_has_run() override;
  void slice_was_handled() override;
  void thread_started(uint32_t child, uint32_t parent) override;
  void thread_ended(uint32_t core) override;
  // A core no longer sleeps on a futex.
  void thread_woken(uint32_t core, uint32_t by);
  // A core's wait in the kernel came to its time limit.
  void wait_timed_out(uint32_t core);
  // The kernel stored to a word for a thread that ended.
  void thread_left(uint32_t core, uint64_t word);
  void call_was_made(uint32_t core, const char* name);
  // A signal handler begins where the core was at `pc`, or returns.
  void handler_begins(uint32_t core, uint64_t pc, uint64_t handler);
  void handler_ends(uint32_t core);
  bool wants_handlers() const {
    return follows_calls_ || options_.locks_in_time || chip_shape_.has_value();
  }
  // Whether what is told of a core has to be of one thread at a time, from its begin to its end.
  bool take_cores_for_threads() const {
    return follows_calls_ || options_.check_races || options_.check_uninitialised ||
           options_.simulated_time || !options_.chip.empty();
  }
  void time_service(uint32_t core, Service service, uint64_t address, uint64_t number) override;

  // With --simulated-time: cycles that a core has taken so far.
  bool has_time() const { return time_.has_value(); }
  double cycles(uint32_t core) const;

  // After the run: adds what was seen to the summary.
  void summarise(RunSummary& summary);
  // Tables on standard error.
  void print(const RunSummary& summary) const;
  // Files, and the table of --profile.
  void write();

 private:
  bool wants_counts() const {
    return options_.wants_stats() || !options_.energy_targets.empty();
  }
  bool wants_profile() const { return !options_.profile.empty(); }
  bool wants_recorder() const {
    return !options_.timeline_path.empty() || !options_.power_path.empty();
  }
  bool wants_accesses() const {
    return options_.check_races || options_.locks_in_time || cache_shape_ || chip_shape_ ||
           trace_ || plugins_.wants_journal();
  }
  bool wants_journal() const { return wants_accesses() || follows_calls_; }
  bool decide_on_calls() const;
  void prepare_recorder(const std::vector<energy::Target>& targets);
  void place_memory_in(RunSummary& summary);
  void finish_chip(RunSummary& summary);
  energy::LongestCores longest_cores() const;
  std::vector<energy::ActivitySlice> finish_slices();
  RunSummary::Time time_of_run();
  void write_profile_table() const;
  void write_power_and_timeline() const;
  void take_time_of(const std::vector<energy::Target>& targets);

  const RunOptions& options_;
  const Module* module_ = nullptr;
  Backend* backend_ = nullptr;
  const RunControl* control_ = nullptr;
  uint64_t slice_limit_ = ~uint64_t{0};

  CycleTable table_, placed_table_;  // for tallies as they are counted, and as caches place them
  ProfileFiles files_;
  bool follows_calls_ = false;
  bool notes_clocks_ = false;  // journals are of the order between cores alone
  std::optional<OutputFile> timeline_file_, power_file_;
  ProfilePlaces places_;
  std::vector<const energy::Target*> timed_;  // the recorder's bases from 1 on
  std::optional<ActivityRecorder> recorder_;

  PluginHost plugins_;
  std::optional<TraceRequest> trace_;
  std::optional<TraceWriter> trace_writer_;
  std::optional<HierarchyShape> cache_shape_;
  std::optional<Journals> journals_;
  std::optional<CallTree> calls_;
  std::optional<races::Detector> races_;
  uninitialised::CheckedMachine* checked_ = nullptr;  // the backend, with --check uninitialised
  std::unique_ptr<CallFrames> checked_frames_;
  MachineConfig config_;
  std::optional<CacheHierarchy> caches_;
  std::optional<CacheReport> cache_report_;
  std::optional<SimulatedTime> time_;
  std::optional<chip::ChipShape> chip_shape_;
  std::optional<OutputFile> chip_page_file_, chip_timeline_file_;
  std::unique_ptr<chip::ChipModel> chip_;  // or an ideal one, for the clock
  std::vector<uint8_t> sleepers_;  // per core, for it
  std::shared_ptr<const chip::ChipReport> chip_report_;
};

}  // namespace gpusim::host
