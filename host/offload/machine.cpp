#include "host/offload/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <numeric>

#include "device_sim/core/backend_traits.h"
#include "device_sim/core/linear_space.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/core/memory_view.h"
#include "host/exit_status.h"
#include "host/loader.h"
#include "host/offload/offload_error.h"

namespace gpusim::offload {
namespace {

constexpr uint64_t kKiB = 1024;

// Stacks lie above all device addresses. Function kernels have no heap.
host::MemoryPlan plan_on(const DeviceMemory& memory, const KernelMachineOptions& options) {
  host::MemoryPlan plan;
  plan.config.linear_base = memory.lowest();
  plan.config.linear_size = memory.size_bytes() - memory.lowest();
  plan.config.linear_storage = memory.pointer(memory.lowest());
  plan.config.linear_rights = memory.page_rights() + (memory.lowest() >> kPageShift);
  plan.config.cores = options.cores;
  uint64_t window = options.stack_size_bytes;
  if (window == 0) window = options.cores <= 64 ? 1024 * kKiB : 64 * kKiB;
  constexpr uint64_t kMostStack = uint64_t{1} << 30;
  if (window > kMostStack)
    throw OffloadError(EINVAL, fmt::format("stacks of {} bytes: at most {}", window, kMostStack));
  window = std::bit_ceil(std::max<uint64_t>(window, 4 * kPageSize));
  plan.config.window_shift = static_cast<uint32_t>(std::countr_zero(window));
  plan.config.window_base = std::bit_ceil(memory.size_bytes());
  plan.stack_size_bytes = window - kPageSize;
  plan.heap_start = plan.heap_limit = memory.lowest();
  return plan;
}

// However many cores there are and whatever they execute: commands, time limits and other contexts
// wait for the end of a slice. Kernels of up to some thousand cores come to the end of theirs
// before.
constexpr std::chrono::milliseconds kLongestSlice{30};

// Of a device's slices: commands are served beside them, but a CANCEL waits for the end of one.
constexpr std::chrono::milliseconds kShortSlice{8}, kLongSlice{24};

// Long enough for speed, short enough for others to have their turn within milliseconds.
uint64_t slice_length(uint32_t cores) {
  constexpr uint64_t kOfAllCores = 1 << 23, kLeast = 1 << 11, kMost = 1 << 17;
  return std::clamp(kOfAllCores / cores, kLeast, kMost);
}

}  // namespace

SlicePace::SlicePace(uint32_t cores) : instructions_(slice_length(cores)) {}

// No longer than a lone core takes for, whose instructions cost most: cores that did little in one
// slice may do much in the next.
void SlicePace::slice_lasted(std::chrono::nanoseconds time) {
  constexpr uint64_t kLeast = 1 << 8, kMost = 1 << 17;
  const double share = std::chrono::duration<double>(kLongSlice) / time;
  if (time < kShortSlice)
    instructions_ = std::min(instructions_ * 2, kMost);
  else if (share < 1)
    instructions_ =
        std::max(static_cast<uint64_t>(static_cast<double>(instructions_) * share), kLeast);
}

KernelMachine::KernelMachine(Translator& translator, DeviceMemory* memory,
                             const KernelMachineOptions& options)
    : translator_(translator),
      options_(options),
      backend_(make_backend(options.backend, {.in_place = memory != nullptr})) {
  const Module& module = translator.module();
  if (memory) {
    plan_ = plan_on(*memory, options);
  } else {
    plan_ = host::plan_memory(module, {.cores = options.cores,
                                       .stack_size_bytes = options.stack_size_bytes,
                                       .memory_is_real = traits_of(backend_->name()).is_on_device});
  }
  plan_.config.threads = options.threads;
  if (auto* const takes = dynamic_cast<TakesLinearSpace*>(backend_.get());
      takes && memory && memory->space())
    takes->use(*memory->space());
  compile_regions(*backend_, options.compiled_regions);
  backend_->configure(module, plan_.config);
  if (CpuMachineState* const state = memory_of(*backend_)) state->limit_slices(kLongestSlice);
  known_uops_ = module.uops.size();
  if (memory)
    host::map_stacks(*backend_, plan_);
  else
    host::load_image(*backend_, module, plan_);
}

bool KernelMachine::fits(const KernelMachineOptions& options) const {
  return options.cores == options_.cores && options.stack_size_bytes == options_.stack_size_bytes;
}

void KernelMachine::see_growth() {
  if (known_uops_ == translator_.module().uops.size()) return;
  backend_->module_changed();
  known_uops_ = translator_.module().uops.size();
}

void KernelMachine::reset(uint64_t max_instructions) {
  see_growth();
  backend_->reset(max_instructions);
  plan_.config.max_instructions = max_instructions;
}

Run::Run(KernelMachine& machine, const RunRequest& request)
    : machine_(machine),
      guard_(request.guard),
      is_process_(request.is_process),
      output_(request.most_output_bytes, /*by_core=*/!request.is_process),
      pace_(machine.plan().config.cores) {
  Translator& translator = machine.translator();
  Backend& backend = machine.backend();
  const host::MemoryPlan& plan = machine.plan();
  machine.reset(request.max_instructions);
  kernel_.emplace(
      backend,
      host::Kernel::Config{
          .plan = &plan,
          .module = &translator.module(),
          .translator = &translator,
          .starts_alone = request.is_process && host::makes_its_threads(translator.module()),
          .roots = {},
          .standard_files = {request.null_file, request.null_file, request.null_file},
          .is_isolated = true,
          .program = request.name,
          .note = {},
          .on_thread = {},
          .instead = [this](uint32_t uop, std::string_view call) { return answer(uop, call); }});
  kernel_->output().redirect(
      request.null_file,
      [this](uint32_t core, std::span<const uint8_t> bytes) { output_.add(core, bytes); });
  if (request.is_process) {
    host::ProcessStart start{request.name, {}, {}, {}};
    if (!request.strings.empty()) {
      start.program = request.strings.front();
      start.args.assign(request.strings.begin() + 1, request.strings.end());
    }
    host::start_as_process(backend, translator, plan, start,
                           kernel_->starts_alone() ? 1 : plan.config.cores);
  } else {
    host::start_as_call(backend, translator, plan, request.function, request.arguments);
  }
  control_.emplace(translator, backend, plan, *kernel_,
                   host::RunControlOptions{.slice = slice_length(plan.config.cores),
                                           .max_instructions = request.max_instructions,
                                           .returns_end_cores = !request.is_process,
                                           .show_progress = false,
                                           .program = {},
                                           .memory_changes_outside = !request.is_process,
                                           .longest_nap = std::chrono::milliseconds(1),
                                           .reports_at_end = true,
                                           .interrupted = nullptr},
                   [this](const std::string& line) { add_trouble(line); });
}

// Replies hold one sentence, not a page: lines that belong to the one before are indented.
void Run::add_trouble(const std::string& line) {
  constexpr size_t kMost = 1024;
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (trouble_.size() >= kMost) return;
  if (!trouble_.empty()) trouble_ += begin == 0 ? "; " : ", ";
  trouble_ += line.substr(begin, kMost);
}

host::RunControl::Step Run::step() {
  using Step = host::RunControl::Step;
  const auto begin = std::chrono::steady_clock::now();
  if (!slice_begin_) {
    slice_begin_ = begin;
    machine_.see_growth();
    if (async_slices_of(machine_.backend())) control_->set_slice(pace_.instructions());
  }
  const Step step = control_->step_apart();
  const auto now = std::chrono::steady_clock::now();
  if (step == Step::kRuns) return step;
  if (control_->had_slice()) pace_.slice_lasted(now - *slice_begin_);
  time_ += now - *slice_begin_;
  slice_begin_.reset();
  return step;
}

void Run::settle() { control_->settle(); }

// A core of a kernel is no thread of the caller's.
std::optional<host::Reply> Run::answer(uint32_t resume_uop, std::string_view call) {
  if (is_process_) return std::nullopt;
  // Kernels of one program share its code, which handlers of signals would change.
  if (call == "rt_sigaction") return host::Reply::error(ENOSYS);
  if (!guard_ || call != "futex") return std::nullopt;
  // A lock that no guarded function takes: of a language's run-time, or of the program's own.
  constexpr int kSigsys = 31;
  const Module& module = machine_.translator().module();
  if (trouble_.empty())
    trouble_ = fmt::format(
        "the kernel waits for threads of the calling program, or wakes them (futex, called in {}); "
        "use the locks of gpusim_sync.h among cores",
        symbolize(module, place_pc(module, resume_uop)));
  return host::Reply{host::Reply::Kind::kExitThread, 128 + kSigsys};
}

uint64_t Run::link_of(uint32_t core) const {
  const int slot = machine_.translator().module().abi.link;
  return slot == kNoSlot ? 0 : machine_.backend().slot(core, static_cast<Slot>(slot));
}

// A trap of the guard: what it stands for.
void Run::explain_locks(const host::RunResult& result) {
  if (!guard_) return;
  for (const host::StopRecord& stop : result.stops) {
    const std::string* const name = guard_->guarded(stop.pc);
    if (!name) continue;
    trouble_ = fmt::format(
        "core {}: {}", stop.core,
        LockGuard::complaint(machine_.translator().module(), *name, link_of(stop.core)));
    return;
  }
}

gpusim_report Run::report(gpusim_classes& classes) {
  const host::RunResult result = control_->finish();
  explain_locks(result);
  gpusim_report r{};
  r.exit_status = result.exit_status;
  r.cores = machine_.plan().config.cores;
  r.run_ns = static_cast<uint64_t>(time_.count());
  r.output_bytes = output_.written_bytes();
  r.faults = static_cast<uint32_t>(result.stops.size());
  if (!result.stops.empty()) {
    r.fault_core = result.stops.front().core;
    r.fault_pc = result.stops.front().pc;
  }
  const ClassCounts counts = control_->tallies().of_all_cores(machine_.backend());
  static_assert(kInsnClassCount <= GPUSIM_MOST_CLASSES);
  classes = {.count = kInsnClassCount};
  std::copy_n(counts.begin(), kInsnClassCount, classes.instructions);
  r.guest_instructions = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  return r;
}

}  // namespace gpusim::offload
