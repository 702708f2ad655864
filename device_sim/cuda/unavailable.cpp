// Stands in for the CUDA backend in builds without the CUDA toolkit.
#include <stdexcept>

#include "device_sim/cuda/cuda_backend.h"

namespace gpusim::cuda {

bool available(std::string* why_not) {
  *why_not = "this build has no CUDA; install the CUDA toolkit and build again";
  return false;
}
std::string device_name() { return {}; }
std::vector<DeviceInfo> devices() { return {}; }
std::unique_ptr<Backend> create(std::span<const uint32_t>) {
  std::string why;
  available(&why);
  throw std::runtime_error(why);
}

std::unique_ptr<LinearSpace> create_space(const LinearSpaceRequest&) {
  create({});
  return nullptr;
}
bool reset(std::string* why_not) { return available(why_not); }

}  // namespace gpusim::cuda
