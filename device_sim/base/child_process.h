// Another program as a process that does not outlive this object.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace gpusim {

struct ChildSettings {
  std::vector<std::string> variables;  // NAME=VALUE, set anew in its environment
  // What become its standard streams; ours otherwise. kNoStream: /dev/null.
  static constexpr int kNoStream = -1;
  int input = 0, output = 1, error = 2;
  // In a process group of its own, which the terminal's Ctrl-C does not reach, and killed by the
  // kernel when this process ends, however it ends.
  bool is_apart = false;
};

class ChildProcess {
 public:
  // command[0] is looked up in PATH. Throws Error where it cannot be executed.
  explicit ChildProcess(const std::vector<std::string>& command,
                        const ChildSettings& settings = {});
  // Kills and waits for it, if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Its exit status once it has ended, as a shell tells it: 128 + the signal that ended it.
  std::optional<int> poll();
  int wait();
  // Once it has ended.
  std::optional<int> ended_by_signal() const { return signal_; }
  const rusage& usage() const { return usage_; }
  void send(int signal);

 private:
  std::optional<int> collect(int options);
  pid_t pid_ = -1;
  std::optional<int> status_, signal_;
  rusage usage_{};
};

}  // namespace gpusim
