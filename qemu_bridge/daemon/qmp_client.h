// Follows by QEMU's monitor (QMP) whether the virtual machine is stopped: what a stock QEMU tells
// nobody else. One thread owns it.
#pragma once
#include <chrono>
#include <string>

#include "device_sim/base/file_descriptor.h"
#include "qemu_bridge/daemon/log.h"

namespace gpusim::daemon {

class QmpClient {
 public:
  /// The path of a Unix socket on which QEMU will listen (-qmp unix:PATH,server=on,wait=off).
  /// gpusim::Error: too long for one.
  QmpClient(std::string path, Log& log);

  /// Connects if need be, and takes what came. Cheap enough to be called all the time.
  void poll();
  /// As of the last poll(); false as long as QEMU has not said.
  bool is_stopped() const { return stopped_; }
  /// This QEMU is gone; the next one listens at the same place.
  void drop();

  int fd() const { return socket_.get(); }  // to be read; -1: none
  int retry_ms() const;                     // when poll() has to be called without; -1: never

 private:
  using Clock = std::chrono::steady_clock;
  void connect();
  void receive();
  void take(const std::string& line);
  void lose(const std::string& why);

  const std::string path_;
  Log& log_;
  FileDescriptor socket_;
  std::string in_;
  Clock::time_point next_poll_, first_try_;
  bool tried_ = false, complained_ = false, stopped_ = false;
};

}  // namespace gpusim::daemon
