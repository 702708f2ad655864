// The guest threads. Most are born with their core and never need more than to be alive: what else
// Linux keeps for a thread is made once somebody asks for it.
//
// A thread is known by the number of its core. Numbers from cores() on are of threads without one.
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
      : first_tid_(first_tid),
        cores_(cores),
        alive_(alone ? 1 : cores),
        states_(cores, alone ? kNone : kAlive) {
    states_[0] = kAlive;
  }

  uint32_t cores() const { return cores_; }
  bool has_core(uint32_t core) const { return core < cores_; }
  uint32_t size() const { return static_cast<uint32_t>(states_.size()); }  // of the numbers
  uint32_t alive() const { return alive_; }
  uint32_t alive_without_core() const { return without_core_; }
  uint32_t parked() const { return parked_; }  // of those alive
  bool is_alive(uint32_t core) const { return is_of_thread(states_[core]); }
  // A core that can take a thread.
  bool is_free(uint32_t core) const { return states_[core] == kNone && has_core(core); }
  bool is_parked(uint32_t core) const { return states_[core] == kParked; }
  bool is_retired(uint32_t core) const { return states_[core] == kRetired; }
  bool is_queued(uint32_t core) const { return states_[core] == kQueued; }
  // On a core, and not in a system call.
  bool runs(uint32_t core) const { return states_[core] == kAlive && has_core(core); }
  int64_t tid(uint32_t core) const {
    const Thread* const thread = find(core);
    return thread ? thread->tid : first_tid_ + core;
  }
  // Null: everything is as at the start.
  const Thread* find(uint32_t core) const {
    return core < threads_.size() ? threads_[core].get() : nullptr;
  }
  Thread* find(uint32_t core) { return core < threads_.size() ? threads_[core].get() : nullptr; }
  Thread& operator[](uint32_t core) {
    if (threads_.size() < states_.size()) threads_.resize(states_.size());
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
    const std::optional<uint32_t> free = first([](State s) { return s == kNone; });
    return free && has_core(*free) ? free : std::nullopt;
  }
  std::optional<uint32_t> first_alive() const { return first(is_of_thread); }
  // A number without a core that no thread has.
  uint32_t free_number() {
    const auto found = std::find(states_.begin() + cores_, states_.end(), kNone);
    return found != states_.end() ? static_cast<uint32_t>(found - states_.begin()) : add_number();
  }
  uint32_t add_number() {
    states_.push_back(kNone);
    return size() - 1;
  }
  void start(uint32_t core, Thread thread) {
    (*this)[core] = std::move(thread);
    set_state(core, kAlive);
  }
  // Of a core that runs one: it waits in a system call, or goes on.
  void set_parked(uint32_t core, bool parked) { set_state(core, parked ? kParked : kAlive); }
  // It waits for a core.
  void set_queued(uint32_t core) { set_state(core, kQueued); }
  void end(uint32_t core) { set_state(core, kNone); }
  // The core, which has no thread, never gets another one.
  void retire_core(uint32_t core) { states_[core] = kRetired; }
  bool has_usable_cores() const {
    return std::any_of(states_.begin(), states_.begin() + cores_,
                       [](State s) { return s != kRetired; });
  }
  // The thread is known by another number, which no thread has.
  void move(uint32_t from, uint32_t to) {
    (*this)[to] = std::move((*this)[from]);
    threads_[from].reset();
    set_state(to, states_[from]);
    set_state(from, kNone);
  }

 private:
  enum State : uint8_t { kNone, kAlive, kParked, kQueued, kRetired };
  static bool is_of_thread(State s) { return s != kNone && s != kRetired; }
  template <class Is>
  std::optional<uint32_t> first(Is is) const {
    const auto found = std::find_if(states_.begin(), states_.end(), is);
    if (found == states_.end()) return std::nullopt;
    return static_cast<uint32_t>(found - states_.begin());
  }
  void set_state(uint32_t core, State state) {
    const int change = is_of_thread(state) - is_of_thread(states_[core]);
    alive_ += change;
    if (!has_core(core)) without_core_ += change;
    parked_ += (state == kParked) - (states_[core] == kParked);
    states_[core] = state;
  }

  int64_t first_tid_;
  uint32_t cores_;
  uint32_t alive_, without_core_ = 0, parked_ = 0;
  std::vector<State> states_;
  std::vector<std::unique_ptr<Thread>> threads_;  // empty until there is one
};

}  // namespace gpusim::host
