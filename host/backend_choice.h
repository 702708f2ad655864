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
  uint32_t cores = 1;
};
struct BackendChoice {
  std::string backend;
  std::vector<uint32_t> devices;  // empty: the first that can be used, or the backend has none
  std::string note = {};          // for the user: why `auto` left a GPU alone
};

// Fewer are faster on processors: an H100 beside 16 of them (docs/benchmarks/2026-11-26-h100.md).
inline constexpr uint32_t kFewestCoresOnGpu = 16384;

// Devices mean the backend that has some. `auto` takes a GPU only if it passed its self-test, which
// is run if nobody did so before. Throws Error where there is no such backend or device, where
// it cannot be used, and where cores that share memory would be on several.
BackendChoice choose_backend(const BackendRequest& request);

// "all", those that can be used, or numbers with commas between. Throws Error.
std::vector<uint32_t> parse_devices(const std::string& text);

}  // namespace gpusim::host
