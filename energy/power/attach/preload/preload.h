// The library that `gpusim power attach` preloads into a program: it stands between the program and
// CUDA's driver (and the runtime, where that is a shared library), passes every call on as it is,
// and notes when each began and ended. docs/adr tells why it is done so.
#pragma once
#include <cstddef>
#include <cstdint>

#include "energy/power/attach/record.h"

namespace gpusim::power::attach {

// What thunks.S saves of a call.
struct Frame {
  uint64_t registers[6];
  uint64_t rax;
  const uint64_t* stack;  // arguments from the seventh on
  unsigned char vectors[128];
  uint64_t result, result_high;
  unsigned char vector_results[32];
  // Ours.
  uint64_t begin_ns;
  void* operation;
  uint64_t spare[8];

  uint64_t argument(int i) const { return i < 6 ? registers[i] : stack[i - 6]; }
  template <class T>
  T pointer(int i) const {
    return reinterpret_cast<T>(argument(i));
  }
};
static_assert(offsetof(Frame, stack) == 0x38 && offsetof(Frame, vectors) == 0x40 &&
              offsetof(Frame, result) == 0xc0 && offsetof(Frame, vector_results) == 0xd0 &&
              sizeof(Frame) <= 0x148);

// What a function does, as far as we care.
enum class Role : uint8_t {
  kPlain,
  kLaunch,     // cuLaunchKernel, cuLaunchCooperativeKernel
  kLaunchEx,   // cuLaunchKernelEx
  kLaunchOld,  // cuLaunch, cuLaunchGrid, cuLaunchGridAsync
  kGraph,
  kCopy,  // bytes and stream where known by the function's form
  kSet,
  kSynchronize,
  kEndOfContext,
  kNameModule,   // cuModuleGetFunction
  kNameLibrary,  // cuLibraryGetKernel
  kNameKernel,   // cuKernelGetFunction
  kGetProcAddress,
  kInit,
};

struct Target {
  const char* name;  // with its suffixes, "cuMemcpyHtoDAsync_v2_ptsz"
  void* real;
  uint32_t text;  // number of the name in the log; 0: not written yet
  Role role;
  bool is_runtime;
  bool is_per_thread;                    // stream 0 is the thread's own
  int8_t bytes_at = -1, stream_at = -1;  // arguments
};

// log.cpp
uint64_t now_ns();
bool log_is_open();  // opens it at the first call; false: there is nowhere to write
Timing timing();
bool records_calls();
uint32_t text_number(const char* text);  // writes it the first time
struct Written {
  RecordKind kind;
  uint32_t name;
  uint64_t begin_ns, end_ns;
  int32_t result = 0;
  uint64_t stream = 0, bytes = 0;
  uint32_t blocks = 0, threads = 0, device = 0, estimated = 0;
  uint32_t thread = 0;  // 0: this one
};
void write_record(const Written& w);
void write_pci_bus(const char* text);
uint32_t thread_number();
void note(const char* text);  // once for each text

// operations.cpp: what runs on the GPU
void classify(Target& target);
void before_call(const Target& target, Frame& frame);
void after_call(const Target& target, Frame& frame);
void finish_operations(bool wait);        // writes those whose ends are known, or waits for all
void* driver_function(const char* name);  // the real one; nullptr if the driver has none
void learn_driver(void* handle);
void forget_after_fork();

// entry.cpp
void* thunk_for(const char* name, void* real, bool is_runtime);

}  // namespace gpusim::power::attach
