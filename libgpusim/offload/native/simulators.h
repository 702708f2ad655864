// SPDX-License-Identifier: MIT
// The simulators of this process. Whoever enters one owns all of them until it leaves: kernels of
// all devices advance under one lock, because programs' images lie at fixed addresses of the
// process.
//
// A thread that launches a kernel works on it itself for a moment; small kernels have ended by
// then. Others are left to the runner, a thread that exists from the first need on until the last
// device is closed.
#pragma once
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "host/offload/simulator.h"

namespace gpusim::offload {

class Simulators {
 public:
  static Simulators& instance();

  /// The simulator with these options, made if there is none; give each back. Throws.
  struct Options {
    std::string backend = "auto", memory = "auto";
    CompiledRegions regions = CompiledRegions::kAuto;
    uint32_t threads = 0;
    bool operator==(const Options&) const = default;
  };
  std::shared_ptr<Simulator> acquire(const Options& options);
  void release(std::shared_ptr<Simulator> simulator);

  /// Ownership of all simulators, first come first served.
  class Ownership {
   public:
    explicit Ownership(Simulators& simulators) : simulators_(simulators) { simulators_.enter(); }
    ~Ownership() { simulators_.leave(); }
    Ownership(const Ownership&) = delete;
    Ownership& operator=(const Ownership&) = delete;

   private:
    Simulators& simulators_;
  };

  /// There is something to do that nobody waits for in step(). From any thread.
  void wake();
  /// Makes sure that somebody hears wake(). Throws std::system_error.
  void need_runner();

 private:
  struct Entry {
    Options options;
    std::shared_ptr<Simulator> simulator;
    unsigned devices = 0;
  };

  void enter();
  void leave();
  void run();

  std::mutex turns_mutex_;
  std::condition_variable turns_changed_;
  uint64_t next_turn_ = 0, present_turn_ = 0;

  std::mutex entries_mutex_;  // taken before a turn
  std::list<Entry> entries_;

  std::mutex runner_mutex_;
  std::condition_variable runner_wakes_;
  bool is_woken_ = false, is_stopping_ = false;
  std::thread runner_;
};

}  // namespace gpusim::offload
