#include "host/linux/abi.h"

#include <fcntl.h>

#include <stdexcept>

#include "host/linux/aarch64/abi.h"
#include "host/linux/kernel.h"
#include "host/linux/riscv32/abi.h"
#include "host/linux/riscv64/abi.h"

namespace gpusim::host {
namespace {

const LinuxAbi* const kAbis[] = {&aarch64::kAbi, &riscv64::kAbi, &riscv32::kAbi};

// asm-generic/fcntl.h: those that all ISAs share.
constexpr OpenFlag kCommon[] = {{00000100, O_CREAT},   {00000200, O_EXCL},
                                {00000400, O_NOCTTY},  {00001000, O_TRUNC},
                                {00002000, O_APPEND},  {00004000, O_NONBLOCK},
                                {02000000, O_CLOEXEC}, {010000000, O_PATH}};

}  // namespace

const LinuxAbi* find_linux_abi(const std::string& isa) {
  for (const LinuxAbi* abi : kAbis)
    if (isa == abi->isa) return abi;
  return nullptr;
}

const LinuxAbi& linux_abi(const Module& module) {
  if (const LinuxAbi* abi = find_linux_abi(module.isa)) return *abi;
  throw std::logic_error("no Linux for ISA '" + module.isa + "'");
}

SystemCall find_call(const LinuxAbi& abi, uint64_t number) {
  for (const OwnCall& own : abi.own_calls)
    if (own.number == number) return own.call;
  if (abi.generic_number) number = abi.generic_number(number);
  return {syscall_name(number), find_handler(number)};
}

int host_open_flags(const LinuxAbi& abi, uint64_t guest_flags) {
  int host = static_cast<int>(guest_flags & O_ACCMODE);
  for (const auto table : {std::span<const OpenFlag>(kCommon), abi.open_flags})
    for (const OpenFlag& f : table)
      if (guest_flags & f.guest) host |= f.host;
  return host;
}

uint64_t guest_open_flags(const LinuxAbi& abi, int host_flags) {
  uint64_t guest = static_cast<uint64_t>(host_flags & O_ACCMODE);
  for (const auto table : {std::span<const OpenFlag>(kCommon), abi.open_flags})
    for (const OpenFlag& f : table)
      if (host_flags & f.host) guest |= f.guest;
  return guest;
}

}  // namespace gpusim::host
