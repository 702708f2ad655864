// Guest memory as the code of compiled regions reaches it (regions.h).
#pragma once
#include "device_sim/cuda/in_place_view.cuh"

namespace gpusim::cuda {

// What is known of an address of the open part of the linear zone: its place in device memory.
class OpenView {
 public:
  __device__ __forceinline__ explicit OpenView(const DeviceView& view)
      : to_storage_(place_of(view.linear) - view.linear_base) {}
  template <class T>
  __device__ __forceinline__ bool load(uint32_t, uint64_t address, T* out) const {
    *out = load_at<T>(place(address));
    return true;
  }
  template <class T>
  __device__ __forceinline__ bool store(uint32_t, uint64_t address, T value) const {
    store_at(place(address), value);
    return true;
  }
  __device__ __forceinline__ uint64_t place(uint64_t address) const {
    return address + to_storage_;
  }

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
  // Places are of the global state space, whose instructions are shorter than those of any.
  __device__ __forceinline__ static uint64_t place_of(const void* p) {
    return __cvta_generic_to_global(p);
  }
  template <class T>
  __device__ __forceinline__ static T load_at(uint64_t at) {  // atomic_load()
    if constexpr (sizeof(T) == 8) {
      uint64_t value;
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at));
      return value;
    }
    uint32_t value = 0;
    if constexpr (sizeof(T) == 4)
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at));
    if constexpr (sizeof(T) == 2)
      asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=r"(value) : "l"(at));
    if constexpr (sizeof(T) == 1)
      asm volatile("ld.relaxed.gpu.global.u8 %0, [%1];" : "=r"(value) : "l"(at));
    return static_cast<T>(value);
  }
  template <class T>
  __device__ __forceinline__ static void store_at(uint64_t at, T value) {  // atomic_store()
    if constexpr (sizeof(T) == 8)
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value));
    if constexpr (sizeof(T) == 4)
      asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value));
    if constexpr (sizeof(T) == 2)
      asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" ::"l"(at), "r"(uint32_t{value}));
    if constexpr (sizeof(T) == 1)
      asm volatile("st.relaxed.gpu.global.u8 [%0], %1;" ::"l"(at), "r"(uint32_t{value}));
  }
#else
  static uint64_t place_of(const void* p) { return reinterpret_cast<uint64_t>(p); }
  template <class T>
  static T load_at(uint64_t at) {
    return atomic_load(reinterpret_cast<const T*>(at));
  }
  template <class T>
  static void store_at(uint64_t at, T value) {
    atomic_store(reinterpret_cast<T*>(at), value);
  }
#endif

 private:
  const uint64_t to_storage_;  // from a guest address of the linear zone
};

// Every access finds its place first, then there is one load or store. Where the open part and the
// rest had one each, a compiler would move what was loaded to where these ways meet, and wait for
// it there; so loads are under way together until someone needs their values. Accesses that are not
// aligned are left to the interpreter, as if they faulted.
class RegionView {
 public:
  __device__ __forceinline__ explicit RegionView(const DeviceView& view)
      : view_(view), open_(view) {}

  template <class T>
  __device__ __forceinline__ bool load(uint32_t core, uint64_t address, T* out) const {
    uint64_t at = open_.place(address);
    if (!is_open<T>(address) && !find(core, address, sizeof(T), kRead, at)) return false;
    *out = open_.load_at<T>(at);
    return true;
  }
  template <class T>
  __device__ __forceinline__ bool store(uint32_t core, uint64_t address, T value) const {
    uint64_t at = open_.place(address);
    if (!is_open<T>(address) && !find(core, address, sizeof(T), kWrite, at)) return false;
    open_.store_at(at, value);
    return true;
  }
  __device__ __forceinline__ uint8_t* byte(uint32_t core, uint64_t address, uint8_t need) const {
    return view_.byte(core, address, need);
  }
  // As DeviceView's, in halves. Of a place in the open part, rotation makes what is not aligned too
  // large.
  template <class T>
  __device__ __forceinline__ bool is_open(uint64_t address) const {
    constexpr uint32_t kShift = sizeof(T) == 8 ? 3 : sizeof(T) / 2;
    const uint32_t place = static_cast<uint32_t>(address) - static_cast<uint32_t>(view_.open_base);
    const uint32_t rotated = place >> kShift | place << (32 - kShift) % 32;
    const auto high = static_cast<uint32_t>(address >> 32);
    return (rotated < view_.open_places[kShift]) & (high == view_.open_high);
  }
  // For addresses of which that is true.
  __device__ __forceinline__ const OpenView& open() const { return open_; }

 private:
  // Where in storage what is not in the open part lies. The result goes by way of memory, so that
  // the registers of a call do not become those of the usual way.
  __device__ __forceinline__ bool find(uint32_t core, uint64_t address, uint32_t size, uint8_t need,
                                       uint64_t& at) const {
    uint64_t found;
    elsewhere(view_, core, address, size, need, &found);
    at = found;
    return at != 0;
  }
  __device__ __noinline__ static void elsewhere(const DeviceView& view, uint32_t core,
                                                uint64_t address, uint32_t size, uint8_t need,
                                                uint64_t* found) {
    uint8_t* const p = (address & (size - 1)) == 0 ? view.byte(core, address, need) : nullptr;
    *found = p ? OpenView::place_of(p) : 0;
  }

  const DeviceView& view_;
  const OpenView open_;
};

__device__ __forceinline__ RegionView for_regions(const DeviceView& view) {
  return RegionView(view);
}
// A caller's memory has no open part.
__device__ __forceinline__ const InPlaceView& for_regions(const InPlaceView& view) { return view; }

}  // namespace gpusim::cuda
