#include "standin/queue.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "standin/memory.h"
#include "standin/random.h"
#include "standin/report.h"

namespace cuda_emulated {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

// Work in so many submissions begins at once.
constexpr uint32_t kBeginsOneIn = 4;

CudaEmulatedStream default_stream;
std::vector<std::unique_ptr<CudaEmulatedStream>> streams;
bool at_work = false;

cudaError_t sticky() { return static_cast<cudaError_t>(sticky_error()); }

// False: nothing could be done.
bool step(CudaEmulatedStream& stream) {
  if (stream.work.empty()) return false;
  const auto work = stream.work.front();
  if (!work()) return false;
  stream.work.pop_front();
  return true;
}

// Random steps of all streams until `done`.
template <class F>
cudaError_t work_until(F done) {
  if (at_work) return sticky();  // from within a kernel's work: nothing waits
  at_work = true;
  const OpenMemory open;
  while (!done() && sticky_error() == 0) {
    const auto first = chance().below(static_cast<uint32_t>(streams.size() + 1));
    bool moved = false;
    for (size_t i = 0; i <= streams.size() && !moved; ++i) {
      const size_t s = (first + i) % (streams.size() + 1);
      moved = step(s == 0 ? default_stream : *streams[s - 1]);
    }
    if (!moved) report(cudaErrorLaunchFailure, "streams wait for each other's events");
  }
  at_work = false;
  return sticky();
}

}  // namespace

std::recursive_mutex& interface_lock() {
  static std::recursive_mutex lock;
  return lock;
}

CudaEmulatedStream* stream_of(cudaStream_t stream) {
  if (stream == nullptr) return &default_stream;
  const auto same = [&](const auto& s) { return s.get() == stream; };
  return std::any_of(streams.begin(), streams.end(), same) ? stream : nullptr;
}

cudaError_t submit(cudaStream_t name, std::function<void()> work) {
  CudaEmulatedStream* const stream = stream_of(name);
  if (!stream) return cudaErrorInvalidResourceHandle;
  // The default stream begins when the others' earlier work is done, and they after its.
  if (stream == &default_stream) {
    work_until([] {
      return std::all_of(streams.begin(), streams.end(),
                         [](const auto& s) { return !s->blocking || s->work.empty(); });
    });
  } else if (stream->blocking) {
    work_until([] { return default_stream.work.empty(); });
  }
  stream->work.push_back([work = std::move(work)] {
    work();
    return true;
  });
  if (chance().below(kBeginsOneIn) == 0) return finish(name);
  return sticky();
}

cudaError_t finish(cudaStream_t stream) {
  const CudaEmulatedStream* const s = stream_of(stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  return work_until([=] { return s->work.empty(); });
}

cudaError_t finish_all() {
  return work_until([] {
    return default_stream.work.empty() &&
           std::all_of(streams.begin(), streams.end(),
                       [](const auto& s) { return s->work.empty(); });
  });
}

}  // namespace cuda_emulated

using namespace cuda_emulated;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Lock lock(interface_lock());
  streams.push_back(std::make_unique<CudaEmulatedStream>());
  streams.back()->blocking = flags != cudaStreamNonBlocking;
  *stream = streams.back().get();
  return sticky();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(interface_lock());
  if (!stream || !stream_of(stream)) return cudaErrorInvalidResourceHandle;
  const cudaError_t status = finish(stream);
  std::erase_if(streams, [=](const auto& s) { return s.get() == stream; });
  return status;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(interface_lock());
  return finish(stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(interface_lock());
  CudaEmulatedStream* const s = stream_of(stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  const bool done = s->work.empty();
  if (!done && chance().below(kBeginsOneIn) == 0) finish(stream);
  return sticky_error() ? sticky() : done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(interface_lock());
  CudaEmulatedStream* const s = stream_of(stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  s->work.push_back([event] { return event->happened; });
  return sticky();
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CudaEmulatedEvent;
  return sticky();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock(interface_lock());
  if (event->recorded) finish(event->stream);
  delete event;
  return sticky();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(interface_lock());
  event->recorded = true;
  event->happened = false;
  event->stream = stream;
  return submit(stream, [event] { event->happened = true; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(interface_lock());
  return work_until([=] { return event->happened; });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(interface_lock());
  if (!event->happened && chance().below(kBeginsOneIn) == 0) cudaEventSynchronize(event);
  return sticky_error() ? sticky() : event->happened ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t end) {
  if (!end->happened) return cudaErrorNotReady;
  *milliseconds = 0.001f;  // no time is emulated
  return sticky();
}
