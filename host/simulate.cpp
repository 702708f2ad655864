#include "host/simulate.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>

#include "device_sim/base/digits.h"
#include "device_sim/base/error.h"
#include "device_sim/core/backend_traits.h"
#include "device_sim/core/devices.h"
#include "energy/report.h"
#include "host/backend_choice.h"
#include "host/checkpoint/checkpoint.h"
#include "host/console.h"
#include "host/exit_status.h"
#include "host/gdb/server.h"
#include "host/isa_coverage.h"
#include "host/loader.h"
#include "host/races/report.h"
#include "host/run/core_file.h"
#include "host/run/summary_text.h"
#include "host/run/terminal_lines.h"
#include "host/run/watch.h"
#include "host/script.h"
#include "host/simulation.h"
#include "host/start_state.h"
#include "host/stats.h"
#include "host/sysroot.h"
#include "host/uninitialised/report.h"
#include "translator/common/isa_list.h"
#include "translator/elf/shared_object.h"

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

}  // namespace

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

namespace {

// Thousands of private processes may each have files open.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void print_line(const std::string& text) { console::err("{}\n", text); }

void print_summary(const RunSummary& s) {
  print_line(wrapped(summary_text(s), error_columns()));
}

void print_energy(const RunSummary& s) {
  const energy::Activity activity = activity_of(s);
  if (activity.instructions() == 0) return print_line("gpusim: no energy: nothing was executed");
  console::err("{}", energy::report_text(activity, estimates_of(s, activity)));
}

MemoryPlan new_plan(const RunOptions& options, const Module& module, const std::string& backend) {
  return plan_memory(module, {.model = options.memory_model,
                              .cores = options.cores,
                              .first_core = options.part.first_core,
                              .all_cores = options.part.all_cores,
                              .memory_size_bytes = options.memory_size_bytes,
                              .stack_size_bytes = options.stack_size_bytes,
                              .memory_is_real = traits_of(backend).is_on_device});
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

RunIdentity identity_of(const RunOptions& options, Translated translated, const Module& module,
                        const Backend& backend, const MemoryPlan& plan, const Kernel& kernel) {
  RunIdentity run{.program = std::filesystem::absolute(options.program).lexically_normal(),
                  .program_hash = hash_of_file(options.program),
                  .cpu = module.cpu,
                  .backend = backend.name(),
                  .group_width = plan.config.group_width,
                  .starts_alone = kernel.starts_alone(),
                  .returns_end_cores = options.entry.has_value(),
                  .has_core_tallies = traits_of(backend.name()).always_counts_cores ||
                                      plan.config.per_core_tallies,
                  .translated_whole = translated == Translated::kWhole,
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
  throw Error(fmt::format("the guest's output is lost: {}", std::strerror(error)));
}

// Static programs find the files of this machine, unless told otherwise.
std::string sysroot_of(const RunOptions& options, const Module& module) {
  if (!options.sysroot && !module.is_dynamic()) return {};
  return sysroot_for(*find_isa(module.isa), options.sysroot);
}

// What a program that the guest executes is run with. What is gathered and written for the user is
// of the first program alone.
Kernel::Config::Successor successor_of(const RunOptions& o, const std::string& backend) {
  Kernel::Config::Successor successor{.words = {"gpusim", "run", "--backend", backend}};
  const auto add = [&](const char* option, const auto& value) {
    successor.words.insert(successor.words.end(), {option, fmt::format("{}", value)});
  };
  const auto add_unless = [&](auto usual, const char* option, const auto& value) {
    if (value != usual) add(option, value);
  };
  add_unless(1u, "--cores", o.cores);
  add_unless(0u, "--threads", o.threads);
  add_unless(64u, "--group-width", o.group_width);
  add_unless(MachineConfig{}.native_after, "--native-after", o.native_after);
  add_unless(uint64_t{0}, "--slice", o.slice);
  add_unless(uint64_t{0}, "--seed", o.seed);
  add_unless(uint64_t{0}, "--max-instructions", o.max_instructions);
  add_unless(uint64_t{0}, "--memory-size", o.memory_size_bytes);
  add_unless(uint64_t{0}, "--stack-size", o.stack_size_bytes);
  add_unless(uint64_t{0}, "--host-memory", o.host_memory_bytes);
  add_unless(std::string(), "--cpu", o.cpu);
  if (!o.regroup) successor.words.emplace_back("--no-regroup");
  if (!o.native) successor.words.emplace_back("--no-native");
  if (o.quiet) successor.words.emplace_back("--quiet");
  for (const AllowedRoot& root : o.roots)
    add("--root", std::filesystem::absolute(root.folder).lexically_normal().string() +
                      (root.writable ? "" : ":ro"));
  if (o.sysroot) add("--sysroot", *o.sysroot);
  add_unless(uint32_t{0}, "--cpus", o.cpus);
  if (o.network != Network::kNone)
    add("--network", o.network == Network::kHost ? "host" : "loopback");
  successor.stands_in = o.wants_stats() || !o.isa_coverage_path.empty() || !o.caches_path.empty() ||
                        o.check_races || o.check_uninitialised || !o.trace.empty() ||
                        !o.chip.empty() || !o.plugins.empty() || !o.own_plugins.empty() ||
                        !o.energy_targets.empty() || !o.profile.empty() ||
                        !o.timeline_path.empty() || !o.power_path.empty();
  return successor;
}

TranslateOptions translation_of(const RunOptions& options, TranslateOptions translation) {
  translation.interpreter = [wish = options.sysroot](const GuestIsa& isa, const std::string& path) {
    return find_interpreter(isa, wish, path);
  };
  return translation;
}

// Of thousands of cores each stops wherever code is new: that takes longer than to translate it all.
// A debugger's breakpoints change only what was translated.
Translated translated_for(const RunOptions& options, const std::string& backend) {
  constexpr uint32_t kMostCoresOnDemand = 4096;
  const uint32_t cores = options.part.of != 0 ? options.part.all_cores : options.cores;
  const bool is_whole = (cores > kMostCoresOnDemand && options.gdb_address.empty()) ||
                        traits_of(backend).is_on_device;
  return is_whole ? Translated::kWhole : Translated::kOnDemand;
}

std::unique_ptr<gdb::Server> gdb_server(const RunOptions& options) {
  if (options.gdb_address.empty()) return nullptr;
  return std::make_unique<gdb::Server>(
      gdb::Server::Options{.address = options.gdb_address,
                           .program = options.program,
                           .line = print_line,
                           .interrupted = &stop_signal});
}

// Of `auto`, a debugger takes what it can stop anywhere, a check of races what tells in which order
// fences came, and a dynamic program what may translate code that comes late.
BackendChoice backend_for(const RunOptions& options) {
  if (options.check_uninitialised) {
    if (options.backend != "auto" && options.backend != "scalar")
      throw Error(fmt::format("--check uninitialised does not work on backend {}: use scalar",
                              options.backend));
    return {.backend = "scalar", .devices = {}};
  }
  BackendChoice choice = choose_backend({.backend = options.backend,
                                         .devices = options.devices,
                                         .memory_model = options.memory_model,
                                         .cores = options.cores});
  if (!traits_of(choice.backend).is_on_device) return choice;
  const bool is_dynamic = names_interpreter(options.program);
  if (!is_dynamic && options.gdb_address.empty() && !options.check_races) return choice;
  if (options.backend != "auto" && is_dynamic)
    throw Error(
        fmt::format("{}: a dynamically linked program does not work on backend {}: use simd or "
                    "scalar, or link it with -static",
                    options.program, choice.backend));
  if (options.backend != "auto")
    throw Error(fmt::format("{} does not work on backend {}: use simd or scalar",
                            options.check_races ? "--check races" : "--gdb", choice.backend));
  return choose_backend({.backend = "simd",
                         .devices = {},
                         .memory_model = options.memory_model,
                         .cores = options.cores});
}

}  // namespace

Simulation::Simulation(const RunOptions& options, Embedding embedding,
                       std::optional<Translated> translated)
    : options_(with_interpreter(options)),
      embedding_(std::move(embedding)),
      stats_file_(file_for("--stats", options_.stats_path)),
      coverage_file_(file_for("--isa-coverage", options_.isa_coverage_path)),
      core_file_(file_for("--core-file", options_.core_path)),
      energy_targets_(options_.energy_targets.empty()
                          ? std::vector<energy::Target>()
                          : energy::find_targets(options_.energy_targets)),
      observers_(options_, energy_targets_),
      gdb_(gdb_server(options_)),
      choice_(backend_for(options_)),
      translated_(translated ? *translated : translated_for(options_, choice_.backend)),
      translator_(open_program(
          options_.program,
          translation_of(options_, observers_.translation(choice_.backend)), translated_)) {
  if (!embedding_.line) embedding_.line = print_line;
  if (core_file_ && !core_file_->is_plain())
    throw Error(fmt::format("--core-file {}: it has to be a plain file", options_.core_path));
  if (embedding_.owns_process) embedding_.interrupted = &stop_signal;
}

Simulation::~Simulation() = default;

void Simulation::make_backend() {
  if (!options_.quiet && !choice_.note.empty()) embedding_.line("gpusim: note: " + choice_.note);
  if (options_.check_uninitialised)
    backend_ = std::make_unique<uninitialised::CheckedMachine>();
  else
    backend_ = make_backend_on(choice_.backend, choice_.devices);
  compile_regions(*backend_, options_.compiled_regions);
  const bool wants_regions = options_.compiled_regions == CompiledRegions::kOn ||
                             options_.compiled_regions == CompiledRegions::kWait;
  if (wants_regions && !options_.quiet && dynamic_cast<CompilesRegions*>(backend_.get()) == nullptr)
    embedding_.line(fmt::format("gpusim: note: --compiled-regions is for backend cuda; backend {} "
                                "goes on without",
                                backend_->name()));
}

void Simulation::make_machine(const MemoryPlan& plan, bool starts_alone) {
  plan_ = plan;
  complete_plan(plan_, options_, observers_);
  plan_.config.starts_alone = starts_alone;
  budget_ = memory_budget(options_.host_memory_bytes);
  judge_needs(known_needs(module(), shape_of(options_, plan_, *backend_)), budget_,
              plan_.config.cores);
  memory_watch_.emplace(budget_, memory_of(*backend_), embedding_.owns_process);

  Kernel::Config config{.plan = &plan_,
                        .module = &module(),
                        .translator = &translator_,
                        .starts_alone = starts_alone,
                        .shares_cores = !observers_.take_cores_for_threads(),
                        .has_late_code = !traits_of(backend_->name()).is_on_device,
                        .roots = options_.roots,
                        .sysroot = sysroot_of(options_, module()),
                        .network = options_.network,
                        .cpus = options_.cpus,
                        .standard_files = embedding_.standard_files,
                        .program = options_.program,
                        .note = {}};
  if (!options_.quiet)
    config.note = [this](const std::string& text) { embedding_.line("gpusim: note: " + text); };
  config.on_thread = [this](uint32_t child, uint32_t parent) {
    observers_.thread_started(child, parent);
  };
  config.on_wake = [this](uint32_t core, uint32_t by) { observers_.thread_woken(core, by); };
  config.on_time_out = [this](uint32_t core) { observers_.wait_timed_out(core); };
  config.on_thread_end = [this](uint32_t core, uint64_t word) {
    observers_.thread_left(core, word);
  };
  if (options_.check_races || options_.check_uninitialised) {
    config.on_call = [this](uint32_t core, const char* name) {
      observers_.call_was_made(core, name);
    };
  }
  if (observers_.wants_handlers()) {
    config.on_handler = [this](uint32_t core, uint64_t pc, uint64_t handler) {
      observers_.handler_begins(core, pc, handler);
    };
    config.on_handler_end = [this](uint32_t core) { observers_.handler_ends(core); };
  }
  const bool has_family = embedding_.owns_process && options_.gdb_address.empty() &&
                          options_.checkpoint_path.empty() && options_.resume_path.empty();
  if (has_family) {
    config.successor = [this] { return successor_of(options_, backend_->name()); };
    config.on_fork = [this] { control_->became_child(); };
  }
  kernel_.emplace(*backend_, std::move(config));
  if (const char* const text = has_family ? std::getenv("GPUSIM_PROCESS") : nullptr) {
    kernel_->take_over(text);
    ::unsetenv("GPUSIM_PROCESS");
  }
  if (embedding_.owns_process) allow_many_files();
  backend_->configure(module(), plan_.config);
}

// GCC's threads spin and sleep in futexes: teams of many are slow, and one of tasks may not end.
void note_other_openmp(const Module& module) {
  if (find_symbol(module, "gomp_team_start"))
    print_line(
        "gpusim: note: this program has GCC's run-time of OpenMP, which is made for few threads; "
        "link it with gpusim-cc -fopenmp, or with -B and the folder of libgpusim_omp.a");
}

void Simulation::load_and_start() {
  if (!options_.quiet && kernel_->starts_alone() && options_.cores > 1) note_other_openmp(module());
  load_image(*backend_, module(), plan_);
  if (options_.entry)
    return start_as_call(*backend_, translator_, plan_, *options_.entry, options_.call_args);
  auxiliary_vector_ = start_as_process(
      *backend_, translator_, plan_,
      {options_.program, options_.program_args, options_.environment, options_.argv0},
      kernel_->starts_alone() ? 1 : options_.cores);
}

// What cannot be written is no reason to lose the rest.
void Simulation::write_core(const Death& death) {
  CoreFileContents contents{.kernel = *kernel_,
                            .core = death.core,
                            .others = {},
                            .pc_of = death.pc_of,
                            .signal = death.signal,
                            .auxiliary_vector = auxiliary_vector_,
                            .arguments = options_.program};
  for (uint32_t core = 0; !kernel_->is_private() && core < kernel_->thread_numbers(); ++core)
    if (core != death.core && kernel_->is_alive(core)) contents.others.push_back(core);
  for (const std::string& word : options_.program_args) contents.arguments += " " + word;
  try {
    write_core_file(*core_file_, contents);
    if (!options_.quiet)
      embedding_.line(fmt::format("gpusim: note: core-file: gdb-multiarch {} {}", options_.program,
                                  options_.core_path));
  } catch (const std::exception& error) {
    embedding_.line(fmt::format("gpusim: error: {}", error.what()));
  }
}

void Simulation::make_control(bool returns_end_cores) {
  if (embedding_.owns_process) signals_ = std::make_unique<SignalSetup>();
  control_.emplace(
      translator_, *backend_, plan_, *kernel_,
      RunControlOptions{.slice = options_.slice,
                        .max_instructions = options_.max_instructions,
                        .returns_end_cores = returns_end_cores,
                        .show_progress = embedding_.owns_process && !options_.quiet && !gdb_,
                        .program = options_.program,
                        .observer = &observers_,
                        .memory = &*memory_watch_,
                        .interrupted = embedding_.interrupted,
                        .on_death = core_file_ ? [this](const Death& d) { write_core(d); }
                                               : std::function<void(const Death&)>()},
      embedding_.line);
  observers_.start(module(), *backend_, plan_.config, *control_, *kernel_);
}

void Simulation::debug() {
  gdb::MonitorSources sources{.translator = translator_,
                              .backend = *backend_,
                              .plan = plan_,
                              .kernel = *kernel_,
                              .control = *control_,
                              .cycles = {}};
  if (observers_.has_time())
    sources.cycles = [this](uint32_t core) { return observers_.cycles(core); };
  gdb_->run(sources);
}

int Simulation::execute(std::optional<Checkpointer>& checkpointer, double seconds_before) {
  const auto start = std::chrono::steady_clock::now();
  try {
    if (gdb_) {
      debug();
    } else {
      while (control_->step() && !(checkpointer && checkpointer->after_step()))
        if (watch_ && !kernel_->is_child() && watch_->is_due()) show_to_watch();
    }
  } catch (const std::exception& error) {
    if (!kernel_->is_child()) throw;
    print_line(fmt::format("gpusim: error: {}", error.what()));
    kernel_->end_in_family(kExitUserError);
    ::_exit(kExitUserError);
  }
  if (kernel_->is_child()) end_child();
  RunResult result = finish();
  kernel_->end_in_family(result.exit_status);
  if (gdb_) tell_end(result);
  if (checkpointer && checkpointer->has_stopped()) result.exit_status = kExitCheckpoint;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  kernel_->output().flush();
  const int output_error = kernel_->output().take_error();
  report(result, seconds_before + elapsed.count());
  if (watch_) {
    show_to_watch();
    watch_->end(result.exit_status);
  }
  return status_with_output(result.exit_status, output_error);
}

// What other threads of this process would do, the process lacks: nothing is taken down.
void Simulation::end_child() {
  const RunResult result = control_->finish();
  kernel_->end_in_family(result.exit_status);
  ::_exit(result.exit_status);
}

void Simulation::tell_end(RunResult& result) {
  if (gdb_->was_killed()) result.exit_status = 128 + SIGKILL;
  const bool by_signal =
      result.exit_status > 128 && (result.was_interrupted || !result.stops.empty());
  kernel_->output().flush();
  gdb_->tell_end(result.exit_status, by_signal ? result.exit_status - 128 : 0);
}

RunResult Simulation::finish() {
  memory_watch_.reset();
  return control_->finish();
}

RunSummary Simulation::summarise(const RunResult& result, double seconds) {
  RunSummary summary{.program = options_.program,
                     .isa = module().isa,
                     .backend = backend_->name(),
                     .device = backend_->device(),
                     .cores = options_.cores,
                     .tally = control_->tallies().total(module(), *backend_),
                     .seconds = seconds,
                     .exit_status = result.exit_status,
                     .stops = result.stops,
                     .stop_reports = result.reports,
                     .per_core = {},
                     .energy_targets = std::move(energy_targets_)};
  if (options_.per_core)
    for (uint32_t core = 0; core < options_.cores; ++core)
      summary.per_core.push_back(control_->tallies().of_core(*backend_, core));
  if (options_.part.of != 0)
    summary.part = {.number = options_.part.number,
                    .of = options_.part.of,
                    .first_core = options_.part.first_core,
                    .all_cores = options_.part.all_cores,
                    .program_hash = hash_of_file(options_.program)[0],
                    .call = options_.entry ? options_.call_args : options_.program_args,
                    .entry = options_.entry.value_or("")};
  observers_.summarise(summary);
  if (summary.exit_status == 0 && summary.races && !summary.races->races.empty())
    summary.exit_status = kExitFindings;
  if (summary.exit_status == 0 && summary.uninitialised && !summary.uninitialised->findings.empty())
    summary.exit_status = kExitFindings;
  return summary;
}

void Simulation::report(RunResult& result, double seconds) {
  const RunSummary summary = summarise(result, seconds);
  result.exit_status = summary.exit_status;
  if (result.ran_out_of_memory) embedding_.line("gpusim: error: " + why_out_of_memory());
  if (result.was_interrupted)
    print_line(stop_signal == SIGINT
                   ? "gpusim: interrupted"
                   : fmt::format("gpusim: interrupted by SIG{}", ::sigabbrev_np(stop_signal)));
  if (result.was_interrupted || result.ran_out_of_memory || !options_.quiet)
    print_summary(summary);
  if (!options_.quiet) note_idle_cores();
  observers_.print(summary);
  if (!summary.energy_targets.empty()) print_energy(summary);
  write_files(summary, result);
}

void Simulation::show_to_watch() {
  const uint32_t started = kernel_->started();
  watch_->show({.cores = options_.cores,
                .started = started,
                .finished = started - kernel_->alive(),
                .instructions = control_->tallies().total(module(), *backend_).instructions(),
                .most_instructions = options_.max_instructions * started});
}

// Somebody who asked for many cores and got the work of one should hear of it.
void Simulation::note_idle_cores() const {
  if (!kernel_->starts_alone() || options_.cores == 1 || kernel_->started() != 1) return;
  embedding_.line(
      wrapped(fmt::format("gpusim: note: one of {} cores worked, as the program started no "
                          "threads; --start all would start it on each core",
                          grouped(options_.cores)),
              error_columns()));
}

std::string Simulation::why_out_of_memory() const {
  return describe_exhaustion(budget_, translator_.module(), plan_, *backend_);
}

void Simulation::write_files(const RunSummary& summary, const RunResult& result) {
  if (stats_file_) write_stats(summary, *stats_file_);
  observers_.write();
  if (coverage_file_) write_isa_coverage(*coverage_file_, module(), *backend_, result.stops);
}

void Simulation::make_ready() {
  make_backend();
  make_machine(new_plan(options_, module(), backend_->name()), starts_alone(options_, module()));
  load_and_start();
  make_control(options_.entry.has_value());
}

namespace {

int run(const RunOptions& options, std::optional<Checkpointer>& checkpointer, Watch* watch) {
  Simulation s(options);
  s.watch(watch);
  if (checkpointer && s.module().is_dynamic())
    throw Error("--checkpoint: not of a dynamically linked program; link it with -static");
  s.make_ready();
  if (checkpointer)
    checkpointer->start(
        identity_of(s.options(), s.translated(), s.module(), s.backend(), s.plan(), s.kernel()),
        s.translator(), s.backend(), s.kernel(), s.control());
  return s.execute(checkpointer, 0);
}

int resume(const RunOptions& asked_for, std::optional<Checkpointer>& checkpointer,
           Watch* watch) {
  std::optional<ResumedRun> before(std::in_place, asked_for.resume_path);
  Simulation s(before->options(asked_for), {},
               before->identity().translated_whole ? Translated::kWhole : Translated::kOnDemand);
  s.watch(watch);
  before->grow(s.translator());
  s.make_backend();
  s.make_machine(before->identity().plan, before->identity().starts_alone);
  s.make_control(before->identity().returns_end_cores);
  before->restore_machine(s.module(), s.plan(), s.backend());
  before->restore_run(s.kernel(), s.control());
  const double seconds = before->identity().seconds;
  if (checkpointer)
    checkpointer->start(before->identity_now(s.backend(), s.options()), s.translator(), s.backend(),
                        s.kernel(), s.control());
  before.reset();  // its file may be replaced by the next one
  return s.execute(checkpointer, seconds);
}

}  // namespace

int simulate(const RunOptions& options) { return simulate(options, nullptr); }

int simulate(const RunOptions& options, Watch* watch) {
  // SIGUSR1 asks for a checkpoint from here on.
  std::optional<Checkpointer> checkpointer = make_checkpointer(options);
  return options.resume_path.empty() ? run(options, checkpointer, watch)
                                     : resume(options, checkpointer, watch);
}

}  // namespace gpusim::host
