// Futexes: waiting for a word to change, and waking.
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
constexpr int64_t kClockRealtime = 256, kOperationMask = 0x7f;
constexpr uint32_t kAnyBits = ~uint32_t{0};

Reply futex_wait(Kernel& kernel, Call& call, uint32_t bitset, TimeLimit kind) {
  if (bitset == 0) return Reply::error(EINVAL);
  Waiter waiter = futex_waiter(call, call.args[0]);
  waiter.bitset = bitset;
  waiter.timeout_result = -ETIMEDOUT;
  if (const int64_t error = set_time_limit(call, call.args[3], kind, &waiter))
    return Reply::result(error);
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
  uint32_t old;
  if (second & 3) return Reply::error(EINVAL);
  if (!call.memory.load(second, &old)) return Reply::error(EFAULT);
  const auto sign_extend12 = [](uint32_t x) { return static_cast<int32_t>(x << 20) >> 20; };
  int32_t operand = sign_extend12(code >> 12);
  const int32_t compared = sign_extend12(code);
  if (code >> 31) operand = static_cast<int32_t>(uint32_t{1} << (operand & 31));
  const auto bits = static_cast<uint32_t>(operand);
  uint32_t now;
  switch ((code >> 28) & 7) {
    case 0:
      now = bits;
      break;
    case 1:
      now = old + bits;
      break;
    case 2:
      now = old | bits;
      break;
    case 3:
      now = old & ~bits;
      break;
    case 4:
      now = old ^ bits;
      break;
    default:
      return Reply::error(ENOSYS);
  }
  const auto value = static_cast<int32_t>(old);
  bool holds;
  switch ((code >> 24) & 15) {
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
    case 5:
      holds = value >= compared;
      break;
    default:
      return Reply::error(ENOSYS);
  }
  if (!call.memory.store(second, now)) return Reply::error(EFAULT);
  const int64_t woken =
      futex_wake(kernel, call, call.args[0], wake_count(call.int_arg(2)), kAnyBits);
  if (woken < 0 || !holds) return Reply::result(woken);
  const int64_t more = futex_wake(kernel, call, second, wake_count(call.int_arg(3)), kAnyBits);
  return Reply::result(more < 0 ? more : woken + more);
}

Reply futex_requeue(Kernel& kernel, Call& call, bool compares) {
  const int64_t wake = call.int_arg(2), move = call.int_arg(3);
  const uint64_t target = call.args[4];
  if (wake < 0 || move < 0 || (target & 3)) return Reply::error(EINVAL);
  if (compares) {
    uint32_t value;
    if (!call.memory.load(call.args[0], &value)) return Reply::error(EFAULT);
    if (value != static_cast<uint32_t>(call.args[5])) return Reply::error(EAGAIN);
  }
  const int64_t woken =
      futex_wake(kernel, call, call.args[0], static_cast<uint64_t>(wake), kAnyBits);
  if (woken < 0) return Reply::result(woken);
  const uint64_t moved = kernel.waits().requeue(call.process->number, call.args[0], target,
                                                static_cast<uint64_t>(move));
  return Reply::result(woken + static_cast<int64_t>(moved));
}

}  // namespace

Waiter futex_waiter(const Call& call, uint64_t address) {
  Waiter waiter = waiter_for(call);
  waiter.address = address;
  return waiter;
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

int64_t futex_wake(Kernel& kernel, const Call& call, uint64_t address, uint64_t count,
                   uint32_t bitset) {
  const uint32_t space = call.process->number;
  const auto woken = kernel.waits().wake(space, address, count, bitset);
  for (const Waiter& w : woken) kernel.wake(w, call.core);
  if (woken.empty() && count != 0)
    if (const Waiter* first = kernel.waits().first(space, address);
        first && first->kind != Waiter::Kind::kPlain)
      return -EINVAL;
  return static_cast<int64_t>(woken.size());
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
      return Reply::result(
          futex_wake(kernel, call, call.args[0], wake_count(call.int_arg(2)), kAnyBits));
    case kWakeBitset: {
      const auto bitset = static_cast<uint32_t>(call.args[5]);
      if (bitset == 0) return Reply::error(EINVAL);
      return Reply::result(
          futex_wake(kernel, call, call.args[0], wake_count(call.int_arg(2)), bitset));
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
  constexpr uint32_t kMost = 128, kSize32 = 2, kPrivate = 128;
  const auto count = static_cast<uint32_t>(call.args[1]);
  if (static_cast<uint32_t>(call.args[2]) != 0 || count == 0 || count > kMost || call.args[0] == 0)
    return Reply::error(EINVAL);
  Waiter waiter = futex_waiter(call, 0);
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
    if ((g.flags & ~kPrivate) != kSize32 || g.reserved != 0 || (g.address & 3))
      return Reply::error(EINVAL);
  for (const GuestWaiter& g : guest) {
    uint32_t value;
    if (!call.memory.load(g.address, &value)) return Reply::error(EFAULT);
    if (value != static_cast<uint32_t>(g.value)) return Reply::error(EAGAIN);
  }
  Reply reply;
  for (const GuestWaiter& g : guest) {
    waiter.address = g.address;
    reply = kernel.park(waiter);
    ++waiter.wake_result;  // the number of the futex in the list
  }
  return reply;
}

}  // namespace gpusim::host
