// What a process keeps, gains and loses when it forks or another program is executed.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "device_sim/base/error.h"
#include "host/linux/futex.h"
#include "host/linux/kernel.h"

namespace gpusim::host {
namespace {

bool can_be_handed_on(const OpenFile& file) {
  return file.kind() != OpenFile::Kind::kEpoll && file.kind() != OpenFile::Kind::kSignals;
}

}  // namespace

Family* Kernel::found_family() {
  constexpr int32_t kLeastStride = 1000;
  if (family_ || !config_.successor || !config_.starts_alone || !late_code_) return family_.get();
  family_ =
      Family::begin(static_cast<int32_t>(kFirstPid),
                    std::max<int32_t>(kLeastStride, 2 * static_cast<int32_t>(threads_.cores())));
  if (!family_) return nullptr;
  for (const Waiter& waiter : waits_.in_arrival()) publish(waiter);
  publish_locks();
  return family_.get();
}

void Kernel::publish_locks() {
  process_of(0).files.locks().set_listener(
      [this](const RecordLocks::FileId& file, const std::vector<RecordLocks::Range>& ranges) {
        family_->publish_locks(file, ranges);
      });
}

// --- futexes that processes share

std::optional<FutexPlace> Kernel::shared_place(uint64_t address) const {
  return shared_mappings_ ? shared_mappings_->place_of(address) : std::nullopt;
}

uint32_t* Kernel::shared_word(const GuestAccess& memory, uint64_t address) const {
  return shared_mappings_ && memory.allows(address, sizeof(uint32_t), kRead | kWrite)
             ? shared_mappings_->word(address)
             : nullptr;
}

std::optional<SharedFutexes> Kernel::lock_shared_futexes(uint32_t space) {
  if (!family_ || !(space & kSharedSpace)) return std::nullopt;
  return std::optional<SharedFutexes>(std::in_place, family_->futexes());
}

// False: there is no room for so many waiters. Locks that the kernel hands over stay within the
// process.
bool Kernel::publish(const Waiter& waiter) {
  if (!family_ || !(waiter.space & kSharedSpace) || waiter.kind != Waiter::Kind::kPlain)
    return true;
  const std::optional<FutexPlace> place = shared_place(waiter.address);
  if (!place) return true;
  shared_waits_.insert(waiter.core);
  return family_->futexes().add(
      *place, {.core = waiter.core, .bitset = waiter.bitset, .wake_result = waiter.wake_result});
}

int64_t Kernel::withdraw(const Waiter& waiter, int64_t otherwise) {
  if (shared_waits_.erase(waiter.core) == 0) return otherwise;
  return family_->futexes().withdraw(waiter.core).value_or(otherwise);
}

void Kernel::leave_memory() {
  for (uint32_t core = 0; core < threads_.size(); ++core)
    if (is_alive(core)) release_locks(*this, core);
  for (const uint32_t core : shared_waits_) family_->futexes().withdraw(core);
}

// It could not be executed.
void Kernel::stay_in_memory() {
  for (const Waiter& waiter : waits_.in_arrival()) publish(waiter);
}

void Kernel::nap(Clock::time_point until) {
  ++naps_;
  if (family_)
    family_->nap(until);
  else
    std::this_thread::sleep_until(until);
}

// No time, no descriptor and nobody outside of the run: a futex at least, and children.
bool Kernel::only_others_can_wake() const {
  if (waits_.next_deadline() || has_cpu_timers()) return false;
  bool has_timers = false;
  for (const uint32_t core : timed_)
    if (const auto& process = processes_[is_private() ? core : 0])
      process->timers.each([&](const Timer& t, int32_t) { has_timers |= t.due.has_value(); });
  if (has_timers) return false;
  for (const auto& [core, retry] : retries_)
    if (!retry.for_child) return false;
  return true;
}

bool Kernel::is_deadlocked_with_others() {
  constexpr uint32_t kLongEnough = 64;  // naps
  if (!family_ || naps_ < kLongEnough) return false;
  const bool waits = only_others_can_wake();
  family_->set_waits_for_others(waits);
  const auto waiters = waits ? waits_.all() : std::vector<Waiter>();
  const bool has_futex =
      std::ranges::any_of(waiters, [](const Waiter& w) { return w.address != 0; });
  return has_futex && family_->all_wait_for_others();
}

void Kernel::become_child(uint32_t core) {
  for (uint32_t other = 0; other < threads_.size(); ++other) {
    if (other == core || !is_alive(other)) continue;
    if (has_core(other)) backend_.stop(other);
    waits_.remove(other);
    threads_.end(other);
  }
  run_queue_ = {};
  retries_.clear();
  shared_waits_.clear();
  vfork_waits_.clear();
  timed_.clear();
  Process& process = process_of(core);
  process.pid = family_->pid();
  process.timers = Timers();
  process.pending = SignalQueue();
  process.files.locks() = {};  // record locks stay the parent's
  publish_locks();
  Thread& thread = threads_[core];
  thread.tid = process.pid;
  thread.pending = SignalQueue();
  next_tid_ = process.pid + threads_.cores();
  started_ = 1;
  end_signal_ = 0;
  process.random_state += static_cast<uint64_t>(process.pid);
  set_cpu_time({});
  if (config_.on_fork) config_.on_fork();
}

std::string Kernel::handover(Process& process, uint32_t core) const {
  const Family::Handover own = family_->handover();
  const Thread* const thread = threads_.find(core);
  nlohmann::json files = nlohmann::json::array(), ignored = nlohmann::json::array();
  for (int fd = 0; fd < process.files.limit(); ++fd) {
    const FileRef file = process.files.share(fd);
    if (!file || process.files.closes_on_exec(fd) || !can_be_handed_on(*file)) continue;
    files.push_back({fd, file->host_fd(), static_cast<int>(file->kind()), file->is_nonblocking,
                     file->is_changeable, file->path()});
  }
  for (const auto& [number, action] : process.signal_actions)
    if (action.handler == 1) ignored.push_back(number);
  return nlohmann::json{{"table", own.table_fd},
                        {"entry", own.entry},
                        {"files", files},
                        {"ignored", ignored},
                        {"mask", thread ? thread->mask : 0},
                        {"cpu", {cpu_time().user.count(), cpu_time().system.count()}},
                        {"umask", process.umask},
                        {"cwd", process.cwd}}
      .dump();
}

void Kernel::take_over(const std::string& text) {
  const auto fail = [] {
    return Error("GPUSIM_PROCESS is not what gpusim hands on to itself; unset it");
  };
  try {
    const nlohmann::json j = nlohmann::json::parse(text);
    const int table = j.at("table");
    ::fcntl(table, F_SETFD, FD_CLOEXEC);
    family_ = Family::take_over(table, j.at("entry"));
    if (!family_) throw fail();
    Process& process = process_of(0);
    publish_locks();
    process.pid = family_->pid();
    process.random_state += static_cast<uint64_t>(process.pid);
    const auto nanoseconds = [&](size_t i) {
      return std::chrono::nanoseconds(j.at("cpu").at(i).get<int64_t>());
    };
    set_cpu_time({.user = nanoseconds(0), .system = nanoseconds(1)});
    process.umask = j.at("umask");
    process.cwd = j.at("cwd");
    process.folder.reset();
    for (const int number : j.at("ignored")) process.signal_actions[number].handler = 1;
    Thread& thread = threads_[0];
    thread.tid = process.pid;
    thread.mask = j.at("mask");
    next_tid_ = process.pid + threads_.cores();
    std::map<int, FileRef> known;  // by host descriptor
    for (size_t i = 0; i < standard_files_.size(); ++i)
      known[standard_files_[i]->host_fd()] = standard_files_[i];
    process.files.close_all();
    for (const nlohmann::json& f : j.at("files")) {
      const int host_fd = f.at(1);
      FileRef& file = known[host_fd];
      if (!file) {
        const auto kind = static_cast<OpenFile::Kind>(f.at(2).get<int>());
        file = std::make_shared<OpenFile>(host_fd, /*owned=*/true, kind, f.at(5));
        ::fcntl(host_fd, F_SETFD, FD_CLOEXEC);
        file->is_changeable = f.at(4);
        file->is_reached_from_outside = file->parks();
        if (file->is_folder()) file->folder = paths_.find(nullptr, file->path()).self;
      }
      file->is_nonblocking = f.at(3);
      process.files.set(f.at(0).get<int>(), file);
    }
  } catch (const nlohmann::json::exception&) {
    throw fail();
  }
}

void Kernel::hear_family() {
  if (is_stopped()) return;
  family_->listen();
  if (family_->take_has_woken_waiters())
    for (const auto& [woken, result] : family_->futexes().take_woken()) {
      shared_waits_.erase(woken);
      if (const std::optional<Waiter> waiter = waits_.take(woken))
        resume(woken, waiter->resume_uop, result);
    }
  constexpr std::chrono::seconds kPatience{2};  // processors may be busy
  family_->see_to_kills(kPatience);
  uint64_t signals = family_->take_signals();
  const Family::Changes changes = family_->count_changes();
  const std::optional<uint32_t> core = threads_.first_alive();
  if (!core) return;
  if (signals & signal_bit(SIGKILL)) return kill(*core, SIGKILL);
  Process& process = process_of(*core);
  for (int number = 1; signals != 0; ++number, signals >>= 1)
    if (signals & 1)
      post(process, *core,
           {.number = number, .code = SI_USER, .pid = family_->last_sender(), .uid = 0});
  if (changes.ended != 0 && forgets_children(process)) family_->forget_ended();
  const auto action = process.signal_actions.find(SIGCHLD);
  const bool hears_of_stops =
      action == process.signal_actions.end() || !(action->second.flags & kSaNoCldStop);
  if (changes.ended != 0 || (changes.others != 0 && hears_of_stops))
    post(process, *core, child_signal(family_->last_change()));
}

bool Kernel::forgets_children(const Process& process) const {
  const auto action = process.signal_actions.find(SIGCHLD);
  return action != process.signal_actions.end() &&
         (action->second.handler == 1 || (action->second.flags & kSaNoCldWait));
}

void Kernel::stop(int signal) {
  if (Family* const family = found_family()) {
    output_.flush();
    was_stopped_ = true;
    return family->stop(signal);
  }
  note_once("stop signal", "signals that stop a process have no effect here");
}

void Kernel::end_in_family(int exit_status) {
  if (!family_) return;
  output_.flush();
  leave_memory();  // of threads that were interrupted
  family_->end(end_signal_ != 0 ? end_signal_ : (exit_status & 0xff) << 8, usage());
}

}  // namespace gpusim::host
