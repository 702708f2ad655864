// Kernels and copies: when they began and ended on the GPU. Three ways (thesis, section 3.3.2): the
// host waits for each (synchronous), events in the stream around it, or host functions in the
// stream before and after it (callbacks).
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "energy/power/attach/preload/preload.h"
#include "energy/power/microbench/cuda_types.h"

namespace gpusim::power::attach {

using namespace cuda;

extern "C" void* (*gpusim_attach_real_dlsym)(void*, const char*);

namespace {

constexpr uint64_t kResyncNs = 500'000'000;  // clocks of host and GPU drift apart
constexpr size_t kMostPending = 4096;

struct Operation {
  RecordKind kind;
  uint32_t name;
  Stream stream = nullptr;
  uint64_t bytes = 0;
  uint32_t blocks = 0, threads = 0, device = 0, thread = 0;
  uint64_t host_begin = 0, host_end = 0;
  Event begin = nullptr, end = nullptr;
  std::atomic<uint64_t> callback_begin{0};
};

struct Driver {
  Result (*stream_wait)(Stream);
  Result (*stream_capturing)(Stream, int*);
  Result (*context_device)(Device*);
  Result (*context_current)(Context*);
  Result (*device_pci)(char*, int, Device);
  Result (*function_name)(const char**, Function);
  Result (*event_create)(Event*, unsigned);
  Result (*event_record)(Event, Stream);
  Result (*event_wait)(Event);
  Result (*event_query)(Event);
  Result (*event_elapsed)(float*, Event, Event);
  Result (*event_destroy)(Event);
  Result (*stream_create)(Stream*, unsigned);
  Result (*host_function)(Stream, void (*)(void*), void*);
};

struct Base {  // one moment on both clocks, for each context
  Event event = nullptr;
  Stream stream = nullptr;
  uint64_t host_ns = 0;
};

struct State {
  std::mutex mutex;
  std::unordered_map<void*, std::string> names;  // of CUfunction and CUkernel
  std::deque<Operation*> pending;                // of the event method
  std::unordered_map<Context, Base> bases;
  bool has_exit_handler = false;
};

State& state() {
  static State* s = new State;
  return *s;
}
std::atomic<void*> driver_handle{nullptr};

template <class F>
void get(F& function, std::initializer_list<const char*> names) {
  function = nullptr;
  for (const char* name : names)
    if (function == nullptr) function = reinterpret_cast<F>(driver_function(name));
}

// nullptr where the driver is not there, which cannot be when one of its functions is called.
const Driver& driver() {
  static const Driver d = [] {
    Driver f{};
    get(f.stream_wait, {"cuStreamSynchronize"});
    get(f.stream_capturing, {"cuStreamIsCapturing"});
    get(f.context_device, {"cuCtxGetDevice"});
    get(f.context_current, {"cuCtxGetCurrent"});
    get(f.device_pci, {"cuDeviceGetPCIBusId"});
    get(f.function_name, {"cuFuncGetName"});
    get(f.event_create, {"cuEventCreate"});
    get(f.event_record, {"cuEventRecord"});
    get(f.event_wait, {"cuEventSynchronize"});
    get(f.event_query, {"cuEventQuery"});
    get(f.event_elapsed, {"cuEventElapsedTime"});
    get(f.event_destroy, {"cuEventDestroy_v2", "cuEventDestroy"});
    get(f.stream_create, {"cuStreamCreate"});
    get(f.host_function, {"cuLaunchHostFunc"});
    return f;
  }();
  return d;
}

bool has_events(const Driver& d) {
  return d.event_create && d.event_record && d.event_wait && d.event_query && d.event_elapsed &&
         d.event_destroy && d.stream_create && d.context_current;
}

void write_operation(const Operation& op, uint64_t begin, uint64_t end, bool is_estimated) {
  write_record({.kind = op.kind,
                .name = op.name,
                .begin_ns = begin,
                .end_ns = end,
                .stream = reinterpret_cast<uint64_t>(op.stream),
                .bytes = op.bytes,
                .blocks = op.blocks,
                .threads = op.threads,
                .device = op.device,
                .estimated = is_estimated ? 1u : 0u,
                .thread = op.thread});
}

// Host time of the base's event, between the moments before it was recorded and after it passed;
// the narrowest of some tries.
bool synchronize_clocks(const Driver& d, Base& base) {
  if (base.stream == nullptr && d.stream_create(&base.stream, 1) != kSuccess) return false;
  uint64_t narrowest = ~uint64_t{0};
  for (int i = 0; i < 3; ++i) {
    Event event = nullptr;
    if (d.event_create(&event, kEventDefault) != kSuccess) return false;
    const uint64_t before = now_ns();
    if (d.event_record(event, base.stream) != kSuccess || d.event_wait(event) != kSuccess) {
      d.event_destroy(event);
      return false;
    }
    const uint64_t after = now_ns();
    if (after - before >= narrowest) {
      d.event_destroy(event);
      continue;
    }
    narrowest = after - before;
    if (base.event != nullptr) d.event_destroy(base.event);
    base.event = event;
    base.host_ns = before + (after - before) / 2;
  }
  return true;
}

bool host_time(const Driver& d, const Base& base, Event event, uint64_t& ns) {
  float ms = 0;
  if (d.event_elapsed(&ms, base.event, event) != kSuccess) return false;
  ns = base.host_ns + static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(ms) * 1e6));
  return true;
}

// With state().mutex held.
void write_finished_events(State& s, const Driver& d, bool wait) {
  while (!s.pending.empty()) {
    Operation* op = s.pending.front();
    if (wait ? d.event_wait(op->end) != kSuccess : d.event_query(op->end) == kNotReady) {
      if (!wait) return;
      write_operation(*op, op->host_begin, op->host_end, true);
    } else {
      Context context = nullptr;
      d.context_current(&context);
      Base& base = s.bases[context];
      uint64_t begin = 0, end = 0;
      if ((base.event == nullptr && !synchronize_clocks(d, base)) ||
          !host_time(d, base, op->begin, begin) || !host_time(d, base, op->end, end))
        write_operation(*op, op->host_begin, op->host_end, true);
      else
        write_operation(*op, begin, end, false);
    }
    d.event_destroy(op->begin);
    d.event_destroy(op->end);
    delete op;
    s.pending.pop_front();
  }
}

void finish_at_exit() {
  if (log_is_open()) finish_operations(true);
}

std::string name_of(Function function) {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    const auto at = s.names.find(function);
    if (at != s.names.end()) return at->second;
  }
  const char* name = nullptr;
  const Driver& d = driver();
  if (d.function_name != nullptr && d.function_name(&name, function) == kSuccess && name)
    return name;
  return "(unnamed kernel)";
}

void remember(void* function, const std::string& name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.names[function] = name;
}

// A stream that records a graph must not be waited for: nothing runs, and the record would break.
bool is_capturing(const Driver& d, Stream stream) {
  int status = 0;
  return d.stream_capturing != nullptr &&
         (d.stream_capturing(stream, &status) != kSuccess || status != 0);
}

void begin_callback(void* data) { static_cast<Operation*>(data)->callback_begin = now_ns(); }
void end_callback(void* data) {
  auto* op = static_cast<Operation*>(data);
  const uint64_t begin = op->callback_begin;
  write_operation(*op, begin != 0 ? begin : op->host_begin, now_ns(), begin == 0);
  delete op;
}

Operation* describe(const Target& t, const Frame& f) {
  auto* op = new Operation{.kind = RecordKind::kKernel, .name = 0};
  const auto low = [&](int i) { return static_cast<uint32_t>(f.argument(i)); };
  switch (t.role) {
    case Role::kLaunch:
      op->name = text_number(name_of(f.pointer<Function>(0)).c_str());
      op->blocks = low(1) * low(2) * low(3);
      op->threads = low(4) * low(5) * low(6);
      op->stream = f.pointer<Stream>(8);
      break;
    case Role::kLaunchEx: {
      const auto* c = f.pointer<const LaunchConfig*>(0);
      op->name = text_number(name_of(f.pointer<Function>(1)).c_str());
      if (c != nullptr) {
        op->blocks = c->grid_x * c->grid_y * c->grid_z;
        op->threads = c->block_x * c->block_y * c->block_z;
        op->stream = c->stream;
      }
      break;
    }
    case Role::kLaunchOld:
      op->name = text_number(name_of(f.pointer<Function>(0)).c_str());
      break;
    case Role::kGraph:
      op->kind = RecordKind::kGraph;
      op->name = text_number("(graph)");
      op->stream = f.pointer<Stream>(1);
      break;
    default:
      op->kind = t.role == Role::kSet ? RecordKind::kSet : RecordKind::kCopy;
      op->name = text_number(t.name);
      if (t.bytes_at >= 0) op->bytes = f.argument(t.bytes_at);
      if (t.stream_at >= 0) op->stream = f.pointer<Stream>(t.stream_at);
      break;
  }
  if (op->stream == nullptr && t.is_per_thread) op->stream = reinterpret_cast<Stream>(2);
  op->thread = thread_number();
  return op;
}

bool is_operation(Role role) {
  switch (role) {
    case Role::kLaunch:
    case Role::kLaunchEx:
    case Role::kLaunchOld:
    case Role::kGraph:
    case Role::kCopy:
    case Role::kSet:
      return true;
    default:
      return false;
  }
}

void discard(const Driver& d, Operation* op) {
  if (op->begin != nullptr) d.event_destroy(op->begin);
  if (op->end != nullptr) d.event_destroy(op->end);
  delete op;
}

}  // namespace

void learn_driver(void* handle) {
  void* none = nullptr;
  driver_handle.compare_exchange_strong(none, handle);
}

void* driver_function(const char* name) {
  void* handle = driver_handle;
  if (handle == nullptr) {
    handle = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    learn_driver(handle);
  }
  return gpusim_attach_real_dlsym(handle, name);
}

void forget_after_fork() {
  State& s = state();
  new (&s.mutex) std::mutex;
  s.pending.clear();
  s.bases.clear();
}

void before_call(const Target& t, Frame& f) {
  if (t.role == Role::kEndOfContext) finish_operations(true);
  if (!is_operation(t.role)) return;
  const Driver& d = driver();
  Operation* op = describe(t, f);
  if (is_capturing(d, op->stream)) {
    note("what was recorded into graphs is listed as a graph when it runs");
    delete op;
    return;
  }
  Device device = 0;
  if (d.context_device != nullptr && d.context_device(&device) == kSuccess)
    op->device = static_cast<uint32_t>(device);
  char pci[32] = {};
  if (d.device_pci != nullptr && d.device_pci(pci, sizeof pci, device) == kSuccess)
    write_pci_bus(pci);
  switch (timing()) {
    case Timing::kSynchronous:
      if (d.stream_wait != nullptr) d.stream_wait(op->stream);
      break;
    case Timing::kEvents: {
      State& s = state();
      const std::lock_guard lock(s.mutex);
      Context context = nullptr;
      if (has_events(d)) d.context_current(&context);
      Base& base = s.bases[context];
      const bool is_old = base.event == nullptr || now_ns() - base.host_ns > kResyncNs;
      if (!has_events(d) ||
          (is_old &&
           (write_finished_events(s, d, false), s.pending.empty() || base.event == nullptr) &&
           !synchronize_clocks(d, base)) ||
          d.event_create(&op->begin, kEventDefault) != kSuccess ||
          d.event_create(&op->end, kEventDefault) != kSuccess ||
          d.event_record(op->begin, op->stream) != kSuccess) {
        note("events failed: times of some operations are the host's");
        if (op->begin != nullptr) d.event_destroy(op->begin);
        if (op->end != nullptr) d.event_destroy(op->end);
        op->begin = op->end = nullptr;
      }
      break;
    }
    case Timing::kCallbacks:
      if (d.host_function == nullptr ||
          d.host_function(op->stream, begin_callback, op) != kSuccess) {
        note("callbacks failed: times of some operations are the host's");
        op->callback_begin = 1;
      }
      break;
  }
  op->host_begin = now_ns();
  f.operation = op;
}

void after_call(const Target& t, Frame& f) {
  const Driver& d = driver();
  const auto result = static_cast<Result>(f.result);
  if (auto* op = static_cast<Operation*>(f.operation)) {
    const Timing how = timing();
    if (result != kSuccess && how != Timing::kCallbacks) {
      discard(d, op);
    } else if (how == Timing::kSynchronous) {
      if (d.stream_wait != nullptr) d.stream_wait(op->stream);
      write_operation(*op, op->host_begin, now_ns(), false);
      delete op;
    } else if (how == Timing::kEvents) {
      op->host_end = now_ns();
      State& s = state();
      const std::lock_guard lock(s.mutex);
      if (op->end == nullptr || d.event_record(op->end, op->stream) != kSuccess) {
        write_operation(*op, op->host_begin, op->host_end, true);
        discard(d, op);
      } else {
        s.pending.push_back(op);
        if (s.pending.size() > kMostPending) write_finished_events(s, d, false);
      }
    } else if (op->callback_begin == 1 ||
               d.host_function(op->stream, end_callback, op) != kSuccess) {
      // The first callback may still come: what it writes to is kept.
      write_operation(*op, op->host_begin, now_ns(), true);
    }
  }
  if (result != kSuccess) return;
  switch (t.role) {
    case Role::kSynchronize:
      finish_operations(false);
      break;
    case Role::kNameModule:
    case Role::kNameLibrary:
      if (f.pointer<void**>(0) != nullptr && f.pointer<const char*>(2) != nullptr)
        remember(*f.pointer<void**>(0), f.pointer<const char*>(2));
      break;
    case Role::kNameKernel: {
      std::string name;
      {
        State& s = state();
        const std::lock_guard lock(s.mutex);
        const auto at = s.names.find(f.pointer<void*>(1));
        if (at != s.names.end()) name = at->second;
      }
      if (!name.empty() && f.pointer<void**>(0) != nullptr) remember(*f.pointer<void**>(0), name);
      break;
    }
    case Role::kGetProcAddress: {
      const char* symbol = f.pointer<const char*>(0);
      void** function = f.pointer<void**>(1);
      if (symbol != nullptr && function != nullptr && *function != nullptr) {
        // Flag 2: the form with a default stream for each thread.
        const bool is_per_thread = (f.argument(3) & 2) != 0;
        *function = thunk_for((std::string(symbol) + (is_per_thread ? "_ptsz" : "")).c_str(),
                              *function, false);
      }
      break;
    }
    case Role::kInit: {
      State& s = state();
      const std::lock_guard lock(s.mutex);
      if (!s.has_exit_handler) {
        s.has_exit_handler = true;
        std::atexit(finish_at_exit);
      }
      break;
    }
    default:
      break;
  }
}

void finish_operations(bool wait) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.pending.empty()) write_finished_events(s, driver(), wait);
}

void classify(Target& t) {
  std::string name = t.name;
  t.role = Role::kPlain;
  if (t.is_runtime) return;
  for (bool again = true; again;) {
    again = false;
    for (const char* end : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"})
      if (name.ends_with(end)) {
        t.is_per_thread |= end[1] == 'p';
        name.resize(name.size() - std::strlen(end));
        again = true;
      }
  }
  const bool is_async = name.ends_with("Async");
  if (name == "cuLaunchKernel" || name == "cuLaunchCooperativeKernel") {
    t.role = Role::kLaunch;
  } else if (name == "cuLaunchKernelEx") {
    t.role = Role::kLaunchEx;
  } else if (name == "cuLaunch" || name == "cuLaunchGrid" || name == "cuLaunchGridAsync") {
    t.role = Role::kLaunchOld;
  } else if (name == "cuGraphLaunch") {
    t.role = Role::kGraph;
  } else if (name.starts_with("cuMemcpy") && name.find("Batch") == std::string::npos) {
    t.role = Role::kCopy;
    const std::string form = name.substr(8, name.size() - 8 - (is_async ? 5 : 0));
    if (form == "HtoD" || form == "DtoH" || form == "DtoD" || form.empty()) {
      t.bytes_at = 2;
      t.stream_at = is_async ? 3 : -1;
    } else if (form == "Peer") {
      t.bytes_at = 4;
      t.stream_at = is_async ? 5 : -1;
    } else if (is_async && (form == "2D" || form == "3D" || form == "3DPeer")) {
      t.stream_at = 1;
    } else if (is_async) {
      t.stream_at = 4;  // between arrays and the host
    }
  } else if (name.starts_with("cuMemsetD")) {
    t.role = Role::kSet;
    t.stream_at = is_async ? (name.find("2D") != std::string::npos ? 5 : 3) : -1;
  } else if (name == "cuStreamSynchronize" || name == "cuCtxSynchronize" ||
             name == "cuEventSynchronize") {
    t.role = Role::kSynchronize;
  } else if (name == "cuCtxDestroy" || name == "cuDevicePrimaryCtxReset" ||
             name == "cuDevicePrimaryCtxRelease") {
    t.role = Role::kEndOfContext;
  } else if (name == "cuModuleGetFunction") {
    t.role = Role::kNameModule;
  } else if (name == "cuLibraryGetKernel") {
    t.role = Role::kNameLibrary;
  } else if (name == "cuKernelGetFunction") {
    t.role = Role::kNameKernel;
  } else if (name == "cuGetProcAddress") {
    t.role = Role::kGetProcAddress;
  } else if (name == "cuInit") {
    t.role = Role::kInit;
  }
}

}  // namespace gpusim::power::attach
