// Where the libraries of dynamic programs are.
#pragma once
#include <optional>
#include <string>

namespace gpusim {
struct GuestIsa;
}

namespace gpusim::host {

// The folder that was asked for, or the usual one of the ISA if it is there; empty: none. Error if
// the one that was asked for is no folder.
std::string sysroot_for(const GuestIsa& isa, const std::optional<std::string>& wish);

// The file of a dynamic program's interpreter: below the sysroot, or else the host's.
std::string find_interpreter(const GuestIsa& isa, const std::optional<std::string>& wish,
                             const std::string& path);

}  // namespace gpusim::host
