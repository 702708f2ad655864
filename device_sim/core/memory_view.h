// Guest memory as a core sees it: plain data and functions, the same on the host and in CUDA code.
//
// Two zones:
//  - linear: [linear_base, linear_base + linear_size), one copy for all cores;
//  - windows: one window of 1 << window_shift bytes per core. Storage interleaves the windows of
//    1 << lanes_shift neighbouring cores word by word (8 bytes), so that cores which access the
//    same offset of their own windows touch consecutive words. Pages of such words at the same
//    offset lie together for all groups of cores: what all stacks use is one dense piece. With
//    lanes_shift 0 windows are plain: each in one piece, one after the other.
// In the shared model the windows hold the stacks, one after the other from window_base, and every
// core reaches all of them. In the private model all cores see their own window at window_base, but
// for its last stack_size bytes, which they see at stack_base.
// Machines of CTAs have a third one: cta_size bytes at cta_base, of which each CTA has its own; all
// may be read and written. Those of the CTAs of its cluster it sees at cluster_base, too, one every
// 1 << cluster_shift bytes.
// Pages are 4 KiB. Accesses may be unaligned; nothing here ever faults on the host.
#pragma once
#include <cstdint>
#include <cstring>

#include "device_sim/core/atomics.h"
#include "device_sim/uir/hd.h"
#include "device_sim/uir/module.h"

namespace gpusim {

inline constexpr uint32_t kPageShift = 12;
inline constexpr uint64_t kPageSize = uint64_t{1} << kPageShift;

struct MemoryView {
  uint8_t* linear = nullptr;
  const uint8_t* linear_pages = nullptr;  // SegmentFlags per page
  uint64_t linear_base = 0;
  uint64_t linear_size = 0;  // multiple of the page size
  uint8_t* windows = nullptr;
  const uint8_t* window_pages = nullptr;  // SegmentFlags, [group][page][lane], see rights_shift
  uint64_t window_base = 0;
  // Bytes of the zone as addresses: all windows, or if private, one without its stack.
  uint64_t windows_size = 0;
  uint64_t stack_base = 0, stack_size = 0;  // private only; multiples of the page size
  uint32_t window_shift = 0;
  uint32_t lanes_shift = 0;
  uint32_t window_groups = 0;  // groups of 1 << lanes_shift cores
  uint32_t piece_shift = 0;    // log2 of the bytes of a window that lie together with its neighbours'
  uint32_t rights_shift = 0;   // log2 of the cores per group of window_pages
  uint32_t is_private = 0;
  uint8_t* cta_memory = nullptr;  // [place][cta_pitch]
  uint64_t cta_base = 0;
  uint64_t cta_size = 0;   // 0: none; multiple of 8
  uint64_t cta_pitch = 0;  // multiple of 64
  uint32_t cta_shift = 0;  // see core/cta.h
  uint64_t cluster_base = 0;
  uint32_t cluster_shift = 0;
  uint32_t cluster_ctas = 0;  // 0: they see only their own
  uint32_t* pair_lock = nullptr;  // see core/atomics.h
  uint32_t* events = nullptr;     // number of events signalled to all cores
  // Journals of the cores, [core][word], and how much was written of each; see uir/journal.h.
  uint64_t* journals = nullptr;
  uint32_t* journal_sizes = nullptr;
  uint32_t journal_words = 0;
  uint32_t* journal_stamp = nullptr;  // the latest one
  const uint64_t* class_ticks = nullptr;  // MachineConfig's, if cores note their clocks

  // Beyond the journal's end words are only counted.
  GPUSIM_HD_INLINE void note(uint32_t core, uint64_t word) const {
    const uint32_t at = journal_sizes[core]++;
    if (at < journal_words) journals[uint64_t{core} * journal_words + at] = word;
  }

  GPUSIM_HD_INLINE uint64_t next_stamp() const {
    return amo_sized<Op::amo_add, uint32_t>(reinterpret_cast<uint8_t*>(journal_stamp), 1, 2) + 1;
  }

  GPUSIM_HD_INLINE void signal_event() const {
    fence_all();
    amo_sized<Op::amo_add, uint32_t>(reinterpret_cast<uint8_t*>(events), 1, 2);
  }

  GPUSIM_HD_INLINE uint64_t window_piece() const { return uint64_t{1} << piece_shift; }
  // Storage index of byte `offset` in `core`'s window, [piece][group][word][lane][byte].
  GPUSIM_HD_INLINE uint64_t window_index(uint32_t core, uint64_t offset) const {
    const uint64_t group = core >> lanes_shift, lane = core & ((1u << lanes_shift) - 1);
    const uint64_t pieces = (offset >> piece_shift) * window_groups + group;
    const uint64_t word = (offset & (window_piece() - 1)) >> 3;
    return (pieces << (piece_shift + lanes_shift)) + (word << (lanes_shift + 3)) + (lane << 3) +
           (offset & 7);
  }
  GPUSIM_HD_INLINE uint64_t window_page_index(uint32_t core, uint64_t offset) const {
    const uint64_t group = core >> rights_shift, lane = core & ((1u << rights_shift) - 1);
    return (((group << (window_shift - kPageShift)) + (offset >> kPageShift)) << rights_shift) + lane;
  }

  // How far into the windows `address` lies: an offset in the own one if private.
  static constexpr uint64_t kNoOffset = ~uint64_t{0};
  GPUSIM_HD_INLINE uint64_t windows_offset(uint64_t address) const {
    const uint64_t offset = address - window_base;
    if (offset < windows_size) return offset;
    const uint64_t in_stack = address - stack_base;
    return in_stack < stack_size ? windows_size + in_stack : kNoOffset;
  }

  // Where an address in the memory of a CTA of the core's cluster lies.
  static constexpr uint32_t kNoPlace = ~uint32_t{0};
  struct CtaPlace {
    uint32_t place = kNoPlace;
    uint64_t offset = 0;
  };
  GPUSIM_HD_INLINE CtaPlace cta_place(uint32_t core, uint64_t address) const {
    const uint32_t own = core >> cta_shift;
    uint64_t offset = address - cta_base;
    if (offset < cta_size) return {own, offset};
    const uint64_t rank = (address - cluster_base) >> cluster_shift;
    if (rank >= cluster_ctas) return {};
    offset = (address - cluster_base) & ((uint64_t{1} << cluster_shift) - 1);
    if (offset >= cta_size) return {};
    return {own - own % cluster_ctas + static_cast<uint32_t>(rank), offset};
  }
  GPUSIM_HD_INLINE uint8_t* cta_byte(uint32_t core, uint64_t address) const {
#if defined(__CUDA_ARCH__)
    return nullptr;  // no machine there has CTAs
#else
    const CtaPlace at = cta_place(core, address);
    return at.place != kNoPlace ? cta_memory + at.place * cta_pitch + at.offset : nullptr;
#endif
  }

  // The byte at `address` for `core`, or null if the page lacks `need` (SegmentFlags).
  // Bytes up to the next multiple of 8 follow it in storage.
  GPUSIM_HD_INLINE uint8_t* byte(uint32_t core, uint64_t address, uint8_t need) const {
    const uint64_t in_linear = address - linear_base;
    if (in_linear < linear_size)
      return (linear_pages[in_linear >> kPageShift] & need) == need ? linear + in_linear : nullptr;
    uint64_t offset = windows_offset(address);
    if (offset == kNoOffset) return cta_byte(core, address);
    if (!is_private) {
      core = static_cast<uint32_t>(offset >> window_shift);
      offset &= (uint64_t{1} << window_shift) - 1;
    }
    if ((window_pages[window_page_index(core, offset)] & need) != need) return nullptr;
    return windows + window_index(core, offset);
  }

  // `size` bytes that lie together in storage and may be accessed, or null: either a fault or an
  // access that must be split (see *_split).
  GPUSIM_HD_INLINE uint8_t* span(uint32_t core, uint64_t address, uint32_t size,
                                 uint8_t need) const {
    const uint64_t in_linear = address - linear_base;
    const uint64_t page_rest = kPageSize - (address & (kPageSize - 1));
    if (in_linear < linear_size) {
      if ((linear_pages[in_linear >> kPageShift] & need) != need) return nullptr;
      return size <= page_rest ? linear + in_linear : nullptr;
    }
    return size <= 8 - (address & 7) ? byte(core, address, need) : nullptr;
  }

  template <class T>
  GPUSIM_HD_INLINE bool load(uint32_t core, uint64_t address, T* out) const {
    if (const uint8_t* p = span(core, address, sizeof(T), kRead)) {
      if ((address & (sizeof(T) - 1)) == 0) *out = *reinterpret_cast<const T*>(p);
      else std::memcpy(out, p, sizeof(T));
      return true;
    }
    return sizeof(T) > 1 && load_split(core, address, reinterpret_cast<uint8_t*>(out), sizeof(T));
  }
  template <class T>
  GPUSIM_HD_INLINE bool store(uint32_t core, uint64_t address, T value) const {
    if (uint8_t* p = span(core, address, sizeof(T), kWrite)) {
      if ((address & (sizeof(T) - 1)) == 0) *reinterpret_cast<T*>(p) = value;
      else std::memcpy(p, &value, sizeof(T));
      return true;
    }
    return sizeof(T) > 1 &&
           store_split(core, address, reinterpret_cast<const uint8_t*>(&value), sizeof(T));
  }

  // Byte by byte; all or nothing, so that a faulting store leaves memory as it was.
  GPUSIM_HD bool load_split(uint32_t core, uint64_t address, uint8_t* out, uint32_t size) const {
    for (uint32_t i = 0; i < size; ++i) {
      const uint8_t* p = byte(core, address + i, kRead);
      if (!p) return false;
      out[i] = *p;
    }
    return true;
  }
  GPUSIM_HD bool store_split(uint32_t core, uint64_t address, const uint8_t* in,
                             uint32_t size) const {
    for (uint32_t i = 0; i < size; ++i)
      if (!byte(core, address + i, kWrite)) return false;
    for (uint32_t i = 0; i < size; ++i) *byte(core, address + i, kWrite) = in[i];
    return true;
  }
};

}  // namespace gpusim
