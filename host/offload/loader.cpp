#include "host/offload/loader.h"

#include <thread>

namespace gpusim::offload {

Loader::~Loader() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return running_ == 0; });
}

std::shared_ptr<Loader::Result> Loader::start(std::vector<uint8_t> bytes, std::string name) {
  auto result = std::make_shared<Result>();
  const std::lock_guard lock(mutex_);
  std::thread([this, result, bytes = std::move(bytes), name = std::move(name)] {
    try {
      result->program = cache_.get(bytes, name);
    } catch (...) {
      result->error = std::current_exception();
    }
    result->ready.store(true, std::memory_order_release);
    if (wake_) wake_();
    const std::lock_guard last(mutex_);
    --running_;
    ended_.notify_all();
  }).detach();
  ++running_;
  return result;
}

}  // namespace gpusim::offload
