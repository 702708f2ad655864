// What a checkpoint keeps of the guest's Linux.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <limits>
#include <set>

#include "device_sim/base/error.h"
#include "host/checkpoint/archive.h"
#include "host/checkpoint/files.h"
#include "host/linux/kernel.h"

namespace gpusim::host {
namespace {

template <class A>
void describe(A& a, SavedFiles& saved) {
  a.list(saved.pipes, kMostEntries, [&](SavedPipe& p) {
    a.value(p.capacity);
    a.plain_array(p.contents, uint64_t{1} << 30);
  });
  a.list(saved.files, kMostEntries, [&](SavedFile& f) {
    a.value(f.kind);
    a.value(f.is_nonblocking);
    a.text(f.path);
    a.value(f.flags);
    a.value(f.offset);
    a.value(f.size);
    a.value(f.pipe);
    a.plain_array(f.text, uint64_t{1} << 30);
    a.require(f.kind <= SavedFile::Kind::kText, "a file's kind");
    a.require(f.kind != SavedFile::Kind::kPipe || f.pipe < saved.pipes.size(), "a pipe");
    a.require((f.kind == SavedFile::Kind::kStandard) ==
                  (static_cast<size_t>(&f - saved.files.data()) < kStandardFiles),
              "the standard files");
    a.require(f.path.find('\0') == std::string::npos, "a path");
  });
  a.require(saved.files.size() >= kStandardFiles, "the standard files");
}

}  // namespace

template <class A>
void AddressSpace::describe(A& a) {
  a.value(break_);
  a.value(mapped_break_);
  std::vector<AddressRange> ranges;
  for (const auto& [begin, end] : mapped_) ranges.push_back({begin, end});
  uint64_t free_from = start_;
  a.require(break_ >= start_ && break_ <= limit_ &&
                (mapped_break_ == page_up(break_) || mapped_break_ == start_),
            "a program break");
  a.list(ranges, kMostEntries, [&](AddressRange& r) {
    a.value(r.begin);
    a.value(r.end);
    a.require(r.begin >= free_from && r.begin < r.end && r.end <= limit_ &&
                  page_down(r.begin) == r.begin && page_down(r.end) == r.end,
              "a mapping");
    free_from = r.end;
  });
  if constexpr (A::kReading) {
    mapped_.clear();
    for (const AddressRange& r : ranges) mapped_[r.begin] = r.end;
  }
}

template <class A>
void SignalQueue::describe(A& a) {
  a.list(waiting_, kMostEntries, [&](SignalInfo& info) {
    a.value(info.number);
    a.value(info.code);
    a.value(info.address);
    a.value(info.pid);
    a.value(info.uid);
    a.value(info.value);
    a.value(info.is_fault);
    a.require(info.number >= 1 && info.number <= kSignalCount, "a signal");
  });
}

namespace {

template <class A>
void describe_thread(A& a, ThreadTable& threads, uint32_t core, Clock::time_point now) {
  bool alive = threads.is_alive(core), parked = threads.is_parked(core);
  bool queued = threads.is_queued(core), retired = threads.is_retired(core);
  a.value(alive);
  a.value(parked);
  a.value(queued);
  a.value(retired);
  a.require(!retired || (!alive && threads.has_core(core)), "a thread");
  a.require(alive || (!parked && !queued), "a thread");
  a.require(threads.has_core(core) ? !queued : !alive || parked != queued, "a thread");
  Thread t = threads.find(core) ? *threads.find(core) : Thread{};
  t.tid = threads.tid(core);
  a.value(t.tid);
  a.value(t.clear_child_tid);
  a.value(t.robust_list);
  a.value(t.mask);
  describe_optional(a, t.saved_mask, [&](uint64_t& mask) { a.value(mask); });
  t.pending.describe(a);
  a.value(t.alternate_stack.base);
  a.value(t.alternate_stack.flags);
  a.value(t.alternate_stack.size);
  a.text(t.name);
  a.require(t.name.size() < 16, "a thread's name");
  describe_optional(a, t.retry_deadline,
                    [&](Clock::time_point& at) { describe_deadline(a, at, now); });
  a.value(t.retry_done);
  a.value(t.turn_used);
  a.value(t.round);
  if constexpr (A::kReading) {
    threads.start(core, std::move(t));
    if (!alive) {
      threads.end(core);
      if (retired) threads.retire_core(core);
    } else if (queued)
      threads.set_queued(core);
    else
      threads.set_parked(core, parked);
  }
}

template <class A>
void describe_queue(A& a, const Module& module, ThreadTable& threads, RunQueue& queue) {
  a.plain_array(queue.is_new, threads.cores());
  a.require(queue.is_new.empty() || queue.is_new.size() == threads.cores(), "threads' turns");
  a.value(queue.round);
  std::set<uint32_t> queued;
  size_t entries = 0;
  for (std::deque<RunQueue::Entry>* const queue_of : {&queue.ready, &queue.later}) {
    std::vector<RunQueue::Entry> list(queue_of->begin(), queue_of->end());
    a.list(list, RunQueue::kMostThreads, [&](RunQueue::Entry& entry) {
      a.value(entry.number);
      a.value(entry.uop);
      a.require(entry.number < threads.size() && threads.is_queued(entry.number) &&
                    entry.uop < module.uops.size(),
                "a thread that waits for a core");
      queued.insert(entry.number);
      ++entries;
    });
    if constexpr (A::kReading) *queue_of = {list.begin(), list.end()};
  }
  const uint32_t beyond = threads.size() - threads.cores();
  queue.contexts.resize(beyond);
  for (uint32_t i = 0; i < beyond; ++i) {
    const uint32_t number = threads.cores() + i;
    a.require(threads.is_queued(number) == queued.contains(number), "threads that wait for cores");
    if (!threads.is_alive(number)) continue;
    queue.contexts[i].resize(module.slot_count);
    a.plain_array(queue.contexts[i], module.slot_count);
    a.require(queue.contexts[i].size() == module.slot_count, "a thread's registers");
  }
  a.require(queued.size() == entries, "threads that wait for cores");
}

template <class A>
void describe_waits(A& a, const Kernel& kernel, WaitQueue& waits, uint32_t numbers,
                    Clock::time_point now) {
  std::vector<Waiter> waiters = waits.in_arrival();
  for (Waiter& w : waiters)
    if (w.kind == Waiter::Kind::kPi) w.pi_owner = waits.find_lock(w.space, w.address)->owner;
  a.list(waiters, kMostEntries, [&](Waiter& w) {
    a.value(w.core);
    a.value(w.resume_uop);
    a.value(w.space);
    a.value(w.address);
    a.value(w.bitset);
    describe_optional(a, w.deadline, [&](Clock::time_point& at) { describe_deadline(a, at, now); });
    describe_optional(a, w.cpu_deadline, [&](auto& at) { describe_duration(a, at); });
    a.value(w.wake_result);
    a.value(w.timeout_result);
    a.value(w.interrupt_result);
    a.value(w.remaining_at);
    a.value(w.restart);
    a.value(w.kind);
    a.value(w.pi_target);
    a.value(w.pi_owner);
    a.require(w.restart <= Restart::kAlways && w.kind <= Waiter::Kind::kRequeuePi, "a waiter");
    a.require(
        w.core < numbers && kernel.is_parked(w.core) && w.resume_uop < kernel.module().uops.size(),
        "a core that waits");
  });
  if constexpr (A::kReading)
    for (const Waiter& w : waiters) waits.park(w);
}

template <class A>
void describe_timers(A& a, Timers& timers, Clock::time_point now) {
  const auto describe_timer = [&](Timer& t) {
    a.value(t.base);
    a.value(t.notify);
    a.value(t.signal);
    a.value(t.clock);
    a.value(t.tid);
    a.value(t.value);
    a.require(t.base <= Timer::Base::kUserCpu && t.notify <= Timer::Notify::kThread, "a timer");
    a.require(t.signal >= 0 && t.signal <= kSignalCount, "a timer's signal");
    describe_optional(a, t.due, [&](std::chrono::nanoseconds& due) {
      if (t.base != Timer::Base::kSteady) return describe_duration(a, due);
      Clock::time_point at(due);
      describe_deadline(a, at, now);
      due = at.time_since_epoch();
    });
    describe_duration(a, t.interval);
    a.value(t.overruns);
    a.value(t.last_overruns);
  };
  for (Timer& t : timers.interval) describe_timer(t);
  std::vector<std::pair<int32_t, Timer>> made(timers.made.begin(), timers.made.end());
  a.list(made, kMostEntries, [&](auto& entry) {
    a.value(entry.first);
    describe_timer(entry.second);
  });
  if constexpr (A::kReading) timers.made = {made.begin(), made.end()};
  a.value(timers.next_id);
  a.require(timers.next_id >= 0, "a timer");
}

template <class A>
void describe_process(A& a, const Kernel& kernel, Process& p, Clock::time_point now) {
  p.memory.describe(a);
  a.text(p.cwd);
  if constexpr (A::kReading) p.folder = nullptr;  // found again when a path begins there
  a.value(p.umask);
  std::vector<std::pair<int32_t, SignalAction>> actions(p.signal_actions.begin(),
                                                        p.signal_actions.end());
  a.list(actions, kSignalCount, [&](auto& entry) {
    a.value(entry.first);
    SignalAction& action = entry.second;
    a.value(action.handler);
    a.value(action.flags);
    a.value(action.restorer);
    a.value(action.mask);
    a.require(entry.first >= 1 && entry.first <= kSignalCount, "a signal");
  });
  if constexpr (A::kReading) p.signal_actions = {actions.begin(), actions.end()};
  p.pending.describe(a);
  a.value(p.signal_return_code);
  describe_timers(a, p.timers, now);
  for (int64_t r = 0; r < Limits::kCount; ++r) {
    a.value(p.limits[r].current);
    a.value(p.limits[r].most);
    a.require(p.limits[r].current <= p.limits[r].most, "a limit");
  }
  a.value(p.next_cpu_signal);
  a.value(p.random_state);
  a.require(
      !p.cwd.empty() && p.cwd.find('\0') == std::string::npos && kernel.alive() <= kernel.started(),
      "a process");
}

}  // namespace

template <class A>
void Kernel::describe(A& a, FileState& files) {
  const auto now = Clock::now();
  const uint32_t cores = threads_.cores();
  uint32_t numbers = threads_.size();
  const auto is_core = [&](uint32_t core) { return core < cores; };
  ::gpusim::host::describe(a, files.saved);

  a.value(numbers);
  const uint32_t most = starts_alone() && !is_private() ? RunQueue::kMostThreads : 0;
  a.require(numbers >= cores && numbers - cores <= most, "threads");
  while (threads_.size() < numbers) threads_.add_number();
  for (uint32_t core = 0; core < numbers; ++core) describe_thread(a, threads_, core, now);
  describe_queue(a, module(), threads_, run_queue_);
  a.value(started_);
  a.value(next_tid_);
  a.require(alive() <= started_, "threads");

  for (std::unique_ptr<Process>& process : processes_) {
    bool exists = process != nullptr;
    a.value(exists);
    if (!exists) continue;
    if constexpr (A::kReading) process_of(static_cast<uint32_t>(&process - processes_.data()));
    describe_process(a, *this, *process, now);
  }
  a.list(files.descriptors, uint64_t{FileTable::kMost} * processes_.size(),
         [&](FileState::Descriptor& d) {
           a.value(d.process);
           a.value(d.fd);
           a.value(d.file);
           a.value(d.closes_on_exec);
           a.require(d.process < processes_.size() && processes_[d.process] && d.fd >= 0 &&
                         d.fd < FileTable::kMost && d.file < files.saved.files.size(),
                     "a descriptor");
         });

  a.list(files.locks, kMostEntries, [&](FileState::Lock& l) {
    a.value(l.process);
    a.value(l.fd);
    a.value(l.range.first);
    a.value(l.range.last);
    a.value(l.range.type);
    a.require(l.process < processes_.size() && processes_[l.process] && l.range.first >= 0 &&
                  l.range.first <= l.range.last &&
                  (l.range.type == F_RDLCK || l.range.type == F_WRLCK),
              "a lock");
  });

  describe_waits(a, *this, waits_, numbers, now);
  std::vector<std::pair<uint32_t, Kernel::Retry>> retries(retries_.begin(), retries_.end());
  a.list(retries, numbers, [&](auto& entry) {
    a.value(entry.first);
    a.value(entry.second.from_outside);
    a.value(entry.second.restartable);
    a.value(entry.second.resume_uop);
    a.require(entry.first < numbers && is_parked(entry.first) &&
                  entry.second.resume_uop < module().uops.size(),
              "a core that waits");
  });
  if constexpr (A::kReading) retries_ = {retries.begin(), retries.end()};
  a.plain_array(timed_, cores);
  a.require(std::all_of(timed_.begin(), timed_.end(), is_core), "a timer");
  CpuTime used = cpu_time();
  describe_duration(a, used.user);
  describe_duration(a, used.system);
  if constexpr (A::kReading) set_cpu_time(used);
  a.value(exact_state_wanted_);
  a.value(may_be_signalled_);
  a.value(first_exact_uop_);
  a.plain_array(not_yet_exact_, cores);
  a.require(std::all_of(not_yet_exact_.begin(), not_yet_exact_.end(), is_core), "a core");
  std::vector<std::string> noted(noted_.begin(), noted_.end());
  a.list(noted, 4096, [&](std::string& key) { a.text(key); });
  if constexpr (A::kReading) noted_ = {noted.begin(), noted.end()};
  int output_error = output_.error();
  a.value(output_error);
  if constexpr (A::kReading) output_.set_error(output_error);

  // Whoever waits in a call must be known to somebody who can end that.
  for (uint32_t core = 0; core < numbers; ++core)
    a.require(!is_parked(core) || (waits_.find(core) != nullptr) != retries_.contains(core),
              "a core that waits");
}

FileState Kernel::file_state() const {
  if (shared_mappings_ && !shared_mappings_->empty())
    throw Error("the guest has a file mapped shared (mmap, shmat), which a checkpoint cannot hold");
  for (const std::unique_ptr<Process>& process : processes_)
    if (process && !process->ipc.empty())
      throw Error("the guest uses System V IPC, which a checkpoint cannot hold");
  std::vector<FileRef> files(standard_files_.begin(), standard_files_.end());
  std::map<const OpenFile*, uint32_t> number_of;
  for (uint32_t i = 0; i < files.size(); ++i) number_of[files[i].get()] = i;
  FileState state;
  for (uint32_t p = 0; p < processes_.size(); ++p) {
    if (!processes_[p]) continue;
    const FileTable& table = processes_[p]->files;
    for (size_t fd = 0; fd < table.all().size(); ++fd) {
      const FileRef& file = table.all()[fd];
      if (!file) continue;
      const auto [it, is_new] =
          number_of.try_emplace(file.get(), static_cast<uint32_t>(files.size()));
      if (is_new) files.push_back(file);
      state.descriptors.push_back({p, static_cast<int32_t>(fd), it->second,
                                   table.closes_on_exec(static_cast<int64_t>(fd))});
    }
    std::set<RecordLocks::FileId> seen;
    for (size_t fd = 0; fd < table.all().size() && !table.locks().files().empty(); ++fd) {
      RecordLocks::FileId id;
      if (!table.all()[fd] || !can_be_locked(*table.all()[fd], &id)) continue;
      const auto locked = table.locks().files().find(id);
      if (locked == table.locks().files().end() || !seen.insert(id).second) continue;
      for (const RecordLocks::Range& range : locked->second.ranges)
        state.locks.push_back({p, static_cast<int32_t>(fd), range});
    }
  }
  state.saved = capture_files(files);
  return state;
}

template void Kernel::describe(Saving& a, FileState& files);
template void Kernel::describe(Loading& a, FileState& files);

void Kernel::open_again(const FileState& state) {
  const auto note = [&](const std::string& text) {
    if (config_.note) config_.note(text);
  };
  const std::vector<FileRef> files = reopen_files(state.saved, standard_files_, paths_, note);
  for (const std::unique_ptr<Process>& process : processes_)
    if (process) {
      process->files.close_all();
      process->files.set_limit(FileTable::kMost);  // there may be files above a later limit
    }
  for (const FileState::Descriptor& d : state.descriptors) {
    FileTable& table = processes_[d.process]->files;
    table.set(d.fd, files[d.file]);
    table.set_closes_on_exec(d.fd, d.closes_on_exec);
  }
  for (const FileState::Lock& l : state.locks) {
    FileTable& table = processes_[l.process]->files;
    const OpenFile* file = table.find(l.fd);
    const bool to_end = l.range.last == std::numeric_limits<int64_t>::max();
    const struct flock lock {
      .l_type = l.range.type, .l_whence = SEEK_SET, .l_start = l.range.first,
      .l_len = to_end ? 0 : l.range.last - l.range.first + 1, .l_pid = 0
    };
    const int error = file ? table.locks().set(*file, lock) : EBADF;
    const std::string name = file ? file->path() : std::to_string(l.fd);
    if (error != 0)
      throw Error(fmt::format("the guest had a lock on {}: {}", name, std::strerror(error)));
  }
  for (const std::unique_ptr<Process>& process : processes_)
    if (process) process->files.set_limit(process->limits[Limits::kOpenFiles].current);
}

}  // namespace gpusim::host
