// Finds out that cores which busy-wait (WFE and the like) will do so for ever.
//
// Between events a run is deterministic. If for so long that every core had its turn no core stores
// anything, the same blocks run, and every register of every core is as it was, nothing can ever
// change.
#pragma once
#include <cstdint>
#include <vector>

#include "device_sim/core/backend.h"

namespace gpusim::host {

class LivelockDetector {
 public:
  // Call after each slice of so many instructions. `quiet`: it had no events, and no core sleeps
  // until some time. True: no core will ever get further.
  bool after_slice(const Module& module, Backend& backend, uint32_t cores, uint64_t instructions,
                   bool quiet);

  // For checkpoints, which define it.
  template <class Archive>
  void describe(Archive& a, const Module& module);

 private:
  // Whether each slice since `counts_` executed only blocks that store nothing, and some core gave
  // way; `executed` receives which.
  bool only_waited(const Module& module, const std::vector<uint64_t>& counts,
                   std::vector<bool>& executed) const;
  void start_over(uint64_t next_look);

  // More than a core may have to wait for its turn, on any backend.
  static constexpr uint64_t kTurns = uint64_t{1} << 20;  // instructions
  static constexpr uint64_t kFirstLook = 64;  // quiet slices; doubles, so that looks stay cheap
  uint64_t quiet_slices_ = 0;
  uint64_t look_at_ = kFirstLook;
  std::vector<uint64_t> counts_;
  std::vector<bool> executed_;
  uint64_t registers_ = 0;  // a hash
};

}  // namespace gpusim::host
