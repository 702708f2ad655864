// Which backend a run takes, and which of its devices: --backend, --device and --devices.
#pragma once
#include <string>
#include <vector>

#include "device_sim/core/backend.h"

namespace gpusim::host {

struct BackendRequest {
  std::string backend = "auto";
  std::string devices;  // numbers with commas between, or "all"; empty: the backend chooses
  MemoryModel memory_model = MemoryModel::kShared;
};
struct BackendChoice {
  std::string backend;
  std::vector<uint32_t> devices;  // empty: the first that can be used, or the backend has none
};

// Who names devices means the backend that has some. Throws UserError where there is no such backend
// or device, where it cannot be used, and where cores that share memory would be on several.
BackendChoice choose_backend(const BackendRequest& request);

}  // namespace gpusim::host
