#include "device_sim/simd/jit/code_cache.h"

#include <algorithm>

namespace gpusim::simd {

void CodeCache::follow(const Module& module) {
  uops_.insert(uops_.end(), module.uops.begin() + static_cast<std::ptrdiff_t>(uops_.size()),
               module.uops.end());
  for (; relinked_ < module.relinked.size(); ++relinked_) {
    const uint32_t uop = module.relinked[relinked_];
    uops_[uop].imm = module.uops[uop].imm;
  }
  entry_of_.resize(uops_.size());
  misfits_.resize(uops_.size());
  is_hot_.resize(module.blocks.size());
}

void CodeCache::patch(uint32_t uop) { uops_[uop].op = kEntryOp; }

void CodeCache::mark(uint32_t uop) {
  if (uops_[uop].op == kEntryOp) return;
  entry_of_[uop] = static_cast<uint32_t>(entries_.size());
  entries_.emplace_back().op = uops_[uop].op;
  patch(uop);
}

void CodeCache::note_misfit(uint32_t uop) {
  if (misfits_[uop].fetch_add(1, std::memory_order_relaxed) == patience_.misfits)
    any_misfits_.store(true, std::memory_order_relaxed);
}

void CodeCache::mark_misfits() {
  if (!any_misfits_.exchange(false, std::memory_order_relaxed)) return;
  for (uint32_t uop = 0; uop < misfits_.size(); ++uop)
    if (misfits_[uop].load(std::memory_order_relaxed) > patience_.misfits) mark(uop);
}

size_t CodeCache::variants() const {
  size_t n = 0;
  for (const NativeEntry& e : entries_)
    for (const auto& of_width : e.variants)
      for (const NativeVariants& v : of_width) n += static_cast<size_t>(v.count.load());
  return n;
}

// Gives each block of the trace's regions a place; a region for which there is none is left out.
void CodeCache::find_places(Trace& trace) {
  size_t root = 0;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    Step& s = trace.steps[i];
    if (s.side == Side::kRoot) root = i;
    if (s.side != Side::kEnd) continue;
    const auto end = side_blocks_.begin() + static_cast<std::ptrdiff_t>(sides_);
    const auto place = std::find(side_blocks_.begin(), end, s.uop.block());
    if (place == side_blocks_.end()) return trace.end_at_branch(root);
    if (place == end) {
      *place = s.uop.block();
      ++sides_;
    }
    s.place = static_cast<uint8_t>(place - side_blocks_.begin());
  }
}

void CodeCache::add(NativeVariants& variants, Trace& trace, const NativeCalls& calls) {
  const std::lock_guard lock(mutex_);
  const int n = variants.count;
  if (variants.closed) return;  // by another thread, while this one began
  find_places(trace);
  const NativeCode code = trace.steps.empty() ? nullptr : compiler_.compile(trace, calls);
  int place = 0;
  while (place < n && variants.code[place] != code) ++place;
  if (code != nullptr) {
    if (place == n) {
      variants.code[n].store(code, std::memory_order_relaxed);
      variants.count.store(n + 1, std::memory_order_release);
    }
    if (variants.replaces) variants.first = place;
  }
  variants.misses = variants.misfits = variants.togethers = 0;
  variants.replaces = false;
  variants.closed = variants.count == NativeVariants::kMost ||
                    ++variants.attempts == NativeVariants::kAttempts;
  variants.recording.store(false, std::memory_order_relaxed);
}

}  // namespace gpusim::simd
