// Which threads have a core, where there are more threads than cores: docs/adr/0053.
#include "host/linux/kernel.h"
#include "host/run/core_place.h"

namespace gpusim::host {

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

void Kernel::take_core(uint32_t core) {
  if (is_parked(core)) return move_thread(core, threads_.free_number());
  const uint32_t uop = backend_.place(core);
  backend_.stop(core);
  const uint32_t number = threads_.free_number();
  move_thread(core, number);
  queue(number, uop);
}

void Kernel::queue(uint32_t number, uint32_t uop) {
  threads_.set_queued(number);
  run_queue_.ready.push_back({number, uop});
}

void Kernel::give_core(uint32_t core) {
  const RunQueue::Entry next = run_queue_.ready.front();
  run_queue_.ready.pop_front();
  move_thread(next.number, core);
  run_queue_.slices[core] = 0;
  go_on(core, next.uop);
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
  run_queue_.slices.resize(cores);
  // A free core goes on, with a thread that had begun before.
  const auto take_up = [&](uint32_t core) {
    if (config_.on_thread) config_.on_thread(core, core);
  };
  size_t left = run_queue_.ready.size();  // those that lose their core now come later
  for (uint32_t core = 0; core < cores && left != 0; ++core) {
    if (is_alive(core)) continue;
    take_up(core);
    give_core(core);
    --left;
  }
  const auto take_from = [&](auto may_lose) {
    for (uint32_t core = 0; core < cores && left != 0; ++core) {
      if (!may_lose(core) || !can_be_taken(core)) continue;
      take_core(core);
      give_core(core);
      --left;
    }
  };
  take_from([&](uint32_t core) { return is_parked(core); });
  take_from([&](uint32_t core) {
    return threads_.runs(core) && run_queue_.slices[core] >= RunQueue::kSlices;
  });
  // Where cores are free, those that sleep have one, too: then all is as if there never had been
  // more threads.
  for (uint32_t core = 0, number = cores; core < cores && run_queue_.ready.empty(); ++core) {
    if (is_alive(core)) continue;
    while (number < threads_.size() && !is_alive(number)) ++number;
    if (number == threads_.size()) return;
    take_up(core);
    move_thread(number, core);
  }
}

void Kernel::begin_slice() {
  if (has_queued())
    for (uint32_t& slices : run_queue_.slices) ++slices;
}

void Kernel::yield(uint32_t core) {
  if (has_queued() && !run_queue_.slices.empty()) run_queue_.slices[core] = RunQueue::kSlices;
}

void Kernel::end_threads_without_core() {
  for (uint32_t number = threads_.cores(); number < threads_.size(); ++number) end_thread(number);
}

}  // namespace gpusim::host
