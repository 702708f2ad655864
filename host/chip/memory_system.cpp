#include "host/chip/memory_system.h"

#include <algorithm>
#include <bit>

namespace gpusim::host::chip {

// One request on its way.
struct MemorySystem::Walk {
  uint32_t core, tile;
  Ask what;
  uint64_t line;
  uint32_t bytes;
  Ticks at;
  Entry* entry = nullptr;  // of the directory, where it was looked at
  // A read of a line that nobody has alone, and that stays so: the directory is ready for the next
  // request when the slice is, and not when the reader has the line.
  bool leaves_shared = false;
  Answer answer{};

  void spend(Part part, Ticks until) {
    answer.parts[static_cast<size_t>(part)] += until - at;
    at = until;
  }
  bool wants_data() const { return what == Ask::kRead || what == Ask::kFetch || what == Ask::kOwn; }
  bool writes() const { return what == Ask::kOwn || what == Ask::kUpgrade; }
};

MemorySystem::MemorySystem(const ChipShape& shape, Lose lose)
    : shape_(shape),
      lose_(std::move(lose)),
      network_(shape.network),
      slice_ports_(shape.shared.slices),
      channels_(shape.memory.channels),
      per_tile_(shape.cores.per_tile),
      // Words of a scratchpad are told apart by ask()'s caller.
      chunk_lines_(std::max(1u, shape.shared.interleave_bytes / shape.line_bytes)),
      slice_count_(shape.shared.slices),
      slices_shift_(static_cast<uint32_t>(std::countr_zero(shape.shared.slices))),
      channel_count_(shape.memory.channels),
      line_time_(ticks(shape.line_bytes / shape.memory.bytes_per_cycle)),
      slice_length_(ticks(shape.shared.cache.cycles_per_request)),
      slice_hit_(ticks(shape.shared.cache.hit_cycles)) {
  const uint32_t chunk = std::max(1u, shape.shared.interleave_bytes / shape.line_bytes);
  for (uint32_t s = 0; s < shape.shared.slices; ++s)
    tile_of_slice_.push_back(
        static_cast<uint32_t>(uint64_t{s} * shape.tiles() / shape.shared.slices));
  if (shape_.l2 && shape_.l2->is_of_tile) {
    for (uint32_t t = 0; t < shape_.tiles(); ++t)
      tile_caches_.emplace_back(*shape_.l2, shape_.line_bytes, pool_);
    tile_ports_ = std::vector<Calendar>(shape_.tiles());
    tile_length_ = ticks(shape_.l2->cycles_per_request);
    tile_hit_ = ticks(shape_.l2->hit_cycles);
  }
  if (shape_.l2 && !shape_.l2->is_of_tile)
    owner_hit_ = ticks(shape_.l2->hit_cycles);
  else if (shape_.l1_data)
    owner_hit_ = ticks(shape_.l1_data->hit_cycles);
  if (!shape_.shared.is_scratchpad)
    for (uint32_t s = 0; s < shape_.shared.slices; ++s)
      slices_.emplace_back(shape_.shared.cache, shape_.line_bytes, pool_, shape_.shared.slices,
                           chunk);
  const MemoryShape& memory = shape_.memory;
  for (uint32_t c = 0; c < memory.channels; ++c) {
    channels_[c].tile = memory.tiles.empty()
                            ? static_cast<uint32_t>(uint64_t{c} * shape_.tiles() / memory.channels)
                            : memory.tiles[c];
    channels_[c].open_rows.assign(memory.open_page ? memory.banks : 0, ~uint64_t{0});
  }
}

uint32_t MemorySystem::slice_of(uint64_t line) const {
  uint64_t chunk = chunk_lines_.quotient(line);
  // Folded, so that strides of powers of two use all slices. Of as many chunks in a row as there
  // are slices, from a multiple of that number on, each still goes to another one.
  if (shape_.shared.folds_address)
    for (uint64_t above = chunk; slices_shift_ != 0 && (above >>= slices_shift_) != 0;)
      chunk ^= above;
  return static_cast<uint32_t>(slice_count_.remainder(chunk));
}
// Neighbouring lines of one slice go to different channels.
uint32_t MemorySystem::channel_of(uint64_t line) const {
  return static_cast<uint32_t>(channel_count_.remainder(chunk_lines_.quotient(line)));
}

void MemorySystem::ignore_load(bool ignores) {
  ignores_load_ = ignores;
  network_.ignore_load(ignores);
  for (Queue* queue : {&of_tiles_, &of_slices_, &of_channels_}) {
    if (ignores && queue->count != 0) queue->mean = queue->sum / queue->count;
    queue->sum = queue->count = 0;
  }
}

const MemoryCounts& MemorySystem::counts() {
  counts_.messages = network_.messages();
  counts_.flit_hops = network_.flit_hops();
  return counts_;
}

const MemorySystem::Version& MemorySystem::watch(uint64_t line) { return watched_[line]; }

void MemorySystem::note_write(uint64_t line, uint32_t core, Ticks at) {
  Version* const version = watched_.find(line);
  if (!version) return;
  *version = {version->count + 1, std::max(version->at, at), core};
  if (on_write) on_write(line, *version);
}

Ticks MemorySystem::use_channel(Channel& channel, uint64_t line, uint32_t bytes, Ticks at,
                                Ticks* queued) {
  const MemoryShape& m = shape_.memory;
  const Ticks length = bytes == shape_.line_bytes
                           ? line_time_
                           : std::max<Ticks>(1, ticks(bytes / m.bytes_per_cycle));
  const Ticks begin = take(channel.calendar, of_channels_, at, length);
  *queued = begin - at;
  double latency = m.latency_cycles;
  if (m.open_page) {
    const uint64_t row = line * shape_.line_bytes / m.channels / m.row_bytes;
    uint64_t& open = channel.open_rows[row % m.banks];
    if (open == row) {
      latency = m.row_hit_cycles;
      ++counts_.row_hits;
    }
    open = row;
  }
  return begin + length + ticks(latency);
}

// A line that had to go from a slice. Nobody waits for it.
void MemorySystem::write_back(uint32_t slice, uint64_t line, Ticks at) {
  Channel& channel = channels_[channel_of(line)];
  const Delivery d = network_.send(tile_of_slice(slice), channel.tile, shape_.line_bytes, at, now_);
  Ticks queued = 0;
  use_channel(channel, line, shape_.line_bytes, d.arrival, &queued);
  ++counts_.memory_writes;
}

// The line comes to the slice.
void MemorySystem::from_memory(Walk& w, uint32_t slice, bool dirty) {
  Channel& channel = channels_[channel_of(w.line)];
  const uint32_t home = tile_of_slice(slice);
  const Delivery there = network_.send(home, channel.tile, 0, w.at, now_);
  counts_.network_queued += there.queued;
  w.spend(Part::kNetwork, there.arrival);
  Ticks queued = 0;
  w.spend(Part::kMemory, use_channel(channel, w.line, shape_.line_bytes, w.at, &queued));
  counts_.memory_queued += queued;
  ++counts_.memory_reads;
  const Delivery back = network_.send(channel.tile, home, shape_.line_bytes, w.at, now_);
  counts_.network_queued += back.queued;
  w.spend(Part::kNetwork, back.arrival);
  w.answer.from_memory = true;
  const auto victim =
      slices_[slice].fill(w.line, dirty ? LineState::kModified : LineState::kExclusive);
  if (victim && victim->state == LineState::kModified) write_back(slice, victim->line, w.at);
}

void MemorySystem::invalidate_sharers(Walk& w, Entry& e, uint32_t home) {
  Ticks last = w.at;
  if (e.is_everybody) {
    ++counts_.broadcasts;
    network_.broadcast(home, 0, w.at, now_, arrivals_);
  }
  // Everybody hears of it; who has the line answers.
  for (const uint32_t core : e.sharers) {
    if (core == w.core) continue;
    const uint32_t tile = tile_of(core);
    const Ticks there =
        e.is_everybody ? arrivals_[tile] : network_.send(home, tile, 0, w.at, now_).arrival;
    last = std::max(last, network_.send(tile, w.tile, 0, there, now_).arrival);
    ++counts_.invalidations;
    lose_(core, w.line, false);
  }
  // The requester goes on when all have answered it.
  w.spend(Part::kCoherence, last);
}

// What the directory's entry of a line makes of a request.
void MemorySystem::directory(Walk& w, uint32_t slice, bool* data_comes_from_owner) {
  Entry& e = directory_[w.line];
  w.entry = &e;
  const uint32_t home = tile_of_slice(slice);
  if (e.free_at > w.at) w.spend(Part::kCoherence, e.free_at);
  if (e.owner != Entry::kNobody && e.owner != w.core) {
    // The owner sends the line to who wants it; a copy goes back if it stays.
    const uint32_t tile = tile_of(e.owner);
    ++counts_.forwards;
    Ticks there = network_.send(home, tile, 0, w.at, now_).arrival;
    there += owner_hit_;
    const Ticks done = network_.send(tile, w.tile, shape_.line_bytes, there, now_).arrival;
    lose_(e.owner, w.line, !w.writes());
    if (w.writes()) {
      e.sharers.clear();
    } else {
      network_.send(tile, home, shape_.line_bytes, there, now_);
      if (uint64_t* entry = slices_[slice].find(w.line))
        StateCache::set_state(entry, LineState::kModified);
      note_write(w.line, e.owner, w.at);
      e.sharers.clear();
      e.sharers.push_back(e.owner);
    }
    e.owner = Entry::kNobody;
    w.spend(Part::kCoherence, done);
    *data_comes_from_owner = true;
  }
  if (w.writes()) {
    if (!e.sharers.empty() || e.is_everybody) invalidate_sharers(w, e, home);
    e.sharers.clear();
    e.is_everybody = false;
    e.owner = w.core;
    note_write(w.line, w.core, w.at);
  } else if (e.owner != w.core) {
    if (e.sharers.empty() && !e.is_everybody) {
      e.owner = w.core;
      w.answer.is_exclusive = true;
    } else if (!e.sharers.has(w.core)) {
      // All are remembered, to be told when the line goes; what the entry can name sets the
      // traffic.
      e.sharers.push_back(w.core);
      e.is_everybody |= shape_.shared.sharers != 0 && e.sharers.size() > shape_.shared.sharers;
    }
    w.leaves_shared = !w.answer.is_exclusive && !*data_comes_from_owner;
  } else {
    w.answer.is_exclusive = true;
  }
}

void MemorySystem::put(uint32_t core, uint64_t line) {
  Entry* const e = directory_.find(line);
  if (!e) return;
  if (e->owner == core) e->owner = Entry::kNobody;
  e->sharers.erase(core);
  if (e->owner == Entry::kNobody && e->sharers.empty() && e->free_at <= now_) directory_.erase(e);
}

void MemorySystem::at_slice(Walk& w, uint32_t slice) {
  ++counts_.shared_accesses;
  const Ticks begin = take(slice_ports_[slice], of_slices_, w.at, slice_length_);
  counts_.shared_queued += begin - w.at;
  w.spend(Part::kShared, begin + slice_hit_);
  const bool writes_here =
      w.what == Ask::kWriteThrough || w.what == Ask::kFar || w.what == Ask::kPutDirty;
  if (w.what == Ask::kWriteThrough || w.what == Ask::kFar) note_write(w.line, w.core, w.at);
  if (shape_.shared.is_scratchpad) return;

  bool comes_from_owner = false;
  const bool is_coherent = shape_.shared.coherence == Coherence::kMesi && w.what != Ask::kFetch;
  if (is_coherent && (w.wants_data() || w.what == Ask::kUpgrade))
    directory(w, slice, &comes_from_owner);
  if (w.what == Ask::kUpgrade) return;
  uint64_t* const entry = slices_[slice].touch(w.line);
  if (entry) {
    if (writes_here) StateCache::set_state(entry, LineState::kModified);
  } else if (!comes_from_owner) {
    ++counts_.shared_misses;
    if (w.what == Ask::kPutDirty) {  // all of the line is there
      const auto victim = slices_[slice].fill(w.line, LineState::kModified);
      if (victim && victim->state == LineState::kModified) write_back(slice, victim->line, w.at);
    } else {
      from_memory(w, slice, writes_here);
    }
  }
  if (is_coherent && w.wants_data() && comes_from_owner) w.what = Ask::kUpgrade;  // it has the data
}

void MemorySystem::prefetch(uint64_t line, Ask what) const {
  if (shape_.shared.coherence == Coherence::kMesi && what != Ask::kFetch) directory_.prefetch(line);
  if (!slices_.empty() && what != Ask::kPut && what != Ask::kUpgrade)
    slices_[slice_of(line)].prefetch(line);
}

Answer MemorySystem::ask(uint32_t core, Ask what, uint64_t line, uint32_t bytes, Ticks at) {
  Walk w{core, tile_of(core), what, line, bytes, at};
  const bool is_put = what == Ask::kPut || what == Ask::kPutDirty;
  if (is_put && shape_.shared.coherence == Coherence::kMesi) put(core, line);
  if (what == Ask::kUpgrade) {
    // Nobody else had it since: what seemed to be shared is this core's alone.
    const Entry* const e = directory_.find(line);
    if (e && e->owner == core) {
      w.answer.done = at;
      w.answer.is_exclusive = true;
      return w.answer;
    }
    if (!e || !e->sharers.has(core)) w.what = Ask::kOwn;  // it was lost in between
  }
  if (!tile_caches_.empty()) {
    ++counts_.l2_accesses;
    StateCache& cache = tile_caches_[w.tile];
    const Ticks begin = take(tile_ports_[w.tile], of_tiles_, at, tile_length_);
    w.spend(Part::kL2, begin + tile_hit_);
    const bool writes = what == Ask::kWriteThrough || what == Ask::kPutDirty;
    if (what == Ask::kPut) return w.answer;
    if (what != Ask::kFar && what != Ask::kFarRead) {
      if (uint64_t* entry = cache.touch(line)) {
        if (writes) StateCache::set_state(entry, LineState::kModified);
        if (writes) note_write(line, core, w.at);
        w.answer.done = w.at;
        return w.answer;
      }
      ++counts_.l2_misses;
      const auto victim = cache.fill(line, writes ? LineState::kModified : LineState::kExclusive);
      if (victim && victim->state == LineState::kModified) {
        Walk put{core, w.tile, Ask::kPutDirty, victim->line, shape_.line_bytes, w.at};
        const uint32_t slice = slice_of(victim->line);
        put.at = network_.send(w.tile, tile_of_slice(slice), shape_.line_bytes, w.at, now_).arrival;
        at_slice(put, slice);
      }
      if (what == Ask::kPutDirty) {
        w.answer.done = w.at;
        return w.answer;
      }
      if (what == Ask::kWriteThrough) w.what = Ask::kRead;  // the line is fetched, then written
      if (writes) note_write(line, core, w.at);
    } else if (cache.drop(line) == LineState::kModified) {
      ++counts_.l2_misses;
    }
  } else if (what == Ask::kPut && shape_.shared.coherence == Coherence::kNone) {
    return w.answer;
  }
  const uint32_t slice = slice_of(line), home = tile_of_slice(slice);
  const uint32_t payload = what == Ask::kPutDirty                            ? shape_.line_bytes
                           : what == Ask::kWriteThrough || what == Ask::kFar ? bytes
                                                                             : 0;
  const Delivery there = network_.send(w.tile, home, payload, w.at, now_);
  counts_.network_queued += there.queued;
  w.spend(Part::kNetwork, there.arrival);
  if (what == Ask::kPut) return w.answer;  // the directory hears of it
  const bool wanted = w.wants_data();
  const Ask asked = w.what;
  at_slice(w, slice);
  const Ticks at_home = w.at;
  const bool has_data = wanted && w.what == Ask::kUpgrade && asked != Ask::kUpgrade;
  if (!is_put && !has_data) {
    const uint32_t reply = wanted ? (shape_.shared.is_scratchpad ? bytes : shape_.line_bytes)
                           : what == Ask::kFar || what == Ask::kFarRead ? bytes
                                                                        : 0;
    const Delivery back = network_.send(home, w.tile, reply, w.at, now_);
    counts_.network_queued += back.queued;
    w.spend(Part::kNetwork, back.arrival);
  }
  if (shape_.shared.coherence == Coherence::kMesi && what == Ask::kFetch)
    w.entry = directory_.find(line);
  if (w.entry) w.entry->free_at = w.leaves_shared ? at_home : w.at;
  w.answer.done = w.at;
  return w.answer;
}

}  // namespace gpusim::host::chip
