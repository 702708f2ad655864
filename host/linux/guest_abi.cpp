#include "host/linux/guest_abi.h"

#include <fcntl.h>

#include <span>

namespace gpusim::host {
namespace {

struct FlagPair {
  uint64_t guest;
  int host;
};
// asm-generic/fcntl.h, and what arch/arm64/include/uapi/asm/fcntl.h has otherwise.
constexpr FlagPair kCommon[] = {{00000100, O_CREAT},  {00000200, O_EXCL},   {00000400, O_NOCTTY},
                                {00001000, O_TRUNC},  {00002000, O_APPEND}, {00004000, O_NONBLOCK},
                                {02000000, O_CLOEXEC},  {010000000, O_PATH}};
constexpr FlagPair kArm[] = {{0040000, O_DIRECTORY}, {0100000, O_NOFOLLOW}};
constexpr FlagPair kGeneric[] = {{0200000, O_DIRECTORY}, {0400000, O_NOFOLLOW}};

std::span<const FlagPair> particular(const std::string& isa) {
  return isa == "aarch64" ? std::span<const FlagPair>(kArm) : std::span<const FlagPair>(kGeneric);
}

}  // namespace

int host_open_flags(const std::string& isa, uint64_t guest_flags) {
  int host = static_cast<int>(guest_flags & O_ACCMODE);
  for (const auto table : {std::span<const FlagPair>(kCommon), particular(isa)})
    for (const FlagPair& f : table)
      if (guest_flags & f.guest) host |= f.host;
  return host;
}

uint64_t guest_open_flags(const std::string& isa, int host_flags) {
  uint64_t guest = static_cast<uint64_t>(host_flags & O_ACCMODE);
  for (const auto table : {std::span<const FlagPair>(kCommon), particular(isa)})
    for (const FlagPair& f : table)
      if (host_flags & f.host) guest |= f.guest;
  return guest;
}

}  // namespace gpusim::host
