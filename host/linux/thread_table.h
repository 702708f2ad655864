// The guest threads of all cores. Most are born with their core and never need more than to be alive:
// what else Linux keeps for a thread is made once somebody asks for it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "host/linux/thread.h"

namespace gpusim::host {

class ThreadTable {
 public:
  // Core c's first thread has the number first_tid + c. `alone`: only core 0 has one.
  ThreadTable(uint32_t cores, int64_t first_tid, bool alone)
      : first_tid_(first_tid), alive_(alone ? 1 : cores), states_(cores, alone ? kNone : kAlive) {
    states_[0] = kAlive;
  }

  uint32_t size() const { return static_cast<uint32_t>(states_.size()); }
  uint32_t alive() const { return alive_; }
  bool is_alive(uint32_t core) const { return states_[core] != kNone; }
  bool is_parked(uint32_t core) const { return states_[core] == kParked; }
  int64_t tid(uint32_t core) const {
    const Thread* const thread = find(core);
    return thread ? thread->tid : first_tid_ + core;
  }
  // Null: everything is as at the start.
  const Thread* find(uint32_t core) const { return threads_.empty() ? nullptr : threads_[core].get(); }
  Thread* find(uint32_t core) { return threads_.empty() ? nullptr : threads_[core].get(); }
  Thread& operator[](uint32_t core) {
    if (threads_.empty()) threads_.resize(states_.size());
    if (!threads_[core]) {
      threads_[core] = std::make_unique<Thread>();
      threads_[core]->tid = first_tid_ + core;
    }
    return *threads_[core];
  }
  // Whether find() is null for all cores.
  bool are_plain() const { return threads_.empty(); }

  // The first core that runs no thread; that runs one.
  std::optional<uint32_t> free_core() const {
    return first([](State s) { return s == kNone; });
  }
  std::optional<uint32_t> first_alive() const {
    return first([](State s) { return s != kNone; });
  }
  void start(uint32_t core, Thread thread) {
    (*this)[core] = std::move(thread);
    set_state(core, kAlive);
  }
  // Of a core that runs one: it waits in a system call, or goes on.
  void set_parked(uint32_t core, bool parked) { set_state(core, parked ? kParked : kAlive); }
  void end(uint32_t core) { set_state(core, kNone); }

 private:
  enum State : uint8_t { kNone, kAlive, kParked };
  template <class Is>
  std::optional<uint32_t> first(Is is) const {
    const auto found = std::find_if(states_.begin(), states_.end(), is);
    if (found == states_.end()) return std::nullopt;
    return static_cast<uint32_t>(found - states_.begin());
  }
  void set_state(uint32_t core, State state) {
    alive_ += (state != kNone) - (states_[core] != kNone);
    states_[core] = state;
  }

  int64_t first_tid_;
  uint32_t alive_;
  std::vector<State> states_;
  std::vector<std::unique_ptr<Thread>> threads_;  // empty until there is one
};

}  // namespace gpusim::host
