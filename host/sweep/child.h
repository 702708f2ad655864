// A run of a study: its output is summed, its use of the machine measured.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/base/child_process.h"
#include "device_sim/base/file_descriptor.h"
#include "host/sweep/machine.h"

struct pollfd;

namespace gpusim::sweep {

class Child {
 public:
  // words[0] is a path. Throws Error where no process can be made.
  explicit Child(const std::vector<std::string>& words);

  void add_to(std::vector<pollfd>& list) const;
  void read();       // what there is, without waiting
  bool has_ended();  // then the results below hold
  void kill();

  struct Result {
    int status = 0;  // as a shell tells it: 128 + signal
    bool by_signal = false;
    double wall_seconds = 0, cpu_seconds = 0;
    uint64_t max_rss_bytes = 0, output_bytes = 0;
    std::string output_sha256, errors;  // the end of standard error
  };
  const Result& result() const { return result_; }
  double seconds_so_far() const;

 private:
  FileDescriptor out_, err_;
  std::optional<ChildProcess> process_;
  Sha256 output_;
  Result result_;
  bool has_ended_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace gpusim::sweep
