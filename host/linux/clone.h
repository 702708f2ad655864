// What clone(2) and clone3(2) are asked for.
#pragma once
#include <cstdint>

#include "host/linux/kernel.h"

namespace gpusim::host {

enum CloneFlags : uint64_t {
  kCloneVm = 0x100,
  kCloneVfork = 0x4000,
  kCloneThread = 0x10000,
  kCloneSetTls = 0x80000,
  kCloneParentSetTid = 0x100000,
  kCloneChildClearTid = 0x200000,
  kCloneChildSetTid = 0x1000000,
};

struct CloneRequest {
  uint64_t flags = 0, stack_pointer = 0, parent_tid = 0, child_tid = 0, tls = 0;
};

// A new process: the machine as it is, with one thread.
Reply clone_process(Kernel& kernel, Call& call, const CloneRequest& request);

}  // namespace gpusim::host
