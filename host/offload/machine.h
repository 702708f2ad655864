// Simulated cores that run kernels of one program, and one run of them.
#pragma once
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device_sim/core/compiled_regions.h"
#include "host/linux/kernel.h"
#include "host/memory_plan.h"
#include "host/offload/device_memory.h"
#include "host/offload/kernel_output.h"
#include "host/offload/lock_guard.h"
#include "host/run/run_control.h"
#include "host/start_state.h"
#include "qemu_bridge/wire/gpusim_wire.h"
#include "translator/common/translator.h"

namespace gpusim::offload {

struct KernelMachineOptions {
  std::string backend = "auto";
  CompiledRegions compiled_regions = CompiledRegions::kAuto;
  uint32_t threads = 1;
  uint32_t cores = 1;
  uint64_t stack_size_bytes = 0;  // 0: automatic
};

/// The length of the slices of a run on a device, so that each lasts about as long as others may
/// have to wait for its end, whatever the cores execute.
class SlicePace {
 public:
  explicit SlicePace(uint32_t cores);
  uint64_t instructions() const { return instructions_; }
  void slice_lasted(std::chrono::nanoseconds time);

 private:
  uint64_t instructions_;
};

/// Cores on the memory of a context, or with memory of their own (processes). What they have learnt
/// of the program, native code above all, serves later runs.
class KernelMachine {
 public:
  /// `memory` null: of its own. gpusim::Error, std::runtime_error: it cannot be.
  KernelMachine(Translator& translator, DeviceMemory* memory, const KernelMachineOptions& options);

  Translator& translator() { return translator_; }
  Backend& backend() { return *backend_; }
  const host::MemoryPlan& plan() const { return plan_; }
  bool fits(const KernelMachineOptions& options) const;
  /// All cores idle, as new.
  void reset(uint64_t max_instructions);
  /// Others may have made the program's code grow.
  void see_growth();

 private:
  Translator& translator_;
  KernelMachineOptions options_;
  std::unique_ptr<Backend> backend_;
  host::MemoryPlan plan_;
  size_t known_uops_ = 0;  // of the module, by the backend
};

/// What the cores are to do.
struct RunRequest {
  std::string name;                  // of the program
  const LockGuard* guard = nullptr;  // of the program, if its variables are the caller's
  uint64_t function = 0;
  std::span<const host::CallWord> arguments;
  bool is_process = false;           // instead: the program from its entry
  std::vector<std::string> strings;  // argv, if it is one
  uint64_t max_instructions = 0;
  uint64_t most_output_bytes = 0;
  int null_file = -1;  // /dev/null, as standard input; what is written there is gathered
};

class Run {
 public:
  Run(KernelMachine& machine, const RunRequest& request);

  /// One slice; one that runs on a device goes on beside the caller (kRuns: call again).
  host::RunControl::Step step();
  /// Waits for the slice that runs, and leaves out what came of it: the run is to end.
  void settle();
  bool is_busy() const { return control_->is_busy(); }  // step() would say kRuns
  // After the end. Addresses whose source lines trouble() could tell; then what is known of them.
  std::vector<uint64_t> places() const { return control_->reported_places(kMostPlaces); }
  void tell_lines(const host::LineTable& lines) { control_->tell_lines(lines); }
  gpusim_report report(gpusim_classes& classes);  // after that, and trouble() is there
  std::string output() const { return output_.text(); }
  /// What went wrong, in a sentence or two; empty if nothing did.
  const std::string& trouble() const { return trouble_; }
  std::chrono::nanoseconds time() const { return time_; }  // spent in step()

 private:
  static constexpr size_t kMostPlaces = 64;  // a reply holds less
  std::optional<host::Reply> answer(uint32_t resume_uop, std::string_view call);
  uint64_t link_of(uint32_t core) const;  // where its present function was called from
  void explain_locks(const host::RunResult& result);
  void add_trouble(const std::string& line);

  KernelMachine& machine_;
  const LockGuard* guard_;
  bool is_process_;
  KernelOutput output_;
  std::string trouble_;
  std::optional<host::Kernel> kernel_;
  std::optional<host::RunControl> control_;
  std::chrono::nanoseconds time_{0};
  SlicePace pace_;
  // Of the slice that runs, or that was just begun.
  std::optional<std::chrono::steady_clock::time_point> slice_begin_;
};

}  // namespace gpusim::offload
