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

namespace gpusim::host {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;  // copied through the host at a time
constexpr uint64_t kMostBytes = 0x7ffff000;     // of one call, as on Linux
constexpr uint64_t kMostVectors = 1024;

enum class Direction { kRead, kWrite };

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
  size = std::min(size, kMostBytes);
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
// Standard output may be a pipe, too.
Reply finish(Kernel& kernel, Call& call, int64_t result) {
  if (result == -EPIPE) kernel.post(call.core, {.number = SIGPIPE, .code = kSiUser});
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (file && file->is_pipe() && result == -EAGAIN && !file->is_nonblocking)
    return kernel.park_for_retry(call, {.from_outside = false, .restartable = true});
  return Reply::result(result);
}

Reply transfer_vectors(Kernel& kernel, Call& call, Direction direction) {
  const uint64_t count = call.args[2];
  if (!call.process->files.find(call.int_arg(0))) return Reply::error(EBADF);
  if (count > kMostVectors) return Reply::error(EINVAL);
  std::vector<GuestIovec> vectors(count);
  if (!call.memory.read(call.args[1], {reinterpret_cast<uint8_t*>(vectors.data()),
                                       vectors.size() * sizeof(GuestIovec)}))
    return Reply::error(EFAULT);
  uint64_t total = 0;
  for (const GuestIovec& v : vectors) {
    if (v.size > kMostBytes || (total += v.size) > kMostBytes) return Reply::error(EINVAL);
  }
  int64_t done = 0;
  for (const GuestIovec& v : vectors) {
    if (v.size == 0) continue;
    const int64_t moved = transfer(kernel, call, direction, v.base, v.size);
    if (moved < 0) return done != 0 ? Reply::result(done) : finish(kernel, call, moved);
    done += moved;
    if (static_cast<uint64_t>(moved) < v.size) break;
  }
  return Reply::result(done);
}

Reply positioned(Kernel& kernel, Call& call, Direction direction) {
  const auto offset = static_cast<int64_t>(call.args[3]);
  if (offset < 0) return Reply::error(EINVAL);
  return Reply::result(transfer(kernel, call, direction, call.args[1], call.args[2], offset));
}

int64_t or_errno(int64_t result) { return result < 0 ? -errno : result; }

}  // namespace

Reply sys_read(Kernel& kernel, Call& call) {
  return finish(kernel, call,
                transfer(kernel, call, Direction::kRead, call.args[1], call.args[2]));
}
Reply sys_write(Kernel& kernel, Call& call) {
  return finish(kernel, call,
                transfer(kernel, call, Direction::kWrite, call.args[1], call.args[2]));
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

Reply sys_close(Kernel&, Call& call) {
  return call.process->files.close(call.int_arg(0)) ? Reply::result(0) : Reply::error(EBADF);
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

Reply sys_dup3(Kernel& kernel, Call& call) {
  FileRef file = call.process->files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  if (call.int_arg(0) == call.int_arg(1)) return Reply::error(EINVAL);
  if (!call.process->files.set(call.int_arg(1), std::move(file))) return Reply::error(EBADF);
  const int flags = host_open_flags(kernel.module().isa, call.args[2]);
  call.process->files.set_closes_on_exec(call.int_arg(1), (flags & O_CLOEXEC) != 0);
  return Reply::result(call.int_arg(1));
}

Reply sys_fcntl(Kernel& kernel, Call& call) {
  FileTable& files = call.process->files;
  FileRef file = files.share(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
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
      if (file->is_pipe()) flags &= ~O_NONBLOCK;
      if (file->is_nonblocking) flags |= O_NONBLOCK;
      return Reply::result(static_cast<int64_t>(guest_open_flags(kernel.module().isa, flags)));
    }
    case F_SETFL: {
      const int flags = host_open_flags(kernel.module().isa, call.args[2]);
      file->is_nonblocking = (flags & O_NONBLOCK) != 0;
      // The standard streams belong to others, too.
      if (file->is_owned() && !file->is_pipe() && !file->is_folder())
        ::fcntl(file->host_fd(), F_SETFL, flags & (O_APPEND | O_NONBLOCK));
      return Reply::result(0);
    }
    case F_GETLK: {
      constexpr int16_t kUnlocked = 2;
      return call.memory.store(call.args[2], kUnlocked) ? Reply::result(0) : Reply::error(EFAULT);
    }
    case F_SETLK:
    case F_SETLKW:
      return Reply::result(0);  // no other process has the file
    default:
      return Reply::error(EINVAL);
  }
}

Reply sys_pipe2(Kernel& kernel, Call& call) {
  const int flags = host_open_flags(kernel.module().isa, call.args[1]);
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

// Between files and the like. Programs fall back to read and write where a pipe would block.
Reply sys_sendfile(Kernel& kernel, Call& call) {
  const OpenFile* to = call.process->files.find(call.int_arg(0));
  const OpenFile* from = call.process->files.find(call.int_arg(1));
  if (!to || !from) return Reply::error(EBADF);
  if (to->is_pipe() || from->is_pipe()) return Reply::error(EINVAL);
  kernel.output().flush();
  int64_t offset = 0;
  const bool has_offset = call.args[2] != 0;
  if (has_offset && !call.memory.load(call.args[2], &offset)) return Reply::error(EFAULT);
  const uint64_t wanted = std::min<uint64_t>(call.args[3], kMostBytes);
  const uint64_t most = allowed_size(*call.process, to->host_fd(), -1, wanted);
  if (most < wanted && most == 0) return Reply::result(file_too_large(kernel, call.core));
  std::vector<uint8_t> bytes(std::min(most, kPiece));
  uint64_t done = 0;
  while (done < most) {
    const size_t wish = std::min<uint64_t>(bytes.size(), most - done);
    const ssize_t n = has_offset ? ::pread(from->host_fd(), bytes.data(), wish, offset)
                                 : ::read(from->host_fd(), bytes.data(), wish);
    if (n < 0 && done == 0) return Reply::error(errno);
    if (n <= 0) break;
    for (ssize_t written = 0; written < n;) {
      const ssize_t w = ::write(to->host_fd(), bytes.data() + written, size_t(n - written));
      if (w < 0 && errno == EINTR) continue;
      if (w < 0) return Reply::error(errno);
      written += w;
    }
    offset += n;
    done += static_cast<uint64_t>(n);
  }
  if (has_offset && !call.memory.store(call.args[2], offset)) return Reply::error(EFAULT);
  return Reply::result(static_cast<int64_t>(done));
}

Reply sys_ioctl(Kernel&, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file) return Reply::error(EBADF);
  constexpr uint64_t kTcgets = 0x5401, kTiocgwinsz = 0x5413, kFionread = 0x541b;
  std::array<uint8_t, 64> bytes{};  // as the kernel fills them: the same for generic ISAs and x86
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
    default:
      return Reply::error(ENOTTY);
  }
  if (::ioctl(file->host_fd(), call.args[1], bytes.data()) < 0) return Reply::error(errno);
  return call.memory.write(call.args[2], {bytes.data(), size}) ? Reply::result(0)
                                                               : Reply::error(EFAULT);
}

}  // namespace gpusim::host
