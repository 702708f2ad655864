#include "device_sim/core/guest_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "device_sim/core/cta.h"
#include "device_sim/core/touched_pages.h"

namespace gpusim {

namespace {

constexpr uint64_t kHugePageSize = uint64_t{2} << 20;
// Larger than threads' stacks, of which only a few pages are touched.
constexpr uint64_t kWorthHugePages = uint64_t{16} << 20;
// Bytes of which whole pages go back to the system to be cleared.
constexpr uint64_t kWorthReturning = 16 * kPageSize;

void clear(uint8_t* p, uint64_t size) {
  // Reading first leaves untouched pages unbacked.
  for (uint64_t run = 0; size > 0; p += run, size -= run) {
    run = std::min(size, kPageSize - (reinterpret_cast<uintptr_t>(p) & (kPageSize - 1)));
    if (std::any_of(p, p + run, [](uint8_t b) { return b != 0; })) std::memset(p, 0, run);
  }
}

// Copies the words of a page of windows' storage, `at` bytes from its start. False: they are zero.
bool copy_page(const MemoryView& from, const MemoryView& to, uint64_t at) {
  const uint64_t pieces = at >> (from.piece_shift + from.lanes_shift);
  const auto first_core = static_cast<uint32_t>(pieces % from.window_groups << from.lanes_shift);
  const uint64_t in_piece = at & ((from.window_piece() << from.lanes_shift) - 1);
  const uint64_t offset =
      (pieces / from.window_groups << from.piece_shift) + (in_piece >> from.lanes_shift);
  bool is_used = false;
  for (uint32_t i = 0; i < kPageSize / 8; ++i) {
    uint64_t value;
    std::memcpy(&value, from.windows + at + 8 * i, 8);
    // Storage that was never touched is zero.
    if (value == 0) continue;
    const uint32_t core = first_core + (i & ((1u << from.lanes_shift) - 1));
    const uint64_t word = i >> from.lanes_shift;
    std::memcpy(to.windows + to.window_index(core, offset + 8 * word), &value, 8);
    is_used = true;
  }
  return is_used;
}

}  // namespace

LazyMemory::LazyMemory(uint64_t size_bytes, const char* what, Pages pages, uint64_t small_bytes)
    : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  const bool huge = pages == Pages::kHuge && size_bytes >= kHugePageSize;
  const uint64_t mapping_size = size_bytes + (huge ? kHugePageSize : 0);  // room for alignment
  void* p = mmap(nullptr, mapping_size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw std::runtime_error("cannot reserve " + std::to_string(size_bytes >> 20) + " MiB for " +
                             what + ": " + std::strerror(errno) +
                             "; use fewer cores or a smaller --memory-size or --stack-size");
  mapping_ = p;
  mapping_size_ = mapping_size;
  data_ = static_cast<uint8_t*>(p);
  if (huge) {
    data_ += (0 - reinterpret_cast<uintptr_t>(p)) & (kHugePageSize - 1);
    madvise(data_ + small_bytes, size_bytes - small_bytes, MADV_HUGEPAGE);  // a wish
  }
}

LazyMemory::~LazyMemory() {
  if (mapping_) munmap(mapping_, mapping_size_);
}

MemoryView describe_zones(const MachineConfig& config, uint32_t lanes_shift) {
  MemoryView view;
  view.linear_base = config.linear_base;
  view.linear_size = config.linear_size;
  view.window_base = config.window_base;
  view.window_shift = config.window_shift;
  set_lanes(view, config.cores, lanes_shift);
  view.rights_shift = lanes_shift;
  view.is_private = config.memory_model == MemoryModel::kPrivate;
  view.windows_size = uint64_t{view.is_private ? 1 : config.cores} << config.window_shift;
  if (view.is_private) {
    view.stack_base = config.stack_base;
    view.stack_size = config.stack_size;
    view.windows_size -= config.stack_size;
  }
  if (config.cta_threads != 0) {
    view.cta_base = config.cta_base;
    view.cta_size = config.cta_bytes;
    view.cta_pitch = (config.cta_bytes + 63) & ~uint64_t{63};
    view.cta_shift = cta_shift_of(config.cta_threads);
    view.cluster_base = config.cluster_base;
    view.cluster_shift = config.cluster_shift;
    view.cluster_ctas = config.cluster_base != 0 ? config.cluster_ctas : 0;
  }
  return view;
}

void set_lanes(MemoryView& view, uint32_t cores, uint32_t lanes_shift) {
  view.lanes_shift = lanes_shift;
  view.window_groups = ((cores - 1) >> lanes_shift) + 1;
  view.piece_shift = lanes_shift == 0 ? view.window_shift : kPageShift - lanes_shift;
}

uint64_t windows_storage_bytes(const MemoryView& view) {
  return (uint64_t{view.window_groups} << view.lanes_shift) << view.window_shift;
}

uint64_t window_pages_bytes(const MemoryView& view) {
  return windows_storage_bytes(view) >> kPageShift;
}

void GuestMemory::configure(const MachineConfig& config, uint32_t lanes_shift) {
  cores_ = config.cores;
  view_ = describe_zones(config, lanes_shift);
  if (config.linear_storage != nullptr || !space_.reserve(view_)) space_ = {};
  if (config.linear_storage == nullptr) {
    uint8_t* const place = space_.map(view_.linear_base, view_.linear_size);
    linear_ = place ? LazyMemory(place, view_.linear_size)
                    : LazyMemory(view_.linear_size, "guest memory");
    linear_pages_ = LazyMemory(view_.linear_size >> kPageShift, "page permissions");
  }
  view_.linear = config.linear_storage ? config.linear_storage : linear_.data();
  linear_rights_ = config.linear_storage ? config.linear_rights : linear_pages_.data();
  // Many stacks use the same few pieces of their windows: the last ones. A core that goes deeper is
  // often alone there.
  constexpr uint32_t kManyGroups = 16;
  constexpr uint64_t kOfAll = uint64_t{64} << 10;
  const bool dense = !view_.is_private && lanes_shift != 0 && view_.window_groups >= kManyGroups;
  // A vector load of the last row may reach past its end.
  const uint64_t windows_bytes = windows_storage_bytes(view_) + kPageSize;
  const uint64_t window = uint64_t{1} << view_.window_shift;
  const uint64_t deep_bytes =
      windows_storage_bytes(view_) / window * (window - std::min(window, kOfAll));
  windows_ = lanes_shift == 0 ? plain_windows(windows_bytes)
                              : LazyMemory(windows_bytes, "per-core memory",
                                           dense ? Pages::kHuge : Pages::kSmall, deep_bytes);
  other_windows_ = {};
  window_pages_ = LazyMemory(window_pages_bytes(view_), "per-core page permissions");
  view_.linear_pages = linear_rights_;
  view_.windows = windows_.data();
  view_.window_pages = window_pages_.data();
  cta_memory_ = {};
  if (config.cta_threads != 0) {
    // A vector load may reach past the end.
    constexpr uint64_t kBeyond = 64 * 8;
    const uint64_t places = config.cores >> view_.cta_shift;
    cta_memory_ = LazyMemory(places * view_.cta_pitch + kBeyond, "memory of CTAs");
    view_.cta_memory = cta_memory_.data();
  }
  view_.pair_lock = &pair_lock_;
  view_.events = &events_;
  view_.journal_words = config.journal_words;
  journal_sizes_.assign(config.journal_words ? cores_ : 0, 0);
  journals_ = {};
  if (const uint64_t bytes = uint64_t{cores_} * config.journal_words * sizeof(uint64_t)) {
    // Of very many cores each uses little of its own.
    constexpr uint64_t kDense = uint64_t{64} << 20;
    journals_ = LazyMemory(bytes, "journals",
                           config.notes_clocks || bytes > kDense ? Pages::kSmall : Pages::kHuge);
  }
  view_.journals = reinterpret_cast<uint64_t*>(journals_.data());
  view_.journal_sizes = journal_sizes_.data();
  view_.journal_stamp = &journal_stamp_;
  class_ticks_ = config.class_ticks;
  view_.class_ticks = config.notes_clocks ? class_ticks_.data() : nullptr;
}

std::span<const uint64_t> journal_in(const MemoryView& view, uint32_t core) {
  const uint32_t size = view.journal_words ? view.journal_sizes[core] : 0;
  if (size > view.journal_words) throw std::logic_error("a core's journal is full: slice too long");
  return {view.journals + uint64_t{core} * view.journal_words, size};
}

void GuestMemory::clear_journals() {
  std::fill(journal_sizes_.begin(), journal_sizes_.end(), 0u);
  journal_stamp_ = 0;
}

void GuestMemory::reserve_other_layout() {
  other_windows_ = view_.lanes_shift != 0 ? plain_windows(windows_.size_bytes())
                                          : LazyMemory(windows_.size_bytes(), "per-core memory");
}

// Plain windows are as long as their addresses.
LazyMemory GuestMemory::plain_windows(uint64_t size_bytes) {
  uint8_t* const place = space_.map(view_.window_base, view_.windows_size);
  return place ? LazyMemory(place, view_.windows_size) : LazyMemory(size_bytes, "per-core memory");
}

bool GuestMemory::guard() {
  const DirectMemory direct = space_.direct();
  if (direct.base == nullptr || view_.lanes_shift != 0 ||
      view_.linear != direct.base + view_.linear_base ||
      view_.windows != direct.base + view_.window_base)
    return false;
  return space_.guard(view_);
}

// While it lives, a range may be accessed whatever its permissions.
class GuestMemory::Opened {
 public:
  Opened(const GuestMemory& memory, uint64_t address, uint64_t size_bytes, uint8_t need)
      : memory_(memory), address_(address), size_bytes_(size_bytes) {
    if (!memory.space_.is_guarded()) return;
    for_page_flags(memory.view_, 0, address, size_bytes,
                   [&](PageFlag flag) { is_open_ |= (*memory.page_flags(flag) & need) != need; });
    if (is_open_) memory.space_.open_range(memory.view_, address, size_bytes);
  }
  ~Opened() {
    if (is_open_) memory_.space_.update(memory_.view_, address_, size_bytes_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  const GuestMemory& memory_;
  uint64_t address_, size_bytes_;
  bool is_open_ = false;
};

uint64_t GuestMemory::interleave(uint32_t lanes_shift, bool is_fresh) {
  const MemoryView from = view_;
  if (lanes_shift == from.lanes_shift) return 0;
  open();
  const uint64_t bytes = windows_storage_bytes(from);
  set_lanes(view_, cores_, lanes_shift);
  view_.windows = from.windows == windows_.data() ? other_windows_.data() : windows_.data();
  if (is_fresh) return 0;
  const TouchedPages touched(from.windows, bytes);
  uint64_t pages = 0;
  for (uint64_t at = 0; at < bytes; at += kPageSize) {
    if (!touched(from.windows + at)) continue;
    pages += copy_page(from, view_, at);
    // Both at once might be more than there is.
    madvise(from.windows + at, kPageSize, MADV_DONTNEED);
  }
  return pages;
}

template <class F>
void GuestMemory::for_pieces(uint32_t core, uint64_t address, uint64_t size_bytes, F f) const {
  gpusim::for_pieces(view_, core, address, size_bytes,
                     [&](Zone zone, uint64_t place, uint64_t done, uint64_t size) {
                       f((zone == Zone::kLinear ? view_.linear : view_.windows) + place, done,
                         size);
                     });
}

uint8_t* GuestMemory::page_flags(PageFlag flag) const {
  return (flag.zone == Zone::kLinear ? linear_rights_ : window_pages_.data()) + flag.index;
}

bool GuestMemory::read(uint32_t core, uint64_t address, std::span<uint8_t> out) const {
  if (!in_zones(view_, address, out.size())) return false;
  const Opened opened(*this, address, out.size(), kRead);
  for_pieces(core, address, out.size(), [&](const uint8_t* p, uint64_t done, uint64_t size) {
    std::memcpy(out.data() + done, p, size);
  });
  return true;
}

bool GuestMemory::write(uint32_t core, uint64_t address, std::span<const uint8_t> in) {
  if (!in_zones(view_, address, in.size())) return false;
  const Opened opened(*this, address, in.size(), kWrite);
  for_pieces(core, address, in.size(), [&](uint8_t* p, uint64_t done, uint64_t size) {
    if (size == 8)  // most pieces of windows
      std::memcpy(p, in.data() + done, 8);
    else
      std::memcpy(p, in.data() + done, size);
  });
  return true;
}

bool GuestMemory::write_all(uint64_t address, std::span<const uint8_t> in) {
  const uint32_t copies = view_.is_private && !in_linear(view_, address) ? cores_ : 1;
  for (uint32_t core = 0; core < copies; ++core)
    if (!write(core, address, in)) return false;
  return true;
}

bool GuestMemory::write_windows(uint64_t address, std::span<const CoreWord> words) {
  if (!are_words_of_a_window(view_, address, words.size())) return false;
  open();
  const uint64_t offset = address - view_.window_base;
  const uint32_t lanes = 1u << view_.lanes_shift;
  for (uint32_t first = 0; first < cores_; first += lanes) {
    const uint32_t count = std::min(lanes, cores_ - first);
    for (size_t i = 0; i < words.size(); ++i) {
      uint8_t* to = view_.windows + view_.window_index(first, offset + 8 * i);
      uint64_t value = words[i].of(first);
      for (uint32_t lane = 0; lane < count; ++lane, value += words[i].step)
        std::memcpy(to + 8 * lane, &value, 8);
    }
  }
  return true;
}

bool GuestMemory::fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) {
  if (!in_zones(view_, address, size_bytes)) return false;
  const Opened opened(*this, address, size_bytes, kWrite);
  for_pieces(core, address, size_bytes, [this](uint8_t* p, uint64_t, uint64_t size) {
    const uint64_t before = -reinterpret_cast<uintptr_t>(p) & (kPageSize - 1);
    if (size < kWorthReturning || !linear_.contains(p)) return clear(p, size);
    const uint64_t whole = (size - before) & ~(kPageSize - 1);
    clear(p, before);
    if (madvise(p + before, whole, MADV_DONTNEED) != 0) clear(p + before, whole);
    clear(p + before + whole, size - before - whole);
  });
  return true;
}

bool GuestMemory::set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                                  uint8_t flags) {
  if (!in_zones(view_, address, size_bytes)) return false;
  for_page_flags(view_, core, address, size_bytes,
                 [&](PageFlag flag) { *page_flags(flag) = flags; });
  if ((flags & kWrite) && size_bytes >= kWorthHugePages) wish_for_huge_pages(address, size_bytes);
  if (space_.is_guarded()) space_.update(view_, address, size_bytes);
  return true;
}

// Lanes walk through large arrays row by row, each row on another page: with small ones most time
// goes to page faults and to misses of the TLB.
void GuestMemory::wish_for_huge_pages(uint64_t address, uint64_t size_bytes) {
  const uint64_t offset = address - view_.linear_base;
  if (offset >= view_.linear_size || size_bytes > view_.linear_size - offset ||
      !linear_.contains(view_.linear + offset))
    return;
  // What is touched here and there takes a huge page each time.
  static const uint64_t most = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * kPageSize / 8;
  if (size_bytes > most) return;
  const uint64_t first = (offset + kPageSize - 1) & ~(kPageSize - 1);
  const uint64_t end = (offset + size_bytes) & ~(kPageSize - 1);
  madvise(view_.linear + first, end - first, MADV_HUGEPAGE);
}

bool GuestMemory::set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) {
  const uint32_t copies = view_.is_private && !in_linear(view_, address) ? cores_ : 1;
  for (uint32_t core = 0; core < copies; ++core)
    if (!set_permissions(core, address, size_bytes, flags)) return false;
  return true;
}

uint8_t GuestMemory::permissions(uint32_t core, uint64_t address) const {
  return in_zones(view_, address, 1) ? *page_flags(page_flag(view_, core, address)) : 0;
}

}  // namespace gpusim
