// Guest memory of machines of CTAs as the threads of a GPU reach it: what `Inner` shows, and the
// memory of CTAs.
#pragma once
#include "device_sim/cuda/in_place_view.cuh"

namespace gpusim::cuda {

template <class Inner>
class CtaView {
 public:
  using Within = Inner;
  static constexpr bool kHasInLine = true, kHasOpenPart = Inner::kHasOpenPart;
  __device__ __forceinline__ explicit CtaView(const Inner& inner)
      : pair_lock(inner.pair_lock), inner_(inner) {}

  template <class T>
  __device__ __forceinline__ bool is_in_line(uint64_t address, uint8_t need) const {
    return inner_.template is_in_line<T>(address, need);
  }
  template <class T>
  __device__ __forceinline__ bool is_open(uint64_t address) const {
    return inner_.template is_open<T>(address);
  }
  template <class T>
  __device__ __forceinline__ T load_in_line(uint64_t address) const {
    return inner_.template load_in_line<T>(address);
  }
  template <class T>
  __device__ __forceinline__ void store_in_line(uint64_t address, T value) const {
    inner_.store_in_line(address, value);
  }
  template <class T>
  __device__ __forceinline__ bool load(uint32_t core, uint64_t address, T* out) const {
    const DeviceView::Loaded loaded =
        DeviceView::load_elsewhere<CtaView>(*this, core, address, sizeof(T));
    *out = static_cast<T>(loaded.value);
    return loaded.ok;
  }
  template <class T>
  __device__ __forceinline__ bool store(uint32_t core, uint64_t address, T value) const {
    return DeviceView::store_elsewhere<CtaView>(*this, core, address, sizeof(T), value);
  }
  __device__ __forceinline__ uint8_t* byte(uint32_t core, uint64_t address, uint8_t need) const {
    if (uint8_t* const p = inner_.byte(core, address, need)) return p;
    const MemoryView::CtaPlace at = inner_.cta_place(core, address);
    if (at.place == MemoryView::kNoPlace) return nullptr;
    return inner_.cta_memory + at.place * inner_.cta_pitch + at.offset;
  }
  __device__ __forceinline__ MemoryView around(uint64_t address) const {
    return inner_.around(address);
  }
  __device__ __forceinline__ void note(uint32_t core, uint64_t word) const {
    inner_.note(core, word);
  }
  __device__ __forceinline__ uint64_t next_stamp() const { return inner_.next_stamp(); }
  __device__ __forceinline__ void signal_event() const { inner_.signal_event(); }

  uint32_t* const pair_lock;

 private:
  const Inner& inner_;
};

template <class View>
inline constexpr bool kHasCtas = false;
template <class Inner>
inline constexpr bool kHasCtas<CtaView<Inner>> = true;

}  // namespace gpusim::cuda
