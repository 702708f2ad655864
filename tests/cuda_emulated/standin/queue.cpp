#include "standin/queue.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "standin/chip.h"
#include "standin/memory.h"
#include "standin/random.h"
#include "standin/report.h"

namespace cuda_emulated {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

// Work in so many submissions begins at once.
constexpr uint32_t kBeginsOneIn = 4;

std::vector<std::unique_ptr<CudaEmulatedStream>> streams;  // the devices' default streams first
bool at_work = false;
uint64_t moments = 0;
std::vector<uint64_t> waited_for;  // per device
Turn turn;

void make_default_streams() {
  static const bool made = [] {
    for (size_t device = 0; device < chips().size(); ++device) {
      streams.push_back(std::make_unique<CudaEmulatedStream>());
      streams.back()->device = static_cast<int>(device);
    }
    return true;
  }();
  static_cast<void>(made);
}
CudaEmulatedStream& default_stream(int device) {
  make_default_streams();
  return *streams[static_cast<size_t>(device)];
}

cudaError_t sticky() { return static_cast<cudaError_t>(sticky_error()); }

// False: nothing could be done.
bool step(CudaEmulatedStream& stream) {
  if (stream.work.empty()) return false;
  const int caller = current_device();
  set_current_device(stream.device);
  bool is_done = false;
  {
    const OpenMemory open;
    const auto work = stream.work.front();
    is_done = work();
  }
  set_current_device(caller);
  if (is_done) stream.work.pop_front();
  return is_done;
}

// Random steps of all streams until `done`.
template <class F>
cudaError_t work_until(F done) {
  if (at_work) return sticky();  // from within a kernel's work: nothing waits
  at_work = true;
  while (!done() && sticky_error() == 0) {
    const auto first = chance().below(static_cast<uint32_t>(streams.size()));
    bool moved = false;
    for (size_t i = 0; i < streams.size() && !moved; ++i)
      moved = step(*streams[(first + i) % streams.size()]);
    if (!moved) report(cudaErrorLaunchFailure, "streams wait for each other's events");
  }
  at_work = false;
  return sticky();
}

bool has_nothing_to_do(int device) {
  return std::all_of(streams.begin(), streams.end(),
                     [=](const auto& s) { return s->device != device || s->work.empty(); });
}

void note_wait(int device) {
  if (chips().empty()) return;
  waited_for.resize(chips().size());
  if (has_nothing_to_do(device)) waited_for[static_cast<size_t>(device)] = ++moments;
}

}  // namespace

std::recursive_mutex& interface_lock() {
  static std::recursive_mutex lock;
  return lock;
}

CudaEmulatedStream* stream_of(cudaStream_t stream) {
  if (stream == nullptr) return &default_stream(current_device());
  const auto same = [&](const auto& s) { return s.get() == stream; };
  return std::any_of(streams.begin(), streams.end(), same) ? stream : nullptr;
}

cudaError_t submit(cudaStream_t name, std::function<void()> work) {
  CudaEmulatedStream* const stream = stream_of(name);
  if (!stream) return cudaErrorInvalidResourceHandle;
  // A device's default stream begins when the others' earlier work is done, and they after its.
  CudaEmulatedStream& first = default_stream(stream->device);
  if (stream == &first) {
    work_until([&] {
      return std::all_of(streams.begin(), streams.end(), [&](const auto& s) {
        return s.get() == &first || s->device != first.device || !s->blocking || s->work.empty();
      });
    });
  } else if (stream->blocking) {
    work_until([&] { return first.work.empty(); });
  }
  waited_for.resize(chips().size());
  Turn own{stream->device, ++moments, waited_for};
  stream->work.push_back([work = std::move(work), own = std::move(own)] {
    turn = own;
    work();
    return true;
  });
  // The host does not know of it.
  if (chance().below(kBeginsOneIn) == 0)
    return work_until([=] { return stream->work.empty(); });
  return sticky();
}

cudaError_t finish(cudaStream_t stream) {
  const CudaEmulatedStream* const s = stream_of(stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  const cudaError_t status = work_until([=] { return s->work.empty(); });
  note_wait(s->device);
  return status;
}

cudaError_t finish_all() {
  const int device = current_device();
  const cudaError_t status = work_until([device] { return has_nothing_to_do(device); });
  note_wait(device);
  return status;
}
const Turn& running_turn() { return turn; }

void drop_work() {
  for (const auto& s : streams) s->work.clear();
}

}  // namespace cuda_emulated

using namespace cuda_emulated;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Lock lock(interface_lock());
  make_default_streams();
  streams.push_back(std::make_unique<CudaEmulatedStream>());
  streams.back()->device = current_device();
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
