// Guest memory in device memory, seen from the host. Page permissions have a mirror on the host and
// go over before the next slice.
#pragma once
#include <algorithm>

#include "device_sim/core/guest_memory.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/core/zones.h"
#include "device_sim/cuda/core_state.h"
#include "device_sim/cuda/linear_space.cuh"
#include "device_sim/cuda/storage_cache.cuh"

namespace gpusim::cuda {

// Writes the same bytes at `offset` into the windows of all cores; called for each word of each.
struct PutInAllWindows {
  MemoryView view;
  uint32_t cores;
  uint64_t offset;
  const uint8_t* bytes;
  uint64_t size;
  __device__ void operator()(uint64_t i) const {
    const uint64_t word = (offset >> 3) + i / cores;
    uint8_t* to = view.windows + view.window_index(static_cast<uint32_t>(i % cores), word << 3);
    for (uint64_t b = 0; b < 8; ++b) {
      const uint64_t at = (word << 3) + b;
      if (at >= offset && at - offset < size) to[b] = bytes[at - offset];
    }
  }
};

// Writes words to the same offset of all cores' windows; called for each word of each.
struct PutCoreWord {
  MemoryView view;
  uint32_t cores;
  uint64_t offset;
  const CoreWord* words;
  __device__ void operator()(uint64_t i) const {
    const auto core = static_cast<uint32_t>(i % cores);
    const CoreWord word = words[i / cores];
    uint8_t* to = view.windows + view.window_index(core, offset + 8 * (i / cores));
    *reinterpret_cast<uint64_t*>(to) = word.value + core * word.step;
  }
};

// Clears bytes [offset, end) of a window; called for each word from offset's on.
struct ClearWindowWord {
  MemoryView view;
  uint32_t core;
  uint64_t offset, end;
  __device__ void operator()(uint64_t i) const {
    const uint64_t word = (offset & ~uint64_t{7}) + 8 * i;
    uint8_t* to = view.windows + view.window_index(core, word);
    for (uint64_t b = 0; b < 8; ++b)
      if (word + b >= offset && word + b < end) to[b] = 0;
  }
};

// What the host changed of an array, to be sent before the next slice.
struct Changed {
  size_t begin = ~size_t{0}, end = 0;
  void add(size_t i) {
    begin = std::min(begin, i);
    end = std::max(end, i + 1);
  }
};

class DeviceMemory {
 public:
  // `space`: of the linear zone, if that is a caller's; else null.
  void configure(const MachineConfig& config, CudaLinearSpace* space) {
    cores_ = config.cores;
    space_ = space;
    caller_rights_ = config.linear_rights;
    static_cast<MemoryView&>(view_) = describe_zones(config, kLanesShift);
    const uint64_t own_bytes = space_ ? 0 : view_.linear_size;
    linear_ = DeviceArray<uint8_t>(own_bytes, "guest memory");
    windows_ = DeviceArray<uint8_t>(windows_storage_bytes(view_), "per-core memory");
    linear_.zero();
    windows_.zero();
    linear_flags_.assign(own_bytes >> kPageShift, 0);
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
    linear_cache_.attach(linear_.data(), linear_.size());
    window_cache_.attach(windows_.data(), windows_.size());
    linear_pages_.zero();
    window_pages_.zero();
    linear_changed_ = window_changed_ = {};
    view_.open_size = 0;
    const uint64_t places = config.cta_threads != 0 ? config.cores >> view_.cta_shift : 0;
    cta_memory_ = DeviceArray<uint8_t>(places * view_.cta_pitch, "memory of CTAs");
    cta_memory_.zero();
    view_.cta_memory = cta_memory_.data();
    host_ctas_.assign(places, {});
    cta_is_here_.assign(places, false);
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
  // For device code. Brings the device up to date.
  const InPlaceView& view() {
    if (space_) space_->describe(view_);
    if (linear_changed_.begin < linear_changed_.end) find_open_part();
    send(linear_flags_, linear_changed_, linear_pages_);
    send(window_flags_, window_changed_, window_pages_);
    linear_cache_.flush();
    window_cache_.flush();
    send_cta_memory();
    return view_;
  }
  // Of the CTA in this place. What the host writes there goes over with the next slice.
  std::span<uint8_t> cta_memory(uint32_t place) {
    std::vector<uint8_t>& here = host_ctas_[place];
    if (!cta_is_here_[place]) {
      here.resize(view_.cta_size);
      check(cudaMemcpy(here.data(), place_of_cta(place), here.size(), cudaMemcpyDeviceToHost),
            "reading memory of a CTA");
      cta_is_here_[place] = true;
    }
    return here;
  }
  // A slice begins: the host's copies of CTAs' memory become out of date.
  void slice_begins() { cta_is_here_.assign(cta_is_here_.size(), false); }

  bool read(uint32_t core, uint64_t address, std::span<uint8_t> out) {
    if (!in_zones(view_, address, out.size())) return false;
    for_pieces(view_, core, address, out.size(),
               [&](Zone zone, uint64_t place, uint64_t done, uint64_t size) {
                 if (zone == Zone::kLinear && space_)
                   space_->read(view_.linear_base + place, out.subspan(done, size));
                 else
                   cache(zone).read(place, out.subspan(done, size));
               });
    return true;
  }
  bool write(uint32_t core, uint64_t address, std::span<const uint8_t> in) {
    if (!in_zones(view_, address, in.size())) return false;
    for_pieces(view_, core, address, in.size(),
               [&](Zone zone, uint64_t place, uint64_t done, uint64_t size) {
                 if (zone == Zone::kLinear && space_)
                   space_->write(view_.linear_base + place, in.subspan(done, size));
                 else
                   cache(zone).write(place, in.subspan(done, size));
               });
    return true;
  }
  bool write_all(uint64_t address, std::span<const uint8_t> in) {
    if (!view_.is_private || in_linear(view_, address) || in.empty()) return write(0, address, in);
    if (!in_zones(view_, address, in.size())) return false;
    sent_.reserve(in.size(), "a program segment");
    sent_.upload(in);
    const uint64_t offset = view_.windows_offset(address);
    const uint64_t words = ((offset + in.size() - 1) >> 3) - (offset >> 3) + 1;
    for_each(words * cores_, PutInAllWindows{view(), cores_, offset, sent_.data(), in.size()});
    return true;
  }
  bool write_windows(uint64_t address, std::span<const CoreWord> words) {
    if (!are_words_of_a_window(view_, address, words.size())) return false;
    const uint64_t offset = address - view_.window_base;
    if (words.empty()) return true;
    sent_words_.reserve(words.size(), "the cores' stacks");
    sent_words_.upload(words);
    for_each(words.size() * cores_, PutCoreWord{view(), cores_, offset, sent_words_.data()});
    return true;
  }
  bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) {
    if (!in_zones(view_, address, size_bytes)) return false;
    view();
    for (uint64_t done = 0; done < size_bytes;) {
      const uint64_t at = address + done;
      if (in_linear(view_, at)) {
        const uint64_t in_zone = at - view_.linear_base;
        uint64_t run = std::min(size_bytes - done, view_.linear_size - in_zone);
        if (space_) {
          static constexpr uint8_t kZeros[kPageSize] = {};
          run = std::min(run, kPageSize);
          space_->write(at, {kZeros, run});
          done += run;
          continue;
        }
        check(cudaMemset(view_.linear + in_zone, 0, run), "clearing guest memory");
        done += run;
        continue;
      }
      const auto [owner, offset] = window_place(view_, core, at);
      const uint64_t window = uint64_t{1} << view_.window_shift;
      const uint64_t run = std::min(size_bytes - done, window - offset);
      for_each((offset + run + 7) / 8 - offset / 8,
               ClearWindowWord{view_, owner, offset, offset + run});
      done += run;
    }
    return true;
  }
  // A caller's memory has the rights that the caller gave.
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes, uint8_t flags) {
    if (!in_zones(view_, address, size_bytes)) return false;
    if (space_ && in_linear(view_, address)) return false;
    for_page_flags(view_, core, address, size_bytes, [&](PageFlag flag) {
      const bool is_linear = flag.zone == Zone::kLinear;
      (is_linear ? linear_flags_ : window_flags_)[flag.index] = flags;
      (is_linear ? linear_changed_ : window_changed_).add(flag.index);
    });
    return true;
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) {
    const uint32_t copies = view_.is_private && !in_linear(view_, address) ? cores_ : 1;
    for (uint32_t core = 0; core < copies; ++core)
      if (!set_permissions(core, address, size_bytes, flags)) return false;
    return true;
  }
  uint8_t permissions(uint32_t core, uint64_t address) const {
    if (!in_zones(view_, address, 1)) return 0;
    const auto [zone, index] = page_flag(view_, core, address);
    if (zone == Zone::kLinear && space_) return caller_rights_[index];
    return (zone == Zone::kLinear ? linear_flags_ : window_flags_)[index];
  }

  // For checkpoints: see MachineState.
  void visit_linear(const MachineState::Visitor& visit) {
    if (space_) throw std::logic_error("a caller's memory is in no checkpoint");
    view();
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
  void visit_windows(const MachineState::Visitor& visit) {
    view();
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
    if (number >= linear_.size() >> kPageShift || bytes.size() != kPageSize) return false;
    linear_cache_.write(number << kPageShift, bytes);
    return true;
  }
  bool put_windows(uint64_t number, std::span<const uint8_t> bytes) {
    const Tiles tiles(view_, cores_);
    if (number >= tiles.count || bytes.size() != tiles.bytes(number)) return false;
    for_runs(tiles, number, [&](uint64_t storage, uint64_t in_tile, uint64_t size) {
      window_cache_.write(storage, bytes.subspan(in_tile, size));
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
  uint8_t* place_of_cta(uint32_t place) const {
    return view_.cta_memory + place * view_.cta_pitch;
  }
  void send_cta_memory() {
    for (uint32_t place = 0; place < cta_is_here_.size(); ++place)
      if (cta_is_here_[place])
        check(cudaMemcpy(place_of_cta(place), host_ctas_[place].data(), view_.cta_size,
                         cudaMemcpyHostToDevice),
              "sending memory of a CTA");
  }
  StorageCache& cache(Zone zone) { return zone == Zone::kLinear ? linear_cache_ : window_cache_; }
  template <class F>
  static void for_each(uint64_t count, F f) {
    thrust::for_each_n(thrust::device, thrust::counting_iterator<uint64_t>(0), count, f);
  }
  static void send(const std::vector<uint8_t>& from, Changed& changed, DeviceArray<uint8_t>& to) {
    if (changed.begin >= changed.end) return;
    check(cudaMemcpy(to.data() + changed.begin, from.data() + changed.begin,
                     changed.end - changed.begin, cudaMemcpyHostToDevice),
          "sending page permissions");
    changed = {};
  }

  void find_open_part() {
    constexpr uint8_t kOpen = kRead | kWrite;
    constexpr uint64_t kHalf = uint64_t{1} << 32;
    uint64_t longest = 0, run = 0;
    for (size_t page = 0; page < linear_flags_.size(); ++page) {
      const uint64_t address = view_.linear_base + (page << kPageShift);
      if (address % kHalf == 0) run = 0;
      run = (linear_flags_[page] & kOpen) == kOpen ? run + kPageSize : 0;
      // Of all of 4 GiB the last page is left out: sizes have 32 bits.
      if (run <= longest || run == kHalf) continue;
      longest = run;
      view_.open_base = address + kPageSize - run;
    }
    view_.open_size = longest;
    view_.open_high = static_cast<uint32_t>(view_.open_base >> 32);
    for (uint32_t i = 0; i < 4; ++i) view_.open_places[i] = static_cast<uint32_t>(longest >> i);
  }

  InPlaceView view_;
  CudaLinearSpace* space_ = nullptr;  // null: the linear zone is here
  const uint8_t* caller_rights_ = nullptr;
  uint32_t cores_ = 0;
  DeviceArray<uint8_t> linear_, windows_, linear_pages_, window_pages_;
  DeviceArray<uint8_t> cta_memory_;
  std::vector<std::vector<uint8_t>> host_ctas_;  // per place
  std::vector<bool> cta_is_here_;                // and whether this is the right one
  DeviceArray<uint32_t> shared_words_;  // MemoryView::pair_lock, MemoryView::events
  std::vector<uint8_t> linear_flags_, window_flags_;
  Changed linear_changed_, window_changed_;
  StorageCache linear_cache_, window_cache_;
  DeviceArray<uint8_t> sent_;
  DeviceArray<CoreWord> sent_words_;
  DeviceArray<uint64_t> journals_;
  DeviceArray<uint32_t> journal_sizes_;
  std::vector<uint64_t> host_journals_;
  std::vector<uint32_t> host_sizes_;
  bool journals_are_here_ = false;
};

}  // namespace gpusim::cuda
