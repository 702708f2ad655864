// Native code for one core at a time: which blocks have it, and how a core enters and leaves it.
//
// State is in a Frame at every entry and exit. The code counts blocks and instructions as the
// interpreter does, ends at the same places, and leaves whatever needs the host, or faults, to the
// interpreter: it exits before that micro-op.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "device_sim/core/guarded_space.h"
#include "device_sim/core/memory_view.h"
#include "device_sim/native/frame.h"
#include "device_sim/uir/module.h"

namespace gpusim::native {

class Engine {
 public:
  // Has the host's pages carry the guest's permissions, or tells that they cannot: null.
  using Guard = std::function<DirectMemory()>;
  // Null if this processor, or the machine's memory, is not of the kind that code is generated for.
  // No page has permissions yet. `weight`: what an execution adds to its block's count. `guard` is
  // called when the first code is generated, if it could do without looking permissions up.
  static std::unique_ptr<Engine> make(const Module& module, const MemoryView& memory,
                                      uint64_t weight, Guard guard = {});
  virtual ~Engine() = default;

  // Blocks were added, or retired from the code map.
  virtual void module_changed() = 0;
  // Of the pages that the range touches.
  virtual void permissions_changed(uint64_t address, uint64_t size_bytes) = 0;
  // Whether code may run only while the host's pages carry the guest's permissions.
  virtual bool needs_guard() const = 0;
  // They no longer do: from now on code looks permissions up. Between slices.
  virtual void lose_guard() = 0;

  // Between slices. Generates code for blocks without any that were executed so often; `counts`: of
  // executions, by block. Returns the first micro-ops of all that have code now, if there are new
  // ones.
  virtual std::span<const uint32_t> compile(std::span<const uint64_t> counts, uint64_t hot) = 0;
  // Whether compile() should be called although nothing else is hot.
  virtual bool wants_other_code() const = 0;

  // During slices, by any thread.
  // Where the core goes on, if there is code at the micro-op that suits its state. The frame is a
  // CountingFrame's.
  virtual bool run(Frame& frame, uint32_t uop) = 0;
  // What frames need beside slots, budget, depth and block counts, and room for counts.
  virtual void prepare(CountingFrame& frame) const = 0;
  // Adds what was executed to the counts of blocks and classes, unless run() did.
  virtual void settle(CountingFrame& frame, uint64_t* block_counts, uint32_t* classes) const = 0;
};

}  // namespace gpusim::native
