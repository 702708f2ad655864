// Making, naming and connecting sockets, and their options. Families, types, levels and options have
// the numbers of asm-generic/socket.h and asm-generic/fcntl.h, which x86-64 and arm64 share.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/linux/calls.h"
#include "host/linux/sockets.h"

namespace gpusim::host {
namespace {

constexpr int kNonblock = 04000, kCloseOnExec = 02000000;
constexpr int kTypeFlags = kNonblock | kCloseOnExec;
constexpr int64_t kTypeMask = 0xf, kTypeEnd = 11;  // linux/net.h: SOCK_TYPE_MASK, SOCK_MAX
static_assert(SOCK_NONBLOCK == kNonblock && SOCK_CLOEXEC == kCloseOnExec && SOL_SOCKET == 1 &&
              SO_REUSEPORT == 15 && AF_INET6 == 10);
// The forms with 64-bit time, which 64-bit systems always use.
constexpr int kReceiveTimeout = 20, kSendTimeout = 21;

int open_socket(Call& call, const SocketRef& file, int flags) {
  file->is_nonblocking = (flags & kNonblock) != 0;
  const int fd = call.process->files.add(file);
  if (fd >= 0) call.process->files.set_closes_on_exec(fd, (flags & kCloseOnExec) != 0);
  return fd;
}

// Whether the guest may have a socket of this kind; 0 or an error number. `type` with its flags.
int judge_kind(Kernel& kernel, int64_t domain, int64_t type, int64_t protocol) {
  if (type & ~kTypeMask & ~int64_t{kTypeFlags}) return EINVAL;
  type &= kTypeMask;
  if (type >= kTypeEnd) return EINVAL;
  if (kernel.is_isolated()) return EPERM;
  if (domain == AF_UNIX) {
    if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_SEQPACKET) return ESOCKTNOSUPPORT;
    return protocol == 0 || protocol == AF_UNIX ? 0 : EPROTONOSUPPORT;
  }
  if (domain != AF_INET && domain != AF_INET6) return EAFNOSUPPORT;
  if (kernel.network() == Network::kNone) {
    kernel.note_once("network",
                     "the guest has no network; --network loopback or --network host gives it one "
                     "(EACCES; said once)");
    return EACCES;
  }
  if (type == SOCK_STREAM) return protocol == 0 || protocol == IPPROTO_TCP ? 0 : EPROTONOSUPPORT;
  if (type == SOCK_DGRAM) return protocol == 0 || protocol == IPPROTO_UDP ? 0 : EPROTONOSUPPORT;
  return type == SOCK_RAW ? EPERM : ESOCKTNOSUPPORT;
}

std::vector<uint8_t> name_bytes(const std::string& path) {
  std::vector<uint8_t> bytes(sizeof(sa_family_t) + path.size() + 1);
  const sa_family_t family = AF_UNIX;
  std::memcpy(bytes.data(), &family, sizeof family);
  std::memcpy(bytes.data() + sizeof family, path.data(), path.size());
  return bytes;
}

Reply name_call(const Call& call, const SocketFile& file, const std::string& known,
                decltype(&::getsockname) get) {
  std::vector<uint8_t> address(sizeof(sockaddr_storage));
  auto size = static_cast<socklen_t>(address.size());
  if (get(file.host_fd(), reinterpret_cast<sockaddr*>(address.data()), &size) < 0)
    return Reply::error(errno);
  address.resize(std::min<size_t>(size, address.size()));
  const std::vector<uint8_t> name = known.empty() ? guest_address(address) : name_bytes(known);
  const int error = store_address(call, name, call.args[1], call.args[2]);
  return error != 0 ? Reply::error(error) : Reply::result(0);
}

// A connection may take long, or find no room yet.
Reply wait_for_connection(Kernel& kernel, const Call& call, const SocketFile& file, int error,
                          Clock::duration timeout) {
  Thread& thread = kernel.thread(call.core);
  if (file.is_nonblocking) return Reply::error(error);
  if (timeout.count() != 0 && !thread.retry_deadline) thread.retry_deadline = Clock::now() + timeout;
  if (thread.retry_deadline && *thread.retry_deadline <= Clock::now()) return Reply::error(error);
  return kernel.park_for_retry(call, {.from_outside = file.changes_by_itself(),
                                      .restartable = !thread.retry_deadline});
}

Reply accept_call(Kernel& kernel, Call& call, int64_t flags) {
  const auto [error, listener] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  if (flags & ~int64_t{kTypeFlags}) return Reply::error(EINVAL);
  std::vector<uint8_t> address(sizeof(sockaddr_storage));
  auto size = static_cast<socklen_t>(address.size());
  const int host = ::accept4(listener->host_fd(), reinterpret_cast<sockaddr*>(address.data()), &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (host < 0 && (errno == EAGAIN || errno == EINTR))
    return wait_for_connection(kernel, call, *listener, EAGAIN, listener->receive_timeout);
  if (host < 0) return Reply::error(errno);
  address.resize(std::min<size_t>(size, address.size()));
  const auto file = std::make_shared<SocketFile>(host, listener->domain(), listener->type());
  file->is_bound = true;
  file->is_reached_from_outside = listener->is_reached_from_outside;
  file->own_name = listener->own_name;
  if (call.args[1] != 0)
    if (const int bad = store_address(call, guest_address(address), call.args[1], call.args[2]))
      return Reply::error(bad);
  const int fd = open_socket(call, file, static_cast<int>(flags));
  return fd < 0 ? Reply::error(EMFILE) : Reply::result(fd);
}

// --- options

enum class Form : uint8_t { kInt, kReadOnlyInt, kLinger, kTimeout, kCredentials };
struct Option {
  int level, name;
  Form form;
};
// What changes a socket and nothing else: no addresses, devices, packets' headers or filters.
constexpr Option kOptions[] = {
    {SOL_SOCKET, SO_REUSEADDR, Form::kInt},
    {SOL_SOCKET, SO_TYPE, Form::kReadOnlyInt},
    {SOL_SOCKET, SO_ERROR, Form::kReadOnlyInt},
    {SOL_SOCKET, SO_BROADCAST, Form::kInt},
    {SOL_SOCKET, SO_SNDBUF, Form::kInt},
    {SOL_SOCKET, SO_RCVBUF, Form::kInt},
    {SOL_SOCKET, SO_KEEPALIVE, Form::kInt},
    {SOL_SOCKET, SO_OOBINLINE, Form::kInt},
    {SOL_SOCKET, SO_LINGER, Form::kLinger},
    {SOL_SOCKET, SO_REUSEPORT, Form::kInt},
    {SOL_SOCKET, SO_PEERCRED, Form::kCredentials},
    {SOL_SOCKET, SO_RCVLOWAT, Form::kInt},
    {SOL_SOCKET, kReceiveTimeout, Form::kTimeout},
    {SOL_SOCKET, kSendTimeout, Form::kTimeout},
    {SOL_SOCKET, SO_ACCEPTCONN, Form::kReadOnlyInt},
    {SOL_SOCKET, SO_PROTOCOL, Form::kReadOnlyInt},
    {SOL_SOCKET, SO_DOMAIN, Form::kReadOnlyInt},
    {IPPROTO_TCP, TCP_NODELAY, Form::kInt},
    {IPPROTO_TCP, TCP_MAXSEG, Form::kReadOnlyInt},
    {IPPROTO_TCP, TCP_CORK, Form::kInt},
    {IPPROTO_TCP, TCP_KEEPIDLE, Form::kInt},
    {IPPROTO_TCP, TCP_KEEPINTVL, Form::kInt},
    {IPPROTO_TCP, TCP_KEEPCNT, Form::kInt},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, Form::kInt},
    {IPPROTO_TCP, TCP_QUICKACK, Form::kInt},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, Form::kInt},
    {IPPROTO_IP, IP_TOS, Form::kInt},
    {IPPROTO_IP, IP_TTL, Form::kInt},
    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, Form::kInt},
    {IPPROTO_IPV6, IPV6_V6ONLY, Form::kInt},
};

const Option* find_option(Kernel& kernel, const Call& call) {
  const int64_t level = call.int_arg(1), name = call.int_arg(2);
  const auto* const option = std::find_if(std::begin(kOptions), std::end(kOptions), [&](auto& o) {
    return o.level == level && o.name == name;
  });
  if (option != std::end(kOptions)) return option;
  kernel.note_once(fmt::format("socket option {} {}", level, name),
                   fmt::format("the socket option {} of level {} is not provided (ENOPROTOOPT)", name,
                               level));
  return nullptr;
}

int set_timeout(const Call& call, SocketFile& file) {
  GuestTimeval t;
  if (call.int_arg(4) < static_cast<int64_t>(sizeof t)) return EINVAL;
  if (!call.memory.load(call.args[3], &t)) return EFAULT;
  if (t.microseconds < 0 || t.microseconds >= 1'000'000) return EDOM;
  const auto timeout = std::chrono::seconds(std::clamp<int64_t>(t.seconds, 0, int64_t{1} << 32)) +
                       std::chrono::microseconds(t.microseconds);
  (call.int_arg(2) == kReceiveTimeout ? file.receive_timeout : file.send_timeout) = timeout;
  return 0;
}

}  // namespace

SocketArgument socket_argument(const Call& call) {
  const FileRef file = call.process->files.share(call.int_arg(0));
  if (!file) return {.error = EBADF, .file = {}};
  SocketRef socket = std::dynamic_pointer_cast<SocketFile>(file);
  const int error = socket ? 0 : ENOTSOCK;
  return {.error = error, .file = std::move(socket)};
}

Reply sys_socket(Kernel& kernel, Call& call) {
  const int64_t domain = call.int_arg(0), type = call.int_arg(1) & kTypeMask;
  if (const int error = judge_kind(kernel, domain, call.int_arg(1), call.int_arg(2)))
    return Reply::error(error);
  const int host = ::socket(static_cast<int>(domain),
                            static_cast<int>(type) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (host < 0) return Reply::error(errno);
  const auto file = std::make_shared<SocketFile>(host, static_cast<int>(domain),
                                                 static_cast<int>(type));
  file->is_reached_from_outside = domain != AF_UNIX;
  const int fd = open_socket(call, file, static_cast<int>(call.int_arg(1)));
  return fd < 0 ? Reply::error(EMFILE) : Reply::result(fd);
}

Reply sys_socketpair(Kernel& kernel, Call& call) {
  const int64_t domain = call.int_arg(0), type = call.int_arg(1) & kTypeMask;
  if (domain == AF_INET || domain == AF_INET6) return Reply::error(EOPNOTSUPP);
  if (const int error = judge_kind(kernel, domain, call.int_arg(1), call.int_arg(2)))
    return Reply::error(error);
  int ends[2];
  if (::socketpair(AF_UNIX, static_cast<int>(type) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
    return Reply::error(errno);
  const SocketRef files[2] = {std::make_shared<SocketFile>(ends[0], AF_UNIX, type),
                              std::make_shared<SocketFile>(ends[1], AF_UNIX, type)};
  int32_t fds[2];
  for (int i = 0; i < 2; ++i)
    fds[i] = open_socket(call, files[i], static_cast<int>(call.int_arg(1)));
  if (fds[0] >= 0 && fds[1] >= 0 && call.memory.store(call.args[3], fds)) return Reply::result(0);
  const bool full = fds[0] < 0 || fds[1] < 0;
  for (const int32_t fd : fds) call.process->files.close(fd);
  return Reply::error(full ? EMFILE : EFAULT);
}

Reply sys_bind(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  const HostAddress address = address_argument(kernel, call, *file, call.args[1], call.int_arg(2),
                                               AddressUse::kBind);
  if (address.error != 0) return Reply::error(address.error);
  if (::bind(file->host_fd(), reinterpret_cast<const sockaddr*>(address.bytes.data()),
             static_cast<socklen_t>(address.bytes.size())) < 0)
    return Reply::error(errno);
  file->is_bound = true;
  file->is_reached_from_outside = true;
  file->own_name = address.name;
  file->keep(address.holder);
  return Reply::result(0);
}

Reply sys_listen(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  if (const int bad = bind_to_loopback(kernel, *file)) return Reply::error(bad);
  return ::listen(file->host_fd(), static_cast<int>(call.int_arg(1))) < 0 ? Reply::error(errno)
                                                                         : Reply::result(0);
}

Reply sys_accept(Kernel& kernel, Call& call) { return accept_call(kernel, call, 0); }
Reply sys_accept4(Kernel& kernel, Call& call) {
  return accept_call(kernel, call, call.int_arg(3));
}

// Called again, the host says how the attempt that it began goes.
Reply sys_connect(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  const HostAddress address = address_argument(kernel, call, *file, call.args[1], call.int_arg(2),
                                               AddressUse::kConnect);
  if (address.error != 0) return Reply::error(address.error);
  if (file->type() == SOCK_DGRAM)
    if (const int bad = bind_to_loopback(kernel, *file)) return Reply::error(bad);
  if (::connect(file->host_fd(), reinterpret_cast<const sockaddr*>(address.bytes.data()),
                static_cast<socklen_t>(address.bytes.size())) == 0) {
    file->is_reached_from_outside = true;
    file->peer_name = address.name;
    return Reply::result(0);
  }
  if (errno != EINPROGRESS && errno != EALREADY && errno != EAGAIN && errno != EINTR)
    return Reply::error(errno);
  file->is_reached_from_outside = true;
  return wait_for_connection(kernel, call, *file, errno, file->send_timeout);
}

Reply sys_getsockname(Kernel&, Call& call) {
  const auto [error, file] = socket_argument(call);
  return error != 0 ? Reply::error(error)
                    : name_call(call, *file, file->own_name, ::getsockname);
}
Reply sys_getpeername(Kernel&, Call& call) {
  const auto [error, file] = socket_argument(call);
  return error != 0 ? Reply::error(error)
                    : name_call(call, *file, file->peer_name, ::getpeername);
}

Reply sys_shutdown(Kernel&, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  return ::shutdown(file->host_fd(), static_cast<int>(call.int_arg(1))) < 0 ? Reply::error(errno)
                                                                           : Reply::result(0);
}

Reply sys_setsockopt(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  const Option* option = find_option(kernel, call);
  if (!option || option->form == Form::kReadOnlyInt || option->form == Form::kCredentials)
    return Reply::error(ENOPROTOOPT);
  if (option->form == Form::kTimeout) {
    const int bad = set_timeout(call, *file);
    return bad != 0 ? Reply::error(bad) : Reply::result(0);
  }
  struct linger value {};
  const size_t size = option->form == Form::kLinger ? sizeof value : sizeof(int32_t);
  if (call.int_arg(4) < static_cast<int64_t>(size)) return Reply::error(EINVAL);
  if (!call.memory.read(call.args[3], {reinterpret_cast<uint8_t*>(&value), size}))
    return Reply::error(EFAULT);
  // The host would wait when the guest closes the socket.
  if (option->form == Form::kLinger && value.l_onoff != 0 && value.l_linger != 0)
    return Reply::result(0);
  return ::setsockopt(file->host_fd(), option->level, option->name, &value,
                      static_cast<socklen_t>(size)) < 0
             ? Reply::error(errno)
             : Reply::result(0);
}

Reply sys_getsockopt(Kernel& kernel, Call& call) {
  const auto [error, file] = socket_argument(call);
  if (error != 0) return Reply::error(error);
  const Option* option = find_option(kernel, call);
  if (!option) return Reply::error(ENOPROTOOPT);
  std::array<uint8_t, 16> value{};
  auto size = static_cast<socklen_t>(option->form == Form::kLinger ? sizeof(struct linger)
                                     : option->form == Form::kCredentials ? sizeof(ucred)
                                                                          : sizeof(int32_t));
  if (option->form == Form::kTimeout) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(
        option->name == kReceiveTimeout ? file->receive_timeout : file->send_timeout);
    const GuestTimeval t{us.count() / 1'000'000, us.count() % 1'000'000};
    static_assert(sizeof t == sizeof value);
    std::memcpy(value.data(), &t, sizeof t);
    size = sizeof t;
  } else if (::getsockopt(file->host_fd(), option->level, option->name, value.data(), &size) < 0) {
    return Reply::error(errno);
  }
  // The other end of a pair is in the same guest process.
  if (option->form == Form::kCredentials && !file->is_reached_from_outside) {
    const auto pid = static_cast<int32_t>(call.process->pid);
    std::memcpy(value.data() + offsetof(ucred, pid), &pid, sizeof pid);
  }
  const int bad = store_address(call, {value.data(), size}, call.args[3], call.args[4]);
  return bad != 0 ? Reply::error(bad) : Reply::result(0);
}

}  // namespace gpusim::host
