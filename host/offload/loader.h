// Translates programs in threads of their own. Nobody need wait for one that is no longer wanted.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/offload/background.h"
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
      : cache_(cache_bytes), threads_(std::move(wake)) {}

  /// std::system_error: no thread.
  std::shared_ptr<Result> start(std::vector<uint8_t> bytes, std::string name);

 private:
  ProgramCache cache_;
  Background threads_;  // ends before the cache
};

}  // namespace gpusim::offload
