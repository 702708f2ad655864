// Streams: what the device will do, and when. Work begins when the host waits for it, or earlier,
// by chance.
#pragma once
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "emulated/runtime.h"

struct CudaEmulatedStream {
  std::deque<std::function<bool()>> work;  // false: not yet, an event has not come
  bool blocking = true;  // waits for the device's default stream, and it for this one
  int device = 0;
};
struct CudaEmulatedEvent {
  bool recorded = false;   // into a stream
  bool happened = true;
  cudaStream_t stream = nullptr;
};

namespace cuda_emulated {

// Every call of the interface holds this.
std::recursive_mutex& interface_lock();

// The current device's default stream for null. Null itself if there is no such stream.
CudaEmulatedStream* stream_of(cudaStream_t stream);
// Appends to a stream's work; `work` runs with its device current and the device's memory open.
cudaError_t submit(cudaStream_t stream, std::function<void()> work);
// Runs everything that a stream, or all of the current device, have to do. Returns the sticky
// error.
cudaError_t finish(cudaStream_t stream);
cudaError_t finish_all();
// Of all streams of all devices.
void drop_work();

// The work that runs: whose it is, when it was submitted, and until when the host had waited by
// then for all of each device, in moments that are counted.
struct Turn {
  int device = 0;
  uint64_t submitted = 0;
  std::vector<uint64_t> waited_for;
  // Whether nothing keeps it from running while that runs.
  bool may_overlap(int other_device, uint64_t other_submitted) const {
    return device != other_device &&
           other_submitted > waited_for[static_cast<size_t>(other_device)];
  }
};
const Turn& running_turn();

}  // namespace cuda_emulated
