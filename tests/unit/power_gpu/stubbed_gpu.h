// The stand-in for CUDA's driver and the simulated sensor on one virtual clock: what the stub runs
// is what the sensor sees.
#pragma once
#include <dlfcn.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "energy/power/simulated.h"
#include "tests/system/power_gpu/stub/stub_gpu.h"

namespace gpusim::power {

class StubbedGpu {
 public:
  StubbedGpu(const SensorModel& sensor, const gpusim_stub_model& model, double counter_less = 0)
      : library_(::dlopen(GPUSIM_STUB_CUDA, RTLD_NOW | RTLD_LOCAL)) {
    (void)counter_less;
    if (library_ == nullptr) throw std::runtime_error(::dlerror());
    SimulatedDevice device;
    device.idle = Watts(model.idle_w);
    source_ = std::make_unique<SimulatedSource>(sensor, device);
    call<void (*)(const gpusim_stub_model*)>("gpusim_stub_set_model")(&model);
    call<void (*)(gpusim_stub_now, gpusim_stub_sleep, gpusim_stub_work, void*)>(
        "gpusim_stub_set_clock")(
        [](void* self) { return static_cast<StubbedGpu*>(self)->source_->now().value(); },
        [](void* self, double until) {
          static_cast<StubbedGpu*>(self)->source_->sleep_until(Seconds(until));
        },
        [](void* self, const char*, double begin, double end, double watts) {
          SimulatedSource& s = *static_cast<StubbedGpu*>(self)->source_;
          s.run({{Seconds(0), Watts(watts)}, {Seconds(end - begin), Watts(watts)}},
                Seconds(begin) - s.now());
        },
        this);
  }
  ~StubbedGpu() {
    call<void (*)(gpusim_stub_now, gpusim_stub_sleep, gpusim_stub_work, void*)>(
        "gpusim_stub_set_clock")(nullptr, nullptr, nullptr, nullptr);
  }

  SimulatedSource& source() { return *source_; }
  double energy_of(const std::string& statement) {
    return call<double (*)(const char*)>("gpusim_stub_energy")(statement.c_str());
  }
  double cycles_of(const std::string& statement) {
    return call<double (*)(const char*)>("gpusim_stub_cycles")(statement.c_str());
  }

 private:
  template <class F>
  F call(const char* name) {
    return reinterpret_cast<F>(::dlsym(library_, name));
  }

  void* library_;
  std::unique_ptr<SimulatedSource> source_;
};

}  // namespace gpusim::power
