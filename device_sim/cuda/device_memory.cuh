// Guest memory in device memory, seen from the host. Page permissions have a mirror on the host and
// go over before the next slice.
#pragma once
#include <algorithm>

#include "device_sim/core/guest_memory.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/cuda/device_array.cuh"
#include "device_sim/cuda/launch.cuh"
#include "device_sim/cuda/thread.h"

namespace gpusim::cuda {

// Writes the same bytes at `offset` into the windows of all cores.
__global__ void broadcast_window(MemoryView view, uint32_t cores, uint64_t offset,
                                 const uint8_t* bytes, uint64_t size) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint64_t first_word = offset >> 3, words = ((offset + size - 1) >> 3) - first_word + 1;
  if (i >= words * cores) return;
  const uint32_t core = static_cast<uint32_t>(i % cores);
  const uint64_t word = first_word + i / cores;
  uint8_t* to = view.windows + view.window_index(core, word << 3);
  for (uint64_t b = 0; b < 8; ++b) {
    const uint64_t at = (word << 3) + b;
    if (at >= offset && at - offset < size) to[b] = bytes[at - offset];
  }
}

// Writes words to the same offset of all cores' windows.
__global__ void write_window_words(MemoryView view, uint32_t cores, uint64_t offset,
                                   const CoreWord* words, uint64_t count) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count * cores) return;
  const uint32_t core = static_cast<uint32_t>(i % cores);
  const CoreWord word = words[i / cores];
  *reinterpret_cast<uint64_t*>(view.windows + view.window_index(core, offset + 8 * (i / cores))) =
      word.value + core * word.step;
}

class DeviceMemory {
 public:
  void configure(const MachineConfig& config) {
    cores_ = config.cores;
    view_ = describe_zones(config, kLanesShift);
    linear_ = DeviceArray<uint8_t>(view_.linear_size, "guest memory");
    windows_ = DeviceArray<uint8_t>(windows_storage_bytes(view_), "per-core memory");
    linear_.zero();
    windows_.zero();
    linear_flags_.assign(view_.linear_size >> kPageShift, 0);
    window_flags_.assign(window_pages_bytes(view_), 0);
    linear_pages_ = DeviceArray<uint8_t>(linear_flags_.size(), "page permissions");
    window_pages_ = DeviceArray<uint8_t>(window_flags_.size(), "per-core page permissions");
    shared_words_ = DeviceArray<uint32_t>(2, "a lock and a counter");
    shared_words_.zero();
    view_.linear = linear_.data();
    view_.windows = windows_.data();
    view_.linear_pages = linear_pages_.data();
    view_.window_pages = window_pages_.data();
    view_.pair_lock = shared_words_.data();
    view_.events = shared_words_.data() + 1;
    flags_changed_ = true;
    journals_ = DeviceArray<uint64_t>(size_t{cores_} * config.journal_words, "journals");
    journal_sizes_ = DeviceArray<uint32_t>(config.journal_words ? cores_ : 0, "journals");
    view_.journals = journals_.data();
    view_.journal_sizes = journal_sizes_.data();
    view_.journal_words = config.journal_words;
    clear_journals();
  }
  void clear_journals() {
    journal_sizes_.zero();
    journals_are_here_ = false;
  }
  // Call after a slice, before journal(): this is not for several threads.
  void fetch_journals() {
    host_sizes_.resize(journal_sizes_.size());
    host_journals_.resize(journals_.size());
    journal_sizes_.download(host_sizes_);
    journals_.download(host_journals_);
    journals_are_here_ = true;
  }
  std::span<const uint64_t> journal(uint32_t core) const {
    if (!journals_are_here_) return {};
    MemoryView here = view_;
    here.journals = const_cast<uint64_t*>(host_journals_.data());
    here.journal_sizes = const_cast<uint32_t*>(host_sizes_.data());
    return journal_in(here, core);
  }
  // Brings the device up to date; call before a slice.
  const MemoryView& view() {
    if (flags_changed_) {
      linear_pages_.upload(linear_flags_);
      window_pages_.upload(window_flags_);
      flags_changed_ = false;
    }
    return view_;
  }

  bool read(uint32_t core, uint64_t address, std::span<uint8_t> out) const {
    return for_pieces(core, address, out.size(), [&](const Piece& p) {
      check(cudaMemcpy2D(out.data() + p.done, p.row, p.device, p.pitch, p.row, p.rows,
                         cudaMemcpyDeviceToHost),
            "reading guest memory");
    });
  }
  bool write(uint32_t core, uint64_t address, std::span<const uint8_t> in) {
    return for_pieces(core, address, in.size(), [&](const Piece& p) {
      check(cudaMemcpy2D(p.device, p.pitch, in.data() + p.done, p.row, p.row, p.rows,
                         cudaMemcpyHostToDevice),
            "writing guest memory");
    });
  }
  bool write_all(uint64_t address, std::span<const uint8_t> in) {
    if (!view_.is_private || in_linear(address) || in.empty()) return write(0, address, in);
    if (!in_zones(address, in.size())) return false;
    DeviceArray<uint8_t> bytes(in.size(), "a program segment");
    bytes.upload(in);
    const uint64_t offset = view_.windows_offset(address);
    const uint64_t words = ((offset + in.size() - 1) >> 3) - (offset >> 3) + 1;
    const uint64_t blocks = (words * cores_ + 255) / 256;
    launch(broadcast_window, static_cast<uint32_t>(blocks), 256, 0, "loading the program", view_,
           cores_, offset, bytes.data(), in.size());
    check(cudaDeviceSynchronize(), "loading the program");
    return true;
  }
  bool write_windows(uint64_t address, std::span<const CoreWord> words) {
    const uint64_t offset = address - view_.window_base;
    const uint64_t window_bytes = uint64_t{1} << view_.window_shift;
    if (view_.is_private || offset % 8 != 0 || offset >= window_bytes ||
        words.size() > (window_bytes - offset) / 8)
      return false;
    if (words.empty()) return true;
    DeviceArray<CoreWord> on_device(words.size(), "the cores' stacks");
    on_device.upload(words);
    const uint64_t blocks = (words.size() * cores_ + 255) / 256;
    launch(write_window_words, static_cast<uint32_t>(blocks), 256, 0, "writing the cores' stacks",
           view_, cores_, offset, on_device.data(), words.size());
    check(cudaDeviceSynchronize(), "writing the cores' stacks");
    return true;
  }
  bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) {
    return for_pieces(core, address, size_bytes, [&](const Piece& p) {
      check(cudaMemset2D(p.device, p.pitch, 0, p.row, p.rows), "clearing guest memory");
    });
  }
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes, uint8_t flags) {
    if (!in_zones(address, size_bytes)) return false;
    for (uint64_t a = address & ~(kPageSize - 1); a < address + size_bytes; a += kPageSize)
      *flag(core, a) = flags;
    flags_changed_ = true;
    return true;
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) {
    const uint32_t copies = view_.is_private && !in_linear(address) ? cores_ : 1;
    for (uint32_t core = 0; core < copies; ++core)
      if (!set_permissions(core, address, size_bytes, flags)) return false;
    return true;
  }
  uint8_t permissions(uint32_t core, uint64_t address) const {
    return in_zones(address, 1) ? *const_cast<DeviceMemory*>(this)->flag(core, address) : 0;
  }

  // For checkpoints: see MachineState.
  void visit_linear(const MachineState::Visitor& visit) const {
    constexpr uint64_t kPart = uint64_t{16} << 20;
    std::vector<uint8_t> part(std::min(kPart, view_.linear_size));
    for (uint64_t at = 0; at < view_.linear_size; at += part.size()) {
      const uint64_t size = std::min<uint64_t>(part.size(), view_.linear_size - at);
      check(cudaMemcpy(part.data(), view_.linear + at, size, cudaMemcpyDeviceToHost),
            "reading guest memory");
      for (uint64_t done = 0; done < size; done += kPageSize)
        visit((at + done) >> kPageShift, {part.data() + done, kPageSize});
    }
  }
  void visit_windows(const MachineState::Visitor& visit) const {
    const Tiles tiles(view_, cores_);
    // What lies together in storage: the same piece of all windows, which holds a few rows of tiles.
    std::vector<uint8_t> piece(uint64_t{view_.window_groups} << kPageShift);
    std::vector<uint8_t> tile;
    const uint64_t rows = view_.window_piece() / MachineState::kTileBytes;
    for (uint64_t first = 0; first < tiles.count; first += rows * tiles.groups) {
      const uint64_t begin = view_.window_index(0, tiles.offset(first));
      check(cudaMemcpy(piece.data(), view_.windows + begin, piece.size(), cudaMemcpyDeviceToHost),
            "reading per-core memory");
      for (uint64_t t = first; t < first + rows * tiles.groups; ++t) {
        tile.resize(tiles.bytes(t));
        for_runs(tiles, t, [&](uint64_t storage, uint64_t in_tile, uint64_t size) {
          std::copy_n(piece.data() + (storage - begin), size, tile.data() + in_tile);
        });
        visit(t, tile);
      }
    }
  }
  bool put_linear(uint64_t number, std::span<const uint8_t> bytes) {
    if (number >= view_.linear_size >> kPageShift || bytes.size() != kPageSize) return false;
    check(cudaMemcpy(view_.linear + (number << kPageShift), bytes.data(), kPageSize,
                     cudaMemcpyHostToDevice),
          "writing guest memory");
    return true;
  }
  bool put_windows(uint64_t number, std::span<const uint8_t> bytes) {
    const Tiles tiles(view_, cores_);
    if (number >= tiles.count || bytes.size() != tiles.bytes(number)) return false;
    for_runs(tiles, number, [&](uint64_t storage, uint64_t in_tile, uint64_t size) {
      check(cudaMemcpy(view_.windows + storage, bytes.data() + in_tile, size,
                       cudaMemcpyHostToDevice),
            "writing per-core memory");
    });
    return true;
  }
  uint32_t signalled_events() const {
    uint32_t words[2] = {};
    shared_words_.download(words);
    return words[1];
  }
  void set_signalled_events(uint32_t count) {
    const uint32_t words[2] = {0, count};
    shared_words_.upload(words);
  }

 private:
  // Calls f(place in storage, place in the tile, bytes) for words of a tile that lie together.
  template <class F>
  void for_runs(const Tiles& tiles, uint64_t tile, F f) const {
    const uint32_t first = tiles.first_core(tile), count = tiles.cores_of(tile);
    for (uint32_t word = 0; word < MachineState::kTileBytes / 8; ++word)
      for (uint32_t lane = 0; lane < count; lane += kWarpSize)
        f(view_.window_index(first + lane, tiles.offset(tile) + 8 * word),
          uint64_t{word * count + lane} * 8, uint64_t{std::min(kWarpSize, count - lane)} * 8);
  }
  // `rows` runs of `row` bytes, `pitch` bytes apart in device memory, after `done` bytes.
  struct Piece {
    uint8_t* device;
    size_t row, rows, pitch, done;
  };
  bool in_linear(uint64_t address) const { return address - view_.linear_base < view_.linear_size; }
  bool in_zones(uint64_t address, uint64_t size) const {
    const auto inside = [&](uint64_t base, uint64_t zone) {
      return address - base < zone && size <= zone - (address - base);
    };
    return size == 0 || inside(view_.linear_base, view_.linear_size) ||
           inside(view_.window_base, view_.windows_size) ||
           inside(view_.stack_base, view_.stack_size);
  }
  // Where a window address lives: whose window, and at what offset.
  std::pair<uint32_t, uint64_t> window_of(uint32_t core, uint64_t address) const {
    const uint64_t offset = view_.windows_offset(address);
    if (view_.is_private) return {core, offset};
    return {static_cast<uint32_t>(offset >> view_.window_shift),
            offset & ((uint64_t{1} << view_.window_shift) - 1)};
  }
  uint8_t* flag(uint32_t core, uint64_t address) {
    if (in_linear(address))
      return &linear_flags_[(address - view_.linear_base) >> kPageShift];
    const auto [owner, offset] = window_of(core, address);
    return &window_flags_[view_.window_page_index(owner, offset)];
  }
  template <class F>
  bool for_pieces(uint32_t core, uint64_t address, uint64_t size, F f) const {
    if (!in_zones(address, size)) return false;
    if (size == 0) return true;
    if (in_linear(address)) {
      f(Piece{view_.linear + (address - view_.linear_base), size, 1, size, 0});
      return true;
    }
    constexpr size_t kPitch = size_t{8} << kLanesShift;
    for (uint64_t done = 0; done < size;) {
      const auto [owner, offset] = window_of(core, address + done);
      const uint64_t piece = view_.window_piece();
      const uint64_t in_window = std::min(size - done, piece - (offset & (piece - 1)));
      const uint64_t head = std::min<uint64_t>(in_window, (8 - (offset & 7)) & 7);
      uint8_t* device = view_.windows + view_.window_index(owner, offset);
      if (head) {
        f(Piece{device, head, 1, kPitch, done});
        done += head;
      } else if (in_window >= 8) {
        f(Piece{device, 8, in_window / 8, kPitch, done});
        done += in_window / 8 * 8;
      } else {
        f(Piece{device, in_window, 1, kPitch, done});
        done += in_window;
      }
    }
    return true;
  }

  MemoryView view_;
  uint32_t cores_ = 0;
  DeviceArray<uint8_t> linear_, windows_, linear_pages_, window_pages_;
  DeviceArray<uint32_t> shared_words_;  // MemoryView::pair_lock, MemoryView::events
  std::vector<uint8_t> linear_flags_, window_flags_;
  bool flags_changed_ = false;
  DeviceArray<uint64_t> journals_;
  DeviceArray<uint32_t> journal_sizes_;
  std::vector<uint64_t> host_journals_;
  std::vector<uint32_t> host_sizes_;
  bool journals_are_here_ = false;
};

}  // namespace gpusim::cuda
