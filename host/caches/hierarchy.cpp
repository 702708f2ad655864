#include "host/caches/hierarchy.h"

#include <algorithm>
#include <atomic>

namespace gpusim::host {

namespace {

enum RequestFlags : uint8_t {
  kWrite = 1,
  kDemand = 2,   // the core's own access, not a line that had to go
  kOffChip = 4,  // no request: the instruction was served off the chip
};

constexpr uint64_t kNever = ~uint64_t{0};

// One request to one cache. Calls next(line, write, is_demand) for what the next level has to do.
// Returns whether it was a hit.
template <class Next>
bool request_line(Cache& cache, const CacheShape& shape, CacheCounts& counts, uint64_t line,
                  bool write, Next next) {
  if (cache.touch(line, write && shape.write_back)) {
    if (write && !shape.write_back) next(line, true, false);
    return true;
  }
  if (write && !shape.allocates_on_write) {
    next(line, true, true);
    return false;
  }
  next(line, false, true);
  const Cache::Victim victim = cache.fill(line, write && shape.write_back);
  if (victim.is_dirty) {
    ++counts.write_backs;
    next(victim.line, true, false);
  }
  if (write && !shape.write_back) next(line, true, false);
  return false;
}

void count(CacheCounts& counts, bool write, bool hit) {
  (write ? counts.writes : counts.reads) += 1;
  if (!hit) (write ? counts.write_misses : counts.read_misses) += 1;
}

}  // namespace

CacheCounts& CacheCounts::operator+=(const CacheCounts& o) {
  reads += o.reads;
  read_misses += o.read_misses;
  writes += o.writes;
  write_misses += o.write_misses;
  write_backs += o.write_backs;
  return *this;
}

struct CacheHierarchy::Core {
  std::vector<Cache> levels;  // private ones
  std::vector<CacheCounts> counts;
  uint64_t memory_reads = 0, memory_writes = 0;  // if no level is shared
  uint64_t off_chip = 0;                         // instructions
  uint64_t clock = 0;                            // instructions begun
  uint64_t block_length = 0;                     // of them, in the block that it is in
  uint64_t last_off_chip = kNever;               // time of the last such instruction
  bool has_ended = false;
  std::vector<Request> queue;  // by time
};

class CacheHierarchy::SharedLevels {
 public:
  SharedLevels(const CacheHierarchy& owner, size_t first) : owner_(owner), first_(first) {
    const auto& levels = owner.shape_.levels;
    for (size_t l = first; l < levels.size(); ++l) {
      const uint32_t cores = owner.config_.cores, per = levels[l].cores ? levels[l].cores : cores;
      caches_.emplace_back();
      for (uint32_t i = 0; i < (cores + per - 1) / per; ++i)
        caches_.back().emplace_back(levels[l], owner.shape_.line_bytes);
    }
    counts.resize(levels.size() - first);
  }

  // Returns whether the request was served off the chip; only known of demands.
  bool request(uint32_t core, uint64_t line, bool write, bool demand, size_t level = 0) {
    if (level == caches_.size()) {
      (write ? memory_writes : memory_reads) += 1;
      return demand;
    }
    const CacheShape& shape = owner_.shape_.levels[first_ + level];
    Cache& cache = caches_[level][shape.cores ? core / shape.cores : 0];
    bool off = false;
    const bool hit = request_line(cache, shape, counts[level], line, write,
                                  [&](uint64_t next, bool writes, bool is_demand) {
                                    off |= request(core, next, writes, demand && is_demand, level + 1);
                                  });
    count(counts[level], write, hit);
    return hit ? demand && !shape.on_chip : off;
  }

  std::vector<CacheCounts> counts;  // from the first shared level on
  uint64_t memory_reads = 0, memory_writes = 0;

 private:
  const CacheHierarchy& owner_;
  size_t first_;
  std::vector<std::vector<Cache>> caches_;  // [level][instance]
};

CacheHierarchy::CacheHierarchy(HierarchyShape shape, const Module& module,
                               const MachineConfig& config)
    : shape_(std::move(shape)),
      code_(module.code),
      config_(config),
      line_shift_(static_cast<uint32_t>(std::countr_zero(shape_.line_bytes))),
      private_levels_(static_cast<size_t>(
          std::find_if(shape_.levels.begin(), shape_.levels.end(),
                       [](const CacheShape& s) { return s.cores != 1; }) -
          shape_.levels.begin())),
      cores_(config.cores) {
  if (private_levels_ < shape_.levels.size())
    shared_ = std::make_unique<SharedLevels>(*this, private_levels_);
  off_chip_at_.resize(code_.insn_class.size());
}

CacheHierarchy::~CacheHierarchy() = default;

// Cores of a private machine have memory of their own at the same addresses.
uint64_t CacheHierarchy::line_of(uint32_t core, uint64_t address) const {
  const bool is_own = config_.memory_model == MemoryModel::kPrivate &&
                      address - config_.linear_base >= config_.linear_size;
  constexpr int kAddressBits = 48;
  const uint64_t owner = is_own ? uint64_t{core} + 1 : 0;
  return ((address & ((uint64_t{1} << kAddressBits) - 1)) >> line_shift_) |
         owner << (kAddressBits - line_shift_);
}

CacheHierarchy::Core& CacheHierarchy::core(uint32_t number) {
  std::unique_ptr<Core>& core = cores_[number];
  if (core) return *core;
  core = std::make_unique<Core>();
  for (size_t l = 0; l < private_levels_; ++l)
    core->levels.emplace_back(shape_.levels[l], shape_.line_bytes);
  core->counts.resize(private_levels_);
  return *core;
}

void CacheHierarchy::note_off_chip(Core& core, uint64_t time, uint32_t place) {
  if (core.last_off_chip == time) return;  // another access of the same instruction
  core.last_off_chip = time;
  if (static_cast<InsnClass>(code_.insn_class[place]) != InsnClass::kOffChipMemory) return;
  ++core.off_chip;
  std::atomic_ref(off_chip_at_[place]).fetch_add(1, std::memory_order_relaxed);
}

// A request to the core's own level, or beyond them. Returns whether a demand is known to be served
// off the chip.
bool CacheHierarchy::request(Core& core, const Request& r, size_t level, bool* hit) {
  if (level == private_levels_) {
    if (shared_) {
      core.queue.push_back(r);
      return false;
    }
    ((r.flags & kWrite) ? core.memory_writes : core.memory_reads) += 1;
    return (r.flags & kDemand) != 0;
  }
  const CacheShape& shape = shape_.levels[level];
  const bool write = (r.flags & kWrite) != 0, demand = (r.flags & kDemand) != 0;
  bool off = false;
  const auto next = [&](uint64_t line, bool writes, bool is_demand) {
    Request further = r;
    further.line = line;
    further.flags = static_cast<uint8_t>((writes ? kWrite : 0) | (demand && is_demand ? kDemand : 0));
    off |= request(core, further, level + 1, nullptr);
  };
  const bool found = request_line(core.levels[level], shape, core.counts[level], r.line, write, next);
  if (hit)
    *hit = found;
  else
    count(core.counts[level], write, found);
  return found ? demand && !shape.on_chip : off;
}

void CacheHierarchy::read(uint32_t number, std::span<const uint64_t> words,
                          std::span<const BlockSites> blocks) {
  Core& c = core(number);
  const auto on_block = [&](uint32_t, const BlockSites& block) {
    c.clock += c.block_length;
    c.block_length = block.insn_count;
  };
  // Most accesses are served by the nearest cache and ask for nothing else.
  Cache* const nearest = private_levels_ && shape_.levels[0].on_chip ? c.levels.data() : nullptr;
  const bool writes_stay = private_levels_ && shape_.levels[0].write_back;
  const auto on_access = [&](const AccessSite& site, uint64_t address) {
    if (!has_address(site.kind)) return;
    const bool write = site.kind != SiteKind::kLoad;
    const uint64_t first = line_of(number, address), last = line_of(number, address + site.bytes - 1);
    if (nearest && first == last && (writes_stay || !write) && nearest->touch(first, write)) {
      (write ? c.counts[0].writes : c.counts[0].reads) += 1;
      return;
    }
    Request r{.time = c.clock + site.insn,
              .line = first,
              .core = number,
              .place = site.unit,
              .flags = static_cast<uint8_t>(kDemand | (write ? kWrite : 0))};
    bool all_hit = true, off = false;
    for (;; ++r.line) {
      bool hit = true;
      off |= request(c, r, 0, private_levels_ ? &hit : nullptr);
      all_hit &= hit;
      if (r.line == last) break;
    }
    if (private_levels_) count(c.counts[0], write, all_hit);
    if (!off) return;
    if (!shared_) return note_off_chip(c, r.time, r.place);
    r.flags = kOffChip;
    c.queue.push_back(r);
  };
  for_each_word(words, blocks, on_block, on_access);
  c.clock += c.block_length;  // blocks do not go on in the next slice
  c.block_length = 0;
}

void CacheHierarchy::started(uint32_t child, uint32_t parent) {
  Core& c = core(child);
  c.clock = std::max(c.clock, core(parent).clock);
  c.has_ended = false;
}

void CacheHierarchy::ended(uint32_t number) {
  if (cores_[number]) cores_[number]->has_ended = true;
}

void CacheHierarchy::end_slice() {
  if (!shared_) return;
  // Nothing earlier than the slowest core's clock can come any more.
  uint64_t slowest = kNever;
  size_t queued = 0;
  for (const auto& core : cores_) {
    if (!core) continue;
    queued += core->queue.size();
    if (!core->has_ended) slowest = std::min(slowest, core->clock);
  }
  if (queued <= most_queued_) {
    // Sorting few at a time is slow.
    if (queued > most_queued_ / 8) drain(slowest);
    return;
  }
  drain(slowest);
  // Cores that wait hold up the others: the order is given up where memory would run out.
  std::vector<uint64_t> times;
  for (const auto& core : cores_)
    if (core)
      for (const Request& r : core->queue) times.push_back(r.time);
  if (times.size() <= most_queued_ / 2) return;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  drain(*middle + 1);
}

// Requests before a time, by time and then by core, as they are in each core's queue.
std::vector<CacheHierarchy::Request> CacheHierarchy::take_requests(uint64_t before) {
  struct Run {
    Core* core;
    size_t size;
  };
  std::vector<Run> runs;
  uint64_t earliest = kNever, latest = 0;
  size_t size = 0;
  for (const auto& core : cores_) {
    if (!core) continue;
    const auto end = std::partition_point(core->queue.begin(), core->queue.end(),
                                          [&](const Request& r) { return r.time < before; });
    if (end == core->queue.begin()) continue;
    runs.push_back({core.get(), static_cast<size_t>(end - core->queue.begin())});
    earliest = std::min(earliest, core->queue.front().time);
    latest = std::max(latest, (end - 1)->time);
    size += runs.back().size;
  }
  std::vector<Request> sorted(size);
  if (size == 0) return sorted;
  const auto drop = [](const Run& run) {
    run.core->queue.erase(run.core->queue.begin(),
                          run.core->queue.begin() + static_cast<std::ptrdiff_t>(run.size));
  };
  constexpr uint64_t kSparse = 4;  // times per request
  if (latest - earliest > kSparse * size) {
    size_t at = 0;
    for (const Run& run : runs) {
      std::copy_n(run.core->queue.begin(), run.size, sorted.begin() + static_cast<std::ptrdiff_t>(at));
      at += run.size;
      drop(run);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Request& a, const Request& b) { return a.time < b.time; });
    return sorted;
  }
  // By counting: first where each time begins.
  std::vector<size_t> next(latest - earliest + 2);
  for (const Run& run : runs)
    for (size_t i = 0; i < run.size; ++i) ++next[run.core->queue[i].time - earliest + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const Run& run : runs) {
    for (size_t i = 0; i < run.size; ++i)
      sorted[next[run.core->queue[i].time - earliest]++] = run.core->queue[i];
    drop(run);
  }
  return sorted;
}

void CacheHierarchy::drain(uint64_t before) {
  for (const Request& r : take_requests(before)) {
    const bool off = (r.flags & kOffChip) != 0 ||
                     shared_->request(r.core, r.line, (r.flags & kWrite) != 0, (r.flags & kDemand) != 0);
    if (off) note_off_chip(*cores_[r.core], r.time, r.place);
  }
}

CacheReport CacheHierarchy::report() {
  if (shared_) drain(kNever);
  CacheReport report;
  report.levels.resize(shape_.levels.size());
  report.off_chip_of.resize(cores_.size());
  for (size_t i = 0; i < cores_.size(); ++i) {
    if (!cores_[i]) continue;
    const Core& core = *cores_[i];
    for (size_t l = 0; l < private_levels_; ++l) report.levels[l] += core.counts[l];
    report.memory_reads += core.memory_reads;
    report.memory_writes += core.memory_writes;
    report.off_chip_of[i] = core.off_chip;
  }
  if (shared_) {
    for (size_t l = private_levels_; l < shape_.levels.size(); ++l)
      report.levels[l] = shared_->counts[l - private_levels_];
    report.memory_reads = shared_->memory_reads;
    report.memory_writes = shared_->memory_writes;
  }
  report.off_chip_at = off_chip_at_;
  return report;
}

}  // namespace gpusim::host
