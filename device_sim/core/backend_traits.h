// What the host has to know of a backend to plan a run on it.
#pragma once
#include <cstdint>
#include <string_view>

namespace gpusim {

struct BackendTraits {
  // Cores and memory are on a device, a GPU: memory is there from the start and not the host's,
  // looking at a core takes microseconds, slices have to be long, host threads do not matter, and
  // the driver needs files and devices all the time.
  bool is_on_device = false;
  // Per-core tallies are there without MachineConfig::per_core_tallies.
  bool always_counts_cores = true;
  // Machines do MachineConfig::notes_clocks.
  bool notes_clocks = false;
  // Windows of so many cores are one piece of storage: what one of them touches is there for all.
  uint32_t cores_per_tile = 1;
};

/// Of a name that is not in the list of backends ("auto"): a BackendTraits of the host's processor.
BackendTraits traits_of(std::string_view backend);

}  // namespace gpusim
