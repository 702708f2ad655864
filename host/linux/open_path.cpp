#include "host/linux/open_path.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

namespace gpusim::host {
namespace {

Opened refused(int error, bool is_outside = false) {
  Opened opened;
  opened.error = error;
  opened.is_outside = is_outside;
  return opened;
}

Opened as_file(int host_fd, const Place& place, OpenFile::Kind kind, bool is_changeable) {
  if (host_fd < 0) return refused(errno);
  Opened opened;
  opened.path = place.path();
  opened.file = std::make_shared<OpenFile>(host_fd, /*owned=*/true, kind, opened.path);
  opened.file->folder = place.self;
  opened.file->is_changeable = is_changeable;
  return opened;
}

Opened open_own(const Place& place, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
  switch (place.own) {
    case OwnFile::kProgram:
      if (place.is_link()) return refused(ELOOP);
      if (writes) return refused(ETXTBSY);
      break;
    case OwnFile::kDevice:
      break;
    default:
      if (place.own == OwnFile::kFolder && (writes || (flags & O_CREAT))) return refused(EISDIR);
      if (writes) return refused(EACCES, /*is_outside=*/true);
  }
  const bool is_folder = place.own == OwnFile::kFolder;
  if ((flags & O_DIRECTORY) && !is_folder) return refused(ENOTDIR);
  if (place.own != OwnFile::kText && !is_folder)
    return as_file(reopen(place.fd(), flags), place, OpenFile::Kind::kOther,
                   /*is_changeable=*/false);
  Opened opened;
  opened.is_text = true;
  opened.path = place.own_path;
  return opened;
}

OpenFile::Kind kind_of(const Place& place) {
  return place.self ? OpenFile::Kind::kFolder : OpenFile::Kind::kOther;
}

// The host's end never waits: a call that has to parks its core.
Opened open_pipe(const Place& place, int flags) {
  Opened opened = as_file(reopen(place.fd(), flags | O_NONBLOCK), place, OpenFile::Kind::kPipe,
                          place.may_change());
  opened.is_pipe = true;
  if (!opened.file) return opened;
  opened.file->is_nonblocking = (flags & O_NONBLOCK) != 0;
  opened.file->is_reached_from_outside = true;
  return opened;
}

Opened open_existing(Place place, int flags) {
  if (place.own != OwnFile::kNone) return open_own(place, flags);
  if (flags & O_PATH) {
    if (!place.may_look()) return refused(EACCES, /*is_outside=*/true);
    if ((flags & O_DIRECTORY) && !place.self) return refused(ENOTDIR);
    return as_file(::fcntl(place.fd(), F_DUPFD_CLOEXEC, 0), place, kind_of(place),
                   place.may_change());
  }
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
  if (!(writes ? place.may_change() : place.may_read())) return refused(EACCES, /*is_outside=*/true);
  if (place.is_link()) return refused(ELOOP);
  // Links that were followed are behind us; what the descriptor stands for is opened, no name.
  if (S_ISFIFO(place.status.st_mode)) return open_pipe(place, flags);
  return as_file(reopen(place.fd(), flags), place, kind_of(place), place.may_change());
}

}  // namespace

bool has_met_writer(int fd) {
  pollfd end{fd, POLLIN, 0};
  if (::poll(&end, 1, 0) > 0) return true;  // bytes, or the last writer has gone
  // An empty pipe without a writer is at its end; one with a writer may get more. Nothing is moved.
  int copy[2];
  if (::pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0) return true;
  const FileDescriptor out(copy[0]), in(copy[1]);
  return ::tee(fd, in.get(), 1, SPLICE_F_NONBLOCK) != 0;
}

Opened open_path(const PathPolicy& paths, const FolderRef& start, const std::string& path, int flags,
                 mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0;
  const bool must_create = creates && (flags & O_EXCL) != 0;
  const PathPolicy::Last last = must_create || (flags & O_NOFOLLOW) ? PathPolicy::Last::kLook
                                                                    : PathPolicy::Last::kFollow;
  // Others may make the file between the look and the try; each try begins with another look.
  for (int tries = 0; tries < 100; ++tries) {
    Place place = paths.find(start, path, last);
    if (place.error == 0 && must_create && place.may_look()) return refused(EEXIST);
    if (place.error == 0) return open_existing(std::move(place), flags);
    if (place.error != ENOENT || !creates || !place.folder)
      return refused(place.error, place.is_outside);
    if (!place.may_change_entry()) return refused(EACCES, /*is_outside=*/true);
    const int fd = ::openat(place.folder->fd.get(), place.name.c_str(),
                            flags | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
    if (fd < 0 && errno == EEXIST && !must_create) continue;
    return as_file(fd, place, OpenFile::Kind::kOther, /*is_changeable=*/true);
  }
  return refused(EAGAIN);
}

}  // namespace gpusim::host
