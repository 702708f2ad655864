#include "host/offload/background.h"

#include <thread>

namespace gpusim::offload {

Background::~Background() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return running_ == 0; });
}

void Background::start(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  std::thread([this, work = std::move(work)]() mutable {
    work();
    work = nullptr;  // what it holds is gone before anyone hears of it
    if (wake_) wake_();
    const std::lock_guard last(mutex_);
    --running_;
    ended_.notify_all();
  }).detach();
  ++running_;
}

uint32_t Background::running() {
  const std::lock_guard lock(mutex_);
  return running_;
}

}  // namespace gpusim::offload
