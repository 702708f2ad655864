// A command as a workload: each start is a new process.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/base/child_process.h"
#include "energy/power/workload.h"

namespace gpusim::power {

class CommandWorkload final : public Workload {
 public:
  explicit CommandWorkload(std::vector<std::string> command) : command_(std::move(command)) {}
  Seconds start() override;
  bool is_running() override;
  // Throws Error where the command failed: its energy would mean nothing.
  Seconds finish() override;

 private:
  std::vector<std::string> command_;
  std::optional<ChildProcess> child_;
  std::optional<Seconds> ended_;
};

}  // namespace gpusim::power
