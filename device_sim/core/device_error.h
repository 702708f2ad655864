// A device that simulates failed: what its driver said.
#pragma once
#include <stdexcept>
#include <string>

namespace gpusim {

struct DeviceError : std::runtime_error {
  DeviceError(const std::string& what, bool all_is_lost)
      : std::runtime_error(what), is_lost(all_is_lost) {}
  // Memory and machines on the device are gone, and every further call fails until reset_device()
  // (core/devices.h). Else only this call failed.
  bool is_lost;
};

}  // namespace gpusim
