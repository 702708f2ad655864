// The device behind libGPUSim: contexts with memory, programs and kernels. The daemon serves QEMU
// guests with it; the native library has one in its own process.
//
// Not thread-safe: one thread at a time uses the Simulators of a process, their operations and
// step(). Kernels advance slice by slice in step(), turn about between contexts, so operations are
// served while kernels run. Within a context kernels of one queue run one after the other, in the
// order of their launches; queues take turns.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "device_sim/core/compiled_regions.h"
#include "host/offload/device_memory.h"
#include "host/offload/fault_lines.h"
#include "host/offload/offload_error.h"
#include "qemu_bridge/wire/gpusim_wire.h"

namespace gpusim::offload {

struct SimulatorOptions {
  std::string backend = "auto";
  // How a backend with memory of its own reaches the caller's: auto, registered, pageable, copied.
  std::string guest_memory = "auto";
  CompiledRegions compiled_regions = CompiledRegions::kAuto;
  uint32_t threads = 0;  // host threads of kernels; 0: one per hardware thread
  // Device addresses are this process's own (the native library). Else each context has a range of
  // its own, address_space_bytes long.
  bool identity = false;
  uint64_t address_space_bytes = uint64_t{1} << 37;
  uint32_t most_contexts = 64;
  uint32_t most_cores = 1u << 20;
  uint64_t most_kernels = 1024;                    // waiting, per context
  uint64_t most_output_bytes = uint64_t{1} << 20;  // kept of a kernel's output
  std::chrono::nanoseconds time_limit{0};          // of any kernel; 0: none
  // Called from another thread when step() has something to do again.
  std::function<void()> wake = {};
  // For the text of faults; it may take its time. Called from other threads, several at once.
  FindLines find_lines = {};
};

/// How a command ended: 0 or a negative errno, a report if it was a kernel that started, a
/// sentence.
struct Outcome {
  int status = 0;
  std::string text;
};
struct LoadOutcome : Outcome {
  uint32_t program = 0;
  uint64_t guest_instructions = 0;
  bool cached = false;
  std::string isa;
};
struct LaunchOutcome : Outcome {
  gpusim_report report{};
  gpusim_classes classes{};
};

struct Counters {
  uint64_t copied_bytes = 0, mapped_bytes = 0, kernels = 0, translations = 0, cached_programs = 0;
};

class Simulator {
 public:
  explicit Simulator(SimulatorOptions options);  // std::runtime_error: no such backend
  ~Simulator();

  const SimulatorOptions& options() const;
  std::string backend() const;  // "simd"
  // "AMD EPYC, AVX3, 64 lanes"; "NVIDIA H200, guest memory registered"
  std::string device() const;

  // All operations throw OffloadError.
  uint32_t open();               // -> the context's number, never used twice
  void close(uint32_t context);  // cancels; their callbacks are called
  void reset(uint32_t context);
  DeviceMemory& memory(uint32_t context);
  // Memory in place: files of shared memory piece by piece, or with identity the caller's pages.
  void map(uint32_t context, uint64_t address, std::span<const FilePiece> pieces, uint8_t rights);
  void map_own(uint32_t context, uint64_t address, uint64_t size_bytes, uint8_t rights);
  void unmap(uint32_t context, uint64_t address, uint64_t size_bytes);

  // `done` is called from step() or, if the command is cancelled, from cancel(), reset() or
  // close().
  using LoadDone = std::function<void(const LoadOutcome&)>;
  using LaunchDone = std::function<void(const LaunchOutcome&)>;
  /// The bytes are copied. `name` stands in messages.
  void load(uint32_t context, uint64_t ticket, std::span<const uint8_t> bytes,
            const std::string& name, uint32_t load_flags, LoadDone done);
  void unload(uint32_t context, uint32_t program);
  struct Symbol {
    uint64_t address = 0, size_bytes = 0;
  };
  Symbol symbol(uint32_t context, uint32_t program, const std::string& name);
  /// Whether the function can be a kernel, as far as its code shows.
  void check(uint32_t context, uint32_t program, uint64_t function);
  void launch(uint32_t context, uint64_t ticket, const gpusim_launch& launch, LaunchDone done);
  void cancel(uint32_t context, uint64_t ticket);
  Counters counters(uint32_t context);

  /// One slice of one kernel, or the end of a load. False: nothing to do until the next operation
  /// or `wake`; true: call again.
  bool step();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpusim::offload
