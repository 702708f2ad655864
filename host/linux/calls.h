// The functions behind calls.def. Each reads its arguments from the call and answers it.
#pragma once
#include "host/linux/kernel.h"

namespace gpusim::host {

inline constexpr uint64_t kMostBytesOfCall = 0x7ffff000;  // that read or write moves, as on Linux

#define GPUSIM_CALL(number, function) Reply function(Kernel& kernel, Call& call);
#include "host/linux/calls.def"
#undef GPUSIM_CALL

// The commands of fcntl that lock ranges; nothing: another command.
std::optional<Reply> lock_command(Kernel& kernel, Call& call, const OpenFile& file);

}  // namespace gpusim::host
