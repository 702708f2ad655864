// Moving bytes between open files without guest memory.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/linux/calls.h"
#include "host/linux/file_size_limit.h"
#include "host/linux/guest_abi.h"

namespace gpusim::host {
namespace {

// An offset that the guest passes by reference; none: the file's own position.
class Offset {
 public:
  Offset(const Call& call, int argument) : call_(call), address_(call.args[argument]) {
    is_good_ = address_ == 0 || call.memory.load(address_, &value_);
  }
  bool is_good() const { return is_good_; }
  off_t* pointer() { return address_ != 0 ? &value_ : nullptr; }
  bool store() const { return address_ == 0 || call_.memory.store(address_, value_); }

 private:
  const Call& call_;
  uint64_t address_;
  bool is_good_;
  off_t value_ = 0;
  static_assert(sizeof(off_t) == 8);
};

struct Ends {
  FileRef from, to;
};

Reply finish(Kernel& kernel, const Call& call, const Ends& ends, ssize_t moved, bool may_wait) {
  if (moved >= 0) return Reply::result(moved);
  const int error = errno;
  if (error == EPIPE) kernel.post(call.core, {.number = SIGPIPE, .code = kSiUser});
  const auto waits = [](const OpenFile& f) { return f.parks() && !f.is_nonblocking; };
  if (error == EAGAIN && may_wait && (waits(*ends.from) || waits(*ends.to)))
    return kernel.park_for_retry(
        call, {.from_outside = ends.from->changes_by_itself() || ends.to->changes_by_itself(),
               .restartable = true});
  return Reply::error(error);
}

// How much the guest's limit on files lets through; nothing: the call has failed.
std::optional<uint64_t> size_to_move(const Call& call, const OpenFile& to, off_t* offset,
                                     uint64_t wish) {
  wish = std::min(wish, kMostBytesOfCall);
  const uint64_t size = allowed_size(*call.process, to.host_fd(), offset ? *offset : -1, wish);
  if (size == 0 && wish != 0) return std::nullopt;
  return size;
}

// splice, tee and copy_file_range.
constexpr uint64_t kMove = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;

}  // namespace

Reply sys_sendfile(Kernel& kernel, Call& call) {
  FileTable& files = call.process->files;
  const Ends ends{files.share(call.int_arg(1)), files.share(call.int_arg(0))};
  if (!ends.from || !ends.to) return Reply::error(EBADF);
  Offset offset(call, 2);
  if (!offset.is_good()) return Reply::error(EFAULT);
  kernel.output().flush();
  const auto size = size_to_move(call, *ends.to, nullptr, call.args[3]);
  if (!size) return Reply::result(file_too_large(kernel, call.core));
  const ssize_t n =
      ::sendfile(ends.to->host_fd(), ends.from->host_fd(), offset.pointer(), *size);
  const Reply reply = finish(kernel, call, ends, n, /*may_wait=*/true);
  return n >= 0 && !offset.store() ? Reply::error(EFAULT) : reply;
}

Reply sys_splice(Kernel& kernel, Call& call) {
  FileTable& files = call.process->files;
  const Ends ends{files.share(call.int_arg(0)), files.share(call.int_arg(2))};
  if (!ends.from || !ends.to) return Reply::error(EBADF);
  if (call.args[5] & ~kMove) return Reply::error(EINVAL);
  Offset from(call, 1), to(call, 3);
  if (!from.is_good() || !to.is_good()) return Reply::error(EFAULT);
  kernel.output().flush();
  const auto size = size_to_move(call, *ends.to, to.pointer(), call.args[4]);
  if (!size) return Reply::result(file_too_large(kernel, call.core));
  const ssize_t n = ::splice(ends.from->host_fd(), from.pointer(), ends.to->host_fd(), to.pointer(),
                             *size,
                             static_cast<unsigned>(call.args[5]) | SPLICE_F_NONBLOCK);
  const Reply reply = finish(kernel, call, ends, n, !(call.args[5] & SPLICE_F_NONBLOCK));
  return n >= 0 && !(from.store() && to.store()) ? Reply::error(EFAULT) : reply;
}

Reply sys_tee(Kernel& kernel, Call& call) {
  FileTable& files = call.process->files;
  const Ends ends{files.share(call.int_arg(0)), files.share(call.int_arg(1))};
  if (!ends.from || !ends.to) return Reply::error(EBADF);
  if (call.args[3] & ~kMove) return Reply::error(EINVAL);
  kernel.output().flush();
  const ssize_t n =
      ::tee(ends.from->host_fd(), ends.to->host_fd(), std::min(call.args[2], kMostBytesOfCall),
            static_cast<unsigned>(call.args[3]) | SPLICE_F_NONBLOCK);
  return finish(kernel, call, ends, n, !(call.args[3] & SPLICE_F_NONBLOCK));
}

// Guest pages cannot be given to a pipe: their bytes are copied, which the call allows.
Reply sys_vmsplice(Kernel& kernel, Call& call) {
  const OpenFile* file = call.process->files.find(call.int_arg(0));
  if (!file || file->kind() != OpenFile::Kind::kPipe) return Reply::error(EBADF);
  if (call.args[3] & ~kMove) return Reply::error(EINVAL);
  const int flags = ::fcntl(file->host_fd(), F_GETFL);
  return (flags & O_ACCMODE) == O_RDONLY ? sys_readv(kernel, call) : sys_writev(kernel, call);
}

Reply sys_copy_file_range(Kernel& kernel, Call& call) {
  FileTable& files = call.process->files;
  const Ends ends{files.share(call.int_arg(0)), files.share(call.int_arg(2))};
  if (!ends.from || !ends.to) return Reply::error(EBADF);
  if (call.args[5] != 0) return Reply::error(EINVAL);
  Offset from(call, 1), to(call, 3);
  if (!from.is_good() || !to.is_good()) return Reply::error(EFAULT);
  kernel.output().flush();
  const auto size = size_to_move(call, *ends.to, to.pointer(), call.args[4]);
  if (!size) return Reply::result(file_too_large(kernel, call.core));
  const ssize_t n = ::copy_file_range(ends.from->host_fd(), from.pointer(), ends.to->host_fd(),
                                      to.pointer(), *size, 0);
  const Reply reply = finish(kernel, call, ends, n, /*may_wait=*/false);
  return n >= 0 && !(from.store() && to.store()) ? Reply::error(EFAULT) : reply;
}

}  // namespace gpusim::host
