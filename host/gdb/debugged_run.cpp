#include "host/gdb/debugged_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "device_sim/core/machine_state.h"
#include "host/gdb/condition.h"
#include "host/run/core_place.h"
#include "translator/common/isa_list.h"

namespace gpusim::host::gdb {
namespace {

// The host looks at the debugger several times a second, however many cores there are.
constexpr std::chrono::milliseconds kLongestSlice{100};
// Cores that stop do not leave the others far ahead.
constexpr uint64_t kSliceWithStops = 1 << 14;
// What others do while one steps.
constexpr uint64_t kSliceBesideStep = 32;

}  // namespace

DebuggedRun::DebuggedRun(Translator& translator, Backend& backend, const MemoryPlan& plan,
                         Kernel& kernel, RunControl& control)
    : translator_(translator),
      backend_(backend),
      plan_(plan),
      kernel_(kernel),
      control_(control),
      registers_(*find_isa(translator.module().isa), translator.module(), backend),
      stepper_(translator, backend),
      held_(plan.config.cores, 0),
      pc_(plan.config.cores, 0),
      action_(plan.config.cores, Action::kGo) {
  kernel_.set_held([this](uint32_t core) { return held_[core] != 0; });
  if (auto* const state = dynamic_cast<CpuMachineState*>(&backend_))
    state->limit_slices(kLongestSlice);
}

// --- where cores are

std::optional<uint32_t> DebuggedRun::first_alive(uint32_t from) const {
  for (uint32_t core = from; core < cores(); ++core)
    if (is_alive(core)) return core;
  return std::nullopt;
}

uint64_t DebuggedRun::place_of(uint32_t core) { return settled_pc(backend_, module(), core); }

uint64_t DebuggedRun::pc(uint32_t core) {
  const bool has_core = kernel_.has_core(core);
  if (has_core && held_[core]) return pc_[core];
  if (kernel_.is_parked(core) || !has_core) {
    const std::optional<uint32_t> uop =
        kernel_.is_parked(core) ? kernel_.parked_at(core) : kernel_.queued_at(core);
    return uop ? place_pc(module(), *uop) : 0;
  }
  return place_of(core);
}

bool DebuggedRun::set_pc(uint32_t core, uint64_t pc) {
  if (!may_be_moved(core)) return false;
  hold(core, find_isa(module().isa)->in_register(pc));
  kept_.erase(core);
  return true;
}

void DebuggedRun::hold(uint32_t core, uint64_t pc) {
  backend_.stop(core);
  held_[core] = 1;
  pc_[core] = pc;
}

// Cores that are held go on.
void DebuggedRun::start(const std::vector<uint32_t>& cores) {
  bool grew = false;
  for (const uint32_t core : cores) grew |= translator_.block_at(pc_[core]).is_new;
  if (grew) backend_.module_changed();
  for (const uint32_t core : cores) {
    if (!is_alive(core)) continue;
    const Translator::Place place = translator_.block_at(pc_[core]);
    if (place.uop == kNoUop) {
      const Event jump{
          .core = core, .status = CoreStatus::kJump, .uop = kNoUop, .address = pc_[core]};
      held_[core] = 0;
      if (!keeps(jump, place.fault)) control_.deliver(jump);
      continue;
    }
    held_[core] = 0;
    backend_.start(core, place.uop);
  }
}

// --- stops

void DebuggedRun::keep(uint32_t core, uint64_t pc, const Stop& stop) {
  hold(core, pc);
  stops_.push_back(stop);
  stops_.back().core = core;
}

bool DebuggedRun::keep_fault(uint32_t core, uint64_t pc, const Event& event, Fault fault) {
  const int signal = fault_signal(fault);
  if (passed_.contains(signal)) return false;
  kept_[core] = {.event = event, .signal = signal};
  keep(core, pc, {.why = Stop::Why::kSignal, .signal = signal, .watch = {}});
  return true;
}

bool DebuggedRun::keeps(const Event& event, Fault fault) {
  const uint32_t core = event.core;
  if (event.status == CoreStatus::kJump)
    return is_attached_ && keep_fault(core, event.address, event, fault);
  const uint64_t pc = event.uop < module().uops.size() ? uop_pc(module(), event.uop) : 0;
  if (fault == Fault::kBreakpoint && translator_.is_breakpoint(event.uop)) {
    if (is_wanted(pc, core)) {
      keep(core, pc, {.why = Stop::Why::kBreakpoint, .watch = {}});
    } else {
      backend_.start(core, translator_.behind_breakpoint(pc));
    }
    return true;
  }
  if (!is_attached_) return false;
  if ((fault == Fault::kLoadAccess || fault == Fault::kStoreAccess) && is_watched(event.address)) {
    const StepResult result = stepper_.step(core, pc, watches_);
    if (result.kind == StepResult::Kind::kWatched) {
      keep(core, pc, {.why = Stop::Why::kWatch, .watch = result.watch, .address = result.address});
      return true;
    }
    if (result.kind == StepResult::Kind::kDone) {
      control_.count_instruction(core, result.insn_class);
      hold(core, result.next_pc);
      start({core});
      return true;
    }
  }
  return keep_fault(core, pc, event, fault);
}

bool DebuggedRun::keeps_ending(uint32_t core, int signal) {
  if (!is_attached_ || signal == SIGKILL || passed_.contains(signal)) return false;
  const uint64_t place = pc(core);
  kept_[core] = {.event = {}, .signal = signal};
  keep(core, place, {.why = Stop::Why::kSignal, .signal = signal, .watch = {}});
  return true;
}

bool DebuggedRun::keeps_waiting() {
  if (!is_attached_) return false;
  for (uint32_t core = 0; core < cores(); ++core)
    if (is_alive(core) && action_[core] != Action::kStand) {
      stops_.push_back({.why = Stop::Why::kWaiting, .core = core, .signal = SIGINT, .watch = {}});
      return true;
    }
  return false;
}

// A core came to a breakpoint: whether it stops.
bool DebuggedRun::is_wanted(uint64_t pc, uint32_t core) {
  const auto found = breakpoints_.find(pc);
  if (!is_attached_ || found == breakpoints_.end()) {
    ++passed_stale_;
    return false;
  }
  const ConditionContext context{.read_register = [&](uint32_t number) -> std::optional<uint64_t> {
                                   if (number >= registers_.count()) return std::nullopt;
                                   uint64_t value = 0;
                                   const std::vector<uint8_t> bytes =
                                       registers_.read(core, number, pc);
                                   for (size_t i = std::min<size_t>(bytes.size(), 8); i-- > 0;)
                                     value = value << 8 | bytes[i];
                                   return value;
                                 },
                                 .read_memory =
                                     [&](uint64_t address, std::span<uint8_t> out) {
                                       return backend_.permissions(core, address) != 0 &&
                                              backend_.read_memory(core, address, out);
                                     }};
  const Conditions& conditions = found->second;
  return conditions.empty() || std::ranges::any_of(conditions, [&](const auto& code) {
           return evaluate_condition(code, context).value_or(1) != 0;
         });
}

// The first stop of a core that was resumed. Those at breakpoints that are gone, or from which the
// core was moved, are none.
std::optional<Stop> DebuggedRun::take_stop() {
  for (auto it = stops_.begin(); it != stops_.end();) {
    const bool is_void =
        !is_alive(it->core) ||
        (it->why == Stop::Why::kBreakpoint && !breakpoints_.contains(pc(it->core))) ||
        (it->why == Stop::Why::kWatch &&
         std::ranges::find(watches_, it->watch) == watches_.end()) ||
        (it->why == Stop::Why::kSignal && !kept_.contains(it->core));
    if (is_void) {
      const uint32_t core = it->core;
      it = stops_.erase(it);
      if (may_be_moved(core) && held_[core] && action_[core] == Action::kGo) start({core});
      it = stops_.begin();  // a start may add some
      continue;
    }
    if (action_[it->core] == Action::kStand) {
      ++it;
      continue;
    }
    const Stop stop = *it;
    stops_.erase(it);
    return stop;
  }
  return std::nullopt;
}

std::optional<Stop> DebuggedRun::untold_stop(uint32_t core) const {
  const auto found = std::ranges::find_if(stops_, [&](const Stop& s) { return s.core == core; });
  return found == stops_.end() ? std::nullopt : std::optional(*found);
}

// --- breakpoints and watches in the machine

void DebuggedRun::set_breakpoints(std::map<uint64_t, Conditions> breakpoints) {
  breakpoints_ = std::move(breakpoints);
}

// All code is translated anew, and cores change over to it. Breakpoints that went stay in the code
// until others come, or too many cores have passed them.
void DebuggedRun::take_up_breakpoints() {
  constexpr uint64_t kMostStale = 1000;
  const bool are_there =
      std::ranges::all_of(breakpoints_, [&](const auto& b) { return placed_.contains(b.first); });
  if (is_attached_ && are_there && passed_stale_ <= kMostStale) return;
  std::vector<uint32_t> running;
  for (uint32_t core = 0; core < cores(); ++core)
    if (may_be_moved(core) && !held_[core]) {
      hold(core, place_of(core));
      running.push_back(core);
    }
  placed_.clear();
  passed_stale_ = 0;
  for (const auto& [address, conditions] : breakpoints_) placed_.insert(address);
  translator_.set_breakpoints({placed_.begin(), placed_.end()});
  kernel_.forget_code();
  is_attached_ = true;
  start(running);
}

std::vector<uint64_t> DebuggedRun::watched_pages() const {
  std::set<uint64_t> pages;
  for (const Watch& w : watches_)
    for (uint64_t page = page_down(w.address); page < w.address + w.size_bytes; page += kPageSize)
      pages.insert(page);
  return {pages.begin(), pages.end()};
}

// The widest access of a micro-op has 16 bytes, and may begin in the page before.
bool DebuggedRun::is_watched(uint64_t address) const {
  if (watches_.empty()) return false;
  const std::vector<uint64_t> pages = watched_pages();
  for (const uint64_t at : {address, address + 15})
    if (std::ranges::find(pages, page_down(at)) != pages.end()) return true;
  return false;
}

uint64_t DebuggedRun::longest_slice() {
  if (!steps_.empty()) return kSliceBesideStep;
  return breakpoints_.empty() && watches_.empty() ? ~uint64_t{0} : kSliceWithStops;
}

// Pages with watched bytes lose rights while cores run: whoever accesses them stops.
void DebuggedRun::before_slice() {
  if (!all_go_)
    for (uint32_t core = 0; core < cores(); ++core)
      if (action_[core] != Action::kGo && may_be_moved(core) && !held_[core])
        hold(core, place_of(core));
  if (watches_.empty()) return;
  const bool is_private = plan_.config.memory_model == MemoryModel::kPrivate;
  for (const uint64_t page : watched_pages()) {
    uint8_t lost = 0;
    for (const Watch& w : watches_)
      if (w.address < page + kPageSize && page < w.address + w.size_bytes)
        lost |= w.kind == WatchKind::kWrite ? kWrite : kRead | kWrite;
    const bool is_linear = page - plan_.config.linear_base < plan_.config.linear_size;
    const uint32_t end = is_private && !is_linear ? cores() : 1;
    for (uint32_t core = 0; core < end; ++core) {
      const uint8_t rights = backend_.permissions(core, page);
      if ((rights & lost) == 0) continue;
      armed_.push_back({core, page, rights});
      backend_.set_permissions(core, page, kPageSize, static_cast<uint8_t>(rights & ~lost));
    }
  }
}

void DebuggedRun::slice_has_run() {
  for (const Armed& a : armed_) backend_.set_permissions(a.core, a.page, kPageSize, a.rights);
  armed_.clear();
}

// --- running

void DebuggedRun::let_kept_act(uint32_t core, int signal) {
  const auto found = kept_.find(core);
  if (found == kept_.end()) return;
  const Kept kept = found->second;
  kept_.erase(found);
  std::erase_if(stops_,
                [&](const Stop& s) { return s.core == core && s.why == Stop::Why::kSignal; });
  if (signal != kept.signal) return;  // the core tries again
  held_[core] = 0;
  if (kept.event)
    control_.deliver(*kept.event);
  else
    control_.deliver_ending(core, kept.signal);
}

// A core that is held executes one instruction.
void DebuggedRun::step_core(uint32_t core) {
  const uint64_t pc = pc_[core];
  const StepResult result = stepper_.step(core, pc, watches_);
  switch (result.kind) {
    case StepResult::Kind::kDone:
      control_.count_instruction(core, result.insn_class);
      pc_[core] = result.next_pc;
      return;
    case StepResult::Kind::kWatched:
      return keep(core, pc,
                  {.why = Stop::Why::kWatch, .watch = result.watch, .address = result.address});
    case StepResult::Kind::kNoCode:
      return start({core});
    case StepResult::Kind::kService:
      control_.count_instruction(core, result.insn_class);
      return step_service(core, result);
    case StepResult::Kind::kFault: {
      const Translator::Place place = translator_.block_at(pc);
      if (place.is_new) backend_.module_changed();
      const Event event{.core = core,
                        .status = CoreStatus::kFault,
                        .fault = result.fault,
                        .uop = place.uop,
                        .address = result.address};
      if (keep_fault(core, pc, event, result.fault)) return;
      held_[core] = 0;
      return control_.deliver(event);
    }
  }
}

void DebuggedRun::step_service(uint32_t core, const StepResult& result) {
  const Translator::Place place = translator_.block_at(result.next_pc);
  if (place.is_new) backend_.module_changed();
  held_[core] = 0;
  if (place.uop == kNoUop) {  // nothing follows that a call could return to
    hold(core, result.next_pc);
    return start({core});
  }
  control_.deliver({.core = core,
                    .status = CoreStatus::kService,
                    .service = result.service,
                    .slot = result.slot,
                    .uop = place.uop});
  if (may_be_moved(core) && !held_[core]) hold(core, place_of(core));
}

// Those that are to step do so; `alone`: as far as their ranges reach.
void DebuggedRun::step_cores(bool alone) {
  constexpr int kMostInARow = 1000;  // then the debugger is heard
  for (Stepping& s : steps_) {
    for (int i = 0; i < (alone ? kMostInARow : 1) && !s.is_done; ++i) {
      const uint32_t core = s.one.core;
      if (!is_alive(core)) {
        s.is_done = true;
        break;
      }
      if (kernel_.is_parked(core)) {
        s.in_call = true;
        break;
      }
      if (!held_[core]) hold(core, place_of(core));
      const size_t stops = stops_.size();
      if (!s.in_call) step_core(core);
      if (stops_.size() != stops || !is_alive(core)) {
        s.is_done = true;
      } else if (!kernel_.is_parked(core)) {
        const bool goes_on = pc_[core] >= s.one.range_begin && pc_[core] < s.one.range_end &&
                             !breakpoints_.contains(pc_[core]);
        s.in_call = false;
        if (goes_on) continue;
        s.is_done = true;
        stops_.push_back({.why = Stop::Why::kStep, .core = core, .watch = {}});
      }
    }
  }
  std::erase_if(steps_, [](const Stepping& s) { return s.is_done; });
}

// Often a new breakpoint is only a few instructions ahead of the core that the user looks at: then
// nothing has to be translated anew.
void DebuggedRun::try_to_reach_breakpoint(uint32_t core) {
  constexpr int kFew = 16;
  const size_t stops = stops_.size();
  for (int i = 0; i < kFew; ++i) {
    if (!may_be_moved(core) || !held_[core] || stops_.size() != stops) return;
    step_core(core);
    if (may_be_moved(core) && held_[core] && stops_.size() == stops &&
        breakpoints_.contains(pc_[core]) && is_wanted(pc_[core], core))
      return keep(core, pc_[core], {.why = Stop::Why::kBreakpoint, .watch = {}});
  }
}

bool DebuggedRun::anyone_resumed() const {
  for (uint32_t core = 0; core < cores(); ++core)
    if (is_alive(core) && action_[core] != Action::kStand) return true;
  return false;
}

void DebuggedRun::begin(const Resume& resume) {
  std::fill(action_.begin(), action_.end(), resume.others);
  steps_.clear();
  for (const Resume::One& one : resume.ones) {
    action_[one.core] = one.action;
    if (one.action == Action::kStep) steps_.push_back({.one = one});
  }
  const auto is_go = [](Action a) { return a == Action::kGo; };
  all_go_ = std::ranges::all_of(action_, is_go);
  any_go_ = std::ranges::any_of(action_, is_go);
  for (const Resume::One& one : resume.ones)
    if (one.action != Action::kStand) let_kept_act(one.core, one.signal);
  // Of the others the debugger said nothing: they try again what they stopped at.
  std::vector<uint32_t> kept;
  for (const auto& [core, what] : kept_)
    if (action_[core] != Action::kStand && !untold_stop(core)) kept.push_back(core);
  for (const uint32_t core : kept) let_kept_act(core, 0);
}

std::vector<uint32_t> DebuggedRun::held_to_go() const {
  std::vector<uint32_t> list;
  for (uint32_t core = 0; core < cores(); ++core)
    if (held_[core] && is_alive(core) && action_[core] == Action::kGo) list.push_back(core);
  return list;
}

std::optional<Stop> DebuggedRun::go(const Resume& resume, const std::function<bool()>& looks) {
  begin(resume);
  if (auto stop = take_stop()) return stop;
  if (any_go_) {
    const bool is_new = std::ranges::any_of(
        breakpoints_, [&](const auto& b) { return !placed_.contains(b.first); });
    if (is_new && is_alive(resume.focus) && action_[resume.focus] == Action::kGo)
      try_to_reach_breakpoint(resume.focus);
    if (auto stop = take_stop()) return stop;
    take_up_breakpoints();
    start(held_to_go());
    if (auto stop = take_stop()) return stop;
  }
  for (;;) {
    const size_t stops = stops_.size();
    step_cores(/*alone=*/!any_go_);
    const bool has_stepped = stops_.size() == stops + 1 && stops_.back().why == Stop::Why::kStep;
    if (!(has_stepped && any_go_))
      if (auto stop = take_stop()) return stop;
    // A core that steps may wait for the others.
    const bool is_in_call =
        std::ranges::any_of(steps_, [](const Stepping& s) { return s.in_call; });
    if (any_go_ || is_in_call || kernel_.alive() == 0)
      if (!control_.step()) return std::nullopt;
    if (auto stop = take_stop()) return stop;
    const auto some = [&] {
      return is_alive(resume.focus) ? resume.focus : first_alive().value_or(0);
    };
    if (looks() && kernel_.alive() != 0)
      return Stop{.why = Stop::Why::kInterrupt, .core = some(), .signal = SIGINT, .watch = {}};
    if (kernel_.alive() != 0 && !anyone_resumed())
      return Stop{.why = Stop::Why::kGone, .core = some(), .watch = {}};
  }
}

void DebuggedRun::let_go() {
  breakpoints_.clear();
  watches_.clear();
  passed_.clear();
  steps_.clear();
  std::fill(action_.begin(), action_.end(), Action::kGo);
  all_go_ = any_go_ = true;
  if (!placed_.empty()) {
    passed_stale_ = ~uint64_t{0};
    take_up_breakpoints();
  }
  stops_.clear();
  is_attached_ = false;
  std::vector<std::pair<uint32_t, int>> kept;
  for (const auto& [core, what] : kept_) kept.emplace_back(core, what.signal);
  for (const auto& [core, signal] : kept) let_kept_act(core, signal);
  start(held_to_go());
}

// --- for the user

std::string DebuggedRun::state(uint32_t core) {
  if (const auto kept = kept_.find(core); kept != kept_.end())
    return fmt::format("stopped by SIG{}", ::sigabbrev_np(kept->second.signal));
  if (const Waiter* const waiter = kernel_.waits().find(core)) {
    if (waiter->address == 0) return "sleeps";
    return "waits for a futex at " + symbolize(module(), waiter->address);
  }
  if (kernel_.is_parked(core)) return "waits in a system call";
  if (!kernel_.has_core(core)) return "waits for a core";
  const int monitor = module().abi.monitor;
  const uint64_t marked =
      monitor == kNoSlot ? kNoMonitor : backend_.slot(core, static_cast<Slot>(monitor));
  if (marked != kNoMonitor && marked != kLocalEvent && backend_.permissions(core, marked) != 0)
    return "looks at " + symbolize(module(), marked);
  return "runs";
}

}  // namespace gpusim::host::gdb
