#include "host/checkpoint/checkpoint.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/core/backend_traits.h"
#include "host/checkpoint/archive.h"
#include "host/checkpoint/files.h"
#include "host/checkpoint/machine_io.h"

namespace gpusim::host {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kRun = section_name("RUN "), kCode = section_name("CODE"),
                   kControl = section_name("CTRL"), kKernel = section_name("KERN");
constexpr uint32_t kMostCores = 1u << 24;
constexpr uint64_t kMostBytes = uint64_t{1} << 47;

// All that places of cores and counts of blocks refer to.
uint64_t hash_of_module(const Module& module) {
  const auto of = [](const auto& v, uint64_t seed) {
    return XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), seed);
  };
  uint64_t hash = of(module.uops, module.slot_count);
  hash = of(module.uop_block, hash);
  hash = of(module.uop_insn, hash);
  hash = of(module.code.uop_at, hash);
  for (const Block& b : module.blocks) {
    const uint64_t head[] = {b.pc, b.insn_count, b.first_uop, b.uop_count};
    hash = of(b.classes, XXH3_64bits_withSeed(head, sizeof head, hash));
  }
  return hash;
}

template <class A>
void describe_plan(A& a, MemoryPlan& plan) {
  MachineConfig& c = plan.config;
  a.value(c.cores);
  a.value(c.memory_model);
  a.value(c.linear_base);
  a.value(c.linear_size);
  a.value(c.window_base);
  a.value(c.window_shift);
  a.value(c.stack_base);
  a.value(c.stack_size);
  a.value(plan.heap_start);
  a.value(plan.heap_limit);
  a.value(plan.stack_size_bytes);
  const auto is_place = [](uint64_t at) { return at <= kMostBytes && at % kPageSize == 0; };
  a.require(c.cores >= 1 && c.cores <= kMostCores && c.memory_model <= MemoryModel::kPrivate &&
                is_place(c.linear_base) && is_place(c.linear_size) && is_place(c.window_base) &&
                c.window_shift >= 12 && c.window_shift <= 46 && is_place(c.stack_base) &&
                is_place(c.stack_size) && c.stack_size <= uint64_t{1} << c.window_shift &&
                c.cores <= kMostBytes >> c.window_shift && is_place(plan.heap_start) &&
                is_place(plan.heap_limit) && plan.heap_start <= plan.heap_limit &&
                is_place(plan.stack_size_bytes),
            "where memory lies");
}

template <class A>
void describe_identity(A& a, RunIdentity& run) {
  a.text(run.program);
  for (uint64_t& word : run.program_hash) a.value(word);
  a.text(run.cpu);
  a.text(run.backend);
  a.value(run.group_width);
  a.value(run.starts_alone);
  a.value(run.returns_end_cores);
  a.value(run.has_core_tallies);
  a.value(run.translated_whole);
  describe_plan(a, run.plan);
  a.value(run.slice);
  a.value(run.max_instructions);
  a.value(run.seed);
  a.value(run.seconds);
  a.list(run.roots, 4096, [&](AllowedRoot& root) {
    a.text(root.folder);
    a.value(root.writable);
  });
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

bool is_available(const std::string& backend) {
  std::string why;
  return std::any_of(all_backends().begin(), all_backends().end(), [&](const BackendInfo& info) {
    return info.name == backend && info.available(&why);
  });
}

}  // namespace

std::array<uint64_t, 2> hash_of_file(const std::string& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

uint64_t write_checkpoint(const OutputFile& output, RunIdentity& identity, Translator& translator,
                          Backend& backend, Kernel& kernel, RunControl& control) {
  MachineState* const state = state_of(backend);
  if (!state) throw Error("backend " + backend.name() + " cannot be saved");
  FileState files = kernel.file_state();
  ChunkWriter file(output);
  Saving a(file);

  file.begin(kRun);
  describe_identity(a, identity);
  file.begin(kCode);
  std::vector<uint64_t> growth = translator.growth();
  a.plain_array(growth, growth.size());
  a.value(hash_of_module(translator.module()));
  save_rights(file, identity.plan, backend);
  save_memory(file, *state);
  const std::vector<bool> runnable = save_cores(file, translator.module(), backend, *state);
  for (uint32_t core = 0; core < runnable.size(); ++core)
    if (runnable[core] != (kernel.is_alive(core) && !kernel.is_parked(core)))
      throw Error(fmt::format("core {} is between two states", core));
  file.begin(kControl);
  control.describe(a, true);
  file.begin(kKernel);
  kernel.describe(a, files);
  file.finish();
  return file.stored_bytes();
}

ResumedRun::ResumedRun(const std::string& path) : path_(path), file_(path) {
  file_.begin(kRun);
  Loading a(file_);
  describe_identity(a, identity_);
}

RunOptions ResumedRun::options(RunOptions now) const {
  for (const AllowedRoot& root : identity_.roots) {
    const bool allowed = std::any_of(now.roots.begin(), now.roots.end(), [&](const AllowedRoot& r) {
      std::error_code error;
      const fs::path folder = fs::canonical(r.folder, error);
      return !error && lies_in(root.folder, folder) && (r.writable || !root.writable);
    });
    if (!allowed)
      throw Error(fmt::format(
          "--resume {}: the run could {} files in {}; a checkpoint gives no rights: allow it again "
          "with "
          "--root {}{}{}",
          path_, root.writable ? "read and write" : "read", root.folder, root.folder,
          root.writable ? "" : ":ro", root.writable ? "" : ", or start in that folder"));
  }
  RunOptions run = std::move(now);
  if (run.program.empty()) run.program = identity_.program;
  run.cpu = identity_.cpu;
  run.cores = identity_.plan.config.cores;
  run.memory_model = identity_.plan.config.memory_model;
  run.seed = identity_.seed;
  run.roots = identity_.roots;
  if (run.slice == 0) run.slice = identity_.slice;
  if (run.max_instructions == 0) run.max_instructions = identity_.max_instructions;
  if (run.group_width == 0) run.group_width = identity_.group_width;
  if (run.backend == "auto" && is_available(identity_.backend)) run.backend = identity_.backend;
  if (run.per_core && !identity_.has_core_tallies)
    throw Error(fmt::format(
        "--per-core: the run of {} began on a GPU without it, and has no counts per core", path_));
  std::array<uint64_t, 2> hash{};
  try {
    hash = hash_of_file(run.program);
  } catch (const Error& error) {
    throw Error(
        fmt::format("{} (the program of {}; where it is now: gpusim run PROGRAM --resume ...)",
                    error.what(), path_));
  }
  if (hash != identity_.program_hash)
    throw Error(fmt::format("--resume {}: {} is not the program that the checkpoint was made of",
                            path_, run.program));
  return run;
}

RunIdentity ResumedRun::identity_now(const Backend& backend, const RunOptions& options) const {
  RunIdentity now = identity_;
  now.program = fs::absolute(options.program).lexically_normal();
  now.backend = backend.name();
  now.group_width = options.group_width;
  now.slice = options.slice;
  now.max_instructions = options.max_instructions;
  if (!traits_of(backend.name()).always_counts_cores) now.has_core_tallies &= options.per_core;
  return now;
}

void ResumedRun::grow(Translator& translator) {
  file_.begin(kCode);
  Loading a(file_);
  std::vector<uint64_t> growth;
  a.plain_array(growth, uint64_t{1} << 32);
  translator.grow_again(growth);
  uint64_t hash = 0;
  a.value(hash);
  if (hash != hash_of_module(translator.module()))
    throw Error(fmt::format(
        "{}: a checkpoint of another version of gpusim, which translated the program differently",
        path_));
}

void ResumedRun::restore_machine(const Module& module, const MemoryPlan& plan, Backend& backend) {
  MachineState* const state = state_of(backend);
  if (!state) throw Error("--resume: not on backend " + backend.name());
  load_rights(file_, plan, backend);
  load_memory(file_, *state);
  same_machine_ = backend.name() == identity_.backend;
  runnable_ = load_cores(file_, module, plan, *state, same_machine_);
}

void ResumedRun::restore_run(Kernel& kernel, RunControl& control) {
  Loading a(file_);
  file_.begin(kControl);
  control.describe(a, same_machine_);
  file_.begin(kKernel);
  FileState files;
  kernel.describe(a, files);
  for (uint32_t core = 0; core < runnable_.size(); ++core)
    a.require(runnable_[core] == (kernel.is_alive(core) && !kernel.is_parked(core)),
              "a core that waits and runs");
  file_.begin(kEndSection);
  try {
    kernel.open_again(files);
  } catch (const Error& error) {
    throw Error(fmt::format("--resume {}: {}", path_, error.what()));
  }
}

// --- when

namespace {

volatile std::sig_atomic_t wanted = 0;
void on_signal(int) { wanted = 1; }

}  // namespace

Checkpointer::Checkpointer(Options options) : options_(std::move(options)) {
  if (!options_.file.is_plain())
    throw Error(fmt::format("--checkpoint {}: not a file", options_.file.path()));
  wanted = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // the guest's calls do not hear of it
  sigaction(SIGUSR1, &action, &old_action_);
}

Checkpointer::~Checkpointer() { sigaction(SIGUSR1, &old_action_, nullptr); }

void Checkpointer::start(RunIdentity identity, Translator& translator, Backend& backend,
                         Kernel& kernel, RunControl& control) {
  identity_ = std::move(identity);
  seconds_before_ = identity_.seconds;
  translator_ = &translator;
  backend_ = &backend;
  kernel_ = &kernel;
  control_ = &control;
  begin_ = Clock::now();
  if (!state_of(backend)) throw Error("--checkpoint: not on backend " + backend.name());
  last_ = state_of(backend)->instructions();
}

bool Checkpointer::is_due() {
  if (options_.every == 0) return false;
  const uint64_t now = state_of(*backend_)->instructions();
  if (now - last_ < options_.every) return false;
  last_ = now;
  return true;
}

bool Checkpointer::after_step() {
  const bool asked_for = wanted != 0;
  wanted = 0;
  if (!asked_for && !is_due()) return false;
  if (kernel_->alive() == 0) return false;  // it has ended
  return write(asked_for);
}

bool Checkpointer::write(bool asked_for) {
  const auto before = Clock::now();
  identity_.seconds = seconds_before_ + std::chrono::duration<double>(before - begin_).count();
  try {
    if (!translator_->module().late_code.empty())
      throw Error("the program has executed code that it mapped or wrote itself");
    const uint64_t size =
        write_checkpoint(options_.file, identity_, *translator_, *backend_, *kernel_, *control_);
    last_refusal_.clear();
    const std::chrono::duration<double> took = Clock::now() - before;
    if ((asked_for || options_.stop) && !options_.quiet)
      control_->say(fmt::format("gpusim: note: checkpoint {}: {:.1f} MiB in {:.2f} s",
                                options_.file.path(), double(size) / (1 << 20), took.count()));
    return stopped_ = options_.stop;
  } catch (const Error& error) {
    const std::string refusal = error.what();
    if (asked_for || refusal != last_refusal_)
      control_->say(fmt::format("gpusim: no checkpoint: {}; the run goes on", refusal));
    last_refusal_ = refusal;
    return false;
  }
}

}  // namespace gpusim::host
