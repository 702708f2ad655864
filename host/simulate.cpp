#include "host/simulate.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>

#include "device_sim/core/devices.h"
#include "energy/report.h"
#include "host/backend_choice.h"
#include "host/checkpoint/checkpoint.h"
#include "host/console.h"
#include "host/error.h"
#include "host/isa_coverage.h"
#include "host/linux/kernel.h"
#include "host/loader.h"
#include "host/memory_budget.h"
#include "host/memory_plan.h"
#include "host/observers.h"
#include "host/output_file.h"
#include "host/run/run_control.h"
#include "host/start_state.h"
#include "host/stats.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

volatile std::sig_atomic_t stop_signal = 0;
timespec stopped_at{};

// The first Ctrl-C, or signal of a batch system, ends the run at the end of its slice; another one
// at once. timeout(1) and terminals may send the same one twice, to the process and to its group.
void on_stop_signal(int signal) {
  constexpr int64_t kSameMs = 200;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (stop_signal == 0) {
    stop_signal = signal;
    stopped_at = now;
  } else if ((now.tv_sec - stopped_at.tv_sec) * 1000 +
                 (now.tv_nsec - stopped_at.tv_nsec) / 1'000'000 >
             kSameMs) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // when this returns
  }
}

class SignalSetup {
 public:
  SignalSetup() {
    stop_signal = 0;
    struct sigaction action {};
    action.sa_handler = on_stop_signal;  // without SA_RESTART: a guest that reads is interrupted
    for (const int stop : kStops) sigaddset(&action.sa_mask, stop);
    for (size_t i = 0; i < std::size(kStops); ++i) {
      sigaction(kStops[i], &action, &old_stops_[i]);
      // nohup(1) asks for runs that outlive their terminal.
      if (kStops[i] == SIGHUP && old_stops_[i].sa_handler == SIG_IGN)
        sigaction(SIGHUP, &old_stops_[i], nullptr);
    }
    action.sa_handler = SIG_IGN;  // a closed pipe is an error of write
    sigaction(SIGPIPE, &action, &old_pipe_);
  }
  ~SignalSetup() {
    for (size_t i = 0; i < std::size(kStops); ++i) sigaction(kStops[i], &old_stops_[i], nullptr);
    sigaction(SIGPIPE, &old_pipe_, nullptr);
  }
  SignalSetup(const SignalSetup&) = delete;
  SignalSetup& operator=(const SignalSetup&) = delete;

 private:
  static constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction old_stops_[std::size(kStops)];
  struct sigaction old_pipe_ {};
};

// Thousands of private processes may each have files open.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void print_line(const std::string& text) { console::err("{}\n", text); }

void print_summary(const RunSummary& s) {
  print_line(fmt::format("{} cores on {} ({}): {} guest instructions in {:.3f} s, {:.1f} MIPS",
                         s.cores, s.backend, s.device, s.tally.instructions(), s.seconds,
                         s.mips()));
}

void print_energy(const RunSummary& s) {
  const energy::Activity activity = activity_of(s);
  if (activity.instructions() == 0) return print_line("gpusim: no energy: nothing was executed");
  console::err("{}", energy::report_text(activity, estimates_of(s, activity)));
}

MemoryPlan new_plan(const RunOptions& options, const Module& module, const std::string& backend) {
  return plan_memory(module, {.model = options.memory_model,
                              .cores = options.cores,
                              .memory_size_bytes = options.memory_size_bytes,
                              .stack_size_bytes = options.stack_size_bytes,
                              .memory_is_real = backend == "cuda"});
}

// The plan says where memory lies, the options how the machine works.
void complete_plan(MemoryPlan& plan, const RunOptions& options, const Observers& observers) {
  plan.config.threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  plan.config.group_width = options.group_width;
  plan.config.native_after = options.native ? options.native_after : MachineConfig::kNeverNative;
  plan.config.max_instructions = options.max_instructions;
  plan.config.seed = options.seed;
  plan.config.regroup = options.regroup;
  observers.complete(plan.config);
}

RunShape shape_of(const RunOptions& options, const MemoryPlan& plan, const Backend& backend) {
  uint64_t start_bytes = options.program.size() * 2 + 512;
  for (const auto* words : {&options.program_args, &options.environment})
    for (const std::string& word : *words) start_bytes += word.size() + 1 + sizeof(uint64_t);
  return {.plan = &plan,
          .backend = backend.name(),
          .start_bytes = options.entry ? 0 : start_bytes,
          .per_core_statistics = options.per_core,
          .journal_words = plan.config.journal_words};
}

bool starts_alone(const RunOptions& options, const Module& module) {
  if (options.memory_model == MemoryModel::kPrivate || options.entry) return false;
  if (options.start != StartCores::kAuto) return options.start == StartCores::kFirst;
  return makes_its_threads(module);
}

std::optional<Checkpointer> make_checkpointer(const RunOptions& options) {
  if (options.checkpoint_path.empty()) return std::nullopt;
  return std::optional<Checkpointer>(std::in_place,
                                     Checkpointer::Options{.file = {"--checkpoint", options.checkpoint_path},
                                                           .every = options.checkpoint_every,
                                                           .stop = options.checkpoint_stop,
                                                           .quiet = options.quiet});
}

RunIdentity identity_of(const RunOptions& options, const Module& module, const Backend& backend,
                        const MemoryPlan& plan, const Kernel& kernel) {
  RunIdentity run{.program = std::filesystem::absolute(options.program).lexically_normal(),
                  .program_hash = hash_of_file(options.program),
                  .cpu = module.cpu,
                  .backend = backend.name(),
                  .group_width = plan.config.group_width,
                  .starts_alone = kernel.starts_alone(),
                  .returns_end_cores = options.entry.has_value(),
                  .has_core_tallies = backend.name() != "cuda" || plan.config.per_core_tallies,
                  .plan = plan,
                  .slice = options.slice,
                  .max_instructions = options.max_instructions,
                  .seed = options.seed,
                  .seconds = 0,
                  .roots = options.roots};
  for (AllowedRoot& root : run.roots) root.folder = std::filesystem::canonical(root.folder);
  return run;
}

// Of what the guest wrote last nobody told it that it is lost.
int status_with_output(int status, int error) {
  if (error == 0 || status != 0) return status;
  if (error == EPIPE) return 128 + SIGPIPE;
  throw UserError(fmt::format("the guest's output is lost: {}", std::strerror(error)));
}

}  // namespace

int simulate(const RunOptions& asked_for) {
  // SIGUSR1 asks for a checkpoint from here on.
  std::optional<Checkpointer> checkpointer = make_checkpointer(asked_for);
  std::unique_ptr<ResumedRun> resumed;
  if (!asked_for.resume_path.empty()) resumed = std::make_unique<ResumedRun>(asked_for.resume_path);
  const RunOptions options = resumed ? resumed->options(asked_for) : asked_for;
  std::optional<OutputFile> stats_file;
  if (!options.stats_path.empty()) stats_file.emplace("--stats", options.stats_path);
  std::optional<OutputFile> coverage_file;
  if (!options.isa_coverage_path.empty())
    coverage_file.emplace("--isa-coverage", options.isa_coverage_path);
  std::vector<energy::Target> energy_targets;
  if (!options.energy_targets.empty())
    energy_targets = energy::find_targets(options.energy_targets);
  Observers observers(options, energy_targets);
  Translator translator(load_program(options.program, observers.translation()),
                        observers.translation());
  if (resumed) resumed->grow(translator);
  const Module& module = translator.module();
  const BackendChoice choice = choose_backend({.backend = options.backend,
                                               .devices = options.devices,
                                               .memory_model = options.memory_model});
  const std::unique_ptr<Backend> backend = make_backend_on(choice.backend, choice.devices);
  MemoryPlan plan =
      resumed ? resumed->identity().plan : new_plan(options, module, backend->name());
  complete_plan(plan, options, observers);
  const MemoryBudget budget = memory_budget(options.host_memory_bytes);
  judge_needs(known_needs(module, shape_of(options, plan, *backend)), budget, plan.config.cores);
  std::optional<MemoryWatch> memory_watch(std::in_place, budget, memory_of(*backend));

  Kernel::Config kernel_config{.plan = &plan,
                               .module = &module,
                               .translator = &translator,
                               .starts_alone = resumed ? resumed->identity().starts_alone
                                                       : starts_alone(options, module),
                               .roots = options.roots,
                               .network = options.network,
                               .standard_files = {0, 1, 2},
                               .program = options.program,
                               .note = {}};
  if (!options.quiet)
    kernel_config.note = [](const std::string& text) { print_line("gpusim: note: " + text); };
  kernel_config.on_thread = [&](uint32_t child, uint32_t parent) {
    observers.thread_started(child, parent);
  };
  Kernel kernel(*backend, std::move(kernel_config));
  allow_many_files();

  backend->configure(module, plan.config);
  if (resumed) {
    // Restored below.
  } else if (load_image(*backend, module, plan); options.entry) {
    start_as_call(*backend, translator, plan, *options.entry, options.call_args);
  } else {
    start_as_process(*backend, translator, plan,
                     {options.program, options.program_args, options.environment, options.argv0},
                     kernel.starts_alone() ? 1 : options.cores);
  }

  const SignalSetup signals;
  RunControl control(translator, *backend, plan, kernel,
                     {.slice = options.slice,
                      .max_instructions = options.max_instructions,
                      .returns_end_cores = resumed ? resumed->identity().returns_end_cores
                                                   : options.entry.has_value(),
                      .show_progress = !options.quiet,
                      .program = options.program,
                      .observer = &observers,
                      .memory = &*memory_watch,
                      .interrupted = &stop_signal},
                     print_line);
  observers.start(module, *backend, plan.config, control);
  if (resumed) {
    resumed->restore_machine(module, plan, *backend);
    resumed->restore_run(kernel, control);
  }
  const double seconds_before = resumed ? resumed->identity().seconds : 0;
  if (checkpointer)
    checkpointer->start(resumed ? resumed->identity_now(*backend, options)
                                : identity_of(options, module, *backend, plan, kernel),
                        translator, *backend, kernel, control);
  resumed.reset();
  const auto start = std::chrono::steady_clock::now();
  while (control.step() && !(checkpointer && checkpointer->after_step())) {
  }
  memory_watch.reset();
  RunResult result = control.finish();
  if (checkpointer && checkpointer->has_stopped()) result.exit_status = kExitCheckpoint;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  kernel.output().flush();
  const int output_error = kernel.output().take_error();

  RunSummary summary{.program = options.program,
                     .isa = module.isa,
                     .backend = backend->name(),
                     .device = backend->device(),
                     .cores = options.cores,
                     .tally = control.tallies().total(module, *backend),
                     .seconds = seconds_before + elapsed.count(),
                     .exit_status = result.exit_status,
                     .stops = result.stops,
                     .stop_reports = result.reports,
                     .per_core = {},
                     .energy_targets = std::move(energy_targets)};
  if (options.per_core)
    for (uint32_t core = 0; core < options.cores; ++core)
      summary.per_core.push_back(control.tallies().of_core(*backend, core));
  observers.summarise(summary);
  if (result.ran_out_of_memory)
    print_line("gpusim: error: " + describe_exhaustion(budget, module, plan, *backend));
  if (result.was_interrupted)
    print_line(stop_signal == SIGINT
                   ? "gpusim: interrupted"
                   : fmt::format("gpusim: interrupted by SIG{}", ::sigabbrev_np(stop_signal)));
  if (result.was_interrupted || result.ran_out_of_memory ||
      (!options.quiet && isatty(STDERR_FILENO)))
    print_summary(summary);
  observers.print(summary);
  if (!summary.energy_targets.empty()) print_energy(summary);
  if (stats_file) write_stats(summary, *stats_file);
  observers.write();
  if (coverage_file) write_isa_coverage(*coverage_file, module, *backend, result.stops);
  return status_with_output(result.exit_status, output_error);
}

}  // namespace gpusim::host
