// The part of Linux that static user programs need: system calls of all cores, on the host.
//
// A core's call is answered at once, parks the core (futex, sleep), or ends cores. In the shared
// model all cores are threads of one process; in the private model every core is a process.
//
// `core` is the number of a thread: that of its core, or a higher one while it has none
// (ThreadTable). A thread gets another number only in share_cores().
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/exit_status.h"
#include "host/guest_access.h"
#include "host/linux/abi.h"
#include "host/linux/address_space.h"
#include "host/linux/family.h"
#include "host/linux/file_table.h"
#include "host/linux/late_code.h"
#include "host/linux/limits.h"
#include "host/linux/output.h"
#include "host/linux/path_policy.h"
#include "host/linux/run_queue.h"
#include "host/linux/shared_mappings.h"
#include "host/linux/signal_frame.h"
#include "host/linux/signals.h"
#include "host/linux/system_v_ipc.h"
#include "host/linux/thread_table.h"
#include "host/linux/timers.h"
#include "host/linux/usage.h"
#include "host/linux/wait_queue.h"
#include "host/memory_plan.h"
#include "translator/common/translator.h"

namespace gpusim::host {

struct FileState;  // host/checkpoint/files.h

struct Process {
  Process(uint32_t its_number, const AddressSpace& space, const std::array<FileRef, 3>& standard,
          std::string its_cwd, const Limits& its_limits)
      : number(its_number),
        memory(space),
        files(standard, its_limits[Limits::kOpenFiles].current),
        cwd(std::move(its_cwd)),
        limits(its_limits),
        random_state(its_number) {}
  uint32_t number;
  int64_t pid = 0;
  AddressSpace memory;
  FileTable files;
  std::string cwd;  // absolute
  FolderRef folder;  // the same, once a path began there
  uint32_t umask = 022;
  std::map<int, SignalAction> signal_actions;
  SignalQueue pending;               // for whichever thread takes them
  uint64_t signal_return_code = 0;   // address of instructions that call rt_sigreturn, once needed
  Timers timers;
  Limits limits;
  uint64_t next_cpu_signal = 0;  // RLIMIT_CPU: the second of processor time when it rings next
  uint64_t random_state = 0;
  SystemVIpc ipc;
};

// One system call of one core.
struct Call {
  uint32_t core = 0;
  uint32_t resume_uop = 0;
  std::array<uint64_t, 6> args{};
  uint32_t word_bytes = 8;  // LinuxAbi
  Process* process = nullptr;
  GuestAccess memory;

  int64_t int_arg(int i) const { return static_cast<int32_t>(args[i]); }
};

// How a call ends.
struct Reply {
  enum class Kind : uint8_t {
    kResult,       // value goes to the guest: >= 0, or -errno
    kParked,       // the core waits in the kernel's queue
    kJump,         // value: the guest address where the core goes on
    kExitThread,   // value: exit status
    kExitProcess,  // value: exit status
    kSignal,       // value: the signal that ends the process
  };
  Kind kind = Kind::kResult;
  int64_t value = 0;

  static Reply result(int64_t v) { return {Kind::kResult, v}; }
  static Reply error(int number) { return {Kind::kResult, -number}; }
};

class Kernel {
 public:
  struct Config {
    const MemoryPlan* plan = nullptr;
    const Module* module = nullptr;
    Translator* translator = nullptr;  // of that module; null: no signal reaches a handler
    // The program starts on core 0; its threads run on the others. Else all cores start at once.
    bool starts_alone = false;
    // More threads than cores take turns. False: observers take a core for one thread.
    bool shares_cores = false;
    // Code that the program maps or writes is executed; a device has a copy of the module.
    bool has_late_code = false;
    std::vector<AllowedRoot> roots;
    std::string sysroot;  // PathPolicy; empty: none
    Network network = Network::kNone;
    uint32_t cpus = 0;  // that a process of the shared model counts; 0: all cores
    std::array<int, 3> standard_files{0, 1, 2};  // host descriptors
    bool is_isolated = false;  // no files but these; the program starts in /
    std::string program;
    std::function<void(const std::string&)> note;  // a line for the user; may be empty
    std::function<void(uint32_t child, uint32_t parent)> on_thread = {};  // may be empty
    // `core` slept on a futex until `by` woke it.
    std::function<void(uint32_t core, uint32_t by)> on_wake = {};  // may be empty
    std::function<void(uint32_t core)> on_time_out = {};  // of a wait that has one; may be empty
    // A thread ended, and told so by a word of memory.
    std::function<void(uint32_t core, uint64_t word)> on_thread_end = {};  // may be empty
    std::function<void(uint32_t core, const char* name)> on_call = {};     // may be empty
    // A signal handler is about to begin where the core was at `pc`, or returned; may be empty.
    std::function<void(uint32_t core, uint64_t pc, uint64_t handler)> on_handler = {};
    std::function<void(uint32_t core)> on_handler_end = {};
    // Makes new processes possible: the words that start gpusim for another program of the guest's,
    // but for that program and what follows it. `stands_in`: this run has something to tell in the
    // end, so that it waits for what it executes.
    struct Successor {
      std::vector<std::string> words;
      bool stands_in = false;
    };
    std::function<Successor()> successor = {};
    std::function<void()> on_fork = {};  // in the child
    // May answer a system call, by name, in the kernel's place; may be empty.
    std::function<std::optional<Reply>(uint32_t resume_uop, std::string_view name)> instead = {};
  };
  Kernel(Backend& backend, Config config);

  // The system call that `core` stopped at. kResult is not yet in its registers: see resume.
  Reply handle(uint32_t core, uint32_t resume_uop);
  // Gives the core its result and lets it go on.
  void resume(uint32_t core, uint32_t resume_uop, int64_t result);
  // Lets the core go on, in a signal handler if a signal waits for it.
  void go_on(uint32_t core, uint32_t uop);
  // Wakes cores whose time is over, and tries the calls again that could not be served yet.
  void expire(Clock::time_point now);
  // Signals that came while cores ran.
  void after_slice(Clock::time_point now);
  // The core cannot go on at `pc`. True if a signal handler of the guest takes over.
  bool fault(uint32_t core, uint64_t pc, Fault fault, uint64_t address);
  // A jump of the core to this address calls rt_sigreturn.
  bool is_signal_return(uint32_t core, uint64_t address) {
    const uint64_t code = process_of(core).signal_return_code;
    return code != 0 && address == code;
  }
  Reply signal_return(uint32_t core);
  // A function of the core returns to `pc`, and to a caller with these registers: if that ends a
  // signal handler, what it interrupted.
  std::optional<SignalFrame::Interrupted> interrupted_at(uint32_t core, uint64_t pc,
                                                         const SignalFrame::CallerRegisters& at);

  // Threads. Every core that is alive has one.
  bool is_alive(uint32_t core) const { return threads_.is_alive(core); }
  bool is_parked(uint32_t core) const { return threads_.is_parked(core); }
  // Where a core that waits in a system call will go on.
  std::optional<uint32_t> parked_at(uint32_t core) const;
  uint32_t alive() const { return threads_.alive(); }
  uint32_t parked() const { return threads_.parked(); }
  uint32_t started() const { return started_; }
  bool starts_alone() const { return config_.starts_alone; }
  bool has_core(uint32_t core) const { return threads_.has_core(core); }
  // The one that the process began with.
  bool is_first_thread(uint32_t core) { return tid(core) == process_of(core).pid; }
  // Threads that can go on wait for a core.
  bool has_queued() const { return !run_queue_.empty(); }
  // Where a thread goes on that waits for a core.
  std::optional<uint32_t> queued_at(uint32_t number) const;
  // Threads have numbers below that: first those of the cores.
  uint32_t thread_numbers() const { return threads_.size(); }
  uint32_t alive_without_core() const { return threads_.alive_without_core(); }
  // Before each slice, and before signals are looked at, while no event is left to handle: threads
  // that can go on get the cores that are free, or whose threads sleep or have had their time.
  void share_cores();
  void begin_slice();
  // The slice ended for the core in an event.
  void slice_was_short(uint32_t core);
  // The core has reached its limit of instructions, and its thread would go on at `uop`. True: that
  // thread had only come there, waits for another core now, and this core is retired.
  bool core_is_spent(uint32_t core, uint32_t uop);
  // It has no thread, and gets no other one.
  void retire_core(uint32_t core);
  bool has_usable_cores() const { return threads_.has_usable_cores(); }
  // Others that wait for a core come before the core's thread.
  void yield(uint32_t core);
  void end_threads_without_core();
  // Registers of a thread, and memory as it sees it, whether it has a core or not.
  uint64_t slot(uint32_t core, Slot slot);
  void set_slot(uint32_t core, Slot slot, uint64_t value);
  GuestAccess memory_of(uint32_t core) { return {backend_, has_core(core) ? core : 0}; }
  // The core's thread ended.
  void end_thread(uint32_t core);
  // Those of so many cores from `first` on, which ran.
  void end_threads(uint32_t first, uint32_t count);
  // Something may happen without any core's doing: the time by which to look.
  std::optional<Clock::time_point> next_deadline(Clock::time_point now) const;
  // The same, once cores have taken enough processor time; while all sleep that does not come.
  bool has_cpu_timers() const;
  // Processes that a signal ended: a core of each and the signal.
  struct Killed {
    uint32_t core = 0;
    int signal = 0;
  };
  std::vector<Killed> take_killed() { return std::exchange(killed_, {}); }

  // New processes: host/linux/family.h. Null before the first one.
  Family* family() { return family_ ? family_.get() : nullptr; }
  bool is_child() const { return family_ && !family_->is_first(); }
  // Null: this machine can have no other processes.
  Family* found_family();
  const Config& config() const { return config_; }
  // In a new process: the thread on this core is its only one.
  void become_child(uint32_t core);
  // What the predecessor of an executed program left, as text; Error if that is nonsense.
  std::string handover(Process& process, uint32_t core) const;
  void take_over(const std::string& text);
  // Signals of other processes, and what became of children.
  void hear_family();
  // All cores wait: until then at most.
  void nap(Clock::time_point until);
  void goes_on() {
    if (family_) family_->set_waits_for_others(false);
    naps_ = 0;
  }
  // All cores wait, and all of the other processes as well, for each other.
  bool is_deadlocked_with_others();
  // The process stops, or a note says why it does not. No core may run until is_stopped() is false.
  void stop(int signal);
  bool is_stopped() {
    const bool is = family_ && family_->is_stopped();
    was_stopped_ |= is;
    return is;
  }
  // Whether it was since the last time: signals that came meanwhile have to be taken first.
  bool take_was_stopped() { return std::exchange(was_stopped_, false); }
  // Children that end are not waited for: SIGCHLD is ignored, or SA_NOCLDWAIT is set.
  bool forgets_children(const Process& process) const;
  // vfork: the child that the core's call waits for.
  std::map<uint32_t, int32_t>& vfork_waits() { return vfork_waits_; }
  // The signal that ends this process.
  void set_end_signal(int signal) { end_signal_ = signal; }
  // The last thing that a process of a family does: others hear of it.
  void end_in_family(int exit_status);

  // For the functions that implement calls.
  Backend& backend() { return backend_; }
  const MemoryPlan& plan() const { return *config_.plan; }
  const Module& module() const { return *config_.module; }
  const LinuxAbi& abi() const { return abi_; }
  const PathPolicy& paths() const { return paths_; }
  // Where the relative paths of a process begin; null if that is no folder that it may see.
  FolderRef folder_of(Process& process);
  Network network() const { return config_.network; }
  // Processors that a process counts. It may have more threads.
  uint32_t cpus() const {
    if (is_private()) return 1;
    const uint32_t cores = plan().config.cores;
    return config_.cpus == 0 ? cores : std::min(config_.cpus, cores);
  }
  bool is_isolated() const { return config_.is_isolated; }
  Output& output() { return output_; }
  bool is_standard_output(int host_fd) const {
    return host_fd == config_.standard_files[1] || host_fd == config_.standard_files[2];
  }
  WaitQueue& waits() { return waits_; }
  // A waiter that was taken off the queue because `by` woke it goes on.
  void wake(const Waiter& waiter, uint32_t by) {
    resume(waiter.core, waiter.resume_uop, waiter.wake_result);
    if (config_.on_wake && has_core(waiter.core)) config_.on_wake(waiter.core, by);
  }
  const WaitQueue& waits() const { return waits_; }
  // What the guest takes for the memory of its machine.
  uint64_t memory_size_bytes() const {
    const MachineConfig& config = plan().config;
    return is_private() ? uint64_t{1} << config.window_shift : config.linear_size;
  }
  bool is_private() const { return plan().config.memory_model == MemoryModel::kPrivate; }
  Thread& thread(uint32_t core) { return threads_[core]; }
  const Thread* find_thread(uint32_t core) const { return threads_.find(core); }  // ThreadTable
  int64_t tid(uint32_t core) const { return threads_.tid(core); }
  Process& process_of(uint32_t core);
  // By number; null before the first call.
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
  std::optional<uint32_t> core_of_thread(int64_t tid) const;
  bool has_had_thread(int64_t tid) const;
  // A new thread, a copy of that of `parent`, on a free core if there is one; nothing: it would
  // need one.
  std::optional<uint32_t> start_thread(uint32_t parent);
  // Files that the guest mapped shared. Private processes have none.
  SharedMappings& shared_mappings();
  // A futex in memory that is mapped shared; nothing: in other memory.
  std::optional<FutexPlace> shared_place(uint64_t address) const;
  // Of several words that are one in shared memory, the lowest address.
  uint64_t lowest_address(const FutexPlace& place) const {
    return shared_mappings_->lowest_address(place);
  }
  // Where the host has the guest's word, if other processes may have it, too, and the guest may
  // write it.
  uint32_t* shared_word(const GuestAccess& memory, uint64_t address) const;
  // The table of waiters that other processes can wake; nothing: no other process can wake those in
  // this space.
  std::optional<SharedFutexes> lock_shared_futexes(uint32_t space);
  // The core was in that table until `by` woke it.
  void wake_shared(uint32_t core, int64_t result, uint32_t by) {
    shared_waits_.erase(core);
    std::optional<Waiter> waiter = waits_.take(core);
    if (!waiter) return;
    waiter->wake_result = result;
    wake(*waiter, by);
  }
  // The core waits in `waits()`, or for another look at its call.
  Reply park(const Waiter& waiter);
  // As `waits().take`: what the call returns. A waiter that another process woke meanwhile has been
  // woken; else `otherwise`.
  int64_t withdraw(const Waiter& waiter, int64_t otherwise);
  // The process executes another program: its memory is no longer there.
  void leave_memory();
  void stay_in_memory();
  struct Retry {
    bool from_outside = false;  // what it waits for need not come from a core
    bool restartable = false;   // see Waiter
    bool for_child = false;     // what it waits for are children of the process
    uint32_t resume_uop = 0;
  };
  Reply park_for_retry(const Call& call, const Retry& how);
  // Whether its call has waited already.
  bool is_retry(uint32_t core) const { return retries_.contains(core); }
  void post(uint32_t core, const SignalInfo& info);
  // After the core's call has waited: a signal that came before it in this slice ends the wait.
  void hear_signals(uint32_t core) {
    if (!is_parked(core) || deliverable(core) == 0) return;
    forget_ignored(core);
    if (deliverable(core) != 0) interrupt(core);
  }
  void post(Process& process, uint32_t caller, const SignalInfo& info);
  // Signals that wait for the core's thread or its process; those that it does not block.
  uint64_t pending(uint32_t core);
  uint64_t deliverable(uint32_t core);
  // Of those that it does not block: they end no wait.
  void forget_ignored(uint32_t core);
  // Takes the first signal in `allowed` that waits for the thread or its process.
  std::optional<SignalInfo> take_signal(uint32_t core, uint64_t allowed);
  CpuTime cpu_time() const;
  // What this process used since the program began; all but the times: since gpusim began.
  Usage usage() const;
  std::chrono::nanoseconds timer_now(Timer::Base base) const;
  // The core's process has timers or a limit of processor time.
  void watch_timers(uint32_t core);
  // A value as a register of the guest holds it.
  uint64_t in_register(int64_t value) const {
    return abi_.word_bytes == 4 ? static_cast<uint32_t>(value) : static_cast<uint64_t>(value);
  }
  // Of programs whose cores share memory, on the host; null for others.
  LateCode* late_code() { return late_code_ ? &*late_code_ : nullptr; }
  // If code was retired, cores go over to what is there now. No event of a core is left to handle.
  void leave_retired_code();
  // The core goes on at this guest address.
  void go_on_at(uint32_t core, uint64_t pc);
  // No core may go on in blocks that there were so far.
  void forget_code() { first_exact_uop_ = static_cast<uint32_t>(module().uops.size()); }
  // Cores that a debugger holds take no signals; asked about each. May be empty.
  void set_held(std::function<bool(uint32_t core)> is_held) { is_held_ = std::move(is_held); }
  // From now on registers and flags are exact wherever a core faults.
  void want_exact_state() { exact_state_wanted_ = true; }
  // Tells the user, once for each different `key`.
  void note_once(const std::string& key, const std::string& text);

  // For checkpoints, which define them. The files of all processes; throws Error for one that could
  // not be opened again.
  FileState file_state() const;
  // What a checkpoint keeps, those files among it. Loading opens none: that is open_again.
  template <class Archive>
  void describe(Archive& a, FileState& files);
  void open_again(const FileState& files);

 private:
  uint32_t place_at(uint64_t pc);
  bool starts_block(uint32_t uop) const;
  // Enters handlers for all signals that may be delivered now; returns where the core goes on, or
  // nothing if its process ends.
  std::optional<uint64_t> deliver(uint32_t core, uint64_t pc);
  void start_at(uint32_t core, uint64_t pc);
  void kill(uint32_t core, int signal);
  bool enter_handler(uint32_t core, const SignalInfo& info, uint64_t pc, uint64_t fault_address);
  uint64_t signal_return_code(uint32_t core);
  SignalFrame& frame();
  void interrupt(uint32_t core);
  std::vector<uint64_t>& context(uint32_t number);
  void copy_context(uint32_t from, uint32_t to);
  void move_thread(uint32_t from, uint32_t to);
  bool can_be_taken(uint32_t core);
  void take_core(uint32_t core);
  void give_core(uint32_t core);
  void come_to(uint32_t core, uint32_t number);
  void begin_round();
  void queue(uint32_t number, uint32_t uop);
  bool publish(const Waiter& waiter);
  void publish_locks();
  bool only_others_can_wake() const;
  void move_to_exact_code();
  void move_to_new_code(uint32_t core);
  bool retry_calls(Clock::time_point now);
  bool is_worth_a_try(const Retry& retry, uint32_t core, Clock::time_point now) const;
  void post_bus_errors();
  void set_cpu_time(const CpuTime& used);
  void ring_timers(Clock::time_point now);
  void ring(uint32_t core, Timer& timer, int32_t id, uint64_t times);
  void check_cpu_limit(uint32_t core, std::chrono::nanoseconds used);
  SignalInfo info_of(uint32_t core, uint64_t pc, Fault fault, uint64_t address);

  Backend& backend_;
  Config config_;
  const LinuxAbi& abi_;
  PathPolicy paths_;
  Output output_;
  WaitQueue waits_;
  std::array<FileRef, 3> standard_files_;
  std::unique_ptr<SignalFrame> frame_;  // once a signal reaches a handler
  std::optional<SharedMappings> shared_mappings_;  // once a guest maps
  std::optional<LateCode> late_code_;
  std::unique_ptr<Family> family_;  // once there is another process
  std::map<uint32_t, int32_t> vfork_waits_;
  std::set<uint32_t> shared_waits_;  // cores that other processes can wake
  uint32_t naps_ = 0;                // since a core ran
  int end_signal_ = 0;
  bool was_stopped_ = false;
  std::vector<std::unique_ptr<Process>> processes_;  // made at the first call
  ThreadTable threads_;
  RunQueue run_queue_;
  std::map<uint32_t, Retry> retries_;                // by core
  bool is_retrying_ = false;
  bool has_changed_ = true;  // what calls wait for that are tried again, perhaps
  bool looks_outside_ = false;
  Clock::time_point looked_outside_{};
  std::vector<uint32_t> timed_;                      // cores whose processes have timers
  CpuTime cpu_time_begin_;                           // what gpusim had taken when the guest began
  std::vector<Killed> killed_;
  uint32_t started_ = 0;
  int64_t next_tid_ = 0;
  bool exact_state_wanted_ = false, may_be_signalled_ = false;
  uint32_t first_exact_uop_ = 0;
  std::vector<uint32_t> not_yet_exact_;              // cores
  std::function<bool(uint32_t core)> is_held_;
  std::set<std::string> noted_;
  std::string cwd_;
};

// Numbers that repeat from run to run, far from those that mean something (0, 1).
inline constexpr int64_t kFirstPid = 1000;

// System calls by their number in the generic table; null where there is none.
Handler find_handler(uint64_t number);
// It changes nothing for which other calls wait: calls.def.
bool is_apart(Handler handler);
// "clone3"; null for numbers that Linux does not have.
const char* syscall_name(uint64_t number);

}  // namespace gpusim::host
