// A thread that waits for what should end the daemon: signals, and QEMU's end of a socket.
#pragma once
#include <atomic>
#include <functional>
#include <thread>

#include "device_sim/base/file_descriptor.h"

namespace gpusim::daemon {

class Watcher {
 public:
  /// Blocks SIGTERM, SIGINT and SIGHUP in this thread and those it will start: construct it first.
  Watcher();
  ~Watcher();
  Watcher(const Watcher&) = delete;

  /// At the first signal stop() becomes true and `wake` is called; if the process is still there 2
  /// s later it is ended. When the peer of `socket` (-1: none) is gone the process ends at once,
  /// whatever it does.
  void start(int socket, std::function<void()> wake);
  bool stop() const { return stop_.load(std::memory_order_relaxed); }

 private:
  void watch(int socket);

  FileDescriptor signals_, quit_;
  std::function<void()> wake_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace gpusim::daemon
