#include "host/linux/file_table.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace gpusim::host {

OpenFile::~OpenFile() {
  for (const int fd : duplicates_) ::close(fd);
  if (owned_) ::close(host_fd_);
}

void OpenFile::close_duplicate(int fd) {
  if (std::erase(duplicates_, fd) != 0) ::close(fd);
}

bool OpenFile::changes_by_itself() const {
  if (!parks() || is_reached_from_outside) return true;
  if (kind_ != Kind::kTimer) return false;
  itimerspec left{};
  if (::timerfd_gettime(host_fd_, &left) != 0) return false;
  if (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0) return true;
  // No time is left before the host counts that it expired; until then nothing can be read.
  pollfd expired{.fd = host_fd_, .events = POLLIN, .revents = 0};
  return is_armed && ::poll(&expired, 1, 0) == 0;
}

const OpenFile* FileTable::find(int64_t fd) const {
  return fd >= 0 && fd < static_cast<int64_t>(files_.size()) ? files_[fd].get() : nullptr;
}

FileRef FileTable::share(int64_t fd) const { return find(fd) ? files_[fd] : nullptr; }

int FileTable::add(FileRef file, int from) {
  for (int fd = from; fd < limit_; ++fd) {
    if (fd < static_cast<int>(files_.size()) && files_[fd]) continue;
    return set(fd, std::move(file)) ? fd : -1;
  }
  return -1;
}

bool FileTable::set(int64_t fd, FileRef file) {
  if (fd < 0 || fd >= limit_) return false;
  if (fd >= static_cast<int64_t>(files_.size())) files_.resize(fd + 1);
  if (files_[fd]) locks_.forget(*files_[fd]);
  files_[fd] = std::move(file);
  closes_on_exec_.erase(fd);
  return true;
}

bool FileTable::close(int64_t fd) {
  if (!find(fd)) return false;
  locks_.forget(*files_[fd]);
  files_[fd].reset();
  return true;
}

void FileTable::close_all() {
  files_.clear();
  closes_on_exec_.clear();
  locks_ = {};
}

}  // namespace gpusim::host
