// Guest output on its way to the host: in order, gathered over the events of one slice.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace gpusim::host {

class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { flush(); }

  // What is written to this descriptor goes there instead, at once, with the core that writes it.
  using Sink = std::function<void(uint32_t core, std::span<const uint8_t>)>;
  void redirect(int host_fd, Sink sink) {
    redirected_fd_ = host_fd;
    sink_ = std::move(sink);
  }
  // 0, or the error number of an earlier write that failed: the guest hears of it one call late.
  int append(int host_fd, uint32_t core, std::span<const uint8_t> data);
  void flush();
  // Of a write of which the guest has not heard, or 0.
  int take_error() { return std::exchange(error_, 0); }
  int error() const { return error_; }
  void set_error(int error) { error_ = error; }

 private:
  int fd_ = -1;  // of what is gathered
  int redirected_fd_ = -1;
  Sink sink_;
  int error_ = 0;
  std::vector<uint8_t> gathered_;
};

}  // namespace gpusim::host
