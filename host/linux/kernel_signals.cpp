// Threads of the kernel model, and the delivery of signals to them.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "device_sim/core/memory_view.h"
#include "host/linux/futex.h"
#include "host/linux/kernel.h"
#include "host/linux/times.h"
#include "host/run/core_place.h"

namespace gpusim::host {

// --- where cores go on

uint32_t Kernel::place_at(uint64_t pc) {
  if (!config_.translator) return kNoUop;
  const Translator::Place place = config_.translator->block_at(pc);
  if (place.is_new) backend_.module_changed();
  return place.uop;
}

bool Kernel::starts_block(uint32_t uop) const {
  if (uop >= module().uops.size()) return false;
  const Block& block = module().blocks[module().uop_block[uop]];
  return block.first_uop == uop && block.insn_count != 0;  // else it stands for a bad target
}

void Kernel::start_at(uint32_t core, uint64_t pc) {
  const uint32_t uop = place_at(pc);
  if (uop != kNoUop) return backend_.start(core, uop);
  // As if it had jumped there.
  const bool aligned = module().code.is_aligned(pc);
  if (!fault(core, pc, aligned ? Fault::kFetchAccess : Fault::kFetchAlignment, pc))
    kill(core, SIGSEGV);
}

void Kernel::go_on(uint32_t core, uint32_t uop) {
  threads_.set_parked(core, false);
  Thread* const thread = threads_.find(core);
  if (thread) {
    thread->retry_deadline.reset();
    thread->retry_done = 0;
    thread->opening.reset();
    thread->waits_for_lock_of.reset();
  }
  if (!has_core(core)) {
    // The mask of a call that is over goes with it, unless a signal came that ends it.
    if (thread && thread->saved_mask && deliverable(core) == 0)
      thread->mask = *std::exchange(thread->saved_mask, std::nullopt);
    return queue(core, uop);
  }
  if (config_.translator && deliverable(core) != 0) {
    const uint64_t pc = place_pc(module(), uop);
    const std::optional<uint64_t> to = deliver(core, pc);
    if (!to) return;
    if (*to != pc) return start_at(core, *to);
  }
  if (thread && thread->saved_mask)
    thread->mask = *std::exchange(thread->saved_mask, std::nullopt);
  if (uop < first_exact_uop_ && starts_block(uop)) return start_at(core, place_pc(module(), uop));
  backend_.start(core, uop);
  if (uop < first_exact_uop_ && late_code_) move_to_new_code(core);
}

void Kernel::go_on_at(uint32_t core, uint64_t pc) {
  const uint32_t uop = place_at(pc);
  return uop != kNoUop ? go_on(core, uop) : start_at(core, pc);
}

void Kernel::move_to_new_code(uint32_t core) {
  const uint64_t pc = settled_pc(backend_, module(), core);
  backend_.stop(core);
  start_at(core, pc);
}

void Kernel::leave_retired_code() {
  if (!late_code_) return;
  const bool makes_exact = late_code_->has_watched() && !config_.translator->flags_are_exact();
  if (!late_code_->take_retired() && !makes_exact) return;
  std::vector<uint32_t> running;
  for (uint32_t core = 0; core < threads_.size(); ++core)
    if (threads_.runs(core) && !(is_held_ && is_held_(core)))
      running.push_back(core);
  std::vector<uint64_t> places;
  for (const uint32_t core : running) {
    places.push_back(settled_pc(backend_, module(), core));
    backend_.stop(core);
  }
  forget_code();
  if (makes_exact) config_.translator->make_flags_exact();
  backend_.module_changed();
  for (size_t i = 0; i < running.size(); ++i) start_at(running[i], places[i]);
}

void Kernel::move_to_exact_code() {
  if (exact_state_wanted_ && !config_.translator->flags_are_exact()) {
    first_exact_uop_ = static_cast<uint32_t>(module().uops.size());
    config_.translator->make_flags_exact();
    backend_.module_changed();
    for (uint32_t core = 0; core < threads_.size(); ++core)
      if (threads_.runs(core)) not_yet_exact_.push_back(core);
  }
  std::erase_if(not_yet_exact_, [&](uint32_t core) {
    if (!threads_.runs(core)) return true;
    const uint32_t uop = backend_.place(core);
    if (uop >= first_exact_uop_) return true;
    if (!starts_block(uop)) return false;  // between two blocks: later
    start_at(core, place_pc(module(), uop));
    return true;
  });
}

void Kernel::after_slice(Clock::time_point now) {
  if (!config_.translator) return;
  if ((exact_state_wanted_ && !config_.translator->flags_are_exact()) || !not_yet_exact_.empty())
    move_to_exact_code();
  ring_timers(now);
  if (shared_mappings_) post_bus_errors();
  if (!may_be_signalled_) return;
  may_be_signalled_ = false;
  for (uint32_t core = 0; core < threads_.size(); ++core) {
    if (!threads_.runs(core) || deliverable(core) == 0) continue;
    if (is_held_ && is_held_(core)) {
      may_be_signalled_ = true;
      continue;
    }
    const uint32_t uop = backend_.place(core);
    if (!starts_block(uop)) {
      may_be_signalled_ = true;
      continue;
    }
    backend_.stop(core);
    go_on(core, uop);
  }
}

// --- threads

std::optional<uint32_t> Kernel::core_of_thread(int64_t tid) const {
  const auto is_it = [&](uint32_t core) { return is_alive(core) && threads_.tid(core) == tid; };
  // First threads are on the core of their number, most others, too, while no core is used again.
  const int64_t first = tid - kFirstPid;
  if (first >= 0 && first < int64_t{threads_.size()} && is_it(static_cast<uint32_t>(first)))
    return static_cast<uint32_t>(first);
  for (uint32_t core = 0; core < threads_.size(); ++core)
    if (is_it(core)) return core;
  return std::nullopt;
}

// Numbers of first threads are given out at the start, the others one after the other.
bool Kernel::has_had_thread(int64_t tid) const {
  const int64_t number = tid - kFirstPid;
  if (number < 0 || tid >= next_tid_) return false;
  return !starts_alone() || number == 0 || number >= int64_t{plan().config.cores};
}

std::optional<uint32_t> Kernel::start_thread(uint32_t parent) {
  if (!config_.starts_alone) return std::nullopt;
  std::optional<uint32_t> core = threads_.free_core();
  if (!core && config_.shares_cores && alive() < RunQueue::kMostThreads)
    core = threads_.free_number();
  if (!core) return std::nullopt;
  const Thread* const model = threads_.find(parent);
  threads_.start(*core, Thread{.tid = next_tid_++,
                               .mask = model ? model->mask : 0,
                               .saved_mask = {},
                               .pending = {},
                               .alternate_stack = {},
                               .name = model ? model->name : std::string(),
                               .retry_deadline = {},
                               .retry_done = 0,
                               .opening = {},
                               .waits_for_lock_of = {},
                               .turn_used = model ? model->turn_used : 0,
                               .round = model ? model->round : 0});
  ++started_;
  copy_context(parent, *core);
  if (config_.on_thread && has_core(*core)) config_.on_thread(*core, parent);
  return core;
}

void Kernel::end_thread(uint32_t core) {
  if (!is_alive(core)) return;
  has_changed_ = true;
  release_locks(*this, core);
  threads_.end(core);
  if (const auto waiter = waits_.take(core)) withdraw(*waiter, 0);
  retries_.erase(core);
  run_queue_.remove(core);
  if (is_private() && processes_[core]) processes_[core]->files.close_all();  // locks go, too
  Thread* const thread = threads_.find(core);
  if (!thread) return;
  thread->opening.reset();
  if (thread->clear_child_tid == 0) return;
  if (!memory_of(core).store(thread->clear_child_tid, uint32_t{0})) return;
  if (config_.on_thread_end) config_.on_thread_end(core, thread->clear_child_tid);
  wake_after_end(*this, core, thread->clear_child_tid);
}

void Kernel::end_threads(uint32_t first, uint32_t count) {
  // Threads of which nothing else is known leave nothing behind, unless others wait for their locks.
  const bool are_plain = threads_.are_plain() && waits_.empty();
  for (uint32_t core = first; core < first + count; ++core) {
    if (are_plain && !(is_private() && processes_[core]))
      threads_.end(core);
    else
      end_thread(core);
  }
}

// --- signals

// A signal that nobody would notice is forgotten at once.
static bool is_ignored(const Process& process, int number) {
  const auto it = process.signal_actions.find(number);
  const uint64_t handler = it == process.signal_actions.end() ? 0 : it->second.handler;
  return handler == 1 || (handler == 0 && is_ignored_by_default(number));
}

uint64_t Kernel::pending(uint32_t core) {
  const Thread* const thread = threads_.find(core);
  const uint64_t own = thread ? thread->pending.set() : 0;
  return own | process_of(core).pending.set();
}

uint64_t Kernel::deliverable(uint32_t core) {
  const Thread* const thread = threads_.find(core);
  return pending(core) & ~(thread ? thread->mask : 0);
}

void Kernel::forget_ignored(uint32_t core) {
  Process& process = process_of(core);
  for (uint64_t set = deliverable(core); set != 0; set &= set - 1) {
    const int number = std::countr_zero(set) + 1;
    if (!is_ignored(process, number)) continue;
    process.pending.remove(number);
    threads_[core].pending.remove(number);
  }
}

void Kernel::kill(uint32_t core, int signal) {
  if (has_core(core)) backend_.stop(core);
  killed_.push_back({core, signal});
}

static bool stops_by_default(const Process& process, int number) {
  const auto it = process.signal_actions.find(number);
  return (signal_bit(number) & kStopping) &&
         (it == process.signal_actions.end() || it->second.handler == 0);
}

// Signals that stop, and the one that lets go on, take each other back.
static void take_back_opposites(int number, SignalQueue& queue) {
  if (number == SIGCONT)
    for (const int stop : {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU}) queue.remove(stop);
  if (signal_bit(number) & kStopping) queue.remove(SIGCONT);
}

void Kernel::post(uint32_t core, const SignalInfo& info) {
  has_changed_ = true;
  Thread& thread = threads_[core];
  const bool blocked = (thread.mask & signal_bit(info.number)) != 0;
  take_back_opposites(info.number, thread.pending);
  take_back_opposites(info.number, process_of(core).pending);
  // Not as an interruption of its calls: they go on with it.
  if (!blocked && stops_by_default(process_of(core), info.number)) return stop(info.number);
  if (!blocked && is_ignored(process_of(core), info.number)) return;
  if (thread.pending.size() >= process_of(core).limits[Limits::kPendingSignals].current) return;
  thread.pending.add(info);
  may_be_signalled_ = true;
  if (!blocked && is_parked(core)) interrupt(core);
}

void Kernel::post(Process& process, uint32_t caller, const SignalInfo& info) {
  const uint64_t bit = signal_bit(info.number);
  const auto takes = [&](uint32_t core) {
    const Thread* const thread = threads_.find(core);
    return is_alive(core) && !(thread && thread->mask & bit);
  };
  // Linux wants the first thread, too.
  if (starts_alone())
    if (const auto first = core_of_thread(process.pid); first && takes(*first))
      return post(*first, info);
  if (takes(caller)) return post(caller, info);
  if (!is_private())
    for (uint32_t core = 0; core < threads_.size(); ++core)
      if (takes(core)) return post(core, info);
  has_changed_ = true;
  take_back_opposites(info.number, process.pending);
  process.pending.add(info);  // until a thread unblocks it
}

// A thread that waits goes on: with its call begun anew, or with EINTR.
void Kernel::interrupt(uint32_t core) {
  if (vfork_waits_.contains(core)) return;  // no handler ends it
  uint32_t uop;
  Restart restart;
  int64_t interrupted = -EINTR;
  if (const auto waiter = waits_.take(core)) {
    uop = waiter->resume_uop;
    constexpr int64_t kNotWoken = INT64_MIN;
    if (const int64_t result = withdraw(*waiter, kNotWoken); result != kNotWoken)
      return resume(core, uop, result);
    restart = waiter->restart;
    interrupted = waiter->interrupt_result;
    if (waiter->remaining_at != 0) {
      const std::chrono::nanoseconds left =
          waiter->cpu_deadline ? *waiter->cpu_deadline - cpu_time().total()
                               : waiter->deadline.value_or(Clock::now()) - Clock::now();
      memory_of(core).store(waiter->remaining_at,
                            timespec_of(std::max(left, std::chrono::nanoseconds{})));
    }
  } else if (const auto retry = retries_.find(core); retry != retries_.end()) {
    uop = retry->second.resume_uop;
    restart = retry->second.restartable ? Restart::kIfWanted : Restart::kNever;
    retries_.erase(retry);
  } else {
    return;
  }
  // What was moved already cannot be moved again.
  const uint64_t moved = threads_[core].retry_done;
  if (moved != 0) restart = Restart::kNever;
  const uint64_t set = deliverable(core);
  const auto& actions = process_of(core).signal_actions;
  const auto first = actions.find(std::countr_zero(set) + 1);
  const int result = module().abi.syscall_result;
  if (config_.translator && first != actions.end() &&
      (restart == Restart::kAlways ||
       (restart == Restart::kIfWanted && (first->second.flags & kSaRestart)))) {
    const uint64_t call_at = place_pc(module(), uop) - abi_.call_bytes;
    if (const uint32_t call = place_at(call_at); call != kNoUop) return go_on(core, call);
  }
  if (result != kNoSlot)
    set_slot(core, static_cast<Slot>(result), moved != 0 ? moved : in_register(interrupted));
  go_on(core, uop);
}

uint64_t Kernel::signal_return_code(uint32_t core) {
  Process& process = process_of(core);
  if (process.signal_return_code != 0) return process.signal_return_code;
  const auto place = process.memory.place(kPageSize);
  if (!place) return 0;
  backend_.write_memory(core, *place, abi_.signal_return);
  backend_.set_permissions(core, *place, kPageSize, kRead);
  process.signal_return_code = *place;
  return *place;
}

std::optional<SignalFrame::Interrupted> Kernel::interrupted_at(
    uint32_t core, uint64_t pc, const SignalFrame::CallerRegisters& at) {
  const GuestAccess memory = memory_of(core);
  std::vector<uint8_t> code(abi_.signal_return.size());  // a program may bring its own
  if (!memory.read(pc, code) || !std::ranges::equal(code, abi_.signal_return)) return std::nullopt;
  return frame().interrupted(memory, at);
}

SignalFrame& Kernel::frame() {
  if (!frame_) frame_ = abi_.make_signal_frame(module());
  return *frame_;
}

bool Kernel::enter_handler(uint32_t core, const SignalInfo& info, uint64_t pc,
                           uint64_t fault_address) {
  Thread& thread = threads_[core];
  SignalAction& action = process_of(core).signal_actions[info.number];
  SignalFrame::Request request{.info = info,
                            .action = action,
                            .pc = pc,
                            .mask = thread.saved_mask ? *thread.saved_mask : thread.mask,
                            .fault_address = fault_address,
                            .alternate_stack = thread.alternate_stack,
                            .return_address = abi_.has_restorer && (action.flags & kSaRestorer)
                                                  ? action.restorer
                                                  : signal_return_code(core)};
  if (config_.on_handler) config_.on_handler(core, pc, action.handler);
  if (!frame().enter(backend_, core, request)) return false;
  thread.saved_mask.reset();
  thread.mask |= action.mask;
  if (!(action.flags & kSaNoDefer)) thread.mask |= signal_bit(info.number);
  thread.mask &= ~kUnblockable;
  if (action.flags & kSaResetHand) action.handler = 0;
  return true;
}

std::optional<uint64_t> Kernel::deliver(uint32_t core, uint64_t pc) {
  Thread& thread = threads_[core];
  Process& process = process_of(core);
  while (deliverable(core) != 0) {
    const std::optional<SignalInfo> info = take_signal(core, ~thread.mask);
    if (is_ignored(process, info->number)) continue;
    const SignalAction action = process.signal_actions[info->number];
    if (stops_by_default(process, info->number)) {
      stop(info->number);
      continue;
    }
    if (!action.has_handler()) {
      kill(core, info->number);
      return std::nullopt;
    }
    if (!enter_handler(core, *info, pc, 0)) {
      kill(core, SIGSEGV);
      return std::nullopt;
    }
    pc = action.handler;
  }
  return pc;
}

Reply Kernel::signal_return(uint32_t core) {
  const std::optional<SignalFrame::Restored> restored = frame().leave(backend_, core);
  if (!restored) return {Reply::Kind::kSignal, SIGSEGV};
  if (restored->lost_a_register)
    note_once("lost register",
              "a signal handler changed a register that the program nowhere sets; it stays zero");
  if (config_.on_handler_end) config_.on_handler_end(core);
  Thread& thread = threads_[core];
  thread.mask = restored->mask & ~kUnblockable;
  thread.alternate_stack = restored->alternate_stack;
  thread.alternate_stack.flags &= ~SignalStack::kOnStack;
  uint64_t pc = restored->pc;
  if (deliverable(core) != 0) {
    const std::optional<uint64_t> to = deliver(core, pc);
    if (!to) return {Reply::Kind::kParked, 0};
    pc = *to;
  }
  return {Reply::Kind::kJump, static_cast<int64_t>(pc)};
}

SignalInfo Kernel::info_of(uint32_t core, uint64_t pc, Fault fault, uint64_t address) {
  SignalInfo info{.number = fault_signal(fault),
                  .address = in_register(static_cast<int64_t>(address)),
                  .is_fault = true};
  switch (fault) {
    case Fault::kUndefined:
      info.code = kIllIllOpc;
      info.address = pc;
      break;
    case Fault::kBreakpoint:
      info.code = kTrapBrkpt;
      info.address = pc;
      break;
    case Fault::kAlignment:
    case Fault::kFetchAlignment:
      info.code = kBusAdrAln;
      break;
    default: {
      constexpr uint64_t kWidest = 16;  // bytes of an access
      const uint8_t need = fault == Fault::kStoreAccess ? kWrite : kRead;
      uint8_t rights = backend_.permissions(core, info.address);
      // Of an access that reaches into the next page, the page that lacks the right. Another core
      // may have given the right since.
      const uint64_t next = page_up(info.address + 1);
      if (fault != Fault::kFetchAccess && (rights & need) == need &&
          next - info.address < kWidest) {
        info.address = next;
        rights = backend_.permissions(core, info.address);
      }
      const bool mapped =
          rights != 0 || process_of(core).memory.is_mapped(page_down(info.address), kPageSize);
      info.code = mapped ? kSegvAccErr : kSegvMapErr;
    }
  }
  return info;
}

bool Kernel::fault(uint32_t core, uint64_t pc, Fault fault, uint64_t address) {
  if (!config_.translator) return false;
  Thread& thread = threads_[core];
  if (thread.saved_mask) thread.mask = *std::exchange(thread.saved_mask, std::nullopt);
  const SignalInfo info = info_of(core, pc, fault, address);
  const SignalAction action = process_of(core).signal_actions[info.number];
  // A fault that is blocked or ignored ends the process all the same.
  if (!action.has_handler() || (thread.mask & signal_bit(info.number))) return false;
  const bool is_access = info.number == SIGSEGV || info.number == SIGBUS;
  if (!enter_handler(core, info, pc, is_access ? info.address : 0)) return false;
  const uint32_t uop = place_at(action.handler);
  if (uop == kNoUop) return false;
  backend_.start(core, uop);
  return true;
}

// Which core it was is not known.
void Kernel::post_bus_errors() {
  for (const uint64_t address : shared_mappings_->take_bus_errors()) {
    // The host mapped the file's pages anew; its own permissions may have to follow.
    const uint64_t end = shared_mappings_->find(address, kPageSize)->end;
    for (uint64_t page = address, next = page; page < end; page = next) {
      const uint8_t rights = backend_.permissions(0, page);
      while (next < end && backend_.permissions(0, next) == rights) next += kPageSize;
      backend_.set_permissions(0, page, next - page, rights);
    }
    const std::optional<uint32_t> core = threads_.first_alive();
    if (!core) return;
    post(process_of(*core), *core,
         {.number = SIGBUS, .code = kBusAdrErr, .address = address, .is_fault = true});
  }
}

}  // namespace gpusim::host
