// A process whose output is read, and which does not outlive this one.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "host/sweep/machine.h"

struct pollfd;

namespace gpusim::sweep {

class Child {
 public:
  // words[0] is a path. Throws UserError where no process can be made.
  explicit Child(const std::vector<std::string>& words);
  ~Child();  // ends the process
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

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
  void close_pipes();
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Sha256 output_;
  Result result_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace gpusim::sweep
