// A page of a run while it runs (`gpusim run --watch`), served to this machine alone.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device_sim/base/file_descriptor.h"

namespace gpusim::host {

class Watch {
 public:
  struct State {
    uint32_t cores = 0, started = 0, finished = 0;
    uint64_t instructions = 0;
    uint64_t most_instructions = 0;  // of all cores together; 0: no limit
  };

  // On 127.0.0.1; port 0: a free one. Throws Error.
  Watch(uint16_t port, std::string program);
  // A page that looks on hears of the end.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  std::string address() const;  // "http://127.0.0.1:8000/"
  bool is_due() const { return Clock::now() >= next_; }
  void show(const State& state);
  void end(int exit_status);

 private:
  using Clock = std::chrono::steady_clock;
  struct Sample {
    double seconds;
    uint64_t instructions;
  };
  void serve();
  void answer(int connection);
  std::string state_json();

  const std::string program_;
  FileDescriptor listener_, wake_reader_, wake_writer_;
  uint16_t port_ = 0;
  Clock::time_point start_ = Clock::now(), next_ = start_;
  std::mutex mutex_;  // of what follows
  State state_;
  std::vector<Sample> samples_;
  bool has_ended_ = false, end_was_told_ = false;
  int exit_status_ = 0;
  Clock::time_point last_asked_{};
  std::thread thread_;
};

}  // namespace gpusim::host
