// The daemon's loop: bells, kernels' slices, sleep.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "host/offload/simulator.h"
#include "qemu_bridge/daemon/log.h"
#include "qemu_bridge/daemon/transport.h"

namespace gpusim::daemon {

struct ServeOptions {
  std::string backends;  // HELLO's text
  // How long to look for work before sleeping: waking up takes longer than an empty kernel.
  std::chrono::nanoseconds spin{200'000};
  uint64_t most_pieces = 1u << 15;  // CommandOptions
};

/// Until the transport ends or `stop` says so.
void serve(Transport& transport, offload::Simulator& service, const ServeOptions& options,
           const std::function<bool()>& stop, Log& log);

}  // namespace gpusim::daemon
