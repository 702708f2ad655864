// Storage of guest memory whose host pages can carry the guest's permissions. Code may then access
// memory without looking permissions up, if it can go on after a fault of the host.
//
// Both zones of a shared machine with plain windows lie at the same distance from their guest
// addresses, in address space of the host that is otherwise inaccessible.
#pragma once
#include <cstdint>

#include "device_sim/core/memory_view.h"

namespace gpusim {

// Guest address `a`, below `limit`, is the host's base + a; null: there is no such place. Up to
// kMargin before and behind, nothing is accessible.
struct DirectMemory {
  static constexpr uint64_t kMargin = uint64_t{1} << 20;
  uint8_t* base = nullptr;
  uint64_t limit = 0;
};

class GuardedSpace {
 public:
  GuardedSpace() = default;
  ~GuardedSpace();
  GuardedSpace(GuardedSpace&& other) noexcept { swap(other); }
  GuardedSpace& operator=(GuardedSpace&& other) noexcept {
    swap(other);
    return *this;
  }

  // Address space for the zones of a machine. False: this host has none, or not for such zones.
  bool reserve(const MemoryView& view);
  // Zeroed memory that appears when touched, at a guest address; null: the host refuses.
  uint8_t* map(uint64_t address, uint64_t size_bytes);

  // Host pages carry the guest's permissions from now on. False: they cannot, and all of them stay
  // open. The view is that of this storage.
  bool guard(const MemoryView& view);
  // The permissions of a range changed, or the host mapped its pages anew. False: as above.
  bool update(const MemoryView& view, uint64_t address, uint64_t size_bytes);
  // Every page may be accessed.
  void open(const MemoryView& view);
  void open_range(const MemoryView& view, uint64_t address, uint64_t size_bytes);
  bool is_guarded() const { return is_guarded_; }
  DirectMemory direct() const { return {base_, limit_}; }

  // For tests: as on a host where a process may have few mappings.
  void limit_runs(uint64_t most) { most_runs_ = most; }

 private:
  struct Pages {
    uint64_t first, end;
  };
  bool apply(const MemoryView& view, const Pages& pages);
  void swap(GuardedSpace& other);

  uint8_t* mapping_ = nullptr;
  uint64_t mapping_size_ = 0;
  uint8_t* base_ = nullptr;
  uint64_t limit_ = 0;
  bool is_guarded_ = false;
  uint64_t runs_ = 0;  // at most so many runs of pages with the same permissions
  // Each is a mapping of the host's, which allows a process 65,530 by default (vm.max_map_count).
  uint64_t most_runs_ = 16384;
};

}  // namespace gpusim
