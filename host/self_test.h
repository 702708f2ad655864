// Does a device compute what it should? Found out by small programs in a process of its own, under
// a time limit, and remembered per device, driver and gpusim's executable in the user's cache
// folder.
#pragma once
#include <optional>
#include <string>

#include "device_sim/core/devices.h"

namespace gpusim::host {

struct SelfTest {
  bool passed = false;
  std::string why_not;
  double seconds = 0;
};

inline constexpr unsigned kSelfTestSeconds = 60;  // at most, on a busy machine; about one is usual

// Runs it, for at most so long, and remembers the result.
SelfTest run_self_test(uint32_t number, const DeviceInfo& device, unsigned most_seconds);
// What is remembered. None: nothing, or it cannot be read.
std::optional<SelfTest> known_self_test(const DeviceInfo& device);

// In the process of its own: the exit status, 0 for passed; why not goes to standard error. A
// signal ends the process when its time is over.
int self_test_here(uint32_t number, unsigned most_seconds);

}  // namespace gpusim::host
