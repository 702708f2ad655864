// Of a backend that runs cores in lockstep: whether a core that comes back from a system call goes
// before others of its group.
#pragma once
#include "device_sim/core/backend.h"

namespace gpusim {

class CallsFirst {
 public:
  virtual ~CallsFirst() = default;
  virtual void let_calls_go_first() = 0;
};

// Cores are threads of one program, which do different things. Others do the same, and meet again
// sooner if those that are back wait.
inline void let_calls_go_first(Backend& backend) {
  if (auto* const cores = dynamic_cast<CallsFirst*>(&backend)) cores->let_calls_go_first();
}

}  // namespace gpusim
