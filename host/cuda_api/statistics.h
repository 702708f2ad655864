// Counts per kernel, for `gpusim cuda --stats`.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/cuda_api/kernel_engine.h"

namespace gpusim::cuda_api {

// "void add<float>(float*, int)" of a mangled name, or the name itself.
std::string readable_name(const std::string& mangled);

struct LaunchShape {
  ptx::Dim3 grid, block;
  uint64_t shared_bytes = 0;
};

class Statistics {
 public:
  // From now on each launch is kept, too, up to kMostLaunches.
  void keep_launches() { keeps_launches_ = true; }
  // Returns the launch's number: 1, 2, ...
  uint64_t add(const std::string& kernel, const LaunchShape& shape, const LaunchOutcome& outcome,
               double seconds);
  uint64_t launches() const;
  // One JSON object: {"device":…, "backend":…, "launches":…, "kernels":[…]}.
  nlohmann::ordered_json json(const std::string& device, const std::string& backend) const;

 private:
  struct Kernel {
    uint64_t launches = 0, threads = 0, instructions = 0, faults = 0;
    double seconds = 0;
    std::vector<ptx::OpcodeCount> opcodes;  // sorted
    std::optional<ptx::KernelProfile> profile;
    uint32_t devices = 0;  // the most of a launch
    const char* why_one_device = nullptr;
  };
  mutable std::mutex mutex_;
  struct One {
    std::string kernel;
    LaunchShape shape;
    uint64_t instructions;
    std::vector<ptx::OpcodeCount> opcodes;
  };
  static constexpr size_t kMostLaunches = 100'000;
  std::map<std::string, Kernel> kernels_;
  bool keeps_launches_ = false;
  std::vector<One> each_;
  uint64_t launches_ = 0;
};

}  // namespace gpusim::cuda_api
