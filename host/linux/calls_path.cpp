// System calls that name files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"

namespace gpusim::host {
namespace {

// The absolute path that (folder, path) mean. Folders are never open files here.
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
  return {call.process->files.find(call.int_arg(folder_arg)) ? ENOTDIR : EBADF, {}};
}

PathPolicy::Verdict judge(Kernel& kernel, const std::string& path, bool for_writing) {
  PathPolicy::Verdict verdict = kernel.paths().judge(path, for_writing);
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
  const int host_fd = ::open(verdict.host_path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW,
                             static_cast<mode_t>(call.args[3] & 0777));
  if (host_fd < 0) return Reply::error(errno);
  const int fd = call.process->files.add(std::make_shared<OpenFile>(host_fd, /*owned=*/true));
  return fd < 0 ? Reply::error(EMFILE) : Reply::result(fd);
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

Reply sys_newfstatat(Kernel& kernel, Call& call) {
  if (call.args[3] & kAtEmptyPath) {
    const std::optional<std::string> text = call.memory.string(call.args[1]);
    if (text && text->empty()) return stat_of_file(kernel, call, call.args[2]);
  }
  const PathArgument path = path_argument(call, 0, 1);
  if (path.error != 0) return Reply::error(path.error);
  const PathPolicy::Verdict verdict = judge(kernel, path.path, /*for_writing=*/false);
  if (verdict.error != 0) return Reply::error(verdict.error);
  struct stat host;
  if (::stat(verdict.host_path.c_str(), &host) < 0) return Reply::error(errno);
  return store_stat(call, call.args[2], host);
}

// Only the one link that C libraries ask for; other paths are judged after their links are
// resolved, so nothing they name is a link.
Reply sys_readlinkat(Kernel& kernel, Call& call) {
  const PathArgument path = path_argument(call, 0, 1);
  if (path.error != 0) return Reply::error(path.error);
  if (static_cast<int64_t>(call.args[3]) <= 0) return Reply::error(EINVAL);
  if (path.path != "/proc/self/exe") {
    const PathPolicy::Verdict verdict = judge(kernel, path.path, /*for_writing=*/false);
    if (verdict.error != 0) return Reply::error(verdict.error);
    return Reply::error(::access(verdict.host_path.c_str(), F_OK) < 0 ? errno : EINVAL);
  }
  const std::string& target = kernel.paths().program();
  const size_t size = std::min<size_t>(target.size(), call.args[3]);
  return call.memory.write(call.args[2], {reinterpret_cast<const uint8_t*>(target.data()), size})
             ? Reply::result(static_cast<int64_t>(size))
             : Reply::error(EFAULT);
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
