#include "host/run/lock_holder.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/guest_access.h"

namespace gpusim::host {
namespace {

// pthread_mutex_t of glibc, whose futex is its first word (struct __pthread_mutex_s).
struct GlibcMutex {
  uint32_t lock, count;
  int32_t owner;  // a thread's number
  uint32_t users;
  int32_t kind;
};

bool waits_for_a_lock(const std::vector<CallFrame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const CallFrame& f) {
    return f.is_library && (f.function.find("mutex") != std::string::npos ||
                            f.function.find("lll_lock") != std::string::npos);
  });
}

std::string holder_text(const Kernel& kernel, uint32_t core, int64_t tid) {
  const std::optional<uint32_t> holder = kernel.core_of_thread(tid);
  if (!holder)
    return kernel.has_had_thread(tid) ? ", held by a thread that has ended" : std::string();
  if (*holder == core) return ", which it holds itself";
  if (!kernel.has_core(*holder)) return fmt::format(", which thread {} without a core holds", tid);
  return fmt::format(", which core {} holds", *holder);
}

}  // namespace

FutexUse futex_use(Kernel& kernel, uint32_t core, uint64_t address,
                   const std::vector<CallFrame>& frames) {
  FutexUse use;
  if (!kernel.is_private())
    for (uint32_t other = 0; other < kernel.thread_numbers(); ++other) {
      const Thread* const thread = kernel.is_alive(other) ? kernel.find_thread(other) : nullptr;
      if (!thread || thread->clear_child_tid != address) continue;
      use.kind = kernel.has_core(other)
                     ? fmt::format("the end of core {}'s thread, futex", other)
                     : fmt::format("the end of thread {} without a core, futex", thread->tid);
      return use;
    }
  if (!waits_for_a_lock(frames)) return use;
  const GuestAccess memory = kernel.memory_of(core);
  uint32_t word = 0;
  if (!memory.load(address, &word)) return use;
  use.kind = "mutex";
  // Priority inheritance, and musl's mutexes where they check: the word names the holder.
  constexpr uint32_t kTidMask = 0x3fffffff;  // FUTEX_TID_MASK
  if (kernel.core_of_thread(word & kTidMask)) {
    use.holder = holder_text(kernel, core, word & kTidMask);
    return use;
  }
  GlibcMutex mutex;
  constexpr int32_t kKinds = 0x1ff;
  const bool is_taken = memory.load(address, &mutex) && (mutex.lock == 1 || mutex.lock == 2) &&
                        mutex.users != 0 && (mutex.kind & ~kKinds) == 0;
  if (is_taken) use.holder = holder_text(kernel, core, mutex.owner);
  return use;
}

}  // namespace gpusim::host
