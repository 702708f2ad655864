// A GPU by way of CUDA's driver library, which is loaded when it is asked for.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "energy/power/microbench/cuda_types.h"
#include "energy/units.h"

namespace gpusim::power {

struct GpuInfo {
  std::string name, pci_bus;
  int capability_major = 0, capability_minor = 0;
  unsigned multiprocessors = 0, threads_per_multiprocessor = 0;
  uint64_t l2_bytes = 0;
  energy::Hertz clock;     // the highest that the driver names
  int driver_version = 0;  // 13000 is 13.0
};

struct LaunchShape {
  unsigned blocks = 1, threads = 1;
};

class Gpu;

// Destroys its event, which must not outlive the Gpu that made it.
class OwnedEvent {
 public:
  OwnedEvent(Gpu& gpu, cuda::Event event) : gpu_(&gpu), event_(event) {}
  OwnedEvent(OwnedEvent&& other) noexcept
      : gpu_(other.gpu_), event_(std::exchange(other.event_, nullptr)) {}
  OwnedEvent& operator=(OwnedEvent&&) = delete;
  ~OwnedEvent();
  operator cuda::Event() const { return event_; }  // NOLINT(google-explicit-constructor)

 private:
  Gpu* gpu_;
  cuda::Event event_;
};

// Everything throws Error that names the call and the driver's word for what went wrong.
// It never changes clocks, power limits or any other setting.
class Gpu {
 public:
  // `library` empty: libcuda.so.1 as the loader finds it.
  Gpu(const std::string& library, int index);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuInfo& info() const { return info_; }

  // The driver's assembler at optimization level 0 to 4. `what` names the kernel in messages.
  cuda::Function load(const std::string& ptx, const char* kernel, unsigned optimization,
                      const std::string& what);
  void unload(cuda::Function function);
  cuda::DevicePointer allocate(uint64_t bytes);
  void release(cuda::DevicePointer memory);
  void launch(cuda::Function function, LaunchShape shape, const std::vector<void*>& parameters);
  bool is_busy();
  void synchronize();

  // On the device's clock.
  OwnedEvent make_event();
  void record(cuda::Event event);
  void wait(cuda::Event event);
  bool has_passed(cuda::Event event);
  energy::Seconds elapsed(cuda::Event begin, cuda::Event end);

 private:
  friend class OwnedEvent;
  struct Calls;
  void check(cuda::Result result, const std::string& what) const;

  std::unique_ptr<Calls> calls_;
  GpuInfo info_;
  cuda::Device device_ = 0;
  std::vector<std::pair<cuda::Function, cuda::Module>> modules_;
};

}  // namespace gpusim::power
