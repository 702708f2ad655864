// Translates programs in threads of their own. Nobody need wait for one that is no longer wanted.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/offload/program_cache.h"

namespace gpusim::offload {

class Loader {
 public:
  struct Result {
    std::atomic<bool> ready = false;
    ProgramCache::Result program;
    std::exception_ptr error;  // instead
  };

  /// `wake` is called when a result is ready.
  Loader(uint64_t cache_bytes, std::function<void()> wake)
      : wake_(std::move(wake)), cache_(cache_bytes) {}
  ~Loader();  // waits

  /// std::system_error: no thread.
  std::shared_ptr<Result> start(std::vector<uint8_t> bytes, std::string name);

 private:
  const std::function<void()> wake_;
  ProgramCache cache_;
  std::mutex mutex_;
  std::condition_variable ended_;
  uint32_t running_ = 0;
};

}  // namespace gpusim::offload
