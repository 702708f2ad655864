// Threads that execute a micro-op together write their stamps one after the other, in the order of
// lanes. Of two sets of threads that enter a block one behind the other, the second stamps of the
// first set lie between: so threads of a warp entered together if and only if their first stamps
// follow each other.
#include "host/ptx/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "device_sim/core/cta.h"
#include "device_sim/core/journal_room.h"
#include "translator/ptx/memory_map.h"

namespace gpusim::ptx {
namespace {

constexpr uint64_t kSectorBytes = 32, kBankBytes = 4;
constexpr uint32_t kBanks = 32, kStamps = 2;

// Parameters and constants lie among other memory here, but a GPU has a cache of their own for
// them.
bool is_constant(const std::string& opcode) {
  return opcode.find(".param") != std::string::npos || opcode.find(".const") != std::string::npos;
}

}  // namespace

WarpCounts& WarpCounts::operator+=(const WarpCounts& o) {
  instructions += o.instructions;
  warp_instructions += o.warp_instructions;
  global_accesses += o.global_accesses;
  sectors += o.sectors;
  store_sectors += o.store_sectors;
  atomic_sectors += o.atomic_sectors;
  shared_accesses += o.shared_accesses;
  bank_conflicts += o.bank_conflicts;
  return *this;
}

KernelProfile& KernelProfile::operator+=(const KernelProfile& o) {
  for (const auto& [line, counts] : o.lines) lines[line] += counts;
  all += o.all;
  if (o.caches) {
    if (!caches) caches.emplace();
    *caches += *o.caches;
  }
  return *this;
}

uint32_t sectors_of(std::span<const uint64_t> addresses, uint32_t bytes) {
  std::vector<uint64_t> sectors;
  for (const uint64_t a : addresses)
    for (uint64_t s = a / kSectorBytes; s <= (a + bytes - 1) / kSectorBytes; ++s)
      sectors.push_back(s);
  std::sort(sectors.begin(), sectors.end());
  return static_cast<uint32_t>(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

uint32_t bank_conflicts_of(std::span<const uint64_t> addresses, std::span<const uint8_t> lanes,
                           uint32_t bytes) {
  // Accesses of 8 bytes are made by halves of the warp, of 16 by quarters.
  const uint32_t parts = std::max<uint32_t>(1, bytes / kBankBytes);
  const uint32_t lanes_per_part = kWarpLanes / std::min<uint32_t>(parts, kWarpLanes);
  uint32_t conflicts = 0;
  for (uint32_t part = 0; part < kWarpLanes / lanes_per_part; ++part) {
    std::vector<uint64_t> words;
    for (size_t i = 0; i < addresses.size(); ++i)
      if (lanes[i] / lanes_per_part == part)
        for (uint64_t w = addresses[i] / kBankBytes; w <= (addresses[i] + bytes - 1) / kBankBytes;
             ++w)
          words.push_back(w);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<uint32_t, kBanks> of_bank{};
    uint32_t passes = 0;
    for (const uint64_t w : words) passes = std::max(passes, ++of_bank[w % kBanks]);
    conflicts += passes > 1 ? passes - 1 : 0;
  }
  return conflicts;
}

MachineProfile::MachineProfile(const KernelCode& code, uint32_t cores, WarpCaches* caches)
    : code_(code),
      sites_(code.module.blocks.size()),
      cursors_(cores),
      warp_executions_(sites_.size()),
      sums_(sites_.size()),
      caches_(caches),
      requests_(caches == nullptr ? 0 : (cores + kWarpLanes - 1) / kWarpLanes) {
  const Module& m = code.module;
  JournalRoom room;
  for (size_t b = 0; b < sites_.size(); ++b) {
    const Block& block = m.blocks[b];
    for (uint32_t i = block.first_uop; i < block.first_uop + block.uop_count; ++i) {
      const Uop& u = m.uops[i];
      if (u.op != Op::note || u.aux == kNoteBlock || u.aux == kNoteStamp) continue;
      const StaticInstruction* const insn = code.instruction_of(i);
      // kNoBytes: it does not count.
      const bool counts = insn == nullptr || !is_constant(insn->opcode);
      const uint8_t bytes = counts ? NoteField::bytes(u) : kNoBytes;
      sites_[b].push_back({NoteField::kind(u), bytes, m.uop_insn[i]});
    }
    sums_[b].resize(sites_[b].size());
    room.add_block(1 + kStamps + sites_[b].size(), block.insn_count);
  }
  longest_slice_ = std::max<uint64_t>(1, room.longest_slice(kJournalWords));
}

void MachineProfile::begin() {
  std::fill(cursors_.begin(), cursors_.end(), Cursor{});
  std::fill(warp_executions_.begin(), warp_executions_.end(), 0);
  for (auto& block : sums_) std::fill(block.begin(), block.end(), Sums{});
  if (caches_ != nullptr) caches_->begin_kernel();
}

void MachineProfile::after_slice(Backend& backend, std::span<const uint64_t> ctas, uint32_t shift) {
  for (uint32_t first = 0; first < cursors_.size(); first += kWarpLanes) {
    warp_ = first / kWarpLanes;
    read_warp(backend, first);
  }
  backend.clear_journals();
  if (caches_ != nullptr) feed_caches(ctas, shift);
}

// Warps take turns, one access each: how they would interleave on a multiprocessor is not
// simulated.
void MachineProfile::feed_caches(std::span<const uint64_t> ctas, uint32_t shift) {
  bool is_left = true;
  for (size_t k = 0; is_left; ++k) {
    is_left = false;
    for (size_t warp = 0; warp < requests_.size(); ++warp) {
      if (k >= requests_[warp].size()) continue;
      is_left = true;
      const Request& r = requests_[warp][k];
      caches_->access(ctas[warp * kWarpLanes >> shift], r.addresses, r.site.bytes, r.site.kind);
    }
  }
  for (auto& of_warp : requests_) of_warp.clear();
}

void MachineProfile::read_warp(Backend& backend, uint32_t first) {
  // Which threads entered blocks together.
  std::vector<Entry> entries;
  for (uint8_t lane = 0; lane < kWarpLanes; ++lane) {
    const std::span<const uint64_t> words = backend.journal(first + lane);
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] & kBlockMark)
        entries.push_back({words[i + 1], 0, static_cast<uint32_t>(words[i]), lane});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.stamp < b.stamp; });
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& e = entries[i];
    const bool is_first = i == 0 || e.stamp != entries[i - 1].stamp + 1 ||
                          e.block != entries[i - 1].block || e.lane <= entries[i - 1].lane;
    if (is_first) {
      ++next_step_;
      ++warp_executions_[e.block];
    }
    e.step = next_step_;
  }
  std::array<std::vector<uint64_t>, kWarpLanes> steps;  // per lane, in its order
  for (const Entry& e : entries) steps[e.lane].push_back(e.step);

  std::vector<Access> accesses;
  for (uint8_t lane = 0; lane < kWarpLanes; ++lane) {
    const std::span<const uint64_t> words = backend.journal(first + lane);
    Cursor& c = cursors_[first + lane];
    size_t entry = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] & kBlockMark) {
        c = {static_cast<uint32_t>(words[i]), 0,
             entry < steps[lane].size() ? steps[lane][entry] : 0};
        ++entry;
        i += kStamps;
        continue;
      }
      accesses.push_back({c.step, words[i], c.block, c.at++, lane});
    }
  }
  const auto key = [](const Access& a) { return std::tuple(a.step, a.block, a.site, a.lane); };
  std::sort(accesses.begin(), accesses.end(),
            [&](const Access& a, const Access& b) { return key(a) < key(b); });
  for (size_t i = 0; i < accesses.size();) {
    size_t end = i;
    while (end < accesses.size() && accesses[end].step == accesses[i].step &&
           accesses[end].site == accesses[i].site)
      ++end;
    add_accesses(std::span(accesses).subspan(i, end - i));
    i = end;
  }
}

void MachineProfile::add_accesses(std::span<const Access> together) {
  const Access& any = together.front();
  if (any.site >= sites_[any.block].size()) return;
  const Site& site = sites_[any.block][any.site];
  if (site.bytes == kNoBytes) return;
  const uint32_t bytes = site.bytes;
  std::vector<uint64_t> global, shared;
  std::vector<uint8_t> shared_lanes;
  for (const Access& a : together) {
    if (a.address - kCtaBase < kSharedEnd - kCtaBase) {  // of other CTAs of the cluster, too
      shared.push_back(a.address);
      shared_lanes.push_back(a.lane);
    } else if (a.address < kLocalWindowBase) {
      global.push_back(a.address);
    }
  }
  Sums& s = sums_[any.block][any.site];
  if (!global.empty()) {
    const uint32_t sectors = sectors_of(global, bytes);
    ++s.global_accesses;
    s.sectors += sectors;
    if (site.kind == AccessKind::kStore) s.store_sectors += sectors;
    if (site.kind == AccessKind::kAtomic) s.atomic_sectors += sectors;
    if (caches_ != nullptr) requests_[warp_].push_back({site, std::move(global)});
  }
  if (!shared.empty()) {
    ++s.shared_accesses;
    s.bank_conflicts += bank_conflicts_of(shared, shared_lanes, bytes);
  }
}

KernelProfile MachineProfile::result(std::span<const uint64_t> counts, const std::string& origin,
                                     const std::map<uint32_t, std::string>& files) const {
  KernelProfile p;
  for (size_t b = 0; b < sites_.size(); ++b) {
    const auto& insns = code_.instructions[b];
    if (counts[b] == 0 || insns.empty()) continue;
    std::vector<std::string> lines;
    for (const StaticInstruction& i : insns) {
      const auto file = files.find(i.location.file);
      lines.push_back(i.location.line != 0 && file != files.end()
                          ? fmt::format("{}:{}", file->second, i.location.line)
                          : fmt::format("{}:{}", origin, i.line));
      WarpCounts one{.instructions = counts[b], .warp_instructions = warp_executions_[b]};
      p.lines[lines.back()] += one;
      p.all += one;
    }
    for (size_t k = 0; k < sites_[b].size(); ++k) {
      const Sums& s = sums_[b][k];
      const WarpCounts one{.global_accesses = s.global_accesses,
                           .sectors = s.sectors,
                           .store_sectors = s.store_sectors,
                           .atomic_sectors = s.atomic_sectors,
                           .shared_accesses = s.shared_accesses,
                           .bank_conflicts = s.bank_conflicts};
      p.lines[lines[std::min<size_t>(sites_[b][k].insn, lines.size() - 1)]] += one;
      p.all += one;
    }
  }
  if (caches_ != nullptr) p.caches = caches_->of_kernel();
  return p;
}

}  // namespace gpusim::ptx
