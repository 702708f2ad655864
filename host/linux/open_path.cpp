#include "host/linux/open_path.h"

#include <fcntl.h>

#include <cerrno>

namespace gpusim::host {
namespace {

Opened refused(int error, bool is_outside = false) {
  Opened opened;
  opened.error = error;
  opened.is_outside = is_outside;
  return opened;
}

Opened as_file(int host_fd, const Place& place, bool is_folder, bool is_changeable) {
  if (host_fd < 0) return refused(errno);
  Opened opened;
  opened.path = place.path();
  opened.file = std::make_shared<OpenFile>(
      host_fd, /*owned=*/true, is_folder ? OpenFile::Kind::kFolder : OpenFile::Kind::kOther,
      opened.path);
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
      if (writes) return refused(EACCES, /*is_outside=*/true);
  }
  if (place.own == OwnFile::kFolder) return refused(EACCES, /*is_outside=*/true);
  if (flags & O_DIRECTORY) return refused(ENOTDIR);
  if (place.own != OwnFile::kText)
    return as_file(reopen(place.fd(), flags), place, /*is_folder=*/false, /*is_changeable=*/false);
  Opened opened;
  opened.is_text = true;
  opened.path = place.own_path;
  return opened;
}

Opened open_existing(Place place, int flags) {
  if (place.own != OwnFile::kNone) return open_own(place, flags);
  if (flags & O_PATH) {
    if (!place.may_look()) return refused(EACCES, /*is_outside=*/true);
    if ((flags & O_DIRECTORY) && !place.self) return refused(ENOTDIR);
    return as_file(::fcntl(place.fd(), F_DUPFD_CLOEXEC, 0), place, place.self != nullptr,
                   place.may_change());
  }
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
  if (!(writes ? place.may_change() : place.may_read())) return refused(EACCES, /*is_outside=*/true);
  if (place.is_link()) return refused(ELOOP);
  // Links that were followed are behind us; what the descriptor stands for is opened, no name.
  return as_file(reopen(place.fd(), flags), place, place.self != nullptr, place.may_change());
}

}  // namespace

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
    return as_file(fd, place, /*is_folder=*/false, /*is_changeable=*/true);
  }
  return refused(EAGAIN);
}

}  // namespace gpusim::host
