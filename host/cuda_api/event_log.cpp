#include "host/cuda_api/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {
namespace {

constexpr size_t kPart = 1 << 20;

}  // namespace

void EventLog::begin(const std::string& folder, int process, uint64_t most_bytes) {
  process_ = process;
  most_bytes_ = most_bytes;
  // A process that has become another program keeps its number.
  for (unsigned i = 0;; ++i) {
    path_ = fmt::format("{}/{}-{}.events", folder, process, i);
    const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      ::close(fd);
      is_begun_ = true;
      return;
    }
    if (errno != EEXIST) return fail(errno);
  }
}

bool EventLog::is_on() const { return is_begun_ && !has_failed_ && ::getpid() == process_; }

void EventLog::add(std::string_view line) {
  const std::lock_guard lock(mutex_);
  put(line);
  put("\n");
  if (is_full_ || has_failed_ || size_bytes_ + used_bytes_ < most_bytes_) return;
  is_full_ = true;
  put("{\"full\":true}\n");
  say(fmt::format("--timeline: more than {} bytes of events: what comes now is not recorded",
                  most_bytes_));
}

void EventLog::put(std::string_view bytes) {
  while (!bytes.empty() && !has_failed_) {
    if ((part_ == nullptr || used_bytes_ == kPart) && !map_next()) return;
    const size_t count = std::min(bytes.size(), kPart - used_bytes_);
    std::memcpy(part_ + used_bytes_, bytes.data(), count);
    used_bytes_ += count;
    bytes.remove_prefix(count);
  }
}

void EventLog::fail(int error) {
  has_failed_ = true;
  const int lost = ::open((path_ + kLostEvents).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (lost >= 0) ::close(lost);
  say(fmt::format("--timeline: {}: {}: what comes now is not recorded", path_,
                  std::strerror(error)));
}

bool EventLog::map_next() {
  if (part_ != nullptr) {
    ::munmap(part_, kPart);
    part_ = nullptr;
    size_bytes_ += kPart;
    used_bytes_ = 0;
  }
  const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail(errno), false;
  // A hole could not be filled on a full disk, and that would be a signal.
  const auto begin = static_cast<off_t>(size_bytes_);
  const int error = ::posix_fallocate(fd, begin, kPart);
  void* const at = error == 0
                       ? ::mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin)
                       : MAP_FAILED;
  const int why = error != 0 ? error : errno;
  ::close(fd);
  if (at == MAP_FAILED) return fail(why), false;
  part_ = static_cast<char*>(at);
  return true;
}

}  // namespace gpusim::cuda_api
