// `--profile` of kernels: where instructions were executed, by how many threads of each warp, and
// what the warps' accesses touched together. The threads write journals; a block begins with two
// stamps, by which the threads that entered it together are known (profile.cpp).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/uir/journal.h"
#include "host/ptx/warp_caches.h"
#include "translator/ptx/kernel.h"

namespace gpusim::ptx {

/// Of a source line, or a kernel.
struct WarpCounts {
  uint64_t instructions = 0;       // by threads
  uint64_t warp_instructions = 0;  // each time that threads of a warp executed one together
  uint64_t global_accesses = 0;    // by warps
  uint64_t sectors = 0;            // of 32 bytes, that they touched
  uint64_t store_sectors = 0, atomic_sectors = 0;  // of these, by stores and by atomics
  uint64_t shared_accesses = 0;                    // by warps
  uint64_t bank_conflicts = 0;  // passes over the banks beyond those that were needed
  WarpCounts& operator+=(const WarpCounts& o);
  double lanes() const {
    return warp_instructions == 0
               ? 0
               : static_cast<double>(instructions) / static_cast<double>(warp_instructions);
  }
};

/// By "file:line" of the source, or of the text where the source is not known.
struct KernelProfile {
  std::map<std::string, WarpCounts> lines;
  WarpCounts all;
  std::optional<CacheProfile> caches;  // where caches were simulated
  KernelProfile& operator+=(const KernelProfile& o);
};

/// {"lanes_per_warp":…, "warp_instructions":…, …, "lines": [{"line":…}…]}: lines with most
/// instructions first.
nlohmann::ordered_json profile_json(const KernelProfile& profile);
KernelProfile profile_of_json(const nlohmann::ordered_json& json);
/// A table of the lines with most instructions.
std::string profile_text(const KernelProfile& profile, const std::string& kernel);

/// Sectors of 32 bytes that a warp's access touches.
uint32_t sectors_of(std::span<const uint64_t> addresses, uint32_t bytes);
/// Passes over the 32 banks of 4 bytes beyond those that so many bytes need: lanes that access the
/// same word share it. `lanes`: of the addresses.
uint32_t bank_conflicts_of(std::span<const uint64_t> addresses, std::span<const uint8_t> lanes,
                           uint32_t bytes);

class MachineProfile {
 public:
  static constexpr uint32_t kJournalWords = 1 << 13;

  /// `caches`: null, or what is simulated beside the kernel.
  MachineProfile(const KernelCode& code, uint32_t cores, WarpCaches* caches);
  uint64_t longest_slice() const { return longest_slice_; }
  void begin();
  /// `ctas`: the linear number of the CTA at each place, of `1 << shift` cores.
  void after_slice(Backend& backend, std::span<const uint64_t> ctas, uint32_t shift);
  /// Since begin(). `counts`: executions of blocks by threads.
  KernelProfile result(std::span<const uint64_t> counts, const std::string& origin,
                       const std::map<uint32_t, std::string>& files) const;

 private:
  struct Site {
    AccessKind kind = AccessKind::kLoad;
    uint8_t bytes = 0;
    uint32_t insn = 0;  // of its block
  };
  struct Sums {
    uint64_t global_accesses = 0, sectors = 0, store_sectors = 0, atomic_sectors = 0;
    uint64_t shared_accesses = 0, bank_conflicts = 0;
  };
  // Where a thread is in its words; a slice may end within a block.
  struct Cursor {
    uint32_t block = 0, at = 0;
    uint64_t step = 0;
  };
  struct Entry {  // of a block, by a lane
    uint64_t stamp = 0, step = 0;
    uint32_t block = 0;
    uint8_t lane = 0;
  };
  struct Access {
    uint64_t step = 0, address = 0;
    uint32_t block = 0, site = 0;
    uint8_t lane = 0;
  };
  // What a warp accessed in global memory together.
  struct Request {
    Site site;
    std::vector<uint64_t> addresses;
  };
  void read_warp(Backend& backend, uint32_t first);
  void add_accesses(std::span<const Access> together);
  void feed_caches(std::span<const uint64_t> ctas, uint32_t shift);

  const KernelCode& code_;
  std::vector<std::vector<Site>> sites_;  // per block
  uint64_t longest_slice_ = 1, next_step_ = 1;
  std::vector<Cursor> cursors_;            // per core
  std::vector<uint64_t> warp_executions_;  // per block
  std::vector<std::vector<Sums>> sums_;    // per block and site
  WarpCaches* const caches_;
  std::vector<std::vector<Request>> requests_;  // of the slice, per warp
  uint32_t warp_ = 0;                           // that is read
};

}  // namespace gpusim::ptx
