#include "host/offload/loader.h"

namespace gpusim::offload {

std::shared_ptr<Loader::Result> Loader::start(std::vector<uint8_t> bytes, std::string name) {
  auto result = std::make_shared<Result>();
  threads_.start([this, result, bytes = std::move(bytes), name = std::move(name)]() mutable {
    try {
      result->program = cache_.get(std::move(bytes), name);
    } catch (...) {
      result->error = std::current_exception();
    }
    result->ready.store(true, std::memory_order_release);
  });
  return result;
}

}  // namespace gpusim::offload
