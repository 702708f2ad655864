// Guest memory of a machine on the host: storage and page permissions behind a MemoryView.
// Address space is reserved at once and pages appear when touched.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/guarded_space.h"
#include "device_sim/core/memory_view.h"
#include "device_sim/core/zones.h"

namespace gpusim {

// kHuge: of 2 MiB where the system offers them, for memory that will be used densely.
enum class Pages { kSmall, kHuge };

// Anonymous zeroed memory, reserved lazily.
class LazyMemory {
 public:
  LazyMemory() = default;
  // Throws std::runtime_error naming `what` when the system refuses.
  // The first `small_bytes` have small pages in any case.
  LazyMemory(uint64_t size_bytes, const char* what, Pages pages = Pages::kSmall,
             uint64_t small_bytes = 0);
  // Memory that belongs to somebody else.
  LazyMemory(uint8_t* data, uint64_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  ~LazyMemory();
  LazyMemory(LazyMemory&& other) noexcept { swap(other); }
  LazyMemory& operator=(LazyMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  uint8_t* data() const { return data_; }
  uint64_t size_bytes() const { return size_bytes_; }
  bool contains(const uint8_t* p) const { return p >= data_ && p < data_ + size_bytes_; }

 private:
  void swap(LazyMemory& other) {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_size_, other.mapping_size_);
  }
  uint8_t* data_ = nullptr;
  uint64_t size_bytes_ = 0;
  void* mapping_ = nullptr;
  uint64_t mapping_size_ = 0;
};

// The zones of a configuration, without storage.
MemoryView describe_zones(const MachineConfig& config, uint32_t lanes_shift);
// The windows' layout, see core/memory_view.h.
void set_lanes(MemoryView& view, uint32_t cores, uint32_t lanes_shift);
// Bytes of storage that the windows, their permissions and the linear zone's permissions need.
uint64_t windows_storage_bytes(const MemoryView& view);
uint64_t window_pages_bytes(const MemoryView& view);

// Of a view whose journals are in the host's memory. Throws std::logic_error if it overflowed.
std::span<const uint64_t> journal_in(const MemoryView& view, uint32_t core);

class GuestMemory {
 public:
  // `lanes_shift`: log2 of the windows interleaved in storage.
  void configure(const MachineConfig& config, uint32_t lanes_shift);
  const MemoryView& view() const { return view_; }
  // Before interleave().
  void reserve_other_layout();
  // Moves the windows' contents to storage of this layout, as wide as configure()'s or plain. Each
  // layout has one place, whenever it is chosen. Returns how many pages of storage held anything.
  // `is_fresh`: nobody has written to windows yet, which takes long to find out.
  uint64_t interleave(uint32_t lanes_shift, bool is_fresh = false);
  // Host pages carry the guest's permissions from now on: code that accesses memory at direct()
  // need not look them up. False: they cannot. It ends when the host has too few mappings, or
  // cannot tell some permissions apart, or windows are interleaved.
  bool guard();
  void open() { space_.open(view_); }
  bool is_guarded() const { return space_.is_guarded(); }
  DirectMemory direct() const { return space_.direct(); }
  void limit_guarded_runs(uint64_t most) { space_.limit_runs(most); }  // for tests

  // All storage of guest memory, as long as the configuration is the same.
  std::array<std::span<uint8_t>, 3> storage() const {
    const auto windows = [](const LazyMemory& m) { return std::span(m.data(), m.size_bytes()); };
    return {std::span(view_.linear, view_.linear_size), windows(windows_), windows(other_windows_)};
  }

  bool read(uint32_t core, uint64_t address, std::span<uint8_t> out) const;
  bool write(uint32_t core, uint64_t address, std::span<const uint8_t> in);
  bool write_all(uint64_t address, std::span<const uint8_t> in);
  bool write_windows(uint64_t address, std::span<const CoreWord> words);
  bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes);
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes, uint8_t flags);
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags);
  uint8_t permissions(uint32_t core, uint64_t address) const;

  // Of the CTA in this place.
  std::span<uint8_t> cta_memory(uint32_t place) const {
    return {view_.cta_memory + place * view_.cta_pitch, view_.cta_size};
  }

  std::span<const uint64_t> journal(uint32_t core) const { return journal_in(view_, core); }
  void clear_journals();

 private:
  // Calls f(storage, done, size) for the pieces of a range: see core/zones.h.
  template <class F>
  void for_pieces(uint32_t core, uint64_t address, uint64_t size_bytes, F f) const;
  uint8_t* page_flags(PageFlag flag) const;
  LazyMemory plain_windows(uint64_t size_bytes);
  void wish_for_huge_pages(uint64_t address, uint64_t size_bytes);
  class Opened;

  MemoryView view_;
  mutable GuardedSpace space_;  // what is read is opened for that
  uint32_t cores_ = 0;
  uint32_t pair_lock_ = 0, events_ = 0, journal_stamp_ = 0;
  LazyMemory linear_, linear_pages_, windows_, other_windows_, window_pages_, journals_,
      cta_memory_;
  std::vector<uint32_t> journal_sizes_;
  std::array<uint64_t, kInsnClassCount> class_ticks_ = {};
  uint8_t* linear_rights_ = nullptr;  // of linear_pages_, or the caller's
};

}  // namespace gpusim
