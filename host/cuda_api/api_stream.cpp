// Runtime API: streams, events, host functions, capture.
#include <algorithm>
#include <chrono>

#include "host/cuda_api/alias.h"
#include "host/cuda_api/graph_nodes.h"
#include "host/cuda_api/runtime.h"

using namespace gpusim::cuda_api;

namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int capture_status(const Capture* capture) {
  constexpr int kNone = 0, kActive = 1, kInvalidated = 2;
  if (capture == nullptr) return kNone;
  return capture->graph->is_invalidated ? kInvalidated : kActive;
}

enum EventFlags : unsigned { kBlockingSync = 1, kDisableTiming = 2, kInterprocess = 4 };

void make_event(void** event, unsigned flags) {
  require(event != nullptr && (flags & ~7u) == 0);
  Runtime& r = runtime();
  auto made = std::make_unique<Event>();
  made->flags = flags;
  const std::lock_guard lock(r.mutex);
  made->id = ++r.events_made;
  r.timeline.note_event(made->id);
  r.events.insert(made.get());
  *event = made.release();
}

void make_stream(void** stream, unsigned flags, int priority) {
  require(stream != nullptr && flags <= 1);
  Runtime& r = runtime();
  auto made = std::make_unique<Stream>();
  made->flags = flags;
  made->priority = std::clamp(priority, -5, 0);
  const std::lock_guard lock(r.mutex);
  made->id = ++r.streams_made;
  r.timeline.note_stream(made->id);
  r.streams.insert(made.get());
  *stream = made.release();
}

struct Callback {
  void (*function)(void* stream, int status, void* argument);
};

}  // namespace

GPUSIM_CUDA_API int cudaStreamCreate(void** stream) {
  return call("cudaStreamCreate", [&] { make_stream(stream, 0, 0); });
}
GPUSIM_CUDA_API int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] { make_stream(stream, flags, 0); });
}
GPUSIM_CUDA_API int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority", [&] { make_stream(stream, flags, priority); });
}
GPUSIM_CUDA_API int cudaStreamDestroy(void* stream) {
  return call("cudaStreamDestroy", [&] {
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    Stream& s = r.stream(stream);
    require(&s != &r.default_stream, kInvalidResourceHandle);
    r.streams.erase(&s);  // its work goes on
    delete &s;
  });
}
GPUSIM_CUDA_API int cudaStreamSynchronize(void* stream) {
  return call("cudaStreamSynchronize", [&] { runtime().synchronize(stream); });
}
GPUSIM_CUDA_API int cudaStreamQuery(void* stream) {
  return call("cudaStreamQuery", [&] {
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    const Stream& s = r.stream(stream);
    r.require_no_capture(s);
    require(r.queue.is_done(s.last), kNotReady);
  });
}
GPUSIM_CUDA_API int cudaStreamGetFlags(void* stream, unsigned* flags) {
  return call("cudaStreamGetFlags", [&] {
    require(flags != nullptr);
    const std::lock_guard lock(runtime().mutex);
    *flags = runtime().stream(stream).flags;
  });
}
GPUSIM_CUDA_API int cudaStreamGetPriority(void* stream, int* priority) {
  return call("cudaStreamGetPriority", [&] {
    require(priority != nullptr);
    const std::lock_guard lock(runtime().mutex);
    *priority = runtime().stream(stream).priority;
  });
}
GPUSIM_CUDA_API int cudaStreamGetDevice(void* stream, int* device) {
  return call("cudaStreamGetDevice", [&] {
    require(device != nullptr);
    const std::lock_guard lock(runtime().mutex);
    runtime().stream(stream);
    *device = 0;
  });
}
GPUSIM_CUDA_API int cudaStreamGetId(void* stream, unsigned long long* id) {
  return call("cudaStreamGetId", [&] {
    require(id != nullptr);
    const std::lock_guard lock(runtime().mutex);
    runtime().stream(stream);
    *id = reinterpret_cast<uintptr_t>(stream);
  });
}
// Attributes of streams are hints to caches and to the scheduler.
GPUSIM_CUDA_API int cudaStreamSetAttribute(void* stream, int, const void*) {
  return call("cudaStreamSetAttribute", [&] {
    const std::lock_guard lock(runtime().mutex);
    runtime().stream(stream);
  });
}
GPUSIM_CUDA_API int cudaStreamAttachMemAsync(void* stream, void*, size_t, unsigned) {
  return call("cudaStreamAttachMemAsync", [&] {
    const std::lock_guard lock(runtime().mutex);
    runtime().stream(stream);
  });
}
GPUSIM_CUDA_API int cudaLaunchHostFunc(void* stream, HostFunction function, void* argument) {
  return call("cudaLaunchHostFunc", [&] {
    require(function != nullptr);
    runtime().submit(stream, {.type = NodeType::kHost, .work = [=] { function(argument); }});
  });
}
GPUSIM_CUDA_API int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*),
                                          void* argument, unsigned flags) {
  return call("cudaStreamAddCallback", [&] {
    require(function != nullptr && flags == 0);
    runtime().submit(stream, {.type = NodeType::kHost,
                              .work = [=] { function(stream, runtime().sticky, argument); }});
  });
}

GPUSIM_CUDA_API int cudaEventCreate(void** event) {
  return call("cudaEventCreate", [&] { make_event(event, 0); });
}
GPUSIM_CUDA_API int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] { make_event(event, flags); });
}
GPUSIM_CUDA_API int cudaEventDestroy(void* event) {
  return call("cudaEventDestroy", [&] {
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    Event& e = r.event(event);
    r.events.erase(&e);
    delete &e;
  });
}
GPUSIM_CUDA_API int cudaEventRecord(void* event, void* stream) {
  return call("cudaEventRecord", [&] {
    Runtime& r = runtime();
    std::shared_ptr<std::atomic<int64_t>> time;
    uint64_t id = 0;
    {
      const std::lock_guard lock(r.mutex);
      Event& e = r.event(event);
      Stream& s = r.stream(stream);
      id = e.id;
      if (s.capture != nullptr) {
        e.captured = s.capture->last;
        e.captured_in = s.capture->graph;
        return;
      }
      e.captured_in = nullptr;
      // What asked for the time before keeps the old record.
      e.time_ns = time = std::make_shared<std::atomic<int64_t>>(0);
      e.was_recorded = true;
    }
    r.submit(stream,
             {.type = NodeType::kRecordEvent, .work = [time] { *time = now_ns(); }, .event = id});
    const std::lock_guard lock(r.mutex);
    r.event(event).number = r.stream(stream).last;
  });
}
GPUSIM_CUDA_API int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
GPUSIM_CUDA_API int cudaEventQuery(void* event) {
  return call("cudaEventQuery", [&] {
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    const Event& e = r.event(event);
    require(!e.was_recorded || r.queue.is_done(e.number), kNotReady);
  });
}
GPUSIM_CUDA_API int cudaEventSynchronize(void* event) {
  return call("cudaEventSynchronize", [&] {
    Runtime& r = runtime();
    uint64_t number = 0;
    {
      const std::lock_guard lock(r.mutex);
      number = r.event(event).number;
    }
    r.wait_for(number);
  });
}
GPUSIM_CUDA_API int cudaEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return call("cudaEventElapsedTime", [&] {
    require(milliseconds != nullptr);
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    const Event &b = r.event(begin), &e = r.event(end);
    require(((b.flags | e.flags) & kDisableTiming) == 0 && b.was_recorded && e.was_recorded,
            kInvalidResourceHandle);
    require(r.queue.is_done(b.number) && r.queue.is_done(e.number), kNotReady);
    *milliseconds = static_cast<float>(static_cast<double>(*e.time_ns - *b.time_ns) * 1e-6);
  });
}
GPUSIM_CUDA_API int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  return call("cudaStreamWaitEvent", [&] {
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    Event& e = r.event(event);
    Stream& s = r.stream(stream);
    // One queue in order: what the event stands for has been submitted before, if it has been
    // recorded at all. Only captured work needs an edge.
    if (e.captured_in == nullptr) return;
    if (s.capture == nullptr) {
      s.capture = std::make_unique<Capture>();
      s.capture->graph = e.captured_in;
    }
    require(s.capture->graph == e.captured_in, kStreamCaptureUnsupported);
    for (Node* node : e.captured)
      if (std::find(s.capture->last.begin(), s.capture->last.end(), node) == s.capture->last.end())
        s.capture->last.push_back(node);
  });
}

GPUSIM_CUDA_API int cudaStreamBeginCapture(void* stream, int) {
  return call("cudaStreamBeginCapture", [&] {
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    Stream& s = r.stream(stream);
    require(&s != &r.default_stream, kStreamCaptureUnsupported);
    require(s.capture == nullptr, kIllegalState);
    auto graph = std::make_unique<Graph>();
    s.capture = std::make_unique<Capture>();
    s.capture->graph = graph.get();
    s.capture->is_origin = true;
    r.graphs.insert(graph.release());
  });
}
GPUSIM_CUDA_API int cudaStreamEndCapture(void* stream, void** graph) {
  return call("cudaStreamEndCapture", [&] {
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    Stream& s = r.stream(stream);
    require(s.capture != nullptr, kIllegalState);
    require(s.capture->is_origin, kStreamCaptureUnmatched);
    const bool is_into_given = s.capture->is_into_given;
    require(graph != nullptr || is_into_given);
    Graph* const captured = s.capture->graph;
    // Streams that were drawn in by events leave with it.
    for (Stream* other : r.streams)
      if (other->capture != nullptr && other->capture->graph == captured) other->capture.reset();
    for (Event* e : r.events)
      if (e->captured_in == captured) e->captured_in = nullptr;
    if (graph != nullptr) *graph = nullptr;
    if (captured->is_invalidated) {
      if (is_into_given) {
        captured->is_invalidated = false;
      } else {
        r.graphs.erase(captured);
        delete captured;
      }
      require(false, kStreamCaptureInvalidated);
    }
    if (graph != nullptr) *graph = captured;
  });
}
GPUSIM_CUDA_API int cudaStreamBeginCaptureToGraph(void* stream, void* graph,
                                                  void* const* dependencies, const void* edge_data,
                                                  size_t count, int) {
  return call("cudaStreamBeginCaptureToGraph", [&] {
    require(edge_data == nullptr, kNotSupported);
    require(count == 0 || dependencies != nullptr);
    Runtime& r = runtime();
    const std::lock_guard lock(r.mutex);
    Stream& s = r.stream(stream);
    require(&s != &r.default_stream, kStreamCaptureUnsupported);
    require(s.capture == nullptr, kIllegalState);
    Graph& into = graph_of(graph);
    auto capture = std::make_unique<Capture>();
    for (size_t i = 0; i < count; ++i) {
      require(into.has(static_cast<Node*>(dependencies[i])));
      capture->last.push_back(static_cast<Node*>(dependencies[i]));
    }
    capture->graph = &into;
    capture->is_origin = capture->is_into_given = true;
    s.capture = std::move(capture);
  });
}
// What is given out is valid until the stream captures more.
GPUSIM_CUDA_API int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id,
                                             void** graph, Node* const** dependencies,
                                             const void** edge_data, size_t* count) {
  return call("cudaStreamGetCaptureInfo", [&] {
    require(status != nullptr);
    const std::lock_guard lock(runtime().mutex);
    const auto& capture = runtime().stream(stream).capture;
    *status = capture_status(capture.get());
    if (edge_data != nullptr) *edge_data = nullptr;
    if (capture == nullptr) return;
    if (id != nullptr) *id = reinterpret_cast<unsigned long long>(capture->graph);
    if (graph != nullptr) *graph = capture->graph;
    if (dependencies != nullptr) *dependencies = capture->last.data();
    if (count != nullptr) *count = capture->last.size();
  });
}
GPUSIM_CUDA_API int cudaStreamUpdateCaptureDependencies(void* stream, void** dependencies,
                                                        const void* edge_data, size_t count,
                                                        unsigned flags) {
  return call("cudaStreamUpdateCaptureDependencies", [&] {
    constexpr unsigned kSetThem = 1;
    require(edge_data == nullptr, kNotSupported);
    require((count == 0 || dependencies != nullptr) && flags <= kSetThem);
    const std::lock_guard lock(runtime().mutex);
    const auto& capture = runtime().stream(stream).capture;
    require(capture != nullptr, kIllegalState);
    std::vector<Node*> last;
    if (flags != kSetThem) last = capture->last;
    for (size_t i = 0; i < count; ++i) {
      auto* const node = static_cast<Node*>(dependencies[i]);
      require(capture->graph->has(node));
      if (std::find(last.begin(), last.end(), node) == last.end()) last.push_back(node);
    }
    capture->last = std::move(last);
  });
}
GPUSIM_CUDA_API int cudaStreamIsCapturing(void* stream, int* status) {
  return call("cudaStreamIsCapturing", [&] {
    require(status != nullptr);
    const std::lock_guard lock(runtime().mutex);
    *status = capture_status(runtime().stream(stream).capture.get());
  });
}
GPUSIM_CUDA_API int cudaThreadExchangeStreamCaptureMode(int* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&] { require(mode != nullptr); });
}

GPUSIM_ALIAS(cudaStreamSynchronize, _ptsz)
GPUSIM_ALIAS(cudaStreamQuery, _ptsz)
GPUSIM_ALIAS(cudaStreamGetFlags, _ptsz)
GPUSIM_ALIAS(cudaStreamGetPriority, _ptsz)
GPUSIM_ALIAS(cudaStreamGetDevice, _ptsz)
GPUSIM_ALIAS(cudaStreamGetId, _ptsz)
GPUSIM_ALIAS(cudaStreamSetAttribute, _ptsz)
GPUSIM_ALIAS(cudaStreamAttachMemAsync, _ptsz)
GPUSIM_ALIAS(cudaLaunchHostFunc, _ptsz)
GPUSIM_ALIAS(cudaStreamAddCallback, _ptsz)
GPUSIM_ALIAS(cudaEventRecord, _ptsz)
GPUSIM_ALIAS(cudaEventRecordWithFlags, _ptsz)
GPUSIM_ALIAS(cudaStreamWaitEvent, _ptsz)
GPUSIM_ALIAS(cudaStreamBeginCapture, _ptsz)
GPUSIM_ALIAS(cudaStreamEndCapture, _ptsz)
GPUSIM_ALIAS(cudaStreamIsCapturing, _ptsz)
GPUSIM_ALIAS(cudaStreamBeginCaptureToGraph, _ptsz)
GPUSIM_ALIAS(cudaStreamGetCaptureInfo, _ptsz)
GPUSIM_ALIAS(cudaStreamUpdateCaptureDependencies, _ptsz)
