// Where a lane may be exchanged for another: at atomic operations and fences.
#pragma once
#include <cstdint>

namespace cuda_emulated {

extern uint32_t until_preemption;  // atomic operations until then
void preempt();
__attribute__((always_inline)) inline void atomic_point() {
  if (--until_preemption == 0) preempt();
}

}  // namespace cuda_emulated
