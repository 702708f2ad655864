// Memory of the host that a kernel may reach, and failures that the environment asks for.
#pragma once
#include <cstddef>
#include <string>

#include "emulated/runtime.h"

namespace cuda_emulated {

// What the driver offers: GPUSIM_EMULATED_HOST_MEMORY has some of register, read-only, pageable,
// host-tables, atomics, with commas between, or none. Unless set: register,read-only.
bool offers(const char* what);
bool is_registered(const void* p);
// Whether atomic operations on the host's memory are one for it and all devices.
bool has_host_atomics();
void forget_registrations();
// GPUSIM_EMULATED_FAILURES="launch:3=719,register:1=801": the third kernel, as it runs, and the
// first registration fail with these numbers of CUDA; so do `refuse`, a kernel that is not taken,
// and `reset`. Counted from when this was last set to something else. Zero: this one does not.
int failure(const std::string& kind);

}  // namespace cuda_emulated
