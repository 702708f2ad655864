// An engine that runs nothing: offload::Simulator with real device memory, for tests of what stands
// before it. Link fake_simulator.cpp instead of the real one.
#pragma once
#include <cstddef>
#include <cstdint>

#include "host/offload/simulator.h"

namespace gpusim::test {

// About the one engine that lives.

/// Ends the load or launch that came first; step() does so with status 0. False: none waits.
bool finish_one(int status);
size_t waiting();
size_t open_contexts();

}  // namespace gpusim::test
