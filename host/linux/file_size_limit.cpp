#include "host/linux/file_size_limit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace gpusim::host {

uint64_t allowed_size(const Process& process, int host_fd, int64_t offset, uint64_t size_bytes) {
  const uint64_t limit = process.limits[Limits::kFileSize].current;
  struct stat file {};
  if (limit == Limits::kInfinite || ::fstat(host_fd, &file) < 0 || !S_ISREG(file.st_mode))
    return size_bytes;
  if (offset < 0)
    offset = ::fcntl(host_fd, F_GETFL) & O_APPEND ? file.st_size : ::lseek(host_fd, 0, SEEK_CUR);
  const uint64_t at = static_cast<uint64_t>(std::max<int64_t>(offset, 0));
  return at >= limit ? 0 : std::min(size_bytes, limit - at);
}

bool allows_length(const Process& process, int64_t length) {
  return length < 0 || static_cast<uint64_t>(length) <= process.limits[Limits::kFileSize].current;
}

int64_t file_too_large(Kernel& kernel, uint32_t core) {
  kernel.post(core, {.number = SIGXFSZ, .code = kSiUser});
  return -EFBIG;
}

}  // namespace gpusim::host
