#include "host/cuda_api/queue.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace gpusim::cuda_api {
namespace {

thread_local const Queue* served = nullptr;

}  // namespace

uint64_t Queue::submit(Work work) {
  const std::lock_guard lock(mutex_);
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
  has_work_.notify_one();
  return ++submitted_;
}

void Queue::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  has_done_.wait(lock, [&] { return done_ >= number; });
}

bool Queue::is_done(uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void Queue::drain() {
  std::unique_lock lock(mutex_);
  const uint64_t last = submitted_;
  has_done_.wait(lock, [&] { return done_ >= last; });
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
    has_work_.wait(lock, [&] { return !work_.empty() || is_finished_; });
    if (work_.empty()) return;
    const Work work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
    ++done_;
    has_done_.notify_all();
  }
}

}  // namespace gpusim::cuda_api
