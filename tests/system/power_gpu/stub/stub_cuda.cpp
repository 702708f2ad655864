// Our stand-in for libcuda.so.1: see stub_gpu.h. Settings from the environment:
//   GPUSIM_STUB_TRUTH    a file that gets a line "BEGIN END WATTS NAME" for each kernel and copy
//   GPUSIM_STUB_KERNELS  "NAME=SECONDS:WATTS,...": kernels whose names contain NAME
//   GPUSIM_STUB_DRIFT    parts per million that the clock of events runs fast
//   GPUSIM_STUB_FAIL     a function that fails with "unknown error" (999)
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "energy/power/microbench/cuda_types.h"
#include "tests/system/power_gpu/stub/stub_gpu.h"

using namespace gpusim::power::cuda;

namespace {

constexpr double kClockHz = 1e9;
constexpr int kThreadsPerSm = 1024;
constexpr Result kUnknownError = 999;

double monotonic() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

uint64_t hash_of(std::string_view text) {
  uint64_t h = 1469598103934665603u;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

// "add.s32" of "@%q add.s32 %ut, ..."
std::string opcode_of(std::string_view statement) {
  std::istringstream in{std::string(statement)};
  std::string word;
  while (in >> word && word.starts_with('@')) {
  }
  return word;
}

struct StubModule {
  std::vector<std::string> body;        // statements of the loop
  std::vector<std::string> parameters;  // names, in order
  bool is_o0 = false;
};

struct StubFunction {
  std::string name;
  StubModule* module = nullptr;
};

struct StubEvent {
  double time = -1;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  gpusim_stub_model model{20, 0, 1, 1.5, 4};
  gpusim_stub_now now_function = nullptr;
  gpusim_stub_sleep sleep_function = nullptr;
  gpusim_stub_work work_function = nullptr;
  void* user = nullptr;
  double busy_until = 0;
  std::map<Stream, double> stream_until;
  std::map<Stream, int> callbacks_waiting;
  size_t launches = 0;
  bool is_initialized = false;
  std::vector<std::unique_ptr<StubModule>> modules;
  std::vector<std::unique_ptr<StubFunction>> functions;
  int truth_fd = -1;

  double now() { return now_function != nullptr ? now_function(user) : monotonic(); }
  void sleep_until(double time) {
    if (sleep_function != nullptr) {
      sleep_function(user, time);
      return;
    }
    for (double left; (left = time - monotonic()) > 0;) {
      timespec t{};
      t.tv_sec = static_cast<time_t>(left);
      t.tv_nsec = static_cast<long>((left - std::floor(left)) * 1e9);
      nanosleep(&t, nullptr);
    }
  }
};

// Never destroyed: threads that the program leaves behind may still call.
State& state() {
  static State* s = new State;
  return *s;
}
thread_local Context current_context = nullptr;

bool shall_fail(const char* name) {
  const char* which = std::getenv("GPUSIM_STUB_FAIL");
  return which != nullptr && std::strcmp(which, name) == 0;
}

void write_truth(State& s, const std::string& name, double begin, double end, double watts) {
  const char* path = std::getenv("GPUSIM_STUB_TRUTH");
  if (path == nullptr) return;
  char line[512];
  if (s.truth_fd < 0) {
    s.truth_fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const int n = std::snprintf(line, sizeof line, "# idle %.6f\n", s.model.idle_w);
    if (::write(s.truth_fd, line, static_cast<size_t>(n)) != n) std::abort();
  }
  const int n =
      std::snprintf(line, sizeof line, "%.9f %.9f %.6f %.200s\n", begin, end, watts, name.c_str());
  if (::write(s.truth_fd, line, static_cast<size_t>(n)) != n) std::abort();
}

// The device does one thing after another, whatever the stream.
void queue_work(Stream stream, const std::string& name, double seconds, double watts) {
  State& s = state();
  double begin = 0, end = 0;
  {
    const std::lock_guard lock(s.mutex);
    begin = std::max({s.now(), s.busy_until, s.stream_until[stream]});
    end = begin + seconds;
    s.busy_until = s.stream_until[stream] = end;
    ++s.launches;
    write_truth(s, name, begin, end, watts);
  }
  if (s.work_function != nullptr) s.work_function(s.user, name.c_str(), begin, end, watts);
}

void wait_for(double time) {
  State& s = state();
  if (s.now() < time) s.sleep_until(time);
}

Result copy(const char* what, void* to, const void* from, size_t bytes, Stream stream,
            bool is_waiting) {
  if (shall_fail(what)) return kUnknownError;
  std::memmove(to, from, bytes);
  queue_work(stream, what, 10e-6 + static_cast<double>(bytes) / 10e9, state().model.idle_w + 15);
  if (is_waiting) wait_for(state().stream_until[stream]);
  return kSuccess;
}

void* pointer(DevicePointer p) { return reinterpret_cast<void*>(p); }

struct KernelCost {
  double seconds, watts;
};

KernelCost cost_by_name(const std::string& name) {
  if (const char* list = std::getenv("GPUSIM_STUB_KERNELS")) {
    std::istringstream in(list);
    for (std::string item; std::getline(in, item, ',');) {
      const size_t equals = item.find('=');
      if (equals == std::string::npos || name.find(item.substr(0, equals)) == std::string::npos)
        continue;
      KernelCost c{};
      if (std::sscanf(item.c_str() + equals + 1, "%lf:%lf", &c.seconds, &c.watts) == 2) return c;
    }
  }
  return {0.01, 120};
}

KernelCost cost_of_loop(const StubFunction& f, double blocks, double threads, void** values) {
  double iterations = 1, lanes = 32;
  for (size_t i = 0; i < f.module->parameters.size(); ++i) {
    if (f.module->parameters[i] == "iterations") iterations = *static_cast<uint32_t*>(values[i]);
    if (f.module->parameters[i] == "lanes") lanes = *static_cast<uint32_t*>(values[i]);
  }
  const gpusim_stub_model& m = state().model;
  double energy = 0, cycles = 0;
  for (const std::string& statement : f.module->body) {
    energy += gpusim_stub_energy(statement.c_str()) * (f.module->is_o0 ? m.o0_scale : 1);
    cycles += gpusim_stub_cycles(statement.c_str());
  }
  // The loop's own three instructions.
  energy += 3 * 2e-12 * m.energy_scale;
  cycles += 3.0 / 64;
  const double active = threads * std::min(lanes, 32.0) / 32;
  const double sms = std::min(blocks, static_cast<double>(m.multiprocessors));
  const double seconds = 5e-6 + cycles * iterations * active * blocks / sms / kClockHz;
  const double joules = energy * iterations * active * blocks;
  return {seconds, m.idle_w + m.busy_w * sms / m.multiprocessors + joules / seconds};
}

std::unique_ptr<StubModule> parse_ptx(const std::string& ptx) {
  auto module = std::make_unique<StubModule>();
  std::istringstream in(ptx);
  bool in_loop = false;
  for (std::string line; std::getline(in, line);) {
    for (size_t at = 0; (at = line.find(".param ", at)) != std::string::npos &&
                        line.find("ld.") == std::string::npos;) {
      std::istringstream words(line.substr(at));
      std::string param, type, name;
      words >> param >> type >> name;
      while (!name.empty() && (name.back() == ',' || name.back() == ')')) name.pop_back();
      module->parameters.push_back(name);
      at += 7;
    }
    if (line == "LOOP:") {
      in_loop = true;
    } else if (line.find("bra LOOP") != std::string::npos) {
      in_loop = false;
    } else if (in_loop && line.find(".pragma") == std::string::npos) {
      const size_t first = line.find_first_not_of('\t');
      if (first != std::string::npos) module->body.push_back(line.substr(first));
    }
  }
  // The loop's own end.
  for (int i = 0; i < 2 && !module->body.empty(); ++i) module->body.pop_back();
  return module;
}

}  // namespace

#define STUB_API extern "C" __attribute__((visibility("default")))

STUB_API void gpusim_stub_set_model(const gpusim_stub_model* model) { state().model = *model; }
STUB_API void gpusim_stub_set_clock(gpusim_stub_now now, gpusim_stub_sleep sleep,
                                    gpusim_stub_work work, void* user) {
  State& s = state();
  s.now_function = now;
  s.sleep_function = sleep;
  s.work_function = work;
  s.user = user;
  s.busy_until = 0;
  s.stream_until.clear();
}
STUB_API double gpusim_stub_clock_hz() { return kClockHz; }
STUB_API size_t gpusim_stub_launches() { return state().launches; }

// 2 to 60 pJ by the opcode; memory of the device is dear.
STUB_API double gpusim_stub_energy(const char* statement) {
  const std::string op = opcode_of(statement);
  if (op.empty()) return 0;
  double pj = 2 + static_cast<double>(hash_of(op) % 5800) / 100;
  if (op.starts_with("div") || op.starts_with("rem")) pj *= 10;
  if (op.starts_with("ld.global.cs") || op.starts_with("st.global")) pj += 1500;
  return pj * 1e-12 * state().model.energy_scale;
}
STUB_API double gpusim_stub_cycles(const char* statement) {
  const std::string op = opcode_of(statement);
  if (op.empty()) return 0;
  if (op.starts_with("div") || op.starts_with("rem")) return 20.0 / 64;
  if (op.find("global") != std::string::npos) return 8.0 / 64;
  return op.find("f64") != std::string::npos ? 2.0 / 64 : 1.0 / 64;
}

STUB_API Result cuInit(unsigned) {
  if (shall_fail("cuInit")) return kUnknownError;
  state().is_initialized = true;
  return kSuccess;
}
STUB_API Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
STUB_API Result cuDeviceGetCount(int* count) {
  if (!state().is_initialized) return kNotInitialized;
  *count = 1;
  return kSuccess;
}
STUB_API Result cuDeviceGet(Device* device, int index) {
  if (index != 0) return kInvalidDevice;
  *device = 0;
  return kSuccess;
}
STUB_API Result cuDeviceGetName(char* name, int bytes, Device) {
  std::snprintf(name, static_cast<size_t>(bytes), "Stub GPU 1");
  return kSuccess;
}
STUB_API Result cuDeviceGetPCIBusId(char* name, int bytes, Device) {
  std::snprintf(name, static_cast<size_t>(bytes), "0000:01:00.0");
  return kSuccess;
}
STUB_API Result cuDeviceGetAttribute(int* value, int attribute, Device) {
  switch (attribute) {
    case kWarpSize:
      *value = 32;
      break;
    case kClockKilohertz:
      *value = static_cast<int>(kClockHz / 1e3);
      break;
    case kMultiprocessors:
      *value = state().model.multiprocessors;
      break;
    case kL2Bytes:
      *value = 1 << 20;
      break;
    case kThreadsPerMultiprocessor:
      *value = kThreadsPerSm;
      break;
    case kCapabilityMajor:
      *value = 9;
      break;
    default:
      *value = 0;
      break;
  }
  return kSuccess;
}
STUB_API Result cuDevicePrimaryCtxRetain(Context* context, Device) {
  *context = reinterpret_cast<Context>(0x1000);
  return kSuccess;
}
STUB_API Result cuDevicePrimaryCtxRelease_v2(Device) { return kSuccess; }
STUB_API Result cuCtxCreate_v2(Context* context, unsigned, Device) {
  *context = current_context = reinterpret_cast<Context>(0x1000);
  return kSuccess;
}
STUB_API Result cuCtxDestroy_v2(Context) {
  current_context = nullptr;
  return kSuccess;
}
STUB_API Result cuCtxSetCurrent(Context context) {
  current_context = context;
  return kSuccess;
}
STUB_API Result cuCtxGetCurrent(Context* context) {
  *context = current_context;
  return kSuccess;
}
STUB_API Result cuCtxGetDevice(Device* device) {
  if (current_context == nullptr) return kInvalidContext;
  *device = 0;
  return kSuccess;
}
STUB_API Result cuModuleLoadDataEx(Module* module, const void* image, unsigned count, int* options,
                                   void** values) {
  if (shall_fail("cuModuleLoadDataEx")) return kUnknownError;
  auto loaded = std::make_unique<StubModule>();
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, ".version", 8) == 0) {
    if (std::strstr(text, ".entry") == nullptr) {
      for (unsigned i = 0; i < count; ++i)
        if (options[i] == kJitErrorLog) std::strcpy(static_cast<char*>(values[i]), "no .entry");
      return kInvalidPtx;
    }
    loaded = parse_ptx(text);
  }
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == kJitOptimization) loaded->is_o0 = values[i] == nullptr;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  *module = reinterpret_cast<Module>(loaded.get());
  s.modules.push_back(std::move(loaded));
  return kSuccess;
}
STUB_API Result cuModuleLoadData(Module* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
STUB_API Result cuModuleUnload(Module) { return kSuccess; }
STUB_API Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto f = std::make_unique<StubFunction>();
  f->name = name;
  f->module = reinterpret_cast<StubModule*>(module);
  *function = reinterpret_cast<Function>(f.get());
  s.functions.push_back(std::move(f));
  return kSuccess;
}
STUB_API Result cuLibraryLoadData(void** library, const void* image, int*, void**, unsigned, int*,
                                  void**, unsigned) {
  return cuModuleLoadDataEx(reinterpret_cast<Module*>(library), image, 0, nullptr, nullptr);
}
STUB_API Result cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return cuModuleGetFunction(reinterpret_cast<Function*>(kernel), static_cast<Module>(library),
                             name);
}
STUB_API Result cuKernelGetFunction(Function* function, void* kernel) {
  *function = static_cast<Function>(kernel);
  return kSuccess;
}
STUB_API Result cuFuncGetName(const char** name, Function function) {
  *name = reinterpret_cast<StubFunction*>(function)->name.c_str();
  return kSuccess;
}
STUB_API Result cuMemAlloc_v2(DevicePointer* memory, size_t bytes) {
  // Untouched pages cost nothing.
  void* p = std::calloc(1, bytes);
  if (p == nullptr) return kOutOfMemory;
  *memory = reinterpret_cast<DevicePointer>(p);
  return kSuccess;
}
STUB_API Result cuMemFree_v2(DevicePointer memory) {
  std::free(pointer(memory));
  return kSuccess;
}
STUB_API Result cuMemsetD32_v2(DevicePointer memory, unsigned value, size_t count) {
  for (size_t i = 0; i < std::min<size_t>(count, 1024); ++i)
    static_cast<unsigned*>(pointer(memory))[i] = value;
  return kSuccess;
}
STUB_API Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return copy("cuMemcpyHtoD", pointer(to), from, bytes, nullptr, true);
}
STUB_API Result cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return copy("cuMemcpyDtoH", to, pointer(from), bytes, nullptr, true);
}
STUB_API Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, Stream s) {
  return copy("cuMemcpyHtoDAsync", pointer(to), from, bytes, s, false);
}
STUB_API Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream s) {
  return copy("cuMemcpyDtoHAsync", to, pointer(from), bytes, s, false);
}
STUB_API Result cuLaunchKernel(Function function, unsigned gx, unsigned gy, unsigned gz,
                               unsigned bx, unsigned by, unsigned bz, unsigned, Stream stream,
                               void** values, void**) {
  if (shall_fail("cuLaunchKernel")) return kUnknownError;
  const StubFunction& f = *reinterpret_cast<StubFunction*>(function);
  const KernelCost cost = f.module != nullptr && !f.module->parameters.empty()
                              ? cost_of_loop(f, static_cast<double>(gx) * gy * gz,
                                             static_cast<double>(bx) * by * bz, values)
                              : cost_by_name(f.name);
  queue_work(stream, f.name, cost.seconds, cost.watts);
  return kSuccess;
}
STUB_API Result cuLaunchKernel_ptsz(Function function, unsigned gx, unsigned gy, unsigned gz,
                                    unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                    Stream stream, void** values, void** extra) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared,
                        stream == nullptr ? reinterpret_cast<Stream>(2) : stream, values, extra);
}
STUB_API Result cuLaunchKernelEx(const LaunchConfig* c, Function function, void** values,
                                 void** extra) {
  return cuLaunchKernel(function, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y,
                        c->block_z, c->shared_bytes, c->stream, values, extra);
}
STUB_API Result cuStreamCreate(Stream* stream, unsigned) {
  static std::atomic<uintptr_t> next{0x100};
  *stream = reinterpret_cast<Stream>(next++);
  return kSuccess;
}
STUB_API Result cuStreamDestroy_v2(Stream) { return kSuccess; }
STUB_API Result cuStreamIsCapturing(Stream, int* status) {
  *status = 0;
  return kSuccess;
}
STUB_API Result cuStreamQuery(Stream stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.now() < (stream == nullptr ? s.busy_until : s.stream_until[stream]) ? kNotReady
                                                                               : kSuccess;
}
STUB_API Result cuStreamSynchronize(Stream stream) {
  if (shall_fail("cuStreamSynchronize")) return kUnknownError;
  State& s = state();
  double until = 0;
  {
    const std::lock_guard lock(s.mutex);
    until = stream == nullptr ? s.busy_until : s.stream_until[stream];
  }
  wait_for(until);
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return s.callbacks_waiting[stream] == 0; });
  return kSuccess;
}
STUB_API Result cuCtxSynchronize() {
  if (shall_fail("cuCtxSynchronize")) return kUnknownError;
  State& s = state();
  double until = 0;
  {
    const std::lock_guard lock(s.mutex);
    until = s.busy_until;
  }
  wait_for(until);
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] {
    return std::all_of(s.callbacks_waiting.begin(), s.callbacks_waiting.end(),
                       [](const auto& c) { return c.second == 0; });
  });
  return kSuccess;
}
STUB_API Result cuLaunchHostFunc(Stream stream, void (*function)(void*), void* data) {
  State& s = state();
  double at = 0;
  {
    const std::lock_guard lock(s.mutex);
    at = std::max(s.now(), s.stream_until[stream]);
    ++s.callbacks_waiting[stream];
  }
  // One thread calls them, in the order of the stream, as drivers do.
  static std::deque<std::tuple<double, Stream, void (*)(void*), void*>> waiting;
  static const bool started = [&s] {
    std::thread([&s] {
      for (;;) {
        std::unique_lock lock(s.mutex);
        s.changed.wait(lock, [] { return !waiting.empty(); });
        const auto [when, where, call, argument] = waiting.front();
        waiting.pop_front();
        lock.unlock();
        s.sleep_until(when);
        call(argument);
        lock.lock();
        --s.callbacks_waiting[where];
        s.changed.notify_all();
      }
    }).detach();
    return true;
  }();
  (void)started;
  const std::lock_guard lock(s.mutex);
  waiting.emplace_back(at, stream, function, data);
  s.changed.notify_all();
  return kSuccess;
}
STUB_API Result cuEventCreate(Event* event, unsigned) {
  *event = reinterpret_cast<Event>(new StubEvent);
  return kSuccess;
}
STUB_API Result cuEventDestroy_v2(Event event) {
  delete reinterpret_cast<StubEvent*>(event);
  return kSuccess;
}
STUB_API Result cuEventRecord(Event event, Stream stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const double last = stream == nullptr ? s.busy_until : s.stream_until[stream];
  reinterpret_cast<StubEvent*>(event)->time = std::max(s.now(), last);
  return kSuccess;
}
STUB_API Result cuEventQuery(Event event) {
  return state().now() < reinterpret_cast<StubEvent*>(event)->time ? kNotReady : kSuccess;
}
STUB_API Result cuEventSynchronize(Event event) {
  wait_for(reinterpret_cast<StubEvent*>(event)->time);
  return kSuccess;
}
STUB_API Result cuEventElapsedTime(float* ms, Event begin, Event end) {
  const auto *a = reinterpret_cast<StubEvent*>(begin), *b = reinterpret_cast<StubEvent*>(end);
  if (a->time < 0 || b->time < 0) return kInvalidValue;
  const char* drift = std::getenv("GPUSIM_STUB_DRIFT");
  const double speed = 1 + 1e-6 * (drift != nullptr ? std::atof(drift) : 0);
  *ms = static_cast<float>((b->time - a->time) * speed * 1e3);
  return kSuccess;
}
STUB_API Result cuGetErrorName(Result error, const char** name) {
  *name = error == kUnknownError     ? "CUDA_ERROR_UNKNOWN"
          : error == kInvalidPtx     ? "CUDA_ERROR_INVALID_PTX"
          : error == kNotInitialized ? "CUDA_ERROR_NOT_INITIALIZED"
                                     : "CUDA_ERROR_SOMETHING";
  return kSuccess;
}
STUB_API Result cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

#include <dlfcn.h>

static Result not_supported() { return kNotSupported; }

// The newest form of a function that the library has, as a driver gives it for its own version.
// Flag 2: with a default stream for each thread.
STUB_API Result cuGetProcAddress_v2(const char* symbol, void** function, int, uint64_t flags,
                                    int* status) {
  static void* self = [] {
    Dl_info info{};
    ::dladdr(reinterpret_cast<void*>(&not_supported), &info);
    return ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  *function = nullptr;
  for (const char* end : {(flags & 2) != 0 ? "_ptsz" : "", "_v2", ""})
    if (*function == nullptr) *function = ::dlsym(self, (std::string(symbol) + end).c_str());
  if (*function == nullptr) *function = reinterpret_cast<void*>(&not_supported);
  if (status != nullptr) *status = 0;
  return kSuccess;
}
STUB_API Result cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
