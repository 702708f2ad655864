#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <tuple>

#include "device_sim/base/error.h"
#include "host/backend_choice.h"
#include "host/cli/commands.h"
#include "host/cli/run_config.h"
#include "host/cli/strict_values.h"
#include "host/console.h"
#include "host/launch.h"
#include "host/ptx/run_kernels.h"
#include "host/run/watch.h"
#include "host/simulate.h"

namespace gpusim::host {
namespace {

// As the command line gives them, before they are understood.
struct RawRunOptions {
  RunOptions run;
  std::string part;  // K/N or auto
  std::string memory = "shared", start = "auto", network = "none", entry, memory_size, stack_size,
      host_memory, check, time;
  std::vector<std::string> roots;
  std::string grid, block, cluster, shared;  // of a kernel (PTX)
  std::string config_path, watch, call_stacks = "auto", compiled_regions;
};

constexpr const char* kOfKernels[] = {"--grid", "--block", "--cluster", "--shared"};

// PROGRAM is PTX text: its kernel runs as a grid of blocks.
int launch_kernel(const CLI::App& command, const RawRunOptions& raw) {
  for (const CLI::Option* option : command.get_options()) {
    static constexpr std::string_view kKnown[] = {
        "PROGRAM",   "--entry", "--arg",   "--backend", "--threads", "--stats",
        "--quiet",   "--grid",  "--block", "--shared",  "--help",    "--config",
        "--check",   "--profile", "--cluster", "--caches", "--stack-size", "--device"};
    const std::string name = option->get_single_name();
    const bool is_known =
        std::any_of(std::begin(kKnown), std::end(kKnown), [&](std::string_view known) {
          return known == name || known == "--" + name;
        });
    if (!is_known && option->count() != 0)
      throw Error(fmt::format("--{} is not for kernels (PTX)", name));
  }
  ptx::KernelRunOptions run;
  run.path = raw.run.program;
  run.entry = raw.entry;
  run.grid = ptx::parse_dimensions("--grid", raw.grid.empty() ? "1" : raw.grid);
  run.block = ptx::parse_dimensions("--block", raw.block.empty() ? "1" : raw.block);
  if (!raw.cluster.empty()) run.cluster = ptx::parse_dimensions("--cluster", raw.cluster);
  if (!raw.shared.empty()) {
    const uint64_t bytes = parse_size("--shared", raw.shared);
    if (bytes > uint64_t{1} << 30) throw Error("--shared: more than 1 GiB");
    run.dynamic_shared_bytes = static_cast<uint32_t>(bytes);
  }
  if (!raw.stack_size.empty()) run.stack_bytes = parse_size("--stack-size", raw.stack_size);
  run.arguments = raw.run.call_args;
  run.engine = {.backend = raw.run.backend, .threads = raw.run.threads};
  if (!raw.run.devices.empty()) {
    // Their threads share memory, which is the host's.
    const BackendChoice choice = choose_backend({.backend = raw.run.backend,
                                                 .devices = raw.run.devices,
                                                 .memory_model = MemoryModel::kPrivate});
    run.engine.backend = choice.backend;
    run.engine.devices = choice.devices;
  }
  if (!raw.check.empty()) run.engine.checks = ptx::parse_checks("--check", raw.check);
  run.profile = raw.run.profile == "true" ? "-" : raw.run.profile;
  run.stats_path = raw.run.stats_path;
  run.quiet = raw.run.quiet;
  if (!raw.run.caches_path.empty()) {
    if (run.profile.empty() && run.stats_path.empty())
      throw Error("--caches of kernels needs --profile or --stats, which tell of them");
    run.engine.caches = load_hierarchy(raw.run.caches_path);
  }
  return ptx::run_kernels(run);
}

// "true": the flag has no value.
uint16_t watch_port(const std::string& text) {
  if (text == "true") return 0;
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(
        fmt::format("--watch={}: expected a port from 1 to 65535, or 0 for a free one", text));
  return port;
}

AllowedRoot parse_root(const std::string& text) {
  if (text.ends_with(":ro")) return {text.substr(0, text.size() - 3), false};
  return {text, true};
}

// What a checkpoint says already.
void check_resume(const CLI::App& command, const std::vector<std::string>& guest_args) {
  for (const char* fixed : {"--cores", "--memory", "--start", "--entry", "--arg", "--cpu", "--seed",
                            "--memory-size", "--stack-size", "--env", "--argv0"})
    if (command.get_option(fixed)->count() != 0)
      throw Error(fmt::format("--resume goes on with what the run had: no {}", fixed));
  if (!guest_args.empty())
    throw Error("--resume goes on with what the run had: no arguments after --");
}

// --part K/N, or auto.
void understand_part(const CLI::App& command, const std::string& text, RunOptions& run) {
  if (run.memory_model != MemoryModel::kPrivate)
    throw Error("--part shares out cores that have nothing in common: only with --memory private");
  for (const char* other : {"--caches", "--chip", "--checkpoint", "--core-file", "--devices",
                            "--energy", "--gdb", "--plugin", "--power-trace", "--profile",
                            "--resume", "--simulated-time", "--timeline", "--trace"})
    if (command.get_option(other)->count() != 0)
      throw Error(
          fmt::format("{} looks at a whole machine: not with --part. What `gpusim merge` makes of "
                      "the parts' statistics is for `gpusim energy estimate`, too",
                      other));
  RunOptions::Part& part = run.part;
  if (text == "auto") {
    std::tie(part.number, part.of) = part_of(this_launch());
  } else {
    const size_t slash = std::min(text.find('/'), text.size());
    const auto number = [&](size_t from, size_t to) {
      uint32_t value = 0;
      const char* const end = text.data() + to;
      const auto [stop, error] = std::from_chars(text.data() + std::min(from, to), end, value);
      return error == std::errc{} && stop == end ? value : 0;
    };
    part.number = number(0, slash);
    part.of = number(slash + 1, text.size());
    if (part.number == 0 || part.number > part.of)
      throw Error(
          fmt::format("--part {}: expected K/N, the K-th of N parts, such as 1/16, or auto", text));
  }
  if (part.of > run.cores)
    throw Error(fmt::format("--part {}/{}: {} cores have no {} parts", part.number, part.of,
                            run.cores, part.of));
  // Cores that would be in lockstep together stay together.
  constexpr uint64_t kGroup = 64;
  part.all_cores = run.cores;
  const auto begin = [&](uint64_t k) {
    const uint64_t core = k * part.all_cores / part.of;
    if (k == part.of || part.all_cores < kGroup * part.of) return static_cast<uint32_t>(core);
    return static_cast<uint32_t>(core / kGroup * kGroup);
  };
  part.first_core = begin(part.number - 1);
  run.cores = begin(part.number) - part.first_core;
  const std::string name = fmt::format("{}-of-{}", part.number, part.of);
  if (const size_t at = run.stats_path.find("{part}"); at != std::string::npos)
    run.stats_path.replace(at, 6, name);
  else if (text == "auto" && !run.stats_path.empty())
    throw Error(
        fmt::format("--stats {}: each part needs a file of its own: write {{part}} where the name "
                    "is to have {}",
                    run.stats_path, name));
}

// --simulated-time, or --simulated-time=locks.
void understand_time(const std::string& text, RunOptions& run) {
  run.simulated_time = !text.empty();
  run.locks_in_time = text == "locks";
  if (run.simulated_time && !run.locks_in_time && text != "true")
    throw Error(fmt::format("--simulated-time={}: expected --simulated-time, or "
                            "--simulated-time=locks",
                            text));
}

// Of programs; of kernels see ptx::parse_checks.
void understand_checks(const std::string& text, RunOptions& run) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word == "races")
      run.check_races = true;
    else if (word == "uninitialised")
      run.check_uninitialised = true;
    else
      throw Error(fmt::format(
          "--check {}: of programs, races and uninitialised values are checked: races, "
          "uninitialised, or both with a comma between",
          text));
    at = end + 1;
  }
}

RunOptions understand(const CLI::App& command, RawRunOptions raw,
                      const std::vector<std::string>& guest_args) {
  RunOptions run = std::move(raw.run);
  if (!run.resume_path.empty()) {
    check_resume(command, guest_args);
    if (command.get_option("--group-width")->count() == 0) run.group_width = 0;  // as it was
  } else if (run.program.empty()) {
    throw Error("PROGRAM is required (gpusim --help tells more)");
  }
  understand_checks(raw.check, run);
  understand_time(raw.time, run);
  if (!run.checkpoint_path.empty() || !run.resume_path.empty())
    for (const char* other :
         {"--caches", "--check", "--chip", "--plugin", "--trace", "--timeline", "--power-trace",
          "--simulated-time"})
      if (command.get_option(other)->count() != 0)
        throw Error(
            fmt::format("{} sees a run from its beginning to its end: not with "
                        "--checkpoint or --resume",
                        other));
  if (!run.gdb_address.empty() && !run.core_path.empty())
    throw Error("--core-file is not for --gdb, which stops where a core dies: not both");
  if (!run.gdb_address.empty() && run.locks_in_time)
    throw Error(
        "--gdb steps cores where --simulated-time=locks does not see it: without \"=locks\"");
  if (!run.gdb_address.empty())
    for (const char* other :
         {"--caches", "--check", "--chip", "--plugin", "--trace", "--checkpoint"})
      if (command.get_option(other)->count() != 0)
        throw Error(fmt::format("--gdb steps cores where {} does not see it: not both", other));
  if (!raw.compiled_regions.empty())
    run.compiled_regions = compiled_regions_of(raw.compiled_regions).value();
  run.follow_calls = raw.call_stacks == "on"    ? FollowCalls::kOn
                     : raw.call_stacks == "off" ? FollowCalls::kOff
                                                : FollowCalls::kAuto;
  if (run.follow_calls == FollowCalls::kOn) {
    if (run.profile.empty() || run.profile == "true")
      throw Error("--call-stacks on needs --profile=FILE, which shows them");
    for (const char* other : {"--check", "--chip", "--gdb", "--checkpoint", "--resume"})
      if (command.get_option(other)->count() != 0)
        throw Error(fmt::format("--call-stacks on does not work with {}: run twice", other));
  }
  if (run.check_races && raw.memory == "private")
    throw Error("--check races looks at memory that cores share: not with --memory private");
  if (!run.chip.empty()) {
    if (!raw.check.empty()) throw Error("--chip does not work with --check: run twice");
    if (!run.caches_path.empty())
      throw Error("--chip has caches of its own: not with --caches");
    if (!raw.time.empty()) throw Error("--chip has time of its own: not with --simulated-time");
  } else if (!run.chip_page_path.empty() || !run.chip_region.empty() ||
             !run.chip_timeline_path.empty() || !run.chip_sample.empty()) {
    throw Error("--chip-page, --chip-sample, --chip-timeline and --region need --chip CHIP");
  }
  if (run.trace.empty() && !run.trace_region.empty())
    throw Error("--trace-region needs --trace FILE");
  if (run.checkpoint_path.empty() && (run.checkpoint_every != 0 || run.checkpoint_stop))
    throw Error("--checkpoint-every and --checkpoint-stop need --checkpoint FILE");
  run.program_args = guest_args;
  run.memory_model = raw.memory == "private" ? MemoryModel::kPrivate : MemoryModel::kShared;
  if (!raw.part.empty()) understand_part(command, raw.part, run);
  run.start = raw.start == "all"     ? StartCores::kAll
              : raw.start == "first" ? StartCores::kFirst
                                     : StartCores::kAuto;
  run.network = raw.network == "host"       ? Network::kHost
                : raw.network == "loopback" ? Network::kLoopback
                                            : Network::kNone;
  if (run.cpus > run.cores)
    throw Error(fmt::format("--cpus {}: more than --cores, which is {}", run.cpus, run.cores));
  if (!raw.entry.empty()) run.entry = raw.entry;
  if (!run.entry && !run.call_args.empty())
    throw Error("--arg needs --entry; arguments for a whole program stand after --");
  if (run.entry && (!guest_args.empty() || run.argv0))
    throw Error("with --entry arguments are given by --arg, not after -- or by --argv0");
  for (const std::string& e : run.environment)
    if (e.find('=') == std::string::npos || e.front() == '=')
      throw Error(fmt::format("--env {}: expected NAME=VALUE", e));
  if (run.per_core && !run.wants_stats() && run.energy_targets.empty() && run.profile.empty())
    throw Error(
        "--per-core needs --stats FILE, where the counts per core go, --energy or "
        "--profile=FILE.folded");
  if (run.profile == "true") run.profile = "-";  // a flag without a value
  if (!run.power_path.empty() && run.energy_targets.empty())
    throw Error("--power-trace needs --energy TARGET, whose power it is");
  if (!run.timing_target.empty() && run.profile.empty() && run.timeline_path.empty() &&
      !run.simulated_time)
    throw Error("--timing needs --profile, --timeline or --simulated-time, which use it");
  if (!raw.memory_size.empty())
    run.memory_size_bytes = parse_size("--memory-size", raw.memory_size);
  if (!raw.stack_size.empty()) run.stack_size_bytes = parse_size("--stack-size", raw.stack_size);
  if (!raw.host_memory.empty())
    run.host_memory_bytes = parse_size("--host-memory", raw.host_memory);
  run.roots.push_back({".", false});
  for (const std::string& root : raw.roots) run.roots.push_back(parse_root(root));
  return run;
}

}  // namespace

uint64_t parse_size(const std::string& option, const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  std::string unit(stop, end);
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (unit.ends_with("IB"))
    unit.resize(unit.size() - 2);
  else if (unit.ends_with("B"))
    unit.pop_back();
  int shift = unit.empty()  ? 0
              : unit == "K" ? 10
              : unit == "M" ? 20
              : unit == "G" ? 30
              : unit == "T" ? 40
                            : -1;
  if (error != std::errc{} || shift < 0 || value == 0 || value > (uint64_t{1} << 47) >> shift)
    throw Error(fmt::format("{} {}: expected a size such as 65536, 64K, 8M or 2G", option, text));
  return value << shift;
}

void add_run_command(CLI::App& app, const std::vector<std::string>& guest_args, Action& action,
                     std::function<int(const RunOptions&)> simulate_it) {
  CLI::App* command = app.add_subcommand(
      "run", "Run a guest program on simulated cores; its arguments stand after --");
  auto raw = std::make_shared<RawRunOptions>();
  RunOptions& run = raw->run;
  command->add_option("PROGRAM", run.program, "ELF file, module (.gsm) or kernels (.ptx)");
  command->add_option("--config", raw->config_path,
                      "Options from this file, TOML or JSON, where the command line does not give "
                      "them");
  command->add_option("--cores", run.cores, "Simulated cores (1)")
      ->check(CLI::Range(1u, kMostCores));
  command->add_option("--part", raw->part,
                      "K/N: only the K-th of N parts of the cores, all with --memory private; "
                      "auto: of mpirun, mpiexec, srun or a job array, as many as it has tasks");
  command->add_option("--memory", raw->memory, "shared: one address space; private: one per core")
      ->check(CLI::IsMember({"shared", "private"}));
  command
      ->add_option("--start", raw->start,
                   "all: every core starts the program; first: core 0 does, and the others are for "
                   "its threads; auto: first for programs with a C library")
      ->check(CLI::IsMember({"auto", "all", "first"}));
  command->add_option("--entry", raw->entry, "Call this function instead of starting the program");
  repeatable(command->add_option(
      "--arg", run.call_args,
      "Argument of the entry function: an integer, a float with a point, &SYMBOL, "
      "@core, @cores; repeatable. Kernels (PTX): an integer, a float, buffer:SIZE or file:PATH, "
      "either with >PATH to be written after the run, or bytes:HEX"));
  command->add_option("--grid", raw->grid, "Kernels (PTX): blocks of the grid, X[,Y[,Z]] (1)");
  command->add_option("--block", raw->block, "Kernels (PTX): threads of a block, X[,Y[,Z]] (1)");
  command->add_option("--cluster", raw->cluster,
                      "Kernels (PTX): blocks of a cluster, X[,Y[,Z]] (as the kernel says, or 1)");
  command->add_option("--shared", raw->shared, "Kernels (PTX): bytes of dynamic shared memory (0)");
  command->add_option("--argv0", run.argv0,
                      "What the program finds as its own name, argv[0]: PROGRAM as written, unless "
                      "told");
  command->add_option("--backend", run.backend, "auto, or a name that `gpusim info` lists");
  command
      ->add_option("--device,--devices", run.devices,
                   "GPUs to run on (backend cuda): numbers as `gpusim info` lists them, with commas "
                   "between, or all; several only with --memory private, or for kernels (PTX)")
      ->transform(list_value());
  command
      ->add_option("--compiled-regions", raw->compiled_regions,
                   "Whether hot code is compiled for the GPU (backend cuda): off, on (beside the "
                   "run) or wait (the run waits for it)")
      ->check(CLI::IsMember({"off", "on", "wait"}));
  command->add_option("--cpu", run.cpu,
                      "Processor that the guest finds: one that `gpusim info` lists");
  command->add_option("--threads", run.threads, "Host threads (all)")->check(CLI::Range(1u, 4096u));
  command->add_option("--stats", run.stats_path, "Write statistics to this file: JSON, or .csv");
  command
      ->add_option("--energy", run.energy_targets,
                   "Print the energy that these targets would take: names with commas between, "
                   "all, or files (gpusim energy targets)")
      ->transform(list_value());
  command
      ->add_flag("--profile", run.profile,
                 "Where the instructions went: a table of functions and source lines, or with "
                 "--profile=FILE[,FILE...] files: .json, .html (flame graph, source text), .folded "
                 "(call stacks), "
                 ".callgrind (KCachegrind, with calls)")
      ->transform(list_value());
  command
      ->add_option(
          "--call-stacks", raw->call_stacks,
          "Whether --profile follows calls, for whole stacks and a flame graph: auto (where "
          "a file is .folded, .html or .callgrind), on or off (faster)")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  command->add_option("--timeline", run.timeline_path,
                      "Write what groups of cores did when to this file, for ui.perfetto.dev or "
                      "chrome://tracing; with --energy watts, too");
  command->add_option("--power-trace", run.power_path,
                      "Write power over time on the targets of --energy: FILE.csv or FILE.html");
  command->add_option(
      "--timing", run.timing_target,
      "Energy target whose cycles per instruction and clock --profile and --timeline "
      "use (that of --energy; else 1 cycle, 1 GHz)");
  command->add_option("--caches", run.caches_path,
                      "Simulate the caches that this JSON file describes, and tell memory accesses "
                      "on the chip from those off it");
  command
      ->add_option("--check", raw->check,
                   "races: report accesses of two cores to the same bytes that nothing orders; "
                   "uninitialised: report branches, addresses and system calls that depend on what "
                   "the program never set. The run then ends with status 66 instead of 0. Of "
                   "kernels (PTX): all, or some of memory,races,barriers,uninitialised");
  command->add_option("--trace", run.trace,
                      "FILE[,CORE]: write what the cores, or this one, access: .din (Dinero IV), "
                      ".ramulator (Ramulator 2) or .champsim (ChampSim); .gz, .xz or .zst behind "
                      "that compress it");
  command->add_option("--trace-region", run.trace_region,
                      "With --trace, only calls of this function, or with FROM..TO only these of "
                      "each core's own instructions");
  command->add_option("--chip", run.chip,
                      "CHIP[,KEY=VALUE]...: time, traffic and energy on this chip, a JSON file "
                      "or a name that `gpusim info --chips` lists; with single keys of its "
                      "description changed, as in mesh-1024,memory.latency_cycles=200");
  command->add_option("--chip-page", run.chip_page_path,
                      "Write what the chip did to this HTML file: where time went, floor plan, "
                      "traffic");
  command->add_option("--chip-sample", run.chip_sample,
                      "detail=N,skip=M: N instructions of all cores together in detail, then M "
                      "without queues, and so on; cycles with how sure they are");
  command->add_option("--chip-timeline", run.chip_timeline_path,
                      "Write what the chip's cores, links and channels did when to this file, for "
                      "ui.perfetto.dev or chrome://tracing");
  command->add_option("--region", run.chip_region,
                      "With --chip, look only at calls of this function, or with FROM..TO only at "
                      "these instructions of all cores together (gpusim_roi_begin() to "
                      "gpusim_roi_end(), if the program has them)");
  repeatable(command->add_option(
      "--plugin", run.plugins,
      "FILE[,ARGUMENT]...: a shared object that sees blocks and memory accesses "
      "(gpusim_plugin.h); repeatable"));
  command->add_flag("--simulated-time", raw->time,
                    "Time on the simulated chip, by the cycles per instruction of --timing; at "
                    "barriers cores wait for the last one. With --simulated-time=locks locks "
                    "exclude each other, too (slower)");
  command->add_flag("--watch", raw->watch,
                    "Serve a page of the run while it runs, to browsers on this machine only, at a "
                    "free port, or with --watch=PORT at this one");
  command->add_option("--gdb", run.gdb_address,
                      "Wait for a debugger at [HOST:]PORT or a socket's path: every core is a "
                      "thread");
  command->add_option(
      "--core-file", run.core_path,
      "If a core dies by a fault or a signal, or all wait for ever, write memory and "
      "registers to this file, for gdb-multiarch");
  command->add_option("--checkpoint", run.checkpoint_path,
                      "Write the state of the run to this file on SIGUSR1");
  command
      ->add_option("--checkpoint-every", run.checkpoint_every,
                   "... and each time that the cores together executed so many instructions")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62));
  command->add_flag("--checkpoint-stop", run.checkpoint_stop,
                    "The first checkpoint ends the run, with status 123");
  command->add_option("--resume", run.resume_path,
                      "Go on from this checkpoint; PROGRAM is needed only if it moved");
  command->add_option("--isa-coverage", run.isa_coverage_path,
                      "Append the decoder's rows that were executed to this file");
  command->add_flag("--per-core", run.per_core,
                    "Statistics of each core, too; in files of --profile, stacks of each core");
  command->add_flag("--quiet", run.quiet, "No progress, no notes");
  command
      ->add_option("--max-instructions", run.max_instructions,
                   "Stop each core after so many instructions of its own, at the end of a block "
                   "(not after so many of all cores together)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62));
  command->add_option("--slice", run.slice, "Instructions between looks at the host")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  command
      ->add_option("--seed", run.seed,
                   "Vary the interleaving of the cores: an unusual one per seed, slower; with "
                   "--threads 1 the same seed gives the same one")
      ->check(CLI::Range(uint64_t{1}, ~uint64_t{0}));
  command->add_option("--group-width", run.group_width, "Lanes per group of backend simd")
      ->check(CLI::IsMember({1u, 2u, 4u, 8u, 16u, 32u, 64u}));
  command->add_flag("!--no-regroup", run.regroup,
                    "Backend simd leaves cores in the groups of their neighbours");
  command->add_flag("!--no-native", run.native, "Backend simd only interprets");
  command
      ->add_option("--native-after", run.native_after,
                   "Executions of a block after which backend simd generates native code")
      ->group("");  // for tests
  command->add_option("--memory-size", raw->memory_size,
                      "Guest memory: in all (shared) or of each core (private)");
  command->add_option("--stack-size", raw->stack_size,
                      "Stack of each core; of kernels (PTX) what cudaLimitStackSize is (1K)");
  command->add_option("--host-memory", raw->host_memory,
                      "Memory of this machine that the run may take (80 % of what is free)");
  repeatable(command->add_option("--env", run.environment, "NAME=VALUE for the guest; repeatable"));
  repeatable(command->add_option(
      "--root", raw->roots,
      "A folder whose files the guest may read and write (FOLDER:ro: only read); "
      "repeatable. The current folder may always be read"));
  command->add_option("--sysroot", run.sysroot,
                      "Where a dynamic program's interpreter and libraries are: absolute paths are "
                      "looked for below this folder first (the cross compiler's libraries for the "
                      "program's ISA, if they are installed)");
  command
      ->add_option("--cpus", run.cpus,
                   "Processors that the guest's Linux counts (as many as cores). With fewer, a "
                   "program that starts a thread for each and others beside has a core for all")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--network", raw->network,
                   "What the guest's internet sockets may reach: nothing, only this host (through its "
                   "loopback), or all that the host reaches")
      ->check(CLI::IsMember({"none", "loopback", "host"}));
  command->callback([command, raw, &guest_args, &action, simulate_it] {
    action = [command, raw, &given_args = guest_args, simulate_it] {
      const std::vector<std::string> words =
          raw->config_path.empty() ? given_args
                                   : apply_config(*command, raw->config_path, given_args);
      if (!raw->run.program.empty() && ptx::is_ptx_file(raw->run.program))
        return launch_kernel(*command, *raw);
      for (const char* option : kOfKernels)
        if (command->get_option(option)->count() != 0)
          throw Error(fmt::format("{} is for kernels: PROGRAM has to be PTX text", option));
      const RunOptions options = understand(*command, *raw, words);
      if (raw->watch.empty()) return simulate_it(options);
      Watch watch(watch_port(raw->watch), options.program);
      console::err("gpusim: note: this run can be watched at {}\n", watch.address());
      return simulate(options, &watch);
    };
  });
}

void add_run_command(CLI::App& app, const std::vector<std::string>& guest_args, Action& action) {
  add_run_command(app, guest_args, action,
                  [](const RunOptions& options) { return simulate(options); });
}

}  // namespace gpusim::host
