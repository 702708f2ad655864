// `gpusim daemon`: serves a guest of QEMU with simulated cores.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/core/compiled_regions.h"

namespace gpusim::daemon {

struct DaemonOptions {
  // One of the two.
  std::optional<int> qemu_fd;
  std::string listen;            // path of a socket
  std::vector<std::string> ram;  // with `listen`
  std::string qmp;               // with `listen`: path of QEMU's monitor; empty: none

  std::string backend = "auto";
  std::string guest_memory = "auto";  // offload::SimulatorOptions
  CompiledRegions compiled_regions = CompiledRegions::kAuto;
  uint32_t threads = 0;  // 0: one per hardware thread
  uint32_t most_cores = 1u << 20;
  uint32_t most_contexts = 64;
  std::optional<uint64_t> memory_limit_bytes;
  double time_limit_s = 0;  // of any kernel; 0: none
  double spin_us = 200;
  std::optional<bool> sandbox;  // else: where it is available and QEMU started the daemon
  bool verbose = false;
  std::string log_path;
};

/// Until the guest's side is gone or a signal comes. gpusim::Error. The exit status.
int run_daemon(const DaemonOptions& options);

}  // namespace gpusim::daemon
