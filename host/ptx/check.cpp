#include "host/ptx/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "device_sim/core/journal_room.h"
#include "device_sim/uir/journal.h"
#include "host/ptx/heap.h"
#include "host/ptx/texture.h"
#include "translator/ptx/memory_map.h"

namespace gpusim::ptx {
namespace {

using SiteKind = CheckSite::Kind;

constexpr size_t kMostSuspects = 1 << 16;  // in a slice; more are not looked at

Dim3 coordinates(uint64_t n, const Dim3& of) {
  return {static_cast<uint32_t>(n % of.x), static_cast<uint32_t>(n / of.x % of.y),
          static_cast<uint32_t>(n / of.x / of.y)};
}
std::string text(const Dim3& d) { return fmt::format("({},{},{})", d.x, d.y, d.z); }

uint64_t slice_for(const KernelCode& code, const CheckSites& sites) {
  JournalRoom room;
  for (size_t b = 0; b < sites.size(); ++b)
    room.add_block(1 + sites[b].size(), code.module.blocks[b].insn_count);
  return std::max<uint64_t>(1, room.longest_slice(MachineCheck::kJournalWords));
}

}  // namespace

MachineCheck::MachineCheck(const KernelCode& code, const std::string& origin,
                           const std::map<uint32_t, std::string>& files, ProcessMemory& memory,
                           const Checks& checks, const Shape& shape)
    : code_(code),
      origin_(origin),
      files_(files),
      memory_(memory),
      checks_(checks),
      shape_(shape),
      threads_(static_cast<uint32_t>(shape.block.count())),
      knows_order_(!has_barriers_in_memory(code)),
      sites_(check_sites(code)),
      longest_slice_(slice_for(code, sites_)),
      cursors_(size_t{shape.places} << shape.shift),
      words_(cursors_.size()),
      ctas_(shape.places) {
  for (uint32_t p = 0; p < shape.places; ++p) {
    ctas_[p].written.resize(shape.shared_bytes);
    ctas_[p].races = std::make_unique<SharedRaces>(threads_, shape.shared_bytes);
    races_to(p);
  }
  for (uint32_t c = 0; shape.cluster_ctas > 1 && c < shape.places / shape.cluster_ctas; ++c) {
    clusters_.push_back(
        std::make_unique<ClusterRaces>(shape.cluster_ctas, threads_, shape.shared_bytes));
    cluster_races_to(c);
  }
  global_races_.on_race = [this](const auto&... about) { global_race(about...); };
}

void MachineCheck::global_race(const GlobalRaces::Access& first, const GlobalRaces::Access& second,
                               uint64_t address, uint32_t bytes, size_t times) {
  // What one block frees, another may get: malloc and free order that.
  const std::string memory = memory_.name(address);
  if (memory.starts_with(kHeapName)) return;
  const uint64_t a = line_number(*first.site->insn), b = line_number(*second.site->insn);
  for (size_t k = 0; k < times; ++k)
    findings_->add({FindingKind::kRace, std::min(a, b), std::max(a, b)}, [&] {
      const auto does = [&](const GlobalRaces::Access& x) {
        return fmt::format("    block {}, thread {} {}, {}", text(coordinates(x.cta, grid_)),
                           text(coordinates(x.thread, shape_.block)), x.site->verb(),
                           where(*x.site));
      };
      Finding f = make(
          FindingKind::kRace, 0, first.thread, *first.site, address,
          fmt::format("race on global memory: kernel '{}', {} bytes at {:#x}, in {}, "
                      "that nothing orders:\n{}, and\n{}",
                      readable(code_.name), bytes, address, memory, does(first), does(second)));
      f.block = coordinates(first.cta, grid_);
      return f;
    });
}

void MachineCheck::cluster_races_to(uint32_t cluster) {
  clusters_[cluster]->on_race = [this, cluster](const ClusterRaces::Access& first,
                                                const ClusterRaces::Access& second, uint32_t owner,
                                                uint64_t offset, uint32_t bytes) {
    if (!checks_.races || !knows_order_) return;
    const uint64_t a = line_number(*first.site->insn), b = line_number(*second.site->insn);
    findings_->add({FindingKind::kRace, std::min(a, b), std::max(a, b)}, [&] {
      const auto block = [&](uint32_t rank) {
        return text(coordinates(ctas_[cluster * shape_.cluster_ctas + rank].number, grid_));
      };
      const auto does = [&](const ClusterRaces::Access& x) {
        return fmt::format("    thread {} of block {} {}, {}",
                           text(coordinates(x.thread, shape_.block)), block(x.rank), x.site->verb(),
                           where(*x.site));
      };
      return make(FindingKind::kRace, cluster * shape_.cluster_ctas + first.rank, first.thread,
                  *first.site, kCtaBase + offset,
                  fmt::format("race on shared memory: kernel '{}', memory of block {}: {}, {} "
                              "bytes, that nothing orders:\n{}, and\n{}\n    the cluster's "
                              "barrier orders its blocks",
                              readable(code_.name), block(owner), shared_name(offset), bytes,
                              does(first), does(second)));
    });
  };
}

void MachineCheck::races_to(uint32_t p) {
  ctas_[p].races->on_race = [this, p](const SharedRaces::Access& first,
                                      const SharedRaces::Access& second, uint64_t offset,
                                      uint32_t bytes) {
    if (!checks_.races || !knows_order_) return;
    const uint64_t a = line_number(*first.site->insn), b = line_number(*second.site->insn);
    findings_->add({FindingKind::kRace, std::min(a, b), std::max(a, b)}, [&] {
      std::string what = fmt::format(
          "race on shared memory: {}: {}, {} bytes, that nothing orders:\n"
          "    thread {} {}, {}, and\n    thread {} {}, {}",
          fmt::format("kernel '{}', block {}", readable(code_.name),
                      text(coordinates(ctas_[p].number, grid_))),
          shared_name(offset), bytes, text(coordinates(first.thread, shape_.block)),
          first.site->verb(), where(*first.site), text(coordinates(second.thread, shape_.block)),
          second.site->verb(), where(*second.site));
      if (first.thread / kWarpLanes == second.thread / kWarpLanes)
        what += "\n    both are in one warp: __syncwarp() orders its threads";
      return make(FindingKind::kRace, p, first.thread, *first.site, kCtaBase + offset,
                  std::move(what));
    });
  };
  ctas_[p].races->on_barrier = [this, p](std::span<const SharedRaces::Arrival> arrivals, uint32_t) {
    if (checks_.barriers) barrier_opened(p, arrivals);
  };
}

void MachineCheck::begin(const Dim3& grid, Findings& findings) {
  grid_ = grid;
  findings_ = &findings;
  range_begin_ = 1;
  range_end_ = 0;
  std::fill(cursors_.begin(), cursors_.end(), Cursor{});
  global_races_.begin();
}

void MachineCheck::end() {
  if (checks_.races) global_races_.end();
}

void MachineCheck::start_cta(uint32_t place, uint64_t cta) {
  Cta& c = ctas_[place];
  c.number = cta;
  c.has_ended = false;
  std::fill(c.written.begin(), c.written.end(), uint8_t{0});
  c.races->reset();
  c.unit = rank_of(place) == 0 ? global_races_.start_unit() : ctas_[place - 1].unit;
  // The CTAs of a cluster begin together.
  if (ClusterRaces* const cluster = cluster_races(place); cluster && rank_of(place) == 0)
    cluster->reset();
}

// --- the words of one thread

const CheckSite* MachineCheck::next(uint32_t core, uint64_t& word) {
  std::span<const uint64_t>& words = words_[core];
  Cursor& c = cursors_[core];
  while (!words.empty()) {
    word = words.front();
    words = words.subspan(1);
    if ((word & kBlockMark) == 0) return &sites_[c.block][c.at++];
    c = {static_cast<uint32_t>(word), 0};
  }
  return nullptr;
}

// Up to the next stamp. False: there are no more words.
bool MachineCheck::run(uint32_t place, uint32_t thread, Stop& stop) {
  const uint32_t core = (place << shape_.shift) + thread;
  uint64_t word = 0;
  while (const CheckSite* const site = next(core, word)) {
    if (site->is_stamp()) {
      stop = {word, place, thread, site, site->barrier, site->threads};
      if (site->kind == SiteKind::kArrive && !site->is_of_warp) {
        uint64_t value = 0;
        if (site->barrier_in_word && next(core, value)) stop.barrier = static_cast<uint32_t>(value);
        if (site->threads_in_word && next(core, value)) stop.threads = static_cast<uint32_t>(value);
      }
      return true;
    }
    if (site->kind == SiteKind::kValue) continue;
    // What a store stores is behind it, if it came so far.
    std::array<uint8_t, 64> stored;
    size_t size = 0;
    const uint64_t address = word;
    while (site->kind == SiteKind::kStore && size < site->bytes && !words_[core].empty() &&
           (words_[core].front() & kBlockMark) == 0) {
      const CheckSite& value = sites_[cursors_[core].block][cursors_[core].at];
      if (value.kind != SiteKind::kValue || value.bytes == 0 || size + value.bytes > stored.size())
        break;
      next(core, word);
      for (uint32_t k = 0; k < value.bytes; ++k)
        stored[size++] = static_cast<uint8_t>(word >> 8 * k);
    }
    access(place, thread, *site, address,
           size == site->bytes ? std::span<const uint8_t>(stored).first(size)
                               : std::span<const uint8_t>());
  }
  return false;
}

// In which order threads of different blocks came, the journals do not say: what a thread loaded
// may have been stored by another in this slice.
void MachineCheck::judge(Backend& backend, std::vector<Cursor> before) {
  constexpr uint64_t kWord = 8;
  std::unordered_multimap<uint64_t, size_t> of_word;
  for (size_t i = 0; i < suspects_.size(); ++i) {
    const Suspect& s = suspects_[i];
    for (uint64_t w = s.address / kWord; w <= (s.address + s.site->bytes - 1) / kWord; ++w)
      of_word.emplace(w, i);
  }
  cursors_.swap(before);
  for (uint32_t core = 0; core < words_.size(); ++core) {
    words_[core] = backend.journal(core);
    uint64_t word = 0;
    while (const CheckSite* const site = next(core, word)) {
      if (!site->writes()) continue;
      for (uint64_t w = word / kWord; w <= (word + site->bytes - 1) / kWord; ++w)
        for (auto [at, end] = of_word.equal_range(w); at != end; ++at) {
          Suspect& s = suspects_[at->second];
          if ((s.place << shape_.shift) + s.thread != core) s.is_cleared = true;
        }
    }
  }
  cursors_.swap(before);
  for (const Suspect& s : suspects_)
    if (!s.is_cleared)
      find(FindingKind::kUninitialised, s.place, s.thread, *s.site, s.address,
           fmt::format("memory that nothing has written, in {}", memory_.name(s.address)));
  suspects_.clear();
}

void MachineCheck::after_slice(Backend& backend) {
  for (uint32_t core = 0; core < words_.size(); ++core) words_[core] = backend.journal(core);
  std::vector<Cursor> before;
  if (checks_.uninitialised && memory_.has_shadows()) before = cursors_;
  for (uint32_t p = 0; p < shape_.places; p += shape_.cluster_ctas) {
    // Threads' words between two stamps are taken in the order of the first.
    std::priority_queue<Stop, std::vector<Stop>, std::greater<>> stops;
    Stop stop{};
    for (uint32_t rank = 0; rank < shape_.cluster_ctas && p + rank < shape_.places; ++rank)
      for (uint32_t t = 0; t < threads_; ++t)
        if (run(p + rank, t, stop)) stops.push(stop);
    while (!stops.empty()) {
      const Stop first = stops.top();
      stops.pop();
      apply(first);
      if (run(first.place, first.thread, stop)) stops.push(stop);
    }
  }
  for (const SharedSuspect& s : shared_suspects_)
    if (is_unwritten(s.place, s.offset, s.site->bytes)) find_unwritten(s);
  shared_suspects_.clear();
  if (!suspects_.empty()) judge(backend, std::move(before));
  backend.clear_journals();
}

void MachineCheck::apply(const Stop& stop) {
  SharedRaces& races = *ctas_[stop.place].races;
  if (stop.site->kind == SiteKind::kFence) global_races_.synchronise(ctas_[stop.place].unit);
  if (ClusterRaces* const cluster = cluster_races(stop.place)) {
    const uint32_t rank = rank_of(stop.place);
    const bool is_of_cluster = !stop.site->is_of_warp && stop.site->is_of_cluster();
    if (stop.site->kind == SiteKind::kFence) cluster->fence(rank);
    if (is_of_cluster && stop.site->kind == SiteKind::kArrive && !stop.site->waits)
      cluster->arrive(rank, stop.thread);
    if (is_of_cluster && stop.site->kind == SiteKind::kPass && stop.site->waits)
      cluster->pass(rank, stop.thread);
  }
  switch (stop.site->kind) {
    case SiteKind::kFence:
      return races.fence(stop.thread);
    case SiteKind::kArrive:
      // A row that waits at the cluster's barrier has arrived before.
      if (stop.site->is_of_cluster() && stop.site->waits) return;
      return races.arrive(stop.thread, *stop.site, stop.barrier, stop.threads);
    default:
      return races.pass(stop.thread, *stop.site, stop.barrier, stop.threads);
  }
}

// --- accesses

void MachineCheck::access(uint32_t place, uint32_t thread, const CheckSite& site, uint64_t address,
                          std::span<const uint8_t> stored) {
  if (TextureObjects::is_complaint(address)) {
    const TextureObjects& objects = TextureObjects::instance();
    if (checks_.memory)
      find(objects.is_freed(address) ? FindingKind::kUseAfterFree : FindingKind::kOutOfBounds,
           place, thread, site, address, objects.describe(address));
    return;
  }
  // Frames are packed.
  const bool is_frame = !site.is_access && address >= kLocalWindowBase;
  if (checks_.memory && !is_frame && address % site.bytes != 0)
    find(FindingKind::kMisaligned, place, thread, site, address,
         fmt::format("misaligned: an address of {} bytes has to be a multiple of {}", site.bytes,
                     site.bytes));
  ctas_[place].races->synchronises(thread, site, address);
  if (ClusterRaces* const cluster = cluster_races(place))
    cluster->synchronises({rank_of(place), thread, &site}, address);
  if (address - kCtaBase < kMostCtaBytes)
    return shared_access(place, thread, site, address, stored);
  if (address - kClusterBase < kSharedEnd - kClusterBase)
    return cluster_access(place, thread, site, address, stored);
  if (address < kLocalWindowBase) return global_access(place, thread, site, address, stored);
  if (checks_.memory && address - kLocalWindowBase + site.bytes > shape_.local_bytes)
    find(FindingKind::kOutOfBounds, place, thread, site, address,
         fmt::format("beyond the {} bytes of the thread's local memory", shape_.local_bytes));
}

void MachineCheck::shared_access(uint32_t place, uint32_t thread, const CheckSite& site,
                                 uint64_t address, std::span<const uint8_t> stored) {
  const uint64_t offset = address - kCtaBase;
  Cta& cta = ctas_[place];
  if (offset + site.bytes > shape_.shared_bytes) {
    if (checks_.memory)
      find(FindingKind::kOutOfBounds, place, thread, site, address,
           fmt::format("{} bytes behind the {} bytes of the block's shared memory ({})",
                       offset + site.bytes - shape_.shared_bytes,
                       shape_.shared_bytes - kReservedSharedBytes, shared_name(offset)));
    return;
  }
  if (checks_.memory && offset < kReservedSharedBytes)
    find(FindingKind::kOutOfBounds, place, thread, site, address,
         fmt::format("{} bytes before the block's shared memory", kReservedSharedBytes - offset));
  cta.races->access({thread, &site}, offset, stored);
  if (ClusterRaces* const cluster = cluster_races(place))
    cluster->access({rank_of(place), thread, &site}, rank_of(place), offset, stored);
  if (site.kind != SiteKind::kStore && checks_.uninitialised && knows_order_ &&
      offset >= kReservedSharedBytes && is_unwritten(place, offset, site.bytes)) {
    const SharedSuspect suspect{place, thread, &site, offset};
    if (shape_.cluster_ctas == 1)
      find_unwritten(suspect);
    else if (shared_suspects_.size() < kMostSuspects)
      shared_suspects_.push_back(suspect);
  }
  if (site.writes())
    std::fill_n(cta.written.begin() + static_cast<ptrdiff_t>(offset), site.bytes, uint8_t{1});
}

// Structures have bytes that nobody writes, and that are copied with the others.
bool MachineCheck::is_unwritten(uint32_t place, uint64_t offset, uint32_t bytes) const {
  const auto begin = ctas_[place].written.begin() + static_cast<ptrdiff_t>(offset);
  return std::count(begin, begin + bytes, uint8_t{0}) == bytes;
}

void MachineCheck::find_unwritten(const SharedSuspect& s) {
  find(FindingKind::kUninitialised, s.place, s.thread, *s.site, kCtaBase + s.offset,
       fmt::format("shared memory that no thread of the {} wrote ({})",
                   shape_.cluster_ctas == 1 ? "block" : "cluster", shared_name(s.offset)));
}

// To the memory of another CTA.
void MachineCheck::cluster_access(uint32_t place, uint32_t thread, const CheckSite& site,
                                  uint64_t address, std::span<const uint8_t> stored) {
  const uint64_t rank = (address - kClusterBase) >> kClusterShift;
  const uint64_t offset = (address - kClusterBase) & (kClusterCtaBytes - 1);
  const auto out_of_bounds = [&](const std::string& what) {
    if (checks_.memory) find(FindingKind::kOutOfBounds, place, thread, site, address, what);
  };
  if (rank >= shape_.cluster_ctas)
    return out_of_bounds(fmt::format("shared memory of the cluster's block {}, and there are {}",
                                     rank, shape_.cluster_ctas));
  if (offset + site.bytes > shape_.shared_bytes)
    return out_of_bounds(
        fmt::format("{} bytes behind the {} bytes of shared memory of the cluster's block {} ({})",
                    offset + site.bytes - shape_.shared_bytes,
                    shape_.shared_bytes - kReservedSharedBytes, rank, shared_name(offset)));
  if (offset < kReservedSharedBytes)
    out_of_bounds(fmt::format("{} bytes before the shared memory of the cluster's block {}",
                              kReservedSharedBytes - offset, rank));
  Cta& cta = ctas_[place - place % shape_.cluster_ctas + static_cast<uint32_t>(rank)];
  if (cta.has_ended)
    find(FindingKind::kUseAfterFree, place, thread, site, address,
         fmt::format("shared memory of the cluster's block {}, all threads of which have ended: "
                     "the cluster's barrier keeps a block until others no longer need it",
                     rank));
  cluster_races(place)->access({rank_of(place), thread, &site}, static_cast<uint32_t>(rank), offset,
                               stored);
  if (site.writes())
    std::fill_n(cta.written.begin() + static_cast<ptrdiff_t>(offset), site.bytes, uint8_t{1});
}

void MachineCheck::global_access(uint32_t place, uint32_t thread, const CheckSite& site,
                                 uint64_t address, std::span<const uint8_t> stored) {
  if (address < range_begin_ || address + site.bytes > range_end_) {
    const ProcessMemory::Found range = memory_.find(address);
    if (range.begin == range.end || address + site.bytes > range.end) {
      if (checks_.memory)
        find(memory_.is_freed(address) ? FindingKind::kUseAfterFree : FindingKind::kOutOfBounds,
             place, thread, site, address,
             memory_.describe(range.begin == range.end ? address : range.end));
      return;
    }
    range_begin_ = range.begin;
    range_end_ = range.end;
    range_shadow_ = range.shadow;
  }
  if (checks_.races)
    global_races_.access({ctas_[place].unit, ctas_[place].number, thread, &site}, address, stored);
  if (range_shadow_ == nullptr || !checks_.uninitialised) return;
  const uint64_t offset = address - range_begin_;
  if (site.kind != SiteKind::kStore && suspects_.size() < kMostSuspects &&
      range_shadow_->is_blank(offset, site.bytes))
    suspects_.push_back({place, thread, &site, address, false});
  if (site.writes()) range_shadow_->mark(offset, site.bytes);
}

// --- barriers

// Threads that did not come have ended: the barrier waits for all others.
void MachineCheck::barrier_opened(uint32_t place, std::span<const SharedRaces::Arrival> arrivals) {
  const SharedRaces::Arrival& first = arrivals.front();
  for (const SharedRaces::Arrival& a : arrivals) {
    const uint64_t here = line_number(*a.site->insn), there = line_number(*first.site->insn);
    if (here == there || first.site->is_of_cluster()) continue;
    findings_->add({FindingKind::kBarrier, std::min(here, there), std::max(here, there)}, [&] {
      return make(FindingKind::kBarrier, place, a.thread, *a.site, 0,
                  fmt::format("divergent barrier: {} is at {} while thread {} is at {}",
                              who(place, a.thread), where(*a.site),
                              text(coordinates(first.thread, shape_.block)), where(*first.site)));
    });
    return;
  }
  if (arrivals.size() >= threads_) return;
  std::set<uint32_t> there;
  for (const SharedRaces::Arrival& a : arrivals) there.insert(a.thread);
  uint32_t missing = 0;
  while (there.contains(missing)) ++missing;
  findings_->add({FindingKind::kBarrier, line_number(*first.site->insn), 0}, [&] {
    return make(FindingKind::kBarrier, place, missing, *first.site, 0,
                fmt::format("divergent barrier: {} and {} others ended without coming to {}, where "
                            "{} threads of the block are",
                            who(place, missing), threads_ - there.size() - 1, where(*first.site),
                            there.size()));
  });
}

void MachineCheck::deadlocks(std::span<const Event> events) {
  std::map<const StaticInstruction*, std::vector<uint32_t>> waiting;
  for_each_core(events, [&](const Event& e) {
    if (e.status != CoreStatus::kFault || e.fault != gpusim::Fault::kDeadlock) return;
    const auto& list = code_.instructions[code_.module.uop_block[e.uop]];
    if (list.empty()) return;
    waiting[&list[std::min<size_t>(code_.module.uop_insn[e.uop], list.size() - 1)]].push_back(
        e.core);
  });
  if (waiting.empty() || !checks_.barriers) return;
  const uint32_t core = waiting.begin()->second.front();
  const uint32_t place = core >> shape_.shift, thread = core & ((1u << shape_.shift) - 1);
  CheckSite site{.insn = waiting.begin()->first};
  findings_->add({FindingKind::kDeadlock, line_number(*site.insn), 0}, [&] {
    std::string what =
        fmt::format("deadlock: kernel '{}', {} {}: no thread can go on", readable(code_.name),
                    shape_.cluster_ctas == 1 ? "block" : "cluster of block",
                    text(coordinates(ctas_[place].number, grid_)));
    for (const auto& [insn, cores] : waiting)
      what +=
          fmt::format("\n    {} threads wait, the first is {}, in {}", cores.size(),
                      text(coordinates(cores.front() & ((1u << shape_.shift) - 1), shape_.block)),
                      place_text(*insn, origin_, files_));
    return make(FindingKind::kDeadlock, place, thread, site, 0, std::move(what));
  });
}

// --- reports

std::string MachineCheck::who(uint32_t place, uint32_t thread) const {
  return fmt::format("kernel '{}', block {}, thread {}", readable(code_.name),
                     text(coordinates(ctas_[place].number, grid_)),
                     text(coordinates(thread, shape_.block)));
}

std::string MachineCheck::where(const CheckSite& site) const {
  return place_text(*site.insn, origin_, files_);
}

std::string MachineCheck::shared_name(uint64_t offset) const {
  const SharedVariable* of = nullptr;
  for (const SharedVariable& v : code_.shared_variables)
    if (v.offset <= offset && (of == nullptr || of->offset <= v.offset)) of = &v;
  if (of == nullptr) return fmt::format("shared memory at {:#x}", offset);
  if (of->size_bytes != 0 && offset >= of->offset + of->size_bytes)
    return fmt::format("{} bytes behind {} of {} bytes", offset - of->offset - of->size_bytes,
                       readable(of->name), of->size_bytes);
  return fmt::format("{}+{:#x}", readable(of->name), offset - of->offset);
}

Finding MachineCheck::make(FindingKind kind, uint32_t place, uint32_t thread, const CheckSite& site,
                           uint64_t address, std::string text) const {
  Finding f{.kind = kind,
            .kernel = code_.name,
            .block = coordinates(ctas_[place].number, grid_),
            .thread = coordinates(thread, shape_.block),
            .line = site.insn->line,
            .address = address,
            .count = 0,
            .source = {},
            .text = std::move(text)};
  const auto file = files_.find(site.insn->location.file);
  if (site.insn->location.line != 0 && file != files_.end())
    f.source = fmt::format("{}:{}", file->second, site.insn->location.line);
  return f;
}

void MachineCheck::find(FindingKind kind, uint32_t place, uint32_t thread, const CheckSite& site,
                        uint64_t address, const std::string& what) {
  findings_->add({kind, line_number(*site.insn), 0}, [&] {
    return make(
        kind, place, thread, site, address,
        fmt::format("{}: {} {} {} bytes at {:#x}: {}\n    {}", kind_text(kind), who(place, thread),
                    site.verb(), site.bytes, address, what, where(site)));
  });
}

}  // namespace gpusim::ptx
