// Guest output on its way to the host: in order, gathered over the events of one slice.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace gpusim::host {

class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { flush(); }

  // 0, or the error number of an earlier write that failed: the guest hears of it one call late.
  int append(int host_fd, std::span<const uint8_t> data);
  void flush();

 private:
  int fd_ = -1;  // of what is gathered
  int error_ = 0;
  std::vector<uint8_t> gathered_;
};

}  // namespace gpusim::host
