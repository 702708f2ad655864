#include "host/cuda_api/queue.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace gpusim::cuda_api {
namespace {

thread_local const Queue* served = nullptr;

}  // namespace

// Threads are woken only if they wait for what there is now, and without the lock, which they take
// at once: programs make thousands of short launches, each of which would cost several switches.
uint64_t Queue::submit(Work work) {
  std::unique_lock lock(mutex_);
  if (is_finished_) return done_;
  if (!thread_.joinable()) {
    // The program's signals are for the program's threads.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  work_.push_back(std::move(work));
  const uint64_t number = ++submitted_;
  const bool is_idle = std::exchange(is_idle_, false);
  lock.unlock();
  if (is_idle) has_work_.notify_one();
  return number;
}

void Queue::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  wait_for(lock, number);
}

void Queue::wait_for(std::unique_lock<std::mutex>& lock, uint64_t number) {
  while (done_ < number) {
    least_awaited_ = std::min(least_awaited_, number);
    has_done_.wait(lock);
  }
}

bool Queue::is_done(uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void Queue::drain() {
  std::unique_lock lock(mutex_);
  wait_for(lock, submitted_);
}

bool Queue::is_own_thread() const { return served == this; }

void Queue::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_finished_ = true;
    has_work_.notify_one();
  }
  if (!thread_.joinable()) return;
  if (is_own_thread())
    thread_.detach();  // a host function that ends the program
  else
    thread_.join();
}

void Queue::serve() {
  served = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (work_.empty() && !is_finished_) {
      is_idle_ = true;
      has_work_.wait(lock);
    }
    is_idle_ = false;
    if (work_.empty()) return;
    const Work work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
    if (++done_ < least_awaited_) continue;
    least_awaited_ = UINT64_MAX;  // who waits for more says so again
    lock.unlock();
    has_done_.notify_all();
    lock.lock();
  }
}

}  // namespace gpusim::cuda_api
