// Locks on files: whole (flock), and by range (fcntl), of processes and of open files.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/record_locks.h"

namespace gpusim::host {
namespace {

// Of fcntl, in generic ISAs.
enum Command : int64_t {
  kGetLock = 5,
  kSetLock = 6,
  kSetLockWait = 7,
  kOfdGetLock = 36,
  kOfdSetLock = 37,
  kOfdSetLockWait = 38,
};

struct GuestFlock {
  int16_t type, whence;
  int32_t pad;
  int64_t start, length;
  int32_t pid, pad2;
};
static_assert(sizeof(GuestFlock) == 32);

// The range from the start of the file. 0 or an error number.
int resolve(Kernel& kernel, const OpenFile& file, const GuestFlock& guest, struct flock* range) {
  int64_t base = 0;
  if (guest.whence == SEEK_CUR || guest.whence == SEEK_END) {
    kernel.output().flush();  // positions and sizes count
    struct stat host {};
    if (::fstat(file.host_fd(), &host) < 0) return errno;
    base = guest.whence == SEEK_END ? host.st_size : ::lseek(file.host_fd(), 0, SEEK_CUR);
    if (base < 0) base = 0;  // no position: as Linux
  } else if (guest.whence != SEEK_SET) {
    return EINVAL;
  }
  *range = {
      .l_type = guest.type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = guest.pid};
  int64_t start, end;
  if (__builtin_add_overflow(base, guest.start, &start)) return EOVERFLOW;
  if (start < 0) return EINVAL;
  if (guest.length < 0) {
    if (__builtin_add_overflow(start, guest.length, &start) || start < 0) return EINVAL;
    range->l_len = -guest.length;
  } else {
    if (guest.length > 0 && __builtin_add_overflow(start, guest.length - 1, &end)) return EOVERFLOW;
    range->l_len = guest.length;
  }
  range->l_start = start;
  return 0;
}

// The guest process that has this lock.
std::optional<uint32_t> owner_of(const Kernel& kernel, const OpenFile& file,
                                 const struct flock& lock) {
  RecordLocks::FileId id;
  if (lock.l_pid != -1 || !can_be_locked(file, &id)) return std::nullopt;  // a process of the host
  for (const std::unique_ptr<Process>& process : kernel.processes())
    if (process && process->files.locks().has(id, lock)) return process->number;
  return std::nullopt;
}

// Whether `caller` would wait for a process that waits, by way of others, for `caller`.
bool closes_ring(const Kernel& kernel, uint32_t caller, std::optional<uint32_t> owner) {
  for (uint32_t steps = 0; owner && steps < kernel.plan().config.cores; ++steps) {
    if (*owner == caller) return true;
    const Thread* const thread = kernel.find_thread(*owner);
    owner = thread ? thread->waits_for_lock_of : std::nullopt;
  }
  return false;
}

Reply get_lock(Kernel& kernel, Call& call, const OpenFile& file, bool is_files) {
  GuestFlock guest;
  struct flock lock;
  if (!call.memory.load(call.args[2], &guest)) return Reply::error(EFAULT);
  if (guest.type != F_RDLCK && guest.type != F_WRLCK) return Reply::error(EINVAL);
  if (const int error = resolve(kernel, file, guest, &lock)) return Reply::error(error);
  const int error = is_files ? ::fcntl(file.host_fd(), F_OFD_GETLK, &lock) < 0 ? errno : 0
                             : call.process->files.locks().find_other(file, &lock);
  if (error != 0) return Reply::error(error);
  if (lock.l_type == F_UNLCK) {
    guest.type = F_UNLCK;
  } else {
    RecordLocks::FileId id;
    if (const auto owner = owner_of(kernel, file, lock))
      lock.l_pid = static_cast<int32_t>(kFirstPid + *owner);
    else if (kernel.family() && lock.l_pid == -1 && can_be_locked(file, &id))
      lock.l_pid = kernel.family()->holder_of(id, lock).value_or(lock.l_pid);
    guest = {lock.l_type, SEEK_SET, 0, lock.l_start, lock.l_len, lock.l_pid, 0};
  }
  return call.memory.store(call.args[2], guest) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply set_lock(Kernel& kernel, Call& call, const OpenFile& file, bool is_files, bool waits) {
  GuestFlock guest;
  struct flock lock;
  if (!call.memory.load(call.args[2], &guest)) return Reply::error(EFAULT);
  if (const int error = resolve(kernel, file, guest, &lock)) return Reply::error(error);
  const int access = ::fcntl(file.host_fd(), F_GETFL) & O_ACCMODE;
  if ((guest.type == F_RDLCK && access == O_WRONLY) ||
      (guest.type == F_WRLCK && access == O_RDONLY))
    return Reply::error(EBADF);
  if (guest.type != F_RDLCK && guest.type != F_WRLCK && guest.type != F_UNLCK)
    return Reply::error(EINVAL);
  RecordLocks& locks = call.process->files.locks();
  const int error = is_files ? ::fcntl(file.host_fd(), F_OFD_SETLK, &lock) < 0 ? errno : 0
                             : locks.set(file, lock);
  if (error == 0) return Reply::result(0);
  if (!waits || (error != EAGAIN && error != EACCES)) return Reply::error(error);
  // Threads of one process share its locks: only private processes, a thread each, wait in rings.
  if (struct flock other = lock; !is_files && kernel.is_private() &&
                                 locks.find_other(file, &other) == 0 && other.l_type != F_UNLCK) {
    const std::optional<uint32_t> owner = owner_of(kernel, file, other);
    if (closes_ring(kernel, call.process->number, owner)) return Reply::error(EDEADLK);
    kernel.thread(call.core).waits_for_lock_of = owner;
  }
  // Another process of the host may hold it.
  return kernel.park_for_retry(call, {.from_outside = true, .restartable = true});
}

}  // namespace

std::optional<Reply> lock_command(Kernel& kernel, Call& call, const OpenFile& file) {
  const int64_t command = call.int_arg(1);
  if ((::fcntl(file.host_fd(), F_GETFL) & O_PATH) && command >= kGetLock)
    return Reply::error(EBADF);
  switch (command) {
    case kGetLock:
    case kOfdGetLock:
      return get_lock(kernel, call, file, command == kOfdGetLock);
    case kSetLock:
    case kSetLockWait:
      return set_lock(kernel, call, file, /*is_files=*/false, command == kSetLockWait);
    case kOfdSetLock:
    case kOfdSetLockWait:
      return set_lock(kernel, call, file, /*is_files=*/true, command == kOfdSetLockWait);
    default:
      return std::nullopt;
  }
}

// The host's lock, which belongs to the open file as the guest's does.
Reply sys_flock(Kernel& kernel, Call& call) {
  const FileRef file = call.process->files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  const int64_t operation = call.int_arg(1);
  if (operation & ~int64_t{LOCK_SH | LOCK_EX | LOCK_UN | LOCK_NB}) return Reply::error(EINVAL);
  if (::flock(file->host_fd(), static_cast<int>(operation) | LOCK_NB) == 0) return Reply::result(0);
  if (errno != EWOULDBLOCK || (operation & LOCK_NB)) return Reply::error(errno);
  // Another process of the host may hold it.
  return kernel.park_for_retry(call, {.from_outside = true, .restartable = true});
}

}  // namespace gpusim::host
