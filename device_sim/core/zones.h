// Guest addresses as places in storage, for code of the host that reads and writes guest memory,
// wherever its storage is. See core/memory_view.h for the zones.
#pragma once
#include <algorithm>

#include "device_sim/core/memory_view.h"

namespace gpusim {

enum class Zone : uint8_t { kLinear, kWindows };

inline bool in_linear(const MemoryView& view, uint64_t address) {
  return address - view.linear_base < view.linear_size;
}

// Whether all of a range is in the zones. They may touch: a range may start in the linear one and go
// on in the windows.
inline bool in_zones(const MemoryView& view, uint64_t address, uint64_t size_bytes) {
  if (size_bytes == 0) return true;
  if (in_linear(view, address)) {
    const uint64_t rest = view.linear_size - (address - view.linear_base);
    return size_bytes <= rest || (view.window_base == view.linear_base + view.linear_size &&
                                  size_bytes - rest <= view.windows_size);
  }
  const uint64_t in_windows = address - view.window_base, in_stack = address - view.stack_base;
  if (in_windows < view.windows_size) return size_bytes <= view.windows_size - in_windows;
  return in_stack < view.stack_size && size_bytes <= view.stack_size - in_stack;
}

// A window, and an offset in it.
struct WindowPlace {
  uint32_t core;
  uint64_t offset;
};
// Of an address in the windows, as `core` sees it.
inline WindowPlace window_place(const MemoryView& view, uint32_t core, uint64_t address) {
  const uint64_t offset = view.windows_offset(address);
  if (view.is_private) return {core, offset};
  return {static_cast<uint32_t>(offset >> view.window_shift),
          offset & ((uint64_t{1} << view.window_shift) - 1)};
}

// Calls f(zone, place in the zone's storage, done, size) for the pieces of a range in zones that lie
// together in storage: `size` bytes, after `done` others. In the linear zone a piece ends where the
// zone or the range does, in windows with its word.
template <class F>
void for_pieces(const MemoryView& view, uint32_t core, uint64_t address, uint64_t size_bytes, F f) {
  const uint64_t word_pitch = uint64_t{8} << view.lanes_shift;
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t in_zone = address + done - view.linear_base;
    if (in_zone < view.linear_size) {
      const uint64_t run = std::min(size_bytes - done, view.linear_size - in_zone);
      f(Zone::kLinear, in_zone, done, run);
      done += run;
      continue;
    }
    const auto [owner, offset] = window_place(view, core, address + done);
    const uint64_t piece = view.window_piece();
    const uint64_t end = std::min(size_bytes, done + piece - (offset & (piece - 1)));
    uint64_t word = view.window_index(owner, offset & ~uint64_t{7});
    for (uint64_t in_word = offset & 7; done < end; in_word = 0, word += word_pitch) {
      const uint64_t run = std::min(end - done, 8 - in_word);
      f(Zone::kWindows, word + in_word, done, run);
      done += run;
    }
  }
}

// Which of a zone's page flags an address in it has.
struct PageFlag {
  Zone zone;
  uint64_t index;
};
inline PageFlag page_flag(const MemoryView& view, uint32_t core, uint64_t address) {
  if (in_linear(view, address))
    return {Zone::kLinear, (address - view.linear_base) >> kPageShift};
  const auto [owner, offset] = window_place(view, core, address);
  return {Zone::kWindows, view.window_page_index(owner, offset)};
}

// Calls f with the flag of each page that a range in zones touches. No bytes may be anywhere, and
// touch none.
template <class F>
void for_page_flags(const MemoryView& view, uint32_t core, uint64_t address, uint64_t size_bytes,
                    F f) {
  if (size_bytes == 0) return;
  const uint64_t first = address & ~(kPageSize - 1);
  for (uint64_t a = first; a - first < size_bytes + (address - first); a += kPageSize)
    f(page_flag(view, core, a));
}

// Whether so many words from `address` on are in core 0's window of a shared machine, and aligned.
inline bool are_words_of_a_window(const MemoryView& view, uint64_t address, size_t words) {
  const uint64_t offset = address - view.window_base;
  const uint64_t window_bytes = uint64_t{1} << view.window_shift;
  return !view.is_private && offset % 8 == 0 && offset < window_bytes &&
         words <= (window_bytes - offset) / 8;
}

}  // namespace gpusim
