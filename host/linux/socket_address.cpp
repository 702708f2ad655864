// Whom a guest's socket may reach.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/linux/calls.h"
#include "host/linux/sockets.h"

namespace gpusim::host {
namespace {

constexpr size_t kPathAt = offsetof(sockaddr_un, sun_path);
const std::string kByDescriptor = "/proc/self/fd/";

template <class T>
T as(std::span<const uint8_t> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}
template <class T>
std::vector<uint8_t> bytes_of(const T& value) {
  const auto* p = reinterpret_cast<const uint8_t*>(&value);
  return {p, p + sizeof value};
}

bool is_loopback(in_addr_t v4) { return (ntohl(v4) >> 24) == 127; }

// The address if it stays on this host; "any" means the loopback here.
HostAddress loopback_only(sockaddr_in a) {
  if (a.sin_addr.s_addr == htonl(INADDR_ANY)) a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!is_loopback(a.sin_addr.s_addr)) return {.error = ENETUNREACH};
  return {.bytes = bytes_of(a)};
}
HostAddress loopback_only(sockaddr_in6 a) {
  if (IN6_IS_ADDR_UNSPECIFIED(&a.sin6_addr)) a.sin6_addr = in6addr_loopback;
  if (IN6_IS_ADDR_V4MAPPED(&a.sin6_addr)) {
    in_addr_t v4;
    std::memcpy(&v4, &a.sin6_addr.s6_addr[12], sizeof v4);
    if (v4 == htonl(INADDR_ANY)) v4 = htonl(INADDR_LOOPBACK);
    std::memcpy(&a.sin6_addr.s6_addr[12], &v4, sizeof v4);
    if (!is_loopback(v4)) return {.error = ENETUNREACH};
  } else if (!IN6_IS_ADDR_LOOPBACK(&a.sin6_addr)) {
    return {.error = ENETUNREACH};
  }
  a.sin6_scope_id = 0;
  return {.bytes = bytes_of(a)};
}

HostAddress judge_internet(Kernel& kernel, const SocketFile& file,
                           std::span<const uint8_t> address, AddressUse use) {
  const auto family = as<sa_family_t>(address);
  if (kernel.network() == Network::kNone) return {.error = EACCES};
  if (kernel.network() == Network::kHost) return {.bytes = {address.begin(), address.end()}};
  // Ends a connection; for other uses Linux may take it for an address.
  if (family == AF_UNSPEC && use == AddressUse::kConnect)
    return {.bytes = bytes_of(sockaddr{.sa_family = AF_UNSPEC, .sa_data = {}})};
  HostAddress judged{.error = EAFNOSUPPORT};
  constexpr size_t kWithoutScope = offsetof(sockaddr_in6, sin6_scope_id);
  if (family == AF_INET)
    judged = address.size() < sizeof(sockaddr_in) ? HostAddress{.error = EINVAL}
                                                  : loopback_only(as<sockaddr_in>(address));
  else if (family == AF_INET6 && file.domain() == AF_INET6)
    judged = address.size() < kWithoutScope ? HostAddress{.error = EINVAL}
                                            : loopback_only(as<sockaddr_in6>(address));
  if (judged.error == ENETUNREACH)
    kernel.note_once("network address",
                     "the guest may reach no other host; --network host allows it (ENETUNREACH; "
                     "said once)");
  return judged;
}

HostAddress by_descriptor(int fd, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("{}{}{}", kByDescriptor, fd, name);
  if (path.size() >= sizeof address.sun_path) return {.error = ENAMETOOLONG};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return {.bytes = bytes_of(address),
          .holder = std::make_shared<OpenFile>(fd, /*owned=*/true)};
}

// By descriptors, so that what was judged is what is used, and long paths fit. To connect takes what
// writing a file takes; to bind makes a name.
HostAddress judge_path(Kernel& kernel, const Call& call, const std::string& given, AddressUse use) {
  const bool binds = use == AddressUse::kBind;
  const bool is_relative = !given.starts_with('/');
  const FolderRef start = is_relative ? kernel.folder_of(*call.process) : nullptr;
  Place place;
  place.is_outside = is_relative && !start;
  if (!place.is_outside)
    place = kernel.paths().find(start, given,
                                binds ? PathPolicy::Last::kEntry : PathPolicy::Last::kFollow);
  const bool is_there = place.error == 0;
  const bool is_refused = place.is_outside || (binds && place.folder && !place.may_change_entry()) ||
                          (!binds && is_there && !place.may_change());
  if (is_refused) {
    kernel.note_once("socket path", fmt::format("the guest may not use the socket {}; --root FOLDER "
                                                "allows a folder (EACCES; said once)",
                                                given));
    return {.error = EACCES};
  }
  if (binds && is_there) return {.error = EADDRINUSE};
  if (!is_there && !(binds && place.error == ENOENT && place.folder)) return {.error = place.error};
  if (!binds && !S_ISSOCK(place.status.st_mode)) return {.error = ECONNREFUSED};
  const int fd = ::fcntl(binds ? place.folder->fd.get() : place.fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return {.error = errno};
  HostAddress address = by_descriptor(fd, binds ? "/" + place.name : "");
  if (address.error != 0) ::close(fd);
  address.name = given;
  return address;
}

HostAddress judge_unix(Kernel& kernel, const Call& call, std::span<const uint8_t> address,
                       AddressUse use) {
  if (as<sa_family_t>(address) == AF_UNSPEC && use == AddressUse::kConnect)
    return {.bytes = bytes_of(sockaddr{.sa_family = AF_UNSPEC, .sa_data = {}})};
  if (as<sa_family_t>(address) != AF_UNIX) return {.error = EINVAL};
  if (address.size() > sizeof(sockaddr_un)) return {.error = EINVAL};
  if (address.size() == kPathAt && use != AddressUse::kBind) return {.error = EINVAL};
  const bool has_path = address.size() > kPathAt && address[kPathAt] != 0;
  if (has_path) {
    const auto* text = reinterpret_cast<const char*>(address.data() + kPathAt);
    return judge_path(kernel, call, std::string(text, strnlen(text, address.size() - kPathAt)),
                      use);
  }
  // Names without a path are known to the whole host.
  if (kernel.network() == Network::kHost) return {.bytes = {address.begin(), address.end()}};
  kernel.note_once("abstract socket",
                   "the guest may not use abstract socket names; --network host allows them (EACCES; "
                   "said once)");
  return {.error = EACCES};
}

}  // namespace

HostAddress judge_address(Kernel& kernel, const Call& call, const SocketFile& file,
                          std::span<const uint8_t> address, AddressUse use) {
  if (address.size() < sizeof(sa_family_t)) return {.error = EINVAL};
  return file.domain() == AF_UNIX ? judge_unix(kernel, call, address, use)
                                  : judge_internet(kernel, file, address, use);
}

HostAddress address_argument(Kernel& kernel, const Call& call, const SocketFile& file,
                             uint64_t address, int64_t size, AddressUse use) {
  if (size < 0 || size > static_cast<int64_t>(sizeof(sockaddr_storage))) return {.error = EINVAL};
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  if (!call.memory.read(address, bytes)) return {.error = EFAULT};
  return judge_address(kernel, call, file, bytes, use);
}

int bind_to_loopback(Kernel& kernel, SocketFile& file) {
  if (kernel.network() != Network::kLoopback || file.is_bound || file.domain() == AF_UNIX) return 0;
  std::vector<uint8_t> address = file.domain() == AF_INET
                                     ? loopback_only(sockaddr_in{.sin_family = AF_INET}).bytes
                                     : loopback_only(sockaddr_in6{.sin6_family = AF_INET6}).bytes;
  if (::bind(file.host_fd(), reinterpret_cast<const sockaddr*>(address.data()),
             static_cast<socklen_t>(address.size())) < 0)
    return errno;
  file.is_bound = true;
  return 0;
}

std::vector<uint8_t> guest_address(std::span<const uint8_t> host) {
  std::vector<uint8_t> bytes(host.begin(), host.end());
  if (bytes.size() <= kPathAt || as<sa_family_t>(bytes) != AF_UNIX) return bytes;
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kPathAt);
  std::string path(text, strnlen(text, bytes.size() - kPathAt));
  if (!path.starts_with(kByDescriptor)) return bytes;
  // A guest's socket, which was bound below a folder that it keeps open.
  const size_t end = path.find('/', kByDescriptor.size());
  const std::string folder = link_target(path.substr(0, end));
  bytes.resize(kPathAt);
  if (folder.empty() || end == std::string::npos) return bytes;
  path = folder + path.substr(end);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return bytes;
  bytes.insert(bytes.end(), path.begin(), path.end());
  bytes.push_back(0);
  return bytes;
}

int store_address(const Call& call, std::span<const uint8_t> address, uint64_t at,
                  uint64_t size_at) {
  int32_t room;
  if (!call.memory.load(size_at, &room)) return EFAULT;
  if (room < 0) return EINVAL;
  const size_t count = std::min(address.size(), static_cast<size_t>(room));
  if (!call.memory.write(at, address.first(count))) return EFAULT;
  return call.memory.store(size_at, static_cast<int32_t>(address.size())) ? 0 : EFAULT;
}

}  // namespace gpusim::host
