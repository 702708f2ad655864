// Guest instructions by class: whole blocks from the backend, and what cores that stopped inside a
// block had executed of it.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "device_sim/core/backend.h"

namespace gpusim::host {

struct Tally {
  ClassCounts classes{};
  uint64_t micro_ops = 0;

  uint64_t instructions() const;
};

class Tallies {
 public:
  // The core faulted at this micro-op. Its instruction counts as executed, as emulators count it,
  // unless it could not even be fetched.
  void stopped_inside(const Module& module, uint32_t core, uint32_t uop, bool fetched);
  // Instructions that the host executed for a core.
  void add(uint32_t core, InsnClass insn_class, uint64_t instructions) {
    partial_[core].classes[static_cast<size_t>(insn_class)] += instructions;
    by_host_[static_cast<size_t>(insn_class)] += instructions;
  }
  Tally total(const Module& module, Backend& backend) const;
  ClassCounts of_core(Backend& backend, uint32_t core) const;
  ClassCounts of_all_cores(Backend& backend) const;  // of this run, where a backend is used again

  // Cores that stopped inside a block at the same place: how many, how many instructions of the
  // block each had executed, and their classes together.
  struct Stops {
    uint64_t count = 0;
    uint32_t block = 0, instructions = 0;
    ClassCounts classes{};
  };
  using StopPlaces =
      std::map<std::pair<uint32_t, bool>, Stops>;  // by micro-op, and if it was fetched
  const StopPlaces& stops() const { return stops_; }
  const ClassCounts& by_host() const { return by_host_; }

  // For checkpoints, which define it.
  template <class Archive>
  void describe(Archive& a, const Module& module, uint32_t cores);

 private:
  std::map<uint32_t, Tally> partial_;  // by core
  StopPlaces stops_;
  ClassCounts by_host_{};
};

}  // namespace gpusim::host
