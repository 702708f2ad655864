// Sockets of a guest: the host's, which never block, behind rules about whom they may reach.
#pragma once
#include <span>
#include <vector>

#include "host/linux/file_table.h"
#include "host/linux/guest_abi.h"
#include "host/linux/kernel.h"

namespace gpusim::host {

class SocketFile final : public OpenFile {
 public:
  SocketFile(int host_fd, int domain, int type)
      : OpenFile(host_fd, /*owned=*/true, Kind::kSocket), domain_(domain), type_(type) {}
  int domain() const { return domain_; }
  int type() const { return type_; }

  bool is_bound = false;
  // AF_UNIX: as the guest gave them, because the host knows other paths to the same places.
  std::string own_name, peer_name;
  Clock::duration receive_timeout{}, send_timeout{};  // 0: none

 private:
  int domain_, type_;
};
using SocketRef = std::shared_ptr<SocketFile>;

// The socket behind argument 0, or an error number.
struct SocketArgument {
  int error = 0;
  SocketRef file;
};
SocketArgument socket_argument(const Call& call);

// An address as the host gets it, if the guest may use it so.
enum class AddressUse { kBind, kConnect, kSend };
struct HostAddress {
  int error = 0;
  std::vector<uint8_t> bytes = {};
  std::string name = {};                  // AF_UNIX: the path as the guest gave it
  std::shared_ptr<OpenFile> holder = {};  // keeps the path in `bytes` good
};
HostAddress judge_address(Kernel& kernel, const Call& call, const SocketFile& file,
                          std::span<const uint8_t> address, AddressUse use);
// Loads and judges; `size` as an argument of a call.
HostAddress address_argument(Kernel& kernel, const Call& call, const SocketFile& file,
                             uint64_t address, int64_t size, AddressUse use);
// With --network loopback a socket that binds itself must not listen to the world.
int bind_to_loopback(Kernel& kernel, SocketFile& file);
// A host's address as the guest sees it.
std::vector<uint8_t> guest_address(std::span<const uint8_t> host);
// Stores an address and its size as accept and its kin do; 0 or an error number.
int store_address(const Call& call, std::span<const uint8_t> address, uint64_t at,
                  uint64_t size_at);

// read, readv, write and writev on a socket.
Reply read_socket(Kernel& kernel, Call& call, const FileRef& file,
                  std::span<const GuestIovec> vectors);
Reply write_socket(Kernel& kernel, Call& call, const FileRef& file,
                   std::span<const GuestIovec> vectors);

// An array of struct iovec, cut to what one call may move; 0 or an error number.
int load_vectors(const Call& call, uint64_t address, uint64_t count,
                 std::vector<GuestIovec>* vectors);

}  // namespace gpusim::host
