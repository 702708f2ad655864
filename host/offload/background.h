// Threads that each do one piece of work; nobody need wait for one that is no longer wanted.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace gpusim::offload {

class Background {
 public:
  /// `wake` is called after each piece of work, by its thread.
  explicit Background(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~Background();  // waits
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// `work` throws nothing. std::system_error: no thread.
  void start(std::function<void()> work);
  uint32_t running();

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable ended_;
  uint32_t running_ = 0;
};

}  // namespace gpusim::offload
