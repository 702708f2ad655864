// Futexes: waiting for a word to change, and waking.
#include <atomic>
#include <cerrno>

#include "host/linux/futex.h"
#include "host/linux/guest_abi.h"
#include "host/linux/times.h"

namespace gpusim::host {
namespace {

enum Operation : int {
  kWait = 0,
  kWake = 1,
  kRequeue = 3,
  kCmpRequeue = 4,
  kWakeOp = 5,
  kLockPi = 6,
  kUnlockPi = 7,
  kTrylockPi = 8,
  kWaitBitset = 9,
  kWakeBitset = 10,
  kWaitRequeuePi = 11,
  kCmpRequeuePi = 12,
  kLockPi2 = 13,
};
constexpr int64_t kPrivate = 128, kClockRealtime = 256, kOperationMask = 0x7f;
constexpr uint32_t kAnyBits = ~uint32_t{0};

Reply futex_wait(Kernel& kernel, Call& call, uint32_t bitset, TimeLimit kind) {
  if (bitset == 0) return Reply::error(EINVAL);
  Waiter waiter = futex_waiter(call, futex_word(kernel, call, call.args[0]));
  waiter.bitset = bitset;
  waiter.timeout_result = -ETIMEDOUT;
  if (const int64_t error = set_time_limit(call, call.args[3], kind, &waiter))
    return Reply::result(error);
  // A wake-up of another process comes before the word is looked at, or finds the waiter.
  const auto locked = kernel.lock_shared_futexes(waiter.space);
  uint32_t value;
  if (!call.memory.load(call.args[0], &value)) return Reply::error(EFAULT);
  if (value != static_cast<uint32_t>(call.args[2])) return Reply::error(EAGAIN);
  waiter.restart = waiter.deadline ? Restart::kNever : Restart::kIfWanted;
  return kernel.park(waiter);
}

// Linux wakes one waiter even if the caller asks for none, or for a negative number.
uint64_t wake_count(int64_t argument) { return argument < 1 ? 1 : static_cast<uint64_t>(argument); }

// FUTEX_WAKE_OP: changes a second futex, wakes waiters of the first, and of the second if what it
// held before passes a test; linux/futex.h.
Reply futex_wake_op(Kernel& kernel, Call& call) {
  const uint64_t second = call.args[4];
  const auto code = static_cast<uint32_t>(call.args[5]);
  if (second & 3) return Reply::error(EINVAL);
  const auto sign_extend12 = [](uint32_t x) { return static_cast<int32_t>(x << 20) >> 20; };
  int32_t operand = sign_extend12(code >> 12);
  const int32_t compared = sign_extend12(code);
  if (code >> 31) operand = static_cast<int32_t>(uint32_t{1} << (operand & 31));
  const auto bits = static_cast<uint32_t>(operand);
  constexpr uint32_t kOperations = 5, kComparisons = 6;
  const uint32_t operation = (code >> 28) & 7, comparison = (code >> 24) & 15;
  if (operation >= kOperations || comparison >= kComparisons) return Reply::error(ENOSYS);
  const auto change = [=](uint32_t old) {
    switch (operation) {
      case 0:
        return bits;
      case 1:
        return old + bits;
      case 2:
        return old | bits;
      case 3:
        return old & ~bits;
      default:
        return old ^ bits;
    }
  };
  const std::optional<uint32_t> old = change_word(kernel, call, second, change);
  if (!old) return Reply::error(EFAULT);
  const auto value = static_cast<int32_t>(*old);
  bool holds = false;
  switch (comparison) {
    case 0:
      holds = value == compared;
      break;
    case 1:
      holds = value != compared;
      break;
    case 2:
      holds = value < compared;
      break;
    case 3:
      holds = value <= compared;
      break;
    case 4:
      holds = value > compared;
      break;
    default:
      holds = value >= compared;
  }
  const int64_t woken = futex_wake(kernel, call, futex_word(kernel, call, call.args[0]),
                                   wake_count(call.int_arg(2)), kAnyBits);
  if (woken < 0 || !holds) return Reply::result(woken);
  const int64_t more = futex_wake(kernel, call, futex_word(kernel, call, second),
                                  wake_count(call.int_arg(3)), kAnyBits);
  return Reply::result(more < 0 ? more : woken + more);
}

// Moves at most `count` waiters; returns how many.
uint64_t futex_move(Kernel& kernel, const FutexWord& from, const FutexWord& to, uint64_t count) {
  if (from.place)
    if (auto shared = kernel.lock_shared_futexes(from.space))
      return shared->requeue(*from.place, *to.place, count);
  return kernel.waits().requeue(from.space, from.address, to.address, count);
}

Reply futex_requeue(Kernel& kernel, Call& call, bool compares) {
  const int64_t wake = call.int_arg(2), move = call.int_arg(3);
  const uint64_t target = call.args[4];
  if (wake < 0 || move < 0 || (target & 3)) return Reply::error(EINVAL);
  const FutexWord from = futex_word(kernel, call, call.args[0]);
  const FutexWord to = futex_word(kernel, call, target);
  const auto locked = kernel.lock_shared_futexes(from.space);
  if (compares) {
    uint32_t value;
    if (!call.memory.load(call.args[0], &value)) return Reply::error(EFAULT);
    if (value != static_cast<uint32_t>(call.args[5])) return Reply::error(EAGAIN);
  }
  const int64_t woken = futex_wake(kernel, call, from, static_cast<uint64_t>(wake), kAnyBits);
  if (woken < 0) return Reply::result(woken);
  // From memory of one kind to the other: they look at their words again.
  if (from.space != to.space) {
    const int64_t more = futex_wake(kernel, call, from, static_cast<uint64_t>(move), kAnyBits);
    return Reply::result(more < 0 ? more : woken + more);
  }
  const uint64_t moved = futex_move(kernel, from, to, static_cast<uint64_t>(move));
  return Reply::result(woken + static_cast<int64_t>(moved));
}

}  // namespace

FutexWord futex_word(const Kernel& kernel, const Call& call, uint64_t address, bool is_private) {
  FutexWord word{.space = call.process->number, .address = address};
  if (is_private) return word;
  word.place = kernel.shared_place(address);
  if (!word.place) return word;
  word.space |= kSharedSpace;
  word.address = kernel.lowest_address(*word.place);
  return word;
}

FutexWord futex_word(const Kernel& kernel, const Call& call, uint64_t address) {
  return futex_word(kernel, call, address, (call.int_arg(1) & kPrivate) != 0);
}

Waiter futex_waiter(const Call& call, const FutexWord& word) {
  Waiter waiter = waiter_for(call);
  waiter.space = word.space;
  waiter.address = word.address;
  return waiter;
}

std::optional<uint32_t> change_word(const Kernel& kernel, const Call& call, uint64_t address,
                                    const std::function<uint32_t(uint32_t)>& change) {
  uint32_t old = 0;
  if (uint32_t* const word = kernel.shared_word(call.memory, address)) {
    const std::atomic_ref<uint32_t> shared(*word);
    old = shared;
    while (!shared.compare_exchange_weak(old, change(old))) {
    }
    return old;
  }
  if (!call.memory.load(address, &old) || !call.memory.store(address, change(old)))
    return std::nullopt;
  return old;
}

int64_t set_time_limit(const Call& call, uint64_t address, TimeLimit kind, Waiter* waiter) {
  if (address == 0) return 0;
  GuestTimespec t;
  if (!call.memory.load(address, &t)) return -EFAULT;
  if (!is_valid(t)) return -EINVAL;
  if (kind == TimeLimit::kDuration)
    waiter->deadline = Clock::now() + duration_of(t);
  else
    waiter->deadline =
        deadline_on(kind == TimeLimit::kUntilRealtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, t);
  return 0;
}

int64_t futex_wake(Kernel& kernel, const Call& call, const FutexWord& word, uint64_t count,
                   uint32_t bitset) {
  int64_t woken = 0;
  if (auto shared = word.place ? kernel.lock_shared_futexes(word.space) : std::nullopt) {
    const SharedFutexes::Woken found = shared->wake(*word.place, count, bitset);
    for (const auto& [core, result] : found.own) kernel.wake_shared(core, result, call.core);
    woken = static_cast<int64_t>(found.own.size() + found.others);
  } else {
    const auto found = kernel.waits().wake(word.space, word.address, count, bitset);
    for (const Waiter& w : found) kernel.wake(w, call.core);
    woken = static_cast<int64_t>(found.size());
  }
  if (woken == 0 && count != 0)
    if (const Waiter* first = kernel.waits().first(word.space, word.address);
        first && first->kind != Waiter::Kind::kPlain)
      return -EINVAL;
  return woken;
}

Reply sys_futex(Kernel& kernel, Call& call) {
  if (call.args[0] & 3) return Reply::error(EINVAL);
  const int64_t flags = call.int_arg(1), operation = flags & kOperationMask;
  const bool realtime = (flags & kClockRealtime) != 0;
  if (realtime && operation != kWaitBitset && operation != kWaitRequeuePi && operation != kLockPi2)
    return Reply::error(ENOSYS);
  const TimeLimit until = realtime ? TimeLimit::kUntilRealtime : TimeLimit::kUntilMonotonic;
  switch (operation) {
    case kWait:
      return futex_wait(kernel, call, kAnyBits, TimeLimit::kDuration);
    case kWaitBitset:
      return futex_wait(kernel, call, static_cast<uint32_t>(call.args[5]), until);
    case kWake:
      return Reply::result(futex_wake(kernel, call, futex_word(kernel, call, call.args[0]),
                                      wake_count(call.int_arg(2)), kAnyBits));
    case kWakeBitset: {
      const auto bitset = static_cast<uint32_t>(call.args[5]);
      if (bitset == 0) return Reply::error(EINVAL);
      return Reply::result(futex_wake(kernel, call, futex_word(kernel, call, call.args[0]),
                                      wake_count(call.int_arg(2)), bitset));
    }
    case kWakeOp:
      return futex_wake_op(kernel, call);
    case kRequeue:
    case kCmpRequeue:
      return futex_requeue(kernel, call, operation == kCmpRequeue);
    case kLockPi:
      return futex_lock_pi(kernel, call, TimeLimit::kUntilRealtime);
    case kLockPi2:
      return futex_lock_pi(kernel, call, until);
    case kTrylockPi:
      return futex_trylock_pi(kernel, call);
    case kUnlockPi:
      return futex_unlock_pi(kernel, call);
    case kWaitRequeuePi:
      return futex_wait_requeue_pi(kernel, call, until);
    case kCmpRequeuePi:
      return futex_cmp_requeue_pi(kernel, call);
    default:
      return Reply::error(ENOSYS);
  }
}

Reply sys_futex_waitv(Kernel& kernel, Call& call) {
  struct GuestWaiter {
    uint64_t value, address;
    uint32_t flags, reserved;
  };
  static_assert(sizeof(GuestWaiter) == 24);
  constexpr uint32_t kMost = 128, kSize32 = 2;
  const auto count = static_cast<uint32_t>(call.args[1]);
  if (static_cast<uint32_t>(call.args[2]) != 0 || count == 0 || count > kMost || call.args[0] == 0)
    return Reply::error(EINVAL);
  Waiter waiter = waiter_for(call);
  waiter.timeout_result = -ETIMEDOUT;
  waiter.restart = Restart::kIfWanted;
  if (call.args[3] != 0) {
    const int64_t clock = call.int_arg(4);
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return Reply::error(EINVAL);
    const TimeLimit until =
        clock == CLOCK_REALTIME ? TimeLimit::kUntilRealtime : TimeLimit::kUntilMonotonic;
    if (const int64_t error = set_time_limit(call, call.args[3], until, &waiter))
      return Reply::result(error);
  }
  std::vector<GuestWaiter> guest(count);
  if (!call.memory.read(call.args[0], {reinterpret_cast<uint8_t*>(guest.data()),
                                       guest.size() * sizeof(GuestWaiter)}))
    return Reply::error(EFAULT);
  for (const GuestWaiter& g : guest)
    if ((g.flags & ~uint32_t{kPrivate}) != kSize32 || g.reserved != 0 || (g.address & 3))
      return Reply::error(EINVAL);
  const auto locked = kernel.lock_shared_futexes(kSharedSpace);
  for (const GuestWaiter& g : guest) {
    uint32_t value;
    if (!call.memory.load(g.address, &value)) return Reply::error(EFAULT);
    if (value != static_cast<uint32_t>(g.value)) return Reply::error(EAGAIN);
  }
  Reply reply;
  for (const GuestWaiter& g : guest) {
    const FutexWord word = futex_word(kernel, call, g.address, (g.flags & kPrivate) != 0);
    waiter.space = word.space;
    waiter.address = word.address;
    reply = kernel.park(waiter);
    if (reply.kind != Reply::Kind::kParked) {
      if (const auto first = kernel.waits().take(call.core)) kernel.withdraw(*first, 0);
      break;
    }
    ++waiter.wake_result;  // the number of the futex in the list
  }
  return reply;
}

}  // namespace gpusim::host
