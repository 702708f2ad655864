// RLIMIT_FSIZE: no regular file grows beyond it by a guest's doing.
#pragma once
#include <cstdint>

#include "host/linux/kernel.h"

namespace gpusim::host {

// How many of `size_bytes` may be written at `offset` (negative: where the file is).
uint64_t allowed_size(const Process& process, int host_fd, int64_t offset, uint64_t size_bytes);
// Whether a file may have that length.
bool allows_length(const Process& process, int64_t length);
// The core's thread went beyond the limit: SIGXFSZ and -EFBIG.
int64_t file_too_large(Kernel& kernel, uint32_t core);

}  // namespace gpusim::host
