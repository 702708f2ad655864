// System calls that name files.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "host/linux/calls.h"
#include "host/linux/file_size_limit.h"
#include "host/linux/guest_abi.h"
#include "host/linux/open_path.h"
#include "host/linux/own_files.h"

namespace gpusim::host {
namespace {

using Last = PathPolicy::Last;

Reply done(int result) { return result < 0 ? Reply::error(errno) : Reply::result(result); }

int refuse(Kernel& kernel, const std::string& path, bool for_writing) {
  kernel.note_once("path policy", "the guest may not open " + path +
                                      (for_writing ? " for writing" : "") +
                                      "; --root FOLDER allows a folder (EACCES; said once)");
  return EACCES;
}

// A path in guest memory, and where it begins.
struct PathArgument {
  int error = 0;
  std::string text;
  FolderRef start;

  // Absolute, for messages.
  std::string name() const {
    return text.starts_with('/') || !start ? text : start->path() + "/" + text;
  }
};
PathArgument path_argument(Kernel& kernel, const Call& call, int folder, int path_arg) {
  PathArgument path;
  const std::optional<std::string> text = call.memory.string(call.args[path_arg]);
  if (!text) {
    uint8_t first;
    path.error = call.memory.load(call.args[path_arg], &first) ? ENAMETOOLONG : EFAULT;
  } else if (text->empty()) {
    path.error = ENOENT;
  } else if (path.text = *text; path.text.starts_with('/')) {
    path.start = nullptr;
  } else if (folder == kAtFdCwd) {
    path.start = kernel.folder_of(*call.process);
    if (!path.start) path.error = refuse(kernel, call.process->cwd, /*for_writing=*/false);
  } else if (const OpenFile* file = call.process->files.find(folder); !file) {
    path.error = EBADF;
  } else if (file->is_folder() && file->is_text) {
    path.text = file->path() + "/" + path.text;
  } else if (path.start = file->folder; !path.start) {
    path.error = ENOTDIR;
  }
  if (path.text == "/dev/fd" || path.text == "/dev/fd/") path.text = "/proc/self/fd";
  return path;
}

// As Linux has it of files in /proc.
void as_text(const OpenFile& file, struct stat& host) {
  host.st_mode = file.is_folder() ? S_IFDIR | 0555 : S_IFREG | 0444;
  host.st_size = host.st_blocks = 0;
}

enum class Wish : uint8_t { kLook, kChange, kChangeEntry };
// What is open under a number, as a link in /proc names it.
Place open_place(Kernel& kernel, const Call& call, int number, const std::string& path, Wish wish,
                 Last last) {
  Place place;
  const OpenFile* const file = call.process->files.find(number);
  place.error = !file ? ENOENT : wish != Wish::kLook ? EPERM : 0;
  if (place.error != 0) return place;
  place.own = OwnFile::kDescriptor;
  place.own_path = path;
  place.status.st_mode = S_IFLNK | 0700;
  place.status.st_nlink = place.status.st_ino = 1;
  if (last != Last::kFollow) return place;
  kernel.output().flush();  // the size counts
  place.file = FileDescriptor(::fcntl(file->host_fd(), F_DUPFD_CLOEXEC, 0));
  if (!place.file || ::fstat(place.file.get(), &place.status) < 0) place.error = errno;
  if (file->is_text) as_text(*file, place.status);
  return place;
}
// What the path argument names, if the guest may do what it wishes there; `error` says why not.
// kChangeEntry: `error` is ENOENT, and `folder` is set, for a name that can be made.
Place place_of(Kernel& kernel, const Call& call, int folder, int path_arg, Wish wish, Last last) {
  const PathArgument path = path_argument(kernel, call, folder, path_arg);
  Place place;
  place.error = path.error;
  if (path.error != 0) return place;
  if (const std::optional<int> number = number_in_path(path.text))
    return open_place(kernel, call, *number, path.text, wish, last);
  place = kernel.paths().find(path.start, path.text, last);
  const bool is_there = place.error == 0;
  // A name in a folder that cannot change is refused whether something has it or not, as by open.
  const bool is_refused = place.is_outside ||
                          (wish == Wish::kLook && is_there && !place.may_look()) ||
                          (wish == Wish::kChange && is_there && !place.may_change()) ||
                          (wish == Wish::kChangeEntry && (is_there || place.folder) &&
                           !place.may_change_entry());
  if (!is_refused) return place;
  const bool is_own = place.own != OwnFile::kNone;
  Place none;
  none.error = is_own && wish != Wish::kLook
                   ? EPERM
                   : refuse(kernel, path.name(), /*for_writing=*/wish != Wish::kLook);
  return none;
}
int folder_arg(const Call& call, int i) { return static_cast<int>(call.int_arg(i)); }

Reply store_stat(const Call& call, uint64_t address, const struct stat& host) {
  GuestStat guest{};
  guest.dev = host.st_dev;
  guest.ino = host.st_ino;
  guest.mode = host.st_mode;
  guest.nlink = static_cast<uint32_t>(host.st_nlink);
  guest.uid = host.st_uid;
  guest.gid = host.st_gid;
  guest.rdev = host.st_rdev;
  guest.size = host.st_size;
  guest.blksize = static_cast<int32_t>(host.st_blksize);
  guest.blocks = host.st_blocks;
  guest.atime = host.st_atim.tv_sec;
  guest.atime_nsec = host.st_atim.tv_nsec;
  guest.mtime = host.st_mtim.tv_sec;
  guest.mtime_nsec = host.st_mtim.tv_nsec;
  guest.ctime = host.st_ctim.tv_sec;
  guest.ctime_nsec = host.st_ctim.tv_nsec;
  return call.memory.store(address, guest) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply stat_of_file(Kernel& kernel, const Call& call, uint64_t address) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  kernel.output().flush();  // the size counts
  struct stat host;
  if (::fstat(file->host_fd(), &host) < 0) return Reply::error(errno);
  if (file->is_text) as_text(*file, host);
  return store_stat(call, address, host);
}

}  // namespace

namespace {

// What is open under the number that the path names: an own opening of it, as on Linux, with no
// more rights. What gpusim was started with is the same file once more, as on BSD, since its output
// is gathered. Nothing: the path names no number.
std::optional<Opened> open_by_number(Process& process, std::string_view path, int flags) {
  const std::optional<int> number = number_in_path(path);
  if (!number) return std::nullopt;
  Opened opened;
  const auto failed = [&](int error) {
    opened.error = error;
    return opened;
  };
  const OpenFile* const named = process.files.find(*number);
  if (!named) return failed(ENOENT);
  if ((flags & O_CREAT) && (flags & O_EXCL)) return failed(EEXIST);
  if (flags & O_NOFOLLOW) return failed(ELOOP);
  if ((flags & O_DIRECTORY) && !named->is_folder()) return failed(ENOTDIR);
  using Kind = OpenFile::Kind;
  const bool is_plain = named->kind() == Kind::kOther || named->kind() == Kind::kFolder ||
                        named->kind() == Kind::kMemory;
  if (!is_plain && named->kind() != Kind::kPipe) return failed(ENXIO);

  struct stat host {};
  if (::fstat(named->host_fd(), &host) < 0) return failed(errno);
  // Of a named pipe that is not open but named: its other end could not be waited for.
  if (S_ISFIFO(host.st_mode) && is_plain && named->is_owned()) return failed(EACCES);

  if ((is_plain || !named->path().empty()) && !(flags & O_PATH)) {
    const int has = ::fcntl(named->host_fd(), F_GETFL);
    const auto may = [&](int only_other) {
      return !(has & O_PATH) && (has & O_ACCMODE) != only_other;
    };
    const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
    const bool reads = (flags & O_ACCMODE) != O_WRONLY;
    const bool is_of_root = named->folder && named->folder->is_readable;
    if (writes && !may(O_RDONLY) && !named->is_changeable) return failed(EACCES);
    if (reads && !may(O_WRONLY) && !is_of_root && !named->is_changeable) return failed(EACCES);
  }
  if (!named->is_owned()) {
    opened.file = process.files.share(*number);
    return opened;
  }
  const bool is_pipe = named->kind() == Kind::kPipe;
  const int fd = reopen(named->host_fd(), is_pipe ? flags | O_NONBLOCK : flags);
  if (fd < 0) return failed(errno);
  opened.is_pipe = is_pipe;
  opened.file = std::make_shared<OpenFile>(fd, /*owned=*/true, named->kind(), named->path());
  opened.file->folder = named->folder;
  opened.file->is_text = named->is_text;
  opened.file->is_changeable = named->is_changeable;
  if (is_pipe) {
    opened.file->is_nonblocking = (flags & O_NONBLOCK) != 0;
    opened.file->is_reached_from_outside = true;
  }
  return opened;
}

}  // namespace

Reply sys_openat(Kernel& kernel, Call& call) {
  const PathArgument path = path_argument(kernel, call, folder_arg(call, 0), 1);
  if (path.error != 0) return Reply::error(path.error);
  const int flags = host_open_flags(kernel.abi(), call.args[2]);
  const auto mode = static_cast<mode_t>(call.args[3] & 0777 & ~uint64_t{call.process->umask});
  constexpr Kernel::Retry kAnotherProcess{.from_outside = true, .restartable = true};
  // A named pipe waits for its other end, which it has from another process or another core.
  const Thread* const thread = kernel.find_thread(call.core);
  FileRef file = thread ? thread->opening : nullptr;
  if (!file) {
    std::optional<Opened> by_number = open_by_number(*call.process, path.text, flags);
    Opened opened = by_number ? std::move(*by_number)
                              : open_path(kernel.paths(), path.start, path.text, flags, mode);
    if (opened.is_outside)
      refuse(kernel, path.name(), (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)));
    if (opened.is_pipe && opened.error == ENXIO && !(flags & O_NONBLOCK))
      return kernel.park_for_retry(call, kAnotherProcess);
    file = opened.is_text ? make_text_file(opened.path, own_text(kernel, call, opened.path))
                          : std::move(opened.file);
    if (!file) return Reply::error(opened.is_text ? ENOMEM : opened.error);
  }
  if (file->kind() == OpenFile::Kind::kPipe && (flags & O_ACCMODE) == O_RDONLY &&
      !(flags & O_NONBLOCK) && !has_met_writer(file->host_fd())) {
    kernel.thread(call.core).opening = std::move(file);  // writers find a reader
    return kernel.park_for_retry(call, kAnotherProcess);
  }
  const int fd = call.process->files.add(std::move(file));
  if (fd < 0) return Reply::error(EMFILE);
  call.process->files.set_closes_on_exec(fd, (flags & O_CLOEXEC) != 0);
  return Reply::result(fd);
}

namespace {

bool is_call(Kernel& kernel, const Call& call, uint64_t number) {
  return kernel.slot(call.core, static_cast<Slot>(kernel.module().abi.syscall_number)) == number;
}

}  // namespace

Reply sys_faccessat(Kernel& kernel, Call& call) {
  constexpr uint64_t kFaccessat2 = 439;
  const uint64_t flags = is_call(kernel, call, kFaccessat2) ? call.args[3] : 0;
  const int mode = static_cast<int>(call.args[2] & 7);
  const Place place = place_of(kernel, call, folder_arg(call, 0), 1, Wish::kLook,
                               flags & kAtSymlinkNofollow ? Last::kLook : Last::kFollow);
  if (place.error != 0) return Reply::error(place.error);
  if ((mode & R_OK) && !place.may_read()) return Reply::error(EACCES);
  if (place.own == OwnFile::kNone && (mode & W_OK) && !place.may_change())
    return Reply::error(EACCES);
  if (place.fd() < 0) return Reply::error(mode & W_OK ? EACCES : 0);  // made by gpusim
  if (place.is_link()) return Reply::result(0);
  return done(::faccessat(AT_FDCWD, descriptor_path(place.fd()).c_str(), mode,
                          flags & kAtEaccess ? AT_EACCESS : 0));
}

Reply sys_fstat(Kernel& kernel, Call& call) { return stat_of_file(kernel, call, call.args[1]); }

namespace {

// Of a path, or with AT_EMPTY_PATH of an open file; `path_arg` follows `folder_arg`.
int stat_path(Kernel& kernel, Call& call, uint64_t flags, struct stat& host) {
  kernel.output().flush();  // sizes count
  if (flags & kAtEmptyPath) {
    const std::optional<std::string> text = call.memory.string(call.args[1]);
    if (text && text->empty()) {
      const OpenFile* file = call.process->files.find(call.int_arg(0));
      const FolderRef folder =
          call.int_arg(0) == kAtFdCwd ? kernel.folder_of(*call.process) : nullptr;
      if (!file && !folder) return EBADF;
      if (::fstat(file ? file->host_fd() : folder->fd.get(), &host) < 0) return errno;
      if (file && file->is_text) as_text(*file, host);
      return 0;
    }
  }
  const Place place = place_of(kernel, call, folder_arg(call, 0), 1, Wish::kLook,
                               flags & kAtSymlinkNofollow ? Last::kLook : Last::kFollow);
  host = place.status;
  return place.error;
}

// linux/stat.h: struct statx
struct GuestStatx {
  uint32_t mask, blksize;
  uint64_t attributes;
  uint32_t nlink, uid, gid;
  uint16_t mode, pad;
  uint64_t ino, size, blocks, attributes_mask;
  struct Time {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t pad;
  } atime, btime, ctime, mtime;
  uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
  uint64_t rest[14];
};
static_assert(sizeof(GuestStatx) == 256);

GuestStatx::Time statx_time(const timespec& t) {
  return {t.tv_sec, static_cast<uint32_t>(t.tv_nsec), 0};
}

// asm-generic/statfs.h: struct statfs, and statfs64 where words are narrower.
template <class Word>
struct GuestStatfs {
  Word type, bsize;
  uint64_t blocks, bfree, bavail, files, ffree;
  int32_t fsid[2];
  Word namelen, frsize, flags, spare[4];
};
static_assert(sizeof(GuestStatfs<uint32_t>) == 88 && sizeof(GuestStatfs<uint64_t>) == 120);

template <class Word>
bool store_statfs_as(const Call& call, uint64_t address, const struct statfs& host) {
  GuestStatfs<Word> guest{};
  guest.type = static_cast<Word>(host.f_type);
  guest.bsize = static_cast<Word>(host.f_bsize);
  guest.blocks = host.f_blocks;
  guest.bfree = host.f_bfree;
  guest.bavail = host.f_bavail;
  guest.files = host.f_files;
  guest.ffree = host.f_ffree;
  guest.namelen = static_cast<Word>(host.f_namelen);
  guest.frsize = static_cast<Word>(host.f_frsize);
  guest.flags = static_cast<Word>(host.f_flags);
  return call.memory.store(address, guest);
}

// statfs64 and fstatfs64 have the structure's size as an argument in front of it.
bool has_statfs_size(const Call& call) {
  return call.word_bytes != 4 || call.args[1] == sizeof(GuestStatfs<uint32_t>);
}
Reply store_statfs(const Call& call, const struct statfs& host) {
  const bool ok = call.word_bytes == 4 ? store_statfs_as<uint32_t>(call, call.args[2], host)
                                       : store_statfs_as<uint64_t>(call, call.args[1], host);
  return ok ? Reply::result(0) : Reply::error(EFAULT);
}

}  // namespace

Reply sys_newfstatat(Kernel& kernel, Call& call) {
  struct stat host;
  if (const int error = stat_path(kernel, call, call.args[3], host)) return Reply::error(error);
  return store_stat(call, call.args[2], host);
}

Reply sys_statx(Kernel& kernel, Call& call) {
  struct stat host;
  if (const int error = stat_path(kernel, call, call.args[2], host)) return Reply::error(error);
  GuestStatx guest{};
  guest.mask = 0x7ff;  // STATX_BASIC_STATS
  guest.blksize = static_cast<uint32_t>(host.st_blksize);
  guest.nlink = static_cast<uint32_t>(host.st_nlink);
  guest.uid = host.st_uid;
  guest.gid = host.st_gid;
  guest.mode = static_cast<uint16_t>(host.st_mode);
  guest.ino = host.st_ino;
  guest.size = static_cast<uint64_t>(host.st_size);
  guest.blocks = static_cast<uint64_t>(host.st_blocks);
  guest.atime = statx_time(host.st_atim);
  guest.ctime = statx_time(host.st_ctim);
  guest.mtime = statx_time(host.st_mtim);
  guest.rdev_major = major(host.st_rdev);
  guest.rdev_minor = minor(host.st_rdev);
  guest.dev_major = major(host.st_dev);
  guest.dev_minor = minor(host.st_dev);
  return call.memory.store(call.args[4], guest) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_readlinkat(Kernel& kernel, Call& call) {
  const Place place = place_of(kernel, call, folder_arg(call, 0), 1, Wish::kLook, Last::kLook);
  if (place.error != 0) return Reply::error(place.error);
  if (static_cast<int64_t>(call.args[3]) <= 0 || !place.is_link()) return Reply::error(EINVAL);
  std::string target = kernel.paths().program();
  if (place.own == OwnFile::kDescriptor) {
    const int number = *number_in_path(place.own_path);
    target = descriptor_target(*call.process->files.find(number), number);
  } else if (place.own != OwnFile::kProgram) {
    std::array<char, 4096> text;
    const ssize_t size = ::readlinkat(place.fd(), "", text.data(), text.size());
    if (size < 0) return Reply::error(errno);
    target.assign(text.data(), static_cast<size_t>(size));
  }
  const size_t size = std::min<size_t>(target.size(), call.args[3]);
  return call.memory.write(call.args[2], {reinterpret_cast<const uint8_t*>(target.data()), size})
             ? Reply::result(static_cast<int64_t>(size))
             : Reply::error(EFAULT);
}

// --- changes below writable roots

namespace {

// A name to be made: its folder, or why not.
Place new_place(Kernel& kernel, const Call& call, int folder, int path_arg) {
  Place place = place_of(kernel, call, folder, path_arg, Wish::kChangeEntry, Last::kEntry);
  if (place.error == 0)
    place.error = EEXIST;
  else if (place.error == ENOENT && place.folder)
    place.error = 0;
  return place;
}

}  // namespace

Reply sys_mkdirat(Kernel& kernel, Call& call) {
  const Place place = new_place(kernel, call, folder_arg(call, 0), 1);
  if (place.error != 0) return Reply::error(place.error);
  const auto mode = static_cast<mode_t>(call.args[2] & 07777 & ~uint64_t{call.process->umask});
  return done(::mkdirat(place.folder->fd.get(), place.name.c_str(), mode));
}

// Plain files and named pipes; devices need rights that guests have not.
Reply sys_mknodat(Kernel& kernel, Call& call) {
  const auto type = static_cast<mode_t>(call.args[2] & S_IFMT);
  switch (type) {
    case 0:
    case S_IFREG:
    case S_IFIFO:
      break;
    case S_IFCHR:
    case S_IFBLK:
    case S_IFDIR:
    case S_IFSOCK:
      return Reply::error(EPERM);
    default:
      return Reply::error(EINVAL);
  }
  const Place place = new_place(kernel, call, folder_arg(call, 0), 1);
  if (place.error != 0) return Reply::error(place.error);
  const auto mode = static_cast<mode_t>(call.args[2] & 0777 & ~uint64_t{call.process->umask});
  return done(::mknodat(place.folder->fd.get(), place.name.c_str(), type | mode, 0));
}

Reply sys_unlinkat(Kernel& kernel, Call& call) {
  constexpr uint64_t kRemoveFolder = 0x200;
  const bool is_folder = (call.args[2] & kRemoveFolder) != 0;
  const Place place =
      place_of(kernel, call, folder_arg(call, 0), 1, Wish::kChangeEntry, Last::kEntry);
  if (place.error != 0) return Reply::error(place.error);
  if (place.name.empty()) return Reply::error(is_folder ? EINVAL : EISDIR);
  return done(::unlinkat(place.folder->fd.get(), place.name.c_str(), is_folder ? AT_REMOVEDIR : 0));
}

Reply sys_renameat2(Kernel& kernel, Call& call) {
  constexpr uint64_t kRenameat2 = 276, kNoReplace = 1, kExchange = 2;
  const uint64_t flags = is_call(kernel, call, kRenameat2) ? call.args[4] : 0;
  if (flags & ~(kNoReplace | kExchange)) return Reply::error(EINVAL);
  const Place from =
      place_of(kernel, call, folder_arg(call, 0), 1, Wish::kChangeEntry, Last::kEntry);
  if (from.error != 0) return Reply::error(from.error);
  const Place to =
      place_of(kernel, call, folder_arg(call, 2), 3, Wish::kChangeEntry, Last::kEntry);
  if (to.error != 0 && !(to.error == ENOENT && to.folder)) return Reply::error(to.error);
  if (from.name.empty() || to.name.empty()) return Reply::error(EBUSY);
  if (to.has_slash && !from.self) return Reply::error(ENOTDIR);
  return done(::renameat2(from.folder->fd.get(), from.name.c_str(), to.folder->fd.get(),
                          to.name.c_str(), static_cast<unsigned>(flags)));
}

// The text may be anything: where a link leads is judged when it is followed.
Reply sys_symlinkat(Kernel& kernel, Call& call) {
  const std::optional<std::string> text = call.memory.string(call.args[0]);
  if (!text) return Reply::error(EFAULT);
  const Place place = new_place(kernel, call, folder_arg(call, 1), 2);
  if (place.error != 0) return Reply::error(place.error);
  if (text->empty() || place.has_slash) return Reply::error(ENOENT);
  return done(::symlinkat(text->c_str(), place.folder->fd.get(), place.name.c_str()));
}

// Only of what may be changed where it is: a second name must not give more rights than the first.
Reply sys_linkat(Kernel& kernel, Call& call) {
  if (call.args[4] & ~kAtSymlinkFollow) return Reply::error(EINVAL);
  const Place from = place_of(kernel, call, folder_arg(call, 0), 1, Wish::kChange,
                              call.args[4] & kAtSymlinkFollow ? Last::kFollow : Last::kLook);
  if (from.error != 0) return Reply::error(from.error);
  const Place to = new_place(kernel, call, folder_arg(call, 2), 3);
  if (to.error != 0) return Reply::error(to.error);
  if (from.self) return Reply::error(EPERM);
  if (to.has_slash) return Reply::error(ENOENT);
  return done(::linkat(from.folder->fd.get(), from.name.c_str(), to.folder->fd.get(),
                       to.name.c_str(), 0));
}

Reply sys_truncate(Kernel& kernel, Call& call) {
  const Place place = place_of(kernel, call, kAtFdCwd, 0, Wish::kChange, Last::kFollow);
  if (place.error != 0) return Reply::error(place.error);
  if (!allows_length(*call.process, static_cast<int64_t>(call.args[1])))
    return Reply::result(file_too_large(kernel, call.core));
  return done(::truncate(descriptor_path(place.fd()).c_str(), static_cast<off_t>(call.args[1])));
}

Reply sys_fchmodat(Kernel& kernel, Call& call) {
  const Place place = place_of(kernel, call, folder_arg(call, 0), 1, Wish::kChange, Last::kFollow);
  if (place.error != 0) return Reply::error(place.error);
  return done(::chmod(descriptor_path(place.fd()).c_str(), static_cast<mode_t>(call.args[2] & 0777)));
}
Reply sys_fchmod(Kernel&, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!file->is_changeable) return Reply::error(EPERM);
  return done(::fchmod(file->host_fd(), static_cast<mode_t>(call.args[1] & 0777)));
}

namespace {

// To whom files belong stays as it is; asking for what is so already succeeds.
Reply change_owner(const struct stat& host, uint64_t user, uint64_t group) {
  const auto same = [](uint64_t wish, uint32_t is) {
    return static_cast<uint32_t>(wish) == is || static_cast<uint32_t>(wish) == ~uint32_t{0};
  };
  return same(user, host.st_uid) && same(group, host.st_gid) ? Reply::result(0)
                                                             : Reply::error(EPERM);
}

}  // namespace

Reply sys_fchownat(Kernel& kernel, Call& call) {
  const Place place = place_of(kernel, call, folder_arg(call, 0), 1, Wish::kChange,
                               call.args[4] & kAtSymlinkNofollow ? Last::kLook : Last::kFollow);
  if (place.error != 0) return Reply::error(place.error);
  return change_owner(place.status, call.args[2], call.args[3]);
}
Reply sys_fchown(Kernel&, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  struct stat host;
  if (::fstat(file->host_fd(), &host) < 0) return Reply::error(errno);
  return change_owner(host, call.args[1], call.args[2]);
}

Reply sys_utimensat(Kernel& kernel, Call& call) {
  timespec times[2];
  if (call.args[2] != 0) {
    GuestTimespec guest[2];
    if (!call.memory.load(call.args[2], &guest)) return Reply::error(EFAULT);
    for (int i = 0; i < 2; ++i) times[i] = {guest[i].seconds, guest[i].nanoseconds};
  }
  const timespec* wish = call.args[2] != 0 ? times : nullptr;
  if (call.args[1] == 0) {
    const OpenFile* file = call.process->files.find(call.int_arg(0));
    if (!file) return Reply::error(EBADF);
    return file->is_changeable ? done(::futimens(file->host_fd(), wish)) : Reply::error(EPERM);
  }
  const Place place = place_of(kernel, call, folder_arg(call, 0), 1, Wish::kChange,
                               call.args[3] & kAtSymlinkNofollow ? Last::kLook : Last::kFollow);
  if (place.error != 0) return Reply::error(place.error);
  // A link has no other descriptor than O_PATH: its name in its folder must do.
  return done(place.is_link() ? ::utimensat(place.folder->fd.get(), place.name.c_str(), wish,
                                            AT_SYMLINK_NOFOLLOW)
                              : ::utimensat(AT_FDCWD, descriptor_path(place.fd()).c_str(), wish, 0));
}

// --- folders

// The structures are the same for all 64-bit Linux systems.
namespace {

// As many whole records as there is room for.
Reply next_of_listing(Call& call, const OpenFile& file, std::vector<uint8_t>& bytes) {
  constexpr size_t kSizeAt = 16;
  const off_t at = ::lseek(file.host_fd(), 0, SEEK_CUR);
  const ssize_t got = ::pread(file.host_fd(), bytes.data(), bytes.size(), at);
  if (at < 0 || got < 0) return Reply::error(errno);
  bytes.resize(static_cast<size_t>(got));
  size_t size = 0;
  for (uint16_t record; size + kSizeAt + sizeof record <= bytes.size(); size += record) {
    std::memcpy(&record, &bytes[size + kSizeAt], sizeof record);
    if (record == 0 || size + record > bytes.size()) break;
  }
  struct stat whole {};
  if (::fstat(file.host_fd(), &whole) < 0) return Reply::error(errno);
  if (size == 0 && at < whole.st_size) return Reply::error(EINVAL);  // no room for one
  ::lseek(file.host_fd(), at + static_cast<off_t>(size), SEEK_SET);
  call.memory.write(call.args[1], {bytes.data(), size});
  return Reply::result(static_cast<int64_t>(size));
}

}  // namespace

Reply sys_getdents64(Kernel&, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!file->is_folder()) return Reply::error(ENOTDIR);
  std::vector<uint8_t> bytes(std::min<uint64_t>(call.args[2], uint64_t{1} << 20));
  if (!call.memory.allows(call.args[1], bytes.size(), kWrite)) return Reply::error(EFAULT);
  if (file->is_text) return next_of_listing(call, *file, bytes);
  const long size = ::syscall(SYS_getdents64, file->host_fd(), bytes.data(), bytes.size());
  if (size < 0) return Reply::error(errno);
  call.memory.write(call.args[1], {bytes.data(), static_cast<size_t>(size)});
  return Reply::result(size);
}

Reply sys_chdir(Kernel& kernel, Call& call) {
  const Place place = place_of(kernel, call, kAtFdCwd, 0, Wish::kLook, Last::kFollow);
  if (place.error != 0) return Reply::error(place.error);
  if (place.own != OwnFile::kNone) return Reply::error(EACCES);
  if (!place.self) return Reply::error(ENOTDIR);
  if (::faccessat(place.fd(), ".", X_OK, 0) < 0) return Reply::error(errno);
  call.process->folder = place.self;
  call.process->cwd = place.self->path();
  return Reply::result(0);
}
Reply sys_fchdir(Kernel&, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!file->folder) return Reply::error(ENOTDIR);
  call.process->folder = file->folder;
  call.process->cwd = file->folder->path();
  return Reply::result(0);
}

Reply sys_statfs(Kernel& kernel, Call& call) {
  if (!has_statfs_size(call)) return Reply::error(EINVAL);
  const Place place = place_of(kernel, call, kAtFdCwd, 0, Wish::kLook, Last::kFollow);
  if (place.error != 0) return Reply::error(place.error);
  struct statfs host {};
  if (place.fd() < 0) {
    host.f_type = PROC_SUPER_MAGIC;
    host.f_bsize = host.f_frsize = 4096;
    host.f_namelen = 255;
  } else if (::fstatfs(place.fd(), &host) < 0) {
    return Reply::error(errno);
  }
  return store_statfs(call, host);
}
Reply sys_fstatfs(Kernel&, Call& call) {
  if (!has_statfs_size(call)) return Reply::error(EINVAL);
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  struct statfs host;
  if (::fstatfs(file->host_fd(), &host) < 0) return Reply::error(errno);
  return store_statfs(call, host);
}

Reply sys_getcwd(Kernel&, Call& call) {
  const std::string& cwd = call.process->cwd;
  if (call.args[1] < cwd.size() + 1) return Reply::error(ERANGE);
  const auto* bytes = reinterpret_cast<const uint8_t*>(cwd.c_str());
  return call.memory.write(call.args[0], {bytes, cwd.size() + 1})
             ? Reply::result(static_cast<int64_t>(cwd.size() + 1))
             : Reply::error(EFAULT);
}

}  // namespace gpusim::host
