#include "device_sim/core/machine_state.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "device_sim/core/guest_memory.h"
#include "device_sim/core/touched_pages.h"

namespace gpusim {
namespace {

constexpr uint64_t kWords = MachineState::kTileBytes / 8;

// Calls f(storage, count, index) for runs of a tile's words that lie together in storage.
template <class F>
void for_runs(const MemoryView& view, const Tiles& tiles, uint64_t tile, F f) {
  const uint32_t first = tiles.first_core(tile), count = tiles.cores_of(tile);
  const uint32_t together = std::min(count, 1u << view.lanes_shift);
  const uint64_t offset = tiles.offset(tile);
  for (uint64_t word = 0; word < kWords; ++word)
    for (uint32_t lane = 0; lane < count; lane += together)
      f(view.windows + view.window_index(first + lane, offset + 8 * word),
        std::min(together, count - lane), word * count + lane);
}

}  // namespace

std::span<uint8_t> CpuMachineState::linear_storage() {
  const MemoryView& view = machine_memory().view;
  return {view.linear, view.linear_size};
}

void CpuMachineState::drop_memory() {
  end_slices();
  for (const std::span<uint8_t> storage : machine_memory().storage)
    if (!storage.empty()) madvise(storage.data(), storage.size(), MADV_DONTNEED);
}

void CpuMachineState::visit_linear(const Visitor& visit) {
  open_memory();
  const MemoryView& view = machine_memory().view;
  if (view.linear_size == 0) return;
  const TouchedPages touched(view.linear, view.linear_size);
  for (uint64_t page = 0; page < view.linear_size >> kPageShift; ++page) {
    const uint8_t* const p = view.linear + (page << kPageShift);
    if (touched(p)) visit(page, {p, kPageSize});
  }
}

void CpuMachineState::visit_windows(const Visitor& visit) {
  open_memory();
  const Memory memory = machine_memory();
  const MemoryView& view = memory.view;
  const Tiles tiles(view, memory.cores);
  const uint64_t lanes = uint64_t{1} << view.lanes_shift;
  const uint64_t storage = (uint64_t{view.window_groups} * lanes) << view.window_shift;
  const TouchedPages touched(view.windows, storage);
  std::array<uint64_t, kWords * kTileCores> words;
  // A tile lies in one page per group of windows that are interleaved.
  const auto is_touched = [&](uint64_t tile) {
    const uint32_t first = tiles.first_core(tile), count = tiles.cores_of(tile);
    for (uint32_t lane = 0; lane < count; lane += static_cast<uint32_t>(lanes))
      if (touched(view.windows + view.window_index(first + lane, tiles.offset(tile)))) return true;
    return false;
  };
  for (uint64_t tile = 0; tile < tiles.count; ++tile) {
    if (!is_touched(tile)) continue;
    for_runs(view, tiles, tile, [&](const uint8_t* from, uint32_t count, uint64_t index) {
      std::memcpy(&words[index], from, size_t{count} * 8);
    });
    visit(tile, {reinterpret_cast<const uint8_t*>(words.data()), tiles.bytes(tile)});
  }
}

bool CpuMachineState::put_linear(uint64_t number, std::span<const uint8_t> bytes) {
  open_memory();
  const MemoryView& view = machine_memory().view;
  if (number >= view.linear_size >> kPageShift || bytes.size() != kPageSize) return false;
  std::memcpy(view.linear + (number << kPageShift), bytes.data(), kPageSize);
  return true;
}

bool CpuMachineState::put_windows(uint64_t number, std::span<const uint8_t> bytes) {
  open_memory();
  const Memory memory = machine_memory();
  const MemoryView& view = memory.view;
  const uint32_t cores = memory.cores;
  const Tiles tiles(view, cores);
  if (number >= tiles.count || bytes.size() != tiles.bytes(number)) return false;
  for_runs(view, tiles, number, [&](uint8_t* to, uint32_t count, uint64_t index) {
    std::memcpy(to, bytes.data() + index * 8, size_t{count} * 8);
  });
  return true;
}

}  // namespace gpusim
