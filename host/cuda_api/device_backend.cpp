// The CUDA backend, which calls functions of the names that this library defines, is a library of
// its own. It is loaded when it is asked for.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "device_sim/cuda/library/device_library.h"

namespace gpusim::cuda {
namespace {

// Null, with a reason.
const DeviceFunctions* functions(std::string* why_not) {
  static std::string why;
  static const DeviceFunctions* const found = []() -> const DeviceFunctions* {
    const char* const path = std::getenv(kDeviceLibraryVariable);
    if (path == nullptr || *path == 0) {
      why = "only gpusim cuda --backend cuda loads it";
      return nullptr;
    }
    void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      why = ::dlerror();
      return nullptr;
    }
    using Entry = const DeviceFunctions* (*)();
    const auto entry = reinterpret_cast<Entry>(::dlsym(library, kDeviceLibraryEntry));
    const DeviceFunctions* const all = entry != nullptr ? entry() : nullptr;
    if (all != nullptr && all->layout == kLayout) return all;
    why = fmt::format("{} is of another version of gpusim", path);
    return nullptr;
  }();
  if (found == nullptr && why_not != nullptr) *why_not = why;
  return found;
}

const DeviceFunctions& required() {
  std::string why;
  const DeviceFunctions* const found = functions(&why);
  if (found == nullptr) throw std::runtime_error("backend cuda cannot run here: " + why);
  return *found;
}

}  // namespace

bool available(std::string* why_not) {
  const DeviceFunctions* const found = functions(why_not);
  return found != nullptr && found->available(why_not);
}
std::string device_name() { return required().device_name(); }
std::vector<DeviceInfo> devices() {
  const DeviceFunctions* const found = functions(nullptr);
  return found != nullptr ? found->devices() : std::vector<DeviceInfo>();
}
std::unique_ptr<Backend> create(std::span<const uint32_t> devices) {
  return required().create(devices);
}
std::unique_ptr<LinearSpace> create_space(const LinearSpaceRequest& request) {
  return required().create_space(request);
}
bool reset(std::string* why_not) {
  const DeviceFunctions* const found = functions(why_not);
  return found != nullptr && found->reset(why_not);
}

}  // namespace gpusim::cuda
