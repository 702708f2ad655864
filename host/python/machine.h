// A run inside another program: its process stays as it is, and what the command would print is
// kept.
#pragma once
#include <array>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "host/plugin/plugin_host.h"
#include "host/simulation.h"

namespace gpusim::python {

struct Settings {
  std::vector<std::string> words;       // as the command has them behind `gpusim run`
  std::vector<std::string> guest_args;  // behind --
  std::array<int, 3> files{0, 1, 2};    // the guest's standard files: they stay the caller's
  bool stats = true;                    // gathered for the result
  bool per_core = false;
};

struct Outcome {
  std::string stats;  // JSON, as --stats writes it
  int exit_status = 0;
  bool was_interrupted = false, was_deadlocked = false, ran_out_of_memory = false;
};

// Nothing here may be called while another call is under way, but stop(). All throw Error.
class Machine {
 public:
  Machine(const Settings& settings, const std::vector<host::PluginHost::OwnPlugin>& plugins);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // One slice of at most so many instructions of each core, or a nap when all wait. False: the run
  // has ended. `has_run`: whether it was a slice, and how long it may have been.
  struct Step {
    bool goes_on = false;
    uint64_t instructions = 0;
  };
  Step step(uint64_t most);
  // The run ends at the next step. From any thread, and from callbacks.
  void stop() { stop_ = SIGINT; }
  // Ends the run, if it has not ended, and tells what it did. Once.
  Outcome finish();

  // Of cores.
  uint32_t cores() const { return simulation_.options().cores; }
  bool is_alive(uint32_t core);
  const char* state(uint32_t core);  // "running", "waiting", "ended"
  std::optional<uint64_t> pc(uint32_t core);
  std::vector<std::pair<std::string, uint64_t>> registers(uint32_t core);
  void set_register(uint32_t core, const std::string& name, uint64_t value);

  // Of memory, as `core` sees it.
  std::string read(uint32_t core, uint64_t address, uint64_t size_bytes);
  void write(uint32_t core, uint64_t address, std::span<const uint8_t> bytes);
  struct Place {
    uint64_t address = 0, size_bytes = 0;
  };
  Place symbol(const std::string& name) const;
  std::string symbolize(uint64_t address) const;
  std::string disassemble(uint64_t address) const;

  // Of what was done so far.
  ClassCounts classes();
  ClassCounts classes_of(uint32_t core);
  std::vector<uint64_t> block_counts() { return simulation_.backend().block_counts(); }
  uint32_t alive() { return simulation_.kernel().alive(); }
  double seconds() const { return seconds_; }

  const Module& module() const { return simulation_.module(); }
  std::string backend_name() { return simulation_.backend().name(); }
  // What the command would have printed since the last call: notes, and reports of cores that
  // stopped.
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }

 private:
  uint32_t checked(uint32_t core) const;
  std::optional<uint32_t> slot_of(const std::string& name) const;
  bool has_core_tallies() const { return has_core_tallies_; }

  volatile std::sig_atomic_t stop_ = 0;
  std::vector<std::string> messages_;
  host::Simulation simulation_;
  bool has_core_tallies_ = false;
  bool goes_on_ = true;
  double seconds_ = 0;
};

}  // namespace gpusim::python
