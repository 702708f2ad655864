// The chip model: what it counted, pieces in detail, and use over time.
#include <algorithm>
#include <utility>

#include "host/chip/chip_core.h"

namespace gpusim::host::chip {
namespace {

// Before a piece of a sampled run.
constexpr Ticks kWarmingIntervals = 5;

}  // namespace

Totals& Totals::operator-=(const Totals& b) {
  const auto less = [](auto& a, const auto& before) {
    for (size_t i = 0; i < before.size(); ++i) a[i] -= before[i];
  };
  time -= b.time;
  for (size_t c = 0; c < b.cores.size(); ++c) {
    less(cores[c], b.cores[c]);
    CoreCounts& n = counts[c];
    const CoreCounts& o = b.counts[c];
    n.instructions -= o.instructions;
    n.l1_accesses -= o.l1_accesses;
    n.l1_misses -= o.l1_misses;
    n.l2_accesses -= o.l2_accesses;
    n.l2_misses -= o.l2_misses;
    n.fetches -= o.fetches;
    n.fetch_misses -= o.fetch_misses;
    n.skipped -= o.skipped;
  }
  less(held_up, b.held_up);
  for (size_t p = 0; p < kParts; ++p) less(at[p], b.at[p]);
  less(executions, b.executions);
  less(misses, b.misses);
  for (auto [mine, theirs] :
       {std::pair{&false_sharing, &b.false_sharing}, std::pair{&true_sharing, &b.true_sharing}})
    for (const auto& [pair, count] : *theirs) (*mine)[pair] -= count;
  memory.l2_accesses -= b.memory.l2_accesses;
  memory.l2_misses -= b.memory.l2_misses;
  memory.shared_accesses -= b.memory.shared_accesses;
  memory.shared_misses -= b.memory.shared_misses;
  memory.memory_reads -= b.memory.memory_reads;
  memory.memory_writes -= b.memory.memory_writes;
  memory.row_hits -= b.memory.row_hits;
  memory.invalidations -= b.memory.invalidations;
  memory.broadcasts -= b.memory.broadcasts;
  memory.forwards -= b.memory.forwards;
  memory.messages -= b.memory.messages;
  memory.flit_hops -= b.memory.flit_hops;
  memory.network_queued -= b.memory.network_queued;
  memory.shared_queued -= b.memory.shared_queued;
  memory.memory_queued -= b.memory.memory_queued;
  less(links, b.links);
  less(slices, b.slices);
  less(channels, b.channels);
  less(bytes_between, b.bytes_between);
  locks -= b.locks;
  contended_locks -= b.contended_locks;
  return *this;
}

Totals ChipModel::totals_at(Ticks time) {
  Totals t = now_;
  t.time = time;
  t.locks += objects_.locks;
  t.contended_locks += objects_.contended_locks;
  for (size_t c = 0; c < cores_.size(); ++c) t.counts[c] = cores_[c]->model.counts;
  t.executions.assign(program_.size(), 0);
  for (const auto& thread : executions_) program_.add_executions(thread, t.executions, t.at);
  t.memory = memory_.counts();
  const Network& network = memory_.network();
  const std::vector<Ticks> used = network.used();
  for (uint32_t l = 0; l < network.link_count(); ++l) t.links.push_back(used[network.place_of(l)]);
  for (uint32_t s = 0; s < shape_.shared.slices; ++s) t.slices.push_back(memory_.slice_used(s));
  for (uint32_t c = 0; c < shape_.memory.channels; ++c)
    t.channels.push_back(memory_.channel_used(c));
  const uint32_t tiles = network.tiles();
  t.bytes_between.reserve(size_t{tiles} * tiles);
  for (uint32_t a = 0; a < tiles; ++a)
    for (uint32_t b = 0; b < tiles; ++b) t.bytes_between.push_back(network.bytes_between(a, b));
  return t;
}

// Many cores end it at the same time: once for all of them.
void ChipModel::end_region() {
  end_ = std::make_unique<Totals>(totals_at(region_end_));
  region_ends_ = false;
}

uint64_t ChipModel::executed() const {
  uint64_t instructions = 0;
  for (const auto& c : cores_) instructions += c->model.counts.instructions;
  return instructions;
}

// A region by number of instructions begins and ends with a window.
void ChipModel::look_at_range() {
  if (end_) return;
  const uint64_t instructions = executed();
  if (!begin_) {
    if (instructions >= program_.range()->first)
      begin_ = std::make_unique<Totals>(totals_at(from_));
  } else if (instructions >= program_.range()->end) {
    end_ = std::make_unique<Totals>(totals_at(from_));
  }
}

// --- Pieces in detail

void ChipModel::sample_pieces(const SamplingPlan& plan) {
  plan_ = plan;
  if (is_of_interest()) return;  // from the first instruction on
  detail_ = Detail::kNo;
  memory_.ignore_load(true);
}

bool ChipModel::is_of_interest() const {
  if (end_ || region_ends_) return false;
  // Whether a program that could mark its region ever does so is not known before.
  return begin_ || !(program_.region_is_function() || program_.range());
}

// After an interval.
void ChipModel::look_at_plan() {
  if (detail_ != Detail::kNo) in_detail_ += from_ - looked_at_;
  looked_at_ = from_;
  const uint64_t now = executed();
  if (begin_ && !std::exchange(region_has_begun_, true)) {
    pieces_.clear();
    piece_from_ = detail_ == Detail::kNo ? now - std::min(now, plan_->skip) : now;
    if (detail_ == Detail::kYes) piece_begin_ = from_;
  }
  const auto stop = [&] {
    detail_ = Detail::kNo;
    memory_.ignore_load(true);
  };
  if (!is_of_interest()) {
    if (detail_ != Detail::kNo) stop();
    piece_from_ = now - std::min(now, plan_->skip);  // the next piece begins with the region
    return;
  }
  switch (detail_) {
    case Detail::kNo:
      if (now - piece_from_ < plan_->skip) return;
      detail_ = Detail::kWarming;
      piece_begin_ = from_ + kWarmingIntervals * ticks(shape_.interval_cycles);
      memory_.ignore_load(false);
      return;
    case Detail::kWarming:
      if (from_ < piece_begin_) return;
      detail_ = Detail::kYes;
      piece_from_ = now;
      piece_begin_ = from_;
      return;
    case Detail::kYes:
      if (now - piece_from_ < plan_->detail) return;
      pieces_.push_back({now - piece_from_, cycles_of(from_ - piece_begin_)});
      piece_from_ = now;
      stop();
  }
}

void ChipModel::sample(Ticks end, bool is_last) {
  constexpr size_t kMost = 256;
  constexpr uint32_t kMostChannels = 64;
  if (shape_.is_ideal || end < sampled_until_ + (is_last ? 1 : sample_length_)) return;
  Sample s{.begin = sampled_until_, .end = end};
  const Network& network = memory_.network();
  const Ticks duration = end - sampled_until_;
  const auto length = static_cast<double>(duration);
  // What was taken until the end of the sample. A place is taken as soon as a request comes, which
  // may be for a later time: what does not fit in is of the next sample.
  const auto taken = [&](Ticks used, Ticks& before) {
    const Ticks here = std::min(used - before, duration);
    before += here;
    return here;
  };
  Ticks sum = 0, most = 0;
  sampled_.links.resize(network.link_count());
  const std::vector<Ticks> links = network.used();
  for (uint32_t place = 0; place < network.link_count(); ++place) {
    const Ticks here = taken(links[place], sampled_.links[place]);
    sum += here;
    most = std::max(most, here);
  }
  s.busiest_link = static_cast<double>(most) / length;
  s.mean_link = static_cast<double>(sum) / length / network.link_count();
  sampled_.channels.resize(shape_.memory.channels);
  for (uint32_t c = 0; c < shape_.memory.channels; ++c) {
    const double used =
        static_cast<double>(taken(memory_.channel_used(c), sampled_.channels[c])) / length;
    s.channels += used / shape_.memory.channels;
    if (shape_.memory.channels <= kMostChannels) s.each_channel.push_back(used);
  }
  sampled_.slices.resize(shape_.shared.slices);
  for (uint32_t i = 0; i < shape_.shared.slices; ++i) {
    s.slices += static_cast<double>(taken(memory_.slice_used(i), sampled_.slices[i])) / length /
                shape_.shared.slices;
  }
  uint64_t instructions = 0;
  for (const auto& c : cores_) instructions += c->model.counts.instructions;
  s.instructions_per_cycle = static_cast<double>(instructions - sampled_.locks) / length * kCycle;
  sampled_.locks = instructions;  // of the sample before
  sampled_until_ = end;
  samples_.push_back(s);
  if (samples_.size() < kMost) return;
  for (size_t i = 0; i + 1 < samples_.size(); i += 2) {
    const Sample &a = samples_[i], &b = samples_[i + 1];
    const auto la = static_cast<double>(a.end - a.begin), lb = static_cast<double>(b.end - b.begin);
    const auto mean = [&](double x, double y) { return (x * la + y * lb) / (la + lb); };
    std::vector<double> each_channel = a.each_channel;
    for (size_t c = 0; c < each_channel.size(); ++c)
      each_channel[c] = mean(each_channel[c], b.each_channel[c]);
    samples_[i / 2] = {
        .begin = a.begin,
        .end = b.end,
        .busiest_link = mean(a.busiest_link, b.busiest_link),
        .mean_link = mean(a.mean_link, b.mean_link),
        .channels = mean(a.channels, b.channels),
        .slices = mean(a.slices, b.slices),
        .instructions_per_cycle = mean(a.instructions_per_cycle, b.instructions_per_cycle),
        .each_channel = std::move(each_channel)};
  }
  samples_.resize(samples_.size() / 2);
  sample_length_ *= 2;
}

// The last window goes on behind the run's end.
void ChipModel::end_last_sample(Ticks end) {
  if (samples_.empty() || samples_.back().end <= end || samples_.back().begin >= end) return;
  Sample& s = samples_.back();
  const double longer = static_cast<double>(s.end - s.begin) / static_cast<double>(end - s.begin);
  for (double* value :
       {&s.busiest_link, &s.mean_link, &s.channels, &s.slices, &s.instructions_per_cycle})
    *value *= longer;
  for (double& value : s.each_channel) value *= longer;
  s.end = end;
}

ChipResult ChipModel::finish(std::span<const BlockSites> blocks) {
  settle();
  program_.grow(blocks);
  for (auto& c : cores_) {
    c->model.open(true);
    c->sleeps = true;
  }
  find_woken();
  while (advance(true) || let_one_go()) {
  }
  if (region_ends_) end_region();
  for (uint32_t core = 0; core < cores_.size(); ++core) {
    serving_core_ = core;
    drain(*cores_[core]);
    now_.time = std::max(now_.time, cores_[core]->clock);
  }
  sample(now_.time, true);
  end_last_sample(now_.time);
  ChipResult result;
  result.timeline = timeline_;
  result.region_has_ended = end_ != nullptr;
  result.totals = end_ ? std::move(*end_) : totals_at(now_.time);
  if (begin_) {
    result.begin = begin_->time;
    result.totals -= *begin_;
    result.has_region = true;
  }
  if (plan_) {
    if (detail_ != Detail::kNo) in_detail_ += now_.time - std::min(now_.time, looked_at_);
    if (detail_ == Detail::kYes && is_of_interest() && executed() > piece_from_ &&
        now_.time > piece_begin_)
      pieces_.push_back({executed() - piece_from_, cycles_of(now_.time - piece_begin_)});
    uint64_t instructions = 0;
    for (const CoreCounts& c : result.totals.counts) instructions += c.instructions;
    result.sampled = estimate_cycles(pieces_, instructions);
    result.sampled->modelled_cycles = cycles_of(result.totals.time);
    result.in_detail = in_detail_;
  }
  for (const auto& c : cores_) result.clocks.push_back(c->clock);
  for (const Stack& stack : now_.cores)
    result.waited.push_back(stack[static_cast<size_t>(Part::kWaiting)]);
  result.samples = samples_;
  result.off_chip_at = off_chip_at_;
  result.off_chip_of = off_chip_of_;
  result.unexplained_waits = unexplained_waits_;
  result.forced = forced_;
  return result;
}

}  // namespace gpusim::host::chip
