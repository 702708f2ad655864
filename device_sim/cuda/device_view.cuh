// Guest memory as the threads of a GPU reach it. Each access to a word that other cores may write
// is one of core/device_atomics.h.
#pragma once
#include "device_sim/core/memory_view.h"

namespace gpusim::cuda {

struct DeviceView : MemoryView {
  // Aligned accesses to the linear zone are done in line; all others by one function each.
  static constexpr bool kHasInLine = true;
  template <class T>
  __device__ __forceinline__ bool is_in_line(uint64_t address, uint8_t need) const {
    const uint64_t in_linear = address - linear_base;
    return in_linear < linear_size && (address & (sizeof(T) - 1)) == 0 &&
           (linear_pages[in_linear >> kPageShift] & need) != 0;
  }
  // The longest part of the linear zone whose pages may all be read and written: nobody has to look
  // at them. What is not there is looked at as usual.
  static constexpr bool kHasOpenPart = true;
  // It begins with a page, and all its addresses have the upper half in common.
  uint64_t open_base = 0, open_size = 0;
  uint32_t open_high = 0;
  uint32_t open_places[4] = {};  // of 1, 2, 4 and 8 bytes
  template <class T>
  __device__ __forceinline__ bool is_open(uint64_t address) const {
    return address - open_base < open_size && (address & (sizeof(T) - 1)) == 0;
  }
  template <class T>
  __device__ __forceinline__ T load_in_line(uint64_t address) const {
    return atomic_load(reinterpret_cast<const T*>(linear + (address - linear_base)));
  }
  template <class T>
  __device__ __forceinline__ void store_in_line(uint64_t address, T value) const {
    atomic_store(reinterpret_cast<T*>(linear + (address - linear_base)), value);
  }
  template <class T>
  __device__ __forceinline__ bool load(uint32_t core, uint64_t address, T* out) const {
    const Loaded loaded = load_elsewhere<MemoryView>(*this, core, address, sizeof(T));
    *out = static_cast<T>(loaded.value);
    return loaded.ok;
  }
  template <class T>
  __device__ __forceinline__ bool store(uint32_t core, uint64_t address, T value) const {
    return store_elsewhere<MemoryView>(*this, core, address, sizeof(T), value);
  }
  // Memory as code sees it that knows MemoryView alone, at this address and in its neighbourhood.
  __device__ __forceinline__ const MemoryView& around(uint64_t) const { return *this; }

  // For views that are made of this one.
  struct Loaded {
    uint64_t value;
    bool ok;
  };
  // A window's word, or bytes that do not lie together. A store is all or nothing, so that one that
  // faults leaves memory as it was.
  template <class View>
  __device__ __noinline__ static Loaded load_elsewhere(const View& view, uint32_t core,
                                                       uint64_t address, uint32_t size) {
    uint64_t value = 0;
    if ((address & (size - 1)) == 0) {
      const uint8_t* p = view.byte(core, address, kRead);
      if (!p) return {0, false};
      switch (size) {
        case 1:
          value = atomic_load(p);
          break;
        case 2:
          value = atomic_load(reinterpret_cast<const uint16_t*>(p));
          break;
        case 4:
          value = atomic_load(reinterpret_cast<const uint32_t*>(p));
          break;
        default:
          value = atomic_load(reinterpret_cast<const uint64_t*>(p));
          break;
      }
      return {value, true};
    }
    for (uint32_t i = 0; i < size; ++i) {
      const uint8_t* p = view.byte(core, address + i, kRead);
      if (!p) return {0, false};
      value |= uint64_t{atomic_load(p)} << (8 * i);
    }
    return {value, true};
  }
  template <class View>
  __device__ __noinline__ static bool store_elsewhere(const View& view, uint32_t core,
                                                      uint64_t address, uint32_t size,
                                                      uint64_t value) {
    if ((address & (size - 1)) == 0) {
      uint8_t* p = view.byte(core, address, kWrite);
      if (!p) return false;
      switch (size) {
        case 1:
          atomic_store(p, static_cast<uint8_t>(value));
          break;
        case 2:
          atomic_store(reinterpret_cast<uint16_t*>(p), static_cast<uint16_t>(value));
          break;
        case 4:
          atomic_store(reinterpret_cast<uint32_t*>(p), static_cast<uint32_t>(value));
          break;
        default:
          atomic_store(reinterpret_cast<uint64_t*>(p), value);
          break;
      }
      return true;
    }
    for (uint32_t i = 0; i < size; ++i)
      if (!view.byte(core, address + i, kWrite)) return false;
    for (uint32_t i = 0; i < size; ++i)
      atomic_store(view.byte(core, address + i, kWrite), static_cast<uint8_t>(value >> (8 * i)));
    return true;
  }
};

}  // namespace gpusim::cuda
