#include "host/simulate.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "energy/report.h"
#include "host/error.h"
#include "host/isa_coverage.h"
#include "host/linux/kernel.h"
#include "host/loader.h"
#include "host/memory_plan.h"
#include "host/run/profile.h"
#include "host/run/run_control.h"
#include "host/start_state.h"
#include "host/stats.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

volatile std::sig_atomic_t interrupts = 0;

// The first Ctrl-C ends the run at the end of its slice, the second at once.
void on_interrupt(int signal) {
  interrupts = interrupts + 1;
  if (interrupts > 1) std::signal(signal, SIG_DFL);
}

class SignalSetup {
 public:
  SignalSetup() {
    interrupts = 0;
    struct sigaction action {};
    action.sa_handler = on_interrupt;  // without SA_RESTART: a guest that reads is interrupted
    sigaction(SIGINT, &action, &old_interrupt_);
    action.sa_handler = SIG_IGN;  // a closed pipe is an error of write
    sigaction(SIGPIPE, &action, &old_pipe_);
  }
  ~SignalSetup() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGPIPE, &old_pipe_, nullptr);
  }
  SignalSetup(const SignalSetup&) = delete;
  SignalSetup& operator=(const SignalSetup&) = delete;

 private:
  struct sigaction old_interrupt_ {
  }, old_pipe_{};
};

// Thousands of private processes may each have files open.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void print_line(const std::string& text) { fmt::print(stderr, "{}\n", text); }

void print_summary(const RunSummary& s) {
  print_line(fmt::format("{} cores on {} ({}): {} guest instructions in {:.3f} s, {:.1f} MIPS",
                         s.cores, s.backend, s.device, s.tally.instructions(), s.seconds,
                         s.mips()));
}

void print_energy(const RunSummary& s) {
  const energy::Activity activity = activity_of(s);
  if (activity.instructions() == 0) return print_line("gpusim: no energy: nothing was executed");
  fmt::print(stderr, "{}", energy::report_text(activity, estimates_of(s, activity)));
}

MemoryPlan make_plan(const RunOptions& options, const Module& module, const Backend& backend) {
  MemoryPlan plan = plan_memory(module, {.model = options.memory_model,
                                         .cores = options.cores,
                                         .memory_size_bytes = options.memory_size_bytes,
                                         .stack_size_bytes = options.stack_size_bytes,
                                         .memory_is_real = backend.name() == "cuda"});
  plan.config.threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  plan.config.group_width = options.group_width;
  plan.config.native_after = options.native ? options.native_after : MachineConfig::kNeverNative;
  plan.config.max_instructions = options.max_instructions;
  plan.config.seed = options.seed;
  plan.config.regroup = options.regroup;
  plan.config.per_core_tallies = options.per_core;
  plan.config.count_lanes = !options.stats_path.empty();
  return plan;
}

bool starts_alone(const RunOptions& options, const Module& module) {
  if (options.memory_model == MemoryModel::kPrivate || options.entry) return false;
  if (options.start != StartCores::kAuto) return options.start == StartCores::kFirst;
  return makes_its_threads(module);
}

}  // namespace

int simulate(const RunOptions& options) {
  if (!options.stats_path.empty()) check_stats_path(options.stats_path);
  std::vector<energy::Target> energy_targets;
  if (!options.energy_targets.empty())
    energy_targets = energy::find_targets(options.energy_targets);
  Translator translator(load_program(options.program, {.cpu = options.cpu}));
  const Module& module = translator.module();
  const std::unique_ptr<Backend> backend = make_backend(options.backend);
  const MemoryPlan plan = make_plan(options, module, *backend);

  Kernel::Config kernel_config{.plan = &plan,
                               .module = &module,
                               .translator = &translator,
                               .starts_alone = starts_alone(options, module),
                               .roots = options.roots,
                               .standard_files = {0, 1, 2},
                               .program = options.program,
                               .note = {}};
  if (!options.quiet)
    kernel_config.note = [](const std::string& text) { print_line("gpusim: note: " + text); };
  Kernel kernel(*backend, std::move(kernel_config));
  allow_many_files();

  backend->configure(module, plan.config);
  load_image(*backend, module, plan);
  if (options.entry) {
    start_as_call(*backend, translator, plan, *options.entry, options.call_args);
  } else {
    start_as_process(*backend, translator, plan,
                     {options.program, options.program_args, options.environment},
                     kernel.starts_alone() ? 1 : options.cores);
  }

  const SignalSetup signals;
  RunControl control(translator, *backend, plan, kernel,
                     {.slice = options.slice,
                      .max_instructions = options.max_instructions,
                      .returns_end_cores = options.entry.has_value(),
                      .show_progress = !options.quiet,
                      .program = options.program,
                      .interrupted = &interrupts},
                     print_line);
  const auto start = std::chrono::steady_clock::now();
  RunResult result = control.run();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  kernel.output().flush();

  RunSummary summary{.program = options.program,
                     .isa = module.isa,
                     .backend = backend->name(),
                     .device = backend->device(),
                     .cores = options.cores,
                     .tally = control.tallies().total(module, *backend),
                     .seconds = elapsed.count(),
                     .exit_status = result.exit_status,
                     .stops = result.stops,
                     .per_core = {},
                     .energy_targets = std::move(energy_targets)};
  if (options.per_core)
    for (uint32_t core = 0; core < options.cores; ++core)
      summary.per_core.push_back(control.tallies().of_core(*backend, core));
  if (!options.stats_path.empty() || !summary.energy_targets.empty())
    summary.profile = make_profile(module, profile_places(module, *backend, control.tallies()),
                                   SourceLines(options.program));
  if (!options.stats_path.empty()) summary.lanes = summarise_lanes(module, *backend);
  if (result.was_interrupted) print_line("gpusim: interrupted");
  if (result.was_interrupted || (!options.quiet && isatty(STDERR_FILENO))) print_summary(summary);
  if (!summary.energy_targets.empty()) print_energy(summary);
  if (!options.stats_path.empty()) write_stats(summary, options.stats_path);
  if (!options.isa_coverage_path.empty())
    write_isa_coverage(options.isa_coverage_path, module, *backend, result.stops);
  return result.exit_status;
}

}  // namespace gpusim::host
