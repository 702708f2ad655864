// What native code works on while it runs one core. The code keeps the hottest slots in registers
// and writes them back before anybody else looks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "device_sim/core/memory_view.h"
#include "device_sim/uir/uop.h"

namespace gpusim::native {

struct Frame {
  static constexpr uint32_t kCovers = 16;

  uint64_t slots[256];                  // of the core; as many as the module has
  int64_t budget = 0;                   // instructions left
  uint32_t next = 0;                    // micro-op where the core goes on
  uint32_t depth = 0;                   // of calls
  uint64_t* block_counts = nullptr;     // where code counts at once
  const uint8_t* rights = nullptr;      // see PageRights
  uint64_t limit = 0;                   // of addresses: see DirectMemory
  void* const* unit_entries = nullptr;  // see Engine
  uint64_t text_units = 0;
  uint64_t called = 0;  // micro-op that the interpreter's function computes
  // Host addresses of runs of guest memory that may be accessed, for the rest of a strand; 0: none.
  uint64_t covers[kCovers];
  // Instructions per class of completed blocks, but for their sum: where code counts at once.
  // Others' are what the counts behind the frame say.
  alignas(32) uint32_t tally[16] = {};
  // MXCSR without exceptions, and where it is looked at.
  uint32_t mxcsr = 0, mxcsr_now = 0;
  const Uop* uops = nullptr;
  const MemoryView* memory = nullptr;
  uint32_t core = 0;
  uint64_t clock = 0;  // a ClockWord: what the core had executed before it came here
};

// One byte per guest page, by address. A page counts as writable here if it is readable, too.
struct PageRights {
  // Accesses of up to a page that start in this one may go on in the next.
  static constexpr uint8_t kLinearRead = 1, kLinearWrite = 2, kWindowRead = 16, kWindowWrite = 32;
  // This page alone: the same bits, shifted.
  static constexpr int kAlone = 2;
};

// A host thread's frame, and behind it how often code of an engine has completed blocks since
// somebody settled that (Engine::settle).
class CountingFrame {
 public:
  Frame& frame() { return *reinterpret_cast<Frame*>(storage_.get()); }
  uint32_t* counts() { return reinterpret_cast<uint32_t*>(storage_.get() + sizeof(Frame)); }
  static constexpr size_t kAtOnce = 32;  // room is for a multiple of that
  // Makes room, while all counts are 0.
  void reserve(size_t counts);

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{alignof(Frame)}); }
  };
  std::unique_ptr<std::byte, Free> storage_;
  size_t room_ = 0;
};

}  // namespace gpusim::native
