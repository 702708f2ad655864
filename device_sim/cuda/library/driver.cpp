// NVIDIA's driver beside a library that answers to its name. The runtime in this library opens
// libcuda.so.1, which the dynamic linker takes for what is there under that name; so its calls come
// here (-Wl,--wrap), and the name becomes the driver's path. The driver prefers its own functions
// to those of the same names in the process (RTLD_DEEPBIND), and shows none.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "device_sim/cuda/library/device_library.h"

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names.
void* __real_dlopen(const char* file, int flags);
void* __real_dlmopen(Lmid_t space, const char* file, int flags);

static const char* driver_for(const char* file) {
  if (file == nullptr || std::strcmp(file, "libcuda.so.1") != 0) return nullptr;
  return std::getenv(gpusim::cuda::kDriverVariable);
}

void* __wrap_dlopen(const char* file, int flags) {
  const char* const driver = driver_for(file);
  if (driver == nullptr) return __real_dlopen(file, flags);
  return __real_dlopen(driver, (flags & ~RTLD_GLOBAL) | RTLD_LOCAL | RTLD_DEEPBIND);
}

void* __wrap_dlmopen(Lmid_t space, const char* file, int flags) {
  if (driver_for(file) != nullptr && space == LM_ID_BASE) return __wrap_dlopen(file, flags);
  return __real_dlmopen(space, file, flags);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // extern "C"
