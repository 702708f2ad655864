#include "host/races/detector.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>
#include <utility>

namespace gpusim::host::races {

namespace {

// Beyond the numbers of all words: what cores hand each other by the kernel.
constexpr uint64_t kMappings = ~uint64_t{0}, kFiles = kMappings - 1;

constexpr uint64_t kWordBytes = 8, kPageWords = ShadowPage::kWords;

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// `mask` of the bytes from `begin` to `end` of a word.
uint8_t mask_of(uint64_t begin, uint64_t end) {
  return static_cast<uint8_t>((0xff << begin) & (0xff >> (kWordBytes - end)));
}

// Calls f(word, mask) for the words that an access touches.
template <class F>
void for_words(uint64_t address, uint64_t bytes, F f) {
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t word = at / kWordBytes, begin = at % kWordBytes;
    const uint64_t end = std::min(kWordBytes, begin + address + bytes - at);
    f(word, mask_of(begin, end));
    at += end - begin;
  }
}

}  // namespace

struct Detector::Cursor {
  const Detector* owner;
  uint32_t core;
  std::span<const uint64_t> words;
  size_t at = 0;
  const AccessSite* first = nullptr;
  const AccessSite* site = nullptr;
  const AccessSite* end = nullptr;
  uint32_t first_number = 0;
  bool all = true;  // false: blocks without synchronisation are passed over

  bool next(Event& event) {
    for (;;) {
      for (; site != end && !has_word(site->kind); ++site) {
      }
      if (at == words.size()) return false;
      const uint64_t word = words[at++];
      if (word & kBlockMark) {
        enter(static_cast<uint32_t>(word));
        continue;
      }
      const auto number = first_number + static_cast<uint32_t>(site - first);
      if (site->is_vector) {
        if (word & VectorNote::kEnd) {
          ++site;
          continue;
        }
        event = {Event::Kind::kAccess, number, VectorNote::address(word), VectorNote::bytes(word)};
        return true;
      }
      if (site->kind == SiteKind::kValue) {
        ++site;
        continue;
      }
      event = site->kind == SiteKind::kStamp
                  ? Event{Event::Kind::kFence, number, word, 0}
                  : Event{Event::Kind::kAccess, number, word, site->bytes};
      ++site;
      return true;
    }
  }

 private:
  void enter(uint32_t number) {
    const BlockSites& block = owner->blocks_[number];
    first = site = block.accesses.data();
    end = site + block.accesses.size();
    first_number = owner->first_site_[number];
    if (all || owner->has_synchronisation_[number]) return;
    while (at < words.size() && !(words[at] & kBlockMark)) ++at;
    site = end;
  }
};

Detector::Detector(const Module& module, uint32_t cores)
    : module_(module), clocks_(cores), words_(cores), takes_(cores) {}

void Detector::grow(std::span<const BlockSites> blocks) {
  for (size_t b = first_site_.size(); b < blocks.size(); ++b) {
    const std::vector<AccessSite>& sites = blocks[b].accesses;
    first_site_.push_back(static_cast<uint32_t>(sites_.size()));
    bool synchronises = false;
    const auto is_access = [&](size_t i) { return has_address(sites[i].kind); };
    const auto accesses = [&](uint32_t insn) {
      for (size_t i = 0; i < sites.size(); ++i)
        if (sites[i].insn == insn && is_access(i)) return true;
      return false;
    };
    // A store behind the fence of its own instruction, or of the one before, if that is but a
    // fence.
    const auto is_behind_fence = [&](size_t i) {
      if (i == 0 || sites[i - 1].kind != SiteKind::kStamp) return false;
      const uint32_t fence = sites[i - 1].insn, insn = sites[i].insn;
      return fence == insn || (fence + 1 == insn && !accesses(fence));
    };
    const auto is_before_own_fence = [&](size_t i) {
      return i + 1 < sites.size() && !is_access(i + 1) && sites[i + 1].insn == sites[i].insn;
    };
    for (size_t i = 0; i < sites.size(); ++i) {
      Site site{insn_pc(module_, module_.blocks[b], sites[i].insn), 0};
      if (sites[i].kind == SiteKind::kAtomic)
        site.kind = Cell::kWrite | Cell::kSynchronises | Cell::kReadsAndWrites;
      if (sites[i].kind == SiteKind::kStore)
        site.kind = Cell::kWrite | (is_behind_fence(i) ? Cell::kSynchronises : 0);
      if (sites[i].kind == SiteKind::kLoad && is_before_own_fence(i))
        site.kind = Cell::kSynchronises;
      synchronises |= (site.kind & Cell::kSynchronises) != 0;
      sites_.push_back(site);
    }
    has_synchronisation_.push_back(synchronises);
  }
}

void Detector::read(uint32_t core, std::span<const uint64_t> words,
                    std::span<const BlockSites> blocks) {
  words_[core] = words;
  blocks_ = blocks;
}

// Cores' words between two fences are taken together, in the order in which the cores came to the
// first of them. What a core stores there is published at once, and what it loads is seen at the
// second fence only: whatever a load may have read was published then. Where the journals do not
// tell which of two came first, they are taken to be in order: that hides a race, but makes none.
void Detector::end_slice() {
  grow(blocks_);
  using Waiting = std::pair<uint64_t, uint32_t>;  // stamp, core
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> fences;
  std::vector<Cursor> cursors;
  for (uint32_t core = 0; core < words_.size(); ++core) {
    cursors.push_back({.owner = this, .core = core, .words = words_[core]});
    if (!words_[core].empty()) mark(cursors.back());
  }
  const auto go_on = [&](uint32_t core) {
    if (const uint64_t stamp = run(cursors[core])) fences.emplace(stamp, core);
  };
  for (uint32_t core = 0; core < words_.size(); ++core) {
    if (words_[core].empty()) continue;
    if (std::exchange(takes_[core], 0)) {
      clocks_.observe(core, kFiles);
      clocks_.fence(core);
    }
    go_on(core);
  }
  while (!fences.empty()) {
    const uint32_t core = fences.top().second;
    fences.pop();
    clocks_.fence(core);
    go_on(core);
  }
  std::fill(words_.begin(), words_.end(), std::span<const uint64_t>());
}

void Detector::mark(Cursor cursor) {
  cursor.all = false;
  Event event;
  while (cursor.next(event)) {
    if (event.kind == Event::Kind::kFence || !(sites_[event.site].kind & Cell::kSynchronises))
      continue;
    for_words(event.address, event.bytes, [&](uint64_t word, uint8_t mask) {
      shadow_.page(word / kPageWords).synchronises[word % kPageWords] |= mask;
    });
  }
}

uint64_t Detector::run(Cursor& cursor) {
  Event event;
  while (cursor.next(event)) {
    if (event.kind == Event::Kind::kFence) return event.address;
    access(cursor.core, event);
  }
  return 0;
}

void Detector::access(uint32_t core, const Event& event) {
  ++accesses_;
  for_words(event.address, event.bytes,
            [&](uint64_t word, uint8_t mask) { access_word(core, word, mask, event.site); });
}

void Detector::access_word(uint32_t core, uint64_t word, uint8_t bytes, uint32_t site) {
  ShadowPage& page = shadow_.page(word / kPageWords);
  ShadowWord& shadow = page.words[word % kPageWords];
  const uint8_t kind = sites_[site].kind;
  const bool writes = kind & Cell::kWrite;
  // A store that publishes comes before whatever sees what it published.
  const uint32_t clock = clocks_.now(core) - (writes && (kind & Cell::kSynchronises) ? 1 : 0);
  const Cell now{clock, site, static_cast<uint16_t>(core), bytes, kind};
  if (bytes & page.synchronises[word % kPageWords]) {
    if (!writes || (now.kind & Cell::kReadsAndWrites)) clocks_.observe(core, word);
    if (writes) clocks_.publish(core, word);
  }
  for (const Cell& cell : shadow.cells)
    if (cell.core == core && cell.clock == now.clock && (cell.bytes & bytes) == bytes &&
        (cell.kind == now.kind || cell.kind == (now.kind | Cell::kWrite)))
      return;

  for (Cell& cell : shadow.cells) {
    if (!(cell.bytes & bytes)) continue;
    const bool cell_writes = cell.kind & Cell::kWrite;
    const bool ordered = cell.core == core || clocks_.has_seen(core, cell.core, cell.clock);
    if (!ordered && (writes || cell_writes)) report(cell, now, word);
    // Whatever comes behind this access comes behind that one, too.
    if (ordered && (writes || !cell_writes)) cell.bytes &= ~bytes;
  }
  auto& cells = shadow.cells;
  auto gone = std::find_if(cells.begin(), cells.end(), [](const Cell& c) { return c.bytes == 0; });
  if (gone == cells.end())
    gone = std::find_if(cells.begin(), cells.end(),
                        [](const Cell& c) { return !(c.kind & Cell::kWrite); });
  if (gone == cells.end()) gone = cells.begin();
  std::move(gone + 1, cells.end(), gone);
  cells.back() = now;
}

// Relaxed atomic loads and stores are plain instructions. So of words by which cores synchronise
// only a store beside operations that read and write as one is reported: no order makes that right.
void Detector::report(const Cell& before, const Cell& now, uint64_t word) {
  const uint8_t common = before.bytes & now.bytes;
  const bool is_update = (before.kind | now.kind) & Cell::kReadsAndWrites;
  if (is_update) {
    const Cell& other = before.kind & Cell::kReadsAndWrites ? now : before;
    if (other.kind != Cell::kWrite) return;
  } else if (common & shadow_.synchronises(word)) {
    return;
  }
  Race& race =
      races_[{Place{sites_[before.site].pc, before.kind}, Place{sites_[now.site].pc, now.kind}}];
  if (race.count++ != 0) return;
  const auto first = static_cast<uint32_t>(std::countr_zero(common));
  race.address = word * kWordBytes + first;
  race.bytes = static_cast<uint32_t>(std::popcount(common));
  race.first_core = before.core;
  race.second_core = now.core;
}

void Detector::started(uint32_t child, uint32_t parent) { clocks_.order(parent, child); }

void Detector::woken(uint32_t core, uint32_t by) { clocks_.order(by, core); }

void Detector::ended(uint32_t core, uint64_t word_address) {
  const uint64_t word = word_address / kWordBytes;
  shadow_.page(word / kPageWords).synchronises[word % kPageWords] |=
      mask_of(word_address % kWordBytes, word_address % kWordBytes + sizeof(uint32_t));
  clocks_.fence(core);
  clocks_.publish(core, word);
}

void Detector::called(uint32_t core, std::string_view call) {
  static constexpr std::array<std::string_view, 5> kMapping{"mmap", "munmap", "mremap", "brk",
                                                            "madvise"};
  static constexpr std::array<std::string_view, 10> kGiving{
      "write", "writev", "pwrite64",        "sendto",        "sendmsg",
      "kill",  "tkill",  "rt_sigqueueinfo", "timer_settime", "tgkill"};
  static constexpr std::array<std::string_view, 11> kTaking{
      "read",        "readv", "pread64",  "recvfrom",        "recvmsg",      "ppoll",
      "epoll_pwait", "wait4", "pselect6", "rt_sigtimedwait", "rt_sigsuspend"};
  // What is given counts from before the call, what is taken from when the core goes on.
  if (is_one_of(call, kMapping)) {
    clocks_.observe(core, kMappings);
    clocks_.fence(core);
    clocks_.publish(core, kMappings);
  } else if (is_one_of(call, kGiving)) {
    clocks_.fence(core);
    clocks_.publish(core, kFiles);
  } else if (is_one_of(call, kTaking)) {
    takes_[core] = 1;
  }
}

Races Detector::races() {
  std::erase_if(races_, [&](const auto& entry) {
    const auto& [places, race] = entry;
    if ((places.first.kind | places.second.kind) & Cell::kReadsAndWrites) return false;
    return (shadow_.synchronises(race.address / kWordBytes) >> race.address % kWordBytes & 1) != 0;
  });
  return races_;
}

}  // namespace gpusim::host::races
