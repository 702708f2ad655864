// Devices of which a backend may use several: --device and --devices. They have numbers from 0 on.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device_sim/core/backend.h"

namespace gpusim {

struct DeviceInfo {
  std::string name;
  std::string identity;  // tells it, its driver and their versions from others
  std::string why_not;   // it cannot be used; empty: it can
};

// Of a backend in all_backends(). Empty: it has none to choose from.
std::vector<DeviceInfo> devices_of(std::string_view backend);

// The one whose devices --devices numbers.
const BackendInfo& backend_with_devices();

// As make_backend(), on these devices, all different and in any order; none: the first that can be
// used. On several of them cores share no memory: MachineConfig::memory_model has to be kPrivate.
std::unique_ptr<Backend> make_backend_on(const std::string& name,
                                         std::span<const uint32_t> devices);

// After a DeviceError that says that all is lost, once everything on the backend's devices has been
// let go. False, with a reason: it is of no use any more.
bool reset_device(std::string_view backend, std::string* why_not);

}  // namespace gpusim
