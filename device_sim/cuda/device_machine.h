// A machine on a device of its own, beside which others may run their slices.
#pragma once
#include "device_sim/core/async_slices.h"
#include "device_sim/core/compiled_regions.h"
#include "device_sim/core/linear_space.h"
#include "device_sim/core/machine_state.h"

namespace gpusim::cuda {

class DeviceMachine : public Backend,
                      public MachineState,
                      public AsyncSlices,
                      public TakesLinearSpace,
                      public CompilesRegions {
 public:
  // Has to be called before any other function, in each thread, unless it was called last.
  virtual void select() = 0;
  std::span<const Event> run_slice(uint64_t instructions) final {
    begin_slice(instructions);
    return end_slice();
  }
};

// Cores with private memory, on several devices: neighbouring ones together, about as many on each.
std::unique_ptr<Backend> make_split_machine(std::vector<std::unique_ptr<DeviceMachine>> machines);

}  // namespace gpusim::cuda
