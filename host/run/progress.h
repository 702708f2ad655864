// A line on a terminal that says how far a long run is.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace gpusim::host {

class Progress {
 public:
  // Shows nothing unless standard error is a terminal and `wanted`.
  explicit Progress(bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether it is time for another line: counting instructions has a price.
  bool is_due() const;
  struct State {
    uint32_t cores = 0, finished = 0;
    uint64_t instructions = 0;
    uint64_t most_instructions = 0;  // of all cores together; 0: unknown
  };
  void show(const State& state);
  // From now on nothing is shown.
  void stop() { enabled_ = shown_ = false; }
  // Before anything else is printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void print_line(const std::string& line);

  bool enabled_;
  bool shown_ = false;
  size_t width_ = 0;  // of the line shown
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::milliseconds(500);
  Clock::time_point last_ = start_;
  uint64_t last_instructions_ = 0;
};

}  // namespace gpusim::host
