// What lies behind the private caches: a tile's cache, the network, slices of the shared cache with
// the directory, memory channels. Requests come one by one, in the order in which cores issue them.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "host/chip/calendar.h"
#include "host/chip/divider.h"
#include "host/chip/line_map.h"
#include "host/chip/network.h"
#include "host/chip/parts.h"
#include "host/chip/private_cache.h"
#include "host/chip/shape.h"
#include "host/chip/sharers.h"

namespace gpusim::host::chip {

// Why a line was not in the private caches.
enum class Miss : uint8_t { kCold, kCapacity, kSharing, kFalseSharing };
inline constexpr size_t kMissKinds = 4;
inline constexpr const char* kMissNames[kMissKinds] = {"cold", "capacity", "sharing",
                                                       "false_sharing"};

enum class Ask : uint8_t {
  kRead,
  kFetch,    // instructions
  kOwn,      // to write: the line, alone
  kUpgrade,  // to write a line that is there, shared
  kPut,      // a clean line had to go
  kPutDirty,
  kWriteThrough,  // bytes
  kFarRead,       // of bytes, from where they are
  kFar,           // a write or an atomic operation that a slice does
};

struct MemoryCounts {
  uint64_t l2_accesses = 0, l2_misses = 0;
  uint64_t shared_accesses = 0, shared_misses = 0;
  uint64_t memory_reads = 0, memory_writes = 0;  // lines
  uint64_t row_hits = 0;
  uint64_t invalidations = 0, broadcasts = 0, forwards = 0;
  uint64_t messages = 0, flit_hops = 0;
  Ticks network_queued = 0, shared_queued = 0, memory_queued = 0;
};

struct Answer {
  Ticks done = 0;
  Stack parts{};              // they add up to done - at
  bool is_exclusive = false;  // nobody else has the line
  bool from_memory = false;
};

class MemorySystem {
 public:
  // `lose`: a core's copy of a line goes (or stays, as shared), because another core wants it.
  using Lose = std::function<void(uint32_t core, uint64_t line, bool stays_shared)>;
  MemorySystem(const ChipShape& shape, Lose lose);

  // `bytes`: of kWriteThrough and kFar.
  Answer ask(uint32_t core, Ask what, uint64_t line, uint32_t bytes, Ticks at);

  // What a request of that line will look at is fetched from the host's memory.
  void prefetch(uint64_t line, Ask what) const;

  // No request will ever be issued before.
  void advance(Ticks now) { now_ = std::max(now_, now); }

  // From now on links, ports and channels are not taken; they are waited for as long as they were
  // on average since the last time. Caches and directory go on as ever, and so do counts, but for
  // use.
  void ignore_load(bool ignores);

  const MemoryCounts& counts();
  const Network& network() const { return network_; }
  Ticks channel_used(uint32_t channel) const { return channels_[channel].calendar.used(); }
  Ticks slice_used(uint32_t slice) const { return slice_ports_[slice].used(); }
  uint32_t tile_of(uint32_t core) const { return static_cast<uint32_t>(per_tile_.quotient(core)); }
  uint32_t tile_of_channel(uint32_t channel) const { return channels_[channel].tile; }
  uint32_t tile_of_slice(uint32_t slice) const { return tile_of_slice_[slice]; }
  uint32_t slice_of(uint64_t line) const;
  uint32_t channel_of(uint64_t line) const;
  // Writes by others that ended a core's use of a line, or that were seen when it was read.
  struct Version {
    uint64_t count = 0;
    Ticks at = 0;
    uint32_t core = 0;
  };
  // Of a line that somebody watches, from now on.
  const Version& watch(uint64_t line);
  // A core wrote to a line without asking for it.
  void note_write(uint64_t line, uint32_t core, Ticks at);
  // Called when a watched line is written.
  std::function<void(uint64_t line, const Version&)> on_write;

 private:
  struct Entry {
    static constexpr uint32_t kNobody = ~uint32_t{0};
    Ticks free_at = 0;  // its last change is done
    Sharers sharers;
    uint32_t owner = kNobody;
    bool is_everybody = false;  // more sharers than the entry can name
  };
  struct Channel {
    uint32_t tile = 0;
    Calendar calendar;
    std::vector<uint64_t> open_rows;
  };
  struct Walk;

  // How long was waited for ports of one kind.
  struct Queue {
    Ticks sum = 0, count = 0, mean = 0;
  };
  Ticks take(Calendar& calendar, Queue& queue, Ticks at, Ticks length) {
    if (ignores_load_) return at + queue.mean;
    const Ticks begin = calendar.take(at, length, now_);
    queue.sum += begin - at;
    ++queue.count;
    return begin;
  }
  void at_slice(Walk& walk, uint32_t slice);
  void from_memory(Walk& walk, uint32_t slice, bool write_back);
  void write_back(uint32_t slice, uint64_t line, Ticks at);
  Ticks use_channel(Channel& channel, uint64_t line, uint32_t bytes, Ticks at, Ticks* queued);
  void directory(Walk& walk, uint32_t slice, bool* data_comes_from_owner);
  void invalidate_sharers(Walk& walk, Entry& entry, uint32_t home);
  void put(uint32_t core, uint64_t line);

  const ChipShape shape_;
  Lose lose_;
  Network network_;
  HugePool pool_;
  std::vector<StateCache> tile_caches_, slices_;
  std::vector<Calendar> tile_ports_, slice_ports_;
  std::vector<Channel> channels_;
  LineMap<Entry> directory_;
  LineMap<Version> watched_;
  MemoryCounts counts_;
  std::vector<Ticks> arrivals_;  // of a broadcast
  Divider per_tile_, chunk_lines_, slice_count_;
  uint32_t slices_shift_;  // of a power of two
  Divider channel_count_;
  std::vector<uint32_t> tile_of_slice_;
  Ticks line_time_;  // of a channel
  // What a request of a tile's cache and of a slice takes, and their hits.
  Ticks tile_length_ = 0, tile_hit_ = 0, slice_length_, slice_hit_, owner_hit_ = 0;
  Ticks now_ = 0;
  bool ignores_load_ = false;
  Queue of_tiles_, of_slices_, of_channels_;
};

}  // namespace gpusim::host::chip
