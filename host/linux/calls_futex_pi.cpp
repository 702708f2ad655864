// Locks that the kernel hands over: FUTEX_LOCK_PI and kin (futex(2), "Priority-inheritance futexes").
//
// The word holds the owner's thread number. All threads have one priority, so nothing is inherited:
// what is left is that the kernel chooses the next owner, finds deadlocks, and knows when an owner
// has died. Who owns a lock is told by its word, and once somebody waits for it by the queue: a
// library may clear the word of a thread that is about to end.
#include <cerrno>

#include "host/linux/futex.h"
#include "host/linux/words.h"

namespace gpusim::host {
namespace {

class Lock {
 public:
  Lock(Kernel& kernel, const Call& call, uint64_t address)
      : Lock(kernel, call, futex_word(kernel, call, address)) {}
  Lock(Kernel& kernel, const Call& call, const FutexWord& word)
      : kernel_(kernel),
        memory_(call.memory),
        process_(call.process->number),
        space_(word.space),
        address_(word.address) {}

  // Takes the lock for the thread on `core`: 1. It is another's, and marked as waited for: 0. Else
  // -errno. `mark`: mark it in any case.
  int64_t try_take(uint32_t core, bool mark) const {
    uint32_t word;
    if (!load(&word)) return -EFAULT;
    const uint32_t tid = tid_of(core), owner = word & kFutexTidMask;
    if (owner == tid) return -EDEADLK;
    const Waiter* first = first_waiter();
    // Plain waiters, or a lock that the program itself gave to another.
    if (first && (first->kind != Waiter::Kind::kPi || lock_state()->owner != owner)) return -EINVAL;
    if (owner == 0) {
      const uint32_t taken = (word & kFutexOwnerDied) | tid | (mark ? kFutexWaiters : 0);
      return store(taken) ? 1 : -EFAULT;
    }
    if (!store(word | kFutexWaiters)) return -EFAULT;
    if (core_of(owner)) return 0;
    if (kernel_.family() && kernel_.shared_place(address_))
      kernel_.note_once("inheritance between processes",
                        "a lock with priority inheritance (PTHREAD_PRIO_INHERIT) that another "
                        "process has cannot be waited for: futex returns ESRCH, after which C "
                        "libraries wait for ever; locks between processes work without inheritance "
                        "(PTHREAD_PRIO_NONE)");
    return -ESRCH;
  }

  // The same for a thread that would wait: -EDEADLK if the owner waits for it already. `owner`: whom
  // it has to wait for.
  int64_t try_take_or_wait(uint32_t core, bool mark, int64_t* owner) const {
    const int64_t taken = try_take(core, mark);
    if (taken != 0) return taken;
    uint32_t word = 0;
    load(&word);
    *owner = word & kFutexTidMask;
    return is_awaited_by(*owner, core) ? -EDEADLK : 0;
  }

  // Gives the lock, whose word is `word`, to its first waiter. `died`: its owner ended.
  void hand_over(uint32_t word, bool died) const {
    const std::optional<Waiter> next = kernel_.waits().take(first_waiter()->core);
    const uint32_t mark = died ? kFutexOwnerDied : word & kFutexOwnerDied;
    store(mark | kFutexWaiters | tid_of(next->core));
    kernel_.waits().set_owner(space_, address_, tid_of(next->core));
    kernel_.resume(next->core, next->resume_uop, 0);
  }

  bool load(uint32_t* word) const {
    return memory_.allows(address_, sizeof *word, kRead | kWrite) && memory_.load(address_, word);
  }
  bool store(uint32_t word) const { return memory_.store(address_, word); }
  const WaitQueue::PiLock* lock_state() const { return kernel_.waits().find_lock(space_, address_); }
  const Waiter* first_waiter() const { return kernel_.waits().first(space_, address_); }

 private:
  // Where that thread of the process runs.
  std::optional<uint32_t> core_of(int64_t tid) const {
    const std::optional<uint32_t> core = kernel_.core_of_thread(tid);
    const bool is_own = !kernel_.is_private() || core == process_;
    return is_own ? core : std::nullopt;
  }
  uint32_t tid_of(uint32_t core) const { return static_cast<uint32_t>(kernel_.tid(core)); }

  // Whether the thread `tid` waits, over any number of locks, for the one on `core`. Who would close a
  // ring is refused: so there is none.
  bool is_awaited_by(int64_t tid, uint32_t core) const {
    while (const std::optional<uint32_t> owner = core_of(tid)) {
      if (*owner == core) return true;
      const Waiter* waiter = kernel_.waits().find(*owner);
      if (!waiter || waiter->kind != Waiter::Kind::kPi) return false;
      tid = kernel_.waits().find_lock(waiter->space, waiter->address)->owner;
    }
    return false;
  }

  Kernel& kernel_;
  const GuestAccess& memory_;
  uint32_t process_, space_;
  uint64_t address_;
};

}  // namespace

Reply futex_lock_pi(Kernel& kernel, Call& call, TimeLimit kind) {
  Waiter waiter = futex_waiter(call, futex_word(kernel, call, call.args[0]));
  waiter.kind = Waiter::Kind::kPi;
  waiter.timeout_result = -ETIMEDOUT;
  waiter.restart = Restart::kAlways;
  if (const int64_t error = set_time_limit(call, call.args[3], kind, &waiter))
    return Reply::result(error);
  const Lock lock(kernel, call, call.args[0]);
  const int64_t taken = lock.try_take_or_wait(call.core, /*mark=*/false, &waiter.pi_owner);
  if (taken == 0) return kernel.park(waiter);
  return Reply::result(taken > 0 ? 0 : taken);
}

Reply futex_trylock_pi(Kernel& kernel, Call& call) {
  const int64_t taken = Lock(kernel, call, call.args[0]).try_take(call.core, /*mark=*/false);
  if (taken > 0) return Reply::result(0);
  return Reply::error(taken == 0 ? EAGAIN : static_cast<int>(-taken));
}

Reply futex_unlock_pi(Kernel& kernel, Call& call) {
  const Lock lock(kernel, call, call.args[0]);
  uint32_t word;
  if (!lock.load(&word)) return Reply::error(EFAULT);
  if ((word & kFutexTidMask) != static_cast<uint32_t>(kernel.tid(call.core)))
    return Reply::error(EPERM);
  const Waiter* first = lock.first_waiter();
  if (!first) return lock.store(0) ? Reply::result(0) : Reply::error(EFAULT);
  if (first->kind != Waiter::Kind::kPi ||
      lock.lock_state()->owner != kernel.tid(call.core))
    return Reply::error(EINVAL);
  lock.hand_over(word, /*died=*/false);
  return Reply::result(0);
}

Reply futex_wait_requeue_pi(Kernel& kernel, Call& call, TimeLimit kind) {
  if (call.args[0] == call.args[4] || (call.args[4] & 3)) return Reply::error(EINVAL);
  Waiter waiter = futex_waiter(call, futex_word(kernel, call, call.args[0]));
  waiter.kind = Waiter::Kind::kRequeuePi;
  waiter.pi_target = call.args[4];
  waiter.timeout_result = -ETIMEDOUT;
  waiter.restart = Restart::kAlways;
  if (const int64_t error = set_time_limit(call, call.args[3], kind, &waiter))
    return Reply::result(error);
  uint32_t value;
  if (!call.memory.load(call.args[0], &value)) return Reply::error(EFAULT);
  if (value != static_cast<uint32_t>(call.args[2])) return Reply::error(EAGAIN);
  return kernel.park(waiter);
}

// The first waiter gets the lock, or is the first to wait for it; the others follow.
Reply futex_cmp_requeue_pi(Kernel& kernel, Call& call) {
  const uint64_t address = call.args[0], target = call.args[4];
  const int64_t move = call.int_arg(3);
  if (call.int_arg(2) != 1 || move < 0 || address == target || (target & 3))
    return Reply::error(EINVAL);
  uint32_t value;
  if (!call.memory.load(address, &value)) return Reply::error(EFAULT);
  if (value != static_cast<uint32_t>(call.args[5])) return Reply::error(EAGAIN);

  const FutexWord from = futex_word(kernel, call, address), to = futex_word(kernel, call, target);
  const Lock lock(kernel, call, to);
  int64_t done = 0;
  while (const Waiter* first = kernel.waits().first(from.space, from.address)) {
    if (done - 1 >= move) break;  // one is woken, or counted as such, besides those that move
    if (first->kind != Waiter::Kind::kRequeuePi || first->pi_target != target)
      return Reply::error(EINVAL);
    int64_t owner = 0;
    const int64_t taken = lock.try_take_or_wait(first->core, /*mark=*/move > 0, &owner);
    if (taken < 0) return Reply::result(taken);
    Waiter waiter = *kernel.waits().take(first->core);
    if (taken > 0) {
      kernel.resume(waiter.core, waiter.resume_uop, 0);
    } else {
      waiter.kind = Waiter::Kind::kPi;
      waiter.space = to.space;
      waiter.address = to.address;
      waiter.pi_owner = owner;
      // The call cannot begin anew: what it waited for has happened.
      waiter.restart = Restart::kNever;
      waiter.interrupt_result = -EAGAIN;
      kernel.waits().park(waiter);
    }
    ++done;
  }
  return Reply::result(done);
}

// --- locks of threads that end

namespace {

// As set_robust_list(2) has it: the first entry, the bytes from an entry to its lock's word, the entry
// that is about to be taken or freed.
using RobustList = std::array<int64_t, 3>;
uint64_t robust_list_bytes(const Call& call) { return 3 * call.word_bytes; }
constexpr uint64_t kIsPi = 1;         // in a pointer to an entry
constexpr int kMostRobustLocks = 2048;  // the list may be a ring

// `pending`: the thread was about to take or to free this one.
bool release_robust_lock(Kernel& kernel, const Call& call, uint64_t address, bool is_pi,
                         bool pending) {
  uint32_t word;
  if ((address & 3) || !call.memory.load(address, &word)) return false;
  const auto wake = [&] {
    futex_wake(kernel, call, futex_word(kernel, call, address), 1, ~uint32_t{0});
  };
  if (pending && !is_pi && word == 0) {
    wake();
    return true;
  }
  const auto tid = static_cast<uint32_t>(kernel.tid(call.core));
  if ((word & kFutexTidMask) != tid) return true;
  const std::optional<uint32_t> old = change_word(kernel, call, address, [](uint32_t now) {
    return (now & kFutexWaiters) | kFutexOwnerDied;
  });
  if (!old) return false;
  if (!is_pi && (*old & kFutexWaiters)) wake();
  return true;
}

void release_robust_list(Kernel& kernel, const Call& call) {
  const Thread* const thread = kernel.find_thread(call.core);
  const uint64_t head = thread ? thread->robust_list : 0;
  RobustList list;
  if (head == 0 || !load_longs(call, head, &list)) return;
  const int64_t offset = list[1];
  const uint64_t pending_entry = kernel.in_register(list[2]);
  const auto release = [&](uint64_t entry, bool pending) {
    const int64_t lock = static_cast<int64_t>(entry & ~kIsPi) + offset;
    return release_robust_lock(kernel, call, kernel.in_register(lock), (entry & kIsPi) != 0,
                               pending);
  };
  uint64_t entry = kernel.in_register(list[0]);
  for (int i = 0; i < kMostRobustLocks && (entry & ~kIsPi) != head; ++i) {
    std::array<int64_t, 1> next{};
    const bool has_next = load_longs(call, entry & ~kIsPi, &next);
    if ((entry & ~kIsPi) != (pending_entry & ~kIsPi) && !release(entry, /*pending=*/false)) return;
    if (!has_next) break;
    entry = kernel.in_register(next[0]);
  }
  if ((pending_entry & ~kIsPi) != 0) release(pending_entry, /*pending=*/true);
}

}  // namespace

// As if the thread called: what it leaves is everybody's, as a futex without FUTEX_PRIVATE_FLAG.
static Call ending_call(Kernel& kernel, uint32_t core) {
  return {.core = core,
          .word_bytes = kernel.abi().word_bytes,
          .process = &kernel.process_of(core),
          .memory = kernel.memory_of(core)};
}

void release_locks(Kernel& kernel, uint32_t core) {
  const Call call = ending_call(kernel, core);
  const int64_t tid = kernel.tid(core);
  for (const uint32_t space : {call.process->number, call.process->number | kSharedSpace})
    for (const uint64_t address : kernel.waits().locks_of(space, tid)) {
      const Lock lock(kernel, call, FutexWord{.space = space, .address = address});
      uint32_t word = 0;
      lock.load(&word);
      if (lock.first_waiter()->kind == Waiter::Kind::kPi) lock.hand_over(word, /*died=*/true);
    }
  release_robust_list(kernel, call);
}

void wake_after_end(Kernel& kernel, uint32_t core, uint64_t address) {
  const Call call = ending_call(kernel, core);
  futex_wake(kernel, call, futex_word(kernel, call, address), 1, ~uint32_t{0});
}

Reply sys_set_robust_list(Kernel& kernel, Call& call) {
  if (call.args[1] != robust_list_bytes(call)) return Reply::error(EINVAL);
  kernel.thread(call.core).robust_list = call.args[0];
  return Reply::result(0);
}

Reply sys_get_robust_list(Kernel& kernel, Call& call) {
  const int64_t tid = call.int_arg(0);
  const std::optional<uint32_t> core =
      tid == 0 ? std::optional(call.core) : kernel.core_of_thread(tid);
  if (!core || (kernel.is_private() && *core != call.core)) return Reply::error(ESRCH);
  const auto size = static_cast<int64_t>(robust_list_bytes(call));
  const auto head = static_cast<int64_t>(kernel.thread(*core).robust_list);
  const bool ok = store_longs<1>(call, call.args[2], {size}) &&
                  store_longs<1>(call, call.args[1], {head});
  return ok ? Reply::result(0) : Reply::error(EFAULT);
}

}  // namespace gpusim::host
