// What the futex operations share: calls_futex.cpp has the plain ones, calls_futex_pi.cpp locks
// that the kernel hands over and what becomes of the locks of a thread that ends.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "host/linux/calls.h"
#include "host/linux/wait_queue.h"

namespace gpusim::host {

// A lock's word, as C libraries and the kernel agree on it; linux/futex.h.
inline constexpr uint32_t kFutexWaiters = 0x80000000, kFutexOwnerDied = 0x40000000,
                          kFutexTidMask = 0x3fffffff;

// Which futex a call means: the key of its waiters, and for memory that several processes may have
// mapped, where it is there.
struct FutexWord {
  uint32_t space = 0;
  uint64_t address = 0;  // of the several that such memory may have, the lowest
  std::optional<FutexPlace> place{};
};
// `is_private`: the caller says that only its own process uses it (FUTEX_PRIVATE_FLAG).
FutexWord futex_word(const Kernel& kernel, const Call& call, uint64_t address, bool is_private);
// The same, of a call of futex(2) with its flags.
FutexWord futex_word(const Kernel& kernel, const Call& call, uint64_t address);

// A waiter for the calling core there.
Waiter futex_waiter(const Call& call, const FutexWord& word);

// Replaces the word by what `change` makes of it. What it was; nothing: it cannot be written.
// Other processes see no moment between.
std::optional<uint32_t> change_word(const Kernel& kernel, const Call& call, uint64_t address,
                                    const std::function<uint32_t(uint32_t)>& change);

enum class TimeLimit : uint8_t { kDuration, kUntilMonotonic, kUntilRealtime };
// Sets the waiter's deadline by the time-out at `address`, if that is not null. 0 or -errno.
int64_t set_time_limit(const Call& call, uint64_t address, TimeLimit kind, Waiter* waiter);

// Wakes at most `count` plain waiters; returns how many, or -EINVAL if a lock's waiters are there.
int64_t futex_wake(Kernel& kernel, const Call& call, const FutexWord& word, uint64_t count,
                   uint32_t bitset);

// Of FUTEX_LOCK_PI and its kin.
Reply futex_lock_pi(Kernel& kernel, Call& call, TimeLimit kind);
Reply futex_trylock_pi(Kernel& kernel, Call& call);
Reply futex_unlock_pi(Kernel& kernel, Call& call);
Reply futex_wait_requeue_pi(Kernel& kernel, Call& call, TimeLimit kind);
Reply futex_cmp_requeue_pi(Kernel& kernel, Call& call);

// The core's thread ends: locks of its robust list, and those that others wait for in the kernel,
// go to the next, who learns that the owner died.
void release_locks(Kernel& kernel, uint32_t core);
// It has told so by the word at `address`.
void wake_after_end(Kernel& kernel, uint32_t core, uint64_t address);

}  // namespace gpusim::host
