// Which threads have a core, where there are more threads than cores: docs/adr/0053.
#include <algorithm>
#include <numeric>
#include <utility>

#include "host/linux/kernel.h"
#include "host/run/core_place.h"

namespace gpusim::host {
namespace {

uint64_t instructions_of(Backend& backend, uint32_t core) {
  const CoreTally tally = backend.tally(core);
  return std::accumulate(tally.classes.begin(), tally.classes.end(), uint64_t{0});
}

}  // namespace

uint64_t Kernel::slot(uint32_t core, Slot slot) {
  return has_core(core) ? backend_.slot(core, slot) : context(core)[slot];
}

void Kernel::set_slot(uint32_t core, Slot slot, uint64_t value) {
  if (has_core(core))
    backend_.set_slot(core, slot, value);
  else
    context(core)[slot] = value;
}

std::vector<uint64_t>& Kernel::context(uint32_t number) {
  auto& contexts = run_queue_.contexts;
  const size_t i = number - threads_.cores();
  if (i >= contexts.size()) contexts.resize(i + 1);
  contexts[i].resize(module().slot_count);
  return contexts[i];
}

void Kernel::copy_context(uint32_t from, uint32_t to) {
  const int core_id = module().abi.core_id;
  for (uint32_t s = 0; s < module().slot_count; ++s)
    if (static_cast<int>(s) != core_id)
      set_slot(to, static_cast<Slot>(s), slot(from, static_cast<Slot>(s)));
}

void Kernel::move_thread(uint32_t from, uint32_t to) {
  copy_context(from, to);
  threads_.move(from, to);
  waits_.move(from, to);
  const auto move_key = [&](auto& map) {
    if (auto node = map.extract(from)) {
      node.key() = to;
      map.insert(std::move(node));
    }
  };
  move_key(retries_);
  move_key(vfork_waits_);
  if (shared_waits_.erase(from) != 0) {
    shared_waits_.insert(to);
    family_->futexes().move(from, to);
  }
  process_of(from).ipc.move(from, to);
}

// Its thread sleeps, or has used up its turn.
void Kernel::take_core(uint32_t core) {
  if (is_parked(core)) return move_thread(core, threads_.free_number());
  const uint32_t uop = backend_.place(core);
  backend_.stop(core);
  const uint32_t number = threads_.free_number();
  move_thread(core, number);
  threads_.set_queued(number);
  run_queue_.later.push_back({number, uop});
}

void Kernel::queue(uint32_t number, uint32_t uop) {
  threads_.set_queued(number);
  Thread& thread = threads_[number];
  if (std::exchange(thread.round, run_queue_.round) != run_queue_.round) thread.turn_used = 0;
  (thread.turn_used < RunQueue::kTurn ? run_queue_.ready : run_queue_.later)
      .push_back({number, uop});
}

std::optional<uint32_t> Kernel::queued_at(uint32_t number) const {
  if (!threads_.is_queued(number)) return std::nullopt;
  return run_queue_.place_of(number);
}

void Kernel::begin_round() {
  ++run_queue_.round;
  run_queue_.ready.swap(run_queue_.later);
  for (const RunQueue::Entry& e : run_queue_.ready) {
    threads_[e.number].round = run_queue_.round;
    threads_[e.number].turn_used = 0;
  }
}

void Kernel::give_core(uint32_t core) {
  const RunQueue::Entry next = run_queue_.ready.front();
  run_queue_.ready.pop_front();
  come_to(core, next.number);
  go_on(core, next.uop);
}

void Kernel::come_to(uint32_t core, uint32_t number) {
  move_thread(number, core);
  run_queue_.is_new[core] = 1;
}

bool Kernel::core_is_spent(uint32_t core, uint32_t uop) {
  if (!starts_alone()) return false;
  // Whoever comes to a core whose last thread ended just at the limit has executed nothing there.
  const bool is_new =
      std::ranges::find(run_queue_.begun_at, std::pair(core, instructions_of(backend_, core))) !=
          run_queue_.begun_at.end() &&
      starts_block(uop);
  if (is_new) {
    backend_.stop(core);
    const uint32_t number = threads_.free_number();
    move_thread(core, number);
    threads_.set_queued(number);
    run_queue_.ready.push_front({number, uop});
    threads_.retire_core(core);
  }
  return is_new;
}

void Kernel::retire_core(uint32_t core) {
  if (starts_alone() && !is_alive(core)) threads_.retire_core(core);
}

// Its thread may be taken away now: where it goes on a block begins.
bool Kernel::can_be_taken(uint32_t core) {
  if (is_held_ && is_held_(core)) return false;
  if (is_parked(core)) return true;
  settled_pc(backend_, module(), core);
  return starts_block(backend_.place(core));
}

void Kernel::share_cores() {
  if (threads_.alive_without_core() == 0) return;
  const uint32_t cores = threads_.cores();
  run_queue_.is_new.resize(cores);
  const auto is_idle = [&](uint32_t core) { return threads_.is_free(core) || is_parked(core); };
  const auto has_used_turn = [&](uint32_t core) {
    const Thread* const thread = threads_.runs(core) ? threads_.find(core) : nullptr;
    return thread && thread->turn_used >= RunQueue::kTurn;
  };
  // A free core goes on, with a thread that had begun before.
  const auto take_up = [&](uint32_t core) {
    if (config_.on_thread) config_.on_thread(core, core);
  };
  // Those that lose their core now wait until the next time.
  size_t left = run_queue_.ready.size() + run_queue_.later.size();
  const auto take = [&](auto may_lose) {
    for (uint32_t core = 0; core < cores && left != 0; ++core) {
      if (!may_lose(core)) continue;
      if (threads_.is_free(core)) {
        take_up(core);
      } else {
        if (!can_be_taken(core)) continue;
        take_core(core);
      }
      if (run_queue_.ready.empty()) begin_round();
      give_core(core);
      --left;
    }
  };
  take([&](uint32_t core) { return threads_.is_free(core); });
  take(is_idle);
  take(has_used_turn);
  // Where cores are free, those that sleep have one, too: then all is as if there never had been
  // more threads.
  for (uint32_t core = 0, number = cores; core < cores && run_queue_.empty(); ++core) {
    if (!threads_.is_free(core)) continue;
    while (number < threads_.size() && !is_alive(number)) ++number;
    if (number == threads_.size()) return;
    take_up(core);
    come_to(core, number);
  }
}

void Kernel::begin_slice() {
  run_queue_.begun_at.clear();
  run_queue_.is_counting = has_queued();
  for (uint32_t core = 0; core < run_queue_.is_new.size(); ++core) {
    if (!threads_.runs(core)) continue;
    if (std::exchange(run_queue_.is_new[core], uint8_t{0}) != 0 &&
        plan().config.max_instructions != 0)
      run_queue_.begun_at.emplace_back(core, instructions_of(backend_, core));
    if (run_queue_.is_counting) threads_[core].turn_used += RunQueue::kOfSlice;
  }
}

void Kernel::slice_was_short(uint32_t core) {
  if (!run_queue_.is_counting) return;
  Thread& thread = threads_[core];
  const uint32_t too_much = std::min(thread.turn_used, RunQueue::kOfSlice - RunQueue::kOfEvent);
  thread.turn_used -= too_much;
}

void Kernel::yield(uint32_t core) {
  if (has_queued()) threads_[core].turn_used = RunQueue::kTurn;
}

void Kernel::end_threads_without_core() {
  for (uint32_t number = threads_.cores(); number < threads_.size(); ++number) end_thread(number);
}

}  // namespace gpusim::host
