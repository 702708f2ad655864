// Where calls arrive (thunks.S), and how addresses that programs ask for become ours.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "energy/power/attach/preload/preload.h"

namespace gpusim::power::attach {
namespace {

constexpr size_t kPool = GPUSIM_ATTACH_POOL;

struct Name {
  const char* text;
  bool is_runtime;
};
constexpr Name kNames[] = {
#define CALL(name) {#name, false},
#include "energy/power/attach/preload/driver_calls.def"
#undef CALL
#define CALL(name) {#name, true},
#include "energy/power/attach/preload/runtime_calls.def"
#undef CALL
};
constexpr size_t kNamed = std::size(kNames);

struct Entries {
  std::recursive_mutex mutex;
  Target targets[kNamed + kPool] = {};
  std::atomic<bool> is_ready[kNamed + kPool] = {};
  size_t used = 0;  // of the pool
  std::map<std::pair<void*, std::string>, size_t> by_real;
};

Entries& entries() {
  static Entries* e = new Entries;
  return *e;
}

// What a function returns that does not exist: "initialisation of a shared object failed".
int missing() { return 303; }

void* own_handle() {
  static void* base = [] {
    Dl_info info{};
    return ::dladdr(reinterpret_cast<void*>(&missing), &info) != 0 ? info.dli_fbase : nullptr;
  }();
  return base;
}

bool is_ours(void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fbase == own_handle();
}

bool begins_as_cuda(const char* name) {
  return name[0] == 'c' && name[1] == 'u' &&
         ((name[2] >= 'A' && name[2] <= 'Z') || std::strncmp(name, "cuda", 4) == 0);
}

// Whose function it is, by the file that it lies in: cuBLAS and others have names that look alike.
enum class Library { kOther, kDriver, kRuntime };
Library library_of(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return Library::kOther;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const std::string file = slash != nullptr ? slash + 1 : info.dli_fname;
  if (file.starts_with("libcuda.so")) return Library::kDriver;
  if (file.starts_with("libcudart.so")) return Library::kRuntime;
  return Library::kOther;
}

// How deep this thread is in our own work: what we call of the driver is not the program's doing.
thread_local int own_work = 0;

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) extern const char gpusim_attach_pool[];
__attribute__((visibility("hidden"))) void* (*gpusim_attach_real_dlsym)(void*, const char*);

// Before anybody can call dlsym: a constructor would be too late for constructors of others.
static void find_real_dlsym() {
  if (gpusim_attach_real_dlsym != nullptr) return;
  void* real = nullptr;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"})
    if (real == nullptr) real = ::dlvsym(RTLD_NEXT, "dlsym", version);
  gpusim_attach_real_dlsym = reinterpret_cast<void* (*)(void*, const char*)>(real);
}

__attribute__((visibility("hidden"))) void* gpusim_attach_dlsym(void* handle, const char* name) {
  find_real_dlsym();
  if (name == nullptr || !begins_as_cuda(name) || handle == RTLD_NEXT) return nullptr;
  void* real = gpusim_attach_real_dlsym(handle, name);
  if (real == nullptr || is_ours(real)) return nullptr;
  const Library library = library_of(real);
  if (library == Library::kOther) return nullptr;
  if (library == Library::kDriver && handle != RTLD_DEFAULT) learn_driver(handle);
  return thunk_for(name, real, library == Library::kRuntime);
}

__attribute__((visibility("hidden"))) void* gpusim_attach_enter(uint64_t number, Frame* frame) {
  Entries& e = entries();
  Target& t = e.targets[number];
  if (!e.is_ready[number].load(std::memory_order_acquire)) {
    const std::lock_guard lock(e.mutex);
    if (!e.is_ready[number]) {
      find_real_dlsym();
      t.name = kNames[number].text;
      t.is_runtime = kNames[number].is_runtime;
      t.real = gpusim_attach_real_dlsym(RTLD_NEXT, t.name);
      if (t.real == nullptr && !t.is_runtime) t.real = driver_function(t.name);
      if (t.real == nullptr) t.real = reinterpret_cast<void*>(&missing);
      classify(t);
      e.is_ready[number].store(true, std::memory_order_release);
    }
  }
  frame->operation = nullptr;
  frame->begin_ns = 0;
  if (own_work == 0 && log_is_open()) {
    ++own_work;
    before_call(t, *frame);
    --own_work;
    frame->begin_ns = now_ns();
  }
  return t.real;
}

__attribute__((visibility("hidden"))) void gpusim_attach_leave(uint64_t number, Frame* frame) {
  if (frame->begin_ns == 0 || own_work != 0) return;
  const Target& t = entries().targets[number];
  const uint64_t end = now_ns();
  ++own_work;
  if (records_calls())
    write_record({.kind = RecordKind::kCall,
                  .name = text_number(t.name),
                  .begin_ns = frame->begin_ns,
                  .end_ns = end,
                  .result = static_cast<int32_t>(frame->result),
                  .blocks = t.is_runtime ? 1u : 0u});
  after_call(t, *frame);
  --own_work;
}
}

void* thunk_for(const char* name, void* real, bool is_runtime) {
  // A driver that asks the linker itself has got one of ours already.
  if (is_ours(real)) return real;
  Entries& e = entries();
  const std::lock_guard lock(e.mutex);
  const auto [at, is_new] = e.by_real.emplace(std::pair{real, std::string(name)}, e.used);
  if (is_new) {
    if (e.used == kPool) return real;  // more functions than CUDA has: those are passed by
    const size_t number = kNamed + e.used++;
    Target& t = e.targets[number];
    t.name = at->first.second.c_str();
    t.real = real;
    t.is_runtime = is_runtime;
    classify(t);
    e.is_ready[number].store(true, std::memory_order_release);
  }
  return const_cast<char*>(gpusim_attach_pool) + 16 * at->second;
}

}  // namespace gpusim::power::attach
