// System calls that name files.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/file_size_limit.h"
#include "host/linux/guest_abi.h"

namespace gpusim::host {
namespace {

// The absolute path that (folder, path) mean.
struct PathArgument {
  int error = 0;
  std::string path;
};
PathArgument path_argument(const Call& call, int folder_arg, int path_arg) {
  const std::optional<std::string> text = call.memory.string(call.args[path_arg]);
  if (!text) {
    uint8_t first;
    return {call.memory.load(call.args[path_arg], &first) ? ENAMETOOLONG : EFAULT, {}};
  }
  if (text->empty()) return {ENOENT, {}};
  if (text->front() == '/') return {0, *text};
  if (call.int_arg(folder_arg) == kAtFdCwd) return {0, call.process->cwd + "/" + *text};
  const OpenFile* folder = call.process->files.find(call.int_arg(folder_arg));
  if (!folder) return {EBADF, {}};
  if (!folder->is_folder()) return {ENOTDIR, {}};
  return {0, folder->path() + "/" + *text};
}

PathPolicy::Verdict judge(Kernel& kernel, const std::string& path, bool for_writing,
                          bool entry = false) {
  PathPolicy::Verdict verdict = entry ? kernel.paths().judge_entry(path, for_writing)
                                      : kernel.paths().judge(path, for_writing);
  if (verdict.error == EACCES)
    kernel.note_once("path policy", "the guest may not open " + path +
                                        (for_writing ? " for writing" : "") +
                                        "; --root FOLDER allows a folder (EACCES; said once)");
  return verdict;
}

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
  return store_stat(call, address, host);
}

}  // namespace

Reply sys_openat(Kernel& kernel, Call& call) {
  const PathArgument path = path_argument(call, 0, 1);
  if (path.error != 0) return Reply::error(path.error);
  const int flags = host_open_flags(kernel.module().isa, call.args[2]);
  const bool for_writing = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  const PathPolicy::Verdict verdict = judge(kernel, path.path, for_writing);
  if (verdict.error != 0) return Reply::error(verdict.error);
  const auto mode = static_cast<mode_t>(call.args[3] & 07777 & ~uint64_t{call.process->umask});
  const int host_fd = ::open(verdict.host_path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW,
                             mode);
  if (host_fd < 0) return Reply::error(errno);
  struct stat host {};
  ::fstat(host_fd, &host);
  const auto kind = S_ISDIR(host.st_mode) ? OpenFile::Kind::kFolder : OpenFile::Kind::kOther;
  const int fd = call.process->files.add(
      std::make_shared<OpenFile>(host_fd, /*owned=*/true, kind, verdict.host_path));
  if (fd < 0) return Reply::error(EMFILE);
  call.process->files.set_closes_on_exec(fd, (flags & O_CLOEXEC) != 0);
  return Reply::result(fd);
}

Reply sys_faccessat(Kernel& kernel, Call& call) {
  const PathArgument path = path_argument(call, 0, 1);
  if (path.error != 0) return Reply::error(path.error);
  const int mode = static_cast<int>(call.args[2] & 7);
  const PathPolicy::Verdict verdict = judge(kernel, path.path, (mode & W_OK) != 0);
  if (verdict.error != 0) return Reply::error(verdict.error);
  return ::access(verdict.host_path.c_str(), mode) < 0 ? Reply::error(errno) : Reply::result(0);
}

Reply sys_fstat(Kernel& kernel, Call& call) { return stat_of_file(kernel, call, call.args[1]); }

namespace {

// Of a path, or with AT_EMPTY_PATH of an open file; `path_arg` follows `folder_arg`.
int stat_path(Kernel& kernel, Call& call, uint64_t flags, struct stat& host) {
  kernel.output().flush();  // sizes count
  if (flags & kAtEmptyPath) {
    const std::optional<std::string> text = call.memory.string(call.args[1]);
    if (text && text->empty() && call.int_arg(0) != kAtFdCwd) {
      const OpenFile* file = call.process->files.find(call.int_arg(0));
      if (!file) return EBADF;
      return ::fstat(file->host_fd(), &host) < 0 ? errno : 0;
    }
  }
  const PathArgument path = path_argument(call, 0, 1);
  if (path.error != 0) return path.error;
  const bool entry = (flags & kAtSymlinkNofollow) != 0;
  const PathPolicy::Verdict verdict = judge(kernel, path.path, /*for_writing=*/false, entry);
  if (verdict.error != 0) return verdict.error;
  const int result = entry ? ::lstat(verdict.host_path.c_str(), &host)
                           : ::stat(verdict.host_path.c_str(), &host);
  return result < 0 ? errno : 0;
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

// The file that a call changes: argument 0 and 1, or an error.
struct Change {
  int error = 0;
  std::string host_path;
};
Change to_change(Kernel& kernel, Call& call, int folder_arg, int path_arg, bool entry) {
  const PathArgument path = path_argument(call, folder_arg, path_arg);
  if (path.error != 0) return {path.error, {}};
  const PathPolicy::Verdict verdict = judge(kernel, path.path, /*for_writing=*/true, entry);
  return {verdict.error, verdict.host_path};
}
Reply done(int result) { return result < 0 ? Reply::error(errno) : Reply::result(result); }

struct GuestStatfs {
  int64_t type, bsize;
  uint64_t blocks, bfree, bavail, files, ffree;
  int32_t fsid[2];
  int64_t namelen, frsize, flags, spare[4];
};
Reply store_statfs(const Call& call, const struct statfs& host) {
  GuestStatfs guest{};
  guest.type = host.f_type;
  guest.bsize = host.f_bsize;
  guest.blocks = host.f_blocks;
  guest.bfree = host.f_bfree;
  guest.bavail = host.f_bavail;
  guest.files = host.f_files;
  guest.ffree = host.f_ffree;
  guest.namelen = host.f_namelen;
  guest.frsize = host.f_frsize;
  guest.flags = host.f_flags;
  return call.memory.store(call.args[1], guest) ? Reply::result(0) : Reply::error(EFAULT);
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
  const PathArgument path = path_argument(call, 0, 1);
  if (path.error != 0) return Reply::error(path.error);
  if (static_cast<int64_t>(call.args[3]) <= 0) return Reply::error(EINVAL);
  std::string target = kernel.paths().program();
  if (path.path != "/proc/self/exe") {
    const PathPolicy::Verdict verdict = judge(kernel, path.path, /*for_writing=*/false, true);
    if (verdict.error != 0) return Reply::error(verdict.error);
    char text[4096];
    const ssize_t size = ::readlink(verdict.host_path.c_str(), text, sizeof text);
    if (size < 0) return Reply::error(errno);
    target.assign(text, static_cast<size_t>(size));
  }
  const size_t size = std::min<size_t>(target.size(), call.args[3]);
  return call.memory.write(call.args[2], {reinterpret_cast<const uint8_t*>(target.data()), size})
             ? Reply::result(static_cast<int64_t>(size))
             : Reply::error(EFAULT);
}

// --- changes below writable roots

Reply sys_mkdirat(Kernel& kernel, Call& call) {
  const Change change = to_change(kernel, call, 0, 1, true);
  if (change.error != 0) return Reply::error(change.error);
  const auto mode = static_cast<mode_t>(call.args[2] & 07777 & ~uint64_t{call.process->umask});
  return done(::mkdir(change.host_path.c_str(), mode));
}

Reply sys_unlinkat(Kernel& kernel, Call& call) {
  constexpr uint64_t kRemoveFolder = 0x200;
  const Change change = to_change(kernel, call, 0, 1, true);
  if (change.error != 0) return Reply::error(change.error);
  return done(call.args[2] & kRemoveFolder ? ::rmdir(change.host_path.c_str())
                                           : ::unlink(change.host_path.c_str()));
}

Reply sys_renameat2(Kernel& kernel, Call& call) {
  constexpr uint64_t kNoReplace = 1;
  const bool has_flags =
      kernel.backend().slot(call.core, static_cast<Slot>(kernel.module().abi.syscall_number)) == 276;
  const uint64_t flags = has_flags ? call.args[4] : 0;
  if (flags & ~kNoReplace) return Reply::error(EINVAL);
  const Change from = to_change(kernel, call, 0, 1, true);
  if (from.error != 0) return Reply::error(from.error);
  const Change to = to_change(kernel, call, 2, 3, true);
  if (to.error != 0) return Reply::error(to.error);
  struct stat host;
  if ((flags & kNoReplace) && ::lstat(to.host_path.c_str(), &host) == 0)
    return Reply::error(EEXIST);
  return done(::rename(from.host_path.c_str(), to.host_path.c_str()));
}

// A link could lead out of the folders that the guest may use.
Reply sys_no_links(Kernel& kernel, Call&) {
  kernel.note_once("links", "the guest may not make links (EPERM)");
  return Reply::error(EPERM);
}

Reply sys_truncate(Kernel& kernel, Call& call) {
  const std::optional<std::string> text = call.memory.string(call.args[0]);
  if (!text) return Reply::error(EFAULT);
  if (text->empty()) return Reply::error(ENOENT);
  const std::string path = text->front() == '/' ? *text : call.process->cwd + "/" + *text;
  const PathPolicy::Verdict verdict = judge(kernel, path, /*for_writing=*/true);
  if (verdict.error != 0) return Reply::error(verdict.error);
  if (!allows_length(*call.process, static_cast<int64_t>(call.args[1])))
    return Reply::result(file_too_large(kernel, call.core));
  return done(::truncate(verdict.host_path.c_str(), static_cast<off_t>(call.args[1])));
}

Reply sys_fchmodat(Kernel& kernel, Call& call) {
  const Change change = to_change(kernel, call, 0, 1, false);
  if (change.error != 0) return Reply::error(change.error);
  return done(::chmod(change.host_path.c_str(), static_cast<mode_t>(call.args[2] & 0777)));
}
Reply sys_fchmod(Kernel& kernel, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  // By its path, if it has one: the folder's rights decide.
  if (file->path().empty()) return Reply::error(EPERM);
  const PathPolicy::Verdict verdict = judge(kernel, file->path(), /*for_writing=*/true);
  if (verdict.error != 0) return Reply::error(verdict.error);
  return done(::fchmod(file->host_fd(), static_cast<mode_t>(call.args[1] & 0777)));
}

// To whom files belong stays as it is; asking for what is so already succeeds.
Reply sys_fchownat(Kernel& kernel, Call& call) {
  const Change change = to_change(kernel, call, 0, 1, true);
  if (change.error != 0) return Reply::error(change.error);
  struct stat host;
  if (::lstat(change.host_path.c_str(), &host) < 0) return Reply::error(errno);
  const auto same = [](uint64_t wish, uint32_t is) {
    return static_cast<uint32_t>(wish) == is || static_cast<uint32_t>(wish) == ~uint32_t{0};
  };
  return same(call.args[2], host.st_uid) && same(call.args[3], host.st_gid) ? Reply::result(0)
                                                                            : Reply::error(EPERM);
}
Reply sys_fchown(Kernel&, Call& call) {
  return call.process->files.find(call.int_arg(0)) ? Reply::result(0) : Reply::error(EBADF);
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
    return file ? done(::futimens(file->host_fd(), wish)) : Reply::error(EBADF);
  }
  const bool entry = (call.args[3] & kAtSymlinkNofollow) != 0;
  const Change change = to_change(kernel, call, 0, 1, entry);
  if (change.error != 0) return Reply::error(change.error);
  return done(::utimensat(AT_FDCWD, change.host_path.c_str(), wish,
                          entry ? AT_SYMLINK_NOFOLLOW : 0));
}

// --- folders

// The structures are the same for all 64-bit Linux systems.
Reply sys_getdents64(Kernel&, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!file->is_folder()) return Reply::error(ENOTDIR);
  std::vector<uint8_t> bytes(std::min<uint64_t>(call.args[2], uint64_t{1} << 20));
  if (!call.memory.allows(call.args[1], bytes.size(), kWrite)) return Reply::error(EFAULT);
  const long size = ::syscall(SYS_getdents64, file->host_fd(), bytes.data(), bytes.size());
  if (size < 0) return Reply::error(errno);
  call.memory.write(call.args[1], {bytes.data(), static_cast<size_t>(size)});
  return Reply::result(size);
}

Reply sys_chdir(Kernel& kernel, Call& call) {
  const std::optional<std::string> text = call.memory.string(call.args[0]);
  if (!text) return Reply::error(EFAULT);
  if (text->empty()) return Reply::error(ENOENT);
  const std::string path = text->front() == '/' ? *text : call.process->cwd + "/" + *text;
  const PathPolicy::Verdict verdict = judge(kernel, path, /*for_writing=*/false);
  if (verdict.error != 0) return Reply::error(verdict.error);
  struct stat host;
  if (::stat(verdict.host_path.c_str(), &host) < 0) return Reply::error(errno);
  if (!S_ISDIR(host.st_mode)) return Reply::error(ENOTDIR);
  call.process->cwd = verdict.host_path;
  return Reply::result(0);
}
Reply sys_fchdir(Kernel&, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!file->is_folder()) return Reply::error(ENOTDIR);
  call.process->cwd = file->path();
  return Reply::result(0);
}

Reply sys_statfs(Kernel& kernel, Call& call) {
  const std::optional<std::string> text = call.memory.string(call.args[0]);
  if (!text) return Reply::error(EFAULT);
  const std::string path = text->starts_with('/') ? *text : call.process->cwd + "/" + *text;
  const PathPolicy::Verdict verdict = judge(kernel, path, /*for_writing=*/false);
  if (verdict.error != 0) return Reply::error(verdict.error);
  struct statfs host;
  if (::statfs(verdict.host_path.c_str(), &host) < 0) return Reply::error(errno);
  return store_statfs(call, host);
}
Reply sys_fstatfs(Kernel&, Call& call) {
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
