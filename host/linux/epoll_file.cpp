#include "host/linux/epoll_file.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gpusim::host {
namespace {

int host_control(int epoll_fd, int operation, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return ::epoll_ctl(epoll_fd, operation, fd, &event) < 0 ? errno : 0;
}

}  // namespace

int EpollFile::add(const FileRef& file, const Key& key, uint32_t events, uint64_t data) {
  int fd = file->host_fd();
  // The same open file under another number: the host needs one, too.
  const bool is_taken = std::any_of(members_.begin(), members_.end(), [&](const auto& m) {
    return m.first.first == file.get() && m.second.host_fd == fd;
  });
  if (is_taken) {
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return errno;
  }
  const int error = host_control(host_fd(), EPOLL_CTL_ADD, fd, events, data);
  if (error == 0) {
    members_[key] = {file, fd};
    if (is_taken) file->own_duplicate(fd);
  } else if (is_taken) {
    ::close(fd);
  }
  return error;
}

int EpollFile::control(int operation, const FileRef& file, int64_t fd, uint32_t events,
                       uint64_t data) {
  // What was closed has left the host's set by itself.
  std::erase_if(members_, [](const auto& m) { return m.second.file.expired(); });
  const Key key{file.get(), fd};
  const auto member = members_.find(key);
  switch (operation) {
    case EPOLL_CTL_ADD:
      return member != members_.end() ? EEXIST : add(file, key, events, data);
    case EPOLL_CTL_MOD:
      if (member == members_.end()) return ENOENT;
      return host_control(host_fd(), EPOLL_CTL_MOD, member->second.host_fd, events, data);
    case EPOLL_CTL_DEL: {
      if (member == members_.end()) return ENOENT;
      const int host_file = member->second.host_fd;
      const int error = host_control(host_fd(), EPOLL_CTL_DEL, host_file, 0, 0);
      if (host_file != file->host_fd()) file->close_duplicate(host_file);
      members_.erase(member);
      return error;
    }
    default:
      return EINVAL;
  }
}

bool EpollFile::changes_by_itself() const {
  return is_reached_from_outside ||
         std::any_of(members_.begin(), members_.end(), [](const auto& m) {
           const FileRef file = m.second.file.lock();
           return file && file->changes_by_itself();
         });
}

void EpollFile::prepare_look(uint64_t pending_signals) {
  for (const auto& [key, member] : members_)
    if (const FileRef file = member.file.lock()) file->prepare_look(pending_signals);
}

}  // namespace gpusim::host
