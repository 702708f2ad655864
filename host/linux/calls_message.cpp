// Sending and receiving on sockets, with the files that messages carry.
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "host/linux/calls.h"
#include "host/linux/epoll_file.h"
#include "host/linux/sockets.h"
#include "host/linux/waiting.h"
#include "host/linux/words.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;  // copied through the host at a time
constexpr uint64_t kMostMessages = 1024;        // of one call: UIO_MAXIOV
constexpr size_t kMostControl = 4096;
constexpr size_t kMostFiles = 253;              // of one message: SCM_MAX_FD

// linux/socket.h: struct user_msghdr of 64-bit systems.
struct GuestMessage {
  uint64_t name;
  int32_t name_size, pad1;
  uint64_t vectors, vector_count;
  uint64_t control, control_size;
  uint32_t flags, pad2;
};
static_assert(sizeof(GuestMessage) == 56);
struct NarrowMessage {  // of 32-bit guests
  uint32_t name;
  int32_t name_size;
  uint32_t vectors, vector_count, control, control_size, flags;
};
static_assert(sizeof(NarrowMessage) == 28);

uint64_t message_bytes(const Call& call) {
  return call.word_bytes == 4 ? sizeof(NarrowMessage) : sizeof(GuestMessage);
}
bool load_message(const Call& call, uint64_t address, GuestMessage* message) {
  if (call.word_bytes == 8) return call.memory.load(address, message);
  NarrowMessage m;
  if (!call.memory.load(address, &m)) return false;
  *message = {m.name, m.name_size, 0, m.vectors, m.vector_count, m.control, m.control_size,
              m.flags, 0};
  return true;
}
bool store_message(const Call& call, uint64_t address, const GuestMessage& m) {
  if (call.word_bytes == 8) return call.memory.store(address, m);
  const auto narrow = [](uint64_t word) { return static_cast<uint32_t>(word); };
  return call.memory.store(
      address, NarrowMessage{narrow(m.name), m.name_size, narrow(m.vectors),
                             narrow(m.vector_count), narrow(m.control), narrow(m.control_size),
                             m.flags});
}

struct GuestControl {  // struct cmsghdr: the first is a long
  uint64_t size;
  int32_t level, type;
};
uint64_t control_head_bytes(const Call& call) { return call.word_bytes + 8; }
// Control data is made of longs.
uint64_t align_control(const Call& call, uint64_t size) {
  return (size + call.word_bytes - 1) & ~uint64_t{call.word_bytes - 1};
}

// Flags that the guest's wish may carry to the host.
constexpr int kSendFlags = MSG_OOB | MSG_DONTROUTE | MSG_EOR | MSG_CONFIRM | MSG_MORE;
constexpr int kReceiveFlags = MSG_OOB | MSG_PEEK | MSG_TRUNC;

// What one attempt came to: bytes, or -errno; -EAGAIN may wait.
Reply finish(Kernel& kernel, Call& call, const SocketFile& file, int64_t result, int flags,
             Clock::duration timeout) {
  Thread& thread = kernel.thread(call.core);
  if (result == -EAGAIN && !file.is_nonblocking && !(flags & MSG_DONTWAIT)) {
    if (timeout.count() != 0 && !thread.retry_deadline)
      thread.retry_deadline = Clock::now() + timeout;
    if (!is_over(thread))
      return kernel.park_for_retry(call, {.from_outside = file.changes_by_itself(),
                                          .restartable = !thread.retry_deadline});
  }
  // What went through before counts more than what then went wrong.
  if (const uint64_t before = std::exchange(thread.retry_done, 0); before != 0)
    return Reply::result(static_cast<int64_t>(before) + std::max<int64_t>(result, 0));
  return Reply::result(result);
}

// --- files in messages

bool is_same_open_file(int a, int b) {
  const pid_t self = ::getpid();
  return ::syscall(SYS_kcmp, self, self, KCMP_FILE, a, b) == 0;
}

// The guest's file for a host descriptor that came in a message.
FileRef adopt(Kernel& kernel, const Call& call, int host_fd) {
  for (int fd = 0; fd < FileTable::kMost; ++fd) {
    FileRef known = call.process->files.share(fd);
    if (!known || !is_same_open_file(known->host_fd(), host_fd)) continue;
    ::close(host_fd);
    return known;
  }
  // Nobody here knows it any more, or it comes from another process.
  struct stat host {};
  ::fstat(host_fd, &host);
  const std::string name = link_target(descriptor_path(host_fd));
  using Kind = OpenFile::Kind;
  Kind kind = Kind::kOther;
  if (S_ISDIR(host.st_mode)) kind = Kind::kFolder;
  if (S_ISFIFO(host.st_mode)) kind = Kind::kPipe;
  if (name.ends_with("[eventfd]")) kind = Kind::kEventCounter;
  if (name.ends_with("[timerfd]")) kind = Kind::kTimer;
  FileRef file;
  if (S_ISSOCK(host.st_mode)) {
    int domain = 0, type = 0;
    socklen_t length = sizeof domain;
    ::getsockopt(host_fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
    ::getsockopt(host_fd, SOL_SOCKET, SO_TYPE, &type, &length);
    file = std::make_shared<SocketFile>(host_fd, domain, type);
  } else {
    file = std::make_shared<OpenFile>(host_fd, /*owned=*/true, kind,
                                      kind == Kind::kFolder ? name : std::string());
  }
  file->is_reached_from_outside = true;
  // A folder that no root allows can be listed, but leads to nothing.
  if (kind == Kind::kFolder) file->folder = kernel.paths().find(nullptr, name).self;
  if (file->parks()) ::fcntl(host_fd, F_SETFL, ::fcntl(host_fd, F_GETFL) | O_NONBLOCK);
  return file;
}

// The guest's control data as the host's: files only. 0 or an error number.
int load_control(const Call& call, const GuestMessage& message, bool outside,
                 std::vector<uint8_t>* host, std::vector<FileRef>* files) {
  if (message.control_size == 0) return 0;
  if (message.control_size > kMostControl) return ENOBUFS;
  std::vector<uint8_t> guest(message.control_size);
  if (!call.memory.read(message.control, guest)) return EFAULT;
  const uint64_t head_bytes = control_head_bytes(call);
  for (uint64_t at = 0; at + head_bytes <= guest.size();) {
    GuestControl head{};
    std::memcpy(&head.size, guest.data() + at, call.word_bytes);
    std::memcpy(&head.level, guest.data() + at + call.word_bytes, 8);
    if (head.size < head_bytes || head.size > guest.size() - at) return EINVAL;
    if (head.level != SOL_SOCKET || head.type != SCM_RIGHTS) return EINVAL;
    for (uint64_t f = at + head_bytes; f + 4 <= at + head.size; f += 4) {
      int32_t fd;
      std::memcpy(&fd, guest.data() + f, sizeof fd);
      FileRef file = call.process->files.share(fd);
      if (!file) return EBADF;
      if (files->size() == kMostFiles) return EINVAL;
      files->push_back(std::move(file));
    }
    at += align_control(call, head.size);
  }
  if (files->empty()) return 0;
  const size_t size = files->size() * sizeof(int);
  host->resize(CMSG_SPACE(size));
  cmsghdr head{};
  head.cmsg_len = CMSG_LEN(size);
  head.cmsg_level = SOL_SOCKET;
  head.cmsg_type = SCM_RIGHTS;
  std::memcpy(host->data(), &head, sizeof head);
  for (size_t i = 0; i < files->size(); ++i) {
    const int fd = (*files)[i]->host_fd();
    std::memcpy(host->data() + CMSG_LEN(0) + i * sizeof fd, &fd, sizeof fd);
    (*files)[i]->is_reached_from_outside |= outside;
  }
  return 0;
}

std::vector<int> received_files(msghdr& header) {
  std::vector<int> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      fds.push_back(fd);
    }
  }
  return fds;
}

// Gives the guest the files of a message and says so in its control data; `message` then has the
// size and flags to report. 0 or an error number.
int store_control(Kernel& kernel, const Call& call, const std::vector<int>& fds, bool close_on_exec,
                  GuestMessage& message) {
  const uint64_t room = message.control_size, head_bytes = control_head_bytes(call);
  message.control_size = 0;
  std::vector<int32_t> guest_fds;
  for (const int host_fd : fds) {
    const bool fits = room >= head_bytes + (guest_fds.size() + 1) * sizeof(int32_t);
    const int fd = fits ? call.process->files.add(adopt(kernel, call, host_fd)) : -1;
    if (!fits) ::close(host_fd);
    if (fd < 0) {
      message.flags |= MSG_CTRUNC;
      continue;
    }
    call.process->files.set_closes_on_exec(fd, close_on_exec);
    guest_fds.push_back(fd);
  }
  if (guest_fds.empty()) return 0;
  const uint64_t size = head_bytes + guest_fds.size() * sizeof(int32_t);
  const int32_t kind[] = {SOL_SOCKET, SCM_RIGHTS};
  if (!store_longs<1>(call, message.control, {static_cast<int64_t>(size)}) ||
      !call.memory.store(message.control + call.word_bytes, kind) ||
      !call.memory.write(message.control + head_bytes,
                         {reinterpret_cast<const uint8_t*>(guest_fds.data()),
                          guest_fds.size() * sizeof(int32_t)}))
    return EFAULT;
  message.control_size = std::min(room, align_control(call, size));
  return 0;
}

// --- bytes

uint64_t total(std::span<const GuestIovec> vectors) {
  uint64_t size = 0;
  for (const GuestIovec& v : vectors) size += v.size;
  return size;
}

// Calls f(address, size, place in the whole) for what of the vectors lies in [from, from + size).
template <class F>
bool for_range(std::span<const GuestIovec> vectors, uint64_t from, uint64_t size, F f) {
  uint64_t begin = 0;
  for (const GuestIovec& v : vectors) {
    const uint64_t first = std::max(begin, from), last = std::min(begin + v.size, from + size);
    if (first < last && !f(v.base + (first - begin), last - first, first - from)) return false;
    begin += v.size;
  }
  return true;
}

// How much of [from, from + most) the guest may receive: a message that is taken must reach it.
uint64_t room(const Call& call, std::span<const GuestIovec> vectors, uint64_t from, uint64_t most) {
  uint64_t size = 0;
  for_range(vectors, from, most, [&](uint64_t address, uint64_t part, uint64_t) {
    const uint64_t allowed = call.memory.allowed_prefix(address, part, kWrite);
    size += allowed;
    return allowed == part;
  });
  return size;
}

struct Outgoing {
  std::span<const GuestIovec> vectors;
  std::vector<uint8_t> name, control;
  int flags = 0;
};

// One attempt to send what is left after Thread::retry_done.
int64_t send_message(Kernel& kernel, Call& call, const SocketFile& file, Outgoing& out) {
  uint64_t& done = kernel.thread(call.core).retry_done;
  const uint64_t size = total(out.vectors);
  const bool is_stream = file.type() == SOCK_STREAM;
  if (!is_stream && size > kPiece) return -EMSGSIZE;
  do {
    std::vector<uint8_t> bytes(std::min(size - std::min(done, size), kPiece));
    if (!for_range(out.vectors, done, bytes.size(), [&](uint64_t a, uint64_t n, uint64_t at) {
          return call.memory.read(a, {bytes.data() + at, static_cast<size_t>(n)});
        }))
      return -EFAULT;
    iovec vector{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_name = out.name.empty() ? nullptr : out.name.data();
    header.msg_namelen = static_cast<socklen_t>(out.name.size());
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    if (done == 0 && !out.control.empty()) {
      header.msg_control = out.control.data();
      header.msg_controllen = out.control.size();
    }
    const ssize_t n = ::sendmsg(file.host_fd(), &header,
                                (out.flags & kSendFlags) | MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EPIPE && !(out.flags & MSG_NOSIGNAL))
        kernel.post(call.core, {.number = SIGPIPE, .code = kSiUser});
      return errno == EINTR ? -EAGAIN : -errno;
    }
    done += static_cast<uint64_t>(n);
  } while (is_stream && done < size);
  return 0;  // what is done says how much
}

struct Incoming {
  std::span<const GuestIovec> vectors;
  int flags = 0;
  bool wants_files = false;
  std::vector<uint8_t> name;  // of the sender
  std::vector<int> files;
  int result_flags = 0;
};

int64_t receive_message(Kernel& kernel, Call& call, const SocketFile& file, Incoming& in) {
  uint64_t& done = kernel.thread(call.core).retry_done;
  const uint64_t size = total(in.vectors);
  const bool waits_for_all = (in.flags & MSG_WAITALL) && file.type() == SOCK_STREAM &&
                             !(in.flags & (MSG_PEEK | MSG_DONTWAIT)) && !file.is_nonblocking;
  std::vector<uint8_t> bytes;
  for (;;) {
    const uint64_t wish = std::min(size - std::min(done, size), kPiece);
    bytes.resize(room(call, in.vectors, done, wish));
    if (bytes.empty() && wish != 0) return -EFAULT;
    std::array<uint8_t, sizeof(sockaddr_storage)> name;
    alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(kMostFiles * sizeof(int))> control;
    iovec vector{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_name = name.data();
    header.msg_namelen = name.size();
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = in.wants_files ? control.size() : 0;
    const ssize_t n = ::recvmsg(file.host_fd(), &header,
                                (in.flags & kReceiveFlags) | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EINTR ? -EAGAIN : -errno;
    in.name.assign(name.begin(), name.begin() + std::min<size_t>(header.msg_namelen, name.size()));
    in.result_flags = header.msg_flags & (MSG_OOB | MSG_TRUNC | MSG_CTRUNC | MSG_EOR);
    for (const int fd : received_files(header)) in.files.push_back(fd);
    const uint64_t stored = std::min<uint64_t>(static_cast<uint64_t>(n), bytes.size());
    for_range(in.vectors, done, stored, [&](uint64_t a, uint64_t count, uint64_t at) {
      return call.memory.write(a, {bytes.data() + at, static_cast<size_t>(count)});
    });
    if (!waits_for_all || n == 0) return n;
    done += static_cast<uint64_t>(n);
    if (done >= size || !in.files.empty()) return 0;
  }
}

Reply send_call(Kernel& kernel, Call& call, const SocketFile& file, Outgoing& out) {
  const int64_t result = send_message(kernel, call, file, out);
  return finish(kernel, call, file, result, out.flags, file.send_timeout);
}

// sendmsg, and each message of sendmmsg.
int prepare_message(Kernel& kernel, const Call& call, SocketFile& file, const GuestMessage& message,
                 std::vector<GuestIovec>* vectors, Outgoing* out, HostAddress* address,
                 std::vector<FileRef>* files) {
  if (message.vector_count > kMostMessages) return EMSGSIZE;
  if (const int error = load_vectors(call, message.vectors, message.vector_count, vectors))
    return error;
  out->vectors = *vectors;
  if (message.name != 0 && message.name_size != 0) {
    *address = address_argument(kernel, call, file, message.name, message.name_size,
                                AddressUse::kSend);
    if (address->error != 0) return address->error;
    if (const int error = bind_to_loopback(kernel, file)) return error;
    out->name = address->bytes;
  }
  const bool outside = file.is_reached_from_outside || !out->name.empty();
  return load_control(call, message, outside, &out->control, files);
}

Reply send_guest_message(Kernel& kernel, Call& call, SocketFile& file, const GuestMessage& message,
                         int flags) {
  std::vector<GuestIovec> vectors;
  Outgoing out{.vectors = {}, .name = {}, .control = {}, .flags = flags};
  HostAddress address;
  std::vector<FileRef> files;
  if (const int error =
          prepare_message(kernel, call, file, message, &vectors, &out, &address, &files))
    return Reply::error(error);
  return send_call(kernel, call, file, out);
}

Reply receive_guest_message(Kernel& kernel, Call& call, const SocketFile& file, uint64_t at,
                            int flags) {
  GuestMessage message;
  if (!load_message(call, at, &message)) return Reply::error(EFAULT);
  std::vector<GuestIovec> vectors;
  if (message.vector_count > kMostMessages) return Reply::error(EMSGSIZE);
  if (const int error = load_vectors(call, message.vectors, message.vector_count, &vectors))
    return Reply::error(error);
  Incoming in{.vectors = vectors, .flags = flags, .wants_files = true, .name = {}, .files = {}};
  const int64_t result = receive_message(kernel, call, file, in);
  if (result < 0) return finish(kernel, call, file, result, flags, file.receive_timeout);
  message.flags = static_cast<uint32_t>(in.result_flags | (flags & MSG_CMSG_CLOEXEC));
  int error = store_control(kernel, call, in.files, (flags & MSG_CMSG_CLOEXEC) != 0, message);
  if (message.name != 0) {
    const std::vector<uint8_t> name = guest_address(in.name);
    const auto space = static_cast<size_t>(std::max(message.name_size, 0));
    if (!call.memory.write(message.name, {name.data(), std::min(name.size(), space)}))
      error = EFAULT;
    message.name_size = static_cast<int32_t>(name.size());
  }
  if (error == 0 && !store_message(call, at, message)) error = EFAULT;
  if (error != 0) return Reply::error(error);
  return finish(kernel, call, file, result, flags, file.receive_timeout);
}

// sendmmsg and recvmmsg: the first message may wait, the others only if they can go at once.
template <class One>
Reply many(Call& call, int flags, One one) {
  // struct mmsghdr: a message and an int, in whole longs.
  const uint64_t length_at = message_bytes(call);
  const uint64_t step = (length_at + 4 + call.word_bytes - 1) & ~uint64_t{call.word_bytes - 1};
  const uint64_t count = std::min<uint64_t>(static_cast<uint32_t>(call.args[2]), kMostMessages);
  int64_t done = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = call.args[1] + i * step;
    const Reply reply = one(at, i == 0 ? flags : flags | MSG_DONTWAIT);
    if (reply.kind != Reply::Kind::kResult) return reply;
    if (reply.value < 0) return i == 0 ? reply : Reply::result(done);
    if (!call.memory.store(at + length_at, static_cast<uint32_t>(reply.value)))
      return i == 0 ? Reply::error(EFAULT) : Reply::result(done);
    ++done;
  }
  return Reply::result(done);
}

}  // namespace

Reply read_socket(Kernel& kernel, Call& call, const FileRef& file,
                  std::span<const GuestIovec> vectors) {
  const auto& socket = static_cast<const SocketFile&>(*file);
  Incoming in{.vectors = vectors, .flags = 0, .wants_files = false, .name = {}, .files = {}};
  return finish(kernel, call, socket, receive_message(kernel, call, socket, in), 0,
                socket.receive_timeout);
}

Reply write_socket(Kernel& kernel, Call& call, const FileRef& file,
                   std::span<const GuestIovec> vectors) {
  Outgoing out{.vectors = vectors, .name = {}, .control = {}, .flags = 0};
  return send_call(kernel, call, static_cast<const SocketFile&>(*file), out);
}

Reply sys_sendto(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  const GuestIovec vector{call.args[1], std::min<uint64_t>(call.args[2], INT32_MAX)};
  Outgoing out{.vectors = {&vector, 1}, .name = {}, .control = {},
               .flags = static_cast<int>(call.int_arg(3))};
  HostAddress address;
  if (call.args[4] != 0) {
    address = address_argument(kernel, call, *file, call.args[4], call.int_arg(5),
                               AddressUse::kSend);
    if (address.error != 0) return Reply::error(address.error);
    if (const int bad = bind_to_loopback(kernel, *file)) return Reply::error(bad);
    out.name = address.bytes;
  }
  return send_call(kernel, call, *file, out);
}

Reply sys_recvfrom(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  const GuestIovec vector{call.args[1], std::min<uint64_t>(call.args[2], INT32_MAX)};
  const auto flags = static_cast<int>(call.int_arg(3));
  Incoming in{.vectors = {&vector, 1}, .flags = flags, .wants_files = false, .name = {},
              .files = {}};
  const int64_t result = receive_message(kernel, call, *file, in);
  if (result >= 0 && call.args[4] != 0)
    if (const int bad = store_address(call, guest_address(in.name), call.args[4], call.args[5]))
      return Reply::error(bad);
  return finish(kernel, call, *file, result, flags, file->receive_timeout);
}

Reply sys_sendmsg(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  GuestMessage message;
  if (!load_message(call, call.args[1], &message)) return Reply::error(EFAULT);
  return send_guest_message(kernel, call, *file, message, static_cast<int>(call.int_arg(2)));
}

Reply sys_recvmsg(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  return receive_guest_message(kernel, call, *file, call.args[1],
                               static_cast<int>(call.int_arg(2)));
}

Reply sys_sendmmsg(Kernel& kernel, Call& call) {
  const auto found = socket_argument(call);
  if (found.error != 0) return Reply::error(found.error);
  return many(call, static_cast<int>(call.int_arg(3)), [&](uint64_t at, int flags) {
    GuestMessage message;
    if (!load_message(call, at, &message)) return Reply::error(EFAULT);
    return send_guest_message(kernel, call, *found.file, message, flags);
  });
}

Reply sys_recvmmsg(Kernel& kernel, Call& call) {
  const auto found = socket_argument(call);
  if (found.error != 0) return Reply::error(found.error);
  if (const int error = take_timeout(kernel.thread(call.core), call, call.args[4]))
    return Reply::error(error);
  return many(call, static_cast<int>(call.int_arg(3)), [&](uint64_t at, int flags) {
    return receive_guest_message(kernel, call, *found.file, at, flags);
  });
}

}  // namespace gpusim::host
