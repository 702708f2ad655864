#include "host/gdb/connection.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "device_sim/base/digits.h"
#include "device_sim/base/error.h"

namespace gpusim::host::gdb {
namespace {

constexpr int kWriteTimeoutMs = 10'000;
constexpr int kMostDamaged = 10;  // in a row
constexpr int kMostReads = 64;    // before cores run again

bool is_ready(int fd, short what, int timeout_ms) {
  pollfd p{.fd = fd, .events = what, .revents = 0};
  return ::poll(&p, 1, timeout_ms) > 0;
}

}  // namespace

// --- one debugger

void Connection::lose(const std::string& why) {
  if (lost_.empty()) lost_ = why;
}

bool Connection::read(int timeout_ms) {
  if (!lost_.empty() || !is_ready(socket_.get(), POLLIN, timeout_ms)) return false;
  char bytes[1 << 14];
  const ssize_t n = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (n > 0) {
    reader_.feed({bytes, static_cast<size_t>(n)});
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  lose(n == 0 ? "it closed the connection" : std::strerror(errno));
  return false;
}

void Connection::write(std::string_view bytes) {
  while (!bytes.empty() && lost_.empty()) {
    const ssize_t n =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      if (!is_ready(socket_.get(), POLLOUT, kWriteTimeoutMs)) lose("it takes no answers");
    } else if (n < 0 && errno != EINTR) {
      lose(std::strerror(errno));
    }
  }
}

void Connection::send(std::string_view payload) {
  last_ = framed(payload);
  write(last_);
}

std::optional<std::string> Connection::receive() {
  using Kind = PacketReader::Kind;
  while (lost_.empty()) {
    PacketReader::Item item = reader_.next();
    switch (item.kind) {
      case Kind::kNone:
        if (!read(-1)) return std::nullopt;
        break;
      case Kind::kPacket:
        has_spoken_ = true;
        damaged_ = 0;
        if (acknowledges_) write("+");
        return std::move(item.payload);
      case Kind::kNak:
        write(last_);
        [[fallthrough]];
      case Kind::kDamaged:
        if (++damaged_ > kMostDamaged) lose("it sent damaged packets");
        if (item.kind == Kind::kDamaged && acknowledges_) write("-");
        break;
      case Kind::kGarbage:
        lose("it sent what is no packet of GDB's protocol");
        break;
      case Kind::kAck:
      case Kind::kInterrupt:
        break;
    }
  }
  return std::nullopt;
}

bool Connection::wants_stop() {
  using Kind = PacketReader::Kind;
  for (int i = 0; i < kMostReads && read(0); ++i) {
  }
  for (;;) {
    const PacketReader::Item item = reader_.next();
    if (item.kind == Kind::kInterrupt) return true;
    if (item.kind == Kind::kNone) return !lost_.empty();
    if (item.kind == Kind::kAck) continue;
    lose(item.kind == Kind::kPacket ? "it sent a packet while cores ran"
                                    : "it sent what is no packet of GDB's protocol");
  }
}

// --- where they come

Listener::Listener(const std::string& address) : asked_for_(address) {
  const size_t colon = address.rfind(':');
  if (is_number(address))
    listen_on_port("", address);
  else if (colon == std::string::npos || address.find('/') != std::string::npos)
    listen_on_path(address);
  else
    listen_on_port(address.substr(0, colon), address.substr(colon + 1));
}

Listener::~Listener() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void Listener::fail(const std::string& what) const {
  throw Error(fmt::format("--gdb {}: {}", asked_for_, what));
}

void Listener::listen_on_path(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof to.sun_path)
    fail(fmt::format("a socket's path has 1 to {} bytes", sizeof to.sun_path - 1));
  std::memcpy(to.sun_path, path.data(), path.size());
  const auto* const where = reinterpret_cast<const sockaddr*>(&to);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) fail("there is a file of that name already");
    const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(probe.get(), where, sizeof to) == 0)
      fail("somebody listens there already; choose another path");
    ::unlink(path.c_str());  // left behind
  }
  socket_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const mode_t mask = ::umask(0177);
  const bool is_bound = socket_ && ::bind(socket_.get(), where, sizeof to) == 0;
  const int error = errno;
  ::umask(mask);
  if (!is_bound || ::listen(socket_.get(), 1) != 0) fail(std::strerror(is_bound ? errno : error));
  path_ = address_ = path;
}

void Listener::listen_on_port(const std::string& host_text, const std::string& port) {
  if (!is_number(port) || port.size() > 5 || std::stoul(port) > 65535)
    fail("expected [HOST:]PORT with a port from 0 to 65535, or the path of a socket");
  std::string host = host_text.empty() ? "127.0.0.1" : host_text;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    fail(fmt::format("host {}: {}", host, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  socket_ = FileDescriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!socket_ || ::bind(socket_.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket_.get(), 1) != 0)
    fail(errno == EADDRINUSE ? "the port is in use; choose another, or 0 for any that is free"
                             : std::strerror(errno));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  if (bound.ss_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&bound);
    is_open_ = !IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    address_ = fmt::format("[{}]:{}", host, ntohs(v6->sin6_port));
  } else {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&bound);
    is_open_ = ntohl(v4->sin_addr.s_addr) >> 24 != 127;
    address_ = fmt::format("{}:{}", host, ntohs(v4->sin_port));
  }
}

std::optional<Connection> Listener::accept(int timeout_ms) {
  if (!is_ready(socket_.get(), POLLIN, timeout_ms)) return std::nullopt;
  FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return std::nullopt;
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return Connection(std::move(socket));
}

}  // namespace gpusim::host::gdb
