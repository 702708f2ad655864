// Counts per kernel, for `gpusim cuda --stats`.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "host/cuda_api/kernel_engine.h"

namespace gpusim::cuda_api {

// "void add<float>(float*, int)" of a mangled name, or the name itself.
std::string readable_name(const std::string& mangled);

class Statistics {
 public:
  // Returns the launch's number: 1, 2, ...
  uint64_t add(const std::string& kernel, const LaunchOutcome& outcome, double seconds);
  uint64_t launches() const;
  // One JSON object: {"device":…, "backend":…, "launches":…, "kernels":[…]}.
  nlohmann::ordered_json json(const std::string& device, const std::string& backend) const;

 private:
  struct Kernel {
    uint64_t launches = 0, threads = 0, instructions = 0, faults = 0;
    double seconds = 0;
    std::map<std::string, uint64_t> opcodes;
    std::optional<ptx::KernelProfile> profile;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Kernel> kernels_;
  uint64_t launches_ = 0;
};

}  // namespace gpusim::cuda_api
