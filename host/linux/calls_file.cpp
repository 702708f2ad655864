// Reading, writing and positioning of open files.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "host/linux/calls.h"
#include "host/linux/file_size_limit.h"
#include "host/linux/guest_abi.h"
#include "host/linux/signal_file.h"
#include "host/linux/sockets.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;  // copied through the host at a time
constexpr uint64_t kMostVectors = 1024;

enum class Direction { kRead, kWrite };

// Whether a buffer ends beyond the addresses of processes: Linux sees that before it moves a byte,
// and where none is to be moved.
bool is_beyond_addresses(const Call& call, uint64_t address, uint64_t size) {
  const uint64_t end = uint64_t{1} << (call.word_bytes == 4 ? 32 : 48);
  return size > end || address > end - size;
}

// A length that the guest's ssize_t cannot hold, or a buffer that its addresses cannot. 0 or an error
// number.
int check_buffer(const Call& call, uint64_t address, uint64_t size) {
  if (is_beyond_addresses(call, address, size)) return EFAULT;
  return call.word_bytes == 4 && size > INT32_MAX ? EINVAL : 0;
}

// Whether there is such a call for files of its kind.
bool can_move(const OpenFile& file, Direction direction) {
  return direction == Direction::kRead || file.kind() != OpenFile::Kind::kTimer;
}
// Whether the file was opened for it. Of files with a way of their own: true.
bool is_open_for(const OpenFile& file, Direction direction) {
  if (file.kind() > OpenFile::Kind::kMemory) return true;
  const int flags = ::fcntl(file.host_fd(), F_GETFL);
  const int mode = flags & O_ACCMODE;
  return flags < 0 || mode == O_RDWR ||
         mode == (direction == Direction::kWrite ? O_WRONLY : O_RDONLY);
}

// Moves bytes between a file and guest memory; `offset` < 0: at the file's position.
// The result is that of read(2) or write(2): a count, or -errno if nothing was moved.
int64_t transfer(Kernel& kernel, Call& call, Direction direction, uint64_t address, uint64_t size,
                 int64_t offset = -1) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return -EBADF;
  if (file->is_folder()) return direction == Direction::kWrite ? -EBADF : -EISDIR;
  const bool writes = direction == Direction::kWrite;
  // The order of calls is the order of effects: a prompt must be out before its answer is read.
  if (!writes) kernel.output().flush();
  size = std::min(size, kMostBytesOfCall);
  if (writes && size != 0 &&
      call.process->limits[Limits::kFileSize].current != Limits::kInfinite) {
    kernel.output().flush();  // so that a position is what it seems
    size = allowed_size(*call.process, file->host_fd(), offset, size);
    if (size == 0) return file_too_large(kernel, call.core);
  }
  const bool gathered = writes && offset < 0 && kernel.is_standard_output(file->host_fd());
  std::vector<uint8_t> bytes;
  uint64_t done = 0;
  do {
    const uint64_t wish = std::min(size - done, kPiece);
    const uint64_t part = call.memory.allowed_prefix(address + done, wish, writes ? kRead : kWrite);
    if (part == 0 && wish != 0) return done != 0 ? static_cast<int64_t>(done) : -EFAULT;
    bytes.resize(part);
    if (writes && !call.memory.read(address + done, bytes)) return -EFAULT;
    ssize_t moved;
    if (gathered && part != 0) {
      const int error = kernel.output().append(file->host_fd(), call.core, bytes);
      moved = error != 0 ? -1 : static_cast<ssize_t>(part);
      errno = error;
    } else {
      do {
        if (writes)
          moved = offset < 0 ? ::write(file->host_fd(), bytes.data(), part)
                             : ::pwrite(file->host_fd(), bytes.data(), part, offset + done);
        else
          moved = offset < 0 ? ::read(file->host_fd(), bytes.data(), part)
                             : ::pread(file->host_fd(), bytes.data(), part, offset + done);
      } while (moved < 0 && errno == EINTR && writes);
    }
    if (moved < 0) return done != 0 ? static_cast<int64_t>(done) : -errno;
    if (!writes) call.memory.write(address + done, {bytes.data(), static_cast<size_t>(moved)});
    done += static_cast<uint64_t>(moved);
    if (static_cast<uint64_t>(moved) < wish) break;
  } while (done < size);
  return static_cast<int64_t>(done);
}

// What a read or a write of a pipe comes to when the pipe is empty or full, or has no reader.
// Standard output may be a pipe, too. `moved` by this attempt, of `wish` bytes. Like Linux's, a write
// that may wait ends when all is written. `outside`: what the file's changes_by_itself() said before.
Reply finish(Kernel& kernel, Call& call, Direction direction, int64_t moved, uint64_t wish,
             bool outside) {
  const FileRef file = call.process->files.share(call.int_arg(0));
  uint64_t& done = kernel.thread(call.core).retry_done;
  if (file && moved > 0) file->is_armed = false;
  if (moved == -EPIPE) kernel.post(call.core, {.number = SIGPIPE, .code = kSiUser});
  if (file && file->parks() && !file->is_nonblocking) {
    if (moved > 0) done += static_cast<uint64_t>(moved);
    const bool is_cut = direction == Direction::kWrite && moved >= 0 && done < wish;
    if (moved == -EAGAIN || is_cut)
      return kernel.park_for_retry(
          call, {.from_outside = outside, .restartable = true});
    if (done != 0) moved = static_cast<int64_t>(std::exchange(done, 0));
  }
  return Reply::result(moved);
}

// Of files that are read and written in their own ways; nothing: of the others.
std::optional<Reply> transfer_special(Kernel& kernel, Call& call, Direction direction,
                                      const FileRef& file, std::span<const GuestIovec> vectors) {
  const bool reads = direction == Direction::kRead;
  if (file && file->kind() == OpenFile::Kind::kSocket)
    return reads ? read_socket(kernel, call, file, vectors)
                 : write_socket(kernel, call, file, vectors);
  if (const auto* signals = dynamic_cast<const SignalFile*>(file.get()))
    return reads ? read_signals(kernel, call, *signals, vectors) : Reply::error(EINVAL);
  return std::nullopt;
}

Reply transfer_vectors(Kernel& kernel, Call& call, Direction direction, int64_t offset = -1) {
  const FileRef file = call.process->files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!can_move(*file, direction)) return Reply::error(EINVAL);
  std::vector<GuestIovec> vectors;
  int error = load_vectors(call, call.args[1], call.args[2], &vectors);
  uint64_t wish = 0;
  for (const GuestIovec& v : vectors) {
    wish += v.size;
    if (is_beyond_addresses(call, v.base, v.size) && error == 0) error = EFAULT;
  }
  if ((error != 0 || wish == 0) && !is_open_for(*file, direction)) return Reply::error(EBADF);
  if (error != 0) return Reply::error(error);
  const bool is_socket = file->kind() == OpenFile::Kind::kSocket;
  if (is_socket && wish == 0) return Reply::result(0);  // no empty message
  if (offset < 0)
    if (const auto reply = transfer_special(kernel, call, direction, file, vectors)) return *reply;
  const bool outside = file->changes_by_itself();
  uint64_t before = kernel.thread(call.core).retry_done;
  int64_t done = 0;
  for (const GuestIovec& v : vectors) {
    const uint64_t skipped = std::min(before, v.size);
    before -= skipped;
    if (v.size == skipped) continue;
    const int64_t moved = transfer(kernel, call, direction, v.base + skipped, v.size - skipped,
                                   offset < 0 ? -1 : offset + done);
    if (moved < 0) {
      if (done != 0) break;
      return finish(kernel, call, direction, moved, wish, outside);
    }
    done += moved;
    if (static_cast<uint64_t>(moved) < v.size - skipped) break;
  }
  return finish(kernel, call, direction, done, wish, outside);
}

Reply transfer_one(Kernel& kernel, Call& call, Direction direction) {
  const FileRef file = call.process->files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!can_move(*file, direction)) return Reply::error(EINVAL);
  if (const int error = check_buffer(call, call.args[1], call.args[2]))
    return Reply::error(is_open_for(*file, direction) ? error : EBADF);
  const uint64_t size = std::min(call.args[2], kMostBytesOfCall);
  const GuestIovec all{call.args[1], size};
  if (file->kind() == OpenFile::Kind::kSocket && direction == Direction::kRead && size == 0)
    return Reply::result(0);  // without a look at what has arrived
  if (const auto reply = transfer_special(kernel, call, direction, file, {&all, 1})) return *reply;
  const uint64_t before = kernel.thread(call.core).retry_done;
  const bool outside = file->changes_by_itself();
  return finish(kernel, call, direction,
                transfer(kernel, call, direction, call.args[1] + before, size - before), size,
                outside);
}

Reply positioned(Kernel& kernel, Call& call, Direction direction) {
  const auto offset = static_cast<int64_t>(call.args[3]);
  if (offset < 0) return Reply::error(EINVAL);
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (const int error = check_buffer(call, call.args[1], call.args[2])) {
    // What else is wrong comes first: no position (ESPIPE), not open for it.
    const int64_t moved = transfer(kernel, call, direction, 0, 0, offset);
    return Reply::result(moved < 0 ? moved : -error);
  }
  return Reply::result(transfer(kernel, call, direction, call.args[1], call.args[2], offset));
}

// preadv2 and pwritev2; offset -1 is the file's position. Hints (RWF_HIPRI, RWF_NOWAIT) and durability
// are not ours to give.
Reply positioned_vectors(Kernel& kernel, Call& call, Direction direction, bool has_flags) {
  const auto offset = static_cast<int64_t>(call.args[3]);
  if (offset < (has_flags ? -1 : 0)) return Reply::error(EINVAL);
  if (has_flags && call.args[5] != 0) return Reply::error(EOPNOTSUPP);
  return transfer_vectors(kernel, call, direction, offset);
}

void set_nonblocking(OpenFile& file, bool on) {
  file.is_nonblocking = on;
  // What parks never blocks; the standard streams belong to others, too.
  if (!file.is_owned() || file.parks()) return;
  const int flags = ::fcntl(file.host_fd(), F_GETFL);
  if (flags >= 0) ::fcntl(file.host_fd(), F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

int64_t or_errno(int64_t result) { return result < 0 ? -errno : result; }

}  // namespace

int load_vectors(const Call& call, uint64_t address, uint64_t count,
                 std::vector<GuestIovec>* vectors) {
  if (count > kMostVectors) return EINVAL;
  vectors->resize(count);
  if (call.word_bytes == 4) {
    std::vector<NarrowIovec> narrow(count);
    if (!call.memory.read(address, {reinterpret_cast<uint8_t*>(narrow.data()),
                                    narrow.size() * sizeof(NarrowIovec)}))
      return EFAULT;
    std::transform(narrow.begin(), narrow.end(), vectors->begin(),
                   [](const NarrowIovec& v) { return GuestIovec{v.base, v.size}; });
  } else if (!call.memory.read(address, {reinterpret_cast<uint8_t*>(vectors->data()),
                                  vectors->size() * sizeof(GuestIovec)}))
    return EFAULT;
  uint64_t total = 0;
  for (GuestIovec& v : *vectors) {
    if (v.size > (call.word_bytes == 4 ? INT32_MAX : INT64_MAX)) return EINVAL;
    v.size = std::min(v.size, kMostBytesOfCall - total);
    total += v.size;
  }
  return 0;
}

Reply sys_read(Kernel& kernel, Call& call) { return transfer_one(kernel, call, Direction::kRead); }
Reply sys_write(Kernel& kernel, Call& call) {
  return transfer_one(kernel, call, Direction::kWrite);
}
Reply sys_readv(Kernel& kernel, Call& call) {
  return transfer_vectors(kernel, call, Direction::kRead);
}
Reply sys_writev(Kernel& kernel, Call& call) {
  return transfer_vectors(kernel, call, Direction::kWrite);
}
Reply sys_pread64(Kernel& kernel, Call& call) { return positioned(kernel, call, Direction::kRead); }
Reply sys_pwrite64(Kernel& kernel, Call& call) {
  return positioned(kernel, call, Direction::kWrite);
}

Reply sys_preadv(Kernel& kernel, Call& call) {
  return positioned_vectors(kernel, call, Direction::kRead, /*has_flags=*/false);
}
Reply sys_pwritev(Kernel& kernel, Call& call) {
  return positioned_vectors(kernel, call, Direction::kWrite, /*has_flags=*/false);
}
Reply sys_preadv2(Kernel& kernel, Call& call) {
  return positioned_vectors(kernel, call, Direction::kRead, /*has_flags=*/true);
}
Reply sys_pwritev2(Kernel& kernel, Call& call) {
  return positioned_vectors(kernel, call, Direction::kWrite, /*has_flags=*/true);
}

Reply sys_close(Kernel&, Call& call) {
  return call.process->files.close(call.int_arg(0)) ? Reply::result(0) : Reply::error(EBADF);
}

// CLOSE_RANGE_UNSHARE is EINVAL: descriptors belong to the whole process here.
Reply sys_close_range(Kernel&, Call& call) {
  constexpr uint32_t kCloseOnExec = 4;
  const auto first = static_cast<uint32_t>(call.args[0]);
  const auto last = static_cast<uint32_t>(call.args[1]);
  const auto flags = static_cast<uint32_t>(call.args[2]);
  if (first > last || (flags & ~kCloseOnExec)) return Reply::error(EINVAL);
  FileTable& files = call.process->files;
  const uint64_t end = std::min<uint64_t>(uint64_t{last} + 1, files.all().size());
  for (uint64_t number = first; number < end; ++number) {
    const auto fd = static_cast<int64_t>(number);
    if (!files.find(fd)) continue;
    if (flags & kCloseOnExec)
      files.set_closes_on_exec(fd, true);
    else
      files.close(fd);
  }
  return Reply::result(0);
}

Reply sys_lseek(Kernel& kernel, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  kernel.output().flush();
  return Reply::result(or_errno(::lseek(file->host_fd(), static_cast<off_t>(call.args[1]),
                                        static_cast<int>(call.int_arg(2)))));
}

Reply sys_ftruncate(Kernel& kernel, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!allows_length(*call.process, static_cast<int64_t>(call.args[1])))
    return Reply::result(file_too_large(kernel, call.core));
  return Reply::result(or_errno(::ftruncate(file->host_fd(), static_cast<off_t>(call.args[1]))));
}

Reply sys_dup(Kernel&, Call& call) {
  FileRef file = call.process->files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  const int fd = call.process->files.add(std::move(file));
  return fd < 0 ? Reply::error(EMFILE) : Reply::result(fd);
}

Reply sys_dup3(Kernel&, Call& call) {
  constexpr uint64_t kCloseOnExec = 02000000;
  const auto flags = static_cast<uint32_t>(call.args[2]);
  if ((flags & ~kCloseOnExec) || call.int_arg(0) == call.int_arg(1)) return Reply::error(EINVAL);
  FileRef file = call.process->files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!call.process->files.set(call.int_arg(1), std::move(file))) return Reply::error(EBADF);
  call.process->files.set_closes_on_exec(call.int_arg(1), (flags & kCloseOnExec) != 0);
  return Reply::result(call.int_arg(1));
}

Reply sys_fcntl(Kernel& kernel, Call& call) {
  FileTable& files = call.process->files;
  FileRef file = files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (const std::optional<Reply> reply = lock_command(kernel, call, *file)) return *reply;
  switch (call.int_arg(1)) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: {
      const int64_t from = call.int_arg(2);
      if (from < 0 || from >= files.limit()) return Reply::error(EINVAL);
      const int fd = files.add(std::move(file), static_cast<int>(from));
      if (fd < 0) return Reply::error(EMFILE);
      files.set_closes_on_exec(fd, call.int_arg(1) == F_DUPFD_CLOEXEC);
      return Reply::result(fd);
    }
    case F_GETFD:
      return Reply::result(files.closes_on_exec(call.int_arg(0)) ? FD_CLOEXEC : 0);
    case F_SETFD:
      files.set_closes_on_exec(call.int_arg(0), (call.args[2] & FD_CLOEXEC) != 0);
      return Reply::result(0);
    case F_GETFL: {
      int flags = ::fcntl(file->host_fd(), F_GETFL);
      if (flags < 0) return Reply::error(errno);
      if (file->parks()) flags &= ~O_NONBLOCK;
      if (file->is_nonblocking) flags |= O_NONBLOCK;
      return Reply::result(static_cast<int64_t>(guest_open_flags(kernel.abi(), flags)));
    }
    case F_SETFL: {
      const int flags = host_open_flags(kernel.abi(), call.args[2]);
      set_nonblocking(*file, (flags & O_NONBLOCK) != 0);
      if (const int now = ::fcntl(file->host_fd(), F_GETFL);
          file->is_owned() && !file->parks() && now >= 0)
        ::fcntl(file->host_fd(), F_SETFL, (now & ~O_APPEND) | (flags & O_APPEND));
      return Reply::result(0);
    }
    case F_SETPIPE_SZ: {
      constexpr uint64_t kMostPipe = uint64_t{1} << 20;  // of processes without privileges
      if (call.args[2] > kMostPipe) return Reply::error(EPERM);
      return Reply::result(
          or_errno(::fcntl(file->host_fd(), F_SETPIPE_SZ, static_cast<int>(call.args[2]))));
    }
    case F_GETPIPE_SZ:
    case F_GET_SEALS:
      return Reply::result(or_errno(::fcntl(file->host_fd(), static_cast<int>(call.int_arg(1)))));
    case F_ADD_SEALS:
      return Reply::result(or_errno(
          ::fcntl(file->host_fd(), F_ADD_SEALS, static_cast<int>(call.int_arg(2)))));
    default:
      return Reply::error(EINVAL);
  }
}

Reply sys_pipe2(Kernel& kernel, Call& call) {
  const int flags = host_open_flags(kernel.abi(), call.args[1]);
  if (flags & ~(O_CLOEXEC | O_NONBLOCK)) return Reply::error(EINVAL);
  int ends[2];
  // A full or empty pipe must not stop the host: see finish.
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return Reply::error(errno);
  int32_t fds[2];
  for (int i = 0; i < 2; ++i) {
    const auto file = std::make_shared<OpenFile>(ends[i], /*owned=*/true, OpenFile::Kind::kPipe);
    file->is_nonblocking = (flags & O_NONBLOCK) != 0;
    fds[i] = call.process->files.add(file);
    call.process->files.set_closes_on_exec(fds[i], (flags & O_CLOEXEC) != 0);
  }
  if (fds[0] >= 0 && fds[1] >= 0 && call.memory.store(call.args[0], fds)) return Reply::result(0);
  const bool full = fds[0] < 0 || fds[1] < 0;
  for (const int32_t fd : fds) call.process->files.close(fd);
  return Reply::error(full ? EMFILE : EFAULT);
}

Reply sys_fsync(Kernel& kernel, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  kernel.output().flush();
  return Reply::result(or_errno(::fsync(file->host_fd())));
}

Reply sys_fallocate(Kernel& kernel, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (!allows_length(*call.process, static_cast<int64_t>(call.args[2] + call.args[3])))
    return Reply::result(file_too_large(kernel, call.core));
  return Reply::result(or_errno(::fallocate(file->host_fd(), static_cast<int>(call.int_arg(1)),
                                            static_cast<off_t>(call.args[2]),
                                            static_cast<off_t>(call.args[3]))));
}

Reply sys_ioctl(Kernel&, Call& call) {
  const OpenFile* found = call.process->files.find(call.int_arg(0));
  if (!found) return Reply::error(EBADF);
  const FileRef file = call.process->files.share(call.int_arg(0));
  // The same numbers for generic ISAs and x86.
  constexpr uint64_t kTcgets = 0x5401, kTiocgwinsz = 0x5413, kFionread = 0x541b, kFionbio = 0x5421,
                     kFionclex = 0x5450, kFioclex = 0x5451;
  std::array<uint8_t, 64> bytes{};  // as the kernel fills them
  size_t size;
  switch (call.args[1] & 0xffffffff) {
    case kTcgets:
      size = 36;
      break;
    case kTiocgwinsz:
      size = 8;
      break;
    case kFionread:
      size = 4;
      break;
    case kFionbio: {
      int32_t on;
      if (!call.memory.load(call.args[2], &on)) return Reply::error(EFAULT);
      set_nonblocking(*file, on != 0);
      return Reply::result(0);
    }
    case kFioclex:
    case kFionclex:
      call.process->files.set_closes_on_exec(call.int_arg(0), (call.args[1] & 1) != 0);
      return Reply::result(0);
    default:
      return Reply::error(ENOTTY);
  }
  if (::ioctl(file->host_fd(), call.args[1] & 0xffffffff, bytes.data()) < 0)
    return Reply::error(errno);
  return call.memory.write(call.args[2], {bytes.data(), size}) ? Reply::result(0)
                                                               : Reply::error(EFAULT);
}

}  // namespace gpusim::host
