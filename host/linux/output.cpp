#include "host/linux/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace gpusim::host {

int Output::append(int host_fd, uint32_t core, std::span<const uint8_t> data) {
  if (sink_ && host_fd == redirected_fd_) {
    sink_(core, data);
    return 0;
  }
  constexpr size_t kMost = size_t{1} << 20;
  if (host_fd != fd_ || gathered_.size() + data.size() > kMost) flush();
  if (error_ != 0) return std::exchange(error_, 0);
  fd_ = host_fd;
  gathered_.insert(gathered_.end(), data.begin(), data.end());
  return 0;
}

void Output::flush() {
  size_t done = 0;
  while (done < gathered_.size()) {
    const ssize_t n = ::write(fd_, gathered_.data() + done, gathered_.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      pollfd p{fd_, POLLOUT, 0};
      ::poll(&p, 1, -1);
    } else if (errno != EINTR) {
      error_ = errno;
      break;
    }
  }
  gathered_.clear();
}

}  // namespace gpusim::host
