// One core of a chip: condition variables, and locks of code that the model does not know.
#include <algorithm>
#include <utility>

#include "host/chip/core_model.h"
#include "host/chip/core_stream.h"

namespace gpusim::host::chip {
namespace {

// Places in the code of one loop that waits for a lock; locks that a core has at the same time by
// code of its own; and bytes between the words of one lock, at most.
constexpr size_t kMostLooks = 4, kMostTaken = 8;
constexpr uint64_t kLockBytes = 64;
bool is_beside(uint64_t a, uint64_t b) { return a - b + kLockBytes < 2 * kLockBytes; }

}  // namespace

// --- Condition variables
//
// A core that slept in a wait is ordered by its wake-up. One that found the signal when it was
// about to sleep, since the run let others go on in between, is not: it goes on behind a signal
// that came, in the run, in the slice in which its wait began or later.

// Of the word at `at`, which is not before the ones that it was asked about.
uint32_t CoreModel::slice_of(size_t at) {
  while (slices_.size() > 1 && slices_.front().words <= erased_ + at) slices_.pop_front();
  return slices_.empty() ? 0 : slices_.front().slice;
}

// An access in such a function. What waits changes the variable before it looks for a signal.
void CoreModel::see_condition(const SiteModel& site, uint64_t address) {
  if (address - c_.stack_base < c_.stack_end - c_.stack_base) return;
  if (condition_ == Role::kAwait && site.kind != SiteKind::kAtomic) return;
  const uint32_t slice = slice_of(at_ - 1);
  if (std::exchange(condition_, Role::kNone) == Role::kSignal) {
    emit(Kind::kSignal, Ask::kRead, 0, word_of(address), slice, 0, false, 0);
  } else {
    awaited_ = word_of(address);
    awaited_since_ = slice;
  }
}

// It takes its mutex again.
void CoreModel::await_signal(const SyncFunction& lock) {
  if (!lock.ends_wait || awaited_ == 0) return;
  emit(Kind::kAwait, Ask::kRead, 0, std::exchange(awaited_, 0), awaited_since_, 0, false, 0);
}

// --- Locks of other code
//
// The word by which a lock is given is stored to by its holder alone, though others change it, or
// a word beside it, by atomic operations. So a release of a word that the core acquired before, by
// such an operation or by looks behind one, ends a piece that excludes those of others.

void CoreModel::take(uint64_t address, bool is_ticket) {
  std::erase_if(taken_, [&](const Taken& t) { return t.word == address; });
  if (taken_.size() == kMostTaken) taken_.erase(taken_.begin());
  taken_.push_back({address, is_ticket});
  emit(Kind::kTake, Ask::kRead,
       line_of(address, c_.shape.l1_data ? c_.line_shift : c_.granule_shift), word_of(address), 0,
       0, false, 0);
}

void CoreModel::give(uint64_t address) {
  if (std::erase_if(taken_, [&](const Taken& t) { return t.word == address; }) == 0) return;
  lock_words.push_back(word_of(address));
  emit(Kind::kGive, Ask::kRead, 0, word_of(address), 0, 0, false, 0);
}

// Behind an access.
void CoreModel::note_order(const SiteModel& site, uint64_t address) {
  if (site.is_store) {
    if (site.releases) give(address);
  } else if (site.kind == SiteKind::kAtomic) {
    // Who comes to a barrier changes a word beside the one that was looked at the last time.
    std::erase_if(taken_, [&](const Taken& t) {
      return t.is_ticket && t.word != address && is_beside(t.word, address);
    });
    changed_ = address;
    if (site.acquires || acquired_ == address) take(address, false);
  } else if (site.acquires) {
    acquired_ = address;
    if (is_beside(address, changed_)) take(address, true);
  }
}

// Before an access.
void CoreModel::look(const SiteModel& site, uint64_t address) {
  const bool goes_on = looked_at_ == address && site.may_fail && look_blocks_.size() < kMostOfLook;
  const auto first =
      std::ranges::find_if(looks_, [&](const Look& l) { return l.unit == site.unit; });
  if (goes_on && first != looks_.end() &&
      counts.instructions - first->counts.instructions <= kMostOfLook)
    return look_again(*first);
  if (!goes_on || first != looks_.end() || looks_.size() == kMostLooks) {
    looks_.clear();
    look_blocks_.clear();
    const bool may_wait = site.may_fail && c_.lock_words.contains(word_of(address));
    looked_at_ = may_wait ? address : 0;
    if (!may_wait) return;
  }
  looks_.push_back({.unit = site.unit,
                    .requests = requests.size(),
                    .blocks = look_blocks_.size(),
                    .since = since_,
                    .estimate = estimate_,
                    .stalls = stalls_,
                    .since_l2 = since_l2_,
                    .counts = counts});
}

// The looks from that on were in vain.
void CoreModel::look_again(const Look& first) {
  const uint64_t skipped = counts.skipped + counts.instructions - first.counts.instructions;
  counts = first.counts;
  counts.skipped = skipped;
  for (size_t i = std::max(first.requests, next); i < requests.size(); ++i)
    if (requests[i].is_new) had_.take_out(requests[i].line);
  requests.resize(first.requests);
  since_ = first.since;
  stalls_ = first.stalls;
  since_l2_ = first.since_l2;
  estimate_ = first.estimate;
  uses_.clear();
  for (size_t i = first.blocks; i < look_blocks_.size(); ++i) --(*executions_)[look_blocks_[i]];
  look_blocks_.resize(first.blocks);
  looks_.resize(static_cast<size_t>(&first - looks_.data()) + 1);
}

}  // namespace gpusim::host::chip
