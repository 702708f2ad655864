// Runs modules with warps, made by hand, on a backend that has CTAs.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/cta.h"
#include "device_sim/simd/simd_backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {

// A way to run them. Native code is made at once, or never.
struct CtaRun {
  std::string backend = "scalar";
  uint32_t width = 64;
  uint32_t native_after = MachineConfig::kNeverNative;
  uint64_t slice = uint64_t{1} << 40;
  uint32_t threads = 1;
  uint64_t seed = 0;
};
// On the emulated device, which is slow, only those of backend cuda.
inline std::vector<CtaRun> cta_runs() {
  if (const char* only = std::getenv("GPUSIM_BACKEND"); only && std::string(only) == "cuda")
    return {{.backend = "cuda"}, {.backend = "cuda", .slice = 5}, {.backend = "cuda", .seed = 11}};
  std::vector<CtaRun> runs{{}, {.slice = 5}};
  if (std::string why; !SimdBackend::available(&why)) return runs;
  runs.insert(runs.end(), {{.backend = "simd"},
                           {.backend = "simd", .native_after = 0},
                           {.backend = "simd", .width = 32},
                           {.backend = "simd", .slice = 7},
                           {.backend = "simd", .native_after = 0, .slice = 20, .threads = 3},
                           {.backend = "simd", .slice = 50, .seed = 11}});
  return runs;
}

class CtaMachine {
 public:
  static constexpr uint64_t kLinear = 0x10000, kLinearBytes = 0x10000, kShared = 0xf0000000,
                            kCluster = 0xf1000000;
  static constexpr uint32_t kClusterShift = 20;

  CtaMachine(const Module& module, const CtaRun& run, uint32_t threads, uint32_t places = 1,
             uint64_t shared_bytes = 0, uint32_t cluster = 1)
      : threads_(threads), places_(places), shift_(cta_shift_of(threads)), slice_(run.slice) {
    MachineConfig config;
    config.cores = places << shift_;
    config.cta_threads = threads;
    config.cta_base = kShared;
    config.cta_bytes = shared_bytes;
    config.memory_model = MemoryModel::kPrivate;
    config.linear_base = kLinear;
    config.linear_size = kLinearBytes;
    config.window_base = 0x100000;
    config.window_shift = 12;
    config.group_width = run.width;
    config.native_after = run.native_after;
    config.threads = cluster > 1 ? 1 : run.threads;
    config.cluster_ctas = cluster;
    config.cluster_base = kCluster;
    config.cluster_shift = kClusterShift;
    config.seed = run.seed;
    backend_ = make_backend(run.backend, {.warps = true});
    backend_->configure(module, config);
    backend_->set_permissions(0, kLinear, kLinearBytes, kRead | kWrite);
    backend_->set_permissions_all(0x100000, 4096, kRead | kWrite);
  }
  Backend& backend() { return *backend_; }
  uint32_t core(uint32_t thread, uint32_t place = 0) const { return (place << shift_) + thread; }
  // Thread t has value(t).
  void set(Slot slot, const std::function<uint64_t(uint32_t)>& value) {
    for (uint32_t place = 0; place < places_; ++place)
      for (uint32_t t = 0; t < threads_; ++t) backend_->set_slot(core(t, place), slot, value(t));
  }
  uint64_t get(Slot slot, uint32_t thread, uint32_t place = 0) {
    return backend_->slot(core(thread, place), slot);
  }
  // Runs all CTAs from micro-op 0 on until nobody can go on. Returns what is reported beside the
  // ends of CTAs, which it counts.
  std::vector<Event> run() {
    for (uint32_t place = 0; place < places_; ++place) backend_->start_cta(place, 0);
    return go_on();
  }
  std::vector<Event> go_on() {
    std::vector<Event> others;
    for (slices = 0; slices < 100'000;) {
      ++slices;
      const auto events = backend_->run_slice(slice_);
      for_each_core(events, [&](const Event& e) {
        if (e.status == CoreStatus::kCtaEnd)
          ++ended;
        else
          others.push_back(e);
      });
      if (backend_->runnable() == 0) return others;
    }
    others.push_back({.status = CoreStatus::kLimit});  // it does not end
    return others;
  }

  uint32_t ended = 0;
  int slices = 0;  // of the last call

 private:
  uint32_t threads_, places_, shift_;
  uint64_t slice_;
  std::unique_ptr<Backend> backend_;
};

// Appends a block: micro-ops that keep their immediates, then its end, which goes to `target`.
inline uint32_t append(Module& m, std::initializer_list<Uop> uops, uint32_t target = 0) {
  const auto first = static_cast<uint32_t>(m.uops.size());
  add_block(m, uops, target);
  return first;
}
inline constexpr Uop kEndThread = {.op = Op::end_thread};
inline void finish_warps(Module& m, uint32_t slots) {
  finish(m, slots);
  m.warp_size = kWarpLanes;
}

}  // namespace gpusim
