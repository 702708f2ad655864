// A command that runs while power is sampled.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "energy/power/workload.h"

namespace gpusim::power {

class ChildProcess {
 public:
  // Starts it, with our standard streams. `variables`: NAME=VALUE, added to its environment.
  // Throws energy::Error where it cannot be executed.
  explicit ChildProcess(const std::vector<std::string>& command,
                        const std::vector<std::string>& variables = {});
  // Kills and waits for it, if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  Seconds began() const { return began_; }  // CLOCK_MONOTONIC, when it was executed
  // Its exit status once it has ended: 128 + the signal where a signal ended it.
  std::optional<int> poll();
  int wait();
  void send(int signal);

 private:
  pid_t pid_ = -1;
  Seconds began_;
  std::optional<int> status_;
};

// A command as a workload: each start is a new process.
class CommandWorkload final : public Workload {
 public:
  explicit CommandWorkload(std::vector<std::string> command) : command_(std::move(command)) {}
  Seconds start() override;
  bool is_running() override;
  // Throws energy::Error where the command failed: its energy would mean nothing.
  Seconds finish() override;

 private:
  std::vector<std::string> command_;
  std::optional<ChildProcess> child_;
  std::optional<Seconds> ended_;
};

}  // namespace gpusim::power
