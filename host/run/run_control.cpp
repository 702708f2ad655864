#include "host/run/run_control.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "device_sim/core/backend_traits.h"
#include "device_sim/core/calls_first.h"
#include "host/exit_status.h"
#include "host/gdb/host_step.h"
#include "host/run/core_place.h"
#include "host/run/deadlock.h"
#include "host/start_state.h"
#include "translator/common/isa_list.h"
#include "translator/common/limits.h"

namespace gpusim::host {
namespace {

// What CNTFRQ_EL0 says under qemu-user, too.
constexpr uint64_t kCounterFrequency = 62'500'000;

uint64_t counter_value() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kCounterFrequency +
         static_cast<uint64_t>(now.tv_nsec) * kCounterFrequency / 1'000'000'000;
}

bool is_fetch_fault(Fault f) {
  return f == Fault::kFetchAccess || f == Fault::kFetchAlignment || f == Fault::kModifiedCode;
}

// Behind "this code was written by the program itself".
constexpr const char* kOverOwnCode =
    " over code of its file, which may not change; code that it maps (mmap) may";

}  // namespace

RunControl::RunControl(Translator& translator, Backend& backend, const MemoryPlan& plan,
                       Kernel& kernel, const RunControlOptions& options,
                       std::function<void(const std::string&)> line)
    : translator_(translator),
      backend_(backend),
      plan_(plan),
      kernel_(kernel),
      options_(options),
      observer_(options.observer ? *options.observer : no_observer_),
      line_([this, print = std::move(line)](const std::string& text) {
        progress_.clear();
        kernel_.output().flush();
        print(text);
      }),
      progress_(options.show_progress),
      guard_(translator.module(), backend),
      reports_(line_),
      async_(async_slices_of(backend)),
      status_(plan.config.cores, 0) {
  if (kernel.starts_alone()) let_calls_go_first(backend);
}

// Long enough that a slice's overhead vanishes, short enough that the host looks several times a
// second for Ctrl-C, timers and progress.
uint64_t RunControl::slice_length() const {
  const uint64_t of_debugger = debugger_ ? debugger_->longest_slice() : ~uint64_t{0};
  return std::min({wanted_slice_length(), observer_.longest_slice(), of_debugger});
}

uint64_t RunControl::wanted_slice_length() const {
  constexpr uint64_t kApart = 1024;
  const uint64_t chosen = options_.slice != 0 || plan_.config.seed == 0 ? options_.slice : kApart;
  if (kernel_.alive_without_core() != 0)
    return chosen != 0 ? std::min(chosen, slice_of_sharing_) : slice_of_sharing_;
  if (chosen != 0) return chosen;
  const bool on_gpu = traits_of(backend_.name()).is_on_device;
  const bool has_threads = kernel_.starts_alone() && kernel_.alive() > 1;
  const uint64_t of_all_cores = uint64_t{1} << (on_gpu ? 33 : has_threads ? 27 : 25);
  const uint64_t least = uint64_t{1} << (on_gpu ? 14 : 12);
  const uint64_t most = !has_threads ? 1 << 20
                        : on_gpu      ? SliceOfThreads::kFirst
                                      : slice_of_threads_.length();
  return std::clamp<uint64_t>(of_all_cores / plan_.machine_cores(), std::min(least, most), most);
}

RunResult RunControl::run() {
  while (step()) {
  }
  return finish();
}

bool RunControl::step() {
  if (const std::optional<bool> goes_on = step_without_slice()) return *goes_on;
  before_slice();
  return after_slice(backend_.run_slice(slice_length()));
}

RunControl::Step RunControl::step_apart() {
  if (!async_) return step() ? Step::kGoesOn : Step::kEnded;
  if (!slice_runs_) {
    had_slice_ = false;
    if (const std::optional<bool> goes_on = step_without_slice())
      return *goes_on ? Step::kGoesOn : Step::kEnded;
    before_slice();
    async_->begin_slice(slice_length());
    slice_runs_ = had_slice_ = true;
  }
  if (!async_->slice_is_done()) return Step::kRuns;
  slice_runs_ = false;
  return after_slice(async_->end_slice()) ? Step::kGoesOn : Step::kEnded;
}

void RunControl::settle() {
  if (std::exchange(slice_runs_, false)) async_->end_slice();
}

std::optional<bool> RunControl::step_without_slice() {
  if (kernel_.alive() == 0) return false;
  if (is_interrupted()) {
    result_.was_interrupted = true;
    return false;
  }
  if (kernel_.is_stopped()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }
  if (kernel_.take_was_stopped()) {
    look_around();
    return true;
  }
  share_cores();
  if (!kernel_.has_usable_cores() && kernel_.alive() != 0) {
    end_without_cores();
    return false;
  }
  if (backend_.runnable() == 0) {
    if (kernel_.alive() == 0) return false;
    if (kernel_.is_deadlocked_with_others()) return goes_on_waiting();
    if (kernel_.next_deadline(Clock::now())) {
      sleep_until_something_happens();
      return true;
    }
    return goes_on_waiting();
  }
  kernel_.goes_on();
  return std::nullopt;
}

void RunControl::before_slice() {
  kernel_.begin_slice();
  observer_.before_slice();
  if (debugger_) debugger_->before_slice();
  if (options_.memory) options_.memory->begin_slice();
}

// A core that stops for a system call waits for the others: threads should not wait long, or one
// that makes or wakes hundreds of others takes hundreds of slices for it.
void RunControl::choose_slices(std::span<const Event> events) {
  constexpr uint64_t kLeast = 1 << 11, kMost = SliceOfThreads::kFirst;
  const bool has_calls =
      std::ranges::any_of(events, [](const Event& e) { return e.status == CoreStatus::kService; });
  slice_of_sharing_ = has_calls ? std::max(slice_of_sharing_ / 4, kLeast)
                                : std::min(slice_of_sharing_ * 2, kMost);
  slice_of_threads_.note(has_calls, kernel_.alive() - kernel_.parked());
}

bool RunControl::after_slice(std::span<const Event> seen) {
  // Before anyone outside hears of what the slice did: it may have lost its memory.
  if (options_.memory && !options_.memory->end_slice()) {
    result_.ran_out_of_memory = true;
    return false;
  }
  const std::vector<Event> events(seen.begin(), seen.end());
  choose_slices(events);
  observer_.slice_has_run();
  if (debugger_) debugger_->slice_has_run();
  check_code();  // before anyone outside hears of it
  translate_targets(events);
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    unhandled_ = std::span(events).subspan(i);
    for (uint32_t k = 0; k < event.count; ++k) kernel_.slice_was_short(event.core + k);
    if (is_return(event))
      end_returned(event.core, event.count);
    else
      for_each_core({&event, 1}, [this](const Event& e) { handle(e); });
  }
  unhandled_ = {};
  kernel_.leave_retired_code();
  kernel_.output().flush();
  look_around();
  if (!options_.reports_at_end) reports_.say_new();
  observer_.slice_was_handled();
  if (!options_.memory_changes_outside) {
    const bool quiet = events.empty() && !kernel_.has_queued() &&
                       !kernel_.next_deadline(Clock::now()) && !kernel_.has_cpu_timers();
    if (livelock_.after_slice(module(), backend_, plan_.config.cores, slice_length(), quiet))
      return goes_on_waiting();
  }
  if (progress_.is_due()) show_progress();
  return true;
}

bool RunControl::goes_on_waiting() {
  livelock_ = {};
  if (debugger_ && debugger_->keeps_waiting()) return true;
  result_.was_deadlocked = true;
  return false;
}

void RunControl::deliver(const Event& event) {
  is_delivering_ = true;
  translate_targets({&event, 1});
  if (is_return(event))
    end_returned(event.core, event.count);
  else
    handle(event);
  kernel_.leave_retired_code();
  is_delivering_ = false;
  kernel_.output().flush();
  reports_.say_new();
}

std::vector<std::string> RunControl::waits() {
  return describe_waits(module(), backend_, kernel_, call_frames());
}

std::vector<std::string> RunControl::threads_without_core() {
  return describe_threads_without_core(module(), backend_, kernel_, call_frames());
}

void RunControl::deliver_ending(uint32_t core, int signal) {
  if (!kernel_.is_alive(core)) return;
  const Event event{.core = core, .uop = kNoUop};
  record(describe_signal(module(), event, signal));
  end_process(core, 128 + signal);
  reports_.say_new();
}

RunResult RunControl::finish() {
  progress_.clear();
  if (result_.was_deadlocked) report_deadlock();
  reports_.finish();
  std::stable_sort(result_.stops.begin(), result_.stops.end(),
                   [](const StopRecord& a, const StopRecord& b) { return a.core < b.core; });
  result_.reports = reports_.all();
  result_.exit_status = exit_status();
  return std::move(result_);
}

std::vector<uint64_t> RunControl::reported_places(size_t most) const {
  std::vector<uint64_t> places;
  for (const StopReport& report : reports_.all())
    for (const CallPlace& place : report.calls.places)
      if (places.size() < most) places.push_back(place.inside());
  return places;
}

void RunControl::tell_lines(const LineTable& lines) {
  call_frames().tell_lines(lines);
  reports_.find_frames([this](const CallStack& calls) { return call_frames().frames(calls); });
}

// Code that was changed beside data: what ran since may be wrong and ends here.
void RunControl::check_code() {
  for (const CodeGuard::Change& change : guard_.find_changes()) {
    if (!kernel_.is_alive(change.core)) continue;
    const Event event{.core = change.core,
                      .status = CoreStatus::kJump,
                      .uop = kNoUop,
                      .address = change.pc};
    record(describe_written_code(module(), plan_, event, kOverOwnCode));
    end_process(change.core, 128 + fault_signal(Fault::kModifiedCode));
  }
}

void RunControl::share_cores() {
  kernel_.share_cores();
  end_killed();  // by a signal that waited for a thread without a core
}

void RunControl::look_around() {
  share_cores();
  const auto now = Clock::now();
  kernel_.expire(now);
  kernel_.after_slice(now);
  end_killed();
}

// Processes that ended by a signal which was not the event's own doing.
void RunControl::end_killed() {
  for (const Kernel::Killed& killed : kernel_.take_killed()) {
    if (kernel_.is_alive(killed.core))
      end_by_signal({.core = killed.core, .uop = kNoUop}, killed.signal);
  }
}

void RunControl::end_by_signal(const Event& event, int signal) {
  if (debugger_ && debugger_->keeps_ending(event.core, signal)) return;
  kernel_.set_end_signal(signal);
  if (kernel_.is_child()) return end_process(event.core, 128 + signal);  // its parent tells
  record(describe_signal(module(), event, signal));
  end_process(event.core, 128 + signal);
}

void RunControl::handle(const Event& event) {
  if (!kernel_.is_alive(event.core)) return;  // ended by an earlier core's exit_group
  switch (event.status) {
    case CoreStatus::kService:
      return handle_service(event);
    case CoreStatus::kJump:
      return handle_jump(event);
    case CoreStatus::kFault:
      return handle_fault(event);
    case CoreStatus::kLimit:
      return handle_limit(event);
    case CoreStatus::kCtaEnd:  // of modules that are not run here
    case CoreStatus::kIdle:
    case CoreStatus::kRunnable:
      return;
  }
}

// Its thread ends with the core, and no other one gets the core.
void RunControl::handle_limit(const Event& event) {
  if (kernel_.core_is_spent(event.core, event.uop)) return observer_.thread_ended(event.core);
  record(describe_limit(module(), event, options_.max_instructions));
  kernel_.retire_core(event.core);
}

void RunControl::handle_fault(const Event& event) {
  if (event.fault == Fault::kStoreAccess) {
    switch (guard_.on_store_fault(event.core, event.address)) {
      case CodeGuard::Store::kElsewhere:
        break;
      case CodeGuard::Store::kBesideCode:
        return backend_.start(event.core, event.uop);
      case CodeGuard::Store::kIntoCode:
        tallies_.stopped_inside(module(), event.core, event.uop, true);
        return end_faulted(describe_written_code(module(), plan_, event, kOverOwnCode));
    }
    if (store_beside_late_code(event) || repeats_store(event)) return;
  }
  if (event.fault == Fault::kFetchAccess && finds_late_code(event)) return;
  if (debugger_keeps(event, event.fault)) return;
  tallies_.stopped_inside(module(), event.core, event.uop, !is_fetch_fault(event.fault));
  const uint64_t pc = uop_pc(module(), event.uop);
  const uint64_t address = is_fetch_fault(event.fault) ? pc : event.address;
  if (kernel_.fault(event.core, pc, event.fault, address)) return;
  end_faulted(describe_fault(module(), plan_, event, event.fault));
}

// A store to a page that holds code which was translated after the program had mapped or written
// it.
bool RunControl::store_beside_late_code(const Event& event) {
  LateCode* const code = kernel_.late_code();
  if (!code) return false;
  const uint64_t pc = uop_pc(module(), event.uop);
  const LateCode::Store store = code->on_store_fault(event.core, event.address);
  if (store == LateCode::Store::kElsewhere) return false;
  tallies_.stopped_inside(module(), event.core, event.uop, false);
  if (store == LateCode::Store::kBesideCode) {
    LateCode::Opened opened(*code, event.core, event.address);
    kernel_.go_on_at(event.core, step_beside(opened, event.core, pc));
    return true;
  }
  kernel_.go_on_at(event.core, pc);
  return true;
}

// Another core's store of this slice, or a call, has opened the page since. The host executes this
// one, as it knows how wide the store is: it may reach into a page that may not be written.
bool RunControl::repeats_store(const Event& event) {
  if (!kernel_.late_code() || !translator_.flags_are_exact()) return false;
  if (debugger_ && !is_delivering_) return false;  // it may have closed the page, to see the store
  if (!(backend_.permissions(event.core, event.address) & kWrite)) return false;
  const uint64_t pc = uop_pc(module(), event.uop);
  gdb::HostStepper stepper(translator_, backend_);
  const gdb::StepResult result = stepper.step(event.core, pc, {});
  const bool is_done = result.kind == gdb::StepResult::Kind::kDone;
  // Its own code may be what was retired.
  if (!is_done && result.kind != gdb::StepResult::Kind::kNoCode) return false;
  tallies_.stopped_inside(module(), event.core, event.uop, false);
  if (is_done) count_instruction(event.core, result.insn_class);
  kernel_.go_on_at(event.core, is_done ? result.next_pc : pc);
  return true;
}

// Compilers fill a page by many stores, each of which would come here: what follows the first is
// stepped, too, as long as the core is outside of the open pages. Returns where it goes on.
uint64_t RunControl::step_beside(LateCode::Opened& opened, uint32_t core, uint64_t pc) {
  constexpr int kSteps = 1000;
  gdb::HostStepper stepper(translator_, backend_);
  for (int step = 0; step < kSteps && (step == 0 || !opened.holds(pc)); ++step) {
    gdb::StepResult result = stepper.step(core, pc, {});
    // Half of a pair may lie in another such page.
    while (result.kind == gdb::StepResult::Kind::kFault && opened.open(result.address))
      result = stepper.step(core, pc, {});
    if (result.kind != gdb::StepResult::Kind::kDone) break;
    count_instruction(core, result.insn_class);
    pc = result.next_pc;
  }
  return pc;
}

// A branch led to a place where there was no code when it was translated.
bool RunControl::finds_late_code(const Event& event) {
  if (!kernel_.late_code()) return false;
  const Translator::Place place = translator_.block_at(uop_pc(module(), event.uop));
  if (place.uop == kNoUop) return false;
  if (place.is_new) backend_.module_changed();
  kernel_.go_on(event.core, place.uop);
  return true;
}

// Of a process that started as one, a fault ends all threads; cores of a machine end one by one.
void RunControl::end_faulted(StopRecord stop) {
  const uint32_t core = stop.core;
  const int status = stop.exit_status;
  kernel_.set_end_signal(status - 128);
  record(std::move(stop));
  if (kernel_.starts_alone()) end_process(core, status);
}

void RunControl::handle_service(const Event& event) {
  switch (event.service) {
    case Service::kReadCounter: {
      const GuestIsa& isa = *find_isa(module().isa);
      uint64_t value = counter_value();
      if (isa.register_bits == 32) value >>= backend_.slot(event.core, event.slot) & 32;
      backend_.set_slot(event.core, event.slot, isa.in_register(value));
      return kernel_.go_on(event.core, event.uop);
    }
    case Service::kReadCounterFrequency:
      backend_.set_slot(event.core, event.slot, kCounterFrequency);
      return kernel_.go_on(event.core, event.uop);
    case Service::kTimeRelease:
    case Service::kTimeAcquire:
      handle_time(event);
      return kernel_.go_on(event.core, event.uop);
    case Service::kSyscall:
      break;
  }
  const Reply reply = kernel_.handle(event.core, event.uop);
  switch (reply.kind) {
    case Reply::Kind::kResult:
      kernel_.resume(event.core, event.uop, reply.value);
      break;
    case Reply::Kind::kParked:
      kernel_.hear_signals(event.core);
      break;
    case Reply::Kind::kJump:
      handle_jump({.core = event.core,
                   .status = CoreStatus::kJump,
                   .uop = event.uop,
                   .address = static_cast<uint64_t>(reply.value)});
      break;
    case Reply::Kind::kExitThread:
      return end_core(event.core, static_cast<int>(reply.value));
    case Reply::Kind::kExitProcess:
      return end_process(event.core, static_cast<int>(reply.value));
    case Reply::Kind::kSignal:
      return end_by_signal(event, static_cast<int>(reply.value));
  }
  end_killed();
}

void RunControl::handle_time(const Event& event) {
  const auto argument = [&](int i) {
    const int slot = module().abi.call_args[i];
    return slot == kNoSlot ? 0 : backend_.slot(event.core, static_cast<Slot>(slot));
  };
  observer_.time_service(event.core, event.service, argument(0), argument(1));
}

void RunControl::translate_targets(std::span<const Event> events) {
  bool grew = false;
  for (const Event& event : events) {
    if (event.status != CoreStatus::kJump) continue;
    if (is_return(event)) continue;
    grew |= translator_.block_at(event.address).is_new;
  }
  if (grew) backend_.module_changed();
}

void RunControl::handle_jump(const Event& event) {
  if (is_return(event)) return end_core(event.core, 0);  // from a signal handler
  if (kernel_.is_signal_return(event.core, event.address)) {
    constexpr uint64_t kInstructions = 2;  // of the code there
    tallies_.add(event.core, InsnClass::kOther, kInstructions);
    const Reply reply = kernel_.signal_return(event.core);
    if (reply.kind == Reply::Kind::kJump)
      return handle_jump({.core = event.core,
                          .status = CoreStatus::kJump,
                          .uop = event.uop,
                          .address = static_cast<uint64_t>(reply.value)});
    if (reply.kind == Reply::Kind::kSignal)
      end_by_signal(event, static_cast<int>(reply.value));
    return end_killed();
  }
  const Translator::Place place = translator_.block_at(event.address);
  if (place.is_new) backend_.module_changed();
  if (guard_.protect_new_blocks(event.core))
    return end_faulted(describe_written_code(module(), plan_, event, kOverOwnCode));
  if (place.uop == kNoUop && guard_.is_written_code(event.core, event.address))
    return end_faulted(describe_written_code(module(), plan_, event, why_not_executed(event)));
  if (place.uop != kNoUop) return kernel_.go_on(event.core, place.uop);
  if (debugger_keeps(event, place.fault)) return;
  if (kernel_.fault(event.core, event.address, place.fault, event.address)) return;
  if (backend_.permissions(event.core, event.address) & kWrite)
    return end_faulted(describe_written_code(module(), plan_, event, why_not_executed(event)));
  end_faulted(describe_fault(module(), plan_, event, place.fault));
}

// Of code that the program wrote elsewhere than over its own.
std::string RunControl::why_not_executed(const Event& event) {
  if (!kernel_.late_code())
    return "; it is executed only on a CPU and with --memory shared";
  if (!(backend_.permissions(event.core, event.address) & kExecute))
    return " in memory that may not be executed; take memory for it by mmap with PROT_EXEC";
  return fmt::format(
      " too far away; it is executed in the {} MiB from the program on, where mmap with PROT_EXEC "
      "finds a place",
      kCodeLimit >> 20);
}

void RunControl::tell_death(uint32_t core, int signal, uint64_t pc) {
  if (!options_.on_death || kernel_.is_child()) return;
  const auto tell = std::exchange(options_.on_death, nullptr);
  kernel_.output().flush();
  tell({.core = core, .signal = signal, .pc_of = [=, this](uint32_t of) {
          return of == core && pc != 0 ? pc : pc_of(of);
        }});
}

// Where the core is, whatever became of it in this slice.
uint64_t RunControl::pc_of(uint32_t core) {
  const auto event = std::partition_point(
      unhandled_.begin(), unhandled_.end(),
      [&](const Event& e) { return e.core + e.count <= core; });  // they are in core order
  if (event != unhandled_.end() && event->core <= core) {
    if (event->status == CoreStatus::kJump) return event->address;
    if (event->uop >= module().uops.size()) return 0;
    return event->status == CoreStatus::kFault ? uop_pc(module(), event->uop)
                                               : place_pc(module(), event->uop);
  }
  if (kernel_.is_parked(core)) {
    const std::optional<uint32_t> uop = kernel_.parked_at(core);
    return uop && *uop < module().uops.size() ? place_pc(module(), *uop) : 0;
  }
  if (!kernel_.has_core(core)) {
    const uint32_t uop = kernel_.queued_at(core).value_or(kNoUop);
    return uop < module().uops.size() ? place_pc(module(), uop) : 0;
  }
  return backend_.place(core) < module().uops.size() ? settled_pc(backend_, module(), core) : 0;
}

void RunControl::record(StopRecord stop) {
  constexpr int kSignalled = 128;
  if (stop.exit_status > kSignalled) tell_death(stop.core, stop.exit_status - kSignalled, stop.pc);
  const uint32_t core = stop.core;
  const int status = stop.exit_status;
  const CallPlace place{.pc = stop.pc, .is_return = stop.pc_is_return};
  const CallStack stack = place.pc == 0 ? CallStack{} : call_frames().stack(core, place);
  stop.core += plan_.first_core;  // what is told names cores of the whole machine
  stop.report = reports_.add(stop, stack, [&] { return call_frames().frames(stack); });
  result_.stops.push_back(std::move(stop));
  end_core(core, status);
}

CallFrames& RunControl::call_frames() {
  if (!call_frames_)
    call_frames_ = std::make_unique<CallFrames>(module(), kernel_, options_.program);
  return *call_frames_;
}

void RunControl::end_core(uint32_t core, int status) {
  if (!kernel_.is_alive(core)) return;
  const bool is_first = kernel_.starts_alone() && kernel_.is_first_thread(core);
  if (!kernel_.has_core(core)) return kernel_.end_thread(core);
  backend_.stop(core);
  kernel_.end_thread(core);
  observer_.thread_ended(core);
  // A thread's own status is nobody's concern; the process's is that of its first one, or of who
  // ended it.
  if (!kernel_.starts_alone() || is_first || kernel_.alive() == 0)
    status_[core] = static_cast<int16_t>(status);
}

bool RunControl::is_return(const Event& event) const {
  return options_.returns_end_cores && event.status == CoreStatus::kJump &&
         event.address == return_address(module());
}

// Cores that came to the end of their function, thousands at once: as end_core() of each, with status
// 0. The machine runs none of them any more.
void RunControl::end_returned(uint32_t first, uint32_t count) {
  for (uint32_t core = first; core < first + count; ++core)
    if (kernel_.is_alive(core)) observer_.thread_ended(core);
  kernel_.end_threads(first, count);
}

void RunControl::end_process(uint32_t caller, int status) {
  if (kernel_.is_private()) return end_core(caller, status);
  if (kernel_.starts_alone()) std::fill(status_.begin(), status_.end(), int16_t{0});
  kernel_.end_threads_without_core();
  for (uint32_t core = 0; core < status_.size(); ++core) end_core(core, status);
  if (kernel_.starts_alone()) status_[0] = static_cast<int16_t>(status);
}

void RunControl::sleep_until_something_happens() {
  const auto now = Clock::now();
  kernel_.nap(std::min(*kernel_.next_deadline(now), now + options_.longest_nap));
  look_around();
}

// All cores have reached their limit, and threads are left that have none.
void RunControl::end_without_cores() {
  reports_.say_new();
  const uint32_t left = kernel_.alive();
  line_(fmt::format("{} more {}: no core is left to go on, as each reached --max-instructions {}",
                    left, left == 1 ? "thread ends" : "threads end", options_.max_instructions));
  kernel_.end_threads_without_core();
  result_.reached_limit = true;
}

// Of a run in which others failed before, that is the news: these may have waited for them.
void RunControl::report_deadlock() {
  reports_.say_new();
  for (uint32_t core = 0; core < kernel_.thread_numbers(); ++core)
    if (kernel_.is_alive(core)) {
      tell_death(core, 0, 0);
      break;
    }
  const bool is_news = exit_status() == kExitDeadlock;
  const std::string whose =
      kernel_.is_child() ? fmt::format(" of process {}", kernel_.family()->pid()) : std::string();
  const uint32_t without_core = kernel_.alive_without_core();
  const char* const what = without_core != 0 ? "threads" : "cores";
  line_(is_news
            ? fmt::format("deadlock{}: {} of {} {} have not ended and none can go on", whose,
                          kernel_.alive(), kernel_.started(), what)
            : fmt::format("{} of {} {} were left waiting when none could go on, after {}",
                          kernel_.alive(), kernel_.started(), what, why_cores_are_missing()));
  for (const std::string& line : waits()) line_(line);
  kernel_.end_threads_without_core();
  for (uint32_t core = 0; core < status_.size(); ++core) end_core(core, 0);
}

std::string RunControl::why_cores_are_missing() const {
  if (result_.stops.empty()) {
    const auto failed = std::find_if(status_.begin(), status_.end(), [](int s) { return s != 0; });
    return fmt::format("core {} had ended with status {}", failed - status_.begin(), *failed);
  }
  const bool are_limits =
      std::all_of(result_.stops.begin(), result_.stops.end(),
                  [](const StopRecord& s) { return s.exit_status == kExitLimit; });
  const size_t n = result_.stops.size();
  return fmt::format("{} had {}", n == 1 ? fmt::format("core {}", result_.stops.front().core)
                                         : fmt::format("{} cores", n),
                     are_limits ? "reached --max-instructions" : "stopped as said above");
}

void RunControl::show_progress() {
  const uint64_t instructions = tallies_.total(module(), backend_).instructions();
  progress_.show({kernel_.started(), kernel_.started() - kernel_.alive(), instructions,
                  options_.max_instructions * plan_.config.cores});
}

int RunControl::exit_status() const {
  if (result_.ran_out_of_memory) return kExitUserError;
  if (result_.was_interrupted) return 128 + *options_.interrupted;
  const auto failed = std::find_if(status_.begin(), status_.end(), [](int s) { return s != 0; });
  if (failed != status_.end()) return *failed;
  // A thread that stopped leaves no status, nor do cores that waited in the end.
  const auto first = std::min_element(
      result_.stops.begin(), result_.stops.end(),
      [](const StopRecord& a, const StopRecord& b) { return a.core < b.core; });
  if (first != result_.stops.end()) return first->exit_status;
  if (result_.reached_limit) return kExitLimit;
  return result_.was_deadlocked ? kExitDeadlock : 0;
}

}  // namespace gpusim::host
