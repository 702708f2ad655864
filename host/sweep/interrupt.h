// Ctrl-C, and other requests to stop: a study notes them and ends in order.
#pragma once
#include <csignal>

namespace gpusim::sweep {

// While it lives, SIGINT, SIGTERM and SIGHUP are noted.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction old_[3];
};

bool is_interrupted();  // since the last watch began

}  // namespace gpusim::sweep
