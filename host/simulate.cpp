#include "host/simulate.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "energy/report.h"
#include "host/caches/report.h"
#include "host/checkpoint/checkpoint.h"
#include "host/error.h"
#include "host/isa_coverage.h"
#include "host/journal/journals.h"
#include "host/linux/kernel.h"
#include "host/loader.h"
#include "host/memory_plan.h"
#include "host/output_file.h"
#include "host/plugin/plugin_host.h"
#include "host/run/profile_report.h"
#include "host/run/run_control.h"
#include "host/run/timeline_power.h"
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

void place_profile(ProfilePlaces& places, const CodeMap& code, const CacheReport& report) {
  for (auto& [pc, use] : places) {
    const uint64_t unit = (pc - code.text_base) >> code.pc_shift;
    place_memory(use.classes, unit < report.off_chip_at.size() ? report.off_chip_at[unit] : 0);
  }
}

MemoryPlan new_plan(const RunOptions& options, const Module& module, const std::string& backend) {
  return plan_memory(module, {.model = options.memory_model,
                              .cores = options.cores,
                              .memory_size_bytes = options.memory_size_bytes,
                              .stack_size_bytes = options.stack_size_bytes,
                              .memory_is_real = backend == "cuda"});
}

// The plan says where memory lies, the options how the machine works.
void complete_plan(MemoryPlan& plan, const RunOptions& options, const PluginHost& plugins,
                   bool has_journal) {
  plan.config.threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  plan.config.group_width = options.group_width;
  plan.config.native_after = options.native ? options.native_after : MachineConfig::kNeverNative;
  plan.config.max_instructions = options.max_instructions;
  plan.config.seed = options.seed;
  plan.config.regroup = options.regroup;
  const bool has_timeline = !options.timeline_path.empty() || !options.power_path.empty();
  plan.config.per_core_tallies = options.per_core || has_timeline || options.simulated_time;
  plan.config.count_lanes = !options.stats_path.empty() || !options.profile.empty() || has_timeline ||
                            plugins.wants_lanes() || !options.checkpoint_path.empty();
  if (has_journal) plan.config.journal_words = Journals::words_for(options.cores);
}

RunSummary::Time time_of(const SimulatedTime& time, const Tallies& tallies, Backend& backend,
                         uint32_t cores) {
  RunSummary::Time t{time.table().name, energy::Hertz(time.table().clock_hz), {}, {}};
  for (uint32_t core = 0; core < cores; ++core) {
    t.cycles.push_back(time.now(core, tallies.of_core(backend, core)));
    t.waited.push_back(time.waited(core));
  }
  return t;
}

void print_time(const RunSummary::Time& t) {
  print_line(fmt::format("simulated time: {:.0f} cycles, {} ({})", t.most_cycles(),
                         energy::pretty(energy::Seconds(t.seconds())), t.timing));
}

bool starts_alone(const RunOptions& options, const Module& module) {
  if (options.memory_model == MemoryModel::kPrivate || options.entry) return false;
  if (options.start != StartCores::kAuto) return options.start == StartCores::kFirst;
  return makes_its_threads(module);
}

// --profile, --timeline and --power-trace: what is wrong with them is found out before the run.
class Observations {
 public:
  Observations(const RunOptions& options, const std::vector<energy::Target>& targets)
      : options_(options) {
    if (wants_profile() && options.profile != "-") files_ = parse_profile_files(options.profile);
    if (!options.timeline_path.empty()) check_output_file("--timeline", options.timeline_path);
    if (!options.power_path.empty()) check_power_path(options.power_path);
    if (!options.timing_target.empty()) {
      const std::vector<energy::Target> found = energy::find_targets(options.timing_target);
      if (found.size() != 1) throw UserError("--timing: expected one target");
      table_ = CycleTable(found.front(), "--timing " + options.timing_target);
      placed_table_ = CycleTable(found.front(), "--timing", !options.caches_path.empty());
    }
    if (!wants_recorder()) return;
    std::vector<CycleTable> bases{table_};
    for (const energy::Target& target : targets) {
      if (!target.timing) {
        if (!options.power_path.empty() && targets.size() == 1) CycleTable(target, "--power-trace");
        continue;  // one of many
      }
      bases.emplace_back(target, "--power-trace");
      timed_.push_back(&target);
    }
    if (!options.power_path.empty() && timed_.empty()) CycleTable(targets.front(), "--power-trace");
    if (options.timing_target.empty() && !timed_.empty()) bases.front() = bases[1];
    recorder_.emplace(options.cores, options.group_width, std::move(bases));
  }

  bool wants_profile() const { return !options_.profile.empty(); }
  bool wants_recorder() const {
    return !options_.timeline_path.empty() || !options_.power_path.empty();
  }
  const CycleTable& table() const { return table_; }
  void after_slice(const Module& module, Backend& backend, const RunControl& control) {
    recorder_->after_slice(module, backend, control.tallies(),
                           [&](uint32_t core) { return control.is_alive(core); });
  }
  // After the run. `caches`: what they say, if there are any.
  std::vector<energy::ActivitySlice> finish(const Module& module, Backend& backend,
                                            const RunControl& control, const CacheReport* caches) {
    std::vector<energy::ActivitySlice> slices;
    if (!wants_recorder()) return slices;
    recorder_->finish(module, backend, control.tallies(),
                      [&](uint32_t core) { return control.is_alive(core); });
    memory_is_placed_ = caches != nullptr;
    if (caches) recorder_->place_memory(caches->off_chip());
    for (const TimeSlice& slice : recorder_->slices()) {
      // Instructions that take no time on this target go with those before.
      if (slice.seconds[0] > 0 || slices.empty()) slices.push_back({slice.seconds[0], {}});
      for (size_t c = 0; c < slice.classes.size(); ++c)
        slices.back().classes[c] += slice.classes[c];
    }
    if (!slices.empty() && slices.front().seconds <= 0) slices.clear();
    return slices;
  }
  void write(const Module& module, Backend& backend, const ProfilePlaces& places) {
    if (wants_profile()) write_profile_of(module, backend, places);
    if (!wants_recorder()) return;
    std::vector<PowerTrace> traces;
    for (size_t i = 0; i < timed_.size(); ++i)
      traces.push_back(power_trace(*timed_[i], *recorder_, i + 1, memory_is_placed_));
    if (!options_.power_path.empty()) write_power(options_.power_path, traces, options_.program);
    if (options_.timeline_path.empty()) return;
    std::vector<PowerTrack> tracks;
    for (const PowerTrace& trace : traces) tracks.push_back(power_track(trace));
    write_output_file("--timeline", options_.timeline_path,
                      timeline_json(*recorder_, options_.program, tracks));
  }

 private:
  void write_profile_of(const Module& module, Backend& backend, const ProfilePlaces& places) {
    const ProfileReport report = make_profile_report(
        module, places, InlineFrames(options_.program),
        {.program = options_.program,
         .backend = backend.name(),
         .cores = options_.cores,
         .table = placed_table_,
         .lanes = summarise_lanes(module, backend)});
    if (options_.profile == "-")
      fmt::print(stderr, "{}", profile_text(report));
    else
      write_profile(files_, report);
  }

  const RunOptions& options_;
  CycleTable table_, placed_table_;  // for tallies as they are counted, and as caches place them
  bool memory_is_placed_ = false;
  ProfileFiles files_;
  std::vector<const energy::Target*> timed_;  // the recorder's bases from 1 on
  std::optional<ActivityRecorder> recorder_;
};

std::optional<Checkpointer> make_checkpointer(const RunOptions& options) {
  if (options.checkpoint_path.empty()) return std::nullopt;
  check_output_file("--checkpoint", options.checkpoint_path);
  if (std::filesystem::exists(options.checkpoint_path) &&
      !std::filesystem::is_regular_file(options.checkpoint_path))
    throw UserError(fmt::format("--checkpoint {}: not a file", options.checkpoint_path));
  return std::optional<Checkpointer>(std::in_place,
                                     Checkpointer::Options{.path = options.checkpoint_path,
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

}  // namespace

int simulate(const RunOptions& asked_for) {
  // SIGUSR1 asks for a checkpoint from here on.
  std::optional<Checkpointer> checkpointer = make_checkpointer(asked_for);
  std::unique_ptr<ResumedRun> resumed;
  if (!asked_for.resume_path.empty()) resumed = std::make_unique<ResumedRun>(asked_for.resume_path);
  const RunOptions options = resumed ? resumed->options(asked_for) : asked_for;
  if (!options.stats_path.empty()) check_stats_path(options.stats_path);
  std::vector<energy::Target> energy_targets;
  if (!options.energy_targets.empty())
    energy_targets = energy::find_targets(options.energy_targets);
  Observations observations(options, energy_targets);
  std::optional<HierarchyShape> cache_shape;
  if (!options.caches_path.empty()) cache_shape = load_hierarchy(options.caches_path);
  PluginHost plugins(options.plugins);
  const bool has_journal = cache_shape || plugins.wants_journal();
  const TranslateOptions translation{.journal = has_journal,
                                     .simulated_time = options.simulated_time,
                                     .cpu = options.cpu};
  Translator translator(load_program(options.program, translation), translation);
  if (resumed) resumed->grow(translator);
  const Module& module = translator.module();
  const std::unique_ptr<Backend> backend = make_backend(options.backend);
  MemoryPlan plan =
      resumed ? resumed->identity().plan : new_plan(options, module, backend->name());
  complete_plan(plan, options, plugins, has_journal);

  Kernel::Config kernel_config{.plan = &plan,
                               .module = &module,
                               .translator = &translator,
                               .starts_alone = resumed ? resumed->identity().starts_alone
                                                       : starts_alone(options, module),
                               .roots = options.roots,
                               .standard_files = {0, 1, 2},
                               .program = options.program,
                               .note = {}};
  if (!options.quiet)
    kernel_config.note = [](const std::string& text) { print_line("gpusim: note: " + text); };
  std::optional<Journals> journals;
  std::optional<CacheHierarchy> caches;
  std::optional<SimulatedTime> time;
  if (options.simulated_time) time.emplace(observations.table(), options.cores);
  const Tallies* tallies = nullptr;  // of the run
  kernel_config.on_thread = [&](uint32_t child, uint32_t parent) {
    if (journals) journals->started(child, parent);
    if (time)
      time->start(child, tallies->of_core(*backend, child), parent,
                  tallies->of_core(*backend, parent));
  };
  Kernel kernel(*backend, std::move(kernel_config));
  allow_many_files();

  backend->configure(module, plan.config);
  if (has_journal) journals.emplace(module, *backend, plan.config);
  if (cache_shape) journals->add(caches.emplace(*cache_shape, module, plan.config));
  if (plugins.wants_journal()) journals->add(plugins);
  plugins.start(options.program, module, *backend, plan.config);
  if (resumed) {
    // Restored below.
  } else if (load_image(*backend, module, plan); options.entry) {
    start_as_call(*backend, translator, plan, *options.entry, options.call_args);
  } else {
    start_as_process(*backend, translator, plan,
                     {options.program, options.program_args, options.environment},
                     kernel.starts_alone() ? 1 : options.cores);
  }

  const SignalSetup signals;
  const RunControl* running = nullptr;
  std::function<void()> after_slice;
  if (observations.wants_recorder())
    after_slice = [&] { observations.after_slice(module, *backend, *running); };
  RunControl control(translator, *backend, plan, kernel,
                     {.slice = options.slice,
                      .max_instructions = options.max_instructions,
                      .returns_end_cores = resumed ? resumed->identity().returns_end_cores
                                                   : options.entry.has_value(),
                      .show_progress = !options.quiet,
                      .program = options.program,
                      .after_slice = std::move(after_slice),
                      .before_slice = [&] { plugins.announce_blocks(); },
                      .journals = journals ? &*journals : nullptr,
                      .time = time ? &*time : nullptr,
                      .on_end =
                          [&](uint32_t core) {
                            if (caches) caches->ended(core);
                          },
                      .interrupted = &interrupts},
                     print_line);
  tallies = &control.tallies();
  running = &control;
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
  RunResult result = control.finish();
  if (checkpointer && checkpointer->has_stopped()) result.exit_status = kExitCheckpoint;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  kernel.output().flush();
  plugins.end();

  RunSummary summary{.program = options.program,
                     .isa = module.isa,
                     .backend = backend->name(),
                     .device = backend->device(),
                     .cores = options.cores,
                     .tally = control.tallies().total(module, *backend),
                     .seconds = seconds_before + elapsed.count(),
                     .exit_status = result.exit_status,
                     .stops = result.stops,
                     .per_core = {},
                     .energy_targets = std::move(energy_targets)};
  if (options.per_core)
    for (uint32_t core = 0; core < options.cores; ++core)
      summary.per_core.push_back(control.tallies().of_core(*backend, core));
  if (caches) {
    summary.caches = RunSummary::Caches{caches->shape(), caches->report()};
    const CacheReport& report = summary.caches->report;
    place_memory(summary.tally.classes, report.off_chip());
    for (size_t core = 0; core < summary.per_core.size(); ++core)
      place_memory(summary.per_core[core], report.off_chip_of[core]);
  }
  if (time) summary.simulated_time = time_of(*time, control.tallies(), *backend, options.cores);
  ProfilePlaces places;
  const bool has_parts = !options.stats_path.empty() || !summary.energy_targets.empty();
  if (has_parts || observations.wants_profile())
    places = profile_places(module, *backend, control.tallies());
  if (caches) place_profile(places, module.code, summary.caches->report);
  if (has_parts) summary.profile = make_profile(module, places, SourceLines(options.program));
  if (!options.stats_path.empty()) summary.lanes = summarise_lanes(module, *backend);
  summary.slices = observations.finish(module, *backend, control,
                                       caches ? &summary.caches->report : nullptr);
  if (result.was_interrupted) print_line("gpusim: interrupted");
  if (result.was_interrupted || (!options.quiet && isatty(STDERR_FILENO))) print_summary(summary);
  if (caches) fmt::print(stderr, "{}", caches_text(summary.caches->shape, summary.caches->report));
  if (time) print_time(*summary.simulated_time);
  if (!summary.energy_targets.empty()) print_energy(summary);
  if (!options.stats_path.empty()) write_stats(summary, options.stats_path);
  observations.write(module, *backend, places);
  if (!options.isa_coverage_path.empty())
    write_isa_coverage(options.isa_coverage_path, module, *backend, result.stops);
  return result.exit_status;
}

}  // namespace gpusim::host
