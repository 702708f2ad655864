// Memory of a caller as the threads of a GPU reach it (core/linear_space.h): the linear zone is a
// directory of regions. Where a region lies, in the host's memory or in copies, is all one to
// cores.
#pragma once
#include "device_sim/cuda/device_view.cuh"

namespace gpusim::cuda {

// 1 << InPlaceView::region_shift bytes of addresses. Nothing reads `storage` where no page has
// rights.
struct alignas(16) Region {
  uint8_t* storage;
  uint8_t* rights;  // SegmentFlags per page, and kDirty
};
// In the rights of a page: it was written, or nobody wants to know.
inline constexpr uint8_t kDirty = 0x80;

struct InPlaceView : DeviceView {
  const Region* regions = nullptr;  // of the linear zone
  uint32_t region_shift = 0;
  static constexpr bool kHasOpenPart = false;

  template <class T>
  __device__ __forceinline__ bool is_in_line(uint64_t address, uint8_t need) const {
    const uint64_t in_linear = address - linear_base;
    if (in_linear >= linear_size || (address & (sizeof(T) - 1)) != 0) return false;
    return (*rights_of(in_linear) & need) != 0;
  }
  template <class T>
  __device__ __forceinline__ T load_in_line(uint64_t address) const {
    return atomic_load(reinterpret_cast<const T*>(place_of(address - linear_base)));
  }
  template <class T>
  __device__ __forceinline__ void store_in_line(uint64_t address, T value) const {
    const uint64_t in_linear = address - linear_base;
    note_written(rights_of(in_linear));
    atomic_store(reinterpret_cast<T*>(place_of(in_linear)), value);
  }
  template <class T>
  __device__ __forceinline__ bool load(uint32_t core, uint64_t address, T* out) const {
    const Loaded loaded = load_elsewhere<InPlaceView>(*this, core, address, sizeof(T));
    *out = static_cast<T>(loaded.value);
    return loaded.ok;
  }
  template <class T>
  __device__ __forceinline__ bool store(uint32_t core, uint64_t address, T value) const {
    return store_elsewhere<InPlaceView>(*this, core, address, sizeof(T), value);
  }
  __device__ __forceinline__ uint8_t* byte(uint32_t core, uint64_t address, uint8_t need) const {
    const uint64_t in_linear = address - linear_base;
    if (in_linear >= linear_size) return MemoryView::byte(core, address, need);
    uint8_t* const rights = rights_of(in_linear);
    if ((*rights & need) != need) return nullptr;
    if ((need & kWrite) != 0) note_written(rights);
    return place_of(in_linear);
  }
  // Of its region, and nothing else of the linear zone.
  __device__ __forceinline__ MemoryView around(uint64_t address) const {
    MemoryView view = *this;
    const uint64_t in_linear = address - linear_base;
    if (in_linear >= linear_size) return view;
    const uint64_t number = in_linear >> region_shift;
    view.linear_base += number << region_shift;
    view.linear_size = uint64_t{1} << region_shift;
    view.linear = regions[number].storage;
    view.linear_pages = regions[number].rights;
    return view;
  }

 private:
  __device__ __forceinline__ uint64_t in_region(uint64_t in_linear) const {
    return in_linear & ((uint64_t{1} << region_shift) - 1);
  }
  __device__ __forceinline__ uint8_t* rights_of(uint64_t in_linear) const {
    return regions[in_linear >> region_shift].rights + (in_region(in_linear) >> kPageShift);
  }
  __device__ __forceinline__ uint8_t* place_of(uint64_t in_linear) const {
    return regions[in_linear >> region_shift].storage + in_region(in_linear);
  }
  // Several threads may; all write the same.
  __device__ __forceinline__ static void note_written(uint8_t* rights) {
    if (const uint8_t flags = *rights; (flags & kDirty) == 0) *rights = flags | kDirty;
  }
};

}  // namespace gpusim::cuda
