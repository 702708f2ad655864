// The way of checkpoints into parts of a run that keep their state to themselves.
#pragma once
#include "host/checkpoint/archive.h"
#include "host/checkpoint/files.h"
#include "host/linux/kernel.h"
#include "host/run/run_control.h"

namespace gpusim::host {

// Of one list: what readers take for possible.
inline constexpr uint64_t kMostEntries = uint64_t{1} << 24;

// The files of all guest processes.
struct FileState {
  struct Descriptor {
    uint32_t process = 0;
    int32_t fd = 0;
    uint32_t file = 0;  // index in saved.files
    bool closes_on_exec = false;
  };
  struct Lock {
    uint32_t process = 0;
    int32_t fd = 0;  // one of that file's
    RecordLocks::Range range{};
  };
  SavedFiles saved;
  std::vector<Descriptor> descriptors;
  std::vector<Lock> locks;
};

struct CheckpointAccess {
  // Throws Error if a file could not be opened again.
  static FileState capture(Kernel& kernel);
  // Guest processes and threads, with what was captured. Loading opens no file yet.
  static void describe(Saving& a, Kernel& kernel, FileState& files);
  static void describe(Loading& a, Kernel& kernel, FileState& files);
  // Opens the files.
  static void attach(Kernel& kernel, const FileState& files);

  // Tallies, ends of cores and watches. `same_machine`: the run goes on on the kind of machine that
  // it was on.
  static void describe(Saving& a, RunControl& control, bool same_machine);
  static void describe(Loading& a, RunControl& control, bool same_machine);

 private:
  template <class A>
  static void describe_kernel(A& a, Kernel& kernel, FileState& files);
  template <class A>
  static void describe_process(A& a, const Kernel& kernel, Process& process,
                               Clock::time_point now);
  template <class A>
  static void describe_space(A& a, AddressSpace& space);
  template <class A>
  static void describe_queue(A& a, SignalQueue& queue);
  template <class A>
  static void describe_thread(A& a, ThreadTable& threads, uint32_t core, Clock::time_point now);
  template <class A>
  static void describe_waits(A& a, const Kernel& kernel, WaitQueue& waits, Clock::time_point now);
  template <class A>
  static void describe_timers(A& a, Timers& timers, Clock::time_point now);
  template <class A>
  static void describe_control(A& a, RunControl& control, bool same_machine);
  template <class A>
  static void describe_tallies(A& a, const Module& module, Tallies& tallies, uint32_t cores);
  template <class A>
  static void describe_reports(A& a, StopReports& reports, uint32_t cores);
  template <class A>
  static void describe_guard(A& a, const Module& module, CodeGuard& guard, uint32_t cores);
};

}  // namespace gpusim::host
