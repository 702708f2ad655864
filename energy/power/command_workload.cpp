#include "energy/power/command_workload.h"

#include <fmt/format.h>

#include "device_sim/base/error.h"
#include "energy/power/source.h"

namespace gpusim::power {

Seconds CommandWorkload::start() {
  child_.emplace(command_);
  ended_.reset();
  return monotonic_now();
}

bool CommandWorkload::is_running() {
  if (!child_ || ended_) return false;
  if (!child_->poll()) return true;
  ended_ = monotonic_now();
  return false;
}

Seconds CommandWorkload::finish() {
  const int status = child_->wait();
  if (!ended_) ended_ = monotonic_now();
  if (status != 0) throw Error(fmt::format("{}: it ended with status {}", command_[0], status));
  return *ended_;
}

}  // namespace gpusim::power
