#include "host/sysroot.h"

#include <fmt/format.h>

#include <filesystem>

#include "device_sim/base/error.h"
#include "host/linux/abi.h"
#include "translator/common/guest_isa.h"

namespace gpusim::host {
namespace fs = std::filesystem;

std::string sysroot_for(const GuestIsa& isa, const std::optional<std::string>& wish) {
  std::error_code error;
  if (wish) {
    if (!wish->empty() && !fs::is_directory(*wish, error))
      throw Error(fmt::format("--sysroot {}: not a folder", *wish));
    return *wish;
  }
  const LinuxAbi* const abi = find_linux_abi(isa.name);
  const bool is_there = abi && abi->sysroot && fs::is_directory(abi->sysroot, error);
  return is_there ? abi->sysroot : "";
}

std::string find_interpreter(const GuestIsa& isa, const std::optional<std::string>& wish,
                             const std::string& path) {
  const std::string sysroot = sysroot_for(isa, wish);
  std::error_code error;
  if (!sysroot.empty() && fs::is_regular_file(sysroot + path, error)) return sysroot + path;
  if (fs::is_regular_file(path, error)) return path;
  throw Error(fmt::format(
      "a dynamically linked program, and its interpreter {} is neither {}. Give the folder that "
      "holds "
      "it and the libraries by --sysroot, or link the program with -static",
      path,
      sysroot.empty() ? "there nor in a --sysroot" : "in " + sysroot + " nor on this machine"));
}

}  // namespace gpusim::host
