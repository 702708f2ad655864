// Functions of the C library that take locks, in a program whose variables are its caller's.
//
// Such a lock is the caller's own: a core that ends while it holds it leaves the caller waiting for
// ever. So kernels may not enter these functions. A call that can be seen in the code is refused
// before the kernel begins; any other one stops the core at the function's first instruction,
// before it has taken anything. docs/adr/0021 has the reasons.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim::offload {

class LockGuard {
 public:
  /// Guards nothing.
  LockGuard() = default;
  /// The functions of the module. Calls are seen by the instructions' words.
  explicit LockGuard(const Module& module);

  /// Where cores have to be stopped.
  std::vector<uint64_t> addresses() const;
  /// The guarded function that begins at this address, or null.
  const std::string* guarded(uint64_t address) const;
  /// Why the function cannot be a kernel: it calls a guarded one, directly or through functions of
  /// the program's own. Nothing if none can be seen.
  std::optional<std::string> objection(const Module& module, uint64_t function) const;
  /// What a core did that stopped at a guarded function; `caller` is an address in who called it.
  static std::string complaint(const Module& module, const std::string& name, uint64_t caller);

 private:
  struct Call {
    uint64_t from = 0, to = 0;  // functions' addresses
    auto operator<=>(const Call&) const = default;
  };
  std::set<uint64_t> callers_of(std::set<uint64_t> functions) const;
  static std::vector<Call> find_calls(const Module& module);

  std::map<uint64_t, std::string> names_;  // by address
  std::vector<Call> calls_;                // sorted
};

}  // namespace gpusim::offload
