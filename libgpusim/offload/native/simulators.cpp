// SPDX-License-Identifier: MIT
#include "libgpusim/offload/native/simulators.h"

#include <algorithm>

namespace gpusim::offload {

Simulators& Simulators::instance() {
  // Never destroyed: devices may be open when the process ends.
  static auto* const simulators = new Simulators;
  return *simulators;
}

std::shared_ptr<Simulator> Simulators::acquire(const Options& wanted) {
  const std::lock_guard lock(entries_mutex_);
  for (Entry& entry : entries_) {
    if (entry.options != wanted) continue;
    ++entry.devices;
    return entry.simulator;
  }
  SimulatorOptions options;
  options.backend = wanted.backend;
  options.guest_memory = wanted.memory;
  options.compiled_regions = wanted.regions;
  options.threads = wanted.threads;
  options.identity = true;
  options.most_contexts = ~uint32_t{0};
  options.wake = [this] { wake(); };
  // The programs are this process's own.
  options.find_lines = [](std::span<const uint8_t> elf, std::span<const uint64_t> places) {
    const FileDescriptor file = host::memory_file(elf);
    return file ? host::find_lines(file.get(), places) : host::LineTable{};
  };
  auto simulator = std::make_shared<Simulator>(options);
  const Ownership owned(*this);
  entries_.push_back({wanted, simulator, 1});
  return simulator;
}

void Simulators::release(std::shared_ptr<Simulator> simulator) {
  const std::lock_guard lock(entries_mutex_);
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return e.simulator == simulator; });
  if (--entry->devices != 0) return;
  {
    const Ownership owned(*this);
    entries_.erase(entry);
    simulator.reset();
  }
  if (!entries_.empty()) return;
  std::thread runner;
  {
    const std::lock_guard runner_lock(runner_mutex_);
    is_stopping_ = true;
    runner_wakes_.notify_one();
    runner = std::move(runner_);
  }
  if (runner.joinable()) runner.join();
  const std::lock_guard runner_lock(runner_mutex_);
  is_stopping_ = is_woken_ = false;
}

void Simulators::enter() {
  std::unique_lock lock(turns_mutex_);
  const uint64_t mine = next_turn_++;
  turns_changed_.wait(lock, [&] { return present_turn_ == mine; });
}

void Simulators::leave() {
  const std::lock_guard lock(turns_mutex_);
  ++present_turn_;
  if (present_turn_ != next_turn_) turns_changed_.notify_all();
}

void Simulators::wake() {
  const std::lock_guard lock(runner_mutex_);
  is_woken_ = true;
  runner_wakes_.notify_one();
}

void Simulators::need_runner() {
  const std::lock_guard lock(runner_mutex_);
  if (!runner_.joinable()) runner_ = std::thread([this] { run(); });
}

void Simulators::run() {
  std::unique_lock lock(runner_mutex_);
  for (;;) {
    runner_wakes_.wait(lock, [&] { return is_woken_ || is_stopping_; });
    if (is_stopping_) return;
    is_woken_ = false;
    lock.unlock();
    // Others get their turn between slices.
    for (bool more = true; more;) {
      const Ownership owned(*this);
      more = false;
      for (const Entry& entry : entries_) more |= entry.simulator->step();
    }
    lock.lock();
  }
}

}  // namespace gpusim::offload
