// Guest memory as the code of compiled regions reaches it (regions.h).
#pragma once
#include "device_sim/cuda/in_place_view.cuh"

namespace gpusim::cuda {

// Every access finds its place first, then there is one load or store. Where the open part and the
// rest had one each, a compiler would move what was loaded to where these ways meet, and wait for
// it there; so loads are under way together until someone needs their values. Accesses that are not
// aligned are left to the interpreter, as if they faulted.
class RegionView {
 public:
  __device__ __forceinline__ explicit RegionView(const DeviceView& view)
      : view_(view), to_storage_(place_of(view.linear) - view.linear_base) {}

  template <class T>
  __device__ __forceinline__ bool load(uint32_t core, uint64_t address, T* out) const {
    uint64_t at = address + to_storage_;
    if (!view_.is_open<T>(address) && !find(core, address, sizeof(T), kRead, at)) return false;
    *out = atomic_load(static_cast<const T*>(pointer(at)));
    return true;
  }
  template <class T>
  __device__ __forceinline__ bool store(uint32_t core, uint64_t address, T value) const {
    uint64_t at = address + to_storage_;
    if (!view_.is_open<T>(address) && !find(core, address, sizeof(T), kWrite, at)) return false;
    atomic_store(static_cast<T*>(pointer(at)), value);
    return true;
  }
  __device__ __forceinline__ uint8_t* byte(uint32_t core, uint64_t address, uint8_t need) const {
    return view_.byte(core, address, need);
  }

 private:
  // Where in storage what is not in the open part lies.
  __device__ __forceinline__ bool find(uint32_t core, uint64_t address, uint32_t size, uint8_t need,
                                       uint64_t& at) const {
    at = elsewhere(view_, core, address, size, need);
    return at != 0;
  }
  __device__ __noinline__ static uint64_t elsewhere(const DeviceView& view, uint32_t core,
                                                    uint64_t address, uint32_t size, uint8_t need) {
    if ((address & (size - 1)) != 0) return 0;
    uint8_t* const p = view.byte(core, address, need);
    return p ? place_of(p) : 0;
  }
#ifdef __NVCC__
  // Places are of the global state space, whose instructions are shorter than those of any.
  __device__ __forceinline__ static uint64_t place_of(const void* p) {
    return __cvta_generic_to_global(p);
  }
  __device__ __forceinline__ static void* pointer(uint64_t at) {
    return __cvta_global_to_generic(at);
  }
#else
  static uint64_t place_of(const void* p) { return reinterpret_cast<uint64_t>(p); }
  static void* pointer(uint64_t at) { return reinterpret_cast<void*>(at); }
#endif

  const DeviceView& view_;
  const uint64_t to_storage_;  // from a guest address of the linear zone
};

__device__ __forceinline__ RegionView for_regions(const DeviceView& view) {
  return RegionView(view);
}
// A caller's memory has no open part.
__device__ __forceinline__ const InPlaceView& for_regions(const InPlaceView& view) { return view; }

}  // namespace gpusim::cuda
